"""A command that is killed leaves the old file or the new one, whole; there is no third state."""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from counting import count
from kills import (
    KNOWN,
    VERBS,
    Server,
    model_content,
    serving,
    survive,
    temporaries,
    write_model,
    write_rows,
)
from mercer.io import read_labels, write_labels

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def check(server: Server, verb: str, n_kills: int, folder: Path, seed: int) -> None:
    if verb not in KNOWN or verb not in VERBS:
        pytest.skip(f"`mercer {verb}` is not there, or not in the table of kills.py")
    for package in {"segment": ["PIL"], "predict": ["pyarrow"]}.get(verb, []):
        pytest.importorskip(package)
    counts = survive(server, verb, n_kills, folder, seed)
    assert counts.broken == []
    assert counts.kills == n_kills
    assert counts.old > 0
    assert temporaries(folder) == []
    count("kills survived", verb, counts.kills)
    count("kills that left a temporary file, removed later", verb, counts.left)
    count("files that were replaced before the kill", verb, counts.new)


@pytest.mark.parametrize("verb", ["cluster", "predict"])
def test_a_few_kills(verb: str, server: Server, tmp_path: Path) -> None:
    check(server, verb, 6, tmp_path, seed=int.from_bytes(os.urandom(4)))


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_many_kills(verb: str, server: Server, tmp_path: Path) -> None:
    check(server, verb, 75, tmp_path, seed=0)


# Folders cannot be replaced by one rename: by an exchange, or by two renames and a recovery.
REPLACED = {
    "exchanged": "",
    "renamed": "import mercer._run.atomic as atomic; atomic.exchange = lambda *_: False\n",
}


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", REPLACED)
def test_a_folder_of_labels_is_old_or_new_after_a_kill_at_any_step(
    how: str, stride: int, server: Server, tmp_path: Path
) -> None:
    pytest.importorskip("zarr")
    folder = tmp_path / "labels"
    folder.mkdir()
    write_model(tmp_path)

    def command(which: str) -> list[object]:
        names = tmp_path / f"{which}.mercer", tmp_path / "rows.npy"
        return ["predict", *names, "--out", folder / "labels.zarr"]

    assert server.ask("warm", [*map(str, command("new"))]) == 0
    new = read_labels(folder / "labels.zarr")
    server.run(command("old"))
    old = read_labels(folder / "labels.zarr")
    found = {"old": 0, "new": 0, "put back": 0}
    for _ in server.kill_at_steps(command("new"), folder, stride=stride, code=REPLACED[how]):
        found["put back"] += not (folder / "labels.zarr").exists()
        labels = read_labels(folder / "labels.zarr")
        is_new = np.array_equal(labels, new)
        assert is_new or np.array_equal(labels, old)
        found["new" if is_new else "old"] += 1
        for name in os.listdir(folder):  # as it will be soon
            os.utime(folder / name, (time.time() - 3600,) * 2)
        write_labels(folder / "labels.zarr", [(0, old)], len(old))
        assert os.listdir(folder) == ["labels.zarr"]
        assert np.array_equal(read_labels(folder / "labels.zarr"), old)
    assert os.listdir(folder) == ["labels.zarr"]
    assert np.array_equal(read_labels(folder / "labels.zarr"), new)
    assert found["old"] > 0
    if stride == 1:
        assert found["new"] > 0
        assert (found["put back"] > 0) == (how == "renamed")
    count("kills survived", f"predict to zarr, {how}, at every step", found["old"] + found["new"])


def resume(server: Server, n_kills: int, folder: Path, seed: int) -> None:
    """Kill a command with a checkpoint again and again; the last run ends with the same labels."""
    if "checkpoint" not in KNOWN["cluster"]:
        pytest.skip("`mercer cluster` has no --checkpoint")
    VERBS["cluster"].setup(folder)
    plain = VERBS["cluster"].arguments(folder, "new")
    server.ask("warm", plain)
    server.run(plain)
    whole = read_labels(folder / "labels.npy")
    kept = [*plain, "--checkpoint", str(folder / "state")]
    seconds, draw = server.run(kept), random.Random(seed)
    assert np.array_equal(read_labels(folder / "labels.npy"), whole)
    done = 0
    while done < n_kills:
        shutil.rmtree(folder / "state", ignore_errors=True)
        (folder / "labels.npy").unlink()
        for _ in range(3):
            pause = draw.uniform(0, seconds)
            done += server.kill(kept, lambda pause=pause: time.sleep(pause))
        server.run(kept)
        assert np.array_equal(read_labels(folder / "labels.npy"), whole)
    count("kills survived", "cluster --checkpoint", done)


def resume_stream(server: Server, n_kills: int, folder: Path, seed: int) -> None:
    """Kill a stream again and again; with --resume it ends with the same labels and model."""
    write_rows(folder)
    labels, model = folder / "labels.csv", folder / "model.mercer"
    plain = [
        *("stream", str(folder / "rows.npy"), "-k", "3", "--seed", "0", "--every", "1"),
        *("--initial-size", "300", "--max-size", "400", "--batch-size", "100"),
        *("--out", str(labels), "--model", str(model)),
    ]
    server.ask("warm", plain)
    seconds, draw = server.run(plain), random.Random(seed)
    whole, said, done = labels.read_bytes(), model_content(model), 0
    while done < n_kills:
        labels.unlink()
        model.unlink()
        for _ in range(3):
            command = [*plain, "--resume"] if model.exists() else plain
            pause = draw.uniform(0, seconds)
            done += server.kill(command, lambda pause=pause: time.sleep(pause))
        server.run([*plain, "--resume"] if model.exists() else plain)
        assert labels.read_bytes() == whole
        assert model_content(model) == said
    count("kills survived", "stream --resume", done)


def test_a_killed_stream_resumes(server: Server, tmp_path: Path) -> None:
    resume_stream(server, 3, tmp_path, seed=0)


@pytest.mark.slow
def test_a_stream_killed_often_resumes(server: Server, tmp_path: Path) -> None:
    resume_stream(server, 60, tmp_path, seed=1)


def test_a_killed_command_resumes(server: Server, tmp_path: Path) -> None:
    resume(server, 3, tmp_path, seed=0)


@pytest.mark.slow
def test_a_command_killed_often_resumes(server: Server, tmp_path: Path) -> None:
    resume(server, 60, tmp_path, seed=1)
