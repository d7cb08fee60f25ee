"""The options of `mercer stream`, each named like the parameter it sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from mercer.cli.options import INPUT, MODEL, OUTPUT, _one_of, _option

FORMATS = ("arrow", "csv", "npy")
SAMPLINGS = ("leverage", "ridge", "uniform")

Files: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]…",
        help="Rows, file after file: .npy, .parquet, .csv, .arrow; none or - is standard input.",
    ),
]
InputFormat: TypeAlias = Annotated[
    str,
    _option(
        "--format",
        panel=INPUT,
        metavar="NAME",
        callback=_one_of(lambda: FORMATS),
        help="Of standard input: arrow (an IPC stream), csv, or npy (arrays one after another) "
        "(default csv).",
    ),
]
StreamClusters: TypeAlias = Annotated[
    int | None,
    _option(
        "--n-clusters",
        "-k",
        panel=MODEL,
        metavar="N",
        min=1,
        help="Number of clusters (default 8).",
    ),
]
InitialSize: TypeAlias = Annotated[
    int | None,
    _option(
        "--initial-size",
        panel=MODEL,
        metavar="N",
        min=1,
        help="Rows that begin (default max(1000, 2·k·ln k)).",
    ),
]
MaxSize: TypeAlias = Annotated[
    int | None,
    _option(
        "--max-size",
        panel=MODEL,
        metavar="N",
        min=1,
        help="Rows that the buffer holds at most (default 2.5 times the first).",
    ),
]
NNeighbors: TypeAlias = Annotated[
    int | None,
    _option(
        "--n-neighbors",
        panel=MODEL,
        metavar="N",
        min=2,
        help="Similar rows that a row may be tied to (default 30).",
    ),
]
BatchSize: TypeAlias = Annotated[
    int | None,
    _option(
        "--batch-size",
        panel=MODEL,
        metavar="N",
        min=1,
        help="Rows that are worked on at once (default those that begin).",
    ),
]
Sampling: TypeAlias = Annotated[
    str | None,
    _option(
        "--sampling",
        panel=MODEL,
        metavar="NAME",
        callback=_one_of(lambda: SAMPLINGS),
        help="Which rows join the buffer: by leverage, ridge leverage, or uniform "
        "(default leverage).",
    ),
]
Forgetting: TypeAlias = Annotated[
    float | None,
    _option(
        "--forgetting",
        panel=MODEL,
        metavar="SHARE",
        min=0.0,
        max=0.99,
        help="Share of the buffer that each batch replaces, for clusters that move (default 0).",
    ),
]
LabelsOut: TypeAlias = Annotated[
    Path | None,
    _option(
        "--out",
        "-o",
        panel=OUTPUT,
        metavar="FILE",
        help="A .csv file of labels, written as they come (default standard output).",
    ),
]
Snapshot: TypeAlias = Annotated[
    Path | None,
    _option(
        "--model",
        "-m",
        panel=OUTPUT,
        metavar="FILE",
        help="The model, written at the end and now and then: its queue and draws are in it.",
    ),
]
Every: TypeAlias = Annotated[
    int,
    _option(
        "--every",
        panel=OUTPUT,
        metavar="N",
        min=1,
        help="Pieces of input between two snapshots of the model (default 10).",
    ),
]
Resume: TypeAlias = Annotated[
    bool,
    _option(
        "--resume",
        panel=OUTPUT,
        help="Go on from --model, if it is there: the input, given again from its beginning, is "
        "skipped as far as the model has seen it, and --out goes on from there.",
    ),
]
