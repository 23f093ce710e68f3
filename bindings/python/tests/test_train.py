# SPDX-License-Identifier: MIT
"""Training runs, trainers and evaluation against each other and against the library's own."""
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import tarn
from tarn import _train

TINY = dict(layers=1, heads=2, head_width=8, feed=16, length=9, batch=4, precision="f32")


def run(out, steps=6, **more):
    return tarn.train("copy:symbols=10", out=out, **{**TINY, "steps": steps, **more})


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text("it was the best of times, it was the worst of times, " * 40)
    return path


# ---- train() ----


def test_a_run_reports_its_updates_and_validations(tmp_path):
    reports, validations = [], []
    done = run(tmp_path / "run", eval_every=3, eval_batches=2, on_update=reports.append,
               on_validation=validations.append)
    assert [r.update for r in reports] == [1, 2, 3, 4, 5, 6]
    assert all(np.isfinite(r.loss) and r.tokens == 4 * 9 and r.norm > 0 for r in reports)
    assert [v.update for v in validations] == [3, 6]
    assert validations[-1].name == "accuracy" and validations[-1].positions > 0
    assert done.updates == 6 and not done.stopped
    assert done.report == reports[-1] and done.validation == validations[-1]
    assert done.settings["task"] == "copy:symbols=10" and done.settings["steps"] == 6
    lines = [json.loads(line) for line in open(tmp_path / "run" / "log.jsonl")]
    assert [line["loss"] for line in lines if "lr" in line] == pytest.approx(
        [r.loss for r in reports])
    with done.model() as model:
        assert model.config.heads == 2 and model.config.width == 16


def test_options_are_those_of_the_program(tmp_path):
    done = run(tmp_path / "run", steps=1, attention="softmax", optimizer="sgd", lr=0.5,
               dropout=0.25, causal=False, seed=7)
    model = done.model()
    assert (model.config.attention, model.config.dropout, model.config.seed) == ("softmax", 0.25, 7)
    assert not model.config.causal
    assert (done.settings["optimizer"], done.settings["lr"], done.settings["seed"]) == ("sgd", 0.5, 7)


def test_a_run_is_the_programs(tmp_path):
    program = os.environ.get("TARN_PROGRAM")
    if not program:
        pytest.skip("no TARN_PROGRAM")
    run(tmp_path / "ours")
    subprocess.run([program, "train", "copy:symbols=10", "--out", tmp_path / "theirs", "--steps",
                    "6", *(f"--{name.replace('_', '-')}={value}" for name, value in TINY.items())],
                   check=True, capture_output=True)
    assert (tarn.Model.load(tmp_path / "ours").fingerprint
            == tarn.Model.load(tmp_path / "theirs").fingerprint)


def test_a_preset_brings_its_recipe(tmp_path, book):
    done = tarn.train("text", book, tmp_path / "run", preset="text-fast", steps=1, layers=1,
                      batch=2, length=16, eval_batches=1)
    assert done.settings["data"] == str(book)
    assert done.model().config.symbols == 256


def test_false_stops_a_run_and_it_can_be_resumed(tmp_path):
    whole = run(tmp_path / "whole").model().fingerprint
    done = run(tmp_path / "run", on_update=lambda report: report.update < 4)
    assert done.stopped and done.updates == 4
    done = tarn.train("copy", out=tmp_path / "run", resume=True)
    assert not done.stopped and done.updates == 6
    assert done.model().fingerprint == whole


def test_an_exception_of_a_callback_saves_and_is_raised(tmp_path):
    def fail(report):
        if report.update == 3:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(tmp_path / "run", on_update=fail)
    updates = []
    tarn.train("copy", out=tmp_path / "run", resume=True, on_update=updates.append)
    assert [u.update for u in updates] == [4, 5, 6]


@pytest.fixture
def heeds_ctrl_c():
    """Processes in the background of a script ignore SIGINT, and so do those that they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_saves_and_is_raised(tmp_path, heeds_ctrl_c):
    def press(report):
        if report.update == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="stopped after update [23] of 600 and saved"):
        run(tmp_path / "run", steps=600, on_update=press)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert list((tmp_path / "run").glob("checkpoint-000000000[23].safetensors"))


def test_ctrl_c_from_outside_reaches_a_run_in_c(tmp_path, heeds_ctrl_c):
    script = f"""
import tarn, sys
def tell(report): print(report.update, flush=True)
try:
    tarn.train("copy:symbols=10", out={str(tmp_path / 'run')!r}, steps=10**6, layers=1, heads=2,
               head_width=8, feed=16, length=9, batch=4, eval_every=0, on_update=tell)
except KeyboardInterrupt as stop:
    print("interrupted", stop)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    for _ in range(5):
        child.stdout.readline()
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=120)[0]
    assert child.returncode == 0 and "interrupted stopped after update" in rest
    assert list((tmp_path / "run").glob("checkpoint-*.safetensors"))


def test_progress_is_silent_printed_or_the_callers(tmp_path, capfd):
    run(tmp_path / "silent")
    assert capfd.readouterr() == ("", "")
    run(tmp_path / "printed", progress=True, eval_every=3)
    assert "validation after update 6: loss" in capfd.readouterr().err
    lines = []
    run(tmp_path / "told", progress=lines.append, eval_every=3)
    assert lines[0].startswith("copy:symbols=10: batch size 4, sequence length 9")
    assert any(line.startswith("update 1/6, loss ") for line in lines)
    assert capfd.readouterr() == ("", "")


def test_a_run_in_another_thread(tmp_path):
    found = []
    thread = threading.Thread(target=lambda: found.append(run(tmp_path / "run")))
    thread.start()
    thread.join()
    assert found[0].model().fingerprint == run(tmp_path / "other").model().fingerprint


def test_minutes_end_a_run(tmp_path):
    done = run(tmp_path / "run", steps=10**6, minutes=0.002, eval_every=0)
    assert done.stopped and 0 < done.updates < 10**6
    fitted = tarn.train("copy:symbols=10", out=tmp_path / "fitted", minutes=0.005, **TINY)
    assert not fitted.stopped and fitted.updates == fitted.settings["steps"]


def test_start_takes_weights_and_architecture(tmp_path):
    first = run(tmp_path / "first")
    second = tarn.train("copy:symbols=10", out=tmp_path / "second", start=tmp_path / "first",
                        steps=1, length=9, batch=4, lr=1e-12)
    before, after = first.model().tensors(), second.model().tensors()
    assert all(np.allclose(before[name], after[name]) for name in before)


@pytest.mark.parametrize("arguments, kind, says", [
    (dict(out=None), tarn.InvalidArgument, "out is None"),
    (dict(nonsense=1), tarn.UnknownName, "nonsense: unknown option; available: accumulate"),
    (dict(lr=-1.0), tarn.InvalidArgument, "lr is '-1.0'"),
    (dict(attention="wishful"), tarn.UnknownName, "attention: unknown name 'wishful'"),
    (dict(steps=[1]), tarn.InvalidArgument, "steps is list"),
    (dict(epochs=1), tarn.InvalidArgument, "epochs and steps"),
    (dict(any=True), tarn.InvalidArgument, "any needs resume"),
    (dict(resume=True), tarn.FileError, "has no checkpoint"),
    (dict(resume=True, preset="tiny"), tarn.InvalidArgument, "cannot be used with resume"),
    (dict(start="x", preset="tiny"), tarn.InvalidArgument, "start and preset"),
    (dict(start="nowhere"), tarn.FileError, "nowhere"),
    (dict(head_width=0), tarn.InvalidArgument, "head_width is 0"),
    (dict(progress=3), tarn.InvalidArgument, "progress is int"),
    (dict(data="x"), tarn.InvalidArgument, "data"),
    (dict(threads=-1), tarn.InvalidArgument, "threads is -1"),
])
def test_wrong_options_are_refused(tmp_path, arguments, kind, says):
    (tmp_path / "run").mkdir()
    with pytest.raises(kind, match=says):
        run(**{"out": tmp_path / "run", **arguments})


def test_unknown_tasks_and_used_folders_are_refused(tmp_path):
    with pytest.raises(tarn.UnknownName, match="task"):
        tarn.train("wish", out=tmp_path / "run")
    run(tmp_path / "run")
    with pytest.raises(tarn.Error, match="run"):
        run(tmp_path / "run")
    with pytest.raises(tarn.InvalidArgument, match="was started with task"):
        tarn.train("text", out=tmp_path / "run", resume=True)


# ---- Trainer ----


def test_steps_on_batches_are_the_run(tmp_path):
    reports = []
    done = run(tmp_path / "run", preset="tiny", seed=5, on_update=reports.append)
    batches = tarn.data.batches("copy:symbols=10", length=9, batch=4, seed=5)
    config = tarn.Config.of_task(batches.task, "tiny", layers=1, heads=2, width=16, feed=16, seed=5)
    names = ("optimizer", "schedule", "clip", "lr", "steps", "seed")
    trainer = tarn.Trainer(tarn.Model.create(config),
                           **{name: done.settings[name] for name in names})
    assert [trainer.step(batches[i]) for i in range(6)] == reports
    assert trainer.model.fingerprint == done.model().fingerprint


def test_forms_of_a_batch_are_the_same():
    symbols = np.random.default_rng(0).integers(0, 10, (3, 8))
    losses = []
    for batch in (symbols, (symbols[:, :-1], symbols[:, 1:]),
                  (symbols[:, :-1], symbols[:, 1:], np.ones((3, 7))),
                  dict(inputs=symbols[:, :-1], targets=symbols[:, 1:])):
        trainer = tarn.Trainer(tarn.Model.create("tiny", symbols=10, seed=3))
        losses.append([trainer.step(batch).loss for _ in range(3)])
    assert losses[0] == losses[1] == losses[2] == losses[3]
    assert losses[0][2] < losses[0][0]


@pytest.mark.parametrize("causal", [True, False])
def test_smaller_batches_are_padded(causal):
    symbols = np.random.default_rng(0).integers(0, 10, (2, 6))

    def made(**sizes):
        return tarn.Trainer(tarn.Model.create("tiny", symbols=10, causal=causal), lr=0.01, **sizes)

    exact, larger = made(), made(batch=5, length=11)
    for _ in range(3):
        one, other = exact.step(symbols), larger.step(symbols)
        assert other.loss == pytest.approx(one.loss, abs=1e-5)
        assert other.tokens == one.tokens == 10
    assert larger.score(symbols).loss == pytest.approx(exact.score(symbols).loss, abs=1e-4)


@pytest.mark.parametrize("causal", [True, False])
def test_positions_past_a_length_do_not_count(causal):
    inputs, targets = np.random.default_rng(0).integers(0, 10, (2, 2, 6))
    weights = np.float32([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
    trainer = tarn.Trainer(tarn.Model.create("tiny", symbols=10, causal=causal))
    batch = dict(inputs=inputs, targets=targets, lengths=[3, 6])
    found = trainer.score(batch)
    assert found == trainer.score(dict(batch, weights=weights)) and found.weight == 9


def test_accumulated_batches_are_one_batch():
    symbols = np.random.default_rng(0).integers(0, 10, (4, 8))
    one = tarn.Trainer(tarn.Model.create("tiny", symbols=10)).step(symbols)
    two = tarn.Trainer(tarn.Model.create("tiny", symbols=10)).step(symbols[:2], symbols[2:])
    assert two.loss == pytest.approx(one.loss, rel=1e-6)
    assert two.norm == pytest.approx(one.norm, rel=1e-4)


def test_a_checkpoint_continues_bit_for_bit(tmp_path):
    symbols = np.random.default_rng(0).integers(0, 10, (4, 8))
    one = tarn.Trainer(tarn.Model.create("tiny", symbols=10))
    for _ in range(3):
        one.step(symbols)
    one.save(tmp_path / "check.safetensors")
    other = tarn.Trainer(tarn.Model.create("tiny", symbols=10), batch=4, length=7)
    other.load(tmp_path / "check.safetensors")
    assert other.updates == 3 and other.nbytes > 0
    assert one.step(symbols) == other.step(symbols)
    assert one.model.fingerprint == other.model.fingerprint


def test_frames_and_labels_of_sequences():
    rng = np.random.default_rng(0)
    model = tarn.Model.create("tiny", frames=5, head="ctc", symbols=4, causal=False)
    trainer = tarn.Trainer(model, batch=3, length=20)
    frames = rng.standard_normal((2, 12, 5))
    lists = trainer.score(dict(frames=frames, targets=[[1, 2], [3]]))
    flat = trainer.score(dict(frames=frames, targets=[1, 2, 3], counts=[2, 1]))
    assert lists.loss == flat.loss and np.isfinite(lists.loss) and lists.weight == 2
    assert lists.sums["labels"] == 3
    first = trainer.step(dict(frames=frames, targets=[[1, 2], [3]], lengths=[12, 9])).loss
    for _ in range(20):
        last = trainer.step(dict(frames=frames, targets=[[1, 2], [3]], lengths=[12, 9])).loss
    assert last < first
    for targets, counts, says in (
            ([[1.5, 2], [3]], None, "targets: has dtype float64"),
            ([1, 2, 3], [1, 1], "targets: has 3 symbols; counts add up to 2"),
            ([1, 2, 3], [2, 2], "targets: has 3 symbols; counts add up to 4")):
        with pytest.raises(tarn.InvalidArgument, match=says):
            trainer.step(dict(frames=frames, targets=targets, counts=counts))
    assert trainer.score(dict(frames=frames, targets=[[1, 2], []])).sums["labels"] == 2


@pytest.mark.parametrize("wrong", [
    (np.zeros((1, 3), int), np.zeros((1, 4), int)),  # refused here
    np.full((1, 4), 10),  # refused by the library
])
def test_a_refused_batch_does_not_set_the_sizes(wrong):
    symbols = np.random.default_rng(0).integers(0, 10, (4, 9))
    trainer = tarn.Trainer(tarn.Model.create("tiny", symbols=10))
    for call in (trainer.step, trainer.score):
        with pytest.raises(tarn.InvalidArgument):
            call(wrong)
    assert trainer.step(symbols).tokens == 32
    with pytest.raises(tarn.InvalidArgument, match="at most 4 of length 8"):
        trainer.step(np.zeros((4, 10), int))


def test_a_trainer_is_freed_and_closed():
    model = tarn.Model.create("tiny", symbols=10)
    trainer = tarn.Trainer(model, batch=2, length=3)
    assert repr(trainer) == "<tarn.Trainer, updates 0>"
    handle = weakref.ref(trainer._handle)
    gc.disable()  # its memory must not wait for the collector
    try:
        del trainer
        assert handle() is None and model._handle.trainers == 0
    finally:
        gc.enable()
    for trainer in (tarn.Trainer(model, batch=2, length=3), tarn.Trainer(model)):
        trainer.close()
        trainer.close()
        assert repr(trainer) == "<tarn.Trainer, closed>"
        for call in (lambda: trainer.step(np.zeros((2, 4), int)), lambda: trainer.updates):
            with pytest.raises(tarn.ClosedError, match="trainer is closed"):
                call()


def test_a_trainer_waits_for_no_other():
    """While one trains a model, another one does not read its weights."""
    model = tarn.Model.create("tiny", symbols=10)
    other = tarn.Trainer(model, batch=2, length=3)
    with model._handle.alone():
        for call in (lambda: other.score(np.zeros((2, 4), int)), lambda: other.save("none")):
            with pytest.raises(tarn.BusyError, match="model is being trained"):
                call()


@pytest.mark.parametrize("batch, says", [
    (np.zeros((2, 1), int), "where each symbol predicts the next"),
    (np.zeros((2, 4)), "it must be whole numbers"),
    (np.full((2, 4), 10), r"inputs\[0\] is 10; it must be from 0 to 9"),
    ((np.zeros((2, 3), int),), "tuple of 1"),
    ((np.zeros((2, 3), int), np.zeros((2, 4), int)), "targets: have shape"),
    ((np.zeros((2, 3), int), np.zeros((2, 3), int), np.ones((2, 2))), "weights: has shape"),
    (dict(inputs=np.zeros((2, 3), int)), "has no 'targets'"),
    (dict(wrong=1), "unknown key 'wrong'"),
    (dict(inputs=np.zeros((2, 3), int), targets=np.zeros((2, 3), int), length=2),
     "unknown key 'length'; available for this model: inputs, targets, weights, lengths, position"),
    (dict(inputs=np.zeros((2, 3), int), targets=np.zeros((2, 3), int), counts=[1, 1]),
     "unknown key 'counts'"),
    (np.zeros((3, 4), int), "was made for at most 2 of length 3"),
    (np.zeros((0, 4), int), "must not be empty"),
])
def test_wrong_batches_are_refused(batch, says):
    trainer = tarn.Trainer(tarn.Model.create("tiny", symbols=10), batch=2, length=3)
    with pytest.raises(tarn.InvalidArgument, match=says):
        trainer.step(batch)
    assert trainer.updates == 0


def test_a_model_with_states_is_not_trained():
    symbols = np.random.default_rng(0).integers(0, 10, (2, 4))
    model = tarn.Model.create("tiny", symbols=10)
    trainer = tarn.Trainer(model)
    state = model.state()
    with pytest.raises(tarn.BusyError, match="close its states"):
        trainer.step(symbols)
    state.close()
    before = model.generate([1], 8, greedy=True)
    for _ in range(50):
        trainer.step(np.tile([[1, 2, 3, 4]], (2, 1)))
    assert model.generate([1], 3, greedy=True).tolist() == [[2, 3, 4]] != before[:, :3].tolist()
    trainer.close()
    with pytest.raises(tarn.ClosedError):
        trainer.step(symbols)
    assert np.isfinite(model.forward(symbols)).all()


# ---- evaluate() ----


def test_a_folder_repeats_its_validation(tmp_path, book):
    done = tarn.train("text", book, tmp_path / "run", preset="tiny", steps=4, length=16, batch=4)
    again = tarn.evaluate(tmp_path / "run")
    assert again.loss == pytest.approx(done.validation.loss, rel=1e-6)
    assert again.name == "bits_per_byte"
    by_model = tarn.evaluate(done.model(), book, length=16, batch=4)
    assert by_model.loss == again.loss
    assert by_model.metric == pytest.approx(by_model.loss / np.log(2))
    lower = tarn.evaluate(done.model(), book, length=16, batch=4, precision="bf16")
    assert lower.loss == pytest.approx(again.loss, rel=1e-2)


def test_ctrl_c_is_raised_after_an_evaluation(book, heeds_ctrl_c):
    """The signal comes while the library works, so that its handler runs where a callback begins."""
    begun = threading.Event()

    def press():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=press)
    other.start()
    model = tarn.Model.create(tarn.Config.of_task("text", "tiny"))
    with pytest.raises(KeyboardInterrupt):
        tarn.evaluate(model, book, length=8, batch=1, progress=lambda line: begun.set())
        other.join()


@pytest.mark.parametrize("wrong, says", [
    (dict(minutes=float("nan")), "minutes is nan; it must be a finite number from 0"),
    (dict(minutes=-1), "minutes is -1"), (dict(epochs=float("inf")), "epochs is inf"),
    (dict(on_update=3), "on_update is int; it must be a function or None"),
    (dict(on_validation="print"), "on_validation is str")])
def test_arguments_are_refused_before_a_run(tmp_path, wrong, says):
    with pytest.raises(tarn.InvalidArgument, match=says):
        tarn.train("copy:symbols=10", out=tmp_path / "run", **TINY, steps=2, **wrong)
    assert not (tmp_path / "run").exists()


def test_what_a_handler_of_ctrl_c_raises_is_kept():
    def leave(number, frame):
        raise SystemExit(3)

    before = signal.signal(signal.SIGINT, leave)
    try:
        listener = _train._Listener(_train._Teller(None), None, None, None, 0.0)
        with _train._ctrl_c(listener):
            os.kill(os.getpid(), signal.SIGINT)
        assert isinstance(listener.error, SystemExit) and not listener.interrupted
        assert signal.getsignal(signal.SIGINT) is leave
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_cannot_be_evaluated_is_refused(tmp_path):
    model = tarn.Model.create("tiny", symbols=10)
    with pytest.raises(tarn.InvalidArgument, match="no task"):
        tarn.evaluate(model)
    text = tarn.Model.create(tarn.Config.of_task("text", "tiny"))
    with pytest.raises(tarn.Error, match="data"):
        tarn.evaluate(text)
    with pytest.raises(tarn.InvalidArgument, match="nonsense: unknown setting"):
        tarn.evaluate(text, nonsense=1)
    with pytest.raises(tarn.InvalidArgument, match="best requires"):
        tarn.evaluate(text, best=True)
