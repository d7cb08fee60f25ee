"""Segmentation, one thread: seconds, memory, the same labels by two threads.

The tree of regions (contours) and the fast cut of all pixels (quantized), beside scikit-image.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import calibrate, data_folder, machine, timed, write
from benchmarks.papers import contours
from benchmarks.papers.paper_002_segments import enlarged
from mercer.image import Segmenter

SIZES = {"481×321": (481, 321), "1024×768": (1024, 768), "4000×3000": (4000, 3000)}
SETTINGS: dict[str, dict[str, Any]] = {
    "contours": {"n_segments": "auto", "method": "contours"},
    "quantized": {"n_segments": 4, "method": "quantized", "radius": 50.0, "random_state": 0},
}
MOST_SECONDS = {
    "contours": {"481×321": 0.25, "1024×768": 0.6, "4000×3000": 2.0},
    "quantized": {"481×321": 0.05, "1024×768": 0.15, "4000×3000": 2.5},
}
MOST_BYTES = 1.5e9
IMAGES = (
    *("119082", "145086", "147091", "167062", "182053"),
    *("196073", "295087", "3096", "42049", "62096"),
)
LARGE = "145086"
GRAIN = 3.0  # noise on enlarged images, which would be too smooth otherwise

MEMORY = """
import json, resource, sys
import numpy as np
from mercer.image import Segmenter
image, options = np.load(sys.argv[1]), json.loads(sys.argv[2])
Segmenter(**options).fit(np.ascontiguousarray(image[:50, :50]))
Segmenter(**options).fit(image)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def run(data: str | None) -> None:
    folder = data_folder(data)
    found: dict[str, Any] = {"machine": machine(), "small": [], "large": [], "peers": {}}
    speed = calibrate()["speed_relative_to_reference"]
    for method in SETTINGS:
        for name in IMAGES:
            image = enlarged(folder / "bsds" / f"{name}.jpg", SIZES["481×321"])
            found["small"].append(_ours(method, name, image))
        for title in ("1024×768", "4000×3000"):
            image = _grainy(folder / "bsds", SIZES[title])
            found["large"].append(_ours(method, title, image, memory=True))
        write("speed-image", found, _page(found, speed))
    found["peers"] = contours.measure(folder, IMAGES)
    write("speed-image", found, _page(found, speed))


def _ours(method: str, name: str, image: np.ndarray, *, memory: bool = False) -> dict[str, Any]:
    one = Segmenter(**SETTINGS[method])
    fitted, timing = timed(lambda: one.fit(image), repeat=3 if memory else 7)
    two = Segmenter(n_jobs=2, **SETTINGS[method]).fit(image)
    row = {
        "method": method,
        "image": name,
        "m": fitted.report_.rank,
        "seconds": timing.best,
        "first": timing.first,
        "stages": {stage.name: stage.cpu_seconds for stage in fitted.report_.stages},
        "same_labels_by_two_threads": bool((fitted.labels_ == two.labels_).all()),
    }
    return row | ({"peak_bytes": _peak(method, image)} if memory else {})


def _peak(method: str, image: np.ndarray) -> int:
    """Of a process that does nothing else: the interpreter and all packages included."""
    import json
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.npy"
        np.save(path, image)
        words = [sys.executable, "-c", MEMORY, str(path), json.dumps(SETTINGS[method])]
        return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def _grainy(folder: Path, size: tuple[int, int]) -> np.ndarray:
    image = enlarged(folder / f"{LARGE}.jpg", size)
    noise = np.random.default_rng(0).normal(0, GRAIN, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def _page(found: dict[str, Any], speed: float) -> str:
    lines = [
        "# Segmentation: seconds and memory",
        "",
        'contours: the tree of regions, n_segments="auto"; quantized: RGB and place, radius 50, '
        "4 segments. One thread, CPU seconds after compilation, the least of a few runs, times "
        f"{speed:.2f} (the speed of this machine relative to the reference).",
        "",
        "| method | what | wanted | measured | holds |",
        "|---|---|---|---|---|",
    ]
    for method in dict.fromkeys(row["method"] for row in found["large"]):
        small = [row for row in found["small"] if row["method"] == method]
        large = [row for row in found["large"] if row["method"] == method]
        measured = {"481×321": float(np.mean([row["seconds"] for row in small]))}
        measured |= {row["image"]: row["seconds"] for row in large}
        for title, seconds in measured.items():
            scaled, most = speed * seconds, MOST_SECONDS[method][title]
            holds = "yes" if scaled <= most else "**no**"
            which = title
            if title == "481×321":
                slowest = speed * max(row["seconds"] for row in small)
                which = f"{title}, mean of {len(small)} (the slowest: {slowest:.3f} s)"
            lines.append(f"| {method} | {which} | ≤ {most:.3f} s | {scaled:.3f} s | {holds} |")
        peak = large[-1]["peak_bytes"]
        holds = "yes" if peak <= MOST_BYTES else "**no**"
        memory = f"≤ 1.5 GB | {peak / 1e9:.2f} GB | {holds}"
        lines.append(f"| {method} | 4000×3000, peak of the process | {memory} |")
        same = all(row["same_labels_by_two_threads"] for row in small + large)
        lines.append(
            f"| {method} | labels by two threads | the same | | {'yes' if same else '**no**'} |"
        )
    lines += [
        "",
        "| method | image | regions or blocks | seconds | stages |",
        "|---|---|---|---|---|",
    ]
    for row in found["small"] + found["large"]:
        stages = ", ".join(f"{name} {s:.3f}" for name, s in row["stages"].items() if s >= 0.0005)
        lines.append(
            f"| {row['method']} | {row['image']} | {row['m']} | {row['seconds']:.3f} | {stages} |"
        )
    if found["peers"]:
        lines += ["", *contours.table(found["peers"])]
    return "\n".join(lines)
