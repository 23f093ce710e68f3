#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch computes for connectionist temporal classification: writes ctc_torch.h beside
itself.

Outputs are floats; losses and gradients of them are computed in double and written with the digits
of a float. Frames beyond a sequence's length have gradient 0."""
import pathlib

import torch
import torch.nn.functional as F

from c_array import c_array, floats


def results(name, x, frames, labels):
    x = x.float().double().requires_grad_()
    counts = [len(l) for l in labels]
    targets = torch.tensor([s for l in labels for s in l], dtype=torch.long)
    loss = F.ctc_loss(F.log_softmax(x, -1).transpose(0, 1), targets, torch.tensor(frames),
                      torch.tensor(counts), blank=0, reduction="none")
    loss.sum().backward()
    for b, n in enumerate(frames):
        x.grad[b, n:] = 0.0
    assert torch.isfinite(loss).all() and torch.isfinite(x.grad).all()
    return {f"{name}_x": x.detach(), f"{name}_frames": torch.tensor(frames),
            f"{name}_labels": targets, f"{name}_counts": torch.tensor(counts),
            f"{name}_loss": loss.detach(), f"{name}_dx": x.grad}


def usual():
    return results("usual", 2.0 * torch.randn(4, 12, 6), [12, 9, 7, 12],
                   [[1, 2, 2, 3, 5], [4, 4, 4, 4], [], [5]])


def sharp():
    x = torch.randn(2, 30, 5)
    x += 40.0 * F.one_hot(torch.randint(0, 5, (2, 30)), 5)
    return results("sharp", x, [30, 29], [[1, 2, 3, 4, 4, 3, 2, 1], [1] * 15])


def array(name, tensor):
    values = tensor.flatten().tolist()
    if tensor.dtype == torch.long:
        kind = "int32_t" if name.endswith("_labels") else "size_t"
        return c_array(kind, name, map(str, values))
    return c_array("float", name, floats(values))


torch.manual_seed(1)
text = "/* SPDX-License-Identifier: MIT */\n/* ctc_torch.h - made by ctc.py. */\n"
for tensors in (usual(), sharp()):
    for name, tensor in tensors.items():
        text += array(name, tensor)
pathlib.Path(__file__).with_name("ctc_torch.h").write_text(text)
