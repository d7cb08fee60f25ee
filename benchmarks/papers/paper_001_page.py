"""The page and the figures of paper 001."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from benchmarks.papers.verdict_page import Verdict, about, decide, verdicts
from benchmarks.provenance import RESULTS

mpl.use("Agg")
import matplotlib.pyplot as plt

ALIKE = 0.02  # accuracies that differ by less count as the same
CONSTANT = {"PenDigits": "25", "Satimage": "50", "Shuttle": "50", "Mnist": "50"}  # its Fig. 5
RANDOM = ("Nyström", "RFF")
COLORS = {
    "ICF": "tab:red",
    "ICF, blocked": "tab:pink",
    "random pivots": "tab:orange",
    "Nyström": "tab:blue",
    "RFF": "tab:green",
}

Cell = dict[str, Any]


def page(found: dict[str, Any], name: str) -> str:
    draw(found, name)
    sections = [
        "# Paper 001: kernel k-means by incomplete Cholesky factorisation",
        about(found) + " Accuracies are mean ± standard deviation over those seeds.",
        "Each method is a factor and k-means on its rows, both timed, nothing else: *ICF* is the "
        'paper\'s Algorithm 1 exactly (`IncompleteCholesky(pivots="greedy", block=1)`), *blocked* '
        "the same rule with blocks of pivots, *random pivots* Mercer's default; *Nyström* is also "
        "the paper's *Approx*; *RFF* has `size` waves, 2·size columns. *k-means* is scikit-learn's "
        "on the rows themselves. Every run starts k-means once. *Kernel* is Lloyd's algorithm on "
        "the whole matrix, *Kernel+Chol* k-means on its complete factor. Shuttle and Mnist stop at "
        "200 of the paper's 1,000 columns.",
        verdicts(claims(found)),
        shapes(found),
        decay(found),
        scaling(found),
        *accuracies(found),
        *seconds(found),
        constant(found),
    ]
    return "\n\n".join(sections)


# Verdict -----------------------------------------------------------------------------------------


def claims(found: dict[str, Any]) -> list[Verdict]:
    sets = found["comparisons"]
    cells = [
        {method: by[size] for method, by in one["methods"].items()}
        for one in sets
        for size in one["methods"]["ICF"]
    ]
    best = sum(_mean(c["ICF"]) > max(_mean(c[m]) for m in RANDOM) for c in cells)
    behind = sum(max(_mean(c[m]) for m in RANDOM) - _mean(c["ICF"]) > ALIKE for c in cells)
    steady = sum(_sd(c["ICF"]) < min(_sd(c[m]) for m in RANDOM) for c in cells)
    ratios = [_time(c["ICF"]) / _time(c["Nyström"]) for c in cells]
    n = len(cells)
    rows: list[Verdict] = [
        (
            "Fig. 2: three shapes, 50 pivots, accuracy 100 %",
            "; ".join(
                f"{row['shape']} {_hits(row['one start'])} with one start, "
                f"{_hits(row['best of 10 starts'])} with ten"
                for row in found["shapes"]
            ),
            decide(min(np.mean(np.equal(r["one start"], 1)) for r in found["shapes"])),
        ),
        *theorems(found),
        (
            "ICF is more accurate than Nyström, Approx and RFF",
            f"its mean is the highest in {best} of {n} cells (data × size) and more than 2 points "
            f"below the best in {behind}",
            decide(best / n),
        ),
        (
            "the variance of ICF is smaller",
            f"its standard deviation is the smallest in {steady} of {n} cells: the factor is "
            "deterministic, the start of k-means is not",
            decide(steady / n),
        ),
        (
            "ICF takes about the time of the other subset methods, growing slightly faster",
            f"Algorithm 1 / Nyström: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, "
            f"{min(ratios):.2f} to {max(ratios):.2f}",
            "holds" if max(ratios) <= 2 else "partly",
        ),
        growth(sets),
    ]
    for one in sets:
        rows += whole(one)
    rows.append(beside_k_means(sets))
    return rows


def theorems(found: dict[str, Any]) -> list[Verdict]:
    seven = found["theorem7"]
    ratios = ", ".join(f"{d['data']} {d['eigenvalue_ratio']:.3f}" for d in found["decay"])
    falls = [d["traces"]["ICF"] for d in found["decay"]]
    return [
        (
            "Theorem 5: the error decreases with every pivot",
            "each rank of Fig. 1 is below the one before"
            if all(np.all(np.diff(fall) < 0) for fall in falls)
            else "not at every rank",
            decide(float(np.mean([np.all(np.diff(fall) < 0) for fall in falls]))),
        ),
        (
            "Theorem 6: the error falls exponentially if λₛ ≤ C 4⁻ˢ e⁻ᵇˢ, as on USPS and MNIST",
            f"true, but empty here: 4⁻ˢ asks each eigenvalue to be under 1/4 of the one before; "
            f"between the 11th and the 201st it is {ratios} of it",
            "partly",
        ),
        (
            "Theorem 7: tr([V* − V̂*]ᵀ K [V* − V̂*]) ≤ 2√k tr(K − K̂)",
            "V̂* = V* with its columns permuted, the same partition: left "
            f"{seven['left_side']:.0f}, right {seven['right_side']:.1f} ({seven['n']} rows, rank "
            f"{seven['rank']}). What its "
            "proof does show, without √k: tr(V*ᵀKV*) − tr(V̂*ᵀKV̂*) ≤ tr(K − K̂), here "
            f"{seven['gap']:.3f} ≤ {seven['trace_error']:.2f}",
            "not",
        ),
    ]


def growth(sets: list[dict[str, Any]]) -> Verdict:
    gains = {}
    for one in sets:
        means = [_mean(cell) for cell in one["methods"]["ICF"].values()]
        gains[one["data"]] = means[-1] - means[0]
    listed = ", ".join(f"{data} {100 * gain:+.1f}" for data, gain in gains.items())
    share = float(np.mean([gain > ALIKE for gain in gains.values()]))
    return "the accuracy of ICF grows with the subset size", f"in points: {listed}", decide(share)


def whole(one: dict[str, Any]) -> list[Verdict]:
    """Claims against the whole kernel matrix."""
    if not one["exact"]:
        return []
    data, kernel, icf = one["data"], one["exact"]["Kernel"], one["methods"]["ICF"]
    sizes = [size for size in icf if int(size) >= int(CONSTANT[data])]
    gaps = {size: _mean(icf[size]) - _mean(kernel) for size in sizes}
    clear = [
        size
        for size, gap in gaps.items()
        if gap < -ALIKE and -gap > 2 * np.hypot(_error(icf[size]), _error(kernel))
    ]
    listed = ", ".join(f"{size}: {100 * gap:+.1f}" for size, gap in gaps.items())
    size = CONSTANT[data]
    faster = _time(kernel) / _time(icf[size])
    rows: list[Verdict] = [
        (
            f"{data}: ICF has the accuracy of kernel k-means from size {size} on",
            f"Kernel {_percent(kernel)}; ICF less Kernel, in points, {listed}",
            decide(1 - len(clear) / len(sizes)),
        ),
        (
            f"{data}: ICF is much faster than the whole matrix",
            f"{faster:.0f} times at size {size} ({_time(kernel):.2f} s)",
            "holds" if faster > 5 else "partly" if faster > 1.5 else "not",
        ),
    ]
    if "Kernel+Chol" in one["exact"]:
        complete = one["exact"]["Kernel+Chol"]
        apart = _mean(complete) - _mean(kernel)
        error = 2 * np.hypot(_error(complete), _error(kernel))
        slower = _time(complete) / _time(kernel)
        rows += [
            (
                f"{data}: Kernel and Kernel+Chol are equally accurate",
                f"they differ by {100 * apart:+.1f} points (2 standard errors: {100 * error:.1f})",
                "holds" if abs(apart) <= max(ALIKE, error) else "not",
            ),
            (
                f"{data}: Kernel+Chol is slower than Kernel",
                f"{slower:.1f} times its time",
                "holds" if slower > 1 else "not",
            ),
        ]
    return rows


def beside_k_means(sets: list[dict[str, Any]]) -> Verdict:
    listed, wins = [], []
    for one in sets:
        cell = one["methods"]["ICF"][max(one["methods"]["ICF"], key=int)]
        gain = _mean(cell) - _mean(one["k-means"])
        wins.append(gain > 2 * np.hypot(_error(cell), _error(one["k-means"])))
        listed.append(f"{one['data']} {100 * gain:+.1f}")
    return (
        "(not in the paper) at its σ kernel k-means is more accurate than k-means",
        f"ICF at its largest size less k-means, in points: {', '.join(listed)}",
        decide(float(np.mean(wins))),
    )


# Sections ----------------------------------------------------------------------------------------


def shapes(found: dict[str, Any]) -> str:
    lines = [
        f"| {row['shape']} | {row['gamma']:g} | {_hits(row['one start'])} "
        f"| {_hits(row['best of 10 starts'])} | {_power(row['sigma_of_paper'])} "
        f"| {_hits(row[SIGMA])} | 100 % |"
        for row in found["shapes"]
    ]
    return (
        "## Fig. 2: Ring, Parabolic, Zigzag\n\n"
        "500 points per cluster, 50 greedy pivots; mean accuracy, and how many of the seeds are at "
        "100 %. The paper's points are not published, so neither its σ nor its 100 % carries over: "
        "our gamma was picked among a few values on these same seeds (`001-shapes.png`).\n\n"
        "| shape | our gamma | one start | best of 10 | paper's σ | with it, best of 10 | paper |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(lines)
    )


SIGMA = "paper's sigma"


def decay(found: dict[str, Any]) -> str:
    lines = []
    for row in found["decay"]:
        for rank in (50, 200, 500, 1000):
            if rank in row["ranks"]:
                at = row["ranks"].index(rank)
                listed = " | ".join(f"{values[at]:.3g}" for values in row["traces"].values())
                lines.append(f"| {row['data']} {row['scale']} | {rank} | {listed} |")
    names = " | ".join(found["decay"][0]["traces"])
    rows = found["decay"][0]["n_rows"]
    return (
        "## Fig. 1: decay of the error\n\n"
        f"trace(K − FFᵀ) on {rows:,} rows with the paper's σ (`001-decay.png`). USPS is not in our "
        "benchmark data; PenDigits stands in for it. Random pivots and Nyström: mean of 3 seeds. "
        "*best*: the eigenvalues that are left.\n\n"
        f"| data | s | {names} |\n|---|---|{'---|' * len(found['decay'][0]['traces'])}\n"
        + "\n".join(lines)
    )


def scaling(found: dict[str, Any]) -> str:
    lines = [
        f"| {r['data']} | {_power(r['gamma'])} | "
        + " | ".join(f"{rank:.1f}" for rank in r["effective_ranks"].values())
        + f" | {r['scale']} | {r['auto']:.3g} |"
        for r in found["comparisons"]
    ]
    return (
        "## Which scaling the paper's σ are for\n\n"
        "The paper does not say. Effective rank trace(K)²/‖K‖² of 1,000 rows: near 1 the kernel is "
        "all ones, near 1,000 the identity. We take the scaling that is furthest from both ends "
        '(by columns; Mnist by one range for all pixels). *auto* is `RBF("auto")`.\n\n'
        "| data | paper's σ | raw | [0, 1] | [-1, 1] | used | auto |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(lines)
    )


def accuracies(found: dict[str, Any]) -> list[str]:
    parts = [
        "## Fig. 3: accuracy and NMI",
        "Accuracy in percent, NMI below it (`001-accuracy.png`).",
    ]
    for one in found["comparisons"]:
        parts += [
            f"### {_title(one)}",
            _grid(one, lambda c: f"{_percent(c)}<br>{c['nmi']['mean']:.3f}"),
        ]
        alone = [("k-means", one["k-means"]), *one["exact"].items()]
        auto = [(f"{m}, size 100, auto", c) for m, c in one["methods_auto"].items()]
        lines = [
            f"| {name} | {_percent(cell)} | {cell['nmi']['mean']:.3f} |"
            for name, cell in alone + auto
        ]
        parts.append("| | accuracy | NMI |\n|---|---|---|\n" + "\n".join(lines))
    return parts


def seconds(found: dict[str, Any]) -> list[str]:
    parts = ["## Fig. 4: CPU seconds against the size", "Means of the same runs (`001-time.png`)."]
    for one in found["comparisons"]:
        parts += [f"### {one['data']}", _grid(one, lambda cell: f"{_time(cell):.2f}")]
    return parts


def constant(found: dict[str, Any]) -> str:
    names = [*found["comparisons"][0]["methods"], "k-means", "Kernel", "Kernel+Chol"]
    lines = []
    for one in found["comparisons"]:
        size = CONSTANT[one["data"]]
        cells = {
            **{method: by[size] for method, by in one["methods"].items()},
            "k-means": one["k-means"],
            **one["exact"],
        }
        listed = [f"{_time(cells[name]):.2f}" if name in cells else "–" for name in names]
        lines.append(f"| {one['data']}, s = {size} | {' | '.join(listed)} |")
    return (
        "## Fig. 5: CPU seconds at a small constant size\n\n"
        f"| data | {' | '.join(names)} |\n|---|{'---|' * len(names)}\n" + "\n".join(lines)
    )


def _grid(one: dict[str, Any], show: Callable[[Cell], str]) -> str:
    sizes = list(one["methods"]["ICF"])
    lines = [f"| method | {' | '.join(sizes)} |", "|---|" + "---|" * len(sizes)]
    for name, by in one["methods"].items():
        lines.append(f"| {name} | {' | '.join(show(cell) for cell in by.values())} |")
    return "\n".join(lines)


def _title(one: dict[str, Any]) -> str:
    n, d = one["shape"]
    return f"{one['data']} {n:,} × {d} ({one['dtype']}), σ = {_power(one['gamma'])}"


# Figures -----------------------------------------------------------------------------------------


def draw(found: dict[str, Any], name: str) -> None:
    for what, make in (("shapes", _draw_shapes), ("decay", _draw_decay)):
        figure = make(found)
        figure.savefig(RESULTS / f"{name}-{what}.png", dpi=100)
        plt.close(figure)
    for what, key in (("accuracy", "accuracy"), ("time", "seconds")):
        if found["comparisons"]:
            _draw_curves(found["comparisons"], key, RESULTS / f"{name}-{what}.png")


def _draw_shapes(found: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    for axis, row in zip(axes, found["shapes"], strict=True):
        X, labels = np.array(row["picture"]["X"]), np.array(row["picture"]["labels"])
        pivots = X[row["picture"]["pivots"]]
        axis.scatter(*X.T, c=np.where(labels == 0, "tab:blue", "tab:orange"), s=7)
        axis.scatter(*pivots.T, facecolors="none", edgecolors="black", s=45, linewidths=1.2)
        axis.set(title=f"{row['shape']}: gamma = {row['gamma']:g}", aspect="equal")
    figure.suptitle("Kernel k-means on 50 greedy pivots of 1,000 points (pivots: black circles)")
    return figure


def _draw_decay(found: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    for axis, row in zip(axes, found["decay"], strict=True):
        for method, values in row["traces"].items():
            color = COLORS.get(method, "black")
            axis.semilogy(row["ranks"], values, ".-", color=color, label=method)
        axis.set(
            title=f"{row['data']} {row['scale']}, {row['n_rows']:,} rows, "
            f"σ = {_power(row['gamma'])}",
            xlabel="rank s",
            ylabel="trace(K - F Fᵀ)",
        )
        axis.grid(alpha=0.3)
        axis.legend()
    return figure


def _draw_curves(sets: list[dict[str, Any]], key: str, path: Path) -> None:
    """One panel per data set: mean ± sd against the subset size."""
    size = (4.3 * len(sets), 4.3)
    figure, (axes,) = plt.subplots(1, len(sets), figsize=size, layout="constrained", squeeze=False)
    for axis, one in zip(axes, sets, strict=True):
        for shift, (name, by) in zip(
            (0.94, 0.97, 1, 1.03, 1.06), one["methods"].items(), strict=True
        ):
            sizes = [shift * int(size) for size in by]
            means = [cell[key]["mean"] for cell in by.values()]
            spread = [cell[key]["sd"] for cell in by.values()] if key == "accuracy" else None
            axis.errorbar(
                sizes, means, spread, fmt="o-", ms=3, capsize=2, color=COLORS[name], label=name
            )
        for (name, cell), style in zip(
            [("k-means", one["k-means"]), *one["exact"].items()], ("-", "--", ":"), strict=False
        ):
            axis.axhline(cell[key]["mean"], color="black", ls=style, lw=1, label=name)
        ticks = [int(size) for size in one["methods"]["ICF"]]
        axis.set(title=_title(one), xscale="log", xlabel="subset size")
        axis.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        if key == "seconds":
            axis.set_yscale("log")
    axes[0].set_ylabel("accuracy" if key == "accuracy" else "CPU seconds")
    handles, labels = axes[min(1, len(axes) - 1)].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    figure.savefig(path, dpi=90)
    plt.close(figure)


# Numbers -----------------------------------------------------------------------------------------


def _mean(cell: Cell) -> float:
    return float(cell["accuracy"]["mean"])


def _sd(cell: Cell) -> float:
    return float(cell["accuracy"]["sd"])


def _error(cell: Cell) -> float:
    """The standard error of the mean accuracy."""
    return _sd(cell) / float(np.sqrt(len(cell["runs"])))


def _time(cell: Cell) -> float:
    return float(cell["seconds"]["mean"])


def _percent(cell: Cell) -> str:
    return f"{100 * _mean(cell):.1f} ± {100 * _sd(cell):.1f}"


def _hits(scores: list[float]) -> str:
    hits = sum(score == 1.0 for score in scores)
    return f"{100 * np.mean(scores):.1f} % ({hits}/{len(scores)})"


def _power(value: float) -> str:
    exponent = np.log2(value)
    return f"2^{exponent:.0f}" if exponent == round(exponent) else f"{value:.3g}"
