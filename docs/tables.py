"""Tables of the guide and the README, made of the numbers in benchmarks/results.

`python docs/tables.py` writes them; a test sees that they are current.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
README = HERE.parent / "README.md"
MARKS = ("<!-- measured: made by docs/tables.py -->", "<!-- end of measured -->")

PEERS = {  # names in speed-spectral.json: names in the table
    "KMeans": "k-means",
    "Nystroem + KMeans": "Nystroem + k-means",
    "sklearn Spectral (k-NN)": "scikit-learn's SpectralClustering",
    "Mercer": "`SpectralClustering`",
    "Mercer, ensemble=20": "`… ensemble=20`",
}
ALL_ROWS = {  # names in 003.json: names in the table
    "k-means": "k-means",
    "KK_RS": "`KernelKMeans`, Nyström",
    "KK_RF": "`KernelKMeans`, Fourier",
    "SC_Nys": "spectral, Nyström",
    "SC_RF": "spectral, Fourier",
    "SC_RB": "spectral, binning",
    "SC_LSC": "spectral, landmarks",
}


def main() -> None:
    """Write every table."""
    for name, make in TABLES.items():
        (HERE / "_tables" / name).write_text(make())
    README.write_text(with_measured(README.read_text()))


def results(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


# Clustering by the data set ----------------------------------------------------------------------


def peers() -> str:
    """NMI and CPU seconds of the default method beside its peers, mean over seeds."""
    sets = results("speed-spectral")["sets"]
    rows = []
    for name, measured in sets.items():
        n, d = measured["shape"]
        runs = [measured["methods"].get(method, []) for method in PEERS]
        rows.append(_scored(f"{name} {n:,} × {d}", [_means(part) for part in runs]))
    return table(["data", *PEERS.values()], rows)


def all_rows() -> str:
    """NMI and CPU seconds of kernels between all rows, from paper 003's comparison."""
    rows = []
    for name, measured in results("003")["tables"].items():
        n, d = measured["shape"]
        runs = [measured["methods"].get(method) for method in ALL_ROWS]
        scores = [run and (run["normalized_mutual_info"], run["seconds"]) for run in runs]
        rows.append(_scored(f"{name} {n:,} × {d}, rank {measured['rank']:,}", scores))
    return table(["data", *ALL_ROWS.values()], rows)


def _means(runs: Sequence[dict[str, float]]) -> tuple[float, float] | None:
    if not runs:
        return None
    return fmean(r["normalized_mutual_info"] for r in runs), fmean(r["seconds"] for r in runs)


def _scored(name: str, scores: Iterable[tuple[float, float] | None]) -> list[str]:
    """A row: NMI and seconds of each method, the best NMI in bold if it is any good."""
    scores = list(scores)
    best = max(0.01, *(score[0] for score in scores if score))
    cells = []
    for score in scores:
        if score is None:
            cells.append("–")
            continue
        nmi = f"{score[0]:.3f}"
        cells.append(f"{f'**{nmi}**' if score[0] == best else nmi}, {score[1]:.2g}\u00a0s")
    return [name, *cells]


# Which method ------------------------------------------------------------------------------------


def choice() -> str:
    """What to use when, and the numbers that say so."""
    return table(["you have", "use", "measured"], [list(row) for row in _choices()])


def _choices() -> Iterable[tuple[str, str, str]]:
    spectral, binning = results("speed-spectral"), results("003")["tables"]
    mnist = {name: _means(runs) for name, runs in spectral["sets"]["mnist"]["methods"].items()}
    letter = {name: _means(runs) for name, runs in spectral["sets"]["letter"]["methods"].items()}
    covtype = {
        name: _means(runs) for name, runs in spectral["sets"]["covtype part"]["methods"].items()
    }
    rings = max((run for run in spectral["large"] if run["data"] == "rings"), key=_rows)
    kmeans, tuning = results("speed-kmeans"), results("004")["tuning"]
    searched = min(tuning["rows"], key=lambda row: row["wall"])
    memory = max(results("speed-memory")["runs"], key=_rows)
    images = [row for row in results("speed-image")["large"] if row["method"] == "contours"]
    image = images[-1]
    features = next(
        part
        for part in results("speed-features")["bars"]
        if (part["dtype"], part["approximation"]) == ("float32", "cholesky")
    )
    stream, equal = (results("speed-stream")[name] for name in ("million", "equal"))
    engines = {(r["pass"].partition(",")[0], r["engine"]): r["wall"]
               for r in results("scale-engines")["runs"]}  # fmt: skip
    workers = engines["full sweep", "Dask × 1"] / engines["full sweep", "Dask × 2"]
    kpca = results("speed-kpca")["methods"]
    faster = kpca["arpack"]["fit"]["best"] / kpca["quantized"]["fit"]["best"]
    yield (
        "clusters of any shape, up to 10⁷ rows and more",
        "`SpectralClustering(k)`",
        f"MNIST: NMI {mnist['Mercer'][0]:.3f} in {mnist['Mercer'][1]:.1f} s, k-means "
        f"{mnist['KMeans'][0]:.3f} in {mnist['KMeans'][1]:.1f} s; {rings['rows']:,} rows of "
        f"three rings: ARI {rings['adjusted_rand']:.2f} in {rings['seconds']:.1f} s "
        "([speed-spectral](results/speed-spectral.md))",
    )
    ensemble = "Mercer, ensemble=20"
    yield (
        "many or vague clusters, and time for several passes",
        "`SpectralClustering(k, ensemble=20)`",
        f"MNIST: NMI {mnist[ensemble][0]:.3f} in {mnist[ensemble][1]:.1f} s; letter, 26 clusters: "
        f"{letter[ensemble][0]:.3f} against {letter['Mercer'][0]:.3f} alone and "
        f"{letter['KMeans'][0]:.3f} of k-means ([speed-spectral](results/speed-spectral.md))",
    )
    yield (
        "clusters that k-means nearly finds: roundish, of different density or weight",
        "`KernelKMeans(k)`",
        f"MNIST: NMI {kmeans['nmi']['KernelKMeans(10, rank=256)']:.3f} against "
        f"{kmeans['nmi']['sklearn KMeans(10, n_init=1)']:.3f} of k-means in "
        f"{kmeans['ratio']:.2f} of its time; pendigits, Nyström: "
        f"{binning['pendigits']['methods']['KK_RS']['normalized_mutual_info']:.3f} against "
        f"{binning['pendigits']['methods']['k-means']['normalized_mutual_info']:.3f} "
        "([speed-kmeans](results/speed-kmeans.md), [003](results/003.md))",
    )
    yield (
        "an unknown number of clusters or bandwidth",
        '`KernelSpectralClustering("auto")`, `mercer tune`',
        f"{searched['pairs']} pairs of K and bandwidth compared in {searched['wall']:.1f} s by "
        f"{searched['threads']} threads, the paper's own program "
        f"{tuning['reference_program_seconds']} s ([004](results/004.md))",
    )
    yield (
        "rows whose sum of differences counts (a Laplacian between all rows)",
        '`SpectralClustering(k, approximation="binning")`',
        f"letter: NMI {_nmi(binning, 'letter', 'SC_RB')} against "
        f"{_nmi(binning, 'letter', 'k-means')} of k-means, but landmarks have "
        f"{_nmi(binning, 'letter', 'SC_LSC')}; MNIST: {_nmi(binning, 'mnist', 'SC_RB')} "
        f"against {_nmi(binning, 'mnist', 'k-means')} "
        "([003](results/003.md))",
    )
    yield (
        "a kernel of your own; text beside numbers",
        '`SpectralClustering(k, kernel=…, approximation="cholesky")`',
        "takes any kernel, as do Nyström and the exact matrix; costs n · rank²",
    )
    yield (
        "a graph: affinities of items",
        '`SpectralClustering(k, kernel="precomputed")`',
        "the matrix as it is, dense or sparse",
    )
    yield (
        "a file larger than memory",
        'any of them with `max_memory="500MB"`',
        f"`KernelKMeans`, {memory['rows']:,} × 16 rows: {memory['peak'] / 1e6:.0f} MB for the "
        f"whole process, {memory['us_per_row']:.1f} µs per row "
        "([speed-memory](results/speed-memory.md))",
    )
    yield (
        "a stream of rows; hundreds of clusters of very unequal sizes",
        "`StreamingKernelKMeans(k).partial_fit(batch)`",
        f"{stream['rows']:,} × 64 rows, 1,000 clusters of zipf sizes: NMI {stream['nmi']:.3f} in "
        f"{stream['cpu_seconds'] / 60:.1f} minutes, MiniBatchKMeans {stream['peer_nmi']:.3f} in "
        f"{stream['peer_cpu_seconds'] / 60:.1f}; of one size and overlapping "
        f"{equal['nmi']:.3f} against {equal['peer_nmi']:.3f} "
        "([speed-stream](results/speed-stream.md))",
    )
    yield (
        "more rows than one machine should take",
        "any of them inside `with mercer.on(client):`",
        f"the same labels from a Dask cluster; a pass over 10⁷ rows {workers:.1f} times faster by "
        "two workers than by one ([scale-engines](results/scale-engines.md))",
    )
    yield (
        "an image",
        "`mercer.image.segment(image)`",
        f"{image['image']} pixels: {image['seconds']:.1f} s, {image['peak_bytes'] / 1e9:.1f} GB "
        "([speed-image](results/speed-image.md))",
    )
    yield (
        "a linear method that should see more",
        "`KernelFeatures(rank=256)`",
        f"{features['error_ratio']:.2f} of Nystroem's error in {features['time_ratio']:.2f} of its "
        "time, float32 ([speed-features](results/speed-features.md))",
    )
    yield (
        "kernel principal components",
        '`KernelPCA(3)`, or `approximation="quantized"` where time counts',
        f"quantised: error {kpca['quantized']['errors'][0]:.0e} of the scores, fit {faster:.1f} "
        "times faster than arpack on 2,000 rows ([speed-kpca](results/speed-kpca.md))",
    )
    yield (
        "measurements on which k-means is already best",
        "`sklearn.cluster.KMeans`",
        f"covtype: NMI {covtype['KMeans'][0]:.3f}, `SpectralClustering` {covtype['Mercer'][0]:.3f} "
        "([speed-spectral](results/speed-spectral.md))",
    )


def _rows(run: dict[str, Any]) -> int:
    return int(run["rows"])


def _nmi(tables: Any, data: str, method: str) -> str:
    return f"{tables[data]['methods'][method]['normalized_mutual_info']:.3f}"


# README ------------------------------------------------------------------------------------------


def measured() -> str:
    """The README's table: one line per method, with a link to its results."""
    rows = [
        [use, words.replace("](results/", "](benchmarks/results/")]
        for _, use, words in _choices()
        if "](results/" in words
    ]
    return table(["method", "measured"], rows)


def with_measured(readme: str) -> str:
    """The README with its table of numbers as the results have them."""
    start, end = MARKS
    before, _, rest = readme.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n{measured()}{end}{after}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


TABLES: dict[str, Callable[[], str]] = {
    "choice.md": choice,
    "peers.md": peers,
    "all-rows.md": all_rows,
}

if __name__ == "__main__":
    main()
