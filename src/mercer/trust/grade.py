"""How reliable a clustering is: evidence, the score they give together, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from mercer._run.frozen import frozen
from mercer.trust.score import GOOD, LEAST_CUT, POOR, contributions, probability

Grade: TypeAlias = Literal["good", "fair", "poor"]
GRADES: tuple[Grade, ...] = ("good", "fair", "poor")

# What each measurement means by itself; the grade of the whole follows from the score.
STABILITY = 0.8, 0.5  # ARI of two halves: fair below, poor below
AGREEMENT = 0.8, 0.5  # ARI with another method
BORDERS = 0.5, 0.7  # edges cut, relative to cells around random rows: fair above, poor above
PIECES = 0.05, 0.15  # share of rows disconnected from the main part of their cluster
NARROW = 0.05, 1e-6  # similarity of a row to the one most like it
WIDE = 0.995, 1 - 1e-6  # mean, and least, similarity of two rows
EXPLAINED = 0.35, 0.2  # share of the kernel that the centres explain
COARSE = 0.9  # trace error: fair above
IGNORED = 0.01  # share of rows that the eigenvectors ignore: fair above
GAP = 0.01  # relative gap after the last eigenvalue that was used: fair below
LARGEST = 0.97  # share of one cluster: fair above
SMALLEST = 1e-3  # of an even share: fair below
UNSCALED = 10.0  # ratio of the columns' spreads from which on scaling them is worth a try
FAULTS = ("bandwidth", "gap", "sizes")  # that no other evidence can outweigh where they are poor
APART = 0.4  # pieces from which on clusters were joined, whatever else is good
DOUBTFUL = 0.5 * (POOR + GOOD)  # the score at most, where one column decides
TOO_FEW = (
    "the examined rows are too few for so many clusters: look at some of the clusters yourself"
)
METHODS = {
    "linkage": "Genie linkage",
    "ward": "Ward's method",
    "neighbors": "a graph of 10 neighbours",
    "wide neighbors": "a graph of 30 neighbours",
}


@frozen
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


@frozen
class Trust:
    """How reliable a clustering is, and why.

    Attributes
    ----------
    grade : {"good", "fair", "poor"}
        The band of the score.
    reasons : tuple of str
        What speaks against the clustering and what to change, weightiest first; empty where the
        grade is good.
    evidence : tuple of Evidence
        All measurements.
    score : float or None
        The estimated probability that the partition is right (None in files of earlier versions).
    """

    grade: Grade
    reasons: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    score: float | None = None

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Trust:
        """Read what a model file holds, without fields that a later version added."""
        names = ("name", "value", "grade", "meaning")
        evidence = tuple(
            Evidence(*(item[name] for name in names) if isinstance(item, dict) else item)
            for item in values.get("evidence", ())
        )
        score = values.get("score")
        score = None if score is None else float(score)
        return cls(values["grade"], tuple(values.get("reasons", ())), evidence, score)

    def to_record(self) -> dict[str, Any]:
        """Plain values without repeated names, as model files hold them; `from_dict` reads both."""
        return asdict(self) | {"evidence": [list(astuple(item)) for item in self.evidence]}

    def worst(self) -> list[str]:
        """The weightiest reasons."""
        return list(self.reasons[:2])

    def __str__(self) -> str:
        if self.score is None:
            return f"{self.grade} ({', '.join(f'{e.name} {e.value:.2g}' for e in self.evidence)})"
        why = self.reasons[0] if self.reasons else self._support()
        return f"{self.grade}, {100 * self.score:.0f} % likely to be right{why and f': {why}'}"

    def _support(self) -> str:
        """What speaks most for the clustering, in words."""
        values = {e.name: e.value for e in self.evidence if e.grade == "good"}
        if "borders" in values:
            values["borders"] = float(np.log(values["borders"] + LEAST_CUT))
        added = contributions(values)
        found = [e for e in self.evidence if e.name in added]
        return max(found, key=lambda e: added[e.name]).meaning if found else ""


@frozen
class Measurements:
    """The numbers behind the evidence; None where a fit has none."""

    n_clusters: int
    stability: float | None = None  # ARI of clusterings of two halves of the rows
    n_halved: int = 0  # those rows
    borders: float | None = None  # edges cut, relative to cells around random rows
    pieces: float | None = None  # share of rows disconnected from the main part of their cluster
    agreements: Mapping[str, float] = field(default_factory=dict)  # ARI with other methods
    similarities: tuple[float, float, float] | None = None  # to the nearest row; mean; least
    explained: float | None = None
    trace_error: float | None = None
    ignored: float = 0.0  # share of rows that the eigenvectors ignore
    gap: float | None = None  # relative, after the last eigenvalue that was used
    is_undetermined: bool = False  # unconnected parts, or a gap within the solver's error
    largest: float = 0.0  # shares of the total weight
    smallest: float = 1.0
    spreads: float = 1.0  # the largest over the smallest spread of a column
    is_uneven: bool = False  # one column decides all distances, and half of the others none

    def scored(self) -> dict[str, float]:
        """What the score is made of."""
        found = dict(self.agreements)
        if self.borders is not None:
            found["borders"] = float(np.log(self.borders + LEAST_CUT))
        return found


Judged: TypeAlias = Iterator[tuple[Evidence, str]]  # with advice


def judge(m: Measurements) -> Trust:
    """Score all evidence together; the grade is the band of the score."""
    judged = [*_partition(m), *_columns(m), *_kernel(m), *_spectrum(m), *_sizes(m)]
    values = m.scored()
    score, added = probability(values), contributions(values)
    if m.is_uneven:  # other methods see the same column and agree
        score = min(score, DOUBTFUL)
    if any(_is_fault(e) for e, _ in judged):
        score = min(score, 0.5 * POOR)
    grade: Grade = "poor" if score < POOR else "fair" if score < GOOD else "good"
    against = sorted(
        (pair for pair in judged if pair[0].grade != "good"),
        key=lambda pair: (_is_decisive(pair[0]), -added.get(pair[0].name, 0.0)),
        reverse=True,
    )
    reasons = tuple(f"{e.meaning}: {advice}" for e, advice in against) or (TOO_FEW,)
    reasons = () if grade == "good" else reasons
    evidence = tuple(replace(e, value=float(f"{e.value:.6g}")) for e, _ in judged)
    return Trust(grade, reasons, evidence, float(f"{score:.6g}"))


def _is_decisive(evidence: Evidence) -> bool:
    return evidence.name == "columns" or _is_fault(evidence)


def _is_fault(evidence: Evidence) -> bool:
    is_apart = evidence.name == "pieces" and evidence.value > APART
    return is_apart or (evidence.name in FAULTS and evidence.grade == "poor")


def _partition(m: Measurements) -> Judged:
    """Are the clusters found again, do they follow the gaps between rows, are they connected?"""
    other_number = (
        "try another n_clusters" if m.n_clusters == 2 else "try another n_clusters, fewer"
    )
    scale = ", or scale the columns" if m.spreads > UNSCALED else ""
    for name, value in m.agreements.items():
        meaning = f"the ARI with {METHODS[name]} is {value:.2f}"
        yield (
            Evidence(name, value, _below(value, *AGREEMENT), meaning),
            f"look at both, or try another n_clusters{scale}",
        )
    if m.stability is not None:
        meaning = f"clusterings of two halves of the rows agree to {m.stability:.2f} (ARI)"
        yield (
            Evidence("resampling", m.stability, _below(m.stability, *STABILITY), meaning),
            "try another n_clusters, a larger gamma or rank, or more rows",
        )
    if m.borders is not None:
        meaning = f"cluster boundaries split close neighbours {_compared(m.borders)}"
        yield (
            Evidence("borders", m.borders, _above(m.borders, *BORDERS), meaning),
            f"the rows show no such clusters; {other_number}{scale}",
        )
    if m.pieces is not None:
        apart = f"{100 * m.pieces:.0f} % of the rows"
        meaning = f"{apart} are disconnected from the main part of their cluster"
        yield (
            Evidence("pieces", m.pieces, _above(m.pieces, *PIECES), meaning),
            "try more clusters, or a larger gamma",
        )


def _compared(share: float) -> str:
    """How often something happens, relative to random boundaries."""
    percent = round(100 * share)
    if percent > 100:
        return f"more often than random boundaries (by {percent - 100} %)"
    return f"{percent} % as often as random boundaries"


def _columns(m: Measurements) -> Judged:
    """Does one column decide, because of its unit?"""
    if m.is_uneven:
        meaning = f"the spreads of columns differ {m.spreads:,.0f}-fold, so that a few decide"
        yield (
            Evidence("columns", m.spreads, "fair", meaning),
            "unless all have one unit, scale the columns",
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
    if m.smallest <= 0:
        grade = "poor"
    elif m.largest > LARGEST or m.smallest * m.n_clusters < SMALLEST:
        grade = "fair"
    meaning = (
        f"the largest cluster holds {100 * m.largest:.2f} % of the weight, the smallest "
        f"{100 * m.smallest:.2g} %"
    )
    scale = "scale the columns, or " if m.spreads > UNSCALED else ""
    yield (
        Evidence("sizes", m.largest, grade, meaning),
        f"outliers may have become clusters; {scale}look at outlier_scores_",
    )


def _below(value: float, fair: float, poor: float) -> Grade:
    return "poor" if value < poor else "fair" if value < fair else "good"


def _above(value: float, fair: float, poor: float) -> Grade:
    return "poor" if value > poor else "fair" if value > fair else "good"
