# SPDX-License-Identifier: MIT
"""Kinds with inputs besides query, key and value: "gated", which only the library of the tests has
(tests/python.sh). Its sum S_j = a g_j S_{j-1} + k_j v_j^T has a gate g and a learned decay a."""
import numpy as np
import pytest

import tarn

gated = pytest.mark.skipif("gated" not in tarn.attention_kinds(),
                           reason="needs the library with the kinds of the tests")

B, H, N, D, M = 2, 3, 9, 4, 5
SHAPES = dict(q=(B, H, N, D), k=(B, H, N, D), v=(B, H, N, M), gate=(B, H, N), decay=(H,))


def arrays(seed=0):
    random = np.random.default_rng(seed)
    made = {name: random.standard_normal(shape, dtype=np.float32)
            for name, shape in SHAPES.items()}
    for name in ("gate", "decay"):
        made[name] = 1 / (1 + np.exp(-made[name]))
    return made


def definition(q, k, v, gate, decay):
    S, y = np.zeros((B, H, D, M)), np.empty((B, H, N, M))
    for n in range(N):
        S = (decay * gate[:, :, n])[..., None, None] * S + k[:, :, n, :, None] * v[:, :, n, None]
        y[:, :, n] = np.einsum("bhd,bhdm->bhm", q[:, :, n], S)
    return y


def positions_first(a):
    """(B, H, N, D) as (B, N, H, D), and as it is without positions."""
    return np.ascontiguousarray(np.swapaxes(a, 1, 2)) if a.ndim > 1 else a


@gated
def test_inputs_are_those_that_the_kind_declares():
    assert tarn.attention_inputs("gated") == {"query": "BHND", "key": "BHNkD", "value": "BHNkM",
                                              "gate": "BHNk", "decay": "H"}


def test_inputs_of_the_kinds_of_the_library():
    assert list(tarn.attention_inputs("linear:eps=0.1")) == ["query", "key", "value"]
    assert list(tarn.attention_inputs("lsh")) == ["query", "value"]


@gated
def test_values_are_those_of_the_definition():
    a = arrays()
    y = tarn.attention(kind="gated", **a)
    np.testing.assert_allclose(y, definition(**a), rtol=1e-4, atol=1e-5)
    views = dict(a, gate=np.asfortranarray(a["gate"]), decay=np.repeat(a["decay"], 2)[::2])
    assert np.array_equal(tarn.attention(kind="gated", **views), y)


@gated
def test_every_input_has_a_gradient():
    a, random = arrays(), np.random.default_rng(7)
    dy = random.standard_normal((B, H, N, M), dtype=np.float32)
    gradients = dict(zip(SHAPES, tarn.attention_backward(dy, kind="gated", **a)))
    for name, gradient in gradients.items():
        assert gradient.shape == SHAPES[name] and gradient.dtype == np.float32
        step = 1e-4 * random.standard_normal(SHAPES[name])
        wide = {key: value.astype(np.float64) for key, value in a.items()}
        above, below = (definition(**dict(wide, **{name: wide[name] + sign * step}))
                        for sign in (1, -1))
        assert np.sum(gradient * step) == pytest.approx(np.sum(dy * (above - below)) / 2,
                                                        rel=1e-3, abs=1e-7), name


@gated
def test_states_and_steps_take_every_input():
    a = arrays()
    wanted = tarn.attention(kind="gated", **a)
    state, pieces = None, []
    for first, last in ((0, 4), (4, N)):
        piece, state = tarn.attention(
            kind="gated", state=state, return_state=True,
            **{name: x if name == "decay" else x[:, :, first:last] for name, x in a.items()})
        pieces.append(piece)
    steps = tarn.AttentionState(B, H, D, M, kind="gated")  # does not grow: no longest
    found = [steps.step(**{name: x if name == "decay" else x[:, :, n] for name, x in a.items()})
             for n in range(N)]
    assert np.array_equal(np.stack(found, 2), np.concatenate(pieces, 2))
    np.testing.assert_allclose(np.stack(found, 2), wanted, rtol=1e-4, atol=1e-5)
    whole = tarn.AttentionState(B, H, D, M, kind="gated")
    assert np.array_equal(whole.forward(**a), np.stack(found, 2))
    assert whole.to_bytes() == steps.to_bytes() == state.tobytes()


@gated
def test_torch_takes_every_input_and_has_every_gradient():
    torch = pytest.importorskip("torch")
    import tarn.torch as tt
    a = arrays()
    dy = np.random.default_rng(3).standard_normal((B, H, N, M), dtype=np.float32)
    given = [torch.from_numpy(positions_first(x)).requires_grad_() for x in a.values()]
    y = tt.attention(*given[:3], kind="gated", gate=given[3], decay=given[4])
    y.backward(torch.from_numpy(positions_first(dy)))
    assert np.array_equal(y.detach().numpy(), positions_first(tarn.attention(kind="gated", **a)))
    for tensor, wanted in zip(given, tarn.attention_backward(dy, kind="gated", **a)):
        assert np.array_equal(tensor.grad.numpy(), positions_first(wanted))


@gated
def test_missing_and_wrong_inputs_are_refused():
    a = arrays()
    for wrong, sentence in ((dict(gate=None), "gate: has dtype object"),
                            (dict(gate=a["q"]), r"gate: has shape .* it must be \(B, H, Nk\)"),
                            (dict(decay=a["decay"][:2]), r"it must be \(H\) = \(3,\)"),
                            (dict(beta=a["gate"]), "beta is not an input of 'gated' attention")):
        with pytest.raises(tarn.InvalidArgument, match=sentence):
            tarn.attention(kind="gated", **dict(a, **wrong))


def test_inputs_that_a_kind_does_not_take_are_refused():
    q = np.zeros((1, 1, 4, 4), np.float32)
    with pytest.raises(tarn.InvalidArgument,
                       match="gate is not an input of 'linear' attention, which takes query, key"):
        tarn.attention(q, q, q, gate=q)
    with pytest.raises(tarn.InvalidArgument, match="k must be None: 'lsh' attention uses"):
        tarn.attention(q, q, q, "lsh")
