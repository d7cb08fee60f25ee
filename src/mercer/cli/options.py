"""The options that verbs share, each named like the parameter it sets.

None means "as the estimator has it", so defaults live in one place, the API.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import typer

from mercer.cli.engines import ENGINES
from mercer.cli.methods import DEFAULT_METHOD, METHODS, TUNE_METHOD
from mercer.cli.tune import read_gammas, read_sizes
from mercer.cli.words import in_options

INPUT = "Input"
MODEL = "Model"
RESOURCES = "Resources"
OUTPUT = "Output"
SEGMENT_METHODS = ("quantized", "landmarks", "ksc")
FEATURES = ("rgbxy", "labxy", "histogram")
OVERLAYS = ("boundaries", "average", "labels")


ASSIGNMENTS = ("kmeans", "cluster_qr")
ENCODINGS = ("bas", "ams", "blf")


def read_count(text: str) -> int | str:
    """A whole number of 1 or more, or auto."""
    if text == "auto":
        return text
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise ValueError(f"{text!r} is neither a whole number of 1 or more nor auto")
    return count


def read_gamma(text: str) -> float | str:
    """A positive number, or the name of a rule."""
    from mercer.kernels.bandwidth import Rule

    rules = get_args(Rule)
    if text in rules:
        return text
    try:
        gamma = float(text)
    except ValueError:
        gamma = math.nan
    if not (math.isfinite(gamma) and gamma > 0):
        raise ValueError(f"{text!r} is neither a positive number nor {_either(rules)}")
    return gamma


def read_train_size(text: str) -> int | float:
    """A number of rows, or (with a point) a share of them."""
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if 0 < size <= 1 and "." in text:
        return size
    if not (size >= 1 and size == int(size)):
        raise ValueError(f"{text!r} is neither a number of rows nor a share between 0 and 1")
    return int(size)


def read_columns(text: str) -> list[str]:
    """Names separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(f"{text!r} has an empty name; write them like a,b,c")
    return names


def _either(names: Iterable[str]) -> str:
    return "one of " + ", ".join(names)


def _one_of(names: Callable[[], Iterable[str]]) -> Callable[[str | None], str | None]:
    """A check against names that are looked up only when the option is used."""

    def check(text: str | None) -> str | None:
        if text is not None and text not in names():
            raise typer.BadParameter(f"{text!r} is not {_either(names())}")
        return text

    check.names = names  # type: ignore[attr-defined]  # what a shell may complete
    return check


def _kernels() -> Iterable[str]:
    from mercer.kernels.registry import NAMES

    return NAMES


def _approximations() -> Iterable[str]:
    from mercer.factors.names import NAMES

    return dict.fromkeys(("landmarks", "neighbors", *NAMES))


def _readable(read: Callable[[str], object]) -> Callable[[str | None], str | None]:
    """A check that a text can be read; what is wrong with it becomes an error of usage."""

    def check(text: str | None) -> str | None:
        if text is not None:
            try:
                read(text)
            except ValueError as error:
                raise typer.BadParameter(in_options(str(error))) from None
        return text

    return check


def _memory(text: str) -> None:
    from mercer._run.budget import parse_bytes

    parse_bytes(text)


def _option(*names: str, panel: str, help: str, **more: Any) -> Any:
    words = getattr(more.get("callback"), "names", None)
    if words is not None:
        more["autocompletion"] = lambda: list(words())
    return typer.Option(*names, rich_help_panel=panel, help=help, show_default=False, **more)


InputFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Rows: a .npy, .parquet or .csv file, a folder of Parquet, or a .zarr."
    ),
]
Columns: TypeAlias = Annotated[
    str | None,
    _option(
        "--columns",
        panel=INPUT,
        metavar="A,B,…",
        callback=_readable(read_columns),
        help="Columns to read, by name (default all).",
    ),
]

Method: TypeAlias = Annotated[
    str,
    _option(
        "--method",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(lambda: METHODS),
        help=f"{', '.join(METHODS)} (default {DEFAULT_METHOD}).",
    ),
]
Clusters: TypeAlias = Annotated[
    str | None,
    _option(
        "--n-clusters",
        "-k",
        panel=MODEL,
        metavar="N|auto",
        callback=_readable(read_count),
        help="Number of clusters, or auto to find it (spectral, ksc) (default 8).",
    ),
]
Kernel: TypeAlias = Annotated[
    str | None,
    _option(
        "--kernel",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(_kernels),
        help="rbf, laplacian, chi2, cosine, polynomial, histogram_intersection or precomputed "
        "(default a Gaussian that scales itself with landmarks, else rbf).",
    ),
]
Gamma: TypeAlias = Annotated[
    str | None,
    _option(
        "--gamma",
        panel=MODEL,
        metavar="GAMMA",
        callback=_readable(read_gamma),
        help="Bandwidth of the kernel: a number, or the rule auto, median or scale (default auto).",
    ),
]
Approximation: TypeAlias = Annotated[
    str | None,
    _option(
        "--approximation",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(_approximations),
        help="landmarks or neighbors (spectral only), quantized, binning, cholesky, nystrom, "
        "fourier or exact (default landmarks; kernel-kmeans, ksc: cholesky).",
    ),
]
Rank: TypeAlias = Annotated[
    str | None,
    _option(
        "--rank",
        panel=MODEL,
        metavar="N|auto",
        callback=_readable(read_count),
        help="Size of the approximation: landmarks, pivots or features (default auto; "
        "kernel-kmeans, ksc: 256).",
    ),
]
Ensemble: TypeAlias = Annotated[
    int | None,
    _option(
        "--ensemble",
        panel=MODEL,
        metavar="N",
        min=2,
        help="Partitions to join, e.g. 20: slower, better where clusters are many or vague "
        "(spectral with landmarks only) (default none).",
    ),
]
AssignLabels: TypeAlias = Annotated[
    str | None,
    _option(
        "--assign-labels",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(lambda: ASSIGNMENTS),
        help="How eigenvectors become clusters: kmeans or cluster_qr (spectral only) "
        "(default kmeans).",
    ),
]
Encoding: TypeAlias = Annotated[
    str | None,
    _option(
        "--encoding",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(lambda: ENCODINGS),
        help="How scores become clusters: bas, ams or blf (ksc only) (default bas).",
    ),
]
TrainSize: TypeAlias = Annotated[
    str | None,
    _option(
        "--train-size",
        panel=MODEL,
        metavar="N|SHARE",
        callback=_readable(read_train_size),
        help="Rows to train on, or a share of them (ksc only) (default 10000 at most).",
    ),
]
NInit: TypeAlias = Annotated[
    int | None,
    _option(
        "--n-init",
        panel=MODEL,
        metavar="N",
        min=1,
        help="Starts of k-means; the best is kept (default 10; kernel-kmeans: 1; ksc: 3).",
    ),
]
MaxIter: TypeAlias = Annotated[
    int | None,
    _option("--max-iter", panel=MODEL, metavar="N", min=1, help="Sweeps at most (default 300)."),
]
Tol: TypeAlias = Annotated[
    float | None,
    _option(
        "--tol",
        panel=MODEL,
        metavar="NUMBER",
        min=0.0,
        help="Stop when centres move less (default 0.0001).",
    ),
]
Seed: TypeAlias = Annotated[
    int | None,
    _option(
        "--seed",
        "--random-state",
        panel=MODEL,
        metavar="N",
        min=0,
        help="Seed; the same one gives the same labels (default: a new one each time).",
    ),
]
MaxMemory: TypeAlias = Annotated[
    str | None,
    _option(
        "--max-memory",
        panel=RESOURCES,
        metavar="AMOUNT",
        callback=_readable(_memory),
        help="Memory to use at most, like 500MB or 2GB (default: half of what is free).",
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    _option(
        "--jobs",
        "--n-jobs",
        panel=RESOURCES,
        metavar="N",
        help="Threads; -1 for all cores (default 1).",
    ),
]
Engine: TypeAlias = Annotated[
    str,
    _option(
        "--engine",
        panel=RESOURCES,
        metavar="NAME",
        callback=_one_of(lambda: ENGINES),
        help=f"Where the rows are worked on: {', '.join(ENGINES)} (default loop: here).",
    ),
]
Scheduler: TypeAlias = Annotated[
    str | None,
    _option(
        "--scheduler",
        panel=RESOURCES,
        metavar="ADDRESS",
        help="A Dask cluster that runs, e.g. tcp://host:8786 (default: one is started here).",
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    _option(
        "--workers",
        panel=RESOURCES,
        metavar="N",
        min=1,
        help="Processes to start for --engine processes or dask (default one per core).",
    ),
]
Checkpoint: TypeAlias = Annotated[
    Path | None,
    _option(
        "--checkpoint",
        panel=RESOURCES,
        metavar="DIR",
        help="Keep complete passes here; the same command run again takes up after the last.",
    ),
]
LabelsFile: TypeAlias = Annotated[
    Path | None,
    _option(
        "--out",
        "-o",
        panel=OUTPUT,
        metavar="FILE",
        help="Write the label of each row, in order, to this .npy, .parquet, .csv or .zarr.",
    ),
]
RequiredLabelsFile: TypeAlias = Annotated[
    Path,
    _option(
        "--out",
        "-o",
        panel=OUTPUT,
        metavar="FILE",
        help="Write the label of each row, in order, to this .npy, .parquet, .csv or .zarr.",
    ),
]
ModelFile: TypeAlias = Annotated[
    Path | None,
    _option(
        "--model",
        panel=OUTPUT,
        metavar="FILE",
        help="Write the model, for `mercer predict`, to this file.",
    ),
]
Json: TypeAlias = Annotated[
    bool, _option("--json", panel=OUTPUT, help="Print the report as JSON and nothing else.")
]
Quiet: TypeAlias = Annotated[
    bool, _option("--quiet", "-q", panel=OUTPUT, help="No progress and no report.")
]
Debug: TypeAlias = Annotated[
    bool, _option("--debug", panel=OUTPUT, help="Show where an error comes from.")
]

ClusterGrid: TypeAlias = Annotated[
    str,
    _option(
        "--clusters",
        "-k",
        panel=MODEL,
        metavar="FROM:TO|A,B,…",
        callback=_readable(read_sizes),
        help="Numbers of clusters to compare (default 2:10).",
    ),
]
GammaGrid: TypeAlias = Annotated[
    str | None,
    _option(
        "--gamma",
        panel=MODEL,
        metavar="FROM:TO:COUNT|A,B,…",
        callback=_readable(read_gammas),
        help="Bandwidths to compare, a range in equal ratios (default: for ksc five around the "
        "rule auto).",
    ),
]
Criterion: TypeAlias = Annotated[
    str | None,
    _option(
        "--criterion",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(lambda: ENCODINGS),
        help="bas, ams or blf (ksc only) (default bas).",
    ),
]
Balance: TypeAlias = Annotated[
    float | None,
    _option(
        "--balance",
        panel=MODEL,
        metavar="NUMBER",
        min=0.0,
        max=1.0,
        help="Weight of balanced cluster sizes in the criterion (default 0.2).",
    ),
]
Outlier: TypeAlias = Annotated[
    float | None,
    _option(
        "--outlier",
        panel=MODEL,
        metavar="N",
        min=0.0,
        help="Clusters of at most so many judging rows are noise (default 0).",
    ),
]
TuneMethod: TypeAlias = Annotated[
    str,
    _option(
        "--method",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(lambda: METHODS),
        help=f"{', '.join(METHODS)} (default {TUNE_METHOD}, which shares work between pairs).",
    ),
]
ValidationSize: TypeAlias = Annotated[
    int | None,
    _option(
        "--validation-size",
        panel=MODEL,
        metavar="N",
        min=1,
        help="Rows that judge, at most (default 20000).",
    ),
]
TableFile: TypeAlias = Annotated[
    Path | None,
    _option(
        "--out",
        "-o",
        panel=OUTPUT,
        metavar="FILE",
        help="Write the scores, the best pair and the runners-up to this JSON file.",
    ),
]
PlotFile: TypeAlias = Annotated[
    Path | None,
    _option("--plot", panel=OUTPUT, metavar="FILE", help="Draw the scores into this PNG file."),
]
ReportFile: TypeAlias = Annotated[
    Path | None,
    _option(
        "--report",
        panel=OUTPUT,
        metavar="FILE",
        help="Write a page about the clusters to this .html file (.md, .json: the report alone).",
    ),
]
ReportOut: TypeAlias = Annotated[
    Path,
    _option(
        "--out",
        "-o",
        panel=OUTPUT,
        metavar="FILE",
        help="The page, an .html file of its own (.md, .json: the report alone).",
    ),
]
Title: TypeAlias = Annotated[
    str | None,
    _option(
        "--title",
        panel=OUTPUT,
        metavar="TEXT",
        help="What the page calls the data (default the name of the file).",
    ),
]
Images: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="IMAGE...", help="Images: png, jpg, tif and others.")
]
Segments: TypeAlias = Annotated[
    str | None,
    _option(
        "--n-segments",
        "-k",
        panel=MODEL,
        metavar="N|auto",
        callback=_readable(read_count),
        help="Number of segments; auto lets the spectrum decide (default auto).",
    ),
]
SegmentMethod: TypeAlias = Annotated[
    str | None,
    _option(
        "--method",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(lambda: SEGMENT_METHODS),
        help="quantized (fast), landmarks or ksc (default quantized).",
    ),
]
Features: TypeAlias = Annotated[
    str | None,
    _option(
        "--features",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(lambda: FEATURES),
        help="rgbxy, labxy or histogram (default rgbxy; ksc: histogram).",
    ),
]
Radius: TypeAlias = Annotated[
    float | None,
    _option(
        "--radius",
        panel=MODEL,
        metavar="NUMBER",
        min=0.0,
        help="Of the blocks of pixels, where colours and places run from 0 to 255; smaller is "
        "finer and slower (quantized only) (default 50).",
    ),
]
SegmentGamma: TypeAlias = Annotated[
    float | None,
    _option(
        "--gamma",
        panel=MODEL,
        metavar="NUMBER",
        min=0.0,
        help="Bandwidth (default 1/(2·30²); landmarks and ksc: chosen from the image).",
    ),
]
MinSize: TypeAlias = Annotated[
    int | None,
    _option(
        "--min-size",
        panel=MODEL,
        metavar="N",
        min=0,
        help="Merge regions of fewer pixels into a neighbour (default 0.05 % of the image).",
    ),
]
Connected: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--connected",
        rich_help_panel=MODEL,
        show_default=False,
        help="Number each connected region as a segment of its own.",
    ),
]
PictureFile: TypeAlias = Annotated[
    Path | None,
    _option(
        "--out",
        "-o",
        panel=OUTPUT,
        metavar="FILE",
        help="Write a picture of the segments to this file (several images: into this folder).",
    ),
]
Overlay: TypeAlias = Annotated[
    str,
    _option(
        "--overlay",
        panel=OUTPUT,
        metavar="NAME",
        callback=_one_of(lambda: OVERLAYS),
        help="What the picture shows: boundaries, average (mean colours) or labels (tints) "
        "(default boundaries).",
    ),
]
LabelImage: TypeAlias = Annotated[
    Path | None,
    _option(
        "--labels",
        panel=OUTPUT,
        metavar="FILE",
        help="Write the labels as grey values (.png) or numbers (.npy); several images: into this "
        "folder.",
    ),
]
