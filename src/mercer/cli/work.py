"""What the verbs do: files in, files out, by calls of the API and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["cluster_file", "predict_file"]


def cluster_file(
    file: Path,
    estimator: Any,
    *,
    columns: Sequence[str] | None = None,
    labels: Path | None = None,
    model: Path | None = None,
) -> Any:
    """The estimator, fitted on the rows of a file; labels and model are written if asked for."""
    from mercer.data import as_source
    from mercer.io import save

    _check_outputs(inputs=[file], labels=labels, model=model)
    source = as_source(file, columns=columns)
    fitted = estimator.fit(source)
    if labels is not None:
        fitted.predict(source, out=labels)
    if model is not None:
        save(fitted, model)
    return fitted


def predict_file(
    model: Path,
    file: Path,
    *,
    labels: Path,
    columns: Sequence[str] | None = None,
    max_memory: str | None = None,
    n_jobs: int | None = None,
) -> int:
    """Write the label of each row of a file by a saved model; the number of rows is returned.

    max_memory, n_jobs : replace the model's own, unless None.
    """
    from mercer.data import as_source
    from mercer.io import load

    _check_outputs(inputs=[file, model], labels=labels)
    estimator = load(model, max_memory=max_memory)
    resources = {"max_memory": max_memory, "n_jobs": n_jobs}
    estimator.set_params(**{name: value for name, value in resources.items() if value is not None})
    source = as_source(file, columns=columns)
    estimator.predict(source, out=labels)
    return source.n_rows


def _check_outputs(
    *, inputs: Sequence[Path], labels: Path | None = None, model: Path | None = None
) -> None:
    """Refuse, before any work, what could not be written or would overwrite what is read."""
    from mercer.io.atomic import check_writable
    from mercer.io.labels import check_output

    taken = {path.resolve(): path for path in inputs}
    for path in (labels, model):
        if path is None:
            continue
        if path.resolve() in taken:
            raise ValueError(f"{path} is named twice; every input and output needs its own file")
        for folder in inputs:
            if folder.is_dir() and path.resolve().is_relative_to(folder.resolve()):
                raise ValueError(f"{path} is inside {folder}, which is read; choose another place")
        taken[path.resolve()] = path
    if model is not None:
        check_writable(model)
    if labels is not None:
        check_output(labels)
