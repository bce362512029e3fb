"""A Lightning run on the processor: two epochs, validation, a checkpoint."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dftracer.python.torch.lightning import DFTracerCallback


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, _index):
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, _index):
        self(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def data(count):
    return DataLoader(TensorDataset(torch.randn(count, 4), torch.randint(0, 2, (count,))), 4)


lightning.seed_everything(0)
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=0,
    accumulate_grad_batches=2,
    default_root_dir=".",
    callbacks=[DFTracerCallback()],
)
trainer.fit(Model(), data(16), data(4))
