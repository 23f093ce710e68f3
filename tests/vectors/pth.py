# SPDX-License-Identifier: MIT
"""Writes the files of torch.save() that test_pth.c and test_import.c read, beside this script.

    python3 tests/vectors/pth.py

image.pth and image_old.pth are checkpoints of a model with the names of the paper's authors, in
both formats of torch.save(), with symbols and the outputs for them, which are computed here from
the definition of the paper. encoder.pth is such an encoder alone; views.pth has tensors that are
no plain rows of their storages, and other types of numbers.
"""
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bindings/python/tests"))
from authors import Encoder, Image, shake  # noqa: E402

SIZES = dict(layers=2, width=8, heads=2, feed=12)

torch.manual_seed(1)
model = shake(Image(symbols=7, length=5, mixtures=2, **SIZES))
symbols = torch.tensor([3, 0, 6, 6, 1])
optimizer = torch.optim.Adam(model.predictor.parameters(), lr=0.001)
model(symbols[None]).square().mean().backward()
optimizer.step()
outputs = model(symbols[None])[0].detach()
torch.save({"epoch": 3, "lr": 0.001, "name": "image", "model_state": model.state_dict(),
            "optimizer_state": optimizer.state_dict(), "symbols": symbols, "outputs": outputs},
           os.path.join(HERE, "image.pth"))
old = {"module." + name: value for name, value in model.state_dict().items()}
torch.save({"state_dict": old, "symbols": symbols, "outputs": outputs},
           os.path.join(HERE, "image_old.pth"), _use_new_zipfile_serialization=False)
torch.save(Encoder(**SIZES).state_dict(), os.path.join(HERE, "encoder.pth"))

block = torch.arange(24, dtype=torch.float).view(4, 6)
torch.save({"whole": block, "transposed": block.t(), "slice": block[1:3, 2:5],
            "column": block[:, 1], "one": torch.tensor(7.5), "none": torch.zeros(0, 3),
            "half": block[0].half(), "bf16": block[0].bfloat16(), "double": block[0].double(),
            "long": torch.tensor([-1, 2]), "bool": torch.tensor([True, False]),
            "parameter": torch.nn.Parameter(block[2].clone()),
            "list": [block[3], {"deep": torch.tensor([1.0])}]},
           os.path.join(HERE, "views.pth"))
