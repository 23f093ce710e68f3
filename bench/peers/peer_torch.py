# SPDX-License-Identifier: MIT
"""PyTorch alone, eager or compiled: causal linear attention in its chunked form, as batched
products of matrices, and in its recurrent form; the softmax of scaled_dot_product_attention().

Per chunk, S the sum of k_j v_j^T over the chunks before, with a value of 1 beside v for the
denominator:   y = tril(q k^T) v + q S."""
import torch
import torch.nn.functional as F

import torch_parts as parts

CHUNK = 128
EPS = 1e-6


def phi(x):
    return F.elu(x) + 1


def causal_linear(q, k, v):
    """(B, H, N, D)"""
    length, width = q.shape[2], v.shape[3]
    fill = -length % CHUNK
    q, k, v = phi(q), phi(k), F.pad(v, (0, 1), value=1.0)
    q, k, v = (F.pad(x, (0, 0, 0, fill)).unflatten(2, (-1, CHUNK)) for x in (q, k, v))
    before = F.pad((k.mT @ v).cumsum(2)[:, :, :-1], (0, 0, 0, 0, 1, 0))
    y = ((q @ k.mT).tril() @ v + q @ before).flatten(2, 3)[:, :, :length]
    return y[..., :width] / (y[..., width:] + EPS)


def linear(q, k, v):
    q, k = phi(q), phi(k)
    return q @ (k.mT @ v) / (q @ k.sum(2).unsqueeze(-1) + EPS)


def causal_softmax(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


ATTENTIONS = {("linear", True): causal_linear, ("linear", False): linear,
              ("softmax", True): causal_softmax}


def linear_step(q, k, v, s, z):
    """(B, H, D); s (B, H, D, M) and z (B, H, D), in f32, are updated in place."""
    q, k, v = phi(q).float(), phi(k).float(), v.float()
    s += k.unsqueeze(-1) * v.unsqueeze(-2)
    z += k
    return (q.unsqueeze(-2) @ s).squeeze(-2) / ((q * z).sum(-1, keepdim=True) + EPS)


class Layer(torch.nn.Module):
    """Queries, keys and values are one product."""

    def __init__(self, heads, width, feed):
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.linear1 = torch.nn.Linear(width, feed)
        self.linear2 = torch.nn.Linear(feed, width)
        self.norm1 = torch.nn.LayerNorm(width)
        self.norm2 = torch.nn.LayerNorm(width)

    def forward(self, x, state=None):
        if state is None:
            q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            y = causal_linear(q, k, v).transpose(1, 2).flatten(2)
        else:
            q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(1)
            y = linear_step(q, k, v, *state).flatten(1).to(x.dtype)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.linear2(F.relu(self.linear1(x))))


class Encoder(torch.nn.Module):
    def __init__(self, heads, layers, width, feed):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(heads, width, feed) for _ in range(layers)])
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x, states=None):
        for layer, state in zip(self.layers, states or [None] * len(self.layers)):
            x = layer(x, state)
        return self.norm(x) if states is None else (self.norm(x), states)


# ---- The authors' names ----------------------------------------------------------------------

PARTS = ("query", "key", "value")


def taken(weights):
    """Weights by the names of the modules above."""
    found = {}
    for name, value in weights.items():
        if ".attention.key_" in name or ".attention.value_" in name:
            continue
        if ".attention.query_" in name:
            value = torch.cat([weights[name.replace("query", part)] for part in PARTS])
        name = name.replace("attention.query_projection", "qkv")
        found[name.replace("attention.out_projection", "out")] = value
    return found


def tensors_of(model):
    found = {}
    for name, value in model.state_dict().items():
        name = name.replace(".out.", ".attention.out_projection.")
        if ".qkv." not in name:
            found[name] = value.clone().numpy()
            continue
        for part, piece in zip(PARTS, value.chunk(3)):
            found[name.replace("qkv", f"attention.{part}_projection")] = piece.clone().numpy()
    return found


def model_of(weights, heads, length):
    model = parts.Image(Encoder(heads, *parts.shape_of(weights)), weights, length)
    model.load_state_dict(taken(parts.tensors(weights)))
    return model


# ---- Workloads -------------------------------------------------------------------------------


def maybe(compiled, function):
    return torch.compile(function, fullgraph=True, dynamic=False) if compiled else function


def autocast(precision, function):
    """With bf16, products of matrices are in bf16; weights, sums and norms stay in f32."""
    def run(*arrays):
        with torch.autocast("cpu", torch.bfloat16):
            return function(*arrays)
    return run if precision == "bf16" else function


def narrowed(model, precision):
    """The model with weights in bf16, or in int8 with activations quantized as they come."""
    if precision == "bf16":
        return model.to(torch.bfloat16)
    if precision == "int8":
        from torch.ao.quantization import quantize_dynamic
        return quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    return model


def train(weights, given, sizes, threads, precision, compiled=False):
    parts.use_threads(threads)
    model = model_of(weights, sizes["heads"], sizes["length"])
    loss = autocast(precision, maybe(compiled, parts.cross_entropy(model)))
    return parts.train(model, loss, given, tensors_of)


def generate(weights, given, sizes, threads, precision, compiled=False):
    parts.use_threads(threads)
    heads, length = sizes["heads"], max(sizes["steps"], len(given["forced"]))
    model = narrowed(model_of(weights, heads, length).eval(), precision)
    layers, width, _ = parts.shape_of(weights)
    shape = (sizes["batch"], heads, width // heads)

    def start_state():
        return [(torch.zeros(*shape, shape[-1]), torch.zeros(shape)) for _ in range(layers)]

    return parts.generate(model, maybe(compiled, model.step), start_state, given, sizes)


def attention(weights, given, sizes, threads, precision, compiled=False):
    parts.use_threads(threads)
    forward = ATTENTIONS[sizes["attention"], sizes["causal"]]
    return parts.attention(maybe(compiled, forward), given)
