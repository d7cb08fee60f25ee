"""How far a result deserves trust: evidence, graded, and what to change where it is poor.

The thresholds were set on calibration data before the confirming ones were looked at (but for the
last digit of BORDERS, see benchmarks/trust.py); hit and false-alarm rates on both are in
benchmarks/results/trust.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Grade: TypeAlias = Literal["good", "fair", "poor"]
GRADES: tuple[Grade, ...] = ("good", "fair", "poor")

STABILITY = 0.8, 0.5  # ARI of two halves: fair below, poor below
STABILITY_OF_FEW = 0.3  # poor below, where fewer rows than ENOUGH_ROWS were halved
ENOUGH_ROWS = 1000
BORDERS = 0.5, 0.7  # ties cut, beside cells around random rows: fair above, poor above
CLEAR_BORDERS = 0.3  # up to here instability alone is fair
PIECES = 0.05, 0.15  # share of rows apart from the main piece of their cluster
NARROW = 0.05, 1e-6  # similarity of a row to the one most like it
WIDE = 0.995, 1 - 1e-6  # mean, and least, similarity of two rows
EXPLAINED = 0.35, 0.2  # share of the kernel that the centres explain
COARSE = 0.9  # trace error: fair above
UNHEARD = 0.01  # share of rows without a say in the eigenvectors: fair above
GAP = 0.01  # relative gap after the last eigenvalue that was used: fair below
LARGEST = 0.97  # share of one cluster: fair above, and poor if there are more than two
SMALLEST = 1e-3  # of an even share: fair below


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that speaks for or against a result."""

    name: str
    value: float
    grade: Grade
    meaning: str  # what the value says, in words


@dataclass(frozen=True, slots=True)
class Trust:
    """A grade, why it is not better, and all that was looked at."""

    grade: Grade
    reasons: tuple[str, ...]  # what to change, most urgent first; none where the grade is good
    evidence: tuple[Evidence, ...]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Trust:
        """What a model file holds; names that a later version added are left out."""
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
class Measured:
    """The numbers that evidence is made of; None where a fit cannot tell."""

    n_clusters: int
    stability: float | None = None  # ARI of clusterings made from two halves of the rows
    n_halved: int = 0  # those rows
    borders: float | None = None  # ties cut, relative to cells around random rows
    pieces: float | None = None  # share of rows apart from the main piece of their cluster
    nearest: float | None = None  # median similarity of a row to the one most like it
    mean_alike: float | None = None  # mean similarity of two rows
    least_alike: float | None = None
    explained: float | None = None
    trace_error: float | None = None
    unheard: float = 0.0  # share of rows without a say
    gap: float | None = None  # relative, after the last eigenvalue that was used
    is_undetermined: bool = False  # unconnected parts, or a gap within the solver's error
    largest: float = 0.0  # shares of the total weight
    smallest: float = 1.0


def graded(m: Measured) -> Trust:
    """Every piece of evidence with its grade; the worst is the whole's."""
    looked = [*_partition(m), *_kernel(m), *_spectrum(m), *_sizes(m)]
    worst = max((GRADES.index(e.grade) for e, _ in looked), default=1)
    poorest = sorted(
        ((e, advice) for e, advice in looked if e.grade != "good"),
        key=lambda pair: -GRADES.index(pair[0].grade),
    )
    reasons = tuple(f"{e.meaning}: {advice}" for e, advice in poorest)
    if not looked:
        reasons = ("there were too few rows to judge by",)
    return Trust(GRADES[worst], reasons, tuple(e for e, _ in looked))


Judged: TypeAlias = list[tuple[Evidence, str]]


def _partition(m: Measured) -> Judged:
    """Do the clusters come again, follow the gaps between rows, and hold together?"""
    found: Judged = []
    if m.stability is not None:
        meaning = f"clusters made from two halves of the rows agree to {m.stability:.2f} (ARI)"
        advice = "try another n_clusters, a larger gamma or rank, or more rows"
        poor = STABILITY[1] if m.n_halved >= ENOUGH_ROWS else STABILITY_OF_FEW
        grade = _below(m.stability, STABILITY[0], poor)
        if grade == "poor" and _follows_gaps(m):
            grade = "fair"  # which of several clear cuts it is may still turn on a few rows
        found.append((Evidence("resampling", m.stability, grade, meaning), advice))
    if m.borders is not None:
        meaning = (
            f"borders between clusters cut {100 * m.borders:.0f} % as many near pairs of rows as "
            "borders drawn anywhere would"
        )
        advice = "the rows show no such clusters; try fewer, or scale the columns"
        grade = _above(m.borders, *BORDERS)
        found.append((Evidence("borders", m.borders, grade, meaning), advice))
    if m.pieces is not None:
        meaning = f"{100 * m.pieces:.0f} % of the rows lie apart from the rest of their cluster"
        advice = "try more clusters, or a larger gamma"
        grade = _above(m.pieces, *PIECES)
        found.append((Evidence("pieces", m.pieces, grade, meaning), advice))
    return found


def _kernel(m: Measured) -> Judged:
    """Does the kernel see anything, and do factor and centres keep it?"""
    found: Judged = []
    if m.nearest is not None and m.mean_alike is not None and m.least_alike is not None:
        grade = _below(m.nearest, *NARROW)
        meaning = f"the kernel sees rows nearest to each other as {m.nearest:.2g} alike"
        advice = "use a smaller gamma, or gamma='auto'"
        if grade == "good" and m.mean_alike > WIDE[0]:
            grade = "poor" if m.least_alike > WIDE[1] else "fair"
            meaning = f"the kernel sees any two rows as {m.mean_alike:.6g} alike"
            advice = "use a larger gamma, or gamma='auto'"
        found.append((Evidence("bandwidth", m.nearest, grade, meaning), advice))
    if m.explained is not None:
        meaning = f"the centres explain {100 * m.explained:.0f} % of the kernel"
        advice = "use a smaller gamma, or more clusters"
        grade = _below(m.explained, *EXPLAINED)
        found.append((Evidence("explained", m.explained, grade, meaning), advice))
    if m.trace_error is not None:
        is_coarse = m.trace_error > COARSE or m.unheard > UNHEARD
        meaning = f"the factor misses {100 * m.trace_error:.0f} % of the kernel's trace"
        if m.unheard > UNHEARD:
            meaning += f", and {100 * m.unheard:.1f} % of the rows have no say"
        error = Evidence("approximation", m.trace_error, "fair" if is_coarse else "good", meaning)
        found.append((error, "raise rank, or use a smaller gamma"))
    return found


def _spectrum(m: Measured) -> Judged:
    """Do the eigenvalues determine the clusters?"""
    if m.gap is None:
        return []
    grade: Grade = "poor" if m.is_undetermined else "fair" if m.gap < GAP else "good"
    meaning = f"the relative gap after eigenvalue {m.n_clusters} is {m.gap:.2g}"
    return [(Evidence("gap", m.gap, grade, meaning), "try another n_clusters")]


def _sizes(m: Measured) -> Judged:
    """Are there clusters without rows, or one with nearly all?"""
    even = m.smallest * m.n_clusters
    grade: Grade = "good"
    if m.smallest <= 0 or (m.largest > LARGEST and m.n_clusters > 2):
        grade = "poor"
    elif m.largest > LARGEST or even < SMALLEST:
        grade = "fair"
    meaning = (
        f"the largest cluster holds {100 * m.largest:.2f} % of the weight, the smallest "
        f"{100 * m.smallest:.2g} %"
    )
    advice = "stray rows may have become clusters; scale the columns, or remove strays"
    return [(Evidence("sizes", m.largest, grade, meaning), advice)]


def _follows_gaps(m: Measured) -> bool:
    """Do borders run where rows are few, around clusters that hold together?"""
    if m.borders is None or m.pieces is None:
        return False
    return m.borders <= CLEAR_BORDERS and m.pieces <= PIECES[0]


def _below(value: float, fair: float, poor: float) -> Grade:
    return "poor" if value < poor else "fair" if value < fair else "good"


def _above(value: float, fair: float, poor: float) -> Grade:
    return "poor" if value > poor else "fair" if value > fair else "good"
