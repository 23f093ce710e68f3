#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch computes for a bidirectional LSTM over sequences of several lengths: writes
lstm_torch.h beside itself.

Inputs and weights are floats; results are computed in double and written with the digits of a
float."""
import pathlib

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from c_array import c_array, floats

B, N, IN, H = 3, 7, 5, 4
LENGTHS = [7, 3, 6]
KINDS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def array(name, tensor):
    return c_array("float", name, floats(tensor.flatten().tolist()))


torch.manual_seed(1)
lstm = torch.nn.LSTM(IN, H, batch_first=True, bidirectional=True).double()
with torch.no_grad():
    for p in lstm.parameters():
        p.copy_((2.0 * p).float().double())
x = torch.randn(B, N, IN).double().requires_grad_()
dy = torch.randn(B, N, 2 * H).double()
packed = pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
y, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=N)
(y * dy).sum().backward()
text = "/* SPDX-License-Identifier: MIT */\n/* lstm_torch.h - made by lstm.py. */\n"
text += f"enum {{ TORCH_B = {B}, TORCH_N = {N}, TORCH_IN = {IN}, TORCH_H = {H} }};\n"
text += "static const size_t torch_lengths[] = {" + ", ".join(map(str, LENGTHS)) + "};\n"
text += array("torch_x", x.detach()) + array("torch_dy", dy) + array("torch_y", y.detach())
text += array("torch_dx", x.grad)
# Both directions behind each other, in the order of struct tn_lstm_weights.
for what, of in (("weights", lambda p: p.detach()), ("dweights", lambda p: p.grad)):
    all_of = [of(getattr(lstm, kind + way)).flatten() for way in ("", "_reverse")
              for kind in KINDS]
    text += array(f"torch_{what}", torch.cat(all_of))
pathlib.Path(__file__).with_name("lstm_torch.h").write_text(text)
