# SPDX-License-Identifier: MIT
"""Modules that share their parameters."""
from __future__ import annotations

from torch.nn import Module


def make_mirror(src_module: Module, dst_module: Module) -> None:
    """Makes the parameters of dst_module those of src_module, so that an optimizer of one trains
    both: a recurrent model that follows a parallel one in training."""
    for name, parameter in src_module.named_parameters():
        path, _, last = name.rpartition(".")
        owner = dst_module.get_submodule(path)
        if tuple(getattr(owner, last).shape) != tuple(parameter.shape):
            raise ValueError(f"{name}: has shape {tuple(getattr(owner, last).shape)} in one module "
                             f"and {tuple(parameter.shape)} in the other")
        setattr(owner, last, parameter)
