"""A data set whose methods are recorded under a category of the program's own.

The import is the older one, `dftracer.logger`; `dftracer.python` has the same names.
"""

import argparse
from pathlib import Path

from dftracer.logger import dft_fn as Profile
from dftracer.logger import dftracer as PerfTrace

parser = argparse.ArgumentParser()
parser.add_argument("--trace-dir", default="traces")
parser.add_argument("--data", default="data")
args = parser.parse_args()
rank, world_size = 0, 1

PerfTrace.initialize_log(
    logfile=f"{args.trace_dir}/trace-{rank}-of-{world_size}.pfw",
    data_dir=f"{args.data}",
    process_id=rank,
)
dlp_data = Profile("DataLoader")


class ImageFolder:
    """Stands for torchvision's: files of a directory, each with its number as the target."""

    def __init__(self, root, transform=None, target_transform=None):
        self.samples = [(path, i) for i, path in enumerate(sorted(Path(root).iterdir()))]
        self.transform = transform
        self.target_transform = target_transform

    def loader(self, path):
        return path.read_bytes()


class DataLoader(ImageFolder):
    @dlp_data.log
    def preprocess(self, sample, target):
        if self.transform is not None:
            sample = self.transform(sample)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return sample, target

    @dlp_data.log
    def read_data(self, index):
        path, target = self.samples[index]
        return self.loader(path), target

    @dlp_data.log
    def __getitem__(self, index):
        sample, target = self.read_data(index)
        return sample, target


Path(args.data).mkdir(exist_ok=True)
for i in range(3):
    Path(args.data, f"{i}.bin").write_bytes(bytes([i]) * 100)

images = DataLoader(args.data, transform=len)
for index in range(3):
    print(images.preprocess(*images[index]))
