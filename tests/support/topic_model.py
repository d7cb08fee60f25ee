"""A stand-in for BERTopic: every call and attribute that it uses of its clusterer, and no more.

Of BERTopic 0.16 and 0.17: `fit(X, y=…)` (or `fit(X)` after a TypeError), `labels_`, -1 as the label
of outliers, `probabilities_` if there is one, `predict(X)`, and pickling by joblib. The step before
it is asked for `fit(X, y=…)` and `transform(X)`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np


class BaseDimensionalityReduction:
    """The step before the clusterer, left out."""

    def fit(self, X: Any = None, y: Any = None) -> BaseDimensionalityReduction:
        return self

    def transform(self, X: Any) -> Any:
        return X


class BERTopic:
    """Topics by size, their words, and topics of new documents."""

    def __init__(self, *, umap_model: Any, hdbscan_model: Any) -> None:
        self.umap_model, self.hdbscan_model = umap_model, hdbscan_model

    def fit_transform(self, documents: list[str], embeddings: Any, y: Any = None) -> Any:
        reduced = self.umap_model.fit(embeddings, y=y).transform(embeddings)
        reduced = np.nan_to_num(reduced)
        try:
            self.hdbscan_model.fit(reduced, y=y)
        except TypeError:
            self.hdbscan_model.fit(reduced)
        labels = self.hdbscan_model.labels_
        self.has_outliers = -1 in set(labels)
        probabilities = getattr(self.hdbscan_model, "probabilities_", None)
        sizes = Counter(labels.tolist())
        order = [label for label, _ in sizes.most_common() if label != -1]
        self.numbers = {-1: -1} | {label: topic for topic, label in enumerate(order)}
        self.topics_ = [self.numbers[label] for label in labels.tolist()]
        self.words = self._words(documents)
        return self.topics_, probabilities

    def transform(self, documents: list[str], embeddings: Any) -> Any:
        labels = self.hdbscan_model.predict(self.umap_model.transform(embeddings))
        return [self.numbers.get(label, -1) for label in labels.tolist()], None

    def _words(self, documents: list[str]) -> dict[int, list[str]]:
        """The words that are most frequent in each topic, relative to all topics."""
        every = Counter(word for text in documents for word in text.split())
        found = {}
        for topic in sorted(set(self.topics_)):
            pairs = zip(documents, self.topics_, strict=True)
            own = Counter(word for text, one in pairs if one == topic for word in text.split())
            found[topic] = sorted(own, key=lambda word: -(own[word] ** 2) / every[word])[:5]
        return found
