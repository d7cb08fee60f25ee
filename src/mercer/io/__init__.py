"""What Mercer writes to disk: models and labels, whole or not at all."""

from __future__ import annotations

from mercer.io.batch_predictor import batch_predictor
from mercer.io.labels import read_labels, write_labels
from mercer.io.model import load, save

__all__ = ["batch_predictor", "load", "read_labels", "save", "write_labels"]
