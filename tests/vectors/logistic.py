#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch computes for mixtures of logistics over 256 values: writes logistic_torch.h beside
itself.

Inputs are floats; results are computed in double, by log-sigmoids that do not cancel, and written
with the digits of a float, what is below the least normal one as 0. Where probabilities are not small the plain mixture is asked, too."""
import itertools
import pathlib

import torch
import torch.nn.functional as F

from c_array import c_array, floats

VALUES = 256


def edges(targets):
    below = (2.0 * targets.double() - VALUES) / (VALUES - 1)
    return below.unsqueeze(-1), below.unsqueeze(-1) + 2.0 / (VALUES - 1)


def logistic_parts(x):
    logits, means, scales = x.chunk(3, dim=-1)
    return logits, means, scales.clamp(min=-7.0)


# log(1 - exp(-d)), d > 0.
def log1mexp(d):
    small = d < 0.5
    near, far = torch.where(small, d, 0.5), torch.where(small, 0.5, d)
    return torch.where(small, torch.log(-torch.expm1(-near)), torch.log1p(-torch.exp(-far)))


def losses(x, targets):
    logits, means, scales = logistic_parts(x)
    lower, upper = edges(targets)
    t = targets.unsqueeze(-1)
    a, b = (upper - means) / scales.exp(), (lower - means) / scales.exp()
    d = 2.0 / (VALUES - 1) / scales.exp()
    inner = F.logsigmoid(a) + F.logsigmoid(-b) + log1mexp(d)
    log_p = torch.where(t == 0, F.logsigmoid(a),
                        torch.where(t == VALUES - 1, F.logsigmoid(-b), inner))
    return -torch.logsumexp(F.log_softmax(logits, -1) + log_p, -1)


# As the formula is written.
def plain(x, targets):
    logits, means, scales = logistic_parts(x)
    lower, upper = edges(targets)
    t = targets.unsqueeze(-1)
    above = torch.where(t == VALUES - 1, 1.0, torch.sigmoid((upper - means) / scales.exp()))
    below = torch.where(t == 0, 0.0, torch.sigmoid((lower - means) / scales.exp()))
    return (F.softmax(logits, -1) * (above - below)).sum(-1)


def results(name, x, targets):
    x = x.float().double().requires_grad_()
    loss = losses(x, targets)
    loss.sum().backward()
    with torch.no_grad():
        p = plain(x, targets)
        usual = p > 1e-6
        assert usual.any()
        assert torch.allclose(p[usual], torch.exp(-loss)[usual], rtol=1e-8, atol=0.0)
        everything = torch.arange(VALUES)
        for row in x[:8]:
            total = torch.exp(-losses(row.expand(VALUES, -1), everything)).sum()
            assert abs(total - 1.0) < 1e-12
    assert torch.isfinite(loss).all() and torch.isfinite(x.grad).all()
    return {f"{name}_x": x.detach(), f"{name}_targets": targets, f"{name}_loss": loss.detach(),
            f"{name}_dx": x.grad}


# Ten logistics, as the authors': most rows like those of a trained model.
def usual():
    rows = 16
    targets = torch.randint(0, VALUES, (rows,))
    targets[:4] = torch.tensor([0, VALUES - 1, 1, VALUES - 2])
    x = torch.cat((torch.randn(rows, 10), 0.7 * torch.randn(rows, 10),
                   -3.5 + 2.0 * torch.randn(rows, 10)), -1)
    return results("usual", x, targets)


# One logistic, anywhere and of any width. 1e4 (the values end at 1) is 1.1e7 of the least scales
# away; the inverse of the greatest is less than any normal float.
def extreme():
    rows = list(itertools.product((-1e4, -1.0, -0.5, 0.003, 1.0, 1e4),
                                  (-20.0, -7.0, -5.0, -2.0, 0.0, 20.0, 90.0),
                                  (0, 1, 63, 128, 254, 255)))
    x = torch.tensor([(0.5, mean, scale) for mean, scale, _ in rows])
    return results("extreme", x, torch.tensor([target for _, _, target in rows]))


def array(name, tensor):
    values = tensor.flatten().tolist()
    if name.endswith("_targets"):
        return c_array("int32_t", name, [str(int(v)) for v in values])
    return c_array("float", name, floats(values))


torch.manual_seed(1)
text = "/* SPDX-License-Identifier: MIT */\n/* logistic_torch.h - made by logistic.py. */\n"
for tensors in (usual(), extreme()):
    for name, tensor in tensors.items():
        text += array(name, tensor)
pathlib.Path(__file__).with_name("logistic_torch.h").write_text(text)
