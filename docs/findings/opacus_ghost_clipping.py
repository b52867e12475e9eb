"""Opacus 1.6.0: ghost clipping does not clip if losses have shape [n, 1].

The script needs numpy, torch and opacus. The script measures the summed gradient in one step of a
linear regression with one weight. No noise is added (noise_multiplier = 0), so the result shows the
clipping directly.
"""

import warnings

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
CLIP = 1.0


def summed_gradient(x, mode, flat=False, noise_multiplier=0.0):
    """Return the sum that the optimizer gets, for weight 1 and targets 0.

    Each example adds up to CLIP.
    """
    inputs = torch.tensor(x, dtype=torch.float32)[:, None]
    targets = torch.zeros_like(inputs)
    model = torch.nn.Linear(1, 1, bias=False)
    weight = model.weight
    torch.nn.init.ones_(weight)
    parts = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD([weight], lr=1.0),
        data_loader=DataLoader(TensorDataset(inputs, targets), batch_size=len(x)),
        criterion=torch.nn.MSELoss(reduction="sum"),
        noise_multiplier=noise_multiplier,
        max_grad_norm=CLIP,
        poisson_sampling=False,
        loss_reduction="sum",
        grad_sample_mode=mode,
    )
    model, optimizer = parts[:2]
    criterion = parts[2] if mode == "ghost" else torch.nn.MSELoss(reduction="sum")
    optimizer.zero_grad()
    output = model(inputs)
    loss = criterion(output[:, 0], targets[:, 0]) if flat else criterion(output, targets)
    loss.backward()
    optimizer.step()
    return 1.0 - weight.item()


if __name__ == "__main__":
    others = np.full(9, 0.1)
    for name, mode, flat in (
        ("hooks, losses [n, 1]", "hooks", False),
        ("ghost, losses [n]", "ghost", True),
        ("ghost, losses [n, 1]", "ghost", False),
    ):
        far = summed_gradient(np.append(others, 1000.0), mode, flat)
        near = summed_gradient(np.append(others, 0.0), mode, flat)
        print(f"{name:21} with an example at 1000: {far:13,.3f}, at 0 instead: {near:6.3f}")
