"""The process of `fuzzing.Reader`: reads what it is told to, and tells what became of it.

Each line on standard input is a verb and its argument as JSON, each line on standard output the
answer. A file that makes Mercer run, write or remove something ends the process with code 66.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np

from mercer.io import load, read_labels
from mercer.rows import as_source

FORBIDDEN = (
    *("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect"),
    *("os.remove", "os.rename", "os.mkdir"),
)
MOST = 6 * 2**30  # bytes of address space: a bomb must not take the machine along


class Watch:
    """An audit hook that is on while a file is read."""

    def __init__(self) -> None:
        self.is_on = False
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & 3
        is_own = "__pycache__" in str(arguments)  # where numba keeps its loops
        if (writes or event.startswith(FORBIDDEN)) and not is_own:
            os.write(2, f"forbidden {event} {arguments}\n".encode())
            os._exit(66)


def rows(path: str) -> list[int]:
    source = as_source(path)
    n_read = sum(len(source.read(i, i + 8192)) for i in range(0, source.n_rows, 8192))
    assert n_read == source.n_rows
    return [source.n_rows, source.n_features]


def model(path: str) -> Any:
    """What the model says of the rows beside it, if they are of its kind."""
    estimator = load(path, max_memory="50MB")
    X = np.load(os.environ["ROWS"])
    if getattr(estimator, "n_features_in_", X.shape[1]) != X.shape[1]:
        return None
    answers = estimator.predict(X) if hasattr(estimator, "predict") else estimator.transform(X)
    return np.round(answers, 9).tolist()


def loaded(path: str) -> str:
    """Loading alone, whatever the model's rows are like."""
    return type(load(path, max_memory="50MB")).__name__


def image(path: str) -> list[int]:
    from mercer.image import read_image

    return list(read_image(path)[0].shape)


def labels(path: str) -> int:
    return len(read_labels(path))


def command(arguments: list[str]) -> tuple[int, str, str]:
    """The command line: exit code, standard output, standard error."""
    from mercer.cli.app import app

    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


VERBS = {verb.__name__: verb for verb in (rows, model, loaded, image, labels, command)}


def begin_anew() -> int:
    """Forget the peak; the bytes that are resident now."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def peak() -> int:
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["VmHWM"].split()[0]) * 1024


def answer(watch: Watch, verb: str, argument: Any) -> dict[str, Any]:
    before, start = begin_anew(), time.process_time()
    watch.is_on = verb != "command"
    try:
        told = {"value": VERBS[verb](argument)}
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        told = {"error": kinds, "words": str(error)[:5000]}
    watch.is_on = False
    return {**told, "seconds": time.process_time() - start, "memory": max(peak() - before, 0)}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed
    watch = Watch()
    for line in sys.stdin:
        answers.write(json.dumps(answer(watch, *json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
