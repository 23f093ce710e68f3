#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch computes for the layers besides attention: writes layers_torch.h beside itself.

Inputs are floats; results are computed in double and written with the digits of a float."""
import pathlib

import torch
import torch.nn.functional as F

from c_array import c_array, floats


def draw(*shape):
    return torch.randn(*shape).double().requires_grad_()


def array(name, tensor, kind="float"):
    values = tensor.flatten().tolist()
    return c_array(kind, name, floats(values) if kind == "float" else [str(int(v)) for v in values])


def norm():
    x, gain, bias, dy = draw(4, 7), draw(7), draw(7), draw(4, 7)
    y = F.layer_norm(x, (7,), gain, bias, eps=1e-5)
    y.backward(dy.detach())
    return dict(norm_x=x, norm_gain=gain, norm_bias=bias, norm_dy=dy, norm_y=y,
                norm_dx=x.grad, norm_dgain=gain.grad, norm_dbias=bias.grad)


def gelu():
    x = torch.linspace(-6.0, 6.0, 25).float().double().requires_grad_()
    y = F.gelu(x)
    y.sum().backward()
    return dict(gelu_x=x, gelu_y=y, gelu_backward=x.grad)


def categorical():
    x = draw(5, 6)
    targets = torch.tensor([3, 0, 5, 2, 2])
    loss = F.cross_entropy(x, targets, reduction="sum")
    (loss / 5).backward()
    return dict(head_x=x, head_targets=targets, head_loss=loss.reshape(1), head_dx=x.grad)


torch.manual_seed(1)
text = "/* SPDX-License-Identifier: MIT */\n/* layers_torch.h - made by layers.py. */\n"
for tensors in (norm(), gelu(), categorical()):
    for name, tensor in tensors.items():
        text += array(name, tensor.detach(), "int32_t" if name == "head_targets" else "float")
pathlib.Path(__file__).with_name("layers_torch.h").write_text(text)
