"""A run of Hugging Face's Trainer on the processor: two epochs, evaluation, checkpoints."""

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from dftracer.python.torch.hf import DFTracerCallback


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x, labels=None):
        logits = self.layer(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def data(count):
    generator = torch.Generator().manual_seed(0)
    return [
        {"x": torch.randn(4, generator=generator), "labels": torch.tensor(i % 2)}
        for i in range(count)
    ]


arguments = TrainingArguments(
    output_dir="out",
    num_train_epochs=2,
    per_device_train_batch_size=4,
    per_device_eval_batch_size=4,
    gradient_accumulation_steps=2,
    eval_strategy="epoch",
    save_strategy="epoch",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
Trainer(
    model=Model(),
    args=arguments,
    train_dataset=data(16),
    eval_dataset=data(4),
    callbacks=[DFTracerCallback()],
).train()
