# SPDX-License-Identifier: MIT
"""NumPy: values and gradients are those of the definitions, however the arrays lie."""
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import tarn

with np.load(Path(__file__).with_name("vectors.npz")) as _file:
    VECTORS = {name: _file[name] for name in _file.files}
CASES = sorted({name.split("/")[0] for name in VECTORS})


def case(name):
    found = {key.split("/")[1]: value for key, value in VECTORS.items()
             if key.split("/")[0] == name}
    kind, feature_map, sort = name.split()
    options = dict(kind=kind, feature_map=None if feature_map == "-" else feature_map,
                   causal=sort == "causal", lengths=found.get("lengths"))
    return found, options


def close(found, wanted):
    assert found.dtype == np.float32 and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_definition(name):
    a, options = case(name)
    if name.startswith("dot"):
        y = tarn.causal_dot_product(a["q"], a["k"], a["v"])
        gradients = tarn.causal_dot_product_backward(a["dy"], a["q"], a["k"], a["v"])
    else:
        y = tarn.attention(a["q"], a["k"], a["v"], **options)
        gradients = tarn.attention_backward(a["dy"], a["q"], a["k"], a["v"], **options)
    close(y, a["y"])
    for found, key in zip(gradients, ("dq", "dk", "dv")):
        close(found, a[key])


def views(a):
    """The same numbers, lying in memory otherwise."""
    yield "transposed", np.ascontiguousarray(a.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    yield "within another", np.concatenate([a, a, a], -1)[..., a.shape[-1]:2 * a.shape[-1]]
    yield "backwards", np.ascontiguousarray(a[:, :, ::-1])[:, :, ::-1]
    yield "last not contiguous", np.asfortranarray(a)
    yield "every other", np.repeat(a, 2, -1)[..., ::2]
    yield "f64", a.astype(np.float64)
    yield "other endianness", a.astype(a.dtype.newbyteorder())
    yield "read-only", np.frombuffer(a.tobytes(), np.float32).reshape(a.shape)
    raw = np.zeros(a.nbytes + 1, np.uint8)[1:]
    raw[:] = np.frombuffer(a.tobytes(), np.uint8)
    yield "misaligned", raw.view(np.float32).reshape(a.shape)
    yield "a list", a.tolist()


def test_arrays_may_lie_in_memory_as_they_like():
    a, options = case("linear elu causal")
    y = tarn.attention(a["q"], a["k"], a["v"], **options)
    dq, dk, dv = tarn.attention_backward(a["dy"], a["q"], a["k"], a["v"], **options)
    for key in ("q", "k", "v", "dy"):
        for name, view in views(a[key]):
            other = dict(a, **{key: view})
            q, k, v = other["q"], other["k"], other["v"]
            assert np.array_equal(tarn.attention(q, k, v, **options), y), (key, name)
            found = tarn.attention_backward(other["dy"], q, k, v, **options)
            for one, wanted in zip(found, (dq, dk, dv)):
                assert np.array_equal(one, wanted), (key, name)


def test_broadcast_arrays_are_read_by_their_strides():
    q = random(1, 1, 6, 4)
    wide = np.broadcast_to(q, (3, 2, 6, 4))
    assert np.array_equal(tarn.attention(wide, wide, wide),
                          np.broadcast_to(tarn.attention(q, q, q), wide.shape))


def test_one_forward_serves_many_gradients():
    q, k, v, dy = (random(2, 3, 9, 4, seed=i) for i in range(4))
    y, backward = tarn.attention_vjp(q, k, v)
    assert np.array_equal(y, tarn.attention(q, k, v))
    wanted = tarn.attention_backward(dy, q, k, v)
    for _ in range(2):
        for found, one in zip(backward(dy), wanted):
            assert np.array_equal(found, one)
    for found, one in zip(backward(2 * dy), wanted):
        np.testing.assert_allclose(found, 2 * one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", sorted(tarn.attention_kinds()))
def test_every_kind_has_values_and_gradients(kind):
    q, k, v, dy = (random(1, 2, 32, 4, seed=i) for i in range(4))
    keys = None if kind == "lsh" else k
    y = tarn.attention(q, keys, v, kind)
    dq, dk, dv = tarn.attention_backward(dy, q, keys, v, kind)
    assert y.shape == v.shape and dq.shape == q.shape and dv.shape == v.shape
    assert (dk is None) == (kind == "lsh")
    # Along a line, the loss has the slope that the gradient says.
    step = 1e-2 * random(1, 2, 32, 4, seed=9)
    slope = np.sum(dy * (tarn.attention(q, keys, v + step, kind)
                         - tarn.attention(q, keys, v - step, kind)), dtype=np.float64) / 2
    assert abs(slope - np.sum(dv * step, dtype=np.float64)) < 1e-4


@pytest.mark.parametrize("feature_map", sorted(tarn.feature_maps()))
def test_every_feature_map_can_be_named(feature_map):
    q, k, v = (np.abs(random(1, 2, 8, 4, seed=i)) for i in range(3))
    assert np.isfinite(tarn.attention(q, k, v, feature_map=feature_map, seed=3)).all()


def test_threads_change_no_bit():
    q, k, v = (random(2, 4, 300, 16, seed=i) for i in range(3))
    assert np.array_equal(tarn.attention(q, k, v, threads=1), tarn.attention(q, k, v, threads=3))


@pytest.mark.parametrize("kind", ["linear", "softmax"])
def test_steps_are_the_parallel_form(kind):
    q, k, v = (random(2, 3, 20, 4, seed=i) for i in range(3))
    state = tarn.AttentionState(2, 3, 4, kind=kind, longest=0 if kind == "linear" else 20)
    y = tarn.attention(q, k, v, kind)
    for i in range(20):
        if i == 10:
            snapshot, other = state.to_bytes(), state.copy()
        found = state.step(q[:, :, i], k[:, :, i], v[:, :, i])
        np.testing.assert_allclose(found, y[:, :, i], rtol=1e-4, atol=1e-5)
    assert np.array_equal(other.step(q[:, :, 10], k[:, :, 10], v[:, :, 10]),
                          (state.load_bytes(snapshot),
                           state.step(q[:, :, 10], k[:, :, 10], v[:, :, 10]))[1])
    state.reset()
    np.testing.assert_allclose(state.step(q[:, :, 0], k[:, :, 0], v[:, :, 0]), y[:, :, 0],
                               rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["linear", "softmax"])
def test_states_index_pickle_and_copy(kind):
    q, k, v = (random(3, 2, 4, seed=i) for i in range(3))
    state = tarn.AttentionState(3, 2, 4, kind=kind, longest=9)
    state.step(q, k, v)
    others = [copy.deepcopy(state), pickle.loads(pickle.dumps(state)), state.copy()]
    some = {"list": state[[2, 0]], "slice": state[1:], "one": state[-1],
            "mask": state[np.array([True, False, True])]}
    assert len(state) == 3 and len(some["list"]) == 2 and len(some["one"]) == 1
    y = state.step(q, k, v)
    for other in others:
        assert np.array_equal(other.step(q, k, v), y)
    for name, places in dict(list=[2, 0], slice=[1, 2], one=[2], mask=[0, 2]).items():
        assert np.array_equal(some[name].step(q[places], k[places], v[places]), y[places]), name
    for wrong in (3, [0, 5], "x"):
        with pytest.raises(IndexError, match="sequences"):
            state[wrong]
    none = pickle.loads(pickle.dumps(state[:0]))
    assert len(none) == 0 and none.step(q[:0], k[:0], v[:0]).shape == y[:0].shape
    assert none.forward(*(x[:0, :, None] for x in (q, k, v))).shape[0] == 0


# ---- In pieces ------------------------------------------------------------------

KINDS = [("linear", 0), ("softmax", 40), ("kernel", 40)]


def cut(a, *places):
    """Pieces of the positions of arrays (B, H, N, D)."""
    ends = (0,) + places + (a.shape[2],)
    return [a[:, :, first:last] for first, last in zip(ends, ends[1:])]


@pytest.mark.parametrize("kind, longest", KINDS)
def test_pieces_are_steps_to_the_bit(kind, longest):
    q, k, v = (random(2, 3, 20, width, seed=i) for i, width in enumerate((4, 4, 5)))
    steps = tarn.AttentionState(2, 3, 4, 5, kind=kind, longest=longest)
    pieces = tarn.AttentionState(2, 3, 4, 5, kind=kind, longest=longest)
    wanted = np.stack([steps.step(q[:, :, n], k[:, :, n], v[:, :, n]) for n in range(20)], 2)
    found = [pieces.forward(*three) for three in zip(*(cut(x, 1, 8, 8, 19) for x in (q, k, v)))]
    np.testing.assert_array_equal(np.concatenate(found, 2), wanted)
    assert pieces.to_bytes() == steps.to_bytes()
    state, found = None, []
    for three in zip(*(cut(x, 7, 12) for x in (q, k, v))):
        y, state = tarn.attention(*three, kind=kind, state=state, return_state=True,
                                  longest=longest)
        found.append(y)
    np.testing.assert_array_equal(np.concatenate(found, 2), wanted)
    assert state.tobytes() == steps.to_bytes()
    assert np.isfinite(state).all()


@pytest.mark.parametrize("kind, longest", KINDS)
def test_gradients_flow_through_states(kind, longest):
    q, k, v, dy = (random(2, 3, 20, width, seed=i) for i, width in enumerate((4, 4, 5, 5)))
    wanted = tarn.attention_backward(dy, q, k, v, kind=kind)
    state, calls = None, []
    for three in zip(*(cut(x, 7, 12) for x in (q, k, v))):
        (_, state), backward = tarn.attention_vjp(*three, kind=kind, state=state,
                                                  return_state=True, longest=longest)
        calls.append(backward)
    found, dstate = [], None
    for backward, g in zip(calls[::-1], cut(dy, 7, 12)[::-1]):
        dq, dk, dv, dstate = backward(g, dstate)
        found.append((dq, dk, dv))
    for one, pieces in zip(wanted, zip(*found[::-1])):
        np.testing.assert_allclose(np.concatenate(pieces, 2), one, rtol=1e-4, atol=1e-5)


def test_states_that_cannot_be_used_are_refused():
    q = random(2, 3, 6, 4)
    _, state = tarn.attention(q, q, q, return_state=True)
    with pytest.raises(tarn.InvalidArgument, match="state: has shape"):
        tarn.attention(q[:1], q[:1], q[:1], state=state)
    with pytest.raises(tarn.InvalidArgument, match="a state of another"):
        tarn.attention(q, q, q, feature_map="relu", state=state)
    with pytest.raises(tarn.InvalidArgument, match="no recurrent form"):
        tarn.attention(q, q, q, causal=False, return_state=True)
    with pytest.raises(tarn.InvalidArgument, match="no recurrent form"):
        tarn.attention(q, None, q, kind="lsh", return_state=True)
    _, full = tarn.attention(q, q, q, kind="softmax", return_state=True)
    with pytest.raises(tarn.InvalidArgument, match="is full"):
        tarn.attention(q, q, q, kind="softmax", state=full, return_state=True)


# ---- Numbers that are not finite ------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "softmax", "softmax:store=1", "kernel", "lsh"])
@pytest.mark.parametrize("causal", [True, False])
def test_nan_is_never_hidden(kind, causal):
    """A query that is not a number has no output; it is not one that sees nothing, which is 0."""
    q, k, v = (random(1, 1, 70, 4, seed=i) for i in range(3))
    keys = None if kind == "lsh" else k
    wanted = tarn.attention(q, keys, v, kind, causal)
    q[0, 0, 65] = np.nan
    found = tarn.attention(q, keys, v, kind, causal)
    assert np.isnan(found[0, 0, 65]).all()
    if keys is not None:
        others = np.arange(70) != 65
        assert np.array_equal(found[0, 0, others], wanted[0, 0, others])
        dq = tarn.attention_backward(np.ones_like(v), q, keys, v, kind, causal)[0]
        assert np.isnan(dq[0, 0, 65]).all() and np.isfinite(dq[0, 0, others]).all()


def test_nan_is_never_hidden_in_a_step():
    q, k, v = (random(1, 2, 4, seed=i) for i in range(3))
    state = tarn.AttentionState(1, 2, 4, kind="softmax", longest=4)
    state.step(q, k, v)
    assert np.isnan(state.step(np.full_like(q, np.nan), k, v)).all()
