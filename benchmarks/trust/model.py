"""The logistic model of the score, fitted to kept fits, and cross-validated by set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from mercer.trust.score import LEAST_CUT, POOR, TERMS

RIDGE = 0.1  # C of the logistic regression
FOLDS = 10
SAME = {"tables|sk_iris": "suite|other/iris"}  # one set under two names


@dataclass(frozen=True)
class Fits:
    """Evidence and truth of many fits."""

    keys: list[str]
    X: np.ndarray  # (n, terms), NaN where there is none
    ari: np.ndarray
    poor: np.ndarray  # graded so, with the model that is in the package

    @classmethod
    def of(cls, given: dict[str, Any]) -> Fits:
        keys = sorted(given)
        X = np.array([[given[k]["evidence"].get(n, np.nan) for n in TERMS] for k in keys])
        cut = list(TERMS).index("borders")
        X[:, cut] = np.log(X[:, cut] + LEAST_CUT)
        ari = np.array([given[key]["ari"] for key in keys])
        poor = np.array([given[key]["grade"] == "poor" for key in keys])
        return cls(keys, X, ari, poor)

    def take(self, part: Any) -> Fits:
        ids = np.arange(len(self.keys))[part]
        return Fits([self.keys[i] for i in ids], self.X[part], self.ari[part], self.poor[part])

    def sets(self) -> np.ndarray:
        """The set of each fit."""
        names = ["|".join(key.split("|")[:2]) for key in self.keys]
        return np.array([SAME.get(name, name) for name in names])

    def fitted(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Usual values, weights and intercept."""
        usual, spread = np.nanmean(self.X, axis=0), np.nanstd(self.X, axis=0)
        Z = np.nan_to_num((self.X - usual) / spread, nan=0.0)
        right = np.clip((self.ari - 0.2) / 0.6, 0.0, 1.0)
        n = len(Z)
        model = LogisticRegression(C=RIDGE, max_iter=1000).fit(
            np.vstack([Z, Z]),
            np.r_[np.ones(n), np.zeros(n)],
            sample_weight=np.r_[right, 1.0 - right],
        )
        return usual, model.coef_[0] / spread, float(model.intercept_[0])

    def scores(self, usual: np.ndarray, weights: np.ndarray, intercept: float) -> np.ndarray:
        added = np.where(np.isnan(self.X), 0.0, (self.X - usual) * weights)
        return 1.0 / (1.0 + np.exp(-intercept - added.sum(axis=1)))

    def held_out_scores(self) -> np.ndarray:
        """Of each fit by a model that was fitted to other sets."""
        names = self.sets()
        every = np.unique(names)
        fold_of = dict(
            zip(every, np.random.default_rng(1).integers(0, FOLDS, len(every)), strict=True)
        )
        fold = np.array([fold_of[name] for name in names])
        found = np.empty(len(names))
        for f in range(FOLDS):
            found[fold == f] = self.take(fold == f).scores(*self.take(fold != f).fitted())
        return found

    def terms(self) -> str:
        """The lines of mercer/trust/score.py."""
        usual, weights, intercept = self.fitted()
        lines = [
            f'    "{name}": Term({w:.2f}, {u:.2f}),'
            for name, w, u in zip(TERMS, weights, usual, strict=True)
        ]
        return "\n".join([f"INTERCEPT = {intercept:.2f}", *lines])


def rates(scores: np.ndarray, poor: np.ndarray, ari: np.ndarray) -> dict[str, float]:
    """AUC against ARI < .5, and shares of failures and of good fits that are called poor."""
    return {
        "fits": len(ari),
        "auc": float(roc_auc_score(ari >= 0.5, scores)) if len({*(ari >= 0.5)}) == 2 else np.nan,
        "hits, ARI < .2": float(poor[ari < 0.2].mean()) if (ari < 0.2).any() else np.nan,
        "hits, ARI < .5": float(poor[ari < 0.5].mean()) if (ari < 0.5).any() else np.nan,
        "false alarms, ARI > .9": float(poor[ari > 0.9].mean()) if (ari > 0.9).any() else np.nan,
    }


def is_poor(scores: np.ndarray) -> np.ndarray:
    return scores < POOR
