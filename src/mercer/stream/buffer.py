"""How much memory the buffer or the reservoir of a stream takes."""

from __future__ import annotations

from typing import ClassVar

from mercer._run.budget import Budget
from mercer._run.frozen import frozen
from mercer.factors.mutual import TILE_ROWS
from mercer.stream.running_means import PIVOTS

MOST_COLUMNS = 1024  # of dense rows: features are shorter than more of them


@frozen
class Buffer:
    """The sizes of a stream's buffer: its memory, asked for like that of an approximation."""

    size: int
    n_neighbors: int
    n_clusters: int

    growth: ClassVar[float] = 1.0  # time on n rows ~ n**growth

    def fixed_rank(self) -> int | None:
        """A buffer has no rank."""
        return None

    def extra_passes(self, n_rows: int) -> int:
        """Passes over all rows beside the stream's own."""
        return 0

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        """Bytes of rows, edges, eigenvectors and the work on them."""
        edges = 12 * 6 * min(self.n_neighbors, self.size)
        columns = 2 * min(n_features, 2**14) + 4 * min(self.n_clusters, self.size) + 2 * TILE_ROWS
        means = 2 * 8 * PIVOTS * min(self.n_clusters, self.size)
        return self.size * (8 * columns + edges) + means

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """Coordinates of the buffer's rows, and of parts of them that are clustered again."""
        return 8 * self.size * (4 * n_vectors + 6)

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        """Means: products with pivots; projections: similarities of a few rows to the buffer."""
        return 8 * max(tile_rows * (PIVOTS + n_features), 2 * TILE_ROWS * self.size)

    def kept_memory(self, n_rows: int, itemsize: int) -> int:
        """A stream keeps all that it works with, but for a tile's similarities."""
        return self.memory(n_rows, 0, itemsize) // 4

    def demand(self, budget: Budget, n_features: int) -> None:
        """Refuse a buffer that does not fit, before the work."""
        budget.demand(
            self.memory(self.size, n_features, 8),
            what=f"a buffer of {self.size:,} rows with {self.n_neighbors:,} neighbours and "
            f"{self.n_clusters:,} eigenvectors",
            advice="raise max_memory, or lower max_size, initial_size or n_neighbors",
        )


@frozen
class Reservoir:
    """The sizes of a stream of very many clusters, asked for in the same way."""

    size: int
    n_clusters: int

    growth: ClassVar[float] = 1.0

    def fixed_rank(self) -> int | None:
        """A reservoir has no rank."""
        return None

    def extra_passes(self, n_rows: int) -> int:
        """Passes over all rows beside the stream's own."""
        return 0

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        """Rows twice, coordinates, labels and distances; centres, and scores of some rows."""
        width = max(min(n_features, 2**14), 1)
        coordinates = 8 * width if width <= MOST_COLUMNS else 4 * PIVOTS
        rows = self.size * (2 * itemsize * width + coordinates + 100)
        k = min(self.n_clusters, self.size)
        return rows + k * (8 * 6 * max(width, 1) + 4 * 2 * 2048)

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """There are no eigenvectors."""
        return 0

    def label_memory(self, n_rows: int, n_features: int, tile_rows: int) -> int:
        """Rows in two types, and scores of some of them with all centres."""
        return 8 * tile_rows * 2 * min(n_features, 2**14) + 8 * 2048 * self.n_clusters

    def kept_memory(self, n_rows: int, itemsize: int) -> int:
        """The reservoir and the centres stay."""
        return self.memory(n_rows, 0, itemsize) // 2

    def demand(self, budget: Budget, n_features: int) -> None:
        """Refuse a reservoir that does not fit, before the work."""
        needed = self.memory(self.size, n_features, 8)
        fitting = int(0.9 * self.size * budget.n_bytes / max(needed, 1))
        budget.demand(
            needed,
            what=f"a reservoir of {self.size:,} rows and {self.n_clusters:,} means",
            advice=f"raise max_memory, or lower max_size to about {fitting:,}",
        )
