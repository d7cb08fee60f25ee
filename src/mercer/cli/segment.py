"""`mercer segment`: one image file after another; a bad one does not stop the others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.progress import listening, tell

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp")


@frozen
class ImageJob:
    """One image and the files to be made of it."""

    image: Path
    picture: Path | None
    labels: Path | None
    report: Path | None = None


@frozen
class Outcome:
    """The result of one image."""

    job: ImageJob
    n_segments: int = 0
    shape: tuple[int, ...] = ()
    seconds: float = 0.0
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        job = {name: None if path is None else str(path) for name, path in values["job"].items()}
        return job | {name: value for name, value in values.items() if name != "job"}


def check_request(
    segmenter: Any, out: Path | None, labels: Path | None, report: Path | None, model: Path | None
) -> None:
    """Refuse, before any work, a request that writes nothing or contradicts itself."""
    if out is None and labels is None and report is None:
        raise ValueError(
            "nothing would be written: --out FILE makes a picture, --labels FILE keeps labels, "
            "--report FILE.html makes a page"
        )
    if model is None:
        return
    if report is not None:
        raise ValueError("--report is about the image of a fit; leave out --model, or --report")
    if segmenter.get_params() != type(segmenter)().get_params():
        raise ValueError(
            f"{model} has its own number of segments, method and options; pass no others with "
            "--model"
        )


def images_in(paths: Sequence[Path]) -> list[Path]:
    """The images that are named, or those of the only folder, in the order of their names."""
    if len(paths) != 1 or not paths[0].is_dir():
        return list(paths)
    images = sorted(file for file in paths[0].iterdir() if file.suffix.lower() in SUFFIXES)
    if not images:
        raise ValueError(f"there are no images in {paths[0]}; it has no {', '.join(SUFFIXES)}")
    return images


def plan_files(
    images: Sequence[Path], out: Path | None, labels: Path | None, report: Path | None = None
) -> list[ImageJob]:
    """The files to write: those that are named, or for several images files in folders.

    Raises, before any work, if a file would be written twice or over an input.
    """
    from mercer.rows.places import check_apart

    many = len(images) > 1
    jobs = [
        ImageJob(
            image,
            _target(out, image, many=many),
            _target(labels, image, many=many),
            _target(report, image, many=many, suffix=".html"),
        )
        for image in images
    ]
    written = (path for job in jobs for path in (job.picture, job.labels, job.report))
    try:
        read = [image for image in images if image.is_file()]  # others: one by one
        check_apart(read, [path for path in written if path is not None])
    except ValueError as error:
        raise ValueError(
            f"{error}: it would be written twice, or over an image that is read; choose other "
            "names or folders with --out, --labels and --report"
        ) from None
    return jobs


def segment_files(
    jobs: Sequence[ImageJob], segmenter: Any, *, overlay: Any, is_fitted: bool = False
) -> Iterator[Outcome]:
    """Segment each image by itself, or all by one fitted segmenter.

    The error of a bad one is part of its outcome.
    """
    from sklearn.base import clone

    from mercer.cli.errors import paragraph
    from mercer.exceptions import MissingExtraError

    for number, job in enumerate(jobs):
        tell("segment", number, len(jobs))
        try:
            with listening(_ignore):
                if is_fitted:
                    outcome = _label_file(job, segmenter, overlay)
                else:
                    outcome = _segment_file(job, clone(segmenter), overlay)
        except MissingExtraError:
            raise
        except (ValueError, TypeError, OSError, MemoryError) as error:
            outcome = Outcome(job, error=paragraph(error))
        yield outcome
    tell("segment", len(jobs), len(jobs))


def load_segmenter(path: Path) -> Any:
    """A saved segmenter; other models are refused."""
    import mercer
    from mercer.image import Segmenter

    model = mercer.load(path)
    if not isinstance(model, Segmenter):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which labels rows; use `mercer predict`, or "
            "pass the file of a Segmenter"
        )
    return model


def _segment_file(job: ImageJob, segmenter: Any, overlay: Any) -> Outcome:
    from mercer.image import read_image
    from mercer.report import write_page

    image, visible = read_image(job.image)
    segmenter.fit(image, mask=visible)
    _write(job, image, segmenter.labels_, overlay)
    if job.report is not None:
        write_page(job.report, segmenter, image, title=job.image.name)
    seconds = sum(stage.seconds for stage in segmenter.report_.stages)
    return Outcome(job, _count(segmenter.labels_), image.shape[:2], seconds)


def _label_file(job: ImageJob, segmenter: Any, overlay: Any) -> Outcome:
    from mercer.image import read_image

    image, visible = read_image(job.image)
    start = time.perf_counter()
    labels = segmenter.predict(image, mask=visible)
    seconds = time.perf_counter() - start
    _write(job, image, labels, overlay)
    return Outcome(job, _count(labels), image.shape[:2], seconds)


def _count(labels: Any) -> int:
    return len(np.unique(labels[labels > 0]))


def _write(job: ImageJob, image: Any, labels: Any, overlay: Any) -> None:
    from mercer.image import draw_overlay, write_image, write_labels_image

    _make_folders(job)
    if job.labels is not None:
        write_labels_image(job.labels, labels)
    if job.picture is not None:
        write_image(job.picture, draw_overlay(image, labels, overlay))


def _make_folders(job: ImageJob) -> None:
    """Make the folders of the results, if their parents exist."""
    for path in (job.picture, job.labels, job.report):
        if path is not None and not path.parent.exists() and path.parent.parent.exists():
            path.parent.mkdir(exist_ok=True)


def _target(path: Path | None, image: Path, *, many: bool, suffix: str = ".png") -> Path | None:
    """A file for one image; a folder, with the image's name, for several."""
    if path is None:
        return None
    if many and path.suffix and not path.is_dir():
        raise ValueError(
            f"{path} is one file, but several images were given; name a folder for their results"
        )
    return path / f"{image.stem}{suffix}" if many or path.is_dir() else path


def _ignore(stage: str, done: int, total: int) -> None:
    """The stages within one image are too short to show."""
