"""The page of the results: means, wins, losses with their reasons, spread over seeds, every set."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.methods import METHODS
from benchmarks.suite.sets import GROUPS

LOSS = 0.2  # below the best peer: named with a reason
TIE = 0.01  # of the best: a win, too
MOVED = 0.05  # against an earlier run: named
FEW = 0.01  # of the rows: stray rows rather than a cluster

Scores = dict[str, dict[str, float]]  # of a method and a set


def scores_of(runs: dict[str, Any], what: str = "ari") -> Scores:
    """The mean over seeds of what was run."""
    return {
        method: {
            title: float(np.mean([seed[what] for seed in kept["seeds"].values()]))
            for title, kept in sets.items()
            if "seeds" in kept
        }
        for method, sets in runs.items()
    }


def page(result: dict[str, Any], before: dict[str, Any] | None = None) -> str:
    """Everything as Markdown."""
    runs = {name: result["runs"][name] for name in METHODS if result["runs"].get(name)}
    ari, nmi = scores_of(runs), scores_of(runs, "nmi")
    lines = ["# Mercer and its peers, the number of clusters given", ""]
    lines += _legend()
    for group in GROUPS:
        titles = sorted({t for sets in runs.values() for t in sets if t.startswith(f"{group}:")})
        if titles:
            lines += _group(group, titles, runs, ari, nmi)
    lines += _losses(runs, ari)
    if before is not None:
        lines += _moves(ari, scores_of(before["runs"]))
    lines += _every_set(runs, ari, nmi) + _versions(runs)
    return "\n".join(lines)


def _legend() -> list[str]:
    return [
        "Mean over seeds of the adjusted Rand index with the reference that agrees best: 65 sets",
        "of suite.npz, 12 tables, four larger sets, and `mercer.datasets.gaussian_pair`. A win is",
        f"a score within {TIE} of the best, a loss one more than {LOSS} below the best peer, the",
        "spread the mean over sets of the standard deviation over seeds; seconds are of the CPU,",
        "one thread, the median set. HDBSCAN takes no number of clusters: its smallest cluster is",
        "sized to come nearest to it, and noise joins the nearest cluster. Means are over the sets",
        "that a method was run on: compare lines of equally many.",
        "",
    ]


def _group(group: str, titles: list[str], runs: Any, ari: Scores, nmi: Scores) -> list[str]:
    """One line per method."""
    lines = [f"## {group}: {len(titles)} sets", ""]
    lines += ["| method | sets | mean ARI | mean NMI | wins | losses | spread | seconds |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for method in runs:
        have = [title for title in titles if title in ari[method]]
        if not have:
            continue
        every = {title: [s[title] for s in ari.values() if title in s] for title in have}
        wins = sum(ari[method][title] >= max(every[title]) - TIE for title in have)
        peers = {title: best_peer(ari, title) for title in have}
        lost = sum(
            peer is not None and ari[method][title] < ari[peer][title] - LOSS
            for title, peer in peers.items()
        )
        seeds = [runs[method][title]["seeds"].values() for title in have]
        spread = np.mean([np.std([s["ari"] for s in some]) for some in seeds])
        seconds = np.median([np.mean([s["seconds"] for s in some]) for some in seeds])
        means = [np.mean([scores[method][t] for t in have]) for scores in (ari, nmi)]
        losses = "" if METHODS[method].is_peer else str(lost)
        cells = [METHODS[method].title, str(len(have)), *(f"{mean:.3f}" for mean in means)]
        cells += [str(wins), losses, f"{spread:.3f}", f"{seconds:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", *_skipped(titles, runs)]


def _skipped(titles: list[str], runs: Any) -> list[str]:
    """Sets that a method was not run on, by reason."""
    lines = []
    for method, sets in runs.items():
        for title in titles:
            if "skipped" in sets.get(title, {}):
                reason = sets[title]["skipped"]
                lines.append(f"Not run: {METHODS[method].title} on {title} ({reason}).  ")
    return [*lines, ""] if lines else []


def best_peer(ari: Scores, title: str) -> str | None:
    """The peer with the best score on a set."""
    peers = [name for name in ari if METHODS[name].is_peer and title in ari[name]]
    return max(peers, key=lambda name: ari[name][title], default=None)


def reason(kept: dict[str, Any], found: dict[str, float]) -> str:
    """Why a set was lost, as far as the results themselves show it."""
    seeds = list(kept["seeds"].values())
    peers = {name: score for name, score in found.items() if METHODS[name].is_peer}
    close = {name for name, score in peers.items() if score > max(peers.values()) - LOSS / 2}
    smallest = float(np.median([seed["smallest"] for seed in seeds]))
    reasons = []
    if smallest < FEW * kept["rows"]:
        reasons.append(f"stray rows: a cluster has {smallest:.0f}")
    if max(seed["ari"] for seed in seeds) > max(peers.values()) - LOSS / 2:
        reasons.append("chance: some seeds find it")
    if close & {"kmeans", "ward"}:
        reasons.append("compact clusters: means find them")
    elif close == {"mixture"}:
        reasons.append("ellipses of different shapes: covariances find them")
    else:
        reasons.append("the graph: other neighbours find it")
    grades = sorted({seed["grade"] for seed in seeds if "grade" in seed})
    return "; ".join([*reasons, f"graded {' or '.join(grades)}"] if grades else reasons)


def _losses(runs: Any, ari: Scores) -> list[str]:
    """Where one of Mercer's methods is far below the best peer."""
    lines = [f"## Losses by more than {LOSS} to the best peer", ""]
    lines += ["| set | method | ARI | best peer | ARI | reason |", "|---|---|---|---|---|---|"]
    for method in (name for name in runs if not METHODS[name].is_peer):
        for title in sorted(ari[method]):
            peer = best_peer(ari, title)
            if peer is None or ari[method][title] >= ari[peer][title] - LOSS:
                continue
            found = {name: scores[title] for name, scores in ari.items() if title in scores}
            why = reason(runs[method][title], found)
            cells = [title, METHODS[method].title, f"{ari[method][title]:.2f}"]
            cells += [METHODS[peer].title, f"{ari[peer][title]:.2f}", why]
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _moves(ari: Scores, earlier: Scores) -> list[str]:
    """What an earlier run scored, and the sets that moved."""
    lines = ["## Against the earlier run", "", "| method | sets | before | now | moved |"]
    lines += ["|---|---|---|---|---|"]
    for method in ari:
        both = sorted(set(ari[method]) & set(earlier.get(method, {})))
        if not both:
            continue
        old, new = earlier[method], ari[method]
        moved = [f"{t} {old[t]:.2f} → {new[t]:.2f}" for t in both if abs(new[t] - old[t]) > MOVED]
        cells = [METHODS[method].title, str(len(both))]
        cells += [f"{np.mean([some[t] for t in both]):.3f}" for some in (old, new)]
        lines.append(f"| {' | '.join(cells)} | {', '.join(moved) or '–'} |")
    return [*lines, ""]


def _every_set(runs: Any, ari: Scores, nmi: Scores) -> list[str]:
    """One line per set; of the larger real ones NMI, too."""
    lines = ["## Every set", ""]
    lines += [f"| set | {' | '.join(METHODS[name].title for name in runs)} |"]
    lines += ["|---" * (len(runs) + 1) + "|"]
    for group in GROUPS:
        for title in dict.fromkeys(t for sets in runs.values() for t in sets):
            if not title.startswith(f"{group}:"):
                continue
            rows = [(title, ari)] + ([(f"{title}, NMI", nmi)] if group == "real" else [])
            for name, scores in rows:
                cells = [f"{scores[m][title]:.3f}" if title in scores[m] else "–" for m in runs]
                lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _versions(runs: Any) -> list[str]:
    """What was measured, and when."""
    lines = [
        "## What was measured",
        "",
        "| method | package | commit | date |",
        "|---|---|---|---|",
    ]
    for name, sets in runs.items():
        facts = [
            ", ".join(dict.fromkeys(str(kept[what]) for kept in sets.values()))
            for what in ("version", "commit", "date")
        ]
        package = f"{METHODS[name].package} {facts[0]}"
        lines.append(f"| {METHODS[name].title} | {package} | {facts[1]} | {facts[2]} |")
    return lines
