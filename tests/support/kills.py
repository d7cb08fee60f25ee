"""Commands that are killed at random moments, and what is on the disk afterwards.

A warm process forks one child per command, so that a kill costs a fraction of a second and falls
into the work, not into the imports.
"""

from __future__ import annotations

import inspect
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.app import app
from mercer.datasets import rings
from mercer.io import load, read_labels
from waiting import wait_until

SERVER = """
import json, os, sys, traceback
from mercer.cli import main

def run(arguments):
    sys.argv = ["mercer", *arguments]
    try:
        main()
        sys.stdout.flush()
    except SystemExit as end:
        return 0 if end.code is None else end.code
    except BaseException:
        traceback.print_exc()
        return 99
    return 0

def child(arguments, code, out, err):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    try:
        exec(code, {})
        status = run(arguments)
        sys.stderr.flush()
    finally:
        os._exit(status)

answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    verb, *arguments = json.loads(line)
    if verb == "warm":
        os.dup2(2, 1)
        answer = run(*arguments)
    elif verb == "start":
        answer = os.fork()
        if answer == 0:
            child(*arguments)
    elif verb == "wait":  # until then the number of the child belongs to nobody else
        answer = os.waitpid(*arguments, 0)[1]
    answers.write(f"{answer}\\n")
    answers.flush()
"""

# The child ends itself, as a kill would, before its n-th step that changes what is on the disk.
STEPS = """
import os, signal, sys
left, folder = {n}, {folder!r}
def step():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
def inside(path):
    return isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith(folder)
def hook(event, arguments):
    if event == "open":
        is_step = arguments[2] & (os.O_WRONLY | os.O_RDWR) and inside(arguments[0])
    else:
        is_step = event in {steps} and any(map(inside, arguments))
    if is_step:
        step()
sync = os.fsync
def synced(descriptor):
    step()
    sync(descriptor)
os.fsync = synced
sys.addaudithook(hook)
"""
EVENTS = ("os.rename", "os.truncate", "os.remove", "os.rmdir", "os.mkdir", "mercer.exchange")


class Server:
    """A warm interpreter that runs commands in children."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, verb: str, *arguments: Any) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([verb, *arguments]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(
        self,
        arguments: Sequence[object],
        *,
        code: str = "",
        out: Path | str = os.devnull,
        err: Path | str = os.devnull,
    ) -> int:
        """The number of a child that runs the code, then the command, with its output in files."""
        return self.ask("start", [*map(str, arguments)], code, str(out), str(err))

    def wait(self, child: int) -> int:
        """Its exit code, or minus the signal that ended it."""
        return os.waitstatus_to_exitcode(self.ask("wait", child))

    def run(self, arguments: Sequence[object]) -> float:
        """Seconds of one whole run, which must end well."""
        begin = time.monotonic()
        status = self.wait(self.start(arguments))
        assert status == 0, (arguments, status)
        return time.monotonic() - begin

    def kill(self, arguments: Sequence[object], wait: Callable[[], None]) -> bool:
        """Whether a command that is killed after `wait` was still running."""
        child = self.start(arguments)
        wait()
        os.kill(child, signal.SIGKILL)
        return self.wait(child) == -signal.SIGKILL

    def kill_at_steps(
        self, arguments: Sequence[object], folder: Path, *, stride: int = 1, code: str = ""
    ) -> Iterator[int]:
        """Kill a command before its first change of the folder, its second …, until it ends well.

        Whoever iterates looks at the folder after each kill and puts it back as it was.
        """
        for n in range(0, 10_000, stride):
            steps = STEPS.format(n=n, folder=str(folder), steps=EVENTS)
            status = self.wait(self.start(arguments, code=code + steps))
            if status == 0:
                return
            assert status == -signal.SIGKILL, (arguments, n, status)
            yield n

    def close(self) -> None:
        self.process.communicate()


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


@dataclass(frozen=True)
class Verb:
    """How a command is run so that it writes `old` or `new` results to the same files."""

    arguments: Callable[[Path, str], list[str]]  # (folder, "old" or "new")
    outputs: dict[str, Callable[[Path], Any]]  # file name → what tells its content
    setup: Callable[[Path], None] = lambda folder: None


@dataclass
class Counts:
    """What became of the files of one verb."""

    kills: int = 0
    finished: int = 0  # the command was faster than the signal
    old: int = 0  # files that were as before
    new: int = 0  # files that were replaced as a whole
    left: int = 0  # temporary files of the killed, which the next writer removes
    broken: list[str] = field(default_factory=list)


def write_rows(folder: Path) -> None:
    np.save(folder / "rows.npy", rings(3000, random_state=0)[0])


def write_model(folder: Path) -> None:
    from mercer import KernelKMeans

    write_rows(folder)
    X = np.load(folder / "rows.npy")
    for name, n_clusters in (("old", 3), ("new", 5)):
        model = KernelKMeans(n_clusters, rank=40, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that five rings are two too many
            model.fit(X).save(folder / f"{name}.mercer")


def write_picture(folder: Path) -> None:
    from PIL import Image

    rng = np.random.default_rng(0)
    picture = np.kron(rng.integers(0, 255, (3, 3, 3)), np.ones((30, 30, 1))).astype(np.uint8)
    Image.fromarray(picture).save(folder / "picture.png")


def model_content(path: Path) -> Any:
    """What the model says of a few rows: it must load, and predict."""
    return load(path).predict(rings(100, random_state=1)[0]).tolist()


def clusters_of(which: str) -> str:
    return {"old": "3", "new": "5"}[which]


VERBS: dict[str, Verb] = {
    "cluster": Verb(
        lambda folder, which: [
            *("cluster", str(folder / "rows.npy"), "-k", clusters_of(which), "--seed", "0"),
            *("--out", str(folder / "labels.npy"), "--model", str(folder / "model.mercer")),
        ],
        {"labels.npy": lambda path: read_labels(path).tolist(), "model.mercer": model_content},
        write_rows,
    ),
    "predict": Verb(
        lambda folder, which: [
            *("predict", str(folder / f"{which}.mercer"), str(folder / "rows.npy")),
            *("--out", str(folder / "labels.parquet")),
        ],
        {"labels.parquet": lambda path: read_labels(path).tolist()},
        write_model,
    ),
    "tune": Verb(
        lambda folder, which: [
            *("tune", str(folder / "rows.npy"), "--clusters", f"2:{clusters_of(which)}"),
            *("--gamma", "1,3", "--rank", "30", "--train-size", "300", "--seed", "0"),
            *("--out", str(folder / "table.json")),
        ],
        {"table.json": lambda path: json.loads(path.read_text())["n_clusters"]},
        write_rows,
    ),
    "segment": Verb(
        lambda folder, which: [
            *("segment", str(folder / "picture.png"), "--n-segments", clusters_of(which)),
            *("--seed", "0", "--labels", str(folder / "labels.png")),
        ],
        {"labels.png": Path.read_bytes},
        write_picture,
    ),
}
KNOWN = {
    command.callback.__name__: set(inspect.signature(command.callback).parameters)
    for command in app.registered_commands
    if command.callback
}


def survive(server: Server, name: str, n_kills: int, folder: Path, seed: int = 0) -> Counts:
    """Kill a command again and again; each file must be the old one or the new one, whole."""
    verb, draw, counts = VERBS[name], random.Random(seed), Counts()
    verb.setup(folder)
    inputs = set(os.listdir(folder))
    server.ask("warm", verb.arguments(folder, "new"))
    server.run(verb.arguments(folder, "new"))
    seconds = server.run(verb.arguments(folder, "new"))
    new = contents(verb, folder)
    server.run(verb.arguments(folder, "old"))
    before = {file: (folder / file).read_bytes() for file in verb.outputs}
    old = contents(verb, folder)
    assert all(old[file] != new[file] for file in verb.outputs)
    while counts.kills < n_kills:
        pause = draw.uniform(0, 1.05 * seconds)
        is_early = draw.random() < 0.5  # any moment; else one at which a file is being written
        wait = (
            (lambda p=pause: time.sleep(p))
            if is_early
            else (lambda: near_a_file(folder, draw, seconds))
        )
        was_killed = server.kill(verb.arguments(folder, "new"), wait)
        counts.kills += was_killed
        counts.finished += not was_killed
        take_stock(verb, folder, old, new, counts, inputs)
        for file, data in before.items():
            (folder / file).write_bytes(data)
    server.run(verb.arguments(folder, "new"))  # and its temporary files are gone, see take_stock
    return counts


def near_a_file(folder: Path, draw: random.Random, seconds: float) -> None:
    """Until a temporary file appears, or the work is over, and a moment longer."""
    wait_until(lambda: temporaries(folder), within=5 + 2 * seconds, every=0.0002)
    time.sleep(draw.choice([0, draw.uniform(0, 0.001), draw.uniform(0, 0.01)]))


def temporaries(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


def contents(verb: Verb, folder: Path) -> dict[str, Any]:
    return {file: read(folder / file) for file, read in verb.outputs.items()}


def take_stock(
    verb: Verb,
    folder: Path,
    old: dict[str, Any],
    new: dict[str, Any],
    counts: Counts,
    inputs: set[str],
) -> None:
    """Which state each file is in; temporary files are made to look old, as they would be soon."""
    for file, read in verb.outputs.items():
        try:
            found = read(folder / file)
        except Exception as error:
            counts.broken.append(f"{file}: {error!r}")
            continue
        if found == old[file]:
            counts.old += 1
        elif found == new[file]:
            counts.new += 1
        else:
            counts.broken.append(f"{file}: neither the old one nor the new one")
    others = set(os.listdir(folder)) - inputs - set(verb.outputs)
    counts.broken.extend(sorted(others - set(temporaries(folder))))
    fresh = [folder / name for name in temporaries(folder)]
    counts.left += sum(time.time() - path.stat().st_mtime < 3000 for path in fresh)
    for path in fresh:
        os.utime(path, (time.time() - 3600,) * 2)
