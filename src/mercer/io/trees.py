"""Objects as JSON and back: a fixed table of classes, numbers in JSON, arrays under a name.

Nothing in a tree is ever run: a class that is not in the tables below does not exist here.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.estimators.preimage import PreImage
from mercer.factors.binning import BinComponents, BinningFactor, Grids, KnownBins, RandomBinning
from mercer.factors.cholesky import IncompleteCholesky
from mercer.factors.dense import PivotFactor
from mercer.factors.exact import Exact
from mercer.factors.fourier import FourierFactor, RandomFourier
from mercer.factors.landmarks import LandmarkGraph, Landmarks, Search
from mercer.factors.mutual import NeighborKernel
from mercer.factors.neighbors import AffinityGraph, Neighbors
from mercer.factors.nystrom import Nystrom
from mercer.factors.quantized import Quantized, QuantizedFactor
from mercer.io.allowance import MOST_DEPTH, MOST_OBJECTS, Allowance
from mercer.io.check_binning import (
    BinList,
    check_bin_components,
    check_bin_list,
    check_binning_factor,
    check_grids,
)
from mercer.io.check_codes import check_codebook, check_selection
from mercer.io.check_models import check_fourier_factor, check_pivot_factor
from mercer.io.check_pca import check_preimage, check_quantized_factor
from mercer.io.check_rows import check_block_rows, check_combination, check_row_format
from mercer.io.check_spectral import (
    check_affinity_graph,
    check_bases,
    check_consensus,
    check_landmark_graph,
)
from mercer.io.check_stream import (
    check_neighbor_kernel,
    check_queue,
    check_stream,
    check_stream_means,
)
from mercer.io.damage import damaged, demand, reason
from mercer.io.search_plan import SearchPlan, check_search_plan
from mercer.kernels.algebra import Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.exponential import RBF, Chi2, Laplacian
from mercer.kernels.given import FunctionKernel, Precomputed
from mercer.kernels.products import Cosine, HistogramIntersection, Polynomial
from mercer.partitions.codebooks import Codebook
from mercer.partitions.ensemble import Bases, Consensus
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import BlockRows, n_bytes
from mercer.selection.result import Selection
from mercer.stream.queue import Queue
from mercer.stream.running_means import StreamMeans
from mercer.stream.state import Stream

Json: TypeAlias = Any  # what the json module reads and writes
Arrays: TypeAlias = dict[str, NDArray[Any]]

DTYPES = ("float32", "float64", "int32", "int64")

# Kernels and approximations: their parameters are all there is to them.
OBJECTS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        RBF,
        Laplacian,
        Chi2,
        Cosine,
        Polynomial,
        HistogramIntersection,
        Precomputed,
        Sum,
        Product,
        Scaled,
        IncompleteCholesky,
        Exact,
        Nystrom,
        RandomFourier,
        Landmarks,
        Neighbors,
        RandomBinning,
        Quantized,
    )
}

# Frozen dataclasses, and the check that one which was read must pass. A new factor is a new line.
RECORDS: dict[str, tuple[type[Any], Callable[[Any], None]]] = {
    "BlockRows": (BlockRows, check_block_rows),
    "RowFormat": (RowFormat, check_row_format),
    "PivotFactor": (PivotFactor, check_pivot_factor),
    "QuantizedFactor": (QuantizedFactor, check_quantized_factor),
    "PreImage": (PreImage, check_preimage),
    "FourierFactor": (FourierFactor, check_fourier_factor),
    "Grids": (Grids, check_grids),
    "BinList": (BinList, check_bin_list),
    "BinningFactor": (BinningFactor, check_binning_factor),
    "BinComponents": (BinComponents, check_bin_components),
    "LandmarkGraph": (LandmarkGraph, check_landmark_graph),
    "AffinityGraph": (AffinityGraph, check_affinity_graph),
    "SearchPlan": (SearchPlan, check_search_plan),
    "Bases": (Bases, check_bases),
    "Consensus": (Consensus, check_consensus),
    "Codebook": (Codebook, check_codebook),
    "Selection": (Selection, check_selection),
    "NeighborKernel": (NeighborKernel, check_neighbor_kernel),
    "Stream": (Stream, check_stream),
    "StreamMeans": (StreamMeans, check_stream_means),
    "Queue": (Queue, check_queue),
}

SPARSE_COPIES = 6  # of a sparse table, at most, while it is put in order or compared
SMALL_BYTES = 2**20  # of arrays, which may be named again without harm

FORGOTTEN = {
    "training_rows",
    "training_edges",
    "training_matrix",
    "training_bins",
}  # fields of records that serve the fit only


PLAIN = (type(None), bool, int, float, str, list, np.generic)  # what JSON has a form for
REBUILT = (BinList, SearchPlan)  # records that stand for what is made anew from them


@dataclass(slots=True)
class Packer:
    """Writes values as JSON, and puts arrays aside under names."""

    arrays: Arrays = field(default_factory=dict)
    kernel: Kernel | None = None  # one that was packed before, and is met again in a factor
    n_objects: int = 0
    depth: int = 0

    def pack(self, value: Any, name: str) -> Json:
        """The value as JSON; `name` says where it stands, in errors and in names of arrays."""
        self.depth += 1
        self.n_objects += not isinstance(value, PLAIN)
        if self.depth > MOST_DEPTH or self.n_objects > MOST_OBJECTS:
            raise ValueError(
                f"{name[:200]} is one of more than {MOST_OBJECTS:,} parts, or nested more than "
                f"{MOST_DEPTH} times, which a model file does not hold; use a simpler kernel"
            )
        tree = self._packed(value, name)
        self.depth -= 1
        return tree

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
        if sp.issparse(value):
            return self._csr(value, name)
        return self._object(value, name)

    def parameters(self, estimator: Any, name: str) -> Json:
        """The constructor's parameters; a random stream has moved on and is left out."""
        params = estimator.get_params(deep=False)
        if isinstance(params.get("random_state"), np.random.RandomState | np.random.Generator):
            params["random_state"] = None
        return {key: self.pack(value, f"{name}.{key}") for key, value in params.items()}

    def _verbs(self) -> dict[Any, Callable[[Any, str], Json]]:
        return {
            tuple: lambda value, name: {"tuple": self.pack(list(value), name)},
            slice: lambda value, name: {
                "slice": self.pack([value.start, value.stop, value.step], name)
            },
            range: lambda value, name: {"range": [value.start, value.stop, value.step]},
            np.dtype: lambda value, name: {"dtype": value.name},
            np.ndarray: self._array,
            Search: lambda value, name: self.pack(SearchPlan.of(value), name),
            KnownBins: lambda value, name: self.pack(BinList.of(value), name),
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

    def _object(self, value: Any, name: str) -> Json:
        cls = type(value)
        if OBJECTS.get(cls.__name__) is cls:
            return {"class": cls.__name__, "params": self.parameters(value, name)}
        if RECORDS.get(cls.__name__, (None,))[0] is cls:
            kept = [f.name for f in fields(cls) if f.name not in FORGOTTEN]
            tree = {key: self.pack(getattr(value, key), f"{name}.{key}") for key in kept}
            return {"class": cls.__name__, "fields": tree}
        raise TypeError(_cannot_hold(value, name))


@dataclass(slots=True)
class Unpacker:
    """Makes the values again; whatever is amiss raises ModelFileError."""

    arrays: Arrays
    allowance: Allowance
    kernel: Kernel | None = None
    may_be_named: int = 0  # bytes of arrays, counted as often as they are named
    depth: int = 0

    def __post_init__(self) -> None:
        there = sum(array.nbytes for array in self.arrays.values())
        self.may_be_named = 2 * there + SMALL_BYTES

    def unpack(self, tree: Json) -> Any:
        """The value that a tree describes."""
        if not isinstance(tree, list | dict):
            return tree
        self.depth += 1
        demand(self.depth <= MOST_DEPTH, "its manifest is nested too deeply")
        value = [self.unpack(item) for item in tree] if isinstance(tree, list) else self._made(tree)
        self.depth -= 1
        return value

    def _made(self, tree: dict[str, Json]) -> Any:
        self.allowance.count()
        for tag, verb in self._verbs().items():
            if tag in tree:
                return verb(tree)
        raise damaged(f"the manifest has the entry {reprlib.repr(tree)}, which means nothing")

    def parameters(self, tree: Json, cls: type[Any]) -> dict[str, Any]:
        """Parameters by name, all of which the class has."""
        demand(isinstance(tree, dict), f"the parameters of {cls.__name__} are not named")
        retired = getattr(cls, "_retired_parameters", {})  # those of earlier versions
        for key in set(tree) & set(retired):
            problem = f"{cls.__name__}({key}={reprlib.repr(tree[key])}) is no longer supported"
            demand(tree[key] in retired[key], problem, "fit the model again without it")
        tree = {key: value for key, value in tree.items() if key not in retired}
        unknown = sorted(set(tree) - set(cls._get_param_names()))
        demand(not unknown, f"{cls.__name__} has no parameters {reprlib.repr(unknown)}")
        return {key: self.unpack(value) for key, value in tree.items()}

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
        }

    def _range(self, tree: dict[str, Json]) -> range:
        start, stop, step = _ends(tree["range"])
        demand(None not in (start, stop) and step not in (None, 0), "a range has no ends")
        return range(start, stop, step)

    def _dtype(self, tree: dict[str, Json]) -> np.dtype[Any]:
        demand(tree["dtype"] in DTYPES, f"the type {reprlib.repr(tree['dtype'])} is not known")
        return np.dtype(tree["dtype"])

    def _names(self, tree: dict[str, Json]) -> NDArray[Any]:
        names = _list(tree["names"])
        demand(all(isinstance(name, str) for name in names), "a name is no text")
        return np.asarray(names, dtype=object)

    def _array(self, tree: dict[str, Json]) -> NDArray[Any]:
        name = tree["array"]
        known = isinstance(name, str) and name in self.arrays
        demand(known, f"the manifest speaks of the array {reprlib.repr(name)}, which is not there")
        self.may_be_named -= self.arrays[name].nbytes
        demand(self.may_be_named >= 0, f"the manifest names the array {name} again and again")
        return self.arrays[name]

    def _csr(self, tree: dict[str, Json]) -> sp.csr_array:
        shape = _list(tree["csr"])
        is_shape = len(shape) == 2 and all(type(n) is int and 0 < n < 2**62 for n in shape)
        demand(is_shape, f"a sparse table has the shape {reprlib.repr(shape)}")
        data, indices, indptr = (
            self.unpack(tree.get(part)) for part in ("data", "indices", "indptr")
        )
        parts = (data, indices, indptr)
        is_parts = all(isinstance(part, np.ndarray) for part in parts)
        demand(is_parts, "a sparse table has no arrays")
        self.allowance.borrow(SPARSE_COPIES * sum(part.nbytes for part in parts))
        try:
            csr: sp.csr_array = as_source(sp.csr_array(parts, shape=shape)).X  # type: ignore[attr-defined]
        except Exception as error:
            raise damaged(f"a sparse table cannot be put together ({reason(error)})") from error
        return csr

    def _same(self, tree: dict[str, Json]) -> Kernel:
        demand(tree["same"] == "kernel_", "the manifest points to something that is not there")
        if self.kernel is None:
            raise damaged("the manifest points to its kernel before it describes it")
        return self.kernel

    def _from_params(self, tree: dict[str, Json]) -> Any:
        cls = OBJECTS.get(str(tree.get("class")))
        if cls is None:
            raise _unknown_class(tree)
        try:
            made = cls(**self.parameters(tree["params"], cls))
        except TypeError as error:
            raise damaged(f"{cls.__name__} cannot be made ({reason(error)})") from error
        check_combination(made)
        return made

    def _from_fields(self, tree: dict[str, Json]) -> Any:
        if str(tree.get("class")) not in RECORDS:
            raise _unknown_class(tree)
        cls, check = RECORDS[str(tree["class"])]
        values = tree["fields"]
        named = isinstance(values, dict) and set(values) <= {f.name for f in fields(cls)}
        demand(named, f"the fields of {cls.__name__} are not those it has")
        try:
            record = cls(**{key: self.unpack(value) for key, value in values.items()})
        except TypeError as error:
            raise damaged(f"{cls.__name__} cannot be made ({reason(error)})") from error
        if isinstance(record, NeighborKernel) and sp.issparse(record.matrix):
            self.allowance.borrow(SPARSE_COPIES * n_bytes(record.matrix))  # is it symmetric?
        check(record)
        return record.rebuilt(self.allowance) if isinstance(record, REBUILT) else record


def _list(tree: Json) -> list[Any]:
    demand(isinstance(tree, list), f"{reprlib.repr(tree)} stands where a list should")
    items: list[Any] = tree
    return items


def _ends(tree: Json) -> list[Any]:
    """Start, stop and step."""
    ends = _list(tree)
    whole = len(ends) == 3 and all(end is None or type(end) is int for end in ends)
    demand(whole, f"{reprlib.repr(ends)} is not a start, a stop and a step")
    return ends


def _cannot_hold(value: Any, name: str) -> str:
    what = f"{name} is {reprlib.repr(value)}, a {type(value).__name__}"
    if isinstance(value, FunctionKernel) or (callable(value) and not isinstance(value, Kernel)):
        return (
            f"{what}: a model file holds no code, so a model with a function in it cannot be "
            "saved; use Mercer's kernels and their sums and products, or kernel='precomputed'"
        )
    return (
        f"{what}, which a model file does not hold; it holds numbers, text, lists, slices and "
        "Mercer's own kernels and approximations"
    )


def _unknown_class(tree: dict[str, Json]) -> Exception:
    return damaged(
        f"it holds a {reprlib.repr(tree.get('class'))}, which this version of Mercer does not know",
        "load it with the version that saved it, or a newer one",
    )
