"""Tables of the guide and the README, made of the numbers in benchmarks/results.

`python docs/tables.py` writes them; a test sees that they are current. Numbers of results that are
older than the code they measured get a dagger, and their pages say so on top.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
README = HERE.parent / "README.md"
sys.path.insert(0, str(HERE.parent))

from benchmarks.provenance import mark, stale_results  # noqa: E402

DAGGER = " †"
STALE = "† measured before the current sources; the page of the result says what has changed."
UNLINKED = {  # tables that do not name the result they are made of
    "peers.md": "speed-spectral",
    "all-rows.md": "003",
    "trust.md": "trust",
    "counted.md": "trust",
    "cluster.md": "scale-cloud",
    "streams.md": "speed-stream",
    "streams-000.md": "000",
}
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
STREAMS = {  # names in speed-stream.json: names in the table
    "stream": "`StreamingKernelKMeans`",
    "MiniBatchKMeans": "MiniBatchKMeans",
    "KMeans": "k-means",
    "faiss": "faiss",
}
STREAMS_000 = {  # names in 000.json: names in the table
    "streaming": "`StreamingKernelKMeans`",
    "MiniBatchKMeans": "MiniBatchKMeans",
    "Nyström + k-means": "Nyström + k-means",
    "default SpectralClustering": "`SpectralClustering`, all rows at once",
}
DATA_000 = {
    "cifar10_gist384_STANDIN": "stand-in for CIFAR-10",
    "letter_15500": "letter",
    "mnist": "MNIST",
}


def main() -> None:
    """Write every table, and what is stale beside it."""
    stale = stale_results()
    for name, make in TABLES.items():
        text = with_daggers(make(), stale)
        if UNLINKED.get(name) in stale:
            text += f"\n{STALE}\n"
        (HERE / "_tables" / name).write_text(text)
    README.write_text(with_measured(README.read_text(), stale))
    mark()


def with_daggers(text: str, stale: Iterable[str]) -> str:
    """The text with a dagger behind each link to a result that is stale, and what it means."""
    for name in stale:
        text = re.sub(rf"\[{name}\]\([^)]*{name}\.md\)", rf"\g<0>{DAGGER}", text)
    return f"{text}\n{STALE}\n" if DAGGER in text else text


def without_daggers(text: str) -> str:
    """The text as it is made when nothing is stale."""
    return text.replace(f"\n{STALE}\n", "").replace(DAGGER, "")


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


def streams() -> str:
    """NMI and CPU seconds of streams of many clusters beside k-means in its forms."""
    found = results("speed-stream")
    large = {"very unequal sizes (Zipf)": "million", "equal sizes": "equal"}
    rows = []
    for sizes, name in large.items():
        nmi, seconds, *peer = _stream_means(found[name])
        scores = [(nmi, seconds), tuple(peer), None, None]
        rows.append(_scored(f"1,000,000 rows, 1,000 clusters of {sizes}", scores))
    for family, measured in found["many"].items():
        scores = [measured.get(method) for method in STREAMS]
        rows.append(_scored(f"100,000 rows, 300 clusters, {family}", scores))
    return table(["64 columns", *STREAMS.values()], rows)


def streams_000() -> str:
    """NMI and CPU seconds of the comparison of paper 000."""
    found = results("000")
    rows = []
    for name, measured in {**found["compare"], **found["families"]}.items():
        runs = [measured.get(method) for method in STREAMS_000]
        if runs[0] is not None:
            rows.append(
                _scored(
                    DATA_000.get(name, name), [run and (run["nmi"], run["seconds"]) for run in runs]
                )
            )
    return table(["data, or clusters and their sizes", *STREAMS_000.values()], rows)


def _means(runs: Sequence[dict[str, float]]) -> Any:
    """NMI and seconds, means over seeds; None if the method was not run."""
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
        seconds = f"{score[1]:,.0f}" if score[1] >= 100 else f"{score[1]:.2g}"
        cells.append(f"{f'**{nmi}**' if score[0] == best else nmi}, {seconds}\u00a0s")
    return [name, *cells]


# Which method ------------------------------------------------------------------------------------


def choice() -> str:
    """What to use when, and the numbers that say so."""
    return table(["you have", "use", "measured"], [list(row) for row in _choices()])


def _stream_means(runs: list[dict[str, Any]]) -> list[float]:
    """NMI and CPU seconds of a stream and of MiniBatchKMeans, means over seeds."""
    rows = [(r["nmi"], r["cpu_seconds"], *r["peers"]["MiniBatchKMeans"]) for r in runs]
    return [sum(column) / len(runs) for column in zip(*rows, strict=True)]


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
    stream, equal = (_stream_means(results("speed-stream")[n]) for n in ("million", "equal"))
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
        "many or overlapping clusters, and time for several passes",
        "`SpectralClustering(k, ensemble=20)`",
        f"MNIST: NMI {mnist[ensemble][0]:.3f} in {mnist[ensemble][1]:.1f} s; letter, 26 clusters: "
        f"{letter[ensemble][0]:.3f} against {letter['Mercer'][0]:.3f} for a single graph and "
        f"{letter['KMeans'][0]:.3f} for k-means ([speed-spectral](results/speed-spectral.md))",
    )
    yield (
        "compact clusters that k-means nearly finds, of different density or weight",
        "`KernelKMeans(k)`",
        f"MNIST: NMI {kmeans['nmi']['KernelKMeans(10, rank=256)']:.3f} against "
        f"{kmeans['nmi']['sklearn KMeans(10, n_init=1)']:.3f} for k-means in "
        f"{kmeans['ratio']:.2f} of the time; pendigits, Nyström: "
        f"{binning['pendigits']['methods']['KK_RS']['normalized_mutual_info']:.3f} against "
        f"{binning['pendigits']['methods']['k-means']['normalized_mutual_info']:.3f} "
        "([speed-kmeans](results/speed-kmeans.md), [003](results/003.md))",
    )
    yield (
        "an unknown number of clusters or bandwidth",
        "`mercer tune`",
        f"{searched['pairs']} pairs of K and bandwidth compared in {searched['wall']:.1f} s on "
        f"{searched['threads']} threads; the paper's own program takes "
        f"{tuning['reference_program_seconds']} s ([004](results/004.md))",
    )
    yield (
        "a Laplacian kernel between all rows",
        '`SpectralClustering(k, approximation="binning")`',
        f"letter: NMI {_nmi(binning, 'letter', 'SC_RB')} against "
        f"{_nmi(binning, 'letter', 'k-means')} for k-means and "
        f"{_nmi(binning, 'letter', 'SC_LSC')} for landmarks; "
        f"MNIST: {_nmi(binning, 'mnist', 'SC_RB')} against {_nmi(binning, 'mnist', 'k-means')} "
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
        "the matrix is used as given, dense or sparse",
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
        f"1,000,000 × 64 rows, 1,000 clusters of Zipf-distributed sizes: NMI {stream[0]:.3f} in "
        f"{stream[1] / 60:.1f} minutes, MiniBatchKMeans {stream[2]:.3f} in "
        f"{stream[3] / 60:.1f}; equal sizes, overlapping: "
        f"{equal[0]:.3f} and {equal[2]:.3f} "
        "([speed-stream](results/speed-stream.md))",
    )
    yield (
        "more rows than one machine should process",
        "any of them inside `with mercer.on(client):`",
        f"the same labels from a Dask cluster; a pass over 10⁷ rows is {workers:.1f} times faster "
        "with two workers than with one ([scale-engines](results/scale-engines.md))",
    )
    yield (
        "an image",
        "`mercer.image.segment(image)`",
        f"{image['image']} pixels: {image['seconds']:.1f} s, {image['peak_bytes'] / 1e9:.1f} GB "
        "([speed-image](results/speed-image.md))",
    )
    yield (
        "features for a linear model",
        "`KernelFeatures(rank=256)`",
        f"{features['error_ratio']:.2f} of Nystroem's error in {features['time_ratio']:.2f} of its "
        "time, float32 ([speed-features](results/speed-features.md))",
    )
    yield (
        "kernel principal components",
        '`KernelPCA(3)`, or `approximation="quantized"` for speed',
        f"quantized: relative error {kpca['quantized']['errors'][0]:.0e} in the scores, fit "
        f"{faster:.1f} times faster than arpack on 2,000 rows "
        "([speed-kpca](results/speed-kpca.md))",
    )
    yield (
        "compact clusters that k-means already finds",
        "`sklearn.cluster.KMeans`",
        f"covtype: NMI {covtype['KMeans'][0]:.3f}, `SpectralClustering` {covtype['Mercer'][0]:.3f} "
        "([speed-spectral](results/speed-spectral.md))",
    )


def _rows(run: dict[str, Any]) -> int:
    return int(run["rows"])


def _nmi(tables: Any, data: str, method: str) -> str:
    return f"{tables[data]['methods'][method]['normalized_mutual_info']:.3f}"


# README ------------------------------------------------------------------------------------------

SUITE = {  # names in suite.json: names in the table
    "spectral": "`SpectralClustering`",
    "genie": "Genie",
    "knn-spectral": "scikit-learn's SpectralClustering",
    "hdbscan": "HDBSCAN",
    "mixture": "Gaussian mixture",
    "ward": "Ward",
    "kmeans": "k-means",
}


def against_peers() -> str:
    """The README's table: each task with Mercer's result, and those of its peers, best first."""
    return table(["task", "measure", "Mercer", "peers"], _comparisons())


def _comparisons() -> Iterable[list[str]]:
    suite = results("suite")["runs"]
    groups = {
        "suite": "sets of a public suite, mostly 2-D shapes",
        "tables": "small real tables",
        "real": "larger real sets: letter, pendigits, satimage",
    }
    for group, what in groups.items():
        names = _common_sets(suite, group)
        scores = {method: _suite_mean(suite[method], names, "ari") for method in SUITE}
        yield _compared(
            f"{len(names)} {what} ([suite](benchmarks/results/suite.md))",
            "mean ARI",
            f"{SUITE['spectral']} {scores.pop('spectral'):.3f}",
            {SUITE[method]: (score, None) for method, score in scores.items()},
        )
    mnist = {m: _suite_scores(suite[m], "real: mnist") for m in ("spectral", "kmeans")}
    yield _compared(
        "MNIST, 70,000 × 784 ([suite](benchmarks/results/suite.md))",
        "NMI, CPU time",
        f"{SUITE['spectral']} {_timed(mnist['spectral'])}",
        {"k-means (best of 10 runs)": mnist["kmeans"]},
    )
    data, by_number = next(iter(results("embeddings")["results"].items()))
    runs = {name: (run["nmi"], run["cpu_seconds"]) for name, run in by_number["200"].items()}
    yield _compared(
        f"synthetic embeddings, {data.partition(', ')[2]}, 200 clusters "
        "([embeddings](benchmarks/results/embeddings.md))",
        "NMI, CPU time",
        f'`SpectralClustering(kernel="cosine")` {_timed(runs.pop("Mercer"))}',
        runs,
    )
    stream = _stream_means(results("speed-stream")["million"])
    yield _compared(
        "a stream of 1,000,000 × 64 rows, 1,000 clusters of very unequal sizes "
        "([speed-stream](benchmarks/results/speed-stream.md))",
        "NMI, CPU time",
        f"`StreamingKernelKMeans` {_timed((stream[0], stream[1]))}",
        {"MiniBatchKMeans": (stream[2], stream[3])},
    )
    large = results("speed-spectral")["large"]
    rings = next(run for run in large if run["data"] == "rings" and "kmeans" in run)
    yield _compared(
        f"three rings, {rings['rows']:,} rows "
        "([speed-spectral](benchmarks/results/speed-spectral.md))",
        "ARI, CPU time",
        f"{SUITE['spectral']} {_timed((rings['adjusted_rand'], rings['seconds']))}",
        {"k-means": (rings["kmeans"]["adjusted_rand"], rings["kmeans"]["seconds"])},
    )
    largest = max((run for run in large if run["data"] == "rings"), key=_rows)
    yield _compared(
        f"three rings, {largest['rows']:,} rows "
        "([speed-spectral](benchmarks/results/speed-spectral.md))",
        "ARI, CPU time",
        f"{SUITE['spectral']} {_timed((largest['adjusted_rand'], largest['seconds']))}",
        {},
    )
    contours = results("004-images")["contours"]
    names = {"contours, auto": "`segment(image)`", "felzenszwalb, scale 300": "felzenszwalb"}
    found = {
        names[method]: (fmean(r["F"] for r in contours[method]), _mean_seconds(contours[method]))
        for method in names
    }
    yield _compared(
        "contours of 10 photographs ([004-images](benchmarks/results/004-images.md))",
        "boundary F, CPU time",
        f"`segment(image)` {_timed(found.pop('`segment(image)`'))}",
        found,
    )


def sentences() -> dict[str, bool]:
    """What the README says outside its table, and whether the results bear it out."""
    suite, spectral = results("suite")["runs"], results("speed-spectral")["sets"]
    (largest,) = (
        row["seconds"] for row in results("speed-image")["large"]
        if (row["method"], row["image"]) == ("contours", "4000×3000")
    )  # fmt: skip
    ratios = [
        _means(one["methods"]["Mercer, ensemble=20"])[1] / _means(one["methods"]["Mercer"])[1]
        for one in spectral.values()
        if one["methods"].get("Mercer, ensemble=20")
    ]
    small = _common_sets(suite, "tables")
    mixture, ours = (_suite_mean(suite[m], small, "ari") for m in ("mixture", "spectral"))
    letter = {m: _suite_mean(suite[m], ["real: letter"], "ari") for m in ("genie", "spectral")}
    lost = [spectral[name]["methods"] for name in ("covtype part", "shuttle")]
    return {
        "12 megapixels in about a second": largest <= 1.25,
        "up to 4 times that": round(max(ratios)) <= 4,
        "On small tables whose clusters are ellipses a Gaussian mixture is better": mixture > ours,
        "On letter, Genie is better": letter["genie"] > letter["spectral"],
        "On covtype and shuttle, graphs lose to k-means": all(
            _means(one["KMeans"])[0] > _means(one["Mercer"])[0] for one in lost
        ),
    }


def _compared(
    task: str, measure: str, ours: str, peers: dict[str, tuple[float, float | None]]
) -> list[str]:
    ranked = sorted(peers.items(), key=lambda item: -item[1][0])
    return [task, measure, ours, "; ".join(f"{n} {_timed(s)}" for n, s in ranked) or "not run"]


def _timed(score: tuple[float, float | None]) -> str:
    value, seconds = score
    if seconds is None:
        return f"{value:.3f}"
    return (
        f"{value:.3f} in {seconds:.1f}\u00a0s"
        if seconds < 10
        else f"{value:.3f} in {seconds:.0f}\u00a0s"
    )


def _common_sets(suite: dict[str, Any], group: str) -> list[str]:
    """The sets of a group that every method was run on."""
    run = [{name for name, one in suite[method].items() if "seeds" in one} for method in SUITE]
    return sorted(name for name in set.intersection(*run) if name.startswith(f"{group}:"))


def _suite_mean(runs: dict[str, Any], names: Iterable[str], what: str) -> float:
    return fmean(fmean(run[what] for run in runs[name]["seeds"].values()) for name in names)


def _suite_scores(runs: dict[str, Any], name: str) -> tuple[float, float]:
    return _suite_mean(runs, [name], "nmi"), _suite_mean(runs, [name], "seconds")


def _mean_seconds(runs: list[dict[str, Any]]) -> float:
    return fmean(run["seconds"] for run in runs)


def with_measured(readme: str, stale: Iterable[str] = ()) -> str:
    """The README with its table of numbers as the results have them."""
    start, end = MARKS
    before, _, rest = readme.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n{with_daggers(against_peers(), stale)}{end}{after}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _stored(name: str) -> str:
    """A table that benchmarks/trust made."""
    return "\n".join(results("trust")["tables"][name]) + "\n"


# A cluster that reads an object store -------------------------------------------------------------

CLUSTER_ROWS, CLUSTER_COLUMNS, CLUSTER_WORKERS = 10**9, 64, 100
WORKER_BYTES = 250e6  # a second and worker from the store: assumed, not measured
FULL_SWEEPS, READING_PASSES = 5, 2  # at most, of KernelKMeans; the check and the sample
MEASURED_TASKS, TASK_ROWS = 16, 2**20  # eight for each of two workers; rows of a task at most


def cluster() -> str:
    """Measured seconds of a row, and what they make of 10⁹ rows of 64 columns on 100 workers."""
    measured = results("scale-cloud")
    runs = [run for run in measured["runs"] if run["where"] == "S3"]
    wider = CLUSTER_COLUMNS / measured["columns"]
    network = CLUSTER_ROWS * CLUSTER_COLUMNS * 4 / (CLUSTER_WORKERS * WORKER_BYTES)
    rows, passes = [], []
    for run in runs:
        each = run["workers"] / measured["rows"]
        work = CLUSTER_ROWS * each * wider / CLUSTER_WORKERS
        task = run["client"] / MEASURED_TASKS
        client = task * CLUSTER_ROWS / TASK_ROWS
        passes.append(max(work, network, client))
        cells = [f"{1e6 * each:.2f}", f"{1e3 * task:.0f}"]
        cells += [f"{seconds:.0f} s" for seconds in (work, network, client, passes[-1])]
        rows.append([run["pass"], *cells])
    fit = (FULL_SWEEPS + READING_PASSES) * passes[0] + passes[1]
    rows.append(["fit and labels, at most", "", "", "", "", "", f"{fit / 60:.0f} min"])
    head = ["pass", "workers, µs CPU a row", "client, ms CPU a task"]
    return table([*head, "work", "network", "client", "the longest"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "choice.md": choice,
    "peers.md": peers,
    "all-rows.md": all_rows,
    "trust.md": lambda: _stored("trust"),
    "counted.md": lambda: _stored("counted"),
    "cluster.md": cluster,
    "streams.md": streams,
    "streams-000.md": streams_000,
}

if __name__ == "__main__":
    main()
