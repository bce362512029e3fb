"""An ordinary PyTorch training: images from files, two loader workers, a checkpoint per epoch.

Nothing here refers to dftracer.    python train.py DATA [EPOCHS]
"""

import os
import sys
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 64


class Pictures(Dataset):
    def __init__(self, root):
        self.kinds = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        self.samples = [
            (os.path.join(root, kind, name), label)
            for label, kind in enumerate(self.kinds)
            for name in sorted(os.listdir(os.path.join(root, kind)))
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            pixels = bytearray(zlib.decompress(file.read()))
        image = torch.frombuffer(pixels, dtype=torch.uint8).view(SIDE, SIDE, 3)
        return augmented(image.permute(2, 0, 1).float() / 255 - 0.5), label


def augmented(image):
    """Turned a little, blurred a little, and perhaps mirrored."""
    turn = (torch.rand(()) - 0.5) * 0.4
    sine, cosine = turn.sin(), turn.cos()
    matrix = torch.tensor([[[cosine, -sine, 0], [sine, cosine, 0]]])
    grid = nn.functional.affine_grid(matrix, (1, 3, SIDE, SIDE), align_corners=False)
    image = nn.functional.grid_sample(image[None], grid, align_corners=False)
    for _ in range(3):
        image = nn.functional.avg_pool2d(image, 3, stride=1, padding=1)
    return (image.flip(3) if torch.rand(()) < 0.5 else image)[0]


def make_model(kinds):
    layers = []
    for before, after in ((3, 8), (8, 16), (16, 32)):
        layers += [nn.Conv2d(before, after, 3, stride=2), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, kinds))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    data = Pictures(sys.argv[1])
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    loader = DataLoader(
        data, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True
    )
    model = make_model(len(data.kinds))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        right = seen = 0
        for images, labels in loader:
            optimizer.zero_grad()
            output = model(images)
            loss = loss_of(output, labels)
            loss.backward()
            optimizer.step()
            right += (output.argmax(1) == labels).sum().item()
            seen += len(labels)
        torch.save(model.state_dict(), "checkpoint.pt")
        print(f"epoch {epoch}: loss {loss.item():.3f}, {100 * right / seen:.0f} % right")


if __name__ == "__main__":
    main()
