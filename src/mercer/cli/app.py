"""The verbs of the command line: options in, calls of the API, a report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mercer._run.paths import demand_path
from mercer.cli import options, stream_options
from mercer.cli.engines import engine_running
from mercer.cli.errors import readable_errors
from mercer.cli.methods import DEFAULT_METHOD, TUNE_METHOD, make_estimator
from mercer.cli.progress_bar import progress
from mercer.cli.verbs import Verbs
from mercer.cli.words import say

app = Verbs()


def _show_version(wanted: bool) -> None:
    if wanted:
        from mercer import __version__

        typer.echo(f"mercer {__version__}")
        raise typer.Exit


@app.callback()
def mercer(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and leave."
        ),
    ] = False,
) -> None:
    """Kernel and spectral clustering of large data: nonlinear clusters within bounded memory."""


@app.command()
def cluster(
    file: options.InputFile,
    n_clusters: options.Clusters = None,
    method: options.Method = DEFAULT_METHOD,
    kernel: options.Kernel = None,
    gamma: options.Gamma = None,
    approximation: options.Approximation = None,
    rank: options.Rank = None,
    ensemble: options.Ensemble = None,
    encoding: options.Encoding = None,
    train_size: options.TrainSize = None,
    assign_labels: options.AssignLabels = None,
    n_init: options.NInit = None,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    seed: options.Seed = None,
    columns: options.Columns = None,
    max_memory: options.MaxMemory = None,
    jobs: options.Jobs = None,
    engine: options.Engine = "loop",
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
    checkpoint: options.Checkpoint = None,
    out: options.LabelsFile = None,
    model: options.ModelFile = None,
    report: options.ReportFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Cluster the rows of a file; write their labels, a model for new rows, a page about them.

    Files that exist are replaced, each at once when it is complete.
    """
    from mercer.cli.show import show_json, show_report, show_written
    from mercer.cli.work import cluster_file

    parameters = {
        "n_clusters": None if n_clusters is None else options.read_count(n_clusters),
        "kernel": kernel,
        "gamma": None if gamma is None else options.read_gamma(gamma),
        "approximation": approximation,
        "rank": None if rank is None else options.read_count(rank),
        "ensemble": ensemble,
        "encoding": encoding,
        "train_size": None if train_size is None else options.read_train_size(train_size),
        "assign_labels": assign_labels,
        "n_init": n_init,
        "max_iter": max_iter,
        "tol": tol,
        "max_memory": max_memory,
        "n_jobs": jobs,
        "random_state": seed,
    }
    names = None if columns is None else options.read_columns(columns)
    written = {"labels": out, "model": model, "report": report}
    with readable_errors(debug=debug):
        estimator = make_estimator(method, parameters)
        resources: Any = {"scheduler": scheduler, "workers": workers, "checkpoint": checkpoint}
        with engine_running(engine, **resources), progress(quiet=quiet):
            fitted = cluster_file(
                file, estimator, columns=names, labels=out, model=model, report=report
            )
        if json:
            show_json(fitted.report_.to_dict(), written)
        elif not quiet:
            show_report(fitted.report_)
            show_written(written)


@app.command()
def plan(
    file: options.InputFile,
    n_clusters: options.Clusters = None,
    method: options.Method = DEFAULT_METHOD,
    kernel: options.Kernel = None,
    gamma: options.Gamma = None,
    approximation: options.Approximation = None,
    rank: options.Rank = None,
    ensemble: options.Ensemble = None,
    train_size: options.TrainSize = None,
    max_iter: options.MaxIter = None,
    columns: options.Columns = None,
    max_memory: options.MaxMemory = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Tell what `mercer cluster` would take: passes, bytes, blocks, memory and minutes.

    A few rows are clustered to see how long it takes here. What cannot fit into --max-memory is
    told with what would: exit code 1.
    """
    from mercer.cli.show import show_json
    from mercer.rows import as_source

    parameters = {
        "n_clusters": None if n_clusters is None else options.read_count(n_clusters),
        "kernel": kernel,
        "gamma": None if gamma is None else options.read_gamma(gamma),
        "approximation": approximation,
        "rank": None if rank is None else options.read_count(rank),
        "ensemble": ensemble,
        "train_size": None if train_size is None else options.read_train_size(train_size),
        "max_iter": max_iter,
        "max_memory": max_memory,
        "n_jobs": jobs,
    }
    names = None if columns is None else options.read_columns(columns)
    with readable_errors(debug=debug):
        estimator = make_estimator(method, parameters)
        with progress(quiet=quiet):
            found = estimator.plan(as_source(file, columns=names))
        if json:
            show_json(found.to_dict(), {})
        elif not quiet:
            typer.echo(str(found))


@app.command()
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that `mercer cluster` wrote.")
    ],
    file: options.InputFile,
    out: options.RequiredLabelsFile,
    columns: options.Columns = None,
    max_memory: options.MaxMemory = None,
    jobs: options.Jobs = None,
    engine: options.Engine = "loop",
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Label the rows of a file by a saved model."""
    from mercer.cli.show import show_json, show_written
    from mercer.cli.work import predict_file

    names = None if columns is None else options.read_columns(columns)
    with readable_errors(debug=debug):
        resources: Any = {"scheduler": scheduler, "workers": workers}
        with engine_running(engine, **resources), progress(quiet=quiet):
            n_rows = predict_file(
                model, file, labels=out, columns=names, max_memory=max_memory, n_jobs=jobs
            )
        if json:
            show_json({"n_rows": n_rows}, {"labels": out})
        elif not quiet:
            show_written({f"labels of {n_rows:,} rows": out})


@app.command()
def report(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that `mercer cluster` wrote.")
    ],
    file: options.InputFile,
    out: options.ReportOut,
    title: options.Title = None,
    columns: options.Columns = None,
    seed: options.Seed = None,
    max_memory: options.MaxMemory = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Make a page about a saved model and the rows of a file: one HTML file, for any browser."""
    from mercer.cli.show import show_json, show_written
    from mercer.cli.work import report_file

    names = None if columns is None else options.read_columns(columns)
    with readable_errors(debug=debug):
        with progress(quiet=quiet):
            told = report_file(
                model,
                file,
                out=out,
                title=title,
                columns=names,
                seed=seed,
                max_memory=max_memory,
                n_jobs=jobs,
            )
        if json:
            show_json(told.to_dict(), {"report": out})
        elif not quiet:
            show_written({"report": out})


@app.command()
def tune(
    file: options.InputFile,
    clusters: options.ClusterGrid = "2:10",
    gamma: options.GammaGrid = None,
    criterion: options.Criterion = None,
    balance: options.Balance = None,
    outlier: options.Outlier = None,
    method: options.TuneMethod = TUNE_METHOD,
    kernel: options.Kernel = None,
    rank: options.Rank = None,
    train_size: options.TrainSize = None,
    validation_size: options.ValidationSize = None,
    seed: options.Seed = None,
    columns: options.Columns = None,
    max_memory: options.MaxMemory = None,
    jobs: options.Jobs = None,
    out: options.TableFile = None,
    plot: options.PlotFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Compare numbers of clusters and bandwidths on rows that did not make the models."""
    from mercer.cli.show import show_json
    from mercer.cli.tune import read_gammas, read_sizes, show_selection, tune_file

    parameters = {
        "kernel": kernel,
        "rank": None if rank is None else options.read_count(rank),
        "train_size": None if train_size is None else options.read_train_size(train_size),
        "max_memory": max_memory,
        "n_jobs": jobs,
        "random_state": seed,
    }
    asked = {
        "n_clusters": read_sizes(clusters),
        "gamma": None if gamma is None else read_gammas(gamma),
        "criterion": criterion,
        "balance": balance,
        "outlier": outlier,
        "validation_size": validation_size,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    names = None if columns is None else options.read_columns(columns)
    with readable_errors(debug=debug):
        estimator = make_estimator(method, parameters)
        with progress(quiet=quiet):
            found = tune_file(file, estimator, columns=names, out=out, plot=plot, **given)
        written = {"table": out, "picture": plot}
        if json:
            show_json(found.to_dict(), written)
        elif not quiet:
            show_selection(found)
            for what, path in written.items():
                if path is not None:
                    say(f"wrote {path}  ({what})")


@app.command()
def segment(
    images: options.Images,
    n_segments: options.Segments = None,
    method: options.SegmentMethod = None,
    features: options.Features = None,
    radius: options.Radius = None,
    gamma: options.SegmentGamma = None,
    min_size: options.MinSize = None,
    connected: options.Connected = None,
    seed: options.Seed = None,
    max_memory: options.MaxMemory = None,
    jobs: options.Jobs = None,
    out: options.PictureFile = None,
    overlay: options.Overlay = "boundaries",
    labels: options.LabelImage = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Segment images: a picture of the segments, their labels, or both.

    Of several images each is segmented by itself, and --out and --labels name folders. An image
    that cannot be read is told at the end and the others are done: exit code 1.
    """
    from mercer.cli.pictures import plan_files, segment_files
    from mercer.cli.show import show_json, show_segments
    from mercer.image import Segmenter

    parameters = {
        "n_segments": None if n_segments is None else options.read_count(n_segments),
        "method": method,
        "features": features,
        "radius": radius,
        "gamma": gamma,
        "min_size": min_size,
        "connected": connected,
        "max_memory": max_memory,
        "n_jobs": jobs,
        "random_state": seed,
    }
    given: dict[str, Any] = {name: value for name, value in parameters.items() if value is not None}
    with readable_errors(debug=debug):
        if out is None and labels is None:
            raise ValueError(
                "nothing would be written: --out FILE makes a picture, --labels FILE keeps labels"
            )
        segmenter = Segmenter(**given)
        plans = plan_files(images, out, labels)
        with progress(quiet=quiet, unit="images"):
            outcomes = list(segment_files(plans, segmenter, overlay=overlay))
        if json:
            show_json({"images": [outcome.to_dict() for outcome in outcomes]}, {})
        else:
            show_segments(outcomes, quiet=quiet)
    if any(outcome.error for outcome in outcomes):
        raise typer.Exit(1)


@app.command()
def stream(
    files: stream_options.Files = None,
    n_clusters: stream_options.StreamClusters = None,
    kernel: options.Kernel = None,
    gamma: options.Gamma = None,
    initial_size: stream_options.InitialSize = None,
    max_size: stream_options.MaxSize = None,
    n_neighbors: stream_options.NNeighbors = None,
    batch_size: stream_options.BatchSize = None,
    sampling: stream_options.Sampling = None,
    forgetting: stream_options.Forgetting = None,
    seed: options.Seed = None,
    input_format: stream_options.InputFormat = "csv",
    max_memory: options.MaxMemory = None,
    jobs: options.Jobs = None,
    out: stream_options.LabelsOut = None,
    model: stream_options.Snapshot = None,
    every: stream_options.Every = 10,
    resume: stream_options.Resume = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Cluster rows that keep coming: labels go out as rows come in.

    A model that is written now and then holds the rows that wait and the state of all draws, so
    that a run that was stopped, however, goes on with --resume to the same result.
    """
    if json and out is None:
        raise typer.BadParameter("labels go to standard output without --out FILE: add it")
    with readable_errors(debug=debug):
        for file in files or []:
            if str(file) != "-":
                demand_path(file)  # before modules are imported that take seconds

    from mercer.cli.show import show_json
    from mercer.cli.stream import pieces_of, stream_rows
    from mercer.cli.work import check_outputs
    from mercer.stream import StreamingKernelKMeans

    parameters = {
        "n_clusters": n_clusters,
        "kernel": kernel,
        "gamma": None if gamma is None else options.read_gamma(gamma),
        "initial_size": initial_size,
        "max_size": max_size,
        "n_neighbors": n_neighbors,
        "batch_size": batch_size,
        "sampling": sampling,
        "forgetting": forgetting,
        "max_memory": max_memory,
        "n_jobs": jobs,
        "random_state": seed,
    }
    given: dict[str, Any] = {name: value for name, value in parameters.items() if value is not None}
    with readable_errors(debug=debug):
        check_outputs(inputs=files or [], labels=out, model=model)
        fitted = stream_rows(
            pieces_of(files or [], input_format),
            StreamingKernelKMeans(**given),
            labels=out,
            snapshot=model,
            every=every,
            resume=resume,
        )
        if json:
            show_json(fitted.report_.to_dict(), {"labels": out, "model": model})
        elif not quiet:
            typer.echo(str(fitted.report_), err=True)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write.")] = Path(
        "demo-output"
    ),
    rows: Annotated[int, typer.Option("--rows", min=100, help="Rows to make.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed.")] = 0,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Cluster a made-up file end to end, beside k-means, with a picture."""
    from contextlib import nullcontext, redirect_stdout
    from io import StringIO

    from mercer.cli.demo import run_demo
    from mercer.cli.show import show_json

    with readable_errors(debug=debug):
        with redirect_stdout(StringIO()) if json else nullcontext():
            scores = run_demo(out, n_rows=rows, seed=seed)
        if json:
            show_json({"scores": scores}, {"folder": out})
