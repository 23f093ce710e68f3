# SPDX-License-Identifier: MIT
# %% [markdown]
# # Transformers are RNNs, in Python
# Cells for an editor or Jupyter that knows `# %%`; `python linear_attention.py` runs them all.
# Arrays are (B, H, N, D): batch, heads, positions, width.

# %%
import time

import numpy as np

import tarn

rng = np.random.default_rng(0)
print("tarn", tarn.__version__, "on", tarn.cpus()[0])
print("attentions:", ", ".join(tarn.attention_kinds()))
print("feature maps:", ", ".join(tarn.feature_maps()))


def random(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


# %% [markdown]
# ## Linear in the length
# Four times the positions cost linear attention four times as much, and softmax sixteen times.

# %%
for N in (512, 2048):
    q, k, v = random(1, 4, N, 32), random(1, 4, N, 32), random(1, 4, N, 32)
    for kind in ("linear", "softmax"):
        tarn.attention(q, k, v, kind)
        start = time.perf_counter()
        tarn.attention(q, k, v, kind)
        print(f"{kind:8} N = {N:5}: {1e3 * (time.perf_counter() - start):7.2f} ms")

# %% [markdown]
# ## Gradients
# `attention_vjp` gives the outputs, and a function from their gradient to those of q, k and v.

# %%
y, backward = tarn.attention_vjp(q, k, v)
dq, dk, dv = backward(np.ones_like(y))
print("gradients", dq.shape, dk.shape, dv.shape)

# %% [markdown]
# ## The same layer as a recurrent network
# One position at a time, from a state whose size does not depend on how many there were.

# %%
state = tarn.AttentionState(batch=1, heads=4, query_width=32)
steps = np.stack([state.step(q[:, :, i], k[:, :, i], v[:, :, i]) for i in range(100)], 2)
print("largest difference from the parallel form:", np.abs(steps - y[:, :, :100]).max())
print("state:", len(state.to_bytes()), "bytes")

# %% [markdown]
# ## Models
# `tarn.Model.load("folder of tarn train")` in earnest; this one has learned nothing.

# %%
model = tarn.Model.create("tiny", task="text")
print(model)
print("all positions at once:", model.forward([[72, 105, 33]]).shape)

stream = model.state()
first = stream.generate("Hello", 10, temperature=0.8, seed=7)
snapshot = stream.to_bytes()  # keep it anywhere
rest = stream.generate(n=10, temperature=0.8, seed=7)

again = model.state()
again.load_bytes(snapshot)
assert np.array_equal(again.generate(n=10, temperature=0.8, seed=7), rest)
print("goes on from", len(snapshot), "bytes as if it had never stopped")

# %% [markdown]
# ## In a torch model
# Modules take (N, L, H, E), as those of fast_transformers do.

# %%
try:
    import torch
except ImportError:
    torch = None
    print("no torch: the last cell is left out")

if torch is not None:
    import tarn.torch as tt

    class Block(torch.nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.qkv = torch.nn.Linear(width, 3 * width)
            self.attention = tt.CausalLinearAttention(width // heads)

        def forward(self, x):
            n, length, width = x.shape
            q, k, v = self.qkv(x).view(n, length, 3, self.heads, -1).unbind(2)  # no copies
            return x + self.attention(q, k, v).reshape(n, length, width)

    torch.manual_seed(0)
    block = Block(16, 2)
    optimizer = torch.optim.Adam(block.parameters(), 1e-2)
    x = torch.randn(2, 20, 16)
    target = x.cumsum(1) / torch.arange(1, 21).view(1, -1, 1)
    for update in range(60):
        loss = (block(x) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 20 == 0:
            print(f"update {update}: loss {loss.item():.4f}")
