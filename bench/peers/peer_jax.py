# SPDX-License-Identifier: MIT
"""JAX, compiled as a whole: an update is one function, a generation one lax.scan(). Linear
attention is in the chunked form of peer_torch.py; softmax is jax.nn.dot_product_attention().

The number of threads is that of the processors the worker may use."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from subjects import Made
from workloads import CHECK_RATE, CLIP, RATE

CHUNK = 128
EPS = 1e-6


def phi(x):
    return jax.nn.elu(x) + 1


def padded(x, *ends, value=0.0):
    """The last len(ends) dimensions, each by (before, behind)."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - len(ends)) + list(ends), constant_values=value)


def causal_linear(q, k, v):
    """(B, H, N, D)"""
    B, H, N, width = v.shape
    fill = -N % CHUNK
    q, k, v = phi(q), phi(k), padded(v, (0, 1), value=1.0)
    q, k, v = (padded(x, (0, fill), (0, 0)).reshape(B, H, -1, CHUNK, x.shape[-1])
               for x in (q, k, v))
    sums = jnp.einsum("bhcid,bhcim->bhcdm", k, v)
    before = padded(jnp.cumsum(sums, 2)[:, :, :-1], (1, 0), (0, 0), (0, 0))
    seen = jnp.tril(jnp.einsum("bhcid,bhcjd->bhcij", q, k))
    y = seen @ v + q @ before
    y = y.reshape(B, H, -1, width + 1)[:, :, :N]
    return y[..., :width] / (y[..., width:] + EPS)


def linear(q, k, v):
    q, k = phi(q), phi(k)
    return q @ (k.mT @ v) / (q @ k.sum(2)[..., None] + EPS)


def causal_softmax(q, k, v):
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    return jax.nn.dot_product_attention(q, k, v, is_causal=True).swapaxes(1, 2)


ATTENTIONS = {("linear", True): causal_linear, ("linear", False): linear,
              ("softmax", True): causal_softmax}


def linear_step(q, k, v, state):
    """(B, H, D)"""
    q, k = phi(q), phi(k)
    s, z = state[0] + k[..., :, None] * v[..., None, :], state[1] + k
    y = jnp.einsum("bhd,bhdm->bhm", q, s) / ((q * z).sum(-1, keepdims=True) + EPS)
    return y, (s, z)


# ---- The model: weights are a tree with the authors' names -----------------------------------

PROJECTIONS = ("query", "key", "value")


def tree_of(weights):
    """Queries, keys and values are one product; matrices are (in, out)."""
    weights = dict(weights)
    for name in [name for name in weights if "query_projection" in name]:
        parts = [weights.pop(name.replace("query", part)) for part in PROJECTIONS]
        weights[name.replace("attention.query_projection", "qkv")] = np.concatenate(parts)
    return {name: jnp.asarray(value.T if value.ndim == 2 and "embedding" not in name else value)
            for name, value in weights.items()}


def tensors_of(tree):
    found = {}
    for name, value in tree.items():
        value = np.asarray(value)
        value = value.T if value.ndim == 2 and "embedding" not in name else value
        if ".qkv." not in name:
            found[name] = value
            continue
        for part, piece in zip(PROJECTIONS, np.split(value, 3)):
            found[name.replace("qkv", f"attention.{part}_projection")] = piece
    return found


def dense(tree, name, x):
    return x @ tree[name + ".weight"] + tree[name + ".bias"]


def norm(tree, name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    return x * tree[name + ".weight"] + tree[name + ".bias"]


def layers_of(tree):
    return len([name for name in tree if name.endswith("linear1.weight")])


def width_of(tree):
    return tree["predictor.weight"].shape[0]


def sinusoid(length, width):
    angles = np.arange(length)[:, None] * np.exp(np.arange(0, width, 2) * -np.log(1e4) / width)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, width).astype("f")


def layer(tree, name, x, heads, attend):
    """attend: from q, k, v (..., H, D) to (..., H, D)."""
    qkv = dense(tree, name + "qkv", x).reshape(*x.shape[:-1], 3, heads, -1)
    y = attend(*(qkv[..., i, :, :] for i in range(3))).reshape(x.shape)
    x = norm(tree, name + "norm1", x + dense(tree, name + "attention.out_projection", y))
    y = dense(tree, name + "linear2", jax.nn.relu(dense(tree, name + "linear1", x)))
    return norm(tree, name + "norm2", x + y)


def whole(q, k, v):
    return causal_linear(*(x.swapaxes(1, 2) for x in (q, k, v))).swapaxes(1, 2)


def ends(tree, x):
    return dense(tree, "predictor", norm(tree, "transformer.norm", x))


def rows_of(tree, symbols, places):
    rows = tree["value_embedding.weight"][symbols]
    return jnp.concatenate([rows, jnp.broadcast_to(places, rows.shape)], -1)


def forward(tree, symbols, heads):
    x = rows_of(tree, symbols, sinusoid(symbols.shape[1], width_of(tree) // 2))
    for i in range(layers_of(tree)):
        x = layer(tree, f"transformer.layers.{i}.", x, heads, whole)
    return ends(tree, x)


def step(tree, state, symbols, place):
    x, after = rows_of(tree, symbols, place), []
    for i in range(layers_of(tree)):
        def attend(q, k, v):
            y, new = linear_step(q, k, v, state[i])
            after.append(new)
            return y
        x = layer(tree, f"transformer.layers.{i}.", x, state[0][0].shape[1], attend)
    return ends(tree, x), after


# ---- Workloads -------------------------------------------------------------------------------


def train(weights, given, sizes, threads, precision):
    inputs, targets = jnp.asarray(given["inputs"]), jnp.asarray(given["targets"])
    optimizer = optax.chain(optax.clip_by_global_norm(CLIP), optax.scale_by_radam())

    def loss(tree):
        scores = forward(tree, inputs, sizes["heads"])
        return optax.softmax_cross_entropy_with_integer_labels(scores, targets).mean()

    def update(tree, moments, rate):
        value, gradients = jax.value_and_grad(loss)(tree)
        steps, moments = optimizer.update(gradients, moments, tree)
        tree = jax.tree.map(lambda weight, step: weight - rate * step, tree, steps)
        return tree, moments, value

    compiled = jax.jit(update, donate_argnums=(0, 1))
    tree = tree_of(weights)
    held = [tree, optimizer.init(tree)]

    def run(rate=RATE):
        held[0], held[1], value = compiled(*held, rate)
        jax.block_until_ready(held)
        return float(value)

    def answer():
        value = run(CHECK_RATE)
        return {"loss": np.array(value), **{name: after - weights[name] for name, after
                                            in tensors_of(held[0]).items()}}

    return Made(answer, run)


def generate(weights, given, sizes, threads, precision):
    tree, batch, heads = tree_of(weights), sizes["batch"], sizes["heads"]
    steps, width = max(sizes["steps"], len(given["forced"])), width_of(tree) // heads
    places = sinusoid(steps, width_of(tree) // 2)

    def start_state():
        return [(jnp.zeros((batch, heads, width, width)), jnp.zeros((batch, heads, width)))
                for _ in range(layers_of(tree))]

    @jax.jit
    def draw(tree, start):
        def one(carried, place):
            outputs, state = step(tree, carried[0], carried[1], place)
            symbols = outputs.argmax(-1)
            return (state, symbols), symbols
        first = (start_state(), start)
        return jax.lax.scan(one, first, places[:sizes["steps"]])[1].T

    @jax.jit
    def feed(tree, forced):
        def one(state, fed):
            outputs, state = step(tree, state, *fed)
            return state, outputs
        return jax.lax.scan(one, start_state(), (forced, places[:len(forced)]))[1]

    def run():
        return np.asarray(draw(tree, given["start"]))

    return Made(lambda: {"outputs": np.asarray(feed(tree, given["forced"])), "symbols": run()},
                run)


def attention(weights, given, sizes, threads, precision):
    function = ATTENTIONS[sizes["attention"], sizes["causal"]]

    @jax.jit
    def both(q, k, v, dy):
        y, backward = jax.vjp(function, q, k, v)
        return (y, *backward(dy))

    arrays = [jnp.asarray(given[name]) for name in ("q", "k", "v", "dy")]

    def run():
        return jax.block_until_ready(both(*arrays))

    return Made(lambda: dict(zip(("y", "dq", "dk", "dv"), map(np.asarray, run()))), run)
