"""What the verbs do: read files, call the API, write files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPORTS = (".html", ".md", ".json")


def cluster_file(
    file: Path,
    estimator: Any,
    *,
    columns: Sequence[str] | None = None,
    labels: Path | None = None,
    model: Path | None = None,
    report: Path | None = None,
) -> Any:
    """Fit the estimator on the rows of a file and write the requested outputs."""
    from mercer.io import save
    from mercer.rows import as_source

    check_outputs(inputs=[file], labels=labels, model=model, report=report)
    source = as_source(file, columns=columns)
    if labels is None:
        fitted = estimator.fit(source)
    else:
        estimator.fit_predict(source, out=labels)
        fitted = estimator
    if model is not None:
        save(fitted, model)
    if report is not None:
        seed = estimator.random_state if isinstance(estimator.random_state, int) else 0
        write_report(report, fitted, source, title=file.name, seed=seed)
    return fitted


def load_model(path: Path, *, max_memory: str | None, n_jobs: int | None) -> Any:
    """A saved model; resources that are given replace its own."""
    from mercer.io import load

    resources = {"max_memory": max_memory, "n_jobs": n_jobs}
    given = {name: value for name, value in resources.items() if value is not None}
    model = load(path, max_memory=max_memory)
    if not model._reads_rows:
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which labels images instead of rows; use "
            "mercer segment --model, or mercer.load(path).predict(image) in Python"
        )
    return model.set_params(**given)


def write_report(path: Path, model: Any, source: Any, *, title: str, seed: int) -> None:
    """Write the page, or the report alone, depending on the suffix."""
    from mercer._run.atomic import replacing
    from mercer._run.progress import tell
    from mercer.report import write_page

    if path.suffix.lower() == ".html":
        tell("report", 0, 0)
        write_page(path, model, source, title=title, seed=seed)
        return
    report = model.report_
    with replacing(path) as temporary:
        text = report.to_markdown() if path.suffix.lower() == ".md" else report.to_json() + "\n"
        temporary.write_text(text, encoding="utf-8")


def check_outputs(
    *,
    inputs: Sequence[Path],
    labels: Path | None = None,
    model: Path | None = None,
    report: Path | None = None,
) -> None:
    """Raise, before any work, if an output cannot be written or would overwrite an input."""
    from mercer._run.atomic import check_writable
    from mercer.io.labels import check_output
    from mercer.rows.places import check_apart

    check_apart(inputs, [path for path in (labels, model, report) if path is not None])
    if model is not None:
        check_writable(model)
    if labels is not None:
        check_output(labels)
    if report is not None:
        check_writable(report)
        _check_report(report)


def _check_report(path: Path) -> None:
    """Raise if the suffix is not that of a report, or its package is missing."""
    from mercer._run.extras import require

    if path.suffix.lower() not in REPORTS:
        raise ValueError(
            f"{path} does not have the suffix of a report; use one of {', '.join(REPORTS)}"
        )
    if path.suffix.lower() == ".html":
        require("bokeh", "report", "the report page")
