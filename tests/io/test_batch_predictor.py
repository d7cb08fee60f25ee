"""Models inside other engines: Arrow in, Arrow out, the labels of `predict`."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import KernelKMeans, save
from mercer.datasets import blobs
from mercer.io import batch_predictor as home

pa = pytest.importorskip("pyarrow")
X, _ = blobs(500, random_state=0)
TABLE = pa.table({"id": pa.array(range(500)), "x": X[:, 0], "y": X[:, 1]})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "a.mercer"
    KernelKMeans(3, random_state=0).fit(X).save(path)
    return path


@pytest.fixture(scope="module")
def labels(path: Path) -> np.ndarray:
    return mercer.load(path).predict(X)


def test_tables_batches_and_iterators(path: Path, labels: np.ndarray) -> None:
    predict = mercer.batch_predictor(path, keep=["id"])
    found = predict(TABLE)
    assert found.schema.names == ["id", "label"]
    assert found.schema.field("label").type == pa.int32()
    np.testing.assert_array_equal(found["label"], labels)
    batches = TABLE.to_batches(max_chunksize=77)
    made = list(predict(iter(batches)))
    assert all(isinstance(batch, pa.RecordBatch) for batch in made)
    assert pa.Table.from_batches(made).equals(found.combine_chunks())


def test_batches_without_rows(path: Path) -> None:
    found = mercer.batch_predictor(path)(TABLE.select(["x", "y"])[:0])
    assert found.schema.names == ["label"]
    assert found.num_rows == 0


def test_names_of_features_decide(tmp_path: Path, labels: np.ndarray) -> None:
    pd = pytest.importorskip("pandas")
    model = make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0))
    frame = pd.DataFrame(X, columns=["x", "y"])
    save(model.fit(frame), tmp_path / "a.mercer")
    predict = mercer.batch_predictor(tmp_path / "a.mercer", keep=["id"])
    turned = TABLE.select(["y", "id", "x"]).append_column("other", TABLE["id"])
    np.testing.assert_array_equal(predict(turned)["label"], model.predict(frame))


def test_it_travels_and_loads_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predict = mercer.batch_predictor(path, keep=["id"])
    assert len(pickle.dumps(predict)) < 1000
    module = sys.modules[type(predict).__module__]
    calls: list[Any] = []
    monkeypatch.setattr(module, "load", lambda place: calls.append(place) or mercer.load(place))
    module._loaded.cache_clear()
    copies = [pickle.loads(pickle.dumps(predict)) for _ in range(3)]
    assert len({len(copy(TABLE)) for copy in copies}) == 1
    assert len(calls) == 1


def test_other_processes(path: Path, labels: np.ndarray, tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(1) as pool:
        found = pool.submit(mercer.batch_predictor(path, keep=["id"]), TABLE).result()
    np.testing.assert_array_equal(found["label"], labels)


def test_a_replaced_model_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "a.mercer"
    for n_clusters in (2, 3):
        KernelKMeans(n_clusters, random_state=0).fit(X).save(path)
        found = home(path, keep=["id"])(TABLE)
        assert len(set(found["label"].to_pylist())) == n_clusters


def test_other_things_are_refused(path: Path) -> None:
    with pytest.raises(TypeError, match="batch_format='pyarrow'"):
        mercer.batch_predictor(path)(X)
    with pytest.raises(FileNotFoundError, match="no file"):
        mercer.batch_predictor(path.with_name("none.mercer"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Spark's own
def test_inside_spark(
    path: Path, labels: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    try:
        subprocess.run(["java", "-version"], check=True, capture_output=True)
    except OSError:
        pytest.skip("there is no Java")
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").getOrCreate()
    try:
        import pyarrow.parquet as pq

        pq.write_table(TABLE, tmp_path / "rows.parquet")
        frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
        predict = mercer.batch_predictor(path, keep=["id"])
        made = frame.mapInArrow(predict, "id long, label int").orderBy("id").collect()
    finally:
        spark.stop()
    assert [row.label for row in made] == labels.tolist()
