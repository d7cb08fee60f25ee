"""Pipelines of scikit-learn's plain transformers before an estimator of ours, in model files.

A fixed table says which transformers may be there and what each has learnt, in the notation of
records. Nothing is unpickled: objects are made by their constructors, and what they learnt is
checked, number by number, before it is set.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._run.frozen import frozen
from mercer._run.records import check_value
from mercer.io.damage import damaged, demand, sound
from mercer.io.packing import Json, Packer
from mercer.io.unpacking import Unpacker

COUNT = "int d, in [1, 4e18]"
NAMES = "(d,) text"
STRATEGIES = ("mean", "median", "most_frequent", "constant")
MOST_STEPS = 100  # of a pipeline or a ColumnTransformer
MOST_CATEGORIES = 10**6  # of all columns of an encoder, as many for each as for the longest


@frozen
class Plain:
    """A transformer of scikit-learn: where it is, and its fitted attributes by specification."""

    home: str
    fitted: dict[str, str]

    def load(self, name: str) -> type[Any]:
        cls: type[Any] = getattr(import_module(self.home), name)
        return cls


VECTOR = "(d,) float, finite"
POSITIVE = "(d,) float, finite, > 0"
SEEN = "int, >= 0"
PARTS = {
    "components_": "(q, d) float, finite",
    "explained_variance_": "(q,) float, finite, >= 0",
    "explained_variance_ratio_": "(q,) float",
    "singular_values_": "(q,) float, finite, >= 0",
}
TRANSFORMERS: dict[str, Plain] = {
    "StandardScaler": Plain(
        "sklearn.preprocessing",
        {
            "mean_": f"{VECTOR}, or None",
            "var_": f"{VECTOR}, or None",
            "scale_": f"{POSITIVE}, or None",
            "n_samples_seen_": SEEN,
        },
    ),
    "RobustScaler": Plain(
        "sklearn.preprocessing",
        {"center_": f"{VECTOR}, or None", "scale_": f"{POSITIVE}, or None"},
    ),
    "MinMaxScaler": Plain(
        "sklearn.preprocessing",
        {
            "min_": VECTOR,
            "scale_": VECTOR,
            "data_min_": VECTOR,
            "data_max_": VECTOR,
            "data_range_": VECTOR,
            "n_samples_seen_": SEEN,
        },
    ),
    "Normalizer": Plain("sklearn.preprocessing", {}),
    "PCA": Plain(
        "sklearn.decomposition",
        PARTS
        | {
            "mean_": VECTOR,
            "n_components_": "int q",
            "n_samples_": SEEN,
            "noise_variance_": "float, finite",
        },
    ),
    "TruncatedSVD": Plain("sklearn.decomposition", PARTS),
    "TfidfTransformer": Plain("sklearn.feature_extraction.text", {"idf_": VECTOR}),
}
OTHERS = ("SimpleImputer", "OneHotEncoder", "ColumnTransformer")
KNOWN = ", ".join((*TRANSFORMERS, *OTHERS))


# Writing


def pack_pipeline(packer: Packer, pipeline: Any) -> dict[str, Json]:
    """Class, steps and report of a fitted pipeline, whose last step is an estimator of ours."""
    *before, (last, estimator) = pipeline.steps
    steps = [
        {"name": name, **_packed(packer, step, f"steps.{i}")}
        for i, (name, step) in enumerate(before)
        if step is not None and step != "passthrough"
    ]
    tree = {"name": last, "estimator": packer.estimator(estimator, "last.")}
    return {"class": "Pipeline", "steps": steps, "last": tree}


def _packed(packer: Packer, step: Any, place: str) -> dict[str, Json]:
    """A fitted transformer as a tree."""
    name = type(step).__name__
    verbs: dict[str, Callable[..., Json]] = {
        "SimpleImputer": _packed_imputer,
        "OneHotEncoder": _packed_encoder,
        "ColumnTransformer": _packed_columns,
    }
    home = {
        "SimpleImputer": "sklearn.impute",
        "OneHotEncoder": "sklearn.preprocessing",
        "ColumnTransformer": "sklearn.compose",
    }
    module = TRANSFORMERS[name].home if name in TRANSFORMERS else home.get(name)
    if module is None or getattr(import_module(module), name) is not type(step):
        raise TypeError(
            f"a pipeline with a {type(step).__module__}.{name} cannot be saved, as its code would "
            f"not be in the file; what can be saved are scikit-learn's {KNOWN}"
        )
    write: Callable[..., dict[str, Json]] = verbs.get(name, _packed_plain)
    tree = write(packer, step, place)
    names = vars(step).get("feature_names_in_")
    if names is not None:
        tree["names"] = packer.pack(np.asarray(names, object), f"{place}.names")
    return {"class": name, "n_features": _n_features(step), **tree}


def _packed_plain(packer: Packer, step: Any, place: str) -> dict[str, Json]:
    check_is_fitted(step)
    fitted = {
        key: packer.pack(_plain(getattr(step, key, None), key), f"{place}.{key}")
        for key in TRANSFORMERS[type(step).__name__].fitted
    }
    tree = {"params": packer.parameters(step, f"{place}.params"), "fitted": fitted}
    columnwise = [key for key in fitted if _is_columnwise(getattr(step, key, None))]
    return tree | ({"columnwise": columnwise} if columnwise else {})


def _is_columnwise(value: Any) -> bool:
    """Whether a matrix lies in memory column by column: products with it add in another order."""
    return isinstance(value, np.ndarray) and value.ndim == 2 and not value.flags.c_contiguous


def _packed_imputer(packer: Packer, step: Any, place: str) -> dict[str, Json]:
    """The value that fills each column tells all that an imputer has learnt."""
    check_is_fitted(step)
    values = np.asarray(step.statistics_)
    if step.strategy == "constant" and isinstance(step.fill_value, float | int | None):
        values = values.astype(np.float64)  # of type object
    is_gap = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    is_plain = values.dtype.kind in "iuf" and step.strategy in STRATEGIES
    if not (is_gap and is_plain) or step.add_indicator:
        raise TypeError(
            "only a SimpleImputer of numbers can be saved, with missing_values=nan, "
            "add_indicator=False and a strategy given by name; encode text in another step"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "a SimpleImputer that saw no value in some column cannot be saved; leave out columns "
            "that are empty"
        )
    floats = values.astype(np.float64 if values.dtype.kind != "f" else values.dtype)
    return {"strategy": step.strategy, "values": packer.pack(floats, f"{place}.values")}


def _packed_encoder(packer: Packer, step: Any, place: str) -> dict[str, Json]:
    """Categories tell all that an encoder has learnt, unless rare ones were joined."""
    if step.min_frequency is not None or step.max_categories is not None:
        raise TypeError(
            "a OneHotEncoder that joins infrequent categories cannot be saved; leave min_frequency "
            "and max_categories at None"
        )
    if max(map(len, step.categories_)) * len(step.categories_) > MOST_CATEGORIES:
        raise ValueError(
            f"a OneHotEncoder of more than {MOST_CATEGORIES:,} categories cannot be saved; encode "
            "columns of many categories apart from the others"
        )
    params = step.get_params(deep=False) | {"categories": "auto"}
    params["dtype"] = np.dtype(params["dtype"])
    if isinstance(params["drop"], np.ndarray):
        params["drop"] = params["drop"].tolist()
    categories = [_plain_categories(values, place) for values in step.categories_]
    return {
        "params": {key: packer.pack(value, f"{place}.{key}") for key, value in params.items()},
        "categories": packer.pack(categories, f"{place}.categories"),
    }


def _packed_columns(packer: Packer, step: Any, place: str) -> dict[str, Json]:
    """Each part of a ColumnTransformer with the columns it was fitted on."""
    params = {
        key: packer.pack(getattr(step, key), f"{place}.{key}")
        for key in ("sparse_threshold", "verbose_feature_names_out")
    }
    weights = step.transformer_weights or {}
    parts = []
    for i, (name, child, columns) in enumerate(step.transformers_):
        indices = [int(j) for j in step._transformer_to_input_indices[name]]
        tree: Json = "drop" if child == "drop" else "passthrough"
        if not isinstance(child, str) and type(child).__name__ != "FunctionTransformer":
            tree = _packed(packer, child, f"{place}.{i}")
        chosen = packer.pack(_plain_columns(columns, indices), f"{place}.{i}.columns")
        weight = weights.get(name)
        parts.append(
            {"name": name, "part": tree, "columns": chosen, "indices": indices, "weight": weight}
        )
    return {"params": params, "parts": parts, "is_sparse": bool(step.sparse_output_)}


def _plain(value: Any, key: str) -> Any:
    """Numbers and arrays of the kinds that a file holds."""
    if key == "n_samples_seen_":  # one number for each column, where values were missing
        return int(np.max(value))
    return value.item() if isinstance(value, np.generic) else value


def _plain_categories(values: Any, place: str) -> Any:
    if values.dtype.kind in "iub":
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    if not all(isinstance(value, str) for value in values):
        raise TypeError(
            f"{place} has categories that are neither numbers nor text, which a model file does "
            "not hold; turn them into text"
        )
    return values.astype(object)


def _plain_columns(columns: Any, indices: list[int]) -> Any:
    """Columns by number, unless they were chosen by name."""
    if isinstance(columns, str):
        return columns
    is_named = not isinstance(columns, slice | int) and all(isinstance(c, str) for c in columns)
    return [str(column) for column in columns] if is_named and len(columns) else indices


def _n_features(step: Any) -> int:
    if "n_features_in_" in vars(step):
        return int(step.n_features_in_)
    return int(step.components_.shape[1]) if hasattr(step, "components_") else len(step.idf_)


# Reading


def unpack_pipeline(unpacker: Unpacker, tree: dict[str, Json]) -> Any:
    """The pipeline that a manifest describes, sound or not at all."""
    from sklearn.pipeline import Pipeline

    described, last = tree.get("steps"), tree.get("last")
    demand(isinstance(described, list) and len(described) <= MOST_STEPS, "it has no list of steps")
    demand(isinstance(last, dict), "its pipeline has no estimator")
    assert isinstance(described, list)
    assert isinstance(last, dict)
    demand(isinstance(last.get("estimator"), dict), "its pipeline has no estimator")
    steps = [(_name(step), _unpacked(unpacker, step)) for step in described]
    steps.append((_name(last), unpacker.estimator(last["estimator"])))
    names = [name for name, _ in steps]
    demand(len(set(names)) == len(names), "two steps of its pipeline have one name")
    return Pipeline(steps)


def _name(tree: Json) -> str:
    demand(isinstance(tree, dict), "a step of its pipeline is not described")
    name = tree.get("name")
    demand(isinstance(name, str) and "__" not in name, "a step of its pipeline has no name")
    return str(name)


def _unpacked(unpacker: Unpacker, tree: dict[str, Json], depth: int = 0) -> Any:
    """A transformer that a tree describes."""
    demand(isinstance(tree, dict) and depth < 3, "a step of its pipeline is not described")
    unpacker.allowance.count()
    name, n_features = tree.get("class"), tree.get("n_features")
    demand(type(n_features) is int and 0 < n_features < 2**53, "a step has no number of columns")
    if name in TRANSFORMERS:
        step = _unpacked_plain(unpacker, str(name), tree)
    elif name == "SimpleImputer":
        step = _unpacked_imputer(unpacker, tree)
    elif name == "OneHotEncoder":
        step = _unpacked_encoder(unpacker, tree)
    elif name == "ColumnTransformer":
        step = _unpacked_columns(unpacker, tree, depth)
    else:
        raise damaged(f"it holds a {str(name)[:100]!r}, and this version of Mercer knows {KNOWN}")
    if name != "TruncatedSVD" or hasattr(step, "n_features_in_"):
        step.n_features_in_ = n_features
    if (names := tree.get("names")) is not None:
        step.feature_names_in_ = unpacker.unpack(names)
        with sound():
            sizes = {"d": int(tree["n_features"])}
            check_value(step.feature_names_in_, NAMES, sizes, "feature_names_in_")
    return step


def _unpacked_plain(unpacker: Unpacker, name: str, tree: dict[str, Json]) -> Any:
    plain = TRANSFORMERS[name]
    cls = plain.load(name)
    step = _made(cls, unpacker.parameters(tree.get("params"), cls))
    values, sizes = tree.get("fitted"), {"d": int(tree["n_features"])}
    demand(isinstance(values, dict), f"{name} has not learnt anything")
    demand(set(values or {}) == set(plain.fitted), f"{name} has not learnt what it should")
    assert isinstance(values, dict)
    columnwise = tree.get("columnwise", [])
    demand(isinstance(columnwise, list), f"{name} does not say how its arrays lie in memory")
    for key, specification in plain.fitted.items():
        value = unpacker.unpack(values[key])
        with sound():
            check_value(value, specification, sizes, f"{name}.{key}")
        if key in columnwise and isinstance(value, np.ndarray):
            unpacker.allowance.borrow(value.nbytes)
            value = np.asfortranarray(value)
        setattr(step, key, value)
    return step


def _unpacked_imputer(unpacker: Unpacker, tree: dict[str, Json]) -> Any:
    """Fitted again, on one row: its values are those that fill gaps, whatever made them."""
    from sklearn.impute import SimpleImputer

    values = unpacker.unpack(tree.get("values"))
    with sound():
        check_value(values, VECTOR, {"d": int(tree["n_features"])}, "SimpleImputer.statistics_")
    params = {"strategy": tree.get("strategy")}
    demand(params["strategy"] in STRATEGIES, "an imputer has no strategy")
    if params["strategy"] == "constant":
        params["fill_value"] = values[0].item()
    with sound("an imputer cannot be made"):
        step = SimpleImputer(**params).fit(values[None])
    demand(np.array_equal(step.statistics_, values), "the values of an imputer differ")
    return step


def _unpacked_encoder(unpacker: Unpacker, tree: dict[str, Json]) -> Any:
    """Fitted again, on rows that show each category: versions keep what they learn differently."""
    from sklearn.preprocessing import OneHotEncoder

    params = unpacker.parameters(tree.get("params"), OneHotEncoder)
    categories = unpacker.unpack(tree.get("categories"))
    is_list = isinstance(categories, list) and all(
        isinstance(values, np.ndarray) and values.ndim == 1 and len(values) for values in categories
    )
    demand(is_list and len(categories) == tree["n_features"], "an encoder has no categories")
    demand(isinstance(params.get("dtype"), np.dtype), "an encoder has no dtype")
    demand(params.get("feature_name_combiner") == "concat", "an encoder names columns by code")
    params["dtype"] = params["dtype"].type
    longest = max(len(values) for values in categories)
    demand(longest * len(categories) <= MOST_CATEGORIES, "an encoder has too many categories")
    unpacker.allowance.borrow(64 * longest * len(categories))
    rows = np.empty((longest, len(categories)), object)
    for j, values in enumerate(categories):
        rows[:, j] = np.resize(values, longest)
    step = _made(OneHotEncoder, params | {"categories": categories})
    with sound("an encoder cannot be made"):
        if all(values.dtype.kind in "if" for values in categories):
            step.fit(rows.astype(np.result_type(*categories)))
        else:
            step.fit(rows)
    step.categories_ = categories  # in the types they had
    return step.set_params(categories="auto")


def _unpacked_columns(unpacker: Unpacker, tree: dict[str, Json], depth: int) -> Any:
    """Its parts, and the columns each of them takes."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import FunctionTransformer

    parts, n_features = tree.get("parts"), int(tree["n_features"])
    demand(isinstance(parts, list) and len(parts) <= MOST_STEPS, "a ColumnTransformer has no parts")
    assert isinstance(parts, list)
    fitted, given, inputs, weights = [], [], {}, {}
    for part in parts:
        name, indices = _name(part), part.get("indices")
        is_numbers = isinstance(indices, list) and all(
            type(j) is int and 0 <= j < n_features for j in indices
        )
        demand(is_numbers, f"the part {name[:100]!r} has columns that are not there")
        columns = _columns(part.get("columns"), unpacker)
        child: Any = part.get("part")
        asked = child
        if child == "passthrough":
            child = FunctionTransformer(
                accept_sparse=True, check_inverse=False, feature_names_out="one-to-one"
            )
            child.n_features_in_ = len(indices)
        elif child != "drop":
            asked = child = _unpacked(unpacker, child, depth + 1)
        fitted.append((name, child, columns))
        given.append((name, asked, columns))
        inputs[name] = indices
        if (weight := part.get("weight")) is not None:
            demand(type(weight) in (float, int), f"the weight of {name[:100]!r} is no number")
            weights[name] = weight
    demand(len(inputs) == len(parts), "two parts of a ColumnTransformer have one name")
    params = unpacker.parameters(tree.get("params"), ColumnTransformer)
    is_known = set(params) <= {"sparse_threshold", "verbose_feature_names_out"}
    demand(is_known and type(tree.get("is_sparse")) is bool, "a ColumnTransformer is not described")
    step = _made(ColumnTransformer, params | {"transformers": given})
    step.transformer_weights = weights or None
    step.transformers_, step._transformer_to_input_indices = fitted, inputs
    step._columns, step._remainder = [columns for _, _, columns in given], ("remainder", "drop", [])
    step.sparse_output_, step.output_indices_ = tree["is_sparse"], {}
    return step


def _columns(tree: Json, unpacker: Unpacker) -> Any:
    columns = unpacker.unpack(tree)
    is_list = isinstance(columns, list) and (
        all(type(c) is int for c in columns) or all(isinstance(c, str) for c in columns)
    )
    demand(is_list or isinstance(columns, str), "a part of a ColumnTransformer has no columns")
    return columns


def _made(cls: type[Any], params: dict[str, Any]) -> Any:
    with sound(f"{cls.__name__} cannot be made"):
        step = cls(**params)
        if hasattr(step, "_validate_params"):
            step._validate_params()
    return step
