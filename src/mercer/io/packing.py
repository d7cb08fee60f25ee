"""Values as JSON trees: numbers and names in the tree, arrays aside under a name."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer._run.records import Record, stored_fields
from mercer.io.allowance import MOST_DEPTH, MOST_OBJECTS
from mercer.io.classes import Registry, estimator_class
from mercer.kernels.base import Kernel

Json: TypeAlias = Any  # what the json module reads and writes
Arrays: TypeAlias = dict[str, NDArray[Any]]

DTYPES = ("float32", "float64", "int32", "int64")
PLAIN = (type(None), bool, int, float, str, list, np.generic)  # what JSON has a form for


@dataclass(slots=True)
class Packer:
    """Writes values as JSON, and puts arrays aside under names."""

    arrays: Arrays = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    kernel: Kernel | None = None  # the estimator's, which its factor may share
    n_objects: int = 0
    depth: int = 0

    def pack(self, value: Any, name: str) -> Json:
        """The value as JSON; `name` is its place, for errors and for names of arrays."""
        self.depth += 1
        self.n_objects += not isinstance(value, PLAIN)
        if self.depth > MOST_DEPTH or self.n_objects > MOST_OBJECTS:
            raise ValueError(
                f"{name[:200]} has more than {MOST_OBJECTS:,} parts, or is nested more than "
                f"{MOST_DEPTH} times, which a model file does not hold; use a simpler kernel"
            )
        tree = self._packed(value, name)
        self.depth -= 1
        return tree

    def estimator(self, estimator: Any, place: str = "") -> dict[str, Json]:
        """A fitted estimator: class, parameters, fitted attributes and report."""
        check_is_fitted(estimator)
        cls, outer = type(estimator), self.kernel
        self.registry.add_estimator(cls)
        tree: dict[str, Json] = {
            "class": cls.__name__,
            "parameters": self.parameters(estimator, f"{place}parameters"),
        }
        optional = (name for name in cls._optional_fields if name in vars(estimator))
        self.kernel, fitted = None, {}
        for name in dict.fromkeys((*cls._fitted_fields, *optional)):
            value = getattr(estimator, name)
            fitted[name] = self.pack(value, f"{place}{name}")
            self.kernel = value if name == "kernel_" else self.kernel
        report, self.kernel = vars(estimator).get("report_"), outer
        return tree | {"fitted": fitted, "report": None if report is None else report.to_record()}

    def parameters(self, estimator: Any, name: str) -> Json:
        """The constructor's parameters; the state of a random generator is left out."""
        params = estimator.get_params(deep=False)
        if isinstance(params.get("random_state"), np.random.RandomState | np.random.Generator):
            params["random_state"] = None
        return {key: self.pack(value, f"{name}.{key}") for key, value in params.items()}

    def _packed(self, value: Any, name: str) -> Json:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, list):
            return [self.pack(item, f"{name}.{i}") for i, item in enumerate(value)]
        if isinstance(value, PLAIN):
            return value
        if value is self.kernel:
            return {"same": "kernel_"}
        for kind, verb in self._verbs().items():
            if isinstance(value, kind):
                return verb(value, name)
        return self._csr(value, name) if sp.issparse(value) else self._object(value, name)

    def _verbs(self) -> dict[Any, Callable[[Any, str], Json]]:
        return {
            tuple: lambda value, name: {"tuple": self.pack(list(value), name)},
            slice: lambda value, name: {
                "slice": self.pack([value.start, value.stop, value.step], name)
            },
            range: lambda value, name: {"range": [value.start, value.stop, value.step]},
            np.dtype: lambda value, name: {"dtype": value.name},
            np.ndarray: self._array,
            Record: self._record,
        }

    def _array(self, array: NDArray[Any], name: str) -> Json:
        if array.dtype == object and all(isinstance(item, str) for item in array.flat):
            return {"names": array.tolist()}
        if array.dtype.name not in DTYPES:
            raise TypeError(
                f"{name} is an array of {array.dtype}, which a model file does not hold; "
                f"it holds arrays of {', '.join(DTYPES)}"
            )
        self.arrays[name] = array
        return {"array": name}

    def _csr(self, rows: Any, name: str) -> Json:
        csr = sp.csr_array(rows)
        parts = {part: getattr(csr, part) for part in ("data", "indices", "indptr")}
        tree = {part: self.pack(array, f"{name}.{part}") for part, array in parts.items()}
        return {"csr": [int(n) for n in csr.shape], **tree}

    def _record(self, record: Record, name: str) -> Json:
        held = record.stored_form()
        cls = type(held)
        if self.registry.records.get(cls.__name__) is not cls:
            raise TypeError(_cannot_hold(record, name))
        keys = stored_fields(cls)
        tree = {key: self.pack(getattr(held, key), f"{name}.{key}") for key in keys}
        return {"class": cls.__name__, "fields": tree}

    def _object(self, value: Any, name: str) -> Json:
        cls = type(value)
        if self.registry.objects.get(cls.__name__) is cls:
            return {"class": cls.__name__, "params": self.parameters(value, name)}
        if estimator_class(cls.__name__) is cls:
            return {"estimator": self.estimator(value, f"{name}.")}
        raise TypeError(_cannot_hold(value, name))


def _cannot_hold(value: Any, name: str) -> str:
    what = f"{name} is {reprlib.repr(value)}, a {type(value).__name__}"
    if value.is_function if isinstance(value, Kernel) else callable(value):
        return (
            f"{what}: a model file holds no code, so a model with a function in it cannot be "
            "saved; use Mercer's kernels and their sums and products, or kernel='precomputed'"
        )
    return (
        f"{what}, which a model file does not hold; it holds numbers, text, lists, slices and "
        "Mercer's own kernels and approximations"
    )
