"""transformers 5.24.0 with Opacus 1.6.0: Trainer makes the noise of Opacus predictable.

The script needs transformers, accelerate and opacus. It takes a few seconds.
"""

import copy
import secrets
import tempfile

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments

NOISE = 1000.0  # standard deviation of the noise on each coordinate; the clipping norm is 1
UNTRAINED = torch.nn.Linear(3, 1)


class Private(Trainer):
    """Train on the loader of Opacus, with the sum of all losses."""

    model_accepts_loss_kwargs = False

    def get_train_dataloader(self):
        """Return the loader of Opacus."""
        return self.loader

    def compute_loss(self, model, inputs, **kwargs):
        """Return the sum of the squared errors."""
        return ((model(inputs["X"]) - inputs["y"]) ** 2).sum()


class Record(TrainerCallback):
    """Keep the noisy sum of the gradients, which the training releases."""

    def on_optimizer_step(self, args, state, control, optimizer=None, **kwargs):
        """Keep the gradients after Opacus added its noise."""
        params = optimizer.optimizer.params
        self.released = torch.cat([param.grad.ravel() for param in params])


def train(examples, *, noise_generator=None, **arguments):
    """Return the noisy sum of one step, after PyTorch got a new secret seed."""
    torch.manual_seed(secrets.randbits(60))
    model = copy.deepcopy(UNTRAINED)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(examples, batch_size=len(examples)),
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        loss_reduction="sum",
        poisson_sampling=False,
        noise_generator=noise_generator,
    )
    arguments = TrainingArguments(
        tempfile.mkdtemp(), max_steps=1, max_grad_norm=0, report_to="none", save_strategy="no",
        disable_tqdm=True, use_cpu=True, remove_unused_columns=False, **arguments,
    )  # fmt: skip
    record = Record()
    trainer = Private(model, arguments, optimizers=(optimizer, None), callbacks=[record])
    trainer.loader = loader
    trainer.train()
    return record.released


if __name__ == "__main__":
    others = [{"X": torch.eye(3)[at], "y": torch.zeros(1)} for at in range(3)]
    user = {"X": torch.tensor([9.0, 0.0, 0.0]), "y": torch.tensor([100.0])}
    absent = {"X": torch.zeros(3), "y": UNTRAINED.bias.detach()}  # a gradient of 0
    for name in ("default", "noise_generator=own"):
        both = []
        for last in (user, absent):
            own = {} if name == "default" else {"noise_generator": torch.Generator()}
            for generator in own.values():
                generator.manual_seed(secrets.randbits(60))
            both.append(train([*others, last], **own))
        print(
            f"{name}: norm of a released sum {both[0].norm():.0f}, "
            f"norm of the difference {(both[0] - both[1]).norm():.4f}"
        )
