"""Training loops of several kinds, annotated by nobody; each has a trace of its own.

loops.py NAME...
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from dftracer.python import ai, dftracer


def data(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return TensorDataset(
        torch.randn(count, 6, generator=generator),
        torch.randint(0, 3, (count,), generator=generator),
    )


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


loss_of = nn.CrossEntropyLoss()


def accumulation():
    """Two batches an update, evaluation with its own loader, a checkpoint an epoch."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    train, test = DataLoader(data(32), batch_size=8), DataLoader(data(8, 1), batch_size=4)
    for _ in range(2):
        for i, (x, y) in enumerate(train):
            loss_of(model(x), y).backward()
            if i % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        for x, _y in test:
            with torch.no_grad():
                model(x)
        model.train()
        torch.save(model.state_dict(), "model.pt")


def adversarial():
    """Two models and two optimizers take turns on each batch."""
    generator, critic = nn.Linear(6, 6), nn.Linear(6, 1)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (critic, generator)]
    for _ in range(2):
        for x, _y in DataLoader(data(24), batch_size=8):
            for optimizer in optimizers:
                optimizer.zero_grad()
                critic(generator(x)).mean().backward()
                optimizer.step()


def no_loader():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        loss = model(torch.randn(4, 6)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluation_first():
    """A baseline before any training; a new loader for each epoch; items read many at once."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    held_out, training = data(8, 1), Subset(data(16), range(16))
    for epoch in range(3):
        for x, _y in DataLoader(held_out, batch_size=8):
            with torch.no_grad():
                model(x)
        if epoch == 2:
            break
        for x, y in DataLoader(training, batch_size=8):
            optimizer.zero_grad()
            loss_of(model(x), y).backward()
            optimizer.step()


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(12.0).reshape(6, 2))


def stream():
    """An iterable dataset; the program counts epochs and steps itself."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ai.update(epoch=7, step=70)
    for x in DataLoader(Stream(), batch_size=2):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()


def failing():
    """An update that fails, and one that works; a batch that moves to another device."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters())

    def bad():
        raise ArithmeticError

    for closure in (bad, lambda: model(torch.ones(1, 2)).sum()):
        try:
            optimizer.step(closure)
        except ArithmeticError:
            continue
    torch.ones(3).to("cpu").to(torch.float64).to("meta")


for name in sys.argv[1:]:
    torch.manual_seed(0)
    log = dftracer.initialize_log(f"{name}.pfw")
    globals()[name]()
    log.finalize()
