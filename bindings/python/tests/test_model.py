# SPDX-License-Identifier: MIT
"""Models: files, whole sequences, steps, snapshots, symbols that are drawn."""
import copy
import dataclasses
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tarn

SMALL = dict(task="text", layers=2, heads=2, width=16, feed=32)


@pytest.fixture(scope="module")
def model():
    return tarn.Model.create("tiny", **SMALL)


def test_a_model_comes_back_from_its_file(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    for place in (path, str(path), os.fsencode(path), tmp_path):
        with tarn.Model.load(place) as again:
            assert again.fingerprint == model.fingerprint
            assert again.config == model.config


def test_config_and_tensors_are_what_was_asked_for(model):
    assert model.config.attention == "linear" and model.config.width == 16
    assert model.config.causal is True and model.config.symbols == 256
    tensors = model.tensors()
    assert sum(t.size for t in tensors.values()) == model.parameters
    assert tensors["transformer.layers.1.linear1.weight"].shape == (32, 16)
    assert model.outputs == 256 and "linear" in repr(model)


def test_a_model_is_created_from_a_configuration(model):
    again = tarn.Model.create(model.config)
    assert again.config == model.config and again.fingerprint == model.fingerprint
    assert tarn.Model.create(dataclasses.asdict(model.config)).fingerprint == model.fingerprint
    wider = tarn.Model.create(model.config, width=32)
    assert wider.config == dataclasses.replace(model.config, width=32)
    assert tarn.Config.preset("tiny", **SMALL) == model.config
    scalars = tarn.Config.preset("tiny", dropout=np.float32(0.25), causal=np.bool_(False))
    assert scalars == tarn.Config.preset("tiny", dropout=0.25, causal=False)
    spoken = tarn.Config.of_task("image:height=4,width=4,channels=1", "tiny")
    assert spoken.head == "logistic" and spoken.symbols == 256
    with pytest.raises(tarn.InvalidArgument, match="config: .*'symbols'"):
        tarn.Model.create({name: value for name, value in dataclasses.asdict(model.config).items()
                           if name != "symbols"})
    with pytest.raises(tarn.InvalidArgument, match="attention has 200 bytes"):
        tarn.Model.create(dataclasses.replace(model.config, attention="x" * 200))
    with pytest.raises(tarn.InvalidArgument, match="layers is -1"):
        tarn.Model.create(dataclasses.replace(model.config, layers=-1))
    with pytest.raises(tarn.UnknownName, match="setting"):
        tarn.Model.create("tiny", nonsense=1)


def test_models_and_states_are_pickled(model):
    state = model.state(2)
    state.generate("It was", 5, seed=4)
    again_model, again, fork = pickle.loads(pickle.dumps((model, state, state.fork())))
    assert again_model.fingerprint == model.fingerprint and again._engine.owner is again_model
    copied = copy.deepcopy(state)
    expected = state.generate(None, 7, seed=4)
    for other in (again, fork, copied):
        assert np.array_equal(other.generate(None, 7, seed=4), expected)
    assert copied._engine is state._engine
    assert copy.deepcopy(model).fingerprint == model.fingerprint


def test_states_are_indexed(model):
    state = model.state(3)
    state.prefill(np.arange(12).reshape(3, 4))
    assert len(state) == 3
    symbols = np.array([7, 8, 9])
    whole = state.fork().step(symbols)
    for index in (1, slice(1, 3), [2, 2, 0], np.array([True, False, True]), -1, np.int64(2)):
        chosen = state[index]
        rows = np.arange(3)[index].reshape(-1)
        assert chosen.batch == rows.size
        np.testing.assert_allclose(chosen.step(symbols[rows]), whole[rows], rtol=1e-5, atol=1e-6)
    assert state.position == 4
    for index in (3, [], slice(3, 3), "a", [[0, 1]], 1.0):
        with pytest.raises(IndexError, match="streams"):
            state[index]


def test_the_program_runs_as_a_module():
    program = os.environ.get("TARN_PROGRAM")
    if not program:
        pytest.skip("no TARN_PROGRAM")
    found = subprocess.run([sys.executable, "-m", "tarn", "--version"], text=True,
                           capture_output=True)
    assert found.returncode == 0 and found.stdout.split()[1] == tarn.__version__
    wrong = subprocess.run([sys.executable, "-m", "tarn", "sing"], text=True, capture_output=True)
    assert wrong.returncode == 2 and "sing" in wrong.stderr
    none = subprocess.run([sys.executable, "-m", "tarn"], text=True, capture_output=True,
                          env={**os.environ, "TARN_PROGRAM": "/nowhere/tarn"})
    assert none.returncode == 1 and "/nowhere/tarn: No such file" in none.stderr


def test_steps_and_prefill_are_the_parallel_form(model):
    symbols = np.random.default_rng(0).integers(0, 256, (3, 12))
    whole = model.forward(symbols)
    assert whole.shape == (3, 12, 256)
    state, other = model.state(3), model.state(3)
    for i in range(12):
        np.testing.assert_allclose(model.step(state, symbols[:, i]), whole[:, i], rtol=1e-4,
                                   atol=1e-5)
    last = model.prefill(other, symbols)
    np.testing.assert_allclose(last, whole[:, -1], rtol=1e-4, atol=1e-5)
    assert state.position == other.position == 12


def test_lengths_hide_what_is_beyond_them():
    model = tarn.Model.create("tiny", **dict(SMALL, causal=False))
    symbols = np.random.default_rng(0).integers(0, 256, (2, 8))
    padded = model.forward(symbols, lengths=[5, 8])
    np.testing.assert_allclose(padded[0, :5], model.forward(symbols[:1, :5])[0], rtol=1e-4,
                               atol=1e-5)


def test_a_snapshot_goes_on_where_it_was_taken(model, tmp_path):
    whole = model.generate(b"Once upon", 30, batch=2, seed=5)
    assert whole.shape == (2, 30) and not np.array_equal(whole[0], whole[1])
    state = model.state(2)
    first = state.generate(b"Once upon", 12, seed=5)
    snapshot = state.to_bytes()
    state.save(tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == snapshot
    rest = state.generate(n=18, seed=5)
    assert np.array_equal(np.concatenate([first, rest], 1), whole)
    for take in (lambda s: s.load_bytes(snapshot), lambda s: s.load(tmp_path / "state")):
        again = model.state(2)
        take(again)
        assert again.position == 9 + 11
        assert np.array_equal(again.generate(n=18, seed=5), rest)


def test_streams_are_forked_joined_and_left(model):
    state = model.state()
    state.prefill([[97, 98, 99]])
    fork = state.copy()
    assert np.array_equal(fork.step([1]), state.step([1]))
    fork.step([2])
    assert state.position == 4 and fork.position == 5
    both = state.join(fork).join(state)
    assert both.batch == 3 and both.positions.tolist() == [4, 5, 4] and both.position == 5
    outputs = both.step([5, 6, 7])
    assert np.array_equal(outputs[:1], state.copy().step([5]))
    assert np.array_equal(outputs[1:2], fork.step([6]))
    left = both.take([2, 0, 2])
    both.close()
    state.close()
    assert left.positions.tolist() == [5, 5, 5]
    outputs = left.step([1, 1, 1])
    assert np.array_equal(outputs[0], outputs[2]) and not np.array_equal(outputs[0], outputs[1])
    with pytest.raises(tarn.ClosedError):
        state.copy()


def test_a_fork_draws_as_the_stream_would_have(model):
    state = model.state(2)
    state.generate(b"ab", 5, seed=3)
    fork = state.copy()
    assert np.array_equal(fork.generate(n=7, seed=3), state.generate(n=7, seed=3))
    one, two = state.stream(n=4, seed=1), state.stream(n=4, seed=2)
    mixed = [next(one), next(two), next(one)]
    assert len(mixed) == 3  # each keeps its own settings


def test_symbols_are_streamed_as_they_are_drawn(model):
    state = model.state()
    drawn = []
    for symbols in state.stream("é", seed=2):
        drawn.append(int(symbols[0]))
        if len(drawn) == 5:
            break
    assert drawn == model.generate("é", 5, seed=2)[0].tolist()
    assert state.position == 2 + 4


def test_prompts_may_be_bytes_text_or_symbols(model):
    wanted = model.generate(b"ab", 8)
    assert np.array_equal(model.generate("ab", 8), wanted)
    assert np.array_equal(model.generate([97, 98], 8), wanted)
    assert np.array_equal(model.generate(np.array([[97, 98]], np.uint16), 8), wanted)
    assert np.array_equal(model.generate(n=8), model.generate("\n", 8))


def test_sampling_does_what_it_is_told(model):
    greedy = model.generate(b"ab", 8, greedy=True)
    assert np.array_equal(model.generate(b"ab", 8, top_k=1, seed=9), greedy)
    assert np.array_equal(model.generate(b"ab", 8, temperature=0), greedy)
    state = model.state()
    assert state.prefill([[97, 98]]).argmax() == greedy[0, 0]


def test_attention_without_a_recurrent_form_is_recomputed():
    model = tarn.Model.create("tiny", **dict(SMALL, attention="softmax"))
    one = model.generate(b"ab", 8, seed=3)
    assert np.array_equal(model.generate(b"ab", 8, seed=3, method="recompute"), one)
    assert model.state(longest=20).method == "recurrent"
    with pytest.raises(tarn.InvalidArgument, match="longest is 0; it must be"):
        model.state()


def test_models_of_frames_take_floats():
    model = tarn.Model.create("tiny", task="", frames=5, stack=2, head="ctc", causal=False,
                              symbols=7, layers=1, heads=2, width=16, feed=32, position="add")
    frames = np.random.default_rng(0).standard_normal((2, 9, 5))
    assert model.forward(frames).shape == (2, 5, model.outputs)
    with pytest.raises(tarn.InvalidArgument, match="frames of 4 floats; the model needs 5"):
        model.forward(frames[..., :4])
    with pytest.raises(tarn.InvalidArgument, match="int64; it must be floating"):
        model.forward(np.zeros((2, 9, 5), int))


def test_models_are_exported_and_imported(model, tmp_path):
    model.export(tmp_path / "m.safetensors", "bf16", positions=9)
    assert (tmp_path / "m.safetensors").stat().st_size < 4 * model.parameters
    model.export(tmp_path / "m8.safetensors", "int8", positions=9)
    assert tarn.Model.load(tmp_path / "m8.safetensors").parameters == model.parameters
    try:
        model.export(tmp_path / "m.npz")
    except tarn.MachineError as error:
        pytest.skip(str(error))
    with np.load(tmp_path / "m.npz") as file:
        for name, tensor in model.tensors().items():
            assert np.array_equal(file[name], tensor)
        np.savez(tmp_path / "bare.npz", **{name: file[name] for name in model.tensors()})
        everything = {name: file[name] for name in file.files}
    assert all(isinstance(array, np.ndarray) for array in everything.values())
    assert json.loads(bytes(everything["tarn.json"]))["task"] == "text"
    np.savez(tmp_path / "whole.npz", **everything)  # with the configuration: nothing is assumed
    whole = tarn.Model.import_(tmp_path / "whole.npz")
    assert whole.fingerprint == model.fingerprint
    assert "assumed" not in {note.event for note in whole.notes}
    again = tarn.Model.import_(tmp_path / "bare.npz", heads=2, task="text")
    symbols = [[1, 2, 3]]
    assert np.array_equal(again.forward(symbols), model.forward(symbols))
    assert tarn.Note("assumed", "attention", "linear") in again.notes
    assert pickle.loads(pickle.dumps(again)).notes == again.notes
    assert "read" in {note.event for note in again.notes}


FORK = """
import os, sys, numpy as np, tarn
q = np.ones((2, 2, 300, 8), np.float32)
wanted = tarn.attention(q, q, q, threads=2)
model = tarn.Model.create("tiny", task="text", layers=1, heads=2, width=16, feed=32)
state = model.state(threads=2)
state.step([1])
other = model.state(threads=2)
other.step([1])
second = np.array(other.step([2]))
child = os.fork()
if child == 0:
    same = np.array_equal(tarn.attention(q, q, q, threads=2), wanted)
    fresh = model.state().step([1]).shape == (1, 256)
    os._exit(0 if same and fresh and np.array_equal(state.step([2]), second) else 1)
sys.exit(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork()")
def test_a_forked_child_has_threads_of_its_own():
    """Where it waited for its parent's, it would wait for ever."""
    done = subprocess.run([sys.executable, "-c", FORK], timeout=60)
    assert done.returncode == 0
