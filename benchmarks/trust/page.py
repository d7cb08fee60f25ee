"""results/trust.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.trust.fits import METHODS
from benchmarks.trust.model import Fits, is_poor, rates

WANTED = {
    "auc": "≥ 0.92",
    "hits, ARI < .2": "≥ 85 %",
    "hits, ARI < .5": "≥ 70 %",
    "false alarms, ARI > .9": "≤ 5 %",
}


def page(result: dict[str, Any]) -> str:
    """All rates, and every fit."""
    lines = ['# How far `report_.trust` and `n_clusters="auto"` can be believed', ""]
    if result["given"]:
        lines += [
            "## The score, number of clusters given",
            "",
            "Fits with default settings at the number of clusters of each reference. Each fit is "
            "scored by a model that was fitted to other sets (ten folds of sets); poor is a score "
            "below the threshold of the package. Fits to rows without clusters count as ARI 0.",
            "",
            *given_table(result["given"]),
            "",
            *_calibration(result["given"]),
        ]
    if result["counted"]:
        lines += [
            "## The number of clusters, found",
            "",
            '`SpectralClustering("auto")`; right is the number of any reference, the ARI that with '
            "the reference that agrees best. Its weights were fitted to the same sets; "
            "cross-validated rates are in mercer/selection/cluster_count.py.",
            "",
            *counted_table(result["counted"]),
            "",
            *_every_number(result["counted"]),
        ]
    if result["cost"]:
        lines += _cost(result["cost"])
    if result["given"]:
        lines += _every(result["given"])
    return "\n".join(lines) + "\n"


def given_table(given: dict[str, Any]) -> list[str]:
    """Rates of the score, by group and by method."""
    fits = Fits.of(given)
    held_out = fits.held_out_scores()
    group = np.array([key.split("|")[0] for key in fits.keys])
    method = np.array([key.split("|")[3] for key in fits.keys])
    public = np.isin(group, ("suite", "tables"))
    lines = [
        "| fits | number | AUC, ARI < .5 | poor: ARI < .2 | poor: ARI < .5 | poor: ARI > .9 |",
        "|---|---|---|---|---|---|",
        f"| wanted | | {' | '.join(WANTED.values())} |",
    ]
    parts = {"suite and tables": public, "other sets": group == "others"}
    parts |= {f"suite and tables, {name}": public & (method == name) for name in METHODS}
    for name, part in parts.items():
        found = rates(held_out[part], is_poor(held_out[part]), fits.ari[part])
        lines.append(f"| {name} | {found['fits']} | " + " | ".join(_cells(found)) + " |")
    noise = group == "noise"
    if noise.any():
        share = 100 * is_poor(held_out[noise]).mean()
        lines += ["", f"Of fits to rows without clusters, {share:.0f} % are called poor."]
    return lines


def _cells(found: dict[str, float]) -> list[str]:
    return [
        "–" if np.isnan(value) else f"{value:.3f}" if name == "auc" else f"{100 * value:.1f} %"
        for name, value in found.items()
        if name != "fits"
    ]


def _calibration(given: dict[str, Any]) -> list[str]:
    fits = Fits.of(given)
    scores, ari = fits.held_out_scores(), fits.ari
    lines = ["| score | fits | mean score | share with ARI ≥ .5 |", "|---|---|---|---|"]
    for low in np.arange(0.0, 1.0, 0.2):
        part = (scores >= low) & (scores < low + 0.2)
        if part.any():
            right = (ari[part] >= 0.5).mean()
            lines.append(
                f"| {low:.1f} to {low + 0.2:.1f} | {part.sum()} | {scores[part].mean():.2f} "
                f"| {right:.2f} |"
            )
    return [*lines, ""]


def counted_table(counted: dict[str, Any]) -> list[str]:
    """How often the number is that of a reference, and is called unclear."""
    lines = [
        '| sets | fits | right | mean ARI | "not clear" of right | "not clear" of wrong |',
        "|---|---|---|---|---|---|",
    ]
    for group in ("suite", "tables", "others"):
        rows = [row for key, row in counted.items() if key.startswith(f"{group}|")]
        if not rows:
            continue
        right = np.array([row["n_clusters"] in row["wanted"] for row in rows])
        unclear = np.array([row["is_unclear"] for row in rows])
        ari = np.mean([row["ari"] for row in rows])
        lines.append(
            f"| {group} | {len(rows)} | {right.sum()} ({100 * right.mean():.0f} %) | {ari:.3f} "
            f"| {100 * unclear[right].mean():.0f} % | {100 * unclear[~right].mean():.0f} % |"
        )
    noise = [row["is_unclear"] for key, row in counted.items() if key.startswith("noise|")]
    if noise:
        lines += ["", f"Of {len(noise)} sets without clusters, {sum(noise)} are called not clear."]
    return lines


def _every_number(counted: dict[str, Any]) -> list[str]:
    lines = ["| set | seed | found | references | ARI | probability |", "|---|---|---|---|---|---|"]
    for key, row in sorted(counted.items()):
        group, name, seed = key.split("|")
        wanted = ", ".join(map(str, row["wanted"]))
        lines.append(
            f"| {group}: {name} | {seed} | {row['n_clusters']} | {wanted} | {row['ari']:.2f} "
            f"| {row['probability']:.2f} |"
        )
    return [*lines, ""]


def _cost(cost: dict[str, Any]) -> list[str]:
    lines = [
        "## Cost",
        "",
        "CPU seconds, least of three runs; the diagnosis is part of the fit.",
        "",
        "| rows | method | diagnosis | whole fit | share |",
        "|---|---|---|---|---|",
    ]
    for key, row in sorted(cost.items()):
        name, method = key.split("|")
        share = 100 * row["trust"] / row["fit"]
        lines.append(
            f"| {name} | {method} | {row['trust']:.3f} | {row['fit']:.2f} | {share:.0f} % |"
        )
    return [*lines, ""]


def _every(given: dict[str, Any]) -> list[str]:
    lines = ["## Every fit", "", "| set | K | method | seed | ARI | score | grade |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for key, row in sorted(given.items()):
        group, name, k, method, seed = key.split("|")
        lines.append(
            f"| {group}: {name} | {k} | {method} | {seed} | {row['ari']:.2f} | {row['score']:.2f} "
            f"| {row['grade']} |"
        )
    return lines
