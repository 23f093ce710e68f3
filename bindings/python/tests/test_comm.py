# SPDX-License-Identifier: MIT
"""Training by the processes of an MPI job, with communicators of mpi4py."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import tarn

TINY = dict(layers=1, heads=2, head_width=8, feed=16, length=8, batch=4, precision="f32",
            steps=4, micro_batches=2, sequence_chunks=2, eval_every=2, eval_batches=2)

SCRIPT = """
import os
import sys
import tarn
from mpi4py import MPI

out, sharing = sys.argv[1], int(sys.argv[2])
done = tarn.train("copy:symbols=10", out=out, comm=MPI.COMM_WORLD, sequence_parallel=sharing,
                  **{options!r})
assert done.updates == 4, done
score = tarn.evaluate(out, comm=MPI.COMM_WORLD)
part = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank)
alone = tarn.evaluate(out, comm=part)
assert score.loss == alone.loss, (score, alone)
try:
    tarn.evaluate(out, comm=3)
except tarn.InvalidArgument as refused:
    assert str(refused).startswith("comm is int; it must be a communicator of mpi4py"), refused
    if MPI.COMM_WORLD.rank == 0:
        print("loss", score.loss)
os.environ["TARN_COMM_TIMEOUT"] = "never"
try:
    tarn.evaluate(out, comm=MPI.COMM_WORLD)
    raise AssertionError("TARN_COMM_TIMEOUT is not read")
except tarn.InvalidArgument as refused:
    assert "TARN_COMM_TIMEOUT is 'never'" in str(refused), refused
"""


def mpirun(folder, ranks, *arguments):
    script = folder / "script.py"
    script.write_text(SCRIPT.format(options=TINY))
    library = os.environ.get("TARN_LIBRARY")
    places = ([str(Path(library).resolve().parent)] if library else []) + \
        [p for p in [os.environ.get("LD_LIBRARY_PATH")] if p]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(places),
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1",
                   "OMPI_MCA_hwloc_base_binding_policy": "none",
                   "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_pml": "ob1"}
    with tempfile.TemporaryDirectory() as sockets:  # other processes of mpirun have theirs
        environment["OMPI_MCA_orte_tmpdir_base"] = sockets
        return subprocess.run(
            ["mpirun", "-n", str(ranks), sys.executable, str(script), *arguments],
            env=environment, capture_output=True, text=True, timeout=600)


def test_processes_of_mpi4py_train_one_model(tmp_path):
    if not importlib.util.find_spec("mpi4py"):
        pytest.skip("mpi4py is not installed")
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    one = tarn.train("copy:symbols=10", out=tmp_path / "one", **TINY)
    for sharing in "1", "2":
        out = tmp_path / f"two{sharing}"
        ended = mpirun(tmp_path, 2, str(out), sharing)
        if "libtarn-mpi" in ended.stderr and "MachineError" in ended.stderr:
            pytest.skip("this build is without MPI")
        assert ended.returncode == 0, ended.stderr
        assert (out / "model.safetensors").read_bytes() == \
            (tmp_path / "one" / "model.safetensors").read_bytes()
        assert ended.stdout.startswith("loss ")
    assert one.validation is not None
