# SPDX-License-Identifier: MIT
"""Attention as the paper defines it, in plain torch and f64: what tarn is compared with."""
import torch

PHI = {"elu": lambda x: torch.nn.functional.elu(x) + 1, "relu": torch.relu}


def weights(similarity, causal, lengths):
    """Similarities (B, H, N, Nk) with those that are not seen as 0."""
    keys = torch.arange(similarity.shape[-1])
    if causal:
        similarity = similarity.tril()
    if lengths is not None:
        seen = keys < torch.as_tensor(lengths).view(-1, 1, 1, 1)
        similarity = similarity * seen
    return similarity


def linear(q, k, v, causal, phi="elu", lengths=None, eps=1e-6):
    """(4), (8); arrays (B, H, N, D)."""
    w = weights(PHI[phi](q) @ PHI[phi](k).transpose(-1, -2), causal, lengths)
    return w @ v / (w.sum(-1, keepdim=True) + eps)


def softmax(q, k, v, causal, scale=None, lengths=None):
    """(2)."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    w = weights(torch.exp(scale * q @ k.transpose(-1, -2)), causal, lengths)
    return w @ v / w.sum(-1, keepdim=True)


def dot_product(q, k, v):
    return (q @ k.transpose(-1, -2)).tril() @ v
