"""What Mercer writes to disk: models and labels, whole or not at all."""

from __future__ import annotations

from mercer.io.labels import read_labels, write_labels
from mercer.io.model import load, save

__all__ = ["load", "read_labels", "save", "write_labels"]
