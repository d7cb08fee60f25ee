"""Pictures with matplotlib: scikit-learn's Display convention."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import KernelKMeans, KernelPCA, KernelSpectralClustering, SpectralClustering
from mercer.datasets import rings

matplotlib = pytest.importorskip("matplotlib", reason="displays need matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

from mercer.report import EmbeddingDisplay, SpectrumDisplay, TuningDisplay  # noqa: E402


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def X():
    return rings(600, random_state=0)[0]


def test_an_embedding_has_all_rows_in_their_colours(X):
    model = SpectralClustering(3, random_state=0).fit(X)
    display = EmbeddingDisplay.from_estimator(model, X)
    assert display.ax_.figure is display.figure_
    assert sum(len(dots.get_offsets()) for dots in display.ax_.collections) == 600
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["0 (200)", "1 (200)", "2 (200)"]
    assert display.ax_.get_xlabel() == "column 0"
    embedded = EmbeddingDisplay.from_estimator(model, X, of="Embedding")
    assert not np.array_equal(embedded.xy, display.xy)
    with pytest.raises(ValueError, match="of='Elsewhere' is not one of"):
        EmbeddingDisplay.from_estimator(model, X, of="Elsewhere")


def test_a_display_is_drawn_again_on_another_axes(X):
    model = SpectralClustering(3, random_state=0).fit(X)
    display = SpectrumDisplay.from_estimator(model)
    _, other = plt.subplots()
    assert display.plot(ax=other) is display
    assert display.ax_ is other
    assert len(other.collections[0].get_offsets()) == len(model.eigenvalues_)
    assert "gap" in other.get_title()


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
def test_a_transformer_has_a_spectrum_without_clusters(X):
    display = SpectrumDisplay.from_estimator(KernelPCA(5, random_state=0).fit(X))
    assert display.n_clusters is None
    assert len(display.eigenvalues) == 5
    with pytest.raises(ValueError, match="found no eigenvalues"):
        SpectrumDisplay.from_estimator(KernelKMeans(3, random_state=0).fit(X))


def test_a_search_is_a_heat_map(X):
    model = KernelSpectralClustering(3, random_state=0).fit(X)
    display = TuningDisplay.from_estimator(model)
    drawn = display.ax_.images[0].get_array()
    np.testing.assert_array_equal(np.ma.filled(drawn, np.nan), model.selection_.scores)
    with pytest.raises(ValueError, match="compared no numbers of clusters"):
        TuningDisplay.from_estimator(SpectralClustering(3, random_state=0).fit(X))


def test_segments_are_drawn_over_their_image():
    pytest.importorskip("skimage", reason="pictures of segments need scikit-image")
    from mercer.image import SegmentationDisplay, Segmenter, landscape

    image, _ = landscape(60, 90, random_state=0)
    segmenter = Segmenter(4, random_state=0).fit(image)
    display = SegmentationDisplay.from_estimator(segmenter, image, overlay="average")
    assert display.ax_.images[0].get_array().shape == image.shape
    assert display.ax_.get_title() == "4 segments"


def test_what_is_not_fitted_is_refused(X):
    from sklearn.exceptions import NotFittedError

    for display in (SpectrumDisplay, TuningDisplay):
        with pytest.raises(NotFittedError):
            display.from_estimator(SpectralClustering(3))
    with pytest.raises(NotFittedError):
        EmbeddingDisplay.from_estimator(SpectralClustering(3), X)
