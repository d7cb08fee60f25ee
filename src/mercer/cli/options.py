"""Options that are not parameters of an estimator: files, engines, grids, what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from mercer._run.url import Url
from mercer.cli.derive import MODEL, RESOURCES, parser, shared_option
from mercer.cli.domains import Domain, Numbers
from mercer.cli.engines import ENGINES
from mercer.cli.methods import DEFAULT_METHOD, METHODS, TUNE_METHOD
from mercer.cli.tune import read_gammas, read_sizes

INPUT, OUTPUT = "Input", "Output"
FORMATS = ("csv", "npy", "arrow")
PIVOTS = ("random", "greedy", "spread")
OVERLAYS = ("boundaries", "average", "labels")
COUNT = Domain((Numbers(is_whole=True, low=1),))
LABELS = (
    "Write the label of each row, in order, to this .npy, .parquet, .csv or .zarr; or, with a "
    "slash at the end, to a folder of Parquet parts, which workers write."
)


def read_columns(text: str) -> list[str]:
    """Names separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(f"{text!r} has an empty name; write them like a,b,c")
    return names


def option(*names: str, help: str, panel: str = OUTPUT, takes: Any = None, **more: Any) -> Any:
    """An option; `takes` is the domain of its values or the function that reads them."""
    if isinstance(takes, Domain):
        words = list(takes.words)
        more = {"metavar": takes.metavar, "autocompletion": lambda: words, **more}
        takes = takes.read
    if takes is not None:
        more["parser"] = parser(takes)
    return typer.Option(*names, rich_help_panel=panel, help=help, show_default=False, **more)


def read_place(text: str) -> Path | Url:
    """A URL, or a path of this machine."""
    return Url.of(text) or Path(text)


def read_labels_place(text: str) -> Path | Url | str:
    """The same; but a path with a slash at its end means a folder, which a Path does not keep."""
    return text if text.endswith("/") else read_place(text)


def place_option(*names: str, help: str, takes: Any = read_place) -> Any:
    """An option that names a file, here or at a URL."""
    return option(*names, metavar="FILE", help=help, takes=takes)


def file_option(*names: str, help: str) -> Any:
    """An option that names a file."""
    return option(*names, metavar="FILE", help=help)


def method_option(default: str) -> Any:
    """The option that chooses the estimator."""
    return option(
        "--method",
        panel=MODEL,
        metavar="NAME",
        takes=lambda text: Domain(words=tuple(METHODS)).read(text),
        autocompletion=lambda: list(METHODS),
        help=f"{Domain(words=tuple(METHODS)).choices} ({default}).",
    )


# Input

InputFile: TypeAlias = Annotated[
    Any,
    typer.Argument(
        metavar="FILE",
        parser=parser(read_place),
        help="Rows: a .npy, .parquet, .csv, .txt (separated by spaces) or .libsvm file, a folder "
        "of Parquet, a .zarr, or a URL of one.",
    ),
]
SavedModel: TypeAlias = Annotated[
    Any,
    typer.Argument(
        metavar="MODEL",
        parser=parser(read_place),
        help="A model that `mercer cluster` wrote.",
    ),
]
Images: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="IMAGE...", help="Images (png, jpg, tif and others), or a folder of them."
    ),
]
StreamFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]…",
        help="Rows, file after file: .npy, .parquet, .csv, .arrow; none or - is standard input.",
    ),
]
Columns: TypeAlias = Annotated[
    Any,
    option(
        "--columns",
        panel=INPUT,
        metavar="A,B,…",
        takes=read_columns,
        help="Columns to read, by name (default all).",
    ),
]
IdColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--id-column",
        rich_help_panel=INPUT,
        metavar="NAME",
        help="Column that identifies rows (Parquet, CSV): not read as a feature, and written "
        "beside the labels.",
    ),
]
TextColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--text-column",
        rich_help_panel=INPUT,
        metavar="NAME",
        help="Column of texts (Parquet, CSV) that the page shows with the rows: not read as a "
        "feature.",
    ),
]
InputFormat: TypeAlias = Annotated[
    Any,
    option(
        "--format",
        panel=INPUT,
        takes=Domain(words=FORMATS),
        help="Format of standard input: csv, npy (arrays one after another) or arrow (an IPC "
        "stream) (default csv).",
    ),
]

# Model

SCALERS = ("standard", "robust", "unit", "none")

Method: TypeAlias = Annotated[Any, method_option(f"default {DEFAULT_METHOD}")]
Scaler: TypeAlias = Annotated[
    Any,
    option(
        "--scaler",
        panel=MODEL,
        takes=Domain(words=SCALERS),
        help="Bring columns to one scale (standard: mean and standard deviation; robust: median "
        "and quartiles) or rows to length 1 (unit); the model keeps it (default none).",
    ),
]
Pivots: TypeAlias = Annotated[
    Any,
    option(
        "--pivots",
        panel=MODEL,
        takes=Domain(words=PIVOTS),
        help="How --approximation cholesky chooses its pivots: random, greedy (as published: "
        "deterministic) or spread (in every region of the rows) (default random; ksc: spread).",
    ),
]
PivotTol: TypeAlias = Annotated[
    Any,
    option(
        "--pivot-tol",
        panel=MODEL,
        takes=Domain((Numbers(is_whole=False, low=0, high=1),)),
        help="Choose no more pivots when they leave at most this share of the trace of the kernel "
        "(default 0: as many as --rank).",
    ),
]
TuneMethod: TypeAlias = Annotated[
    Any, method_option(f"default {TUNE_METHOD}, which shares work between candidates")
]
ClusterGrid: TypeAlias = Annotated[
    Any,
    option(
        "--clusters",
        "-k",
        panel=MODEL,
        metavar="FROM:TO|A,B,…",
        takes=read_sizes,
        help="Numbers of clusters to compare (default 2:10).",
    ),
]
GammaGrid: TypeAlias = Annotated[
    Any,
    option(
        "--gamma",
        panel=MODEL,
        metavar="FROM:TO:COUNT|A,B,…",
        takes=read_gammas,
        help="Bandwidths to compare; a range is geometric (default: the estimator's own; ksc: "
        "five around the rule auto).",
    ),
]
Seed: TypeAlias = Annotated[Any, shared_option("random_state")]

# Resources

MaxMemory: TypeAlias = Annotated[Any, shared_option("max_memory")]
Jobs: TypeAlias = Annotated[Any, shared_option("n_jobs")]
Engine: TypeAlias = Annotated[
    Any,
    option(
        "--engine",
        panel=RESOURCES,
        takes=Domain(words=ENGINES),
        help=f"Where the rows are processed: {', '.join(ENGINES)} (default loop: this process).",
    ),
]
Scheduler: TypeAlias = Annotated[
    str | None,
    option(
        "--scheduler",
        panel=RESOURCES,
        metavar="ADDRESS",
        help="Address of a running Dask scheduler, e.g. tcp://host:8786 (default: start a local "
        "cluster).",
    ),
]
Workers: TypeAlias = Annotated[
    Any,
    option(
        "--workers",
        panel=RESOURCES,
        takes=COUNT,
        help="Processes to start for --engine processes or dask (default: one per core).",
    ),
]
Checkpoint: TypeAlias = Annotated[
    Path | None,
    option(
        "--checkpoint",
        panel=RESOURCES,
        metavar="DIR",
        help="Keep completed passes here; the same command run again resumes after the last one.",
    ),
]

# Output

_labels = place_option("--out", "-o", help=LABELS, takes=read_labels_place)
LabelsFile: TypeAlias = Annotated[Any, _labels]
RequiredLabelsFile: TypeAlias = Annotated[Any, _labels]
LabelsStream: TypeAlias = Annotated[
    Path | None,
    file_option(
        "--out",
        "-o",
        help="Append the label of each row to this .csv file (default: standard output).",
    ),
]
MembershipsFile: TypeAlias = Annotated[
    Path | None,
    file_option(
        "--memberships",
        help="Write how much each row belongs to each cluster to this .npy or .csv file (spectral "
        "and ksc).",
    ),
]
ModelFile: TypeAlias = Annotated[
    Any,
    place_option("--model", help="Write the model, for `mercer predict`, to this file."),
]
Snapshot: TypeAlias = Annotated[
    Path | None,
    file_option(
        "--model",
        "-m",
        help="Write the model to this file at the end and at intervals; --resume continues it.",
    ),
]
Every: TypeAlias = Annotated[
    Any,
    option("--every", takes=COUNT, help="Batches between two snapshots of --model (default 10)."),
]
Resume: TypeAlias = Annotated[
    bool,
    option(
        "--resume",
        help="Continue from --model if it exists: give the same input again, from its beginning; "
        "rows that the model has seen are skipped, and --out is continued.",
    ),
]
ReportFile: TypeAlias = Annotated[
    Any,
    place_option(
        "--report",
        help="Write a page about the clusters to this .html file (.md, .json: the report alone).",
    ),
]
ReportOut: TypeAlias = Annotated[
    Any,
    place_option(
        "--out",
        "-o",
        help="Write the page to this self-contained .html file (.md, .json: the report alone).",
    ),
]
Title: TypeAlias = Annotated[
    str | None,
    option(
        "--title", metavar="TEXT", help="Title of the data on the page (default: the file name)."
    ),
]
TableFile: TypeAlias = Annotated[
    Path | None,
    file_option(
        "--out", "-o", help="Write the scores, the best pair and the runners-up to this JSON file."
    ),
]
PlotFile: TypeAlias = Annotated[
    Path | None, file_option("--plot", help="Draw the scores into this PNG file.")
]
PictureFile: TypeAlias = Annotated[
    Path | None,
    file_option(
        "--out",
        "-o",
        help="Write a picture of the segments to this file (several images: into this folder).",
    ),
]
SegmentsPage: TypeAlias = Annotated[
    Any,
    place_option(
        "--report",
        help="Write a page with a slider over the levels to this .html file (several images: into "
        "this folder).",
    ),
]
SavedSegmenter: TypeAlias = Annotated[
    Path | None,
    file_option(
        "--model",
        help="Label all images with this saved Segmenter: a label means the same in each of them.",
    ),
]
Overlay: TypeAlias = Annotated[
    Any,
    option(
        "--overlay",
        takes=Domain(words=OVERLAYS),
        help="What the picture shows: boundaries, average (mean colours) or labels (tints) "
        "(default boundaries).",
    ),
]
LabelImage: TypeAlias = Annotated[
    Path | None,
    file_option(
        "--labels",
        help="Write the labels as grey values (.png) or numbers (.npy); several images: into this "
        "folder.",
    ),
]
DemoFolder: TypeAlias = Annotated[
    Path, option("--out", "-o", metavar="DIR", help="Folder of the results (default demo-output).")
]
DemoRows: TypeAlias = Annotated[
    Any,
    option(
        "--rows",
        panel=MODEL,
        takes=Domain((Numbers(is_whole=True, low=100),)),
        help="Number of rows (default 20000).",
    ),
]
Json: TypeAlias = Annotated[
    bool, option("--json", help="Print the report as JSON and nothing else.")
]
Quiet: TypeAlias = Annotated[bool, option("--quiet", "-q", help="Print no progress and no report.")]

# warmup
Everything: TypeAlias = Annotated[
    bool,
    option("--all", help="Every approximation too, not the defaults alone (about a minute)."),
]
