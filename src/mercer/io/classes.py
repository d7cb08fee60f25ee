"""The classes that a model file may name: fixed tables, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from typing import Any, get_args

from mercer._run.records import Record, resolve, stored_fields
from mercer.factors import names as factor_names
from mercer.kernels import registry as kernel_names
from mercer.rows.rows import BlockRows

# The estimators that can be saved: what each keeps is in its `_fitted_fields`.
ESTIMATORS = {
    "KernelFeatures": "mercer.estimators:KernelFeatures",
    "KernelKMeans": "mercer.estimators:KernelKMeans",
    "KernelPCA": "mercer.estimators:KernelPCA",
    "KernelSpectralClustering": "mercer.estimators:KernelSpectralClustering",
    "Segmenter": "mercer.image:Segmenter",
    "SpectralClustering": "mercer.estimators:SpectralClustering",
    "StreamingKernelKMeans": "mercer.stream:StreamingKernelKMeans",
}


def estimator_class(name: Any) -> type[Any] | None:
    """The estimator of this name, if it is in the table."""
    if not isinstance(name, str) or name not in ESTIMATORS:
        return None
    module, _, attribute = ESTIMATORS[name].partition(":")
    cls: type[Any] = getattr(import_module(module), attribute)
    return cls


@dataclass(slots=True)
class Registry:
    """Kernels, approximations and records by name."""

    objects: dict[str, type[Any]] = field(default_factory=dict)
    records: dict[str, type[Record]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        approximations = factor_names.NAMES.values()
        kernels = (*kernel_names.NAMES.values(), *kernel_names.COMBINATIONS)
        self.objects = {cls.__name__: cls for cls in (*kernels, *approximations)}
        self._add(BlockRows)
        for approximation in approximations:
            for record in approximation.records():
                self._add(record)

    def add_estimator(self, cls: type[Any]) -> None:
        """The records that its fitted attributes may be."""
        for specification in (cls._fitted_fields | cls._optional_fields).values():
            self._add(specification)

    def _add(self, specification: Any) -> None:
        """A class of records and those of its fields; other specifications name none."""
        specification = resolve(specification)
        for kind in get_args(specification) or (specification,):
            is_record = isinstance(kind, type) and issubclass(kind, Record) and is_dataclass(kind)
            cls: Any = (kind.stored_as or kind) if is_record else None
            if is_record and cls.__name__ not in self.records:
                self.records[cls.__name__] = cls
                for inner in stored_fields(cls).values():
                    self._add(inner)
