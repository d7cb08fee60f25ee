"""What the verbs do: read files, call the API, write files."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from mercer._run.url import Place
from mercer.cli.scalers import fit_scaler, split_model

REPORTS = (".html", ".md", ".json")


def cluster_file(
    file: Place,
    estimator: Any,
    *,
    columns: Sequence[str] | None = None,
    scaler: str = "none",
    id_column: str | None = None,
    labels: Place | None = None,
    memberships: Place | None = None,
    model: Place | None = None,
    report: Place | None = None,
) -> Any:
    """Fit the estimator on the rows of a file and write the requested outputs."""
    from mercer.io import save

    written = {"labels": labels, "memberships": memberships, "model": model, "report": report}
    check_outputs(inputs=[file], **written)
    check_memberships(estimator, memberships)
    check_ids(id_column, labels)
    source, before = scaled(open_rows(file, columns, id_column), scaler)
    if labels is None:
        fitted = estimator.fit(source)
    else:
        estimator.fit_predict(source, out=labels)
        fitted = estimator
        write_ids(file, id_column, labels)
    write_memberships_of(fitted, source, memberships)
    if model is not None:
        save(_joined(before, fitted), model)
    if report is not None:
        seed = estimator.random_state if isinstance(estimator.random_state, int) else 0
        write_report(report, fitted, source, title=file.name, seed=seed)
    return fitted


def scaled(source: Any, scaler: str) -> tuple[Any, list[tuple[str, Any]]]:
    """The rows as a scaler leaves them, and the step that a pipeline has for it."""
    if scaler == "none":
        return source, []
    from mercer.rows.transformed import TransformedSource

    step = fit_scaler(scaler, source)
    return TransformedSource(source, step), [("scaler", step)]


def _joined(before: list[tuple[str, Any]], fitted: Any) -> Any:
    """The model, with the steps that rows go through before it.

    As in any pipeline, the first step knows the names of the columns, and the others get arrays.
    """
    if not before:
        return fitted
    from sklearn.pipeline import Pipeline

    fitted = copy(fitted)
    if (names := vars(fitted).pop("feature_names_in_", None)) is not None:
        before[0][1].feature_names_in_ = names
    return Pipeline([*before, ("cluster", fitted)])


def open_rows(file: Place, columns: Sequence[str] | None, other: str | None = None) -> Any:
    """The rows of a file; another column, of ids or texts, is no feature."""
    from mercer.rows import as_source
    from mercer.rows.ids import IdColumn

    if other is None:
        return as_source(file, columns=columns)
    ids = IdColumn(file, other)
    ids.check()
    if columns is not None and other in columns:
        raise ValueError(
            f"{other!r} is among --columns and cannot be the column of ids or texts as well"
        )
    return as_source(file, columns=ids.features() if columns is None else columns)


def columns_of(model: Any, file: Place) -> list[str] | None:
    """The columns of a model among others in a table; one without others is checked as it is."""
    from mercer.rows.ids import names_of

    known, found = list(getattr(model, "feature_names_in_", ())), set(names_of(file))
    return known if found & set(known) and found - set(known) else None


def check_ids(id_column: str | None, labels: Place | None) -> None:
    """Refuse labels that have no room for ids."""
    from mercer.io.labels import check_joinable

    if id_column is not None and labels is not None:
        check_joinable(labels)


def texts_of(file: Place, text_column: str | None) -> dict[str, list[str]]:
    """The texts of all rows, as an option of the page, if there is a column of them."""
    from mercer.rows.ids import IdColumn

    if text_column is None:
        return {}
    values = IdColumn(file, text_column).values().to_pylist()
    return {"texts": ["" if value is None else str(value) for value in values]}


def check_memberships(estimator: Any, path: Place | None) -> None:
    """Refuse memberships of an estimator that has none."""
    if path is not None and not estimator._has_memberships:
        raise ValueError(
            f"{type(estimator).__name__} has no memberships, so --memberships cannot be written; "
            "use --method spectral or ksc, or leave it out"
        )


def write_memberships_of(model: Any, source: Any, path: Place | None) -> None:
    """Write how much each row belongs to each cluster, tile by tile, if that was asked for."""
    from mercer.io.memberships import write_memberships
    from mercer.rows.arrays import ArraySource
    from mercer.rows.source import spans

    if path is None:
        return

    def memberships(span: tuple[int, int]) -> Any:
        rows = source.read(*span)
        named = source.feature_names is not None
        return model.memberships(ArraySource(rows, source.feature_names) if named else rows)

    blocks = map(memberships, spans(source.n_rows))
    write_memberships(path, blocks, source.n_rows, len(model.cluster_weights_))


def write_ids(file: Place, id_column: str | None, labels: Place) -> None:
    """Put the ids of the rows beside their labels, if they were asked for."""
    from mercer.io.labels import join_ids
    from mercer.rows.ids import IdColumn

    if id_column is not None:
        join_ids(labels, IdColumn(file, id_column).values(), id_column)


def load_model(path: Place, *, max_memory: str | None, n_jobs: int | None) -> Any:
    """A saved model; resources that are given replace its own."""
    from mercer.io import load

    resources = {"max_memory": max_memory, "n_jobs": n_jobs}
    given = {name: value for name, value in resources.items() if value is not None}
    model = load(path, max_memory=max_memory)
    estimator, _ = split_model(model)
    if not estimator._reads_rows:
        raise ValueError(
            f"{path} holds a {type(estimator).__name__}, which labels images instead of rows; use "
            "mercer segment --model, or mercer.load(path).predict(image) in Python"
        )
    estimator.set_params(**given)
    return model


def write_report(
    path: Place, model: Any, source: Any, *, title: str, seed: int, **options: Any
) -> None:
    """Write the page, or the report alone, depending on the suffix."""
    from mercer._run.atomic import replacing
    from mercer._run.progress import tell
    from mercer.report import write_page

    if path.suffix.lower() == ".html":
        tell("report", 0, 0)
        write_page(path, model, source, title=title, seed=seed, **options)
        return
    report = model.report_
    with replacing(path) as temporary:
        text = report.to_markdown() if path.suffix.lower() == ".md" else report.to_json() + "\n"
        temporary.write_text(text, encoding="utf-8")


def check_outputs(
    *,
    inputs: Sequence[Place],
    labels: Place | None = None,
    memberships: Place | None = None,
    model: Place | None = None,
    report: Place | None = None,
) -> None:
    """Raise, before any work, if an output cannot be written or would overwrite an input."""
    from mercer._run.atomic import check_writable
    from mercer.io.labels import check_output
    from mercer.io.memberships import check_memberships_file
    from mercer.rows.places import check_apart

    outputs = (labels, memberships, model, report)
    check_apart(inputs, [path for path in outputs if path is not None])
    if model is not None:
        check_writable(model)
    if labels is not None:
        check_output(labels)
    if memberships is not None:
        check_memberships_file(memberships)
    if report is not None:
        check_writable(report)
        _check_report(report)


def _check_report(path: Place) -> None:
    """Raise if the suffix is not that of a report, or its package is missing."""
    from mercer._run.extras import require

    if path.suffix.lower() not in REPORTS:
        raise ValueError(
            f"{path} does not have the suffix of a report; use one of {', '.join(REPORTS)}"
        )
    if path.suffix.lower() == ".html":
        require("bokeh", "report", "the report page")
