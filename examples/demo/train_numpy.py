"""The same training where there is no PyTorch: numpy, two workers, and dftracer's annotations.

python train_numpy.py DATA [EPOCHS]
"""

import multiprocessing
import os
import random
import sys
import zlib

import numpy as np

from dftracer.python import ai

SIDE, BATCH = 64, 32


@ai.data.item
def load(path):
    with open(path, "rb") as file:
        pixels = np.frombuffer(zlib.decompress(file.read()), dtype=np.uint8)
    return pixels.reshape(SIDE, SIDE, 3).mean(axis=2).ravel() / 255 - 0.5


def load_batch(batch):
    return np.stack([load(path) for path, _ in batch]), np.array([label for _, label in batch])


@ai.compute.forward
def forward(weights, x):
    hidden = np.maximum(x @ weights[0], 0)
    scores = np.exp(hidden @ weights[1])
    return hidden, scores / scores.sum(axis=1, keepdims=True)


@ai.compute.backward
def backward(weights, x, hidden, guess, labels):
    error = guess.copy()
    error[np.arange(len(labels)), labels] -= 1
    back = (error @ weights[1].T) * (hidden > 0)
    return x.T @ back / len(x), hidden.T @ error / len(x)


@ai.checkpoint.capture
def save(weights):
    np.savez("checkpoint.npz", *weights)


def main():
    root = sys.argv[1]
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    kinds = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    samples = [
        (os.path.join(root, kind, name), label)
        for label, kind in enumerate(kinds)
        for name in sorted(os.listdir(os.path.join(root, kind)))
    ]
    chance, numbers = random.Random(0), np.random.default_rng(0)
    weights = [
        numbers.normal(size=(SIDE * SIDE, 256)) / SIDE,
        numbers.normal(size=(256, len(kinds))) / 16,
    ]
    with multiprocessing.Pool(2) as workers:
        for epoch in ai.pipeline.epoch.iter(range(epochs)):
            chance.shuffle(samples)
            batches = [samples[at : at + BATCH] for at in range(0, len(samples), BATCH)]
            right = 0
            for step, (x, labels) in enumerate(
                ai.dataloader.fetch.iter(workers.imap(load_batch, batches))
            ):
                ai.update(epoch=epoch, step=step)
                hidden, guess = forward(weights, x)
                right += int((guess.argmax(axis=1) == labels).sum())
                for weight, slope in zip(weights, backward(weights, x, hidden, guess, labels)):
                    weight -= 0.2 * slope
            save(weights)
            print(f"epoch {epoch}: {100 * right / len(samples):.0f} % right")


if __name__ == "__main__":
    main()
