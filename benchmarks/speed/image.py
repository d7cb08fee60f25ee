"""Segmentation against scikit-image, one thread: seconds, memory, the same labels by two threads.

They solve different problems: slic and felzenszwalb make many small regions by place and contrast,
a region graph with normalised cuts joins slic's, Mercer cuts the graph of all pixels.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import calibrate, data_folder, machine, timed, write
from benchmarks.papers.paper_002_segments import enlarged
from mercer.image import Segmenter
from mercer.metrics import boundary_f

K, RADIUS = 4, 50.0
SIZES = {"481×321": (481, 321), "1024×768": (1024, 768), "4000×3000": (4000, 3000)}
MOST_SECONDS = {"481×321": 0.060, "1024×768": 0.150, "4000×3000": 2.5}
MOST_BYTES = 1.5e9
IMAGES = (
    *("119082", "145086", "147091", "167062", "182053"),
    *("196073", "295087", "3096", "42049", "62096"),
)
LARGE = "145086"
GRAIN = 3.0  # noise on enlarged images, which would be too smooth otherwise

MEMORY = """
import resource, sys
import numpy as np
from mercer.image import segment
image = np.load(sys.argv[1])
segment(np.ascontiguousarray(image[:50, :50]), 2, random_state=0)
segment(image, int(sys.argv[2]), radius=float(sys.argv[3]), random_state=0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def run(data: str | None) -> None:
    folder = data_folder(data) / "bsds"
    found: dict[str, Any] = {"machine": machine(), "small": [], "large": [], "peers": []}
    speed = calibrate()["speed_relative_to_reference"]
    for name in IMAGES:
        found["small"].append(_ours(name, enlarged(folder / f"{name}.jpg", SIZES["481×321"])))
    for title in ("1024×768", "4000×3000"):
        found["large"].append(_ours(title, _grainy(folder, SIZES[title]), memory=True))
    write("speed-image", found, _page(found, speed))
    for name in ("3096", "42049", "145086"):
        found["peers"] += _peers(name, folder)
        write("speed-image", found, _page(found, speed))


def _ours(name: str, image: np.ndarray, *, memory: bool = False) -> dict[str, Any]:
    options: dict[str, Any] = {"radius": RADIUS, "random_state": 0}
    one = Segmenter(K, **options)
    fitted, timing = timed(lambda: one.fit(image), repeat=3 if memory else 7)
    two = Segmenter(K, n_jobs=2, **options).fit(image)
    row = {
        "image": name,
        "m": fitted.report_.rank,
        "seconds": timing.best,
        "first": timing.first,
        "stages": {stage.name: stage.cpu_seconds for stage in fitted.report_.stages},
        "same_labels_by_two_threads": bool((fitted.labels_ == two.labels_).all()),
    }
    return row | ({"peak_bytes": _peak(image)} if memory else {})


def _peak(image: np.ndarray) -> int:
    """Of a process that does nothing else: the interpreter and all packages included."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.npy"
        np.save(path, image)
        words = [sys.executable, "-c", MEMORY, str(path), str(K), str(RADIUS)]
        return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def _grainy(folder: Path, size: tuple[int, int]) -> np.ndarray:
    image = enlarged(folder / f"{LARGE}.jpg", size)
    noise = np.random.default_rng(0).normal(0, GRAIN, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def _peers(name: str, folder: Path) -> list[dict[str, Any]]:
    from skimage import graph, segmentation

    image = enlarged(folder / f"{name}.jpg", SIZES["481×321"])
    with np.load(folder / f"{name}.npz") as file:
        humans = file["segs"]

    def cut() -> np.ndarray:
        regions = segmentation.slic(image, n_segments=200, compactness=10, start_label=1)
        edges = graph.rag_mean_color(image, regions, mode="similarity")
        return graph.cut_normalized(regions, edges)

    methods: dict[str, Callable[[], np.ndarray]] = {
        "Mercer, K = 4": lambda: Segmenter(K, random_state=0).fit_predict(image),
        "slic, 200 regions": lambda: segmentation.slic(image, n_segments=200, start_label=1),
        "slic, 4 regions": lambda: segmentation.slic(image, n_segments=K, start_label=1),
        "felzenszwalb, scale 300": lambda: segmentation.felzenszwalb(
            image, scale=300, sigma=0.8, min_size=77
        ),
        "slic + region graph + cut_normalized": cut,
    }
    rows = []
    for method, work in methods.items():
        labels, timing = timed(work, repeat=3)
        rows.append(
            {
                "image": name,
                "method": method,
                "seconds": timing.best,
                "regions": len(np.unique(labels)),
                "loose": boundary_f(labels, humans, matching="loose"),
                "strict": boundary_f(labels, humans),
            }
        )
    return rows


def _page(found: dict[str, Any], speed: float) -> str:
    worst = max(row["seconds"] for row in found["small"])
    measured = {"481×321": worst} | {row["image"]: row["seconds"] for row in found["large"]}
    lines = [
        "# Segmentation: seconds and memory",
        "",
        f"RGB and place, radius {RADIUS:g}, {K} segments, clean-up included; one thread, CPU "
        f"seconds after compilation, the least of a few runs, times {speed:.2f} (the speed of this "
        "machine relative to the reference).",
        "",
        "| what | wanted | measured | holds |",
        "|---|---|---|---|",
    ]
    for title, seconds in measured.items():
        scaled, most = speed * seconds, MOST_SECONDS[title]
        holds = "yes" if scaled <= most else "**no**"
        which = f"{title}, the slowest of {len(found['small'])}" if title == "481×321" else title
        lines.append(f"| {which} | ≤ {most:.3f} s | {scaled:.3f} s | {holds} |")
    peak = found["large"][-1]["peak_bytes"]
    holds = "yes" if peak <= MOST_BYTES else "**no**"
    lines.append(f"| 4000×3000, peak of the process | ≤ 1.5 GB | {peak / 1e9:.2f} GB | {holds} |")
    same = all(row["same_labels_by_two_threads"] for row in found["small"] + found["large"])
    lines.append(f"| labels by two threads | the same | | {'yes' if same else '**no**'} |")
    lines += [
        "",
        "| image | representatives | seconds | of it: blocks, regions |",
        "|---|---|---|---|",
    ]
    for row in found["small"] + found["large"]:
        blocks, regions = row["stages"]["blocks"], row["stages"]["regions"]
        lines.append(
            f"| {row['image']} | {row['m']} | {row['seconds']:.3f} | {blocks:.3f}, {regions:.3f} |"
        )
    if found["peers"]:
        lines += [
            "",
            "## Beside scikit-image, 481×321",
            "",
            "Different problems: slic and felzenszwalb make many small regions by place and "
            "contrast (oversegmentation), cut_normalized joins regions of slic, Mercer cuts the "
            "graph of all pixels into K parts. F is of boundaries against people.",
            "",
            "| image | method | regions | F loose | F strict | CPU s |",
            "|---|---|---|---|---|---|",
        ]
        for row in found["peers"]:
            lines.append(
                f"| {row['image']} | {row['method']} | {row['regions']} | {row['loose']:.2f} "
                f"| {row['strict']:.2f} | {row['seconds']:.3f} |"
            )
    return "\n".join(lines)
