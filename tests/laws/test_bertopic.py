"""Mercer as BERTopic's clusterer: the recipe of the documentation, with all that BERTopic calls."""

from __future__ import annotations

import re
import sys
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import topic_model
from mercer import KernelKMeans, KernelSpectralClustering, SpectralClustering
from mercer.datasets import directions

PAGE = Path(__file__).parents[2] / "docs" / "migrate.md"
WORDS = ("oven butter flour", "rocket orbit moon", "judge jury law", "goal team match")


def corpus(n_rows: int = 1200, seed: int = 0) -> tuple[list[str], Any, Any]:
    """Documents of four topics, their embeddings, and the topics."""
    X, topics = directions(n_rows, 4, n_features=64, spread=0.5, random_state=seed)
    rng = np.random.default_rng(seed)
    documents = [" ".join(rng.choice(WORDS[t].split(), 6)) for t in topics]
    return documents, X, topics


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize(
    "clusterer",
    [
        SpectralClustering("auto", kernel="cosine", noise="auto", random_state=0),
        SpectralClustering(4, kernel="cosine", random_state=0),
        KernelSpectralClustering(4, kernel="cosine", random_state=0),
        KernelKMeans(4, kernel="cosine", random_state=0),
    ],
    ids=["spectral auto", "spectral", "ksc", "kernel-kmeans"],
)
def test_a_clusterer_does_what_bertopic_asks_of_it(clusterer: Any) -> None:
    documents, X, truth = corpus()
    model = topic_model.BERTopic(
        umap_model=topic_model.BaseDimensionalityReduction(), hdbscan_model=clusterer
    )
    topics, probabilities = model.fit_transform(documents[:1000], X[:1000])
    assert probabilities is None
    assert model.has_outliers == (-1 in topics)
    kept = np.array(topics) >= 0
    assert kept.mean() > 0.9
    assert adjusted_rand_score(truth[:1000][kept], np.array(topics)[kept]) > 0.98
    new_topics, _ = model.transform(documents[1000:], X[1000:])
    known = np.array(new_topics) >= 0
    assert adjusted_rand_score(truth[1000:][known], np.array(new_topics)[known]) > 0.98
    assert model.transform(documents[:1000], X[:1000])[0] == topics
    sizes = np.bincount(np.array(topics)[kept])
    assert (np.diff(sizes) <= 0).all()
    found = {frozenset(model.words[topic][:3]) for topic in range(4)}
    assert found == {frozenset(words.split()) for words in WORDS}


def test_a_topic_model_is_saved_with_its_clusterer() -> None:
    documents, X, _ = corpus(600)
    model = topic_model.BERTopic(
        umap_model=topic_model.BaseDimensionalityReduction(),
        hdbscan_model=SpectralClustering(4, kernel="cosine", random_state=0),
    )
    topics, _ = model.fit_transform(documents, X)
    buffer = BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    assert joblib.load(buffer).transform(documents, X)[0] == topics


def test_the_recipe_of_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    package, dimensionality = ModuleType("bertopic"), ModuleType("bertopic.dimensionality")
    package.BERTopic = topic_model.BERTopic  # type: ignore[attr-defined]
    dimensionality.BaseDimensionalityReduction = (  # type: ignore[attr-defined]
        topic_model.BaseDimensionalityReduction
    )
    monkeypatch.setitem(sys.modules, "bertopic", package)
    monkeypatch.setitem(sys.modules, "bertopic.dimensionality", dimensionality)
    documents, X, truth = corpus()
    names: dict[str, Any] = {"documents": documents[:1000], "embeddings": X[:1000]}
    names |= {"new_documents": documents[1000:], "new_embeddings": X[1000:]}
    exec(compile(recipe, PAGE.name, "exec"), names)
    assert adjusted_rand_score(truth[:1000], names["topics"]) > 0.9
    assert len(names["new_topics"]) == 200


def test_bertopic_itself() -> None:
    bertopic = pytest.importorskip("bertopic")
    dimensionality = pytest.importorskip("bertopic.dimensionality")
    documents, X, truth = corpus()
    model = bertopic.BERTopic(
        embedding_model=None,
        umap_model=dimensionality.BaseDimensionalityReduction(),
        hdbscan_model=SpectralClustering(4, kernel="cosine", random_state=0),
    )
    topics, _ = model.fit_transform(documents[:1000], X[:1000])
    assert adjusted_rand_score(truth[:1000], topics) > 0.98
    assert len(model.transform(documents[1000:], X[1000:])[0]) == 200
