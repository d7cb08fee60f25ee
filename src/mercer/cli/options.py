"""Options that are not parameters of an estimator: files, engines, grids, what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from mercer.cli.derive import MODEL, RESOURCES, parser, shared_option
from mercer.cli.domains import Domain, Numbers
from mercer.cli.engines import ENGINES
from mercer.cli.methods import DEFAULT_METHOD, METHODS, TUNE_METHOD
from mercer.cli.tune import read_gammas, read_sizes

INPUT, OUTPUT = "Input", "Output"
FORMATS = ("csv", "npy", "arrow")
OVERLAYS = ("boundaries", "average", "labels")
COUNT = Domain((Numbers(is_whole=True, low=1),))
LABELS = "Write the label of each row, in order, to this .npy, .parquet, .csv or .zarr."


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
    Path,
    typer.Argument(
        metavar="FILE", help="Rows: a .npy, .parquet or .csv file, a folder of Parquet, or a .zarr."
    ),
]
SavedModel: TypeAlias = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that `mercer cluster` wrote.")
]
Images: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="IMAGE...", help="Images: png, jpg, tif and others.")
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

Method: TypeAlias = Annotated[Any, method_option(f"default {DEFAULT_METHOD}")]
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

LabelsFile: TypeAlias = Annotated[Path | None, file_option("--out", "-o", help=LABELS)]
RequiredLabelsFile: TypeAlias = Annotated[Path, file_option("--out", "-o", help=LABELS)]
LabelsStream: TypeAlias = Annotated[
    Path | None,
    file_option(
        "--out",
        "-o",
        help="Append the label of each row to this .csv file (default: standard output).",
    ),
]
ModelFile: TypeAlias = Annotated[
    Path | None,
    file_option("--model", help="Write the model, for `mercer predict`, to this file."),
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
    Path | None,
    file_option(
        "--report",
        help="Write a page about the clusters to this .html file (.md, .json: the report alone).",
    ),
]
ReportOut: TypeAlias = Annotated[
    Path,
    file_option(
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
    Path | None,
    file_option(
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
