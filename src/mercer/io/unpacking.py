"""Values from JSON trees. Nothing in a tree is ever run: its classes are those of the registry."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._run.budget import Budget
from mercer._run.records import check_record, check_value, stored_fields
from mercer.io.allowance import MOST_DEPTH, Allowance
from mercer.io.classes import ESTIMATORS, Registry, estimator_class
from mercer.io.damage import damaged, demand, sound
from mercer.io.packing import DTYPES, Arrays, Json
from mercer.kernels.base import Kernel
from mercer.report import Report
from mercer.rows.inputs import as_source

SPARSE_COPIES = 6  # of a sparse matrix, at most, while it is checked, sorted or compared
ESTIMATOR_OBJECTS = 1000  # that an estimator within another counts for: its report takes time
SMALL_BYTES = 2**20  # of arrays, which may be named again without harm
NEWER = "load it with the version that saved it, or a newer one"


@dataclass(slots=True)
class Unpacker:
    """Makes the values again; whatever is wrong raises ModelFileError."""

    arrays: Arrays
    allowance: Allowance
    registry: Registry = field(default_factory=Registry)
    kernel: Kernel | None = None
    may_be_named: int = 0  # bytes of arrays, counted as often as they are named
    depth: int = 0

    def __post_init__(self) -> None:
        held = sum(array.nbytes for array in self.arrays.values())
        self.may_be_named = 2 * held + SMALL_BYTES

    def unpack(self, tree: Json) -> Any:
        """The value that a tree describes."""
        if not isinstance(tree, list | dict):
            return tree
        self.depth += 1
        demand(self.depth <= MOST_DEPTH, "its manifest is nested too deeply")
        value = [self.unpack(item) for item in tree] if isinstance(tree, list) else self._made(tree)
        self.depth -= 1
        return value

    def estimator(self, tree: dict[str, Json]) -> Any:
        """The estimator that a tree describes, sound or not at all."""
        cls, outer = estimator_class(tree.get("class")), self.kernel
        if cls is None:
            found, known = reprlib.repr(tree.get("class")), ", ".join(sorted(ESTIMATORS))
            raise damaged(f"it holds a {found}, and this version of Mercer knows {known}", NEWER)
        self.registry.add_estimator(cls)
        parameters = tree.get("parameters")
        if isinstance(parameters, dict):
            parameters = _without_retired(parameters, cls)
        estimator = cls(**self.parameters(parameters, cls))
        with sound("its parameters are not valid"):
            estimator._validate_params()
            Budget.of(estimator.max_memory)
        fitted = self._fitted(tree.get("fitted"), cls)
        vars(estimator).update(fitted, **_report(tree.get("report")))
        with sound():
            estimator._check_fitted()
        self.kernel = outer
        return estimator

    def parameters(self, tree: Json, cls: type[Any]) -> dict[str, Any]:
        """Parameters by name, all of which the class has."""
        demand(isinstance(tree, dict), f"the parameters of {cls.__name__} are not named")
        unknown = sorted(set(tree) - set(cls._get_param_names()))
        demand(not unknown, f"{cls.__name__} has no parameters {reprlib.repr(unknown)}")
        return {key: self.unpack(value) for key, value in tree.items()}

    def _fitted(self, tree: Json, cls: type[Any]) -> dict[str, Any]:
        """The fitted attributes, each as it is specified."""
        demand(isinstance(tree, dict), "its manifest has no fitted attributes")
        known = cls._fitted_fields | cls._optional_fields
        missing, unknown = (
            sorted(set(cls._fitted_fields) - set(tree)),
            sorted(set(tree) - set(known)),
        )
        demand(not missing, f"the fitted attributes {missing} are missing")
        demand(not unknown, f"the fitted attributes {reprlib.repr(unknown)} are unknown")
        fitted, sizes = dict[str, Any](), dict[str, int]()
        self.kernel = None
        for name in (name for name in known if name in tree):
            value = fitted[name] = self.unpack(tree[name])
            with sound():
                check_value(value, known[name], sizes, name)
            self.kernel = value if name == "kernel_" else self.kernel
        return fitted

    def _made(self, tree: dict[str, Json]) -> Any:
        self.allowance.count()
        for tag, verb in self._verbs().items():
            if tag in tree:
                return verb(tree)
        raise damaged(f"the manifest has the entry {reprlib.repr(tree)}, which has no meaning")

    def _verbs(self) -> dict[str, Callable[[dict[str, Json]], Any]]:
        return {
            "tuple": lambda tree: tuple(self.unpack(_list(tree["tuple"]))),
            "slice": lambda tree: slice(*_ends(tree["slice"])),
            "range": self._range,
            "dtype": self._dtype,
            "names": self._names,
            "array": self._array,
            "csr": self._csr,
            "same": self._same,
            "params": self._from_params,
            "fields": self._from_fields,
            "estimator": self._nested,
        }

    def _range(self, tree: dict[str, Json]) -> range:
        start, stop, step = _ends(tree["range"])
        demand(None not in (start, stop) and step not in (None, 0), "a range has no ends")
        return range(start, stop, step)

    def _dtype(self, tree: dict[str, Json]) -> np.dtype[Any]:
        demand(tree["dtype"] in DTYPES, f"the dtype {reprlib.repr(tree['dtype'])} is unknown")
        return np.dtype(tree["dtype"])

    def _names(self, tree: dict[str, Json]) -> NDArray[Any]:
        names = _list(tree["names"])
        demand(all(isinstance(name, str) for name in names), "a name is not text")
        return np.asarray(names, dtype=object)

    def _array(self, tree: dict[str, Json]) -> NDArray[Any]:
        name = tree["array"]
        is_known = isinstance(name, str) and name in self.arrays
        demand(is_known, f"the manifest names the array {reprlib.repr(name)}, which is missing")
        self.may_be_named -= self.arrays[name].nbytes
        demand(self.may_be_named >= 0, f"the manifest names the array {name} many times")
        return self.arrays[name]

    def _csr(self, tree: dict[str, Json]) -> sp.csr_array:
        shape = _list(tree["csr"])
        is_shape = len(shape) == 2 and all(type(n) is int and 0 < n < 2**62 for n in shape)
        demand(is_shape, f"a sparse matrix has the shape {reprlib.repr(shape)}")
        parts = tuple(self.unpack(tree.get(part)) for part in ("data", "indices", "indptr"))
        is_parts = all(isinstance(part, np.ndarray) for part in parts)
        demand(is_parts, "a sparse matrix has no arrays")
        self.allowance.borrow(SPARSE_COPIES * sum(part.nbytes for part in parts))
        with sound("a sparse matrix is not valid"):
            csr: sp.csr_array = as_source(sp.csr_array(parts, shape=shape)).X  # type: ignore[attr-defined]
        return csr

    def _same(self, tree: dict[str, Json]) -> Kernel:
        demand(tree["same"] == "kernel_", "the manifest refers to something that is missing")
        if self.kernel is None:
            raise damaged("the manifest refers to its kernel before it describes it")
        return self.kernel

    def _from_params(self, tree: dict[str, Json]) -> Any:
        cls = self.registry.objects.get(str(tree.get("class")))
        if cls is None:
            raise _unknown_class(tree)
        params = self.parameters(tree["params"], cls)
        with sound(f"{cls.__name__} cannot be made"):
            made = cls(**params)
            if isinstance(made, Kernel):
                made.check_structure()
        return made

    def _from_fields(self, tree: dict[str, Json]) -> Any:
        cls = self.registry.records.get(str(tree.get("class")))
        if cls is None:
            raise _unknown_class(tree)
        values = tree["fields"]
        is_named = isinstance(values, dict) and set(values) <= set(stored_fields(cls))
        demand(is_named, f"the fields of {cls.__name__} are not those it has")
        held = {key: self.unpack(value) for key, value in values.items()}
        with sound(f"{cls.__name__} cannot be made"):
            record = cls(**held)
        with sound():
            check_record(record)
            return record.rebuild(self.allowance)

    def _nested(self, tree: dict[str, Json]) -> Any:
        demand(isinstance(tree["estimator"], dict), "an estimator is not described")
        self.allowance.count(ESTIMATOR_OBJECTS)
        return self.estimator(tree["estimator"])


def _without_retired(tree: dict[str, Json], cls: type[Any]) -> dict[str, Json]:
    """Parameters without those of earlier versions, which load if their value changed nothing."""
    retired = cls._retired_parameters
    for key in set(tree) & set(retired):
        problem = f"{cls.__name__}({key}={reprlib.repr(tree[key])}) is no longer supported"
        demand(tree[key] in retired[key], problem, "fit the model again without it")
    return {key: value for key, value in tree.items() if key not in retired}


def _report(tree: Json) -> dict[str, Report]:
    """The report, if there is one; it must be printable."""
    if tree is None:
        return {}
    with sound("its report cannot be read"):
        report = Report.from_dict(tree)
        str(report)
    return {"report_": report}


def _list(tree: Json) -> list[Any]:
    demand(isinstance(tree, list), f"{reprlib.repr(tree)} stands where a list should")
    items: list[Any] = tree
    return items


def _ends(tree: Json) -> list[Any]:
    """Start, stop and step."""
    ends = _list(tree)
    is_whole = len(ends) == 3 and all(end is None or type(end) is int for end in ends)
    demand(is_whole, f"{reprlib.repr(ends)} is not a start, a stop and a step")
    return ends


def _unknown_class(tree: dict[str, Json]) -> Exception:
    name = reprlib.repr(tree.get("class"))
    return damaged(f"it holds a {name}, which this version of Mercer does not know", NEWER)
