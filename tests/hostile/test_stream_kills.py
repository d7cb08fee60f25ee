"""A stream killed between any two writes goes on to the labels of a whole run, or says why not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from counting import count
from kills import Server, serving
from marking import slow_beyond
from mercer.datasets import rings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")

SIZES = ["--initial-size", "200", "--max-size", "250", "--batch-size", "100"]


def command(folder: Path, rows: str, *more: object) -> list[object]:
    outputs = ["--out", folder / "labels.csv", "--model", folder / "model.mercer"]
    return ["stream", folder.parent / rows, "-k", 3, "--seed", 0, *SIZES, *outputs, *more]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def runs(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two inputs that differ, and what a whole run makes of each."""
    folder = tmp_path_factory.mktemp("runs")
    np.save(folder / "day1.npy", rings(1500, random_state=0)[0])
    np.save(folder / "day2.npy", rings(3500, random_state=1)[0][::-1])
    for name in ("day1", "day2"):
        (folder / name).mkdir()
        arguments = [*map(str, command(folder / name, f"{name}.npy"))]
        assert server.ask("warm", arguments) == 0
    return folder


def labels(folder: Path) -> bytes:
    return (folder / "labels.csv").read_bytes()


def resumed(server: Server, folder: Path, rows: str, *more: object) -> tuple[int, str]:
    err = folder.parent / "err.txt"
    status = server.wait(server.start(command(folder, rows, "--resume", *more), err=err))
    return status, err.read_text()


@pytest.mark.parametrize("before", slow_beyond(["nothing", "day1"], quick=["day1"]))
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_stream_killed_at_any_step_resumes(
    before: str, stride: int, server: Server, runs: Path
) -> None:
    """Also over what another run, of other rows, left under the same names."""
    folder, whole = runs / "killed", labels(runs / "day2")
    n_kills = n_refused = 0

    def put_back() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        if before == "nothing":
            folder.mkdir()
        else:
            shutil.copytree(runs / before, folder)

    put_back()
    run = command(folder, "day2.npy", "--every", 2)
    for _ in server.kill_at_steps(run, folder, stride=stride):
        n_kills += 1
        status, words = resumed(server, folder, "day2.npy")
        if status:
            n_refused += 1
            assert "are not those that the model has seen" in words
            assert "run without --resume" in words
            assert labels(folder) == labels(runs / before)  # nothing was touched yet
        else:
            assert labels(folder) == whole
        put_back()
    assert labels(folder.parent / "day2") == whole
    assert n_kills > n_refused > 0 if before == "day1" else n_kills > n_refused == 0
    count("kills survived", f"stream at every step, {before} before", n_kills)
