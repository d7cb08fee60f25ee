"""benchmarks.suite: how sets are scored, that results are kept, what the page says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.suite import __main__ as suite
from benchmarks.suite.page import page, reason
from benchmarks.suite.sets import Set, numbers_of_clusters, score, sets_of

PAIR = ["--groups", "pairs", "--sets", "normal d=2 spread=1"]


def test_the_best_reference_of_that_number_counts_and_noise_does_not():
    labels = np.array([0, 0, 1, 1, 1])
    references = [np.array([1, 1, 2, 2, 0]), np.array([1, 2, 1, 2, 1]), np.array([1, 2, 3, 3, 3])]
    assert numbers_of_clusters(references) == [2, 3]
    assert score(labels, references, 2) == {"ari": 1.0, "nmi": pytest.approx(1.0)}
    assert score(labels, references, 3)["ari"] < 1.0


def test_pairs_of_gaussians_need_no_files():
    assert len(sets_of("pairs", None)) == 48
    X, (y,) = Set("pairs", "hub d=4 spread=8").read(None, 0)
    assert X.shape == (2048, 4)
    assert set(y) == {1, 2}
    assert X[y == 2].std() > 4 * X[y == 1].std()


def test_results_are_kept_and_not_fitted_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(suite, "machine", lambda: {"commit": "c", "date": "d"})  # it calibrates
    common = [*PAIR, "--out", str(tmp_path)]
    suite.main([*common, "--methods", "kmeans,ward", "--seeds", "1"])
    suite.main([*common, "--methods", "kmeans", "--seeds", "2"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line[0].isdigit()]
    assert [line.split(":")[0] for line in lines] == ["1/2 kmeans", "2/2 ward", "1/1 kmeans"]
    kept = json.loads((tmp_path / "suite.json").read_text())["runs"]
    assert set(kept["kmeans"]["pairs: normal d=2 spread=1"]["seeds"]) == {"0", "1"}
    assert set(kept["ward"]["pairs: normal d=2 spread=1"]["seeds"]) == {"0"}
    text = (tmp_path / "suite.md").read_text()
    assert "| KMeans, best of 10 | 1 | 0.7" in text
    assert "## pairs: 1 sets" in text


def test_unknown_methods_are_named(capsys):
    with pytest.raises(SystemExit):
        suite.main(["--methods", "kmeans,dbscan"])
    assert "dbscan not known; choose among spectral" in capsys.readouterr().err


def runs(**scores):
    """Results of methods on one set of 2,048 rows."""
    return {
        name.replace("_", "-"): {
            "tables: a": {
                "rows": 2048,
                "seeds": {"0": {"ari": ari, "nmi": ari, "seconds": 1.0, "smallest": smallest}},
                "version": "1",
                "commit": "c",
                "date": "d",
            }
        }
        for name, (ari, smallest) in scores.items()
    }


def test_losses_to_the_best_peer_have_reasons():
    text = page({"runs": runs(spectral=(0.0, 1), kmeans=(0.9, 1000), genie=(0.5, 900))})
    lost = "| tables: a | SpectralClustering | 0.00 | KMeans, best of 10 | 0.90 |"
    assert f"{lost} stray rows: a cluster has 1; compact clusters: means find them |" in text


@pytest.mark.parametrize(
    ("peers", "words"),
    [
        ({"mixture": 0.9, "kmeans": 0.5}, "covariances find them"),
        ({"genie": 0.9, "kmeans": 0.5}, "other neighbours find it"),
        ({"ward": 0.85, "genie": 0.9}, "means find them"),
    ],
)
def test_reasons_follow_the_peers_that_find_the_clusters(peers, words):
    kept = {"rows": 1000, "seeds": {"0": {"ari": 0.1, "smallest": 300}}}
    assert reason(kept, {"spectral": 0.1, **peers}).endswith(words)


def test_an_earlier_run_is_compared(tmp_path):
    before = {"runs": runs(spectral=(0.4, 900))}
    text = page({"runs": runs(spectral=(0.9, 900))}, before)
    assert "| SpectralClustering | 1 | 0.400 | 0.900 | tables: a 0.40 → 0.90 |" in text
