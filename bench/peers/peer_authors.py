# SPDX-License-Identifier: MIT
"""fast_transformers, the library of the paper's authors: its encoders, recurrent encoders and
attentions, with its own kernels."""
import torch
from fast_transformers.attention import (CausalLinearAttention, FullAttention, LinearAttention)
from fast_transformers.builders import RecurrentEncoderBuilder, TransformerEncoderBuilder
from fast_transformers.masking import FullMask, LengthMask, TriangularCausalMask

import torch_parts as parts


def settings(weights, heads):
    layers, width, feed = parts.shape_of(weights)
    return dict(n_layers=layers, n_heads=heads, query_dimensions=width // heads,
                value_dimensions=width // heads, feed_forward_dimensions=feed,
                activation="relu", dropout=0.0, final_normalization=True)


class Causal(torch.nn.Module):
    """An encoder and its mask. Names of parameters are the encoder's."""

    def __init__(self, encoder, length):
        super().__init__()
        self.layers, self.norm = encoder.layers, encoder.norm
        self._forward = encoder.forward
        self._mask = TriangularCausalMask(length)

    def forward(self, x):
        return self._forward(x, attn_mask=self._mask)


def model_of(encoder, weights, length):
    model = parts.Image(encoder, weights, length)
    model.load_state_dict(parts.tensors(weights))
    return model


def tensors_of(model):
    return {name: value.clone().numpy() for name, value in model.state_dict().items()}


def train(weights, given, sizes, threads, precision):
    parts.use_threads(threads)
    builder = TransformerEncoderBuilder.from_kwargs(attention_type="causal-linear",
                                                    **settings(weights, sizes["heads"]))
    model = model_of(Causal(builder.get(), sizes["length"]), weights, sizes["length"])
    return parts.train(model, parts.cross_entropy(model), given, tensors_of)


def generate(weights, given, sizes, threads, precision):
    parts.use_threads(threads)
    builder = RecurrentEncoderBuilder.from_kwargs(attention_type="linear",
                                                  **settings(weights, sizes["heads"]))
    model = model_of(builder.get(), weights, max(sizes["steps"], len(given["forced"]))).eval()
    return parts.generate(model, model.step, lambda: None, given, sizes)


def attention(weights, given, sizes, threads, precision):
    """Its arrays are (N, L, H, E): they are given so, and so are the results."""
    parts.use_threads(threads)
    B, _, N, D = sizes["shape"]
    mask = TriangularCausalMask(N) if sizes["causal"] else FullMask(N)
    lengths = LengthMask(torch.full((B,), N, dtype=torch.long))
    module = (FullAttention(attention_dropout=0.0) if sizes["attention"] == "softmax" else
              CausalLinearAttention(D) if sizes["causal"] else LinearAttention(D))
    turned = {name: array.transpose(0, 2, 1, 3).copy() for name, array in given.items()}
    made = parts.attention(lambda q, k, v: module(q, k, v, mask, lengths, lengths), turned)

    def answer():
        return {name: array.transpose(0, 2, 1, 3) for name, array in made.answer().items()}

    return parts.Made(answer, made.run)
