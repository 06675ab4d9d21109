"""Model files made by an adversary: what would run code, read or write a file, or take memory."""

import copy
import functools
import importlib
import io
import json
import operator
import os
import re
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import skops.io
from archives import zipped
from pairwise import in_turn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor
from skops.io._audit import NODE_TYPE_MAPPING

import looms
from looms import KernelClassifier, KernelRegressor, NonconformityClassifier, Search
from looms.kernels import RBF
from looms.kernels._names import as_kernel
from looms.model_files import ModelFileError, _parts, load_model, save_model
from looms.tables import TablePreprocessor
from looms.units import Units

SAMPLES = np.random.default_rng(0).normal(size=(12, 2))
CLASSES = np.arange(12) % 3
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


def refused(folder, schema, members, problem="its content is damaged", trusted=()):
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


def attribute(value):
    return KernelRegressor(mu=value)


@functools.cache
def regressor():
    return KernelRegressor("linear").fit(SAMPLES, SAMPLES[:, 0])


# Names -------------------------------------------------------------------------

HOSTILE = {
    "builtin": eval,
    "function": os.system,
    "partial": functools.partial(os.system, "true"),
    "method caller": operator.methodcaller("system", "true"),
    "numpy function": np.save,
    "function transformer": FunctionTransformer(os.system),
    "method": RBF(gamma=1.0).set_params,
    "method that writes a file": KernelRegressor().save,
    "tree, which may read beyond its arrays": DecisionTreeRegressor().fit(SAMPLES, CLASSES),
    "another package's class": pd.Timestamp("2006-07-16"),
    "machine of LIBSVM, whose arrays may be too short": SVC().fit(SAMPLES, CLASSES),
    "reader of files that columns name": CountVectorizer(input="filename"),
    "choice among others": VotingClassifier([("one", DummyClassifier())]),
    "random numbers": KernelRegressor(
        cv=KFold(shuffle=True, random_state=np.random.RandomState(0))
    ),
    "function of a kernel": as_kernel(np.save),
    "rows of a file": looms.blocks.ArrayBlocks(SAMPLES),
    "impostor": type("Impostor", (BaseEstimator,), {"__module__": "loomsy"})(),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_objects_are_refused(tmp_path, monkeypatch, case):
    monkeypatch.setitem(sys.modules, "loomsy", SimpleNamespace(Impostor=type(HOSTILE["impostor"])))
    refused(tmp_path, *dumped(HOSTILE[case]), r"it names .*not hold.*Nothing was loaded")


LOADERS = ("TypeNode", "FunctionNode", "ObjectNode", "ConstructorFromReduceNode", "ListNode")

NAMES = (
    ("os", "system"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "getattr"),
    ("subprocess", "Popen"),
    ("functools", "partial"),
    ("operator", "methodcaller"),
    ("operator", "attrgetter"),
    ("numpy", "load"),
    ("numpy", "memmap"),
    ("numpy.f2py", "run_main"),
    ("numpy.ctypeslib", "load_library"),
    ("scipy.io", "loadmat"),
    ("sklearn.utils", "gen_batches"),
    ("sklearn.datasets", "load_files"),
    ("sklearn.model_selection._search", "GridSearchCV"),
    ("joblib", "load"),
    ("pandas", "read_pickle"),
    ("looms", "os"),
    ("looms", "load"),
    ("looms.__main__", "main"),
    ("looms._optional", "require"),
    ("looms._optional", "import_module"),
    ("looms.blocks", "ArrayBlocks"),
    ("looms.onnx._check", "Candidate"),
    ("looms.datasets", "read_table"),
    ("looms.model_files", "load_model"),
    ("looms.model_files", "os"),
    ("looms.model_files", "zipfile"),
    ("looms.model_files", "Path"),
    ("looms.model_files.zipfile", "ZipFile"),
    ("looms.model_files.os", "system"),
    ("looms.nowhere", "Thing"),
    ("loomsy", "Thing"),
    ("looms.kernels", "RBF.set_params"),
    ("looms.tables._preprocessor", "OneHotEncoder"),
    ("looms.model_files", "ModelFileError"),
    ("looms.optimize._search", "Recorder"),
    ("sklearn.utils._tags", "Tags"),
)


@pytest.mark.parametrize(
    ("loader", "module", "name"),
    [
        *((loader, *NAMES[0]) for loader in LOADERS),
        *((loader, *names) for names, loader in in_turn(NAMES[1:], LOADERS)),
    ],
)
def test_hostile_names_are_refused(tmp_path, monkeypatch, loader, module, name):
    """A node of every kind with a name in it, put where the model is."""
    schema, members = dumped(StandardScaler())
    arguments = {**dumped(("true",))[0]["content"]["model"], "__id__": 2}
    node = {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1}
    node["content"] = [] if loader == "ListNode" else arguments
    schema["content"]["model"] = node
    monkeypatch.setattr("skops.io._audit.Node.construct", None)  # nothing may be built
    modules = {*sys.modules}
    refused(tmp_path, schema, members, rf"it names {module}\.{name}, which .* not hold")
    assert not {one for one in sys.modules if one.startswith("looms")} - modules


@pytest.mark.parametrize(
    "loader", sorted({loader for loader, _ in NODE_TYPE_MAPPING} - _parts.admitted().keys())
)
@pytest.mark.parametrize("name", ["builtins.eval", "sklearn.decomposition._pca.PCA"])
def test_other_kinds_of_nodes_are_refused(tmp_path, loader, name):
    schema, members = dumped(StandardScaler())
    node = schema["content"]["model"]
    node["__loader__"] = loader
    node["__module__"], _, node["__class__"] = name.rpartition(".")
    refused(tmp_path, schema, members, f"names {name}, which")


@pytest.mark.parametrize("loader", ["MethodNode", "PartialNode", "OperatorFuncNode"])
def test_kinds_that_look_up_code_are_not_admitted_by_a_type(tmp_path, loader):
    schema, members = dumped(PCA())
    schema["content"]["model"]["__loader__"] = loader
    refused(tmp_path, schema, members, r"names sklearn\.decomposition\._pca\.PCA", [PCA])


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


#: Rooms that neither read nor write files, nor start processes.
ROOMS = "calibration|criteria|estimators|fitted|folds|held_out|kernels|lssvm.fit|nonconformity"
ROOMS += "|optimize|scores|selection|svm.member|tables|threshold|units"


def test_only_classes_are_admitted_and_those_of_looms_are_of_rooms_without_files():
    for room in ("assessment", "cli", "dask", "diagnostics", "onnx", "report"):
        importlib.import_module(f"looms.{room}")  # whose classes may inherit from admitted ones
    for kind in _parts.classes():
        assert re.match(rf"looms\.({ROOMS})(\.|$)", kind.__module__), kind
    for name in set().union(*_parts.admitted().values()) - {"numpy.bool", "numpy.bool_"}:
        module, _, part = name.rpartition(".")
        kind = getattr(importlib.import_module(module), part)
        assert isinstance(kind, type), name
        assert _parts.type_name(kind) == name


def test_a_newer_format_is_named_before_what_is_in_it(tmp_path):
    schema, members = dumped(PCA())
    schema["content"]["looms_model_file"]["content"] = "7"
    schema["content"]["looms_model_file"]["__class__"] = "int"
    refused(tmp_path, schema, members, "has the format 7, and looms .* reads format 1.*Upgrade")


# What is built under another name than is written --------------------------------


def test_an_object_under_the_number_of_another_is_refused(tmp_path):
    """The first of a number is built for all: here its attributes would be the scaler's."""
    unchecked = KernelRegressor(mu={"transform": 3})
    schema, members = dumped(make_pipeline(unchecked, StandardScaler()))
    _, scaler = [n for n in nodes(schema, "ObjectNode") if n["__class__"] != "Pipeline"]
    (unchecked,) = [n for n in nodes(schema, "ObjectNode") if n["__class__"] == "KernelRegressor"]
    number = unchecked["content"]["content"]["mu"]["__id__"]
    scaler["content"]["__id__"] = number
    refused(tmp_path, schema, members, "two objects of one number")
    scaler["content"]["__loader__"] = "CachedNode"
    refused(tmp_path, schema, members, "builtins.dict")
    del scaler["content"]["__id__"]
    refused(tmp_path, schema, members, "an object without a number")


@pytest.mark.parametrize(
    ("loader", "changes"),
    [
        ("JsonNode", {"content": "{"}),
        ("DictNode", {"key_types": {"__loader__": "JsonNode"}}),
        ("NdArrayNode", {"file": "schema.json"}),
        ("NdArrayNode", {"type": "json"}),
        ("ConstructorFromReduceNode", {"content": {"__loader__": "TupleNode", "content": []}}),
    ],
)
def test_a_node_of_another_form_than_skops_gives_it_is_refused(tmp_path, loader, changes):
    schema, members = dumped(regressor())
    next(nodes(schema["content"]["model"], loader)).update(changes)
    refused(tmp_path, schema, members, "content is damaged|of one number|number of another|names")


# Files, processes and formats ------------------------------------------------------


def test_a_pipeline_that_names_a_folder_for_pickles_is_refused(tmp_path):
    model = make_pipeline(StandardScaler(), memory=str(tmp_path))
    refused(tmp_path, *dumped(model), "Pipeline: memory is set")


@pytest.mark.parametrize(
    "option", [{"n_jobs": 10**6}, {"verbose_feature_names_out": "{feature_name:>9999999999}"}]
)
def test_columns_that_start_processes_or_format_names_are_refused(tmp_path, option):
    model = ColumnTransformer([("all", "passthrough", [0])], **option)
    refused(tmp_path, *dumped(model), f"ColumnTransformer: {next(iter(option))} is set")


# Reading and writing beyond arrays ------------------------------------------------


@functools.cache
def encoder():
    one_hot = OneHotEncoder(max_categories=40, handle_unknown="infrequent_if_exist")
    return one_hot.fit(FRAME[["rare", "two"]])


def texts(*values):
    return np.array(values, dtype=object)


def mapped(places, *widths):
    of_rare = {"_default_to_infrequent_mappings": [places, None]}
    return {**of_rare, "_n_features_outs": [*widths]}


def dropped(places, *widths):
    return {"_drop_idx_after_grouping": places, "_n_features_outs": [*widths]}


WORDS = encoder().categories_[0]
ENCODERS = {
    "fewer columns than categories": {"_n_features_outs": [1, 1]},
    "more columns than categories": {"_n_features_outs": [40, 10**6]},
    "columns that NumPy adds": {"_n_features_outs": np.array([40, 2])},
    "numbers for categories": {"categories_": [WORDS, np.array([2.0, 1.0])]},
    "numbers among texts": {"categories_": [WORDS, texts(2.0, 1.0)]},
    "texts that are searched in order": {"categories_": [WORDS, np.array(["v", "u"])]},
    "no rare categories": {"_infrequent_enabled": False},
    "rare categories that are not mapped": mapped(None, 50, 2),
    "a mapping beyond": mapped(np.full(50, 10**6), 10**6 + 1, 2),
    "a mapping below": mapped(np.full(50, -1), 0, 2),
    "a category dropped below": dropped(texts(-(10**6), None), 39, 2),
    "a category dropped beyond": dropped(texts(None, 2), 40, 1),
    "drops of each row": dropped(np.zeros((2, 1)), 39, 1),
}


@pytest.mark.parametrize("case", ENCODERS)
def test_categories_that_are_encoded_beyond_their_columns_are_refused(tmp_path, case):
    model = copy.deepcopy(encoder())
    vars(model).update(ENCODERS[case])
    refused(tmp_path, *dumped(model))


def column_transformer(hidden):
    inner = make_pipeline(StandardScaler(), hidden)
    return make_pipeline(ColumnTransformer([("both", inner, [0, 1])]), StandardScaler())


HIDING = {
    "a model": lambda hidden: hidden,
    "a pipeline in a column transformer": column_transformer,
    "a dict": lambda hidden: attribute({"a": {"b": hidden}}),
    "a list of tuples": lambda hidden: attribute([(1, hidden)]),
    "an array of objects": lambda hidden: attribute(np.array([hidden, None], dtype=object)),
    "a kernel": lambda hidden: attribute(RBF(gamma=hidden)),
}


@pytest.mark.parametrize("case", HIDING)
def test_hostile_sparse_samples_are_found_anywhere(tmp_path, case):
    """Products with a sparse matrix do not check its indices."""
    samples = sparse.csr_array(np.eye(3))
    model = HIDING[case](attribute(samples))
    save_model(tmp_path / "m.skops", model, {})
    load_model(tmp_path / "m.skops")
    samples.indices[:] = 1_000_000
    refused(tmp_path, *dumped(model))


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.csc_array, sparse.bsr_array])
def test_sparse_samples_of_another_format_are_refused_under_the_name_of_csr_too(tmp_path, kind):
    model = KernelRegressor("linear", mu=1e-3).fit(sparse.csr_array(SAMPLES), SAMPLES[:, 0])
    object.__setattr__(model.fitted_.rows, "X", kind(model.X_fit_))
    schema, members = dumped(model)
    refused(tmp_path, schema, members, rf"names scipy\.sparse\.\S+{kind.__name__}")
    (node,) = nodes(schema, "SparseMatrixNode")
    node["__module__"], node["__class__"] = "scipy.sparse._csr", "csr_array"
    refused(tmp_path, schema, members, "is another format than a fit leaves")


# Memory ------------------------------------------------------------------------------


def tampered(model, owner, attribute, value):
    model = copy.deepcopy(model)
    object.__setattr__(operator.attrgetter(owner)(model) if owner else model, attribute, value)
    return model


@functools.cache
def pool():
    return NonconformityClassifier().fit(SAMPLES, CLASSES)


NUMBERS = {
    "units": lambda: tampered(regressor(), "fitted_.units", "number", np.full((1, 12), 10**12)),
    "units of more rows": lambda: tampered(regressor(), "fitted_", "units", Units.rows(10**4)),
    "clusters": lambda: tampered(regressor(), "fitted_.units", "clusters", np.full(12, 10**12)),
    "classes of a pool": lambda: tampered(pool(), "_pool", "n_classes", 10**12),
    "labels of neighbors": lambda: tampered(
        NonconformityClassifier(measure="neighbors").fit(SAMPLES, CLASSES),
        *("_neighbors", "labels", np.full(6, 10**12)),
    ),
    "labels of a pool": lambda: tampered(pool(), "", "_validation_labels", np.full(12, 10**12)),
    "text in the place of gaps": lambda: tampered(
        SimpleImputer().fit(SAMPLES), "", "_fill_dtype", np.dtype("U250000000")
    ),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_that_set_the_size_of_arrays_are_refused(tmp_path, case):
    refused(tmp_path, *dumped(NUMBERS[case]()))


@pytest.mark.parametrize("kind", ["<U0", "|V0", "|S0"])
def test_values_without_a_size_are_refused(tmp_path, kind):
    """Any number of them are in a small file."""
    schema, members = dumped(attribute(np.zeros(3)))
    header = io.BytesIO()
    fields = {"descr": kind, "fortran_order": False, "shape": (10**9,)}
    np.lib.format.write_array_header_1_0(header, fields)
    refused(tmp_path, schema, dict.fromkeys(members, header.getvalue()))


def traced(load):
    """Bytes of memory that a call takes at most."""
    tracemalloc.start()
    try:
        load()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_number_in_the_place_of_columns_takes_no_memory(tmp_path):
    schema, members = dumped(TablePreprocessor().fit(FRAME))
    content = schema["content"]["model"]["content"]["content"]
    number = dumped(attribute(10**9))[0]["content"]["model"]["content"]["content"]["mu"]
    content["_columns"] = {**number, "__id__": 7}
    assert traced(lambda: refused(tmp_path, schema, members)) < 10 << 20


def test_an_array_is_read_once(tmp_path):
    """Many nodes of one member would take its size each."""
    schema, members = dumped(attribute([np.zeros(10**6), *np.zeros((9, 1))]))
    first, *others = nodes(schema, "NdArrayNode")
    for node in others:
        node["file"] = first["file"]
    refused(tmp_path, schema, members, "an array under the number of another")
    for node in (first, *others):
        node["file"], node["__id__"] = "0.npy", 0  # of which skops reads each
    refused(tmp_path, schema, members, "an object without a number")


def test_a_list_that_doubles_is_refused(tmp_path):
    """Each holds the one before twice: written once, and walked 2⁶⁰ times."""
    schema, members = dumped(attribute(None))
    node = dumped([])[0]["content"]["model"]
    for number in range(1, 60):
        again = {**node, "content": []}
        node = {**node, "__id__": number, "content": [node, again]}
    schema["content"]["model"]["content"]["content"]["mu"] = node
    refused(tmp_path, schema, members, "two objects of one number")


def bomb(name, megabytes):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, b"a" * (megabytes << 20))
    return buffer.getvalue()


def with_size_in_directory(data, n_bytes):
    """The same file, its directory saying that a member is of so many bytes."""
    at = data.index(b"PK\x01\x02") + 24
    return data[:at] + struct.pack("<I", n_bytes) + data[at + 4 :]


LARGER = "larger than 1000000 bytes"
HUGE = {
    "as its directory says": (lambda: bomb("schema.json", 15), LARGER),
    "and its directory lies": (
        lambda: with_size_in_directory(bomb("schema.json", 15), 60_000),
        f"not a whole one|{LARGER}",
    ),
    "in a zip file in it": (lambda: zipped(a_npz=bomb("data.npy", 15)), LARGER),
    "in one that begins as its end": (
        lambda: zipped(a_npz=b"PK\x05\x06" + bomb("data.npy", 15)),
        LARGER,
    ),
}


@pytest.mark.parametrize("case", HUGE)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused_before(tmp_path, case):
    made, problem = HUGE[case]
    path = tmp_path / "m.skops"
    path.write_bytes(made())

    def load():
        with pytest.raises(ModelFileError, match=problem):
            load_model(path, max_bytes=10**6)

    assert traced(load) < 10 << 20


# Changed at random -------------------------------------------------------------


def table():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = KernelClassifier("linear", search=Search(max_iter=5))
        return make_pipeline(TablePreprocessor(), machine).fit(FRAME, TARGET)


def encoded():
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    one_hot = OneHotEncoder(max_categories=40, handle_unknown="infrequent_if_exist")
    parts = [("numbers", numbers, ["number"]), ("words", one_hot, ["rare", "two"])]
    machine = KernelClassifier("linear", mu=0.1)
    return make_pipeline(ColumnTransformer(parts), machine).fit(FRAME, TARGET)


MODELS = {
    "table": lambda: (table(), FRAME),
    "encoded": lambda: (encoded(), FRAME),
    "sparse": lambda: (
        make_pipeline(TablePreprocessor(), KernelRegressor("linear")).fit(
            sparse.csr_array(SAMPLES), SAMPLES[:, 0]
        ),
        sparse.csr_array(SAMPLES),
    ),
    "pool": lambda: (pool(), SAMPLES),
}


@pytest.mark.slow
def test_a_file_with_one_thing_changed_is_refused_or_gives_rows_or_an_error(tmp_path):
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
    assert 3 < min(n_refused) <= max(n_refused) < 25
