"""Pictures with matplotlib, in scikit-learn's Display convention.

Each display is made by ``from_estimator`` (or from arrays by its constructor), keeps what it drew
on as ``ax_`` and ``figure_``, and can be drawn again elsewhere with ``plot(ax=…)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._run.extras import require
from mercer._run.types import FloatArray, IdArray
from mercer.report.palette import LIGHT, LIGHT_REST, color_of

if TYPE_CHECKING:
    from mercer.selection.result import Selection


ACCENT = "#c8790f"
MOST_NAMED = 12  # clusters with a colour, and so with a line in the legend


class Display:
    """Base of displays: an axes to draw on, made if none is given."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            require("matplotlib", "plot", "drawing")
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class EmbeddingDisplay(Display):
    """Rows as points of a plane, coloured by cluster.

    Parameters
    ----------
    xy : array of shape (n, 2)
        Coordinates.
    labels : array of shape (n,)
        Clusters, numbered from 0.
    axes : tuple of str, default=("", "")
        Names of the two coordinates.

    Examples
    --------
    >>> from mercer import SpectralClustering
    >>> from mercer.datasets import rings
    >>> from mercer.report.plot import EmbeddingDisplay
    >>> X, y = rings(500, random_state=0)
    >>> model = SpectralClustering(3, random_state=0).fit(X)
    >>> EmbeddingDisplay.from_estimator(model, X).xy.shape
    (500, 2)
    """

    def __init__(
        self, xy: FloatArray, labels: IdArray, *, axes: tuple[str, str] = ("", "")
    ) -> None:
        self.xy = xy
        self.labels = labels
        self.axes = axes

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, of: str | None = None, seed: int = 0, ax: Any = None
    ) -> Self:
        """Draw the rows of X, or a sample of 5,000, as a fitted estimator sees them.

        Parameters
        ----------
        estimator : estimator
            Any fitted estimator of Mercer.
        X : array, path or source
            The rows.
        of : {"Embedding", "Data"} or None, default=None
            Which coordinates; None are those that the report page shows first.
        seed : int, default=0
            Of the sample.
        ax : matplotlib axes or None, default=None
            Where to draw; None makes a new figure.
        """
        from mercer.report.view import gather

        view = gather(estimator, X, seed=seed)
        names = [shown.name for shown in view.maps]
        if of is not None and of not in names:
            raise ValueError(f"of={of!r} is not one of {', '.join(names)}")
        chosen = view.maps[0 if of is None else names.index(of)]
        return cls(chosen.xy, view.labels, axes=chosen.axes).plot(ax=ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw; `options` go to ``Axes.scatter``."""
        ax = self._axes(ax)
        dots = {"s": 9.0 if len(self.xy) > 2000 else 16.0, "alpha": 0.8, "linewidths": 0}
        for c in np.unique(self.labels):
            here = self.labels == c
            name = f"{c} ({here.sum():,})" if c < MOST_NAMED else None
            ax.scatter(*self.xy[here].T, color=color_of(int(c)), label=name, **dots | options)
        ax.set_xlabel(self.axes[0])
        ax.set_ylabel(self.axes[1])
        if not any(self.axes):  # coordinates that mean nothing by themselves
            ax.set(xticks=[], yticks=[])
        if len(np.unique(self.labels)) > 1:
            look = {"markerscale": 1.8, "frameon": False, "fontsize": "small"}
            ax.legend(title="cluster (rows)", loc="upper left", bbox_to_anchor=(1.0, 1.0), **look)
        return self


class SpectrumDisplay(Display):
    """Eigenvalues in decreasing order, with the gap after those of the clusters.

    Parameters
    ----------
    eigenvalues : array of shape (m,)
        Largest first.
    n_clusters : int or None, default=None
        How many of them belong to clusters; None marks no gap.
    gap : float or None, default=None
        The relative gap, for the title.
    """

    def __init__(
        self, eigenvalues: FloatArray, *, n_clusters: int | None = None, gap: float | None = None
    ) -> None:
        self.eigenvalues = eigenvalues
        self.n_clusters = n_clusters
        self.gap = gap

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the spectrum of a fitted estimator."""
        check_is_fitted(estimator)
        report = estimator.report_
        if not report.eigenvalues:
            raise ValueError(f"{type(estimator).__name__} found no eigenvalues")
        k = len(report.cluster_weights) or None
        return cls(np.asarray(report.eigenvalues), n_clusters=k, gap=report.gap).plot(ax=ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw; `options` go to ``Axes.scatter``."""
        from matplotlib.ticker import MaxNLocator

        ax = self._axes(ax)
        numbers = np.arange(1, len(self.eigenvalues) + 1)
        k = self.n_clusters or len(numbers)
        colors = [LIGHT[0] if j <= k else LIGHT_REST for j in numbers]
        ax.plot(numbers, self.eigenvalues, color=LIGHT_REST, linewidth=1.2, zorder=1)
        ax.scatter(numbers, self.eigenvalues, **{"c": colors, "s": 45, "zorder": 2} | options)
        if self.gap is not None and k < len(numbers):
            ax.axvspan(k, k + 1, color=ACCENT, alpha=0.15, linewidth=0)
            ax.set_title(f"relative gap {self.gap:.2f} after {k}", fontsize="medium")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("eigenvalue")
        ax.set_ylabel("size")
        return self


class TuningDisplay(Display):
    """The criterion for each number of clusters and bandwidth; a frame marks the chosen pair.

    Parameters
    ----------
    selection : Selection
        The result of `mercer.selection.search`, or ``selection_`` of an estimator.
    """

    def __init__(self, selection: Selection) -> None:
        self.selection = selection

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the search of a fitted estimator (``n_clusters="auto"`` or ``gamma="auto"``)."""
        check_is_fitted(estimator)
        selection = estimator._automatic_choice()
        if selection is None:
            raise ValueError(
                f"{type(estimator).__name__} compared no numbers of clusters or bandwidths; use "
                "mercer.selection.search, and TuningDisplay(selection).plot()"
            )
        return cls(selection).plot(ax=ax)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw; `options` go to ``Axes.imshow``."""
        from mercer.report.heat_map import draw_scores

        ax = self._axes(ax)
        draw_scores(ax, self.selection, **options)
        return self
