"""Hostile inputs as records: what is passed, and the one right outcome for every estimator.

An outcome is a correct result by a stated check, or one clear error whose words name the culprit.
`params` and `fit` are arguments of the constructor and of `fit`; a case that names a parameter an
estimator does not have is not tried on it. `costly` cases run on a few estimators, and on all of
them in the long run.
"""

from __future__ import annotations

import decimal
import fractions
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import mercer
from mercer import RBF, BudgetError

X0, Y0 = make_blobs(150, 3, centers=np.eye(3) * 20, random_state=0)
X0.setflags(write=False)
XR = np.round(X0, 3)
XR.setflags(write=False)
X4, X20 = (np.c_[X0, np.random.default_rng(d).normal(size=(150, d - 3))] for d in (4, 20))


@dataclass(frozen=True)
class Case:
    """A hostile input and what must come of it."""

    X: Callable[[], Any]
    error: tuple[Any, str] | None = None
    warns: str | None = None  # a MercerWarning that must be given
    labels: Callable[[np.ndarray], bool] = lambda labels: adjusted_rand_score(Y0, labels) == 1.0
    params: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    costly: bool = False


NO_STREAM = "rows of a stream are compared with those to come"  # whatever the matrix


def refused(X, words, error=ValueError, **more):
    return Case(X, error=(error, words), **more)


def parameter(words, error=ValueError, **params):
    """A parameter that no data could make right."""
    return refused(lambda: X0, words, error, params=params)


def kernel(function, words, error=ValueError):
    return refused(lambda: X0, words, error, params={"kernel": function})


def weights_refused(values, words, error=ValueError):
    return refused(lambda: X0, words, error, fit={"sample_weight": values})


def weighed(values, **more):
    return Case(lambda: X0, fit={"sample_weight": values}, **more)


def with_value(value, dtype=np.float64):
    X = X0.astype(dtype)
    X[17, 1] = value
    return X


def changed(kind, change):
    """A sparse matrix whose insides were written to."""
    X = sp.csr_array(X0).asformat(kind)
    change(X)
    return X


def set_value(name, place, value):
    def change(X):
        getattr(X, name)[place] = value

    return change


def cut(name):
    def change(X):
        setattr(X, name, getattr(X, name)[:-5])

    return change


def quietly(make, *arguments):
    """What scipy and numpy only make with a warning of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*arguments)


def any_labels(labels):
    return labels.min() >= 0


def one_cluster(labels):
    return (labels == 0).all()


def found_in_first(labels):
    """The three blobs, among the first 150 rows."""
    return adjusted_rand_score(Y0, labels[:150]) > 0.5


def in_two_groups(X):
    """Every second row is 10,000 spreads away."""
    X = X.copy()
    X[::2, -1] += 1e4
    return X


def six_clusters(labels):
    """Three in each group; k-means may divide one and join two others."""
    return adjusted_rand_score(Y0 * 2 + np.arange(150) % 2, labels) > 0.7


def frame(package, **columns):
    """A frame of the rows, some columns replaced."""
    module = pytest.importorskip(package)
    made = {**{name: XR[:, j] for j, name in enumerate("abc")}, **columns}
    return module.table(made) if package == "pyarrow" else module.DataFrame(made)


def unaligned():
    raw = bytearray(X0.nbytes + 1)
    X = np.frombuffer(raw, np.uint8, offset=1)[: X0.nbytes].view(np.float64).reshape(X0.shape)
    X[:] = X0
    return X


def structured():
    return np.array([tuple(row) for row in X0], dtype=[("a", "f8"), ("b", "f8"), ("c", "f8")])


def memmap():
    import tempfile

    with tempfile.NamedTemporaryFile(delete=False) as file:
        X0.tofile(file)
    return np.memmap(file.name, np.float64, mode="r", shape=X0.shape)


class Arraylike:
    """Only `__array__`, as other libraries have."""

    def __array__(self, dtype=None, copy=None):
        return np.array(X0, dtype)


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("the tensor is on another device")


class Subclass(np.ndarray):
    pass


def writes_into_its_input(X, Y):
    K = np.exp(-0.01 * ((X[:, None] - Y[None]) ** 2).sum(2))
    X[:] = 0.0
    return K


def islands():
    """Eight islands of two points of view: K = 3 cannot respect them all."""
    return make_blobs(160, 2, centers=np.array([[i, j] for i in (0, 1) for j in range(4)]) * 1e3)[0]


CASES = {
    # values
    "nan": refused(lambda: with_value(np.nan), r"NaN at row 17, column 1"),
    "inf": refused(lambda: with_value(np.inf), r"infinity at row 17"),
    "minus inf": refused(lambda: with_value(-np.inf, np.float32), r"infinity at row 17"),
    "float16 inf": refused(lambda: with_value(np.inf, np.float16), r"infinity at row 17"),
    "all nan": refused(lambda: np.full((20, 3), np.nan), "NaN at row 0, column 0"),
    "nan as object": refused(lambda: with_value(np.nan).astype(object), "NaN at row 17, column 1"),
    "None among objects": refused(lambda: with_value(None, object), "NaN at row 17, column 1"),
    "sparse nan": refused(lambda: sp.csr_array(with_value(np.nan)), r"NaN at row 17, column 1"),
    "sparse inf": refused(lambda: sp.csr_array(with_value(np.inf)), r"infinity at row 17"),
    "1e300": refused(lambda: X0 * 1e300, "overflow"),
    "one value of 1e300": refused(lambda: with_value(1e300), "overflow"),
    "1e-300": refused(lambda: X0 * 1e-300, "underflow"),
    "subnormal": refused(lambda: X0 * 5e-324, "underflow"),
    "scaled 1e20": Case(lambda: X0 * 1e20),
    "scaled 1e-20": Case(lambda: X0 * 1e-20),
    "scaled 1e100": Case(lambda: X0 * 1e100),
    "scaled 1e-100": Case(lambda: X0 * 1e-100),
    "float32 scaled 1e20": Case(lambda: (X0 * 1e20).astype(np.float32)),
    "float32 scaled 1e-20": Case(lambda: (X0 * 1e-20).astype(np.float32)),
    "shifted 1e9": Case(lambda: X0 + 1e9),
    "shifted 1e12": Case(lambda: X0 + 1e12),
    "shifted -1e9": Case(lambda: X0 - 1e9),
    "float32 shifted 1e4": Case(lambda: (X0 + 1e4).astype(np.float32)),
    "sparse shifted 1e4": Case(lambda: sp.csr_array(X0 + 1e4)),
    **{
        f"{X.shape[1]} columns scaled {scale:g}": Case(lambda X=X, scale=scale: X * scale)
        for X in (X4, X20)
        for scale in (1e-100, 1e-39, 2.0**63, 2.0**66, 1e39, 1e100)
    },
    "float32, 20 columns scaled 2**60": Case(lambda: np.ldexp(X20, 60).astype(np.float32)),
    **{
        f"two groups far apart, {X.shape[1]} columns": Case(
            lambda X=X: in_two_groups(X), labels=six_clusters, params={"n_clusters": 6}
        )
        for X in (X4, X20)
    },
    "tiny values beside large": Case(lambda: np.c_[X0, np.full(150, 1e-300)]),
    "minus zero": Case(
        lambda: np.r_[np.where(XR[0] == XR, -0.0, XR), XR * 1.0, [[0.0] * 3, [-0.0] * 3]],
        labels=lambda labels: labels[-1] == labels[-2],
    ),
    "negative values for chi2": refused(lambda: X0, r"values ≥ 0", params={"kernel": "chi2"}),
    "chi2 with zero rows": Case(
        lambda: np.vstack([np.abs(X0), np.zeros((1, 3))]),
        labels=any_labels,
        params={"kernel": "chi2"},
    ),
    # shapes
    "empty": refused(lambda: np.empty((0, 3)), "0 sample"),
    "empty sparse": refused(lambda: sp.csr_array((0, 3)), "0 sample"),
    "an empty list": refused(list, "0 sample|2D array"),
    "no columns": refused(lambda: np.empty((10, 0)), "0 feature"),
    "no columns sparse": refused(lambda: sp.csr_array((10, 0)), "0 feature"),
    "one row": refused(lambda: X0[:1], "n_samples=1", params={"n_clusters": 3}),
    "one row, one cluster": Case(
        lambda: X0[:1], warns="n_clusters=1", labels=one_cluster, params={"n_clusters": 1}
    ),
    "rows < clusters": refused(
        lambda: X0[:2], "fewer rows than clusters", params={"n_clusters": 3}
    ),
    "K = 1": Case(lambda: X0, warns="n_clusters=1", labels=one_cluster, params={"n_clusters": 1}),
    "K = N": Case(
        lambda: X0[:6], labels=lambda labels: len(set(labels)) == 6, params={"n_clusters": 6}
    ),
    "one column": Case(lambda: X0[:, :1] + np.array([0, 30, 60])[Y0][:, None]),
    "one column sparse": Case(
        lambda: sp.csr_array(X0[:, :1] + np.array([0, 30, 60])[Y0][:, None] + 20)
    ),
    "constant columns": Case(lambda: np.c_[X0, np.full(len(X0), 7.0), np.zeros(len(X0))]),
    "a constant column of 1e12": Case(lambda: np.c_[X0, np.full(len(X0), 1e12)]),
    "n much less than d": Case(
        lambda: make_blobs(30, 3000, centers=3, random_state=0)[0],
        labels=lambda labels: (
            adjusted_rand_score(make_blobs(30, 3000, centers=3, random_state=0)[1], labels) == 1.0
        ),
    ),
    "1-d": refused(lambda: X0[:, 0], "2D array"),
    "3-d": refused(lambda: X0.reshape(50, 3, 3), "dim"),
    "scalar": refused(lambda: 3.0, "2D array"),
    # duplicates
    "identical rows": Case(
        lambda: np.ones((50, 3)), warns="1 distinct", labels=one_cluster, params={"n_clusters": 3}
    ),
    "a broadcast row": Case(
        lambda: np.broadcast_to(np.arange(3.0), (50, 3)),
        warns="1 distinct",
        labels=one_cluster,
        params={"n_clusters": 3},
    ),
    "K-1 distinct rows": Case(
        lambda: np.repeat(np.eye(2, 3), 25, axis=0),
        warns="2 distinct",
        labels=lambda labels: len(set(labels[:25])) == 1 and labels[0] != labels[-1],
        params={"n_clusters": 3},
    ),
    "K distinct rows": Case(
        lambda: np.repeat(np.eye(3), 25, axis=0),
        labels=lambda labels: adjusted_rand_score(np.repeat([0, 1, 2], 25), labels) == 1.0,
        params={"n_clusters": 3},
    ),
    "every row twice": Case(
        lambda: np.vstack([X0, X0]),
        labels=lambda labels: (
            (labels[:150] == labels[150:]).all() and adjusted_rand_score(Y0, labels[:150]) == 1.0
        ),
    ),
    "heavy duplicates": Case(
        lambda: np.vstack([X0, np.repeat(X0[:1], 2000, axis=0)]), labels=found_in_first
    ),
    "all zeros": Case(
        lambda: np.zeros((20, 2)), warns="1 distinct", labels=one_cluster, params={"n_clusters": 3}
    ),
    # types
    "integers": Case(lambda: X0.astype(int)),
    "int8": Case(lambda: X0.astype(np.int8)),
    "uint64": Case(lambda: (X0 + 10).astype(np.uint64)),
    "float16": Case(lambda: X0.astype(np.float16)),
    "big-endian": Case(lambda: X0.astype(">f8")),
    "longdouble": Case(lambda: X0.astype(np.longdouble)),
    "bool": Case(lambda: X0 > 10),
    "numbers as objects": Case(lambda: X0.astype(object)),
    "decimals": Case(lambda: np.vectorize(decimal.Decimal, otypes=[object])(XR)),
    "fractions": Case(lambda: np.vectorize(fractions.Fraction, otypes=[object])(XR)),
    "complex": refused(lambda: X0 + 1j, "Complex data not supported"),
    "complex objects": refused(lambda: (X0 + 1j).astype(object), "omplex", (ValueError, TypeError)),
    "sparse complex": refused(lambda: sp.csr_array(X0 + 1j), "Complex data not supported"),
    "words": refused(lambda: np.array([["a", "b"]] * 10), "numeric"),
    "numbers as words": refused(lambda: X0.astype(str), "numeric"),
    "bytes": refused(lambda: X0.astype("S"), "numeric"),
    "words as objects": refused(lambda: np.array([["a", "b"]] * 10, object), "could not convert"),
    "dates": refused(lambda: X0.astype("datetime64[s]"), "numeric"),
    "dates as objects": refused(
        lambda: np.full((20, 2), __import__("datetime").datetime(2020, 1, 1), object),
        "datetime",
        (ValueError, TypeError),
    ),
    "time spans": refused(lambda: X0.astype("timedelta64[s]"), "numeric"),
    "masked": refused(lambda: np.ma.masked_greater(X0, 15), "masked", TypeError),
    "masked without a mask": refused(lambda: np.ma.array(X0), "masked", TypeError),
    "structured": refused(structured, "numeric|2D array"),
    "np.matrix": refused(lambda: quietly(np.asmatrix, X0), "matrix", TypeError),
    "ragged lists": refused(lambda: [[1.0, 2.0], [3.0]], "inhomogeneous|sequence|same"),
    "a list of words": refused(lambda: ["a", "b", "c"], "a list of 3 texts|2D array"),
    "a set": refused(lambda: {1.0, 2.0}, "", (ValueError, TypeError)),
    "a dict of different lengths": refused(lambda: {"a": X0, "b": X0[:9]}, "same rows"),
    "an empty dict": refused(dict, "no column blocks"),
    "a generator": refused(lambda: (row for row in X0), "once", TypeError),
    "None": refused(lambda: None, "", error=(ValueError, TypeError)),
    "an object with __array__": Case(Arraylike),
    "an __array__ that fails": refused(Broken, "another device", RuntimeError),
    "a subclass of ndarray": Case(lambda: X0.view(Subclass)),
    "batches of different widths": refused(lambda: [X0, X0[:, :2]], "columns|features"),
    "batches, one empty": Case(lambda: [X0[:70], X0[:0], X0[70:]]),
    "batches with nan": refused(lambda: [X0[:70], with_value(np.nan)], "NaN at row 87, column 1"),
    # frames
    "pandas": Case(lambda: frame("pandas")),
    "pandas nullable": Case(lambda: frame("pandas").astype("Float64")),
    "pandas nullable with NA": refused(
        lambda: frame("pandas", a=[None, *XR[1:, 0]]).astype("Float64"), "NaN at row 0, column 0"
    ),
    "pandas words": refused(lambda: frame("pandas", a=["x"] * 150), "could not convert|numeric"),
    "pandas categories": refused(
        lambda: frame("pandas", a=["x", "y", "z"] * 50).astype({"a": "category"}),
        "could not convert|numeric",
    ),
    "pandas dates": refused(
        lambda: frame("pandas", a=np.arange(150).astype("datetime64[s]")),
        "numeric|dtype|datetime|Timestamp",
        (ValueError, TypeError),
    ),
    "pandas names of mixed types": refused(
        lambda: frame("pandas").rename(columns={"a": 1}), "all strings|string", TypeError
    ),
    "pandas sparse": Case(
        lambda: frame("pandas").astype(pytest.importorskip("pandas").SparseDtype(float, 0.0))
    ),
    "polars": Case(lambda: frame("polars")),
    "polars with nulls": refused(
        lambda: frame("polars", a=[None, *XR[1:, 0]]), "NaN at row 0, column 0"
    ),
    "polars words": refused(lambda: frame("polars", a=["x"] * 150), "could not convert|numeric"),
    "polars dates": refused(
        lambda: frame("polars", a=np.arange(150).astype("datetime64[ms]")), "column 'a' .*dates"
    ),
    "polars lazy": refused(lambda: frame("polars").lazy(), "collect", TypeError),
    "pandas digits": refused(lambda: frame("pandas", a=["1"] * 150), "column 'a' .*text"),
    "pyarrow": Case(lambda: frame("pyarrow")),
    "pyarrow with nulls": refused(
        lambda: frame("pyarrow", a=[None, *XR[1:, 0]]), "NaN at row 0, column 0"
    ),
    "pyarrow words": refused(lambda: frame("pyarrow", a=["x"] * 150), "could not convert|numeric"),
    # layout
    "fortran order": Case(lambda: np.asfortranarray(X0)),
    "every other column of a wider array": Case(lambda: np.repeat(X0, 2, axis=1)[:, ::2]),
    "negative strides": Case(
        lambda: X0[::-1], labels=lambda labels: adjusted_rand_score(Y0[::-1], labels) == 1.0
    ),
    "unaligned": Case(unaligned),
    "read-only memmap": Case(memmap),
    # sparse
    **{
        f"sparse {kind}": Case(lambda kind=kind: quietly(sp.csr_array(X0).asformat, kind))
        for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    },
    "sparse matrix, not array": Case(lambda: sp.csr_matrix(X0)),
    "sparse int64 indices": Case(
        lambda: changed(
            "csr",
            lambda X: vars(X).update(
                indices=X.indices.astype(np.int64), indptr=X.indptr.astype(np.int64)
            ),
        )
    ),
    "sparse unsorted with duplicates": Case(
        lambda: sp.coo_array(
            (
                np.r_[X0.ravel() / 2, X0.ravel()[::-1] / 2],
                (
                    np.r_[np.repeat(np.arange(150), 3), np.repeat(np.arange(150), 3)[::-1]],
                    np.r_[np.tile(np.arange(3), 150), np.tile(np.arange(3), 150)[::-1]],
                ),
            ),
            shape=(150, 3),
        )
    ),
    "sparse bool": Case(lambda: sp.csr_array(X0 > 10)),
    "sparse int8": Case(lambda: sp.csr_array(X0.astype(np.int8))),
    "sparse float32": Case(lambda: sp.csr_array(X0.astype(np.float32))),
    "corrupt index": refused(lambda: changed("csr", set_value("indices", 5, 10**6)), "corrupt"),
    "negative index": refused(lambda: changed("csr", set_value("indices", 5, -1)), "corrupt"),
    "corrupt pointer": refused(lambda: changed("csr", set_value("indptr", 3, 10**6)), "corrupt"),
    "falling pointer": refused(lambda: changed("csr", set_value("indptr", 3, 0)), "corrupt"),
    "too few values": refused(lambda: changed("csr", cut("data")), "corrupt"),
    "too few indices": refused(lambda: changed("csr", cut("indices")), "corrupt"),
    "corrupt csc index": refused(lambda: changed("csc", set_value("indices", 5, 10**6)), "corrupt"),
    "corrupt bsr index": refused(lambda: changed("bsr", set_value("indices", 5, 10**6)), "corrupt"),
    "corrupt coo row": refused(
        lambda: changed("coo", lambda X: X.coords[0].__setitem__(5, 10**6)), "corrupt"
    ),
    "corrupt coo column": refused(
        lambda: changed("coo", lambda X: X.coords[1].__setitem__(5, -7)), "corrupt"
    ),
    "corrupt lil row": refused(
        lambda: changed("lil", lambda X: X.rows.__setitem__(3, [0, 10**6, 2])), "corrupt"
    ),
    "empty sparse rows": Case(
        lambda: sp.csr_array(np.where(Y0[:, None] == 0, 0.0, X0)),
        labels=lambda labels: adjusted_rand_score(Y0, labels) == 1.0,
    ),
    "sparse without entries": Case(
        lambda: sp.csr_array((20, 5)),
        warns="1 distinct",
        labels=one_cluster,
        params={"n_clusters": 3},
    ),
    "explicit zeros": Case(
        lambda: sp.csr_array((np.zeros(20), (np.arange(20), np.zeros(20, int))), shape=(20, 2)),
        warns="1 distinct",
        labels=one_cluster,
        params={"n_clusters": 3},
    ),
    # geometry
    "an outlier at 1e6 sigma": Case(
        lambda: np.vstack([X0, [[1e6, 1e6, 1e6]]]), labels=found_in_first
    ),
    "imbalance 1:1e5 of rows": Case(
        lambda: np.vstack([np.tile(X0[Y0 == 0], (2000, 1)), [[90.0, 90, 90]]]),
        labels=lambda labels: (labels[:-1].reshape(2000, 50) == labels[:50]).all(),
        params={"n_clusters": 2},
    ),
    "imbalance 1:1e5 of weights": weighed(np.where(Y0 == 0, 1e5, 1.0), labels=any_labels),
    "imbalance": Case(
        lambda: np.vstack([make_blobs(800, 3, centers=1, random_state=0)[0], [[90.0, 90, 90]] * 3]),
        labels=any_labels,
    ),
    "disconnected groups": Case(islands, labels=any_labels),
    "two rows far apart": Case(
        lambda: np.array([[0.0, 0.0], [1e9, 1e9]]),
        labels=lambda labels: labels[0] != labels[1],
        params={"n_clusters": 2},
    ),
    # parameters
    "gamma 0": parameter("gamma", gamma=0),
    "gamma -1": parameter("gamma", gamma=-1.0),
    "gamma nan": parameter("gamma", gamma=np.nan),
    "gamma inf": parameter("gamma", gamma=np.inf),
    "gamma word": parameter("gamma", gamma="automatic"),
    "gamma None": parameter("gamma", (ValueError, TypeError), gamma=None),
    "gamma a list": parameter("gamma", (ValueError, TypeError), gamma=[1.0]),
    "kernel near identity": Case(
        lambda: X0, warns="identity", labels=any_labels, params={"gamma": 1e12}
    ),
    "kernel near all ones": Case(
        lambda: X0, warns="constant", labels=any_labels, params={"gamma": 1e-300}
    ),
    "unknown kernel": parameter("unknown", kernel="gauss"),
    "kernel of the wrong type": parameter("kernel", (ValueError, TypeError), kernel=3),
    "kernel of nan": kernel(lambda X, Y: np.full((len(X), len(Y)), np.nan), "NaN"),
    "kernel of inf": kernel(lambda X, Y: np.full((len(X), len(Y)), np.inf), "NaN or infinity"),
    "kernel of zeros": kernel(lambda X, Y: np.zeros((len(X), len(Y))), "zero between all rows"),
    "kernel not symmetric": kernel(lambda X, Y: X @ Y.T + X[:, :1], "symmetric"),
    "kernel negative on itself": kernel(
        lambda X, Y: -np.exp(-0.01 * ((X[:, None] - Y[None]) ** 2).sum(2)), r"k\(x, x\) < 0"
    ),
    "indefinite kernel": kernel(
        lambda X, Y: 1.0 + ((X[:, None] - Y[None]) ** 2).sum(2), "semi-definite"
    ),
    "kernel of a wrong shape": kernel(lambda X, Y: np.ones((len(X), 1)), "must return numbers of"),
    "kernel of words": kernel(lambda X, Y: np.full((len(X), len(Y)), "a"), "must return numbers"),
    "kernel of complex numbers": kernel(lambda X, Y: X @ Y.T + 0j, "must return numbers"),
    "kernel that fails": kernel(lambda X, Y: 1 / 0, "division by zero", ZeroDivisionError),
    "kernel that writes into its input": kernel(writes_into_its_input, "read-only"),
    "gamma beside a kernel object": parameter("together with", kernel=RBF(1.0), gamma=2.0),
    "n_clusters 0": parameter("n_clusters", n_clusters=0),
    "n_clusters -3": parameter("n_clusters", n_clusters=-3),
    "n_clusters 2.5": parameter("n_clusters", n_clusters=2.5),
    "n_clusters word": parameter("n_clusters", n_clusters="three"),
    "n_clusters None": parameter("n_clusters", n_clusters=None),
    "n_clusters 10**9": parameter(
        "fewer rows than clusters|(cannot separate|smaller than) n_clusters=1000000000",
        n_clusters=10**9,
    ),
    "n_clusters as np.int8": Case(lambda: X0, params={"n_clusters": np.int8(3)}),
    "n_init 0": parameter("n_init", n_init=0),
    "max_iter 0": parameter("max_iter", max_iter=0),
    "max_iter 1": Case(  # far blobs can be settled after one sweep, an even square is not
        lambda: np.random.default_rng(0).uniform(size=(300, 2)),
        labels=any_labels,
        params={"max_iter": 1},
        warns="max_iter",
    ),
    "tol -1": parameter("tol", tol=-1.0),
    "tol nan": parameter("tol", tol=np.nan),
    "unknown approximation": parameter("unknown", approximation="svd"),
    "approximation of the wrong type": parameter("approximation", TypeError, approximation=3),
    "n_jobs 0": parameter("n_jobs", n_jobs=0),
    "n_jobs word": parameter("n_jobs", n_jobs="all"),
    "n_jobs -1": Case(lambda: X0, params={"n_jobs": -1}),
    "memory in unknown words": parameter("max_memory", max_memory="lots"),
    "memory negative": parameter("max_memory", (ValueError, BudgetError), max_memory=-1),
    "memory nan": parameter("max_memory", (ValueError, BudgetError), max_memory=np.nan),
    "memory too small": parameter("raise max_memory", BudgetError, max_memory=10),
    "memory just enough": Case(lambda: X0, params={"max_memory": "60MB"}),
    "random_state word": parameter("random_state", random_state="seed"),
    "random_state -1": parameter("random_state", random_state=-1),
    "random_state 1.5": parameter("random_state", random_state=1.5),
    "precomputed not square": parameter("square", kernel="precomputed"),
    "precomputed with nan": refused(
        lambda: np.where(np.eye(30), np.nan, 1.0),
        f"NaN|{NO_STREAM}",
        params={"kernel": "precomputed"},
    ),
    "precomputed not symmetric": refused(
        lambda: np.tril(mercer.RBF(0.01)(X0)),
        f"symmetric|{NO_STREAM}",
        params={"kernel": "precomputed"},
    ),
    # weights
    "weights negative": weights_refused(np.r_[-1.0, np.ones(149)], "negative"),
    "weights nan": weights_refused(np.r_[np.nan, np.ones(149)], "NaN"),
    "weights inf": weights_refused(np.r_[np.inf, np.ones(149)], "infinity"),
    "weights of wrong length": weights_refused(np.ones(3), "shape"),
    "weights in two columns": weights_refused(np.ones((150, 2)), "shape"),
    "weights all zero": weights_refused(np.zeros(150), "zero"),
    "weights as words": weights_refused(np.array(["a"] * 150), "dtype"),
    "weights complex": weights_refused(np.ones(150) + 1j, "dtype"),
    "weights masked": weights_refused(np.ma.masked_less(np.arange(150.0), 9), "masked", TypeError),
    "weights in a list": weighed([1] * 150),
    "weights one number": weighed(2.0),
    "weights bool": weighed(np.arange(150) % 2 == 0),
    "weights mostly zero": weighed((np.arange(150) % 2).astype(float)),
    "weights tiny": weighed(np.full(150, 1e-30)),
    "weights huge": weighed(np.full(150, 1e30)),
    "weights subnormal": weighed(np.full(150, 5e-324)),
    "weights of 1e200": weighed(np.full(150, 1e200)),
    "weights of 1e-200": weighed(np.full(150, 1e-200)),
    "weights that overflow": weights_refused(np.full(150, 1e308), "sample_weight"),
    # files
    "missing file": refused(lambda: "no-such-file.npy", "no-such-file", FileNotFoundError),
    "a folder": refused(lambda: "tests", "tests", (ValueError, OSError)),
    "an unknown kind of file": refused(lambda: "rows.docx", r"rows\.docx", (ValueError, OSError)),
}
