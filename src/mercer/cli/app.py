"""The verbs of the command line: options in, calls of the API, a report out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer._run.paths import demand_path
from mercer.cli import options
from mercer.cli.derive import with_parameters
from mercer.cli.engines import engine_running
from mercer.cli.methods import DEFAULT_METHOD, METHODS, TUNE_METHOD, make_estimator, with_pivots
from mercer.cli.progress_bar import progress
from mercer.cli.verbs import Verbs

STREAM = {"stream": "mercer.stream:StreamingKernelKMeans"}
SEGMENTER = {"segment": "mercer.image:Segmenter"}
SEARCH = {"tune": "mercer.selection.compare:search"}

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
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Kernel and spectral clustering of large data: nonlinear clusters within bounded memory."""


@app.command()
@with_parameters(METHODS)
def cluster(
    *,
    file: options.InputFile,
    columns: options.Columns = None,
    id_column: options.IdColumn = None,
    method: options.Method = DEFAULT_METHOD,
    scaler: options.Scaler = "none",
    parameters: dict[str, Any],
    pivots: options.Pivots = None,
    pivot_tol: options.PivotTol = None,
    engine: options.Engine = "loop",
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
    checkpoint: options.Checkpoint = None,
    out: options.LabelsFile = None,
    memberships: options.MembershipsFile = None,
    model: options.ModelFile = None,
    report: options.ReportFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Cluster the rows of a file; write their labels, a model for new rows, a report page.

    Existing files are replaced, each in one step once it is complete.
    """
    from mercer.cli.show import show_json, show_report, show_written
    from mercer.cli.work import cluster_file

    written = {"labels": out, "memberships": memberships, "model": model, "report": report}
    estimator = make_estimator(method, parameters)
    estimator = with_pivots(estimator, pivots=pivots, pivot_tol=pivot_tol)
    resources: Any = {"scheduler": scheduler, "workers": workers, "checkpoint": checkpoint}
    with engine_running(engine, **resources), progress(quiet=quiet):
        read: Any = {"columns": columns, "id_column": id_column, "scaler": scaler, **written}
        fitted = cluster_file(file, estimator, **read)
    if json:
        show_json(fitted.report_.to_dict(), written)
    elif not quiet:
        show_report(fitted.report_)
        show_written(written)
        if not any(written.values()):
            typer.echo("nothing was written: --out FILE keeps the labels, --model FILE the model")


@app.command()
@with_parameters(METHODS)
def plan(
    *,
    file: options.InputFile,
    columns: options.Columns = None,
    method: options.Method = DEFAULT_METHOD,
    parameters: dict[str, Any],
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Estimate what `mercer cluster` would need: passes, bytes, blocks, memory and minutes.

    A few rows are clustered to measure the speed of this machine. If the
    work does not fit into --max-memory, the error suggests settings that
    would: exit code 1.
    """
    from mercer.cli.show import show_json
    from mercer.rows import as_source

    estimator = make_estimator(method, parameters)
    with progress(quiet=quiet):
        found = estimator.plan(as_source(file, columns=columns))
    if json:
        show_json(found.to_dict(), {})
    elif not quiet:
        typer.echo(str(found))


@app.command()
def predict(
    *,
    model: options.SavedModel,
    file: options.InputFile,
    columns: options.Columns = None,
    id_column: options.IdColumn = None,
    max_memory: options.MaxMemory = None,
    n_jobs: options.Jobs = None,
    engine: options.Engine = "loop",
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
    out: options.RequiredLabelsFile,
    memberships: options.MembershipsFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Label the rows of a file by a saved model."""
    from mercer.cli.scalers import split_model
    from mercer.cli.show import show_json, show_written
    from mercer.cli.work import (
        check_ids,
        check_memberships,
        check_outputs,
        columns_of,
        load_model,
        open_rows,
        write_ids,
        write_memberships_of,
    )

    with engine_running(engine, scheduler=scheduler, workers=workers), progress(quiet=quiet):
        check_outputs(inputs=[file, model], labels=out, memberships=memberships)
        estimator = load_model(model, max_memory=max_memory, n_jobs=n_jobs)
        check_memberships(split_model(estimator)[0], memberships)
        check_ids(id_column, out)
        columns = columns or columns_of(estimator, file)
        source = open_rows(file, columns, id_column)
        estimator, source = split_model(estimator, source)
        estimator.predict(source, out=out)
        write_ids(file, id_column, out)
        write_memberships_of(estimator, source, memberships)
    if json:
        show_json({"n_rows": source.n_rows}, {"labels": out, "memberships": memberships})
    elif not quiet:
        show_written({f"labels of {source.n_rows:,} rows": out, "memberships": memberships})


@app.command()
def report(
    *,
    model: options.SavedModel,
    file: options.InputFile,
    columns: options.Columns = None,
    text_column: options.TextColumn = None,
    random_state: options.Seed = None,
    max_memory: options.MaxMemory = None,
    n_jobs: options.Jobs = None,
    out: options.ReportOut,
    title: options.Title = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a page about a saved model and the rows of a file: one HTML file, for any browser."""
    from mercer.cli.scalers import split_model
    from mercer.cli.show import show_json, show_written
    from mercer.cli.work import (
        check_outputs,
        columns_of,
        load_model,
        open_rows,
        texts_of,
        write_report,
    )

    with progress(quiet=quiet):
        check_outputs(inputs=[file, model], report=out)
        loaded = load_model(model, max_memory=max_memory, n_jobs=n_jobs)
        columns = columns or columns_of(loaded, file)
        estimator, source = split_model(loaded, open_rows(file, columns, text_column))
        if "report_" not in vars(estimator):
            raise ValueError(f"{model} holds no report; fit the model again and save it")
        write_report(
            out,
            estimator,
            source,
            title=file.name if title is None else title,
            seed=random_state or 0,
            **texts_of(file, text_column),
        )
    if json:
        show_json(estimator.report_.to_dict(), {"report": out})
    elif not quiet:
        show_written({"report": out})


@app.command()
def explain(
    *,
    model: options.SavedModel,
    json: options.Json = False,
) -> None:
    """Print what a saved model knows: its report, what distinguishes its clusters, exemplars."""
    from mercer.cli.explain import explained, show_explanation
    from mercer.cli.scalers import split_model
    from mercer.cli.show import show_json
    from mercer.cli.work import load_model

    estimator, _ = split_model(load_model(model, max_memory=None, n_jobs=None))
    if "report_" not in vars(estimator):
        raise ValueError(f"{model} holds no report; fit the model again and save it")
    if json:
        show_json(explained(estimator), {})
    else:
        show_explanation(estimator)


@app.command()
@with_parameters(SEARCH, leave_out=("n_clusters", "gamma", "n_jobs"), into="search")
@with_parameters(METHODS, leave_out=("n_clusters", "gamma", "balance", "noise"))
def tune(
    *,
    file: options.InputFile,
    columns: options.Columns = None,
    id_column: options.IdColumn = None,
    scaler: options.Scaler = "none",
    clusters: options.ClusterGrid = "2:10",
    gamma: options.GammaGrid = None,
    search: dict[str, Any],
    method: options.TuneMethod = TUNE_METHOD,
    parameters: dict[str, Any],
    out: options.TableFile = None,
    plot: options.PlotFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare numbers of clusters and bandwidths on held-out rows."""
    from mercer.cli.show import show_json, show_written
    from mercer.cli.tune import show_selection, tune_file

    grid = {"n_clusters": clusters, "gamma": gamma}
    estimator = make_estimator(method, parameters)
    with progress(quiet=quiet):
        source = {"columns": columns, "id_column": id_column, "scaler": scaler}
        found = tune_file(file, estimator, **source, out=out, plot=plot, **grid, **search)
    written = {"table": out, "picture": plot}
    if json:
        show_json(found.to_dict(), written)
    elif not quiet:
        show_selection(found)
        show_written(written)


@app.command()
@with_parameters(SEGMENTER, leave_out=("channel_axis", "alpha", "start_label"))
def segment(
    *,
    images: options.Images,
    parameters: dict[str, Any],
    out: options.PictureFile = None,
    overlay: options.Overlay = "boundaries",
    labels: options.LabelImage = None,
    report: options.SegmentsPage = None,
    model: options.SavedSegmenter = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Segment images: a picture of the segments, their labels, or a page.

    Several images are segmented one by one, and --out, --labels and --report
    name folders. An image that cannot be read is reported at the end, after the
    others are done: exit code 1.
    """
    from mercer.cli.segment import (
        check_request,
        images_in,
        load_segmenter,
        plan_files,
        segment_files,
    )
    from mercer.cli.show import show_json, show_segments
    from mercer.image import Segmenter

    segmenter = Segmenter(**parameters)
    check_request(segmenter, out, labels, report, model)
    jobs = plan_files(images_in(images), out, labels, report)
    if model is not None:
        segmenter = load_segmenter(model)
    with progress(quiet=quiet, unit="images"):
        how = {"overlay": overlay, "is_fitted": model is not None}
        outcomes = list(segment_files(jobs, segmenter, **how))
    if json:
        show_json({"images": [outcome.to_dict() for outcome in outcomes]}, {})
    else:
        show_segments(outcomes, quiet=quiet)
    if any(outcome.error for outcome in outcomes):
        raise typer.Exit(1)


@app.command()
@with_parameters(STREAM)
def stream(
    *,
    files: options.StreamFiles = None,
    input_format: options.InputFormat = "csv",
    parameters: dict[str, Any],
    out: options.LabelsStream = None,
    model: options.Snapshot = None,
    every: options.Every = 10,
    resume: options.Resume = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Cluster a stream of rows: labels are written as rows are read.

    The model file is a snapshot that includes queued rows and the RNG state:
    after an interruption, the same command with --resume continues from it, and
    the result is the same as without the interruption.
    """
    if json and out is None:
        raise typer.BadParameter("labels go to standard output without --out FILE: add it")
    for file in files or []:
        if str(file) != "-":
            demand_path(file)  # before modules are imported that take seconds

    from mercer.cli.show import show_json, show_written
    from mercer.cli.stream import batches_of, stream_rows, told_to_resume
    from mercer.cli.work import check_outputs
    from mercer.stream import StreamingKernelKMeans

    check_outputs(inputs=files or [], labels=out, model=model)
    is_beside_labels = out is None and sys.stdout.isatty()
    with told_to_resume(model), progress(quiet=quiet or is_beside_labels):
        fitted = stream_rows(
            batches_of(files or [], input_format),
            StreamingKernelKMeans(**parameters),
            labels=out,
            snapshot=model,
            every=every,
            resume=resume,
        )
    written = {"labels": out, "model": model}
    if json:
        show_json(fitted.report_.to_dict(), written)
    elif not quiet:
        typer.echo(str(fitted.report_), err=True)
        show_written(written, err=True)


@app.command()
def demo(
    rows: options.DemoRows = 20_000,
    random_state: options.Seed = 0,
    out: options.DemoFolder = Path("demo-output"),
    json: options.Json = False,
) -> None:
    """Cluster a synthetic file end to end, compare with k-means, draw a picture."""
    from contextlib import nullcontext, redirect_stdout
    from io import StringIO

    from mercer.cli.demo import run_demo
    from mercer.cli.show import show_json

    with redirect_stdout(StringIO()) if json else nullcontext():
        scores = run_demo(out, n_rows=rows, seed=random_state)
    if json:
        show_json({"scores": scores}, {"folder": out})


@app.command()
def warmup(
    *,
    everything: options.Everything = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compile Mercer's loops now, so that the first fit starts at once.

    For container images and continuous integration. What is compiled is kept
    in the directory NUMBA_CACHE_DIR, or where numba keeps it otherwise.
    """
    from mercer.cli.show import show_json
    from mercer.cli.warmup import warm_up

    with progress(quiet=quiet, unit="problems"):
        done = warm_up(everything=everything)
    if json:
        show_json(done, {})
    elif not quiet:
        typer.echo(f"compiled for {done['n_problems']} problems; loops are kept in {done['loops']}")
