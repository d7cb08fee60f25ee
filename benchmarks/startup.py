"""How soon the first result is there: what a first call compiles, and CPU seconds of new processes.

    python -m benchmarks.startup                  every entry point, and the table of the bars
    python -m benchmarks.startup --before FILE    the same, beside those of results/startup.json
    python -m benchmarks.startup --list spectral  functions × signatures × seconds of one of them

A **cold** process finds an empty NUMBA_CACHE_DIR, a **warm** one what an earlier process left
there. Seconds of a fit are CPU seconds of the call, after the estimator and numba are imported,
which is measured apart; `mercer …` is a whole process. Modules are compiled to bytecode before, as
pip does when it installs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine, record, write

REPEAT = 3  # processes of each kind; the least CPU time counts
ROWS = 1000


def _rows() -> np.ndarray:
    from mercer.datasets import rings

    return rings(ROWS, random_state=0)[0]


def picture(seed: int) -> np.ndarray:
    """Four discs on a ramp, with noise: 240 × 320 pixels of three channels."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:240, :320]
    image = np.stack([x / 320, y / 240, 0 * x + 0.5], axis=-1)
    for cy, cx in ((60, 80), (60, 240), (180, 80), (180, 240)):
        image[(y - cy) ** 2 + (x - cx) ** 2 < 1600] = rng.random(3)
    return (255 * np.clip(image + 0.02 * rng.normal(size=image.shape), 0, 1)).astype(np.uint8)


def fit_spectral() -> Callable[[], Any]:
    from mercer import SpectralClustering

    X = _rows()
    return lambda: SpectralClustering(3, random_state=0).fit(X).labels_


def fit_kmeans() -> Callable[[], Any]:
    from mercer import KernelKMeans

    X = _rows()
    return lambda: KernelKMeans(3, random_state=0).fit(X).labels_


def fit_ksc() -> Callable[[], Any]:
    from mercer import KernelSpectralClustering

    X = _rows()
    return lambda: KernelSpectralClustering(3, random_state=0).fit(X).labels_


def fit_stream() -> Callable[[], Any]:
    from mercer import StreamingKernelKMeans

    X = _rows()
    return lambda: StreamingKernelKMeans(3, random_state=0).fit(X).labels_


def fit_segment() -> Callable[[], Any]:
    from mercer.image import segment

    image = picture(0)
    return lambda: segment(image)


def fit_kpca() -> Callable[[], Any]:
    from mercer import KernelPCA

    X = _rows()
    return lambda: KernelPCA(3, random_state=0).fit_transform(X)


def fit_features() -> Callable[[], Any]:
    from mercer import KernelFeatures

    X = _rows()
    return lambda: KernelFeatures(random_state=0).fit_transform(X)


def fit_larger() -> Callable[[], Any]:
    """So many rows that every loop is worth compiling."""
    from mercer import SpectralClustering

    X = np.random.default_rng(0).normal(size=(20_000, 8))
    X[:, 0] += 6 * (np.arange(len(X)) % 5)
    return lambda: SpectralClustering(5, random_state=0).fit(X).labels_


CALLS: dict[str, tuple[str, Callable[[], Callable[[], Any]], float | None, float | None]] = {
    # name: (what is shown, what makes the call, cold bar, warm bar)
    "spectral": ("`SpectralClustering(3).fit`, 1,000 × 2", fit_spectral, 3.0, 0.5),
    "kmeans": ("`KernelKMeans(3).fit`, 1,000 × 2", fit_kmeans, 3.0, None),
    "ksc": ("`KernelSpectralClustering(3).fit`, 1,000 × 2", fit_ksc, 3.5, None),
    "stream": ("`StreamingKernelKMeans(3).fit`, 1,000 × 2", fit_stream, 4.0, None),
    "segment": ("`segment(image)`, 240 × 320", fit_segment, 3.5, None),
    "kpca": ("`KernelPCA(3).fit_transform`, 1,000 × 2", fit_kpca, None, None),
    "features": ("`KernelFeatures().fit_transform`, 1,000 × 2", fit_features, None, None),
    "larger": ("`SpectralClustering(5).fit`, 20,000 × 8", fit_larger, None, None),
}


class Compiled:
    """What numba compiled, as a list of (function, signature, seconds, depth)."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._open: list[float] = []

    def on_start(self, event: Any) -> None:
        self._open.append(time.process_time())

    def on_end(self, event: Any) -> None:
        seconds = time.process_time() - self._open.pop()
        function = event.data["dispatcher"].py_func
        self.found.append(
            {
                "function": f"{function.__module__}.{function.__qualname__}",
                "signature": str(event.data["args"]),
                "seconds": seconds,
                "inside": len(self._open),
            }
        )


@contextmanager
def watching() -> Iterator[Compiled]:
    from numba.core import event

    watched = Compiled()

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            watched.on_start(event)

        def on_end(self, event: Any) -> None:
            watched.on_end(event)

    with event.install_listener("numba:compile", Listener()):
        yield watched


def child(name: str) -> None:
    """One call in this process; its numbers as JSON."""
    start = time.process_time()
    call = CALLS[name][1]()
    imported = time.process_time()
    import numba  # noqa: F401

    numba_imported = time.process_time()
    with watching() as compiled:
        begun = time.process_time()
        call()
        ended = time.process_time()
    result = {
        "import": imported - start,
        "numba": numba_imported - imported,
        "fit": ended - begun,
        "compiled": compiled.found,
    }
    print("RESULT " + json.dumps(result))


def run(command: list[str], cache: str) -> tuple[str, float]:
    """Standard output and CPU seconds of a process with this cache of loops."""
    import resource  # this program is run on Linux and macOS

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an editable install has no bytecode but its own
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_child(name: str, cache: str) -> dict[str, Any]:
    out, seconds = run([sys.executable, "-m", "benchmarks.startup", "--child", name], cache)
    result = json.loads(out.partition("RESULT ")[2])
    return {**result, "process": seconds}


def measure_call(name: str, repeat: int) -> dict[str, Any]:
    """Cold and warm processes of one entry point."""
    cold, warm = [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(run_child(name, cache))
            warm.append(run_child(name, cache))
    ours = [c for c in cold[0]["compiled"] if c["function"].startswith("mercer.")]
    return {
        "cold": min(c["fit"] for c in cold),
        "warm": min(w["fit"] for w in warm),
        "import": min(w["import"] for w in warm),
        "numba": min(w["numba"] for w in warm),
        "functions": len({c["function"] for c in ours}),
        "signatures": len(ours),
        "theirs": len(cold[0]["compiled"]) - len(ours),
    }


def measure_commands(repeat: int) -> dict[str, Any]:
    """`mercer --help`, `mercer predict` and imports, as whole processes."""
    mercer = [sys.executable, "-m", "mercer"]
    with tempfile.TemporaryDirectory() as folder:
        rows, model = Path(folder, "rows.npy"), Path(folder, "rows.mercer")
        labels = Path(folder, "labels.npy")
        np.save(rows, _rows())
        cache = str(Path(folder, "cache"))
        run([*mercer, "cluster", str(rows), "-k", "3", "--model", str(model), "--seed", "0"], cache)
        predict = [*mercer, "predict", str(model), str(rows), "--out", str(labels)]
        run(predict, cache)
        python = [sys.executable, "-c"]
        whole = {
            "help": [*mercer, "--help"],
            "predict": predict,
            "import sklearn.cluster": [*python, "import sklearn.cluster"],
            "above": [*python, ABOVE],
        }
        runs = [
            {name: run(command, cache) for name, command in whole.items()} for _ in range(repeat)
        ]
    least = {name: min(one[name][1] for one in runs) for name in whole}
    return {**least, "above": min(float(one["above"][0]) for one in runs)}


ABOVE = """
import sklearn.cluster, time
start = time.process_time()
from mercer import SpectralClustering
print(time.process_time() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--list", choices=CALLS, help="what one entry point compiles")
    parser.add_argument("--only", choices=CALLS, nargs="*", help="these entry points alone")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="processes of each kind")
    parser.add_argument("--before", type=Path, help="earlier numbers, to be shown beside")
    parser.add_argument("--out", type=Path, help="write the numbers here, and no page")
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    if given.list:
        with tempfile.TemporaryDirectory() as cache:
            show_list(run_child(given.list, cache))
        return
    found: dict[str, Any] = {name: measure_call(name, given.repeat) for name in given.only or CALLS}
    if not given.only:
        found["commands"] = measure_commands(max(given.repeat, 5))
    result = {"machine": machine(), "now": found}
    if given.before:
        earlier = json.loads(given.before.read_text())
        result["before"] = earlier.get("before", earlier)  # a page keeps its own
    if given.out or given.only:
        text = json.dumps(result, indent=1)
        print(text)
        if given.out:
            given.out.write_text(text + "\n")
        return
    write("startup", result, page(result))


def show_list(result: dict[str, Any]) -> None:
    """Ours with what each one pulled in, the dearest first."""
    parts = ", ".join(f"{part} {result[part]:.2f}" for part in ("fit", "import", "numba"))
    print(f"CPU seconds: {parts}")
    outer = [c for c in result["compiled"] if c["inside"] == 0]
    print(f"{sum(c['seconds'] for c in outer):.2f} s of compiling in {len(outer)} calls")
    print(f"{len(result['compiled']) - len(outer)} compilations inside these")
    for c in sorted(result["compiled"], key=lambda c: -c["seconds"]):
        if c["function"].startswith("mercer.") or c["seconds"] > 0.05:
            print(f"{c['seconds']:7.3f}  {'  ' * c['inside']}{c['function']}{c['signature'][:150]}")


def page(result: dict[str, Any]) -> str:
    """The table of the bars, before and now."""
    now, before = result["now"], result.get("before", {}).get("now", {})
    lines = [
        "# How soon the first result is there",
        "",
        "CPU seconds of new processes, the least of a few: **cold** with an empty cache of "
        "compiled loops, **warm** with a full one. Of a fit: the call, after the estimator and "
        "numba are imported; of a command: the whole process. Compiled are functions × signatures "
        "of Mercer in a cold process, and in brackets numba's own that they need.",
        "",
        "| first call | cold: bar | before | now | warm: bar | before | now | compiled: before "
        "| now |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (title, _, cold_bar, warm_bar) in CALLS.items():
        old, new = before.get(name), now[name]
        cells = [
            *(title, _bar(cold_bar), _seconds(old, "cold"), _seconds(new, "cold")),
            *(_bar(warm_bar), _seconds(old, "warm"), _seconds(new, "warm")),
            *(_compiled(old), _compiled(new)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| process, warm | bar | before | now |", "|---|---|---|---|"]
    for title, bar, seconds in COMMANDS:
        old = before.get("commands")
        shown = "–" if old is None else f"{seconds(old):.2f}"
        lines.append(f"| {title} | {bar} | {shown} | {seconds(now['commands']):.2f} |")
    machines = [result["machine"]]
    if "before" in result:
        machines.insert(0, result["before"]["machine"])
    lines += ["", *(_about(machine) for machine in machines), "", *result.get("notes", [])]
    return "\n".join(lines)


COMMANDS: list[tuple[str, str, Callable[[dict[str, float]], float]]] = [
    ("`mercer --help`", "≤ 0.5", lambda c: c["help"]),
    ("`mercer predict`, 1,000 × 2", "≤ 2.5", lambda c: c["predict"]),
    (
        "`from mercer import SpectralClustering`, above `import sklearn.cluster`",
        "≤ 0.1",
        lambda c: c["above"] if "above" in c else c["import mercer"] - c["import sklearn.cluster"],
    ),
]


def _bar(bar: float | None) -> str:
    return "–" if bar is None else f"≤ {bar:.1f}"


def _seconds(found: dict[str, Any] | None, kind: str) -> str:
    return "–" if found is None else f"{found[kind]:.2f}"


def _compiled(found: dict[str, Any] | None) -> str:
    if found is None:
        return "–"
    return f"{found['functions']} × {found['signatures']} ({found['theirs']})"


def _about(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    speed = machine["calibration"]["speed_relative_to_reference"]
    return (
        f"Commit {machine['commit']}, {machine['date']}: {machine['processor']}, "
        f"{machine['cores']} cores, {speed:.2f} of the reference machine's speed, "
        f"Python {machine['python']}, {versions}.\n"
    )


if __name__ == "__main__":
    record()
    main()
