"""How embeddings are stored: lists, tensors, half precision, int8, unit rows, ids beside them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from mercer import SpectralClustering, as_source
from mercer.cli.app import app
from mercer.datasets import directions
from mercer.io.labels import read_labels


@pytest.fixture(scope="module")
def X():
    return directions(300, 3, n_features=8, sizes="equal", spread=0.5, random_state=0)[0]


def list_column(X, kind="fixed"):
    values = pa.array(np.ascontiguousarray(X).ravel())
    d = X.shape[1]
    if kind == "list":
        return pa.ListArray.from_arrays(np.arange(0, X.size + 1, d, dtype=np.int32), values)
    fixed = pa.FixedSizeListArray.from_arrays(values, d)
    if kind == "fixed":
        return fixed
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(values.type, [d]), fixed)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("kind", ["list", "fixed", "tensor"])
def test_a_parquet_column_of_lists_or_tensors_is_a_table_of_numbers(X, tmp_path, kind, dtype):
    rows = (100 * X).astype(dtype) if dtype == np.int8 else X.astype(dtype)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"vector": list_column(rows, kind)}), path, row_group_size=70)
    source = as_source(path)
    assert source.n_features == 8
    assert source.dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_array_equal(source.read(0, 300), rows.astype(source.dtype))
    np.testing.assert_array_equal(source.read(65, 75), rows[65:75].astype(source.dtype))


@pytest.mark.parametrize("kind", ["fixed", "tensor"])
def test_arrow_arrays_in_memory_are_rows(X, kind):
    array = list_column(X, kind)
    np.testing.assert_array_equal(as_source(array).read(0, 300), X)
    chunked = pa.chunked_array([array[:100], array[100:]])
    np.testing.assert_array_equal(as_source(chunked).read(0, 300), X)
    np.testing.assert_array_equal(as_source(array[50:60]).read(0, 10), X[50:60])


def test_an_arrow_tensor_is_rows(X):
    np.testing.assert_array_equal(as_source(pa.Tensor.from_numpy(X)).read(0, 300), X)


def test_a_missing_list_is_refused(X):
    array = pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))
    with pytest.raises(ValueError, match="row 1 of X is missing"):
        as_source(array)


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_narrow_numbers_are_read_block_by_block(X, dtype):
    rows = (100 * X).astype(dtype)
    source = as_source(rows)
    assert source.dtype == np.float32
    assert source.X is rows  # never converted as a whole
    by_narrow = SpectralClustering(3, kernel="cosine", random_state=0).fit(rows)
    by_single = SpectralClustering(3, kernel="cosine", random_state=0).fit(rows.astype(np.float32))
    np.testing.assert_array_equal(by_narrow.labels_, by_single.labels_)


def test_unit_rows_are_recognised(X):
    words = "rows already have unit length"
    plain = SpectralClustering(3, random_state=0).fit(X).report_.notes
    assert any(words in note and "kernel='cosine'" in note for note in plain)
    cosine = SpectralClustering(3, kernel="cosine", random_state=0).fit(X).report_.notes
    assert words in cosine
    longer = SpectralClustering(3, random_state=0).fit(2 * X).report_.notes
    assert not any(words in note for note in longer)


def ids_and_labels(path):
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    else:
        text = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()})
        table = pyarrow.csv.read_csv(path, convert_options=text)
    return table.column_names, table.column(0).to_pylist(), table.column(1).to_numpy()


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("stored", ["lists.parquet", "plain.parquet", "plain.csv"])
def test_ids_are_written_beside_labels(X, tmp_path, stored, suffix):
    ids = [f"{i:04d}, ö" for i in range(300)]
    plain = {"id": ids} | {f"f{j}": X[:, j] for j in range(8)}
    table = pa.table({"vector": list_column(X), "id": ids} if "lists" in stored else plain)
    file, out, model = tmp_path / stored, tmp_path / f"labels{suffix}", tmp_path / "m.mercer"
    if stored.endswith(".csv"):
        pyarrow.csv.write_csv(table, file)
    else:
        pq.write_table(table, file)
    common = [str(file), "--id-column", "id", "--out", str(out), "--quiet"]
    chosen = ["--n-clusters", "3", "--random-state", "0", "--model", str(model)]
    done = CliRunner().invoke(app, ["cluster", *common, *chosen])
    assert done.exit_code == 0, done.output
    names, found, labels = ids_and_labels(out)
    assert names == ["id", "label"]
    assert found == ids
    assert len(np.unique(labels)) == 3
    np.testing.assert_array_equal(read_labels(out), labels)
    done = CliRunner().invoke(app, ["predict", str(model), *common])
    assert done.exit_code == 0, done.output
    assert ids_and_labels(out)[1] == ids
    np.testing.assert_array_equal(ids_and_labels(out)[2], labels)


def test_ids_of_a_folder_follow_its_files(X, tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    for part in range(3):
        some = slice(100 * part, 100 * part + 100)
        table = pa.table({"id": np.arange(300)[some], "vector": list_column(X[some])})
        pq.write_table(table, folder / f"part-{part}.parquet")
    out = tmp_path / "labels.parquet"
    options = ["--id-column", "id", "--n-clusters", "3", "--out", str(out), "--quiet"]
    done = CliRunner().invoke(app, ["cluster", str(folder), *options])
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(ids_and_labels(out)[1], np.arange(300))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_model_takes_its_columns_from_a_table_with_others(X, tmp_path, suffix):
    """Columns are found by name, in any order, among ids and texts; a missing one is named."""
    columns = {f"f{j}": X[:, j] for j in range(8)}
    ids = {"id": [f"r{i}" for i in range(300)], "note": ["some, text"] * 300}

    def stored(name, *parts):
        table, file = pa.table({k: v for part in parts for k, v in part.items()}), tmp_path / name
        pyarrow.csv.write_csv(table, file) if suffix == ".csv" else pq.write_table(table, file)
        return str(file)

    numbers = stored(f"a{suffix}", columns)
    others = stored(f"b{suffix}", ids, dict(reversed(columns.items())))
    model, out = str(tmp_path / "m.mercer"), str(tmp_path / "labels.csv")
    options = ["--scaler", "standard", "--seed", "0", "--n-clusters", "3", "--model", model]
    done = CliRunner().invoke(app, ["cluster", numbers, *options, "--out", out])
    assert done.exit_code == 0, done.output
    wanted = read_labels(out)
    done = CliRunner().invoke(app, ["predict", model, others, "--out", out])
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(read_labels(out), wanted)
    page = str(tmp_path / "report.json")
    done = CliRunner().invoke(app, ["report", model, others, "--out", page])
    assert done.exit_code == 0, done.output
    few = stored(f"c{suffix}", ids, {k: v for k, v in columns.items() if k != "f3"})
    done = CliRunner().invoke(app, ["predict", model, few, "--out", out])
    assert done.exit_code == 1
    assert "has no column 'f3'" in done.output


def test_an_id_column_is_left_out_without_an_output_of_labels(X, tmp_path):
    file, model = tmp_path / "rows.parquet", tmp_path / "m.mercer"
    pq.write_table(pa.table({"id": [f"r{i}" for i in range(300)], "vector": list_column(X)}), file)
    options = ["--id-column", "id", "--n-clusters", "3", "--model", str(model), "--quiet"]
    done = CliRunner().invoke(app, ["cluster", str(file), *options])
    assert done.exit_code == 0, done.output
    assert model.exists()


def test_ids_that_cannot_be_joined_are_refused(X, tmp_path):
    file, rows = tmp_path / "rows.parquet", tmp_path / "rows.npy"
    pq.write_table(pa.table({"id": np.arange(300), "vector": list_column(X)}), file)
    np.save(rows, X)
    for input_file, name, out, words in (
        (rows, "id", "labels.csv", "has no named columns"),
        (file, "key", "labels.csv", "has no column 'key'"),
        (file, "id", "labels.npy", "into a .parquet or .csv file"),
    ):
        arguments = [str(input_file), "--id-column", name, "--out", str(tmp_path / out)]
        done = CliRunner().invoke(app, ["cluster", *arguments, "--n-clusters", "3"])
        assert done.exit_code != 0
        assert words in f"{done.exception} {' '.join(done.output.split())}"
