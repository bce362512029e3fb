"""A training script without any reference to dftracer: loader, evaluation, checkpoint.

DFTRACER_ENABLE=1 DFTRACER_TORCH=1 python training_plain.py [WORKERS [START_METHOD]]
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randn(count, 1, 8, 8, generator=generator)
        self.labels = torch.randint(0, 10, (count,), generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4 * 6 * 6, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def main():
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    how = {"num_workers": workers, "persistent_workers": workers > 0}
    if len(sys.argv) > 2:
        how["multiprocessing_context"] = sys.argv[2]
    torch.manual_seed(0)
    train = DataLoader(Digits(24, seed=0), batch_size=8, shuffle=True, **how)
    test = DataLoader(Digits(8, seed=1), batch_size=8)
    model, loss_of = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for images, labels in train:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for images, _labels in test:
                model(images)
        model.train()
        torch.save(model.state_dict(), "model.pt")
    model.load_state_dict(torch.load("model.pt"))
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    print(weights.double().sum().item().hex(), loss.item().hex())


if __name__ == "__main__":
    main()
