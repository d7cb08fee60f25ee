"""One rule for columns: a table gives the same rows, or an error that names the same column,
whether it is a frame of pandas, polars or pyarrow, batches of them, or a Parquet or CSV file."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from mercer import KernelKMeans, SpectralClustering, as_source
from mercer.rows.summary import summarize

pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
pq = pytest.importorskip("pyarrow.parquet")

N = 6
NUMBERS = [0.5, -1.5, 2.5, 3.5, 4.5, 5.5]
KINDS: dict[str, Any] = {  # kind of column → its values as an Arrow array
    "float64": pa.array([1.5, 2.5, 3.0, 4.0, 5.0, 7.0]),
    "float32": pa.array(np.float32([1.1, 2.2, 3, 4, 5, 7])),
    "int8": pa.array([-1, 2, 3, 4, 5, 7], pa.int8()),
    "uint16": pa.array([1, 2, 3, 4, 5, 65535], pa.uint16()),
    "int64": pa.array([1, 2, 3, 4, 5, 2**60]),
    "uint64": pa.array([2**63 + 5, 1, 2, 3, 4, 5], pa.uint64()),
    "bool": pa.array([True, False, True, True, False, True]),
    "decimal": pa.array([Decimal(f"{i}.25") for i in range(N)]),
    "float64 with gaps": pa.array([1.5, None, 3.0, 4.0, 5.0, 7.0]),
    "int64 with gaps": pa.array([1, None, 3, 4, 5, 7]),
    "bool with gaps": pa.array([True, None, True, True, False, True]),
    "decimal with gaps": pa.array([Decimal("0.25"), None, *map(Decimal, range(4))]),
    "nothing": pa.nulls(N),
    "text": pa.array(["Rome", "Oslo", "Bern", "Kyiv", "Riga", "Bonn"]),
    "large text": pa.array(["Rome"] * N, pa.large_string()),
    "text with gaps": pa.array(["Rome", None, "Bern", "Kyiv", "Riga", "Bonn"]),
    "digits": pa.array([str(i) for i in range(N)]),
    "bytes": pa.array([b"a"] * N),
    "categories": pa.array(["a", "b", "a", "b", "a", "b"]).dictionary_encode(),
    "dates": pa.array([dt.date(2020, 1, 1 + i) for i in range(N)]),
    "timestamps": pa.array([dt.datetime(2020, 1, 1 + i) for i in range(N)]),
    "timestamps with a zone": pa.array(
        [dt.datetime(2020, 1, 1 + i) for i in range(N)], pa.timestamp("us", "UTC")
    ),
    "times": pa.array([dt.time(i) for i in range(N)]),
    "durations": pa.array([dt.timedelta(days=i) for i in range(N)]),
    "lists": pa.array([[1.0, 2.0]] * N),
    "records": pa.array([{"a": 1}] * N),
}
WRITTEN_ALIKE = {"text", "large text", "text with gaps", "dates", "timestamps", "bool", "nothing"}
AS_CSV = WRITTEN_ALIKE | {kind for kind in KINDS if kind.startswith(("float", "int", "uint"))}


def forms(table: Any, kind: str, folder: Any) -> Iterator[tuple[str, Any]]:
    """The table in every form that can hold it."""
    yield "pyarrow", table
    yield "record batch", table.combine_chunks().to_batches()[0]
    yield "polars", pl.from_arrow(table)
    yield "pandas", table.to_pandas()
    yield "pandas objects", pd.DataFrame({"x": NUMBERS, "c": table["c"].to_pylist()}, dtype=object)
    yield "pandas of Arrow", table.to_pandas(types_mapper=pd.ArrowDtype)
    yield "pandas nullable", table.to_pandas().convert_dtypes()
    yield "batches", [table.slice(0, 4), table.slice(4)]
    yield "batches of polars", [pl.from_arrow(table.slice(0, 4)), pl.from_arrow(table.slice(4))]
    if kind != "durations":  # which Parquet has not
        pq.write_table(table, folder / "table.parquet")
        yield "parquet", folder / "table.parquet"
    if kind in AS_CSV:
        table.to_pandas().to_csv(folder / "table.csv", index=False)
        yield "csv", folder / "table.csv"
        pl.from_arrow(table).write_csv(folder / "polars.csv")
        yield "csv of polars", folder / "polars.csv"


def treatment(X: Any) -> tuple[str, Any]:
    """("rows", them) or ("column", the one that the error names)."""
    try:
        source = as_source(X)
        summarize(source, block_rows=N)
        return "rows", np.asarray(source.read(0, N), np.float64)
    except ValueError as error:
        found = re.search(r"column (?:\d+ \()?'(\w+)'", str(error))
        return "column", found[1] if found else str(error)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beside", ["float64", "float32"])
def test_a_table_is_the_same_in_every_form(kind: str, beside: str, tmp_path: Any) -> None:
    table = pa.table({"x": pa.array(NUMBERS, pa.type_for_alias(beside)), "c": KINDS[kind]})
    is_number = kind in list(KINDS)[:8]
    dtypes = set()
    for name, form in forms(table, kind, tmp_path):
        what, found = treatment(form)
        assert what == ("rows" if is_number else "column"), (name, found)
        if is_number:
            expected = np.array([float(value) for value in KINDS[kind].to_pylist()])
            assert np.array_equal(found[:, 0], NUMBERS), name
            assert np.allclose(found[:, 1], expected, rtol=1e-6, atol=0), name
            if "csv" not in name and "objects" not in name:  # which have one type of number
                dtypes.add(as_source(form).dtype)
        else:
            assert found == "c", name
    assert len(dtypes) <= 1


def test_every_column_that_is_no_number_is_named_with_what_to_do() -> None:
    table = {"x": NUMBERS, "city": ["Rome"] * N, "day": [dt.date(2020, 1, 1)] * N}
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        with pytest.raises(ValueError, match=r"'city' \(text.*'day' \(dates.*OneHotEncoder"):
            KernelKMeans(2).fit(frame)


def test_objects_that_mix_text_with_numbers_are_refused_by_column() -> None:
    mixed = pd.DataFrame({"x": NUMBERS, "c": [1, "2", None, 4.0, Decimal(5), True]})
    numbers = pd.DataFrame({"x": NUMBERS, "c": [1, 2.5, None, pd.NA, Decimal(5), np.True_]})
    with pytest.raises(ValueError, match=r"column 'c' of X .*text"):
        as_source(mixed)
    assert np.array_equal(
        as_source(numbers).read(0, N)[:, 1], [1, 2.5, np.nan, np.nan, 5, 1], equal_nan=True
    )
    for rows in ([[1, "2"], [3, 4]], np.array([[1, "2"], [3, 4]], dtype=object)):
        with pytest.raises(ValueError, match=r"column 1 of X .*text"):
            as_source(rows)


def test_a_frame_of_one_type_of_number_is_not_copied() -> None:
    X = np.ones((5, 2))
    source: Any = as_source(pd.DataFrame(X, columns=["a", "b"], copy=False))
    assert np.shares_memory(source.X, X)


def test_pandas_sparse_columns_whose_gaps_are_not_zero_are_read() -> None:
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 1.0, 2.0], fill_value=1.0)})
    assert np.array_equal(as_source(frame).read(0, 3), [[1.0], [1.0], [2.0]])


def test_columns_of_one_name_are_refused() -> None:
    twice = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    for frame in (pd.DataFrame(np.ones((4, 2)), columns=["a", "a"]), twice):
        with pytest.raises(ValueError, match="two columns of one name, 'a'"):
            as_source(frame)


def test_what_only_seems_to_be_rows_is_refused_with_what_to_pass() -> None:
    ds, nx = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("networkx")
    frame, graph = pl.DataFrame({"x": NUMBERS}), nx.karate_club_graph()
    for X, words in (
        (frame.lazy(), r"LazyFrame.*X\.collect\(\)"),
        (ds.dataset(frame.to_arrow()), r"Dataset.*folder.*X\.to_table\(\)"),
        (graph, r"Graph.*to_scipy_sparse_array\(X\).*precomputed"),
        (nx.DiGraph(graph), r"Graph.*to_scipy_sparse_array\(X\).*precomputed"),
    ):
        with pytest.raises(TypeError, match=words):
            SpectralClustering(2).fit(X)
    matrix = nx.to_scipy_sparse_array(graph)
    model = SpectralClustering(2, kernel="precomputed", random_state=0).fit(matrix)
    assert len(set(model.labels_)) == 2
