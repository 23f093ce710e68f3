# SPDX-License-Identifier: MIT
"""Whatever is wrong is an exception with a sentence, and never a crash."""
import ctypes.util
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tarn

SMALL = dict(task="text", layers=1, heads=2, width=16, feed=32)


@pytest.fixture(scope="module")
def model():
    return tarn.Model.create("tiny", **SMALL)


def ones(*shape):
    return np.ones(shape, np.float32)


Q = ones(2, 3, 5, 4)

WRONG_ARRAYS = [
    (dict(q=ones(2, 3, 5)), r"q: has shape \(2, 3, 5\); it must be \(B, H, N, D\)"),
    (dict(k=ones(2, 3, 5, 3)), r"k: has shape .* = \(2, 3, 5, 4\)"),
    (dict(k=ones(2, 3, 6, 4)), "k: has shape"),
    (dict(v=ones(1, 3, 5, 4)), "v: has shape"),
    (dict(v=ones(2, 3, 4, 4)), r"v: has shape \(2, 3, 4, 4\); it must be .* = \(2, 3, 5, 4\)"),
    (dict(v=ones(2, 3, 4, 4), causal=False), r"v: has shape \(2, 3, 4, 4\)"),
    (dict(v=ones(2, 3, 6, 4)), "v: has shape"),
    (dict(k=None, v=ones(2, 3, 4, 4), kind="lsh"), "keys is 4 and queries is 5"),
    (dict(k=ones(2, 3, 6, 4), v=ones(2, 3, 6, 4)), "keys is 6 and queries is 5; causal"),
    (dict(q=Q.astype(int)), "q: has dtype int64; it must be floating point"),
    (dict(q=Q.astype(complex)), "q: has dtype complex128"),
    (dict(q=Q.astype(bool)), "q: has dtype bool"),
    (dict(v=Q.astype(object)), "v: has dtype object"),
    (dict(v="text"), "v: has dtype <U4"),
    (dict(k=None), "k: has dtype object"),
    (dict(q=ones(0, 3, 5, 4), k=ones(0, 3, 5, 4), v=ones(0, 3, 5, 4)),
     "batch is 0; it must be at least 1"),
    (dict(lengths=[5]), r"lengths: is int64 of shape \(1,\); it must be 2 whole"),
    (dict(lengths=[5, 6]), "lengths: are from 5 to 6; they must be from 0 to 5"),
    (dict(lengths=[-1, 5]), "lengths: are from -1 to 5"),
    (dict(lengths=[1.0, 5.0]), "lengths: is float64"),
    (dict(kind="nope"), "unknown name 'nope'; available: "),
    (dict(kind="linear:nope=1"), "nope"),
    (dict(kind=None), "kind is None"),
    (dict(kind=b"linear"), "kind is bytes; it must be str"),
    (dict(kind="linear\0"), "kind must not contain a NUL"),
    (dict(kind="lsh"), "k must be None: 'lsh' attention uses its queries"),
    (dict(kind="softmax", feature_map="elu"), "feature"),
    (dict(feature_map="nope"), "unknown name 'nope'; available: "),
    (dict(causal=False, longest=100), "longest is 100; it must be 0 without a causal mask"),
    (dict(causal=False, kind="softmax", longest=2), "longest is 2; it must be 0"),
    (dict(causal=False, longest=-1), "longest is -1; it must be from 0"),
    (dict(seed=-1), "seed is -1; it must be from 0 to"),
    (dict(seed=2**64), "seed is "),
    (dict(seed="1"), "seed is str"),
    (dict(threads=-1), "threads is -1"),
    (dict(threads=10**30), "threads is "),
]


@pytest.mark.parametrize("changes, sentence", WRONG_ARRAYS)
def test_wrong_arguments_are_named(changes, sentence):
    with pytest.raises(tarn.Error, match=sentence):
        tarn.attention(**dict(dict(q=Q, k=Q, v=Q), **changes))


def test_wrong_gradients_are_named():
    with pytest.raises(tarn.InvalidArgument, match="dy: has shape"):
        tarn.attention_backward(ones(2, 3, 5, 5), Q, Q, Q)
    with pytest.raises(tarn.InvalidArgument, match="dy: has shape"):
        tarn.causal_dot_product_backward(ones(2, 3, 4, 4), Q, Q, Q)
    with pytest.raises(tarn.InvalidArgument, match="k: has shape"):
        tarn.causal_dot_product(Q, ones(2, 3, 4, 4), Q)
    with pytest.raises(tarn.Error):
        tarn.causal_dot_product(ones(0, 1, 1, 1), ones(0, 1, 1, 1), ones(0, 1, 1, 1))


def test_sizes_beyond_memory_are_refused():
    wide = np.broadcast_to(ones(1, 1, 1, 4), (2**20, 2**20, 2**10, 4))
    with pytest.raises(tarn.Error, match="fit"):
        tarn.attention(wide, wide, wide)
    with pytest.raises(tarn.Error):
        tarn.causal_dot_product(wide, wide, wide)


def test_errors_are_also_the_built_in_kinds(tmp_path):
    (tmp_path / "junk").write_bytes(b"x" * 100)
    for call, kind, built_in, says in (
            (lambda: tarn.attention(Q, Q, ones(1)), tarn.InvalidArgument, ValueError, "v: "),
            (lambda: tarn.attention(Q, Q, Q, "nope"), tarn.UnknownName, LookupError, "'nope'"),
            (lambda: tarn.Model.load(tmp_path / "none"), tarn.FileError, OSError, "none: "),
            (lambda: tarn.Model.load(tmp_path / "junk"), tarn.FormatError, ValueError,
             "junk: not a safetensors, PyTorch or NumPy file")):
        with pytest.raises(kind) as caught:
            call()
        assert isinstance(caught.value, built_in) and isinstance(caught.value, tarn.Error)
        assert caught.value.status == kind.status > 0 and says in str(caught.value)


def test_wrong_paths_and_names_are_refused(model, tmp_path):
    for path in (None, 3, "a\0b", b"a\0b"):
        with pytest.raises(tarn.InvalidArgument, match="path (is|must)"):
            tarn.Model.load(path)
        with pytest.raises(tarn.InvalidArgument, match="path (is|must)"):
            model.save(path)
    with pytest.raises(tarn.FileError):
        model.save(tmp_path / "no" / "folder")
    with pytest.raises(tarn.InvalidArgument, match="best requires the path of a training folder"):
        tarn.Model.load(tmp_path / "no", best=True)
    with pytest.raises(tarn.UnknownName, match="nope"):
        tarn.Model.create("nope")
    with pytest.raises(tarn.Error, match="nope"):
        tarn.Model.create("tiny", nope=1)
    with pytest.raises(tarn.Error, match="heads"):
        tarn.Model.create("tiny", heads=-1)
    with pytest.raises(tarn.InvalidArgument, match="config and preset cannot be used together"):
        tarn.Model.create("small", preset="tiny")
    with pytest.raises(tarn.InvalidArgument, match="causal is str; it must be bool"):
        tarn.Model.create(dict(vars(tarn.Config.preset("tiny")), causal="false"))


def test_wrong_symbols_are_refused(model):
    for symbols, sentence in (
            ([[256]], "256"), ([[-1]], "-1"), ([[2**40]], "symbols of the model"),
            ([1, 2], r"shape \(2,\)"), ([[1.5]], "float64"), ([["a"]], "has dtype <U1"),
            (np.zeros((1, 0), int), "0"), (np.zeros((0, 1), int), "0")):
        with pytest.raises(tarn.Error, match=sentence):
            model.forward(symbols)
        with pytest.raises(tarn.Error):
            model.state().prefill(symbols)
    state = model.state(2)
    with pytest.raises(tarn.InvalidArgument, match="3 streams; this state has 2"):
        state.step([1, 2, 3])
    with pytest.raises(tarn.InvalidArgument, match="2 streams; this state has 3"):
        model.state(3).generate([[1], [2]], 4)
    for prompt in ("", b"", [], [[], []]):
        with pytest.raises(tarn.InvalidArgument, match="prompt is empty"):
            model.generate(prompt, 4)
    assert state.position == 0


def test_wrong_forks_are_refused(model):
    state = model.state(2)
    for streams in ([2], [-3], [], [[0, 1]], ["a"], [0.5], None, [2**70]):
        with pytest.raises(tarn.InvalidArgument, match="streams"):
            state.take(streams)
    for other in (model.state(2), None, 3):
        with pytest.raises(tarn.InvalidArgument, match="other must be a state"):
            state.join(other)
    layer = tarn.AttentionState(2, 1, 4)
    half = layer._plan.state_size // 2
    for index in (None, True, 1.5, "a", (0, 1), np.s_[:, :half], [[0, 1]], 2, [True]):
        for one in (state, layer):
            with pytest.raises(IndexError, match="streams|sequences"):
                one[index]
    with pytest.raises(tarn.OutOfMemory, match="memory for 1000000000000000 streams"):
        model.state(10**15)


def test_wrong_sampling_is_refused(model):
    for wrong in (dict(temperature=-1), dict(temperature=float("nan")), dict(top_p=2),
                  dict(top_k=-1), dict(seed=-1), dict(temperature="hot"), dict(n=0),
                  dict(batch=0), dict(batch=-1), dict(method="nope"), dict(precision="f8")):
        with pytest.raises(tarn.Error):
            model.generate(**dict(dict(prompt=b"a", n=2), **wrong))
    with pytest.raises(tarn.InvalidArgument, match="the 11 symbols of this model are not bytes"):
        tarn.Model.create("tiny", task="copy", symbols=11).generate("a", 2)


def test_what_is_closed_stays_closed(model, tmp_path):
    closed = tarn.Model.create("tiny", **SMALL)
    state = closed.state()
    stream = state.stream(b"a")
    next(stream)
    closed.close()
    closed.close()
    assert closed.closed and repr(closed) == "<tarn.Model, closed>"
    for call in (lambda: closed.forward([[1]]), lambda: closed.state(), lambda: closed.tensors(),
                 lambda: closed.save(tmp_path / "m"), lambda: closed.parameters,
                 lambda: closed.generate(b"a", 1), lambda: state.step([1]),
                 lambda: state.to_bytes(), lambda: state.reset(), lambda: next(stream)):
        with pytest.raises(tarn.ClosedError, match="is closed"):
            call()
    with model.state() as other:
        pass
    with pytest.raises(tarn.ClosedError, match="state is closed"):
        other.step([1])
    with pytest.raises(tarn.InvalidArgument, match="state must be one that state"):
        tarn.Model.create("tiny", **SMALL).step(model.state(), [1])


def test_two_threads_on_one_state_are_told(model):
    state = model.state()
    layer = tarn.AttentionState(1, 1, 4)
    told = []

    def other(call):
        try:
            call()
        except tarn.BusyError as error:
            told.append(str(error))

    for held, call in ((state, lambda: state.step([1])), (state, lambda: state.to_bytes()),
                       (layer, lambda: layer.step(ones(1, 1, 4), ones(1, 1, 4), ones(1, 1, 4)))):
        with held._lock:
            thread = threading.Thread(target=other, args=(call,))
            thread.start()
            thread.join()
    assert len(told) == 3 and "one state per thread" in told[0]
    assert state.position == 0


def test_threads_race_without_harm(model):
    """Whoever comes first works; nothing is lost or counted twice."""
    state, done, busy = model.state(threads=1), [], []

    def work():
        for _ in range(200):
            try:
                state.step([1])
                done.append(1)
            except tarn.BusyError:
                busy.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.position == len(done) and len(done) + len(busy) == 800


def test_a_model_closed_in_use_is_freed_afterwards():
    """close() while another thread computes: that one ends well or is told."""
    for _ in range(10):
        made = tarn.Model.create("tiny", **SMALL)
        wrong = []

        def work():
            try:
                while True:
                    assert made.forward(np.ones((2, 64), int)).shape == (2, 64, 256)
            except tarn.ClosedError:
                pass
            except BaseException as error:
                wrong.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        made.close()
        thread.join()
        assert not wrong


def test_hostile_snapshots_leave_a_state_as_it_was(model):
    state = model.state()
    state.generate(b"abc", 3)
    good = state.to_bytes()
    rng = np.random.default_rng(0)
    for size in [0, 1, 7, 8, 9, 63, 100, len(good) - 1]:
        with pytest.raises(tarn.FormatError):
            state.load_bytes(good[:size])
    for _ in range(300):
        bad = bytearray(good)
        bad[rng.integers(0, 300)] ^= int(rng.integers(1, 256))
        try:
            state.load_bytes(bytes(bad))
            state.step([1])
        except tarn.Error:
            pass
        state.load_bytes(good)
        assert state.to_bytes() == good
    with pytest.raises(tarn.FormatError, match="has 1 streams; expected 2"):
        model.state(2).load_bytes(good)
    with pytest.raises(tarn.FormatError, match="the model"):
        tarn.Model.create("tiny", **dict(SMALL, seed=2)).state().load_bytes(good)
    layer = tarn.AttentionState(1, 1, 4, kind="softmax", longest=4)
    with pytest.raises(tarn.FormatError, match="data has 0 bytes; it must have"):
        layer.load_bytes(b"")
    layer.load_bytes(b"\xff" * len(layer.to_bytes()))
    with pytest.raises(tarn.InvalidArgument, match="a state of another attention"):
        layer.step(ones(1, 1, 4), ones(1, 1, 4), ones(1, 1, 4))


def test_a_state_says_where_it_ends(model):
    with pytest.raises(tarn.InvalidArgument, match="longest"):
        model.state(longest=3).prefill([[1, 2, 3, 4]])
    with pytest.raises(tarn.InvalidArgument, match="longest is 0; it must be the maximum"):
        tarn.AttentionState(1, 1, 4, kind="softmax")
    with pytest.raises(tarn.InvalidArgument, match="no recurrent form"):
        tarn.AttentionState(1, 1, 4, kind="lsh", longest=4)


def import_with(library):
    return subprocess.run([sys.executable, "-c", "import tarn"], text=True, capture_output=True,
                          env=dict(os.environ, TARN_LIBRARY=library))


def test_a_library_that_is_none_is_named(tmp_path):
    (tmp_path / "junk.so").write_bytes(b"junk")
    for library in (str(tmp_path / "none.so"), str(tmp_path / "junk.so"),
                    ctypes.util.find_library("c") or "libc.so.6"):
        done = import_with(library)
        assert done.returncode == 1 and "ImportError: " + library in done.stderr

