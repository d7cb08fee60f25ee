"""How reliable a clustering is: evidence, its grades, and what to change where they are poor.

The thresholds were set on calibration data before the confirming ones were looked at (but for the
last digit of BORDERS, see benchmarks/trust.py); hit and false-alarm rates on both are in
benchmarks/results/trust.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Grade: TypeAlias = Literal["good", "fair", "poor"]
GRADES: tuple[Grade, ...] = ("good", "fair", "poor")

STABILITY = 0.8, 0.5  # ARI of two halves: fair below, poor below
STABILITY_OF_FEW = 0.3  # poor below, where fewer rows than ENOUGH_ROWS were halved
ENOUGH_ROWS = 1000
BORDERS = 0.5, 0.7  # edges cut, relative to cells around random rows: fair above, poor above
CLEAR_BORDERS = 0.3  # up to here instability alone is fair
PIECES = 0.05, 0.15  # share of rows disconnected from the main part of their cluster
NARROW = 0.05, 1e-6  # similarity of a row to the one most like it
WIDE = 0.995, 1 - 1e-6  # mean, and least, similarity of two rows
EXPLAINED = 0.35, 0.2  # share of the kernel that the centres explain
COARSE = 0.9  # trace error: fair above
IGNORED = 0.01  # share of rows that the eigenvectors ignore: fair above
GAP = 0.01  # relative gap after the last eigenvalue that was used: fair below
LARGEST = 0.97  # share of one cluster: fair above, and poor if there are more than two
SMALLEST = 1e-3  # of an even share: fair below


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measurement that supports or contradicts a clustering.

    Attributes
    ----------
    name : str
        What was measured.
    value : float
        The number.
    grade : {"good", "fair", "poor"}
        What the number means for the clustering.
    meaning : str
        The number in words.
    """

    name: str
    value: float
    grade: Grade
    meaning: str


@dataclass(frozen=True, slots=True)
class Trust:
    """How reliable a clustering is, and why.

    Attributes
    ----------
    grade : {"good", "fair", "poor"}
        The grade of the worst evidence.
    reasons : tuple of str
        What to change, most urgent first; empty where the grade is good.
    evidence : tuple of Evidence
        All measurements.
    """

    grade: Grade
    reasons: tuple[str, ...]
    evidence: tuple[Evidence, ...]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Trust:
        """Read what a model file holds, without fields that a later version added."""
        names = ("name", "value", "grade", "meaning")
        evidence = tuple(
            Evidence(*(item[name] for name in names)) for item in values.get("evidence", ())
        )
        return cls(values["grade"], tuple(values.get("reasons", ())), evidence)

    def worst(self) -> list[str]:
        """The reasons behind the grade itself."""
        n_worst = sum(e.grade == self.grade for e in self.evidence)
        return list(self.reasons[:n_worst])

    def __str__(self) -> str:
        return f"{self.grade} ({', '.join(f'{e.name} {e.value:.2g}' for e in self.evidence)})"


@dataclass(frozen=True, slots=True)
class Measurements:
    """The numbers behind the evidence; None where a fit has none."""

    n_clusters: int
    stability: float | None = None  # ARI of clusterings of two halves of the rows
    n_halved: int = 0  # those rows
    borders: float | None = None  # edges cut, relative to cells around random rows
    pieces: float | None = None  # share of rows disconnected from the main part of their cluster
    similarities: tuple[float, float, float] | None = None  # to the nearest row; mean; least
    explained: float | None = None
    trace_error: float | None = None
    ignored: float = 0.0  # share of rows that the eigenvectors ignore
    gap: float | None = None  # relative, after the last eigenvalue that was used
    is_undetermined: bool = False  # unconnected parts, or a gap within the solver's error
    largest: float = 0.0  # shares of the total weight
    smallest: float = 1.0


Judged: TypeAlias = Iterator[tuple[Evidence, str]]  # with advice


def judge(m: Measurements) -> Trust:
    """Grade every piece of evidence; the worst grade is that of the whole."""
    judged = [*_partition(m), *_kernel(m), *_spectrum(m), *_sizes(m)]
    ranked = sorted(judged, key=lambda pair: -GRADES.index(pair[0].grade))
    reasons = tuple(f"{e.meaning}: {advice}" for e, advice in ranked if e.grade != "good")
    return Trust(ranked[0][0].grade, reasons, tuple(e for e, _ in judged))


def _partition(m: Measurements) -> Judged:
    """Are the clusters found again, do they follow the gaps between rows, are they connected?"""
    if m.stability is not None:
        poor = STABILITY[1] if m.n_halved >= ENOUGH_ROWS else STABILITY_OF_FEW
        grade = _below(m.stability, STABILITY[0], poor)
        if grade == "poor" and _follows_gaps(m):
            grade = "fair"  # which of several clear cuts it is may still turn on a few rows
        meaning = f"clusterings of two halves of the rows agree to {m.stability:.2f} (ARI)"
        yield (
            Evidence("resampling", m.stability, grade, meaning),
            "try another n_clusters, a larger gamma or rank, or more rows",
        )
    if m.borders is not None:
        percent, almost = f"{100 * m.borders:.0f} %", "" if m.borders >= 1 else "almost "
        often = f"{almost}as often ({percent})" if m.borders > BORDERS[0] else f"{percent} as often"
        meaning = f"cluster boundaries split close neighbours {often} as random boundaries"
        yield (
            Evidence("borders", m.borders, _above(m.borders, *BORDERS), meaning),
            "the rows show no such clusters; try fewer, or scale the columns",
        )
    if m.pieces is not None:
        apart = f"{100 * m.pieces:.0f} % of the rows"
        meaning = f"{apart} are disconnected from the main part of their cluster"
        yield (
            Evidence("pieces", m.pieces, _above(m.pieces, *PIECES), meaning),
            "try more clusters, or a larger gamma",
        )


def _kernel(m: Measurements) -> Judged:
    """Does the kernel distinguish rows, and do factor and centres keep that?"""
    if m.similarities is not None:
        yield _bandwidth(*m.similarities)
    if m.explained is not None:
        meaning = f"the centres explain {100 * m.explained:.0f} % of the kernel"
        yield (
            Evidence("explained", m.explained, _below(m.explained, *EXPLAINED), meaning),
            "use a smaller gamma, or more clusters",
        )
    if m.trace_error is not None:
        is_coarse = m.trace_error > COARSE or m.ignored > IGNORED
        meaning = f"the factor misses {100 * m.trace_error:.0f} % of the kernel's trace"
        if m.ignored > IGNORED:
            meaning += f", and {100 * m.ignored:.1f} % of the rows are ignored"
        grade: Grade = "fair" if is_coarse else "good"
        yield (
            Evidence("approximation", m.trace_error, grade, meaning),
            "raise rank, or use a smaller gamma",
        )


def _bandwidth(nearest: float, mean: float, least: float) -> tuple[Evidence, str]:
    """Is the kernel too narrow, or too wide?"""
    grade = _below(nearest, *NARROW)
    if grade == "good" and mean > WIDE[0]:
        grade = "poor" if least > WIDE[1] else "fair"
        meaning = f"the mean similarity of two rows is {mean:.6g}"
        return Evidence("bandwidth", nearest, grade, meaning), "use a larger gamma, or gamma='auto'"
    meaning = f"the median similarity of a row to its nearest row is {nearest:.2g}"
    return Evidence("bandwidth", nearest, grade, meaning), "use a smaller gamma, or gamma='auto'"


def _spectrum(m: Measurements) -> Judged:
    """Do the eigenvalues determine the clusters?"""
    if m.gap is not None:
        grade: Grade = "poor" if m.is_undetermined else "fair" if m.gap < GAP else "good"
        meaning = f"the relative gap after eigenvalue {m.n_clusters} is {m.gap:.2g}"
        yield Evidence("gap", m.gap, grade, meaning), "try another n_clusters"


def _sizes(m: Measurements) -> Judged:
    """Are there empty clusters, or one with nearly all rows?"""
    grade: Grade = "good"
    if m.smallest <= 0 or (m.largest > LARGEST and m.n_clusters > 2):
        grade = "poor"
    elif m.largest > LARGEST or m.smallest * m.n_clusters < SMALLEST:
        grade = "fair"
    meaning = (
        f"the largest cluster holds {100 * m.largest:.2f} % of the weight, the smallest "
        f"{100 * m.smallest:.2g} %"
    )
    yield (
        Evidence("sizes", m.largest, grade, meaning),
        "outliers may have become clusters; scale the columns, or remove outliers",
    )


def _follows_gaps(m: Measurements) -> bool:
    """Do boundaries run where rows are few, around connected clusters?"""
    if m.borders is None or m.pieces is None:
        return False
    return m.borders <= CLEAR_BORDERS and m.pieces <= PIECES[0]


def _below(value: float, fair: float, poor: float) -> Grade:
    return "poor" if value < poor else "fair" if value < fair else "good"


def _above(value: float, fair: float, poor: float) -> Grade:
    return "poor" if value > poor else "fair" if value > fair else "good"
