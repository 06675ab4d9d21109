"""Model files made by an adversary: what skops would build of them, and what is refused first."""

import copy
import functools
import importlib
import io
import json
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from skops.io._audit import NODE_TYPE_MAPPING

import looms
from looms import KernelClassifier, KernelRegressor, NonconformityClassifier, Search
from looms.model_files import ModelFileError, _skops, _types, load_model, save_model
from looms.tables import TablePreprocessor

SAMPLES = np.random.default_rng(0).normal(size=(12, 2))
FUNCTION = FunctionTransformer(np.log1p)
RARE = np.array([f"k{i:02}" for i in range(50)] + ["k00", "k01"] * 40)
FRAME = pd.DataFrame(
    {"number": np.r_[np.nan, np.arange(129.0)], "rare": RARE, "two": np.tile(["u", "v"], 65)}
)
TARGET = np.where((np.arange(130) > 60) ^ (FRAME["two"] == "u"), "yes", "no")


def dumped(model):
    """Schema and other members of a file of this model, whatever is in it."""
    content = {"looms_model_file": 1, "metadata": "{}", "model": model}
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(content))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("schema.json")), members


def refused(folder, schema, members, problem, trusted=()):
    path = folder / "m.skops"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, "schema.json": json.dumps(schema)}.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match=problem):
        load_model(path, trusted=trusted)


def nodes(part, loader):
    """Nodes of one kind, at any depth."""
    if isinstance(part, dict):
        if part.get("__loader__") == loader:
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from nodes(one, loader)


# The list of types -------------------------------------------------------------


@pytest.mark.parametrize("protocol", [0, 1, 3, True, 2.0, "2", None])
def test_only_the_protocol_that_is_written_is_read(tmp_path, protocol):
    """An older one has a node for functions whose name is not where names are looked for."""
    schema, members = dumped(FUNCTION)
    schema["protocol"] = protocol
    (function,) = nodes(schema, "FunctionNode")
    function["content"] = {"module_path": "os", "function": "abort"}
    of_numpy_1 = "numpy.core._multiarray_umath.log1p"
    trusted = ["numpy.log1p", of_numpy_1, FunctionTransformer]
    refused(tmp_path, schema, members, f"names protocol {protocol!r} of skops,", trusted)


@pytest.mark.parametrize("hidden", [np.log1p, np.float64, 3])
def test_an_attribute_that_hides_a_method_is_refused(tmp_path, hidden):
    model = StandardScaler().fit(SAMPLES)
    model.transform = hidden
    refused(tmp_path, *dumped(model), r"StandardScaler\.transform")
    with pytest.raises(ModelFileError, match=r"StandardScaler\.transform"):
        save_model(tmp_path / "m.skops", model, {})


def test_an_attribute_of_an_admitted_type_hides_no_method_either(tmp_path):
    model = PCA(1).fit(SAMPLES)
    model.transform = 3
    refused(tmp_path, *dumped(model), "PCA: transform hides a method", trusted=[PCA])


def test_no_attribute_that_a_file_may_set_hides_a_method():
    for name in _types.TYPES:
        module, _, part = name.rpartition(".")
        kind = getattr(importlib.import_module(module), part)
        assert not [a for a in _types.attributes(name) if callable(getattr(kind, a, None))], name


def test_output_as_pandas_is_refused(tmp_path):
    """It calls what is in the place of a method with the names of the features."""
    model = StandardScaler().fit(SAMPLES).set_output(transform="pandas")
    refused(tmp_path, *dumped(model), r"StandardScaler\._sklearn_output_config")


@pytest.mark.parametrize(
    "loader", sorted({loader for loader, _ in NODE_TYPE_MAPPING} - _skops.ADMITTED.keys())
)
@pytest.mark.parametrize("name", ["builtins.eval", "sklearn.decomposition._pca.PCA"])
def test_other_kinds_of_nodes_are_refused(tmp_path, loader, name):
    schema, members = dumped(StandardScaler())
    node = schema["content"]["model"]
    node["__loader__"] = loader
    node["__module__"], _, node["__class__"] = name.rpartition(".")
    refused(tmp_path, schema, members, f"names {name}, which")


def test_an_object_under_the_number_of_another_is_refused(tmp_path):
    """The first of a number is built for all: here its attributes would be the scaler's."""
    unchecked = KernelRegressor(mu={"transform": 3})
    schema, members = dumped(make_pipeline(unchecked, StandardScaler()))
    _, scaler = [n for n in nodes(schema, "ObjectNode") if n["__class__"] != "Pipeline"]
    (regressor,) = [n for n in nodes(schema, "ObjectNode") if n["__class__"] == "KernelRegressor"]
    number = regressor["content"]["content"]["mu"]["__id__"]
    scaler["content"]["__id__"] = number
    refused(tmp_path, schema, members, "two objects of one number")
    scaler["content"]["__loader__"] = "CachedNode"
    refused(tmp_path, schema, members, "builtins.dict")
    del scaler["content"]["__id__"]
    refused(tmp_path, schema, members, "an object without a number")


@pytest.mark.parametrize(
    ("loader", "changes"),
    [
        ("JsonNode", {"content": "[1]"}),
        ("JsonNode", {"content": "{"}),
        ("JsonNode", {"further": 1}),
        ("DictNode", {"key_types": {"__loader__": "JsonNode"}}),
        ("NdArrayNode", {"file": "schema.json"}),
        ("NdArrayNode", {"type": "json"}),
        ("ConstructorFromReduceNode", {"content": {"__loader__": "TupleNode", "content": []}}),
        ("TypeNode", {"content": {}}),
        ("ObjectNode", {"content": None}),
    ],
)
def test_a_node_of_another_form_than_skops_gives_it_is_refused(tmp_path, loader, changes):
    schema, members = dumped(regressor())
    next(nodes(schema["content"]["model"], loader)).update(changes)
    refused(tmp_path, schema, members, f"a {loader} that skops does not write|of one number")


@functools.cache
def regressor():
    return KernelRegressor("linear").fit(SAMPLES, SAMPLES[:, 0])


def test_a_newer_format_is_named_before_what_is_in_it(tmp_path):
    schema, members = dumped(PCA())
    schema["content"]["looms_model_file"]["content"] = "7"
    schema["content"]["looms_model_file"]["__class__"] = "int"
    refused(tmp_path, schema, members, "has the format 7, and looms .* reads format 1.*Upgrade")


# Fitted state ------------------------------------------------------------------


@functools.cache
def table():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = KernelClassifier("linear", search=Search(max_iter=5))
        return make_pipeline(TablePreprocessor(), machine).fit(FRAME, TARGET)


@functools.cache
def steps():
    """A pipeline whose steps are fitted by themselves."""
    encode = OneHotEncoder(max_categories=40, handle_unknown="infrequent_if_exist")
    gaps = MissingIndicator(error_on_new=False)
    parts = {
        "encode": encode.fit(FRAME[["rare", "two"]]),
        "impute": SimpleImputer(strategy="median").fit(FRAME[["number"]].to_numpy()),
        "gaps": gaps.fit(FRAME[["number"]].to_numpy()),
        "scale": StandardScaler().fit(FRAME[["number"]].to_numpy()),
    }
    return Pipeline([*parts.items()])


@functools.cache
def column_transformer():
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    parts = [("numbers", numbers, ["number"]), ("two", OneHotEncoder(), ["two"])]
    return ColumnTransformer(parts).fit(FRAME)


def texts(*values):
    return np.array(values, dtype=object)


INDICES = {
    "fewer columns than categories": ("encode", {"_n_features_outs": [1, 1]}),
    "more columns than categories": ("encode", {"_n_features_outs": [40, 10**6]}),
    "categories out of order": ("encode", {"categories_": [texts("b", "a"), texts("u", "v")]}),
    "numbers for categories": ("encode", {"categories_": [np.arange(50)[::-1]] * 2}),
    "no rare categories": ("encode", {"_infrequent_enabled": False}),
    "rare categories beyond": ("encode", {"_infrequent_indices": [np.array([99]), None]}),
    "rare categories below": ("encode", {"_infrequent_indices": [np.array([-1]), None]}),
    "a category left out": ("encode", {"drop_idx_": np.array([10**6, 0], dtype=object)}),
    "a category grouped away": (
        *("encode", {"_drop_idx_after_grouping": texts(-(10**6), -(10**6))}),
    ),
    "integers for the ones": ("encode", {"dtype": np.int8}),
    "columns beyond": ("columns", {"_transformer_to_input_indices": {"numbers": [10**9]}}),
    "columns not named": ("columns", {"_columns": [["nowhere"], []]}),
    "a remainder": ("columns", {"remainder": "passthrough"}),
    "many processes": ("columns", {"n_jobs": 2}),
    "places that are none": ("columns", {"output_indices_": {"numbers": "all"}}),
    "medians that are text": ("impute", {"statistics_": texts("a")}),
    "type of the gaps": ("impute", {"_fill_dtype": np.dtype("U9")}),
    "gaps of others": ("gaps", {"_n_features": 10**6}),
    "names of others": ("scale", {"feature_names_in_": texts("a", "b", "c")}),
    "no number of features": ("scale", {"n_features_in_": -1}),
    "a parameter of another kind": ("gaps", {"features": None}),
}


@pytest.mark.parametrize("case", INDICES)
def test_what_routines_use_as_an_index_is_refused_if_another(tmp_path, case):
    name, attributes = INDICES[case]
    model = copy.deepcopy(column_transformer() if name == "columns" else steps())
    vars(model if name == "columns" else model[name]).update(attributes)
    refused(tmp_path, *dumped(model), "its content is damaged")


def test_categories_that_are_numbers_are_refused(tmp_path):
    """They would be searched as if sorted."""
    model = OneHotEncoder().fit(np.arange(6.0).reshape(3, 2))
    refused(tmp_path, *dumped(model), "categories_ holds no list of texts")


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.csc_array, sparse.bsr_array])
def test_sparse_samples_of_another_format_are_refused_under_the_name_of_csr_too(tmp_path, kind):
    model = KernelRegressor("linear", mu=1e-3).fit(sparse.csr_array(SAMPLES), SAMPLES[:, 0])
    object.__setattr__(model.fitted_.rows, "X", kind(model.X_fit_))
    schema, members = dumped(model)
    refused(tmp_path, schema, members, rf"names scipy\.sparse\.\S+{kind.__name__}")
    (node,) = nodes(schema, "SparseMatrixNode")
    node["__module__"], node["__class__"] = "scipy.sparse._csr", "csr_array"
    refused(tmp_path, schema, members, rf"{kind.__name__} is of another kind")


@pytest.mark.parametrize("kind", ["V8", "f8,i4", "S3"])
def test_arrays_of_neither_numbers_nor_texts_are_refused(tmp_path, kind):
    model = KernelRegressor(mu=np.zeros(3, dtype=kind))
    refused(tmp_path, *dumped(model), "an array of")


def test_an_archive_in_place_of_an_array_is_refused(tmp_path):
    schema, members = dumped(regressor())
    archive = io.BytesIO()
    np.savez(archive, a=np.ones(3))
    members = dict.fromkeys(members, archive.getvalue())
    refused(tmp_path, schema, members, "its content is damaged")


# Changed at random -------------------------------------------------------------


MODELS = {
    "table": lambda: (table(), FRAME),
    "sparse": lambda: (
        make_pipeline(TablePreprocessor(), KernelRegressor("linear")).fit(
            sparse.csr_array(SAMPLES), SAMPLES[:, 0]
        ),
        sparse.csr_array(SAMPLES),
    ),
    "pool": lambda: (NonconformityClassifier().fit(SAMPLES, np.arange(12) % 3), SAMPLES),
}


@pytest.mark.slow
def test_a_file_with_one_thing_changed_is_refused_or_predicts(tmp_path):
    for name, made in MODELS.items():
        model, rows = made()
        save_model(tmp_path / f"{name}.skops", model, {})
        pd.to_pickle(rows, tmp_path / f"{name}.rows")
    script = Path(__file__).with_name("_mutate_models.py")
    result = subprocess.run(
        [sys.executable, script, tmp_path, "25"],
        env={**os.environ, "PYTHONPATH": str(Path(looms.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    n_refused = [int(line) for line in result.stdout.splitlines()]
    assert len(n_refused) == len(MODELS)
    assert 5 < min(n_refused) <= max(n_refused) < 25
