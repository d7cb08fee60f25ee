"""What the measurements say of the claims of paper 000: one sentence per table and figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["verdicts"]

FLAT = 0.01  # of NMI: smaller differences are none


def verdicts(found: dict[str, Any], published: dict[str, Any]) -> list[list[str]]:
    """Table or figure, what the paper says, what was measured, and whether they agree."""
    makers = {
        "coverage": _coverage,
        "compare": _compare,
        "initial": _initial,
        "neighbors": _neighbors,
        "rows": _rows,
        "clusters": _clusters,
        "composite": _composite,
    }
    return [row for name, of in makers.items() if name in found for row in of(found, published)]


def _coverage(found: dict[str, Any], published: dict[str, Any]) -> list[list[str]]:
    chances = {name: max(of.values()) for name, of in found["coverage"].items()}
    measured = ", ".join(f"{name} {chance:.2f}" for name, chance in chances.items())
    holds = chances["leverage"] > chances["uniform"]
    claim = "50 rows drawn by leverage cover ten rings, uniform ones do not"
    return [["Fig. 1", claim, f"covered at the best γ: {measured}", _said(holds)]]


def _compare(found: dict[str, Any], published: dict[str, Any]) -> list[list[str]]:
    sets = {name: rows for name, rows in found["compare"].items() if "k-means" in rows}
    above, near, slower = [], [], []
    for name, rows in sets.items():
        others = max(rows["k-means"]["nmi"], rows["Nyström + k-means"]["nmi"])
        above.append((name, rows["streaming"]["nmi"] - others))
        near.append((name, rows["streaming"]["nmi"] - rows["full kernel k-means"]["nmi"]))
        slower.append((name, rows["streaming"]["seconds"] / rows["k-means"]["seconds"]))
    seconds = published["times"]["CIFAR-100"]
    return [
        [
            "Fig. 2", "NMI above k-means and approximate kernel k-means", _gains(above),
            _count(gain > 0 for _, gain in above),
        ],
        [
            "Fig. 2", "NMI close to kernel k-means", _gains(near),
            _count(gain > -FLAT for _, gain in near),
        ],
        [
            "Table 3", f"{seconds[0] / seconds[2]:.0f} times as slow as k-means (CIFAR-100)",
            ", ".join(f"{name} {ratio:.1f} times" for name, ratio in slower),
            _count(ratio > 1 for _, ratio in slower),
        ],
        [
            "Table 3", f"{seconds[3] / seconds[0]:.1f} times as fast as kernel k-means (CIFAR-100)",
            ", ".join(
                f"{n} {r['full kernel k-means']['seconds'] / r['streaming']['seconds']:.0f} times"
                for n, r in sets.items()
            ),
            _count(
                r["full kernel k-means"]["seconds"] > r["streaming"]["seconds"]
                for r in sets.values()
            ),
        ],
    ]  # fmt: skip


def _initial(found: dict[str, Any], published: dict[str, Any]) -> list[list[str]]:
    rows = found["initial"]
    nmi, peers = ([row[name]["nmi"] for row in rows] for name in ("streaming", "Nyström"))
    seconds = [row["streaming"]["seconds"] for row in rows]
    additions = [row["streaming"].get("additions", 0.0) for row in rows]
    above = [ours > peer for ours, peer in zip(nmi, peers, strict=True)]
    return [
        ["Table 4", "NMI rises with m", _series(nmi), _said(nmi[-1] > nmi[0] + FLAT)],
        ["Table 4", "time rises with m", _series(seconds, 1), _said(seconds[-1] > seconds[0])],
        ["Table 4", "above approximate kernel k-means of m landmarks at every m",
         f"{_series(nmi)}; {_series(peers)}", _count(above)],
        ["Sect. 4.3", "fewer rows join with a larger m (453, then 69)", _series(additions, 0),
         _said(additions[-1] < additions[0])],
    ]  # fmt: skip


def _neighbors(found: dict[str, Any], published: dict[str, Any]) -> list[list[str]]:
    out = []
    for name in ("normalised", "as published"):
        nmi = [row[name]["nmi"] for row in found["neighbors"]]
        seconds = [row[name]["seconds"] for row in found["neighbors"]]
        best = found["neighbors"][int(np.argmax(nmi))]["p"]
        out += [
            [f"Table 5, {name}", "NMI rises slightly with p", f"{_series(nmi)}: best of p = {best}",
             _said(nmi[-1] > nmi[0], reverse=nmi[-1] < max(nmi) - FLAT)],
            [f"Table 5, {name}", "time rises with p", _series(seconds, 1),
             _said(seconds[-1] > seconds[0])],
        ]  # fmt: skip
    return out


def _rows(found: dict[str, Any], published: dict[str, Any]) -> list[list[str]]:
    out = []
    for name in ("means (default)", "eigenvectors"):
        power = _power(found["rows"], "n", name)
        claim, said = "linear in N", _said(power < 1.15)
        out.append([f"Fig. 3, {name}", claim, f"seconds grow as N^{power:.2f}", said])
    return out


def _clusters(found: dict[str, Any], published: dict[str, Any]) -> list[list[str]]:
    out = []
    for name in ("default", "eigenvectors"):
        rows = [row for row in found["clusters"] if name in row]
        power = _power(rows, "C", name)
        factor = rows[-1][name]["seconds"] / rows[0][name]["seconds"]
        largest, smallest = rows[-1]["C"], rows[0]["C"]
        logarithmic = np.log(largest) / np.log(smallest)
        out.append([
            f"Fig. 4, {name}", "nearly logarithmic in C",
            f"seconds grow as C^{power:.2f}: {factor:.1f} times from {smallest} to {largest:,} "
            f"(a logarithm: {logarithmic:.1f})",
            _said(factor < 1.5 * logarithmic),
        ])  # fmt: skip
    return out


def _composite(found: dict[str, Any], published: dict[str, Any]) -> list[list[str]]:
    out = []
    for name, rows in found["composite"].items():
        ours, *others = rows
        best = max(others, key=lambda n: rows[n]["nmi"])
        measured = f"{ours} {rows[ours]['nmi']:.3f}; {best} {rows[best]['nmi']:.3f}"
        holds = rows[ours]["nmi"] > rows[best]["nmi"] - FLAT
        verdict = "yes, and not below the others" if holds else "yes, but below another"
        out.append([f"Sect. 4.2, {name}", "the kernel can be used", measured, verdict])
    return out


def _power(rows: list[dict[str, Any]], key: str, name: str) -> float:
    seconds = [row[name]["seconds"] for row in rows]
    return float(np.polyfit(np.log([row[key] for row in rows]), np.log(seconds), 1)[0])


def _said(holds: bool, *, reverse: bool = False) -> str:
    return "**the reverse**" if reverse else "holds" if holds else "**does not hold**"


def _count(each: Any) -> str:
    each = list(each)
    if all(each):
        return "holds"
    return f"holds on {sum(each)} of {len(each)}" if any(each) else "**does not hold**"


def _gains(pairs: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {gain:+.3f}" for name, gain in pairs)


def _series(values: Sequence[float], digits: int = 3) -> str:
    return ", ".join(f"{value:,.{digits}f}" for value in values)
