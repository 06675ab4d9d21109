"""Model files that are damaged, or made by an adversary to run code, use files, or take memory."""

import copy
import functools
import importlib
import io
import json
import operator
import os
import pickle
import random
import re
import resource
import struct
import sys
import tracemalloc
import warnings
import zipfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
import skops.io
from pairwise import in_turn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from skops.io._audit import NODE_TYPE_MAPPING

import looms
from looms import KernelClassifier, KernelRegressor, NonconformityClassifier
from looms.kernels import RBF
from looms.kernels._names import as_kernel
from looms.model_files import ModelFileError, _parts, load_model, save_model
from looms.tables import TablePreprocessor

SAMPLES = np.random.default_rng(0).normal(size=(12, 2))
CLASSES = np.arange(12) % 3
FRAME = pd.DataFrame({"number": [np.nan, *range(59)], "kind": [*"abcde", "f"] * 10})
FUNCTION = FunctionTransformer(np.log1p)
DAMAGED = "its content is damaged"


def dumped(model, **changes):
    """Schema and other members of a file of this model, whatever is in it."""
    content = {"looms_model_file": 1, "metadata": "{}", "model": model, **changes}
    return unpacked(skops.io.dumps(content))


def unpacked(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("schema.json")), members


def zipped(members, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def refused(folder, schema, members, problem=DAMAGED, trusted=()):
    data = zipped({**members, "schema.json": json.dumps(schema)})
    refused_bytes(folder, data, problem, trusted=trusted)


def refused_bytes(folder, data, problem, **options):
    (folder / "m.skops").write_bytes(data)
    with pytest.raises(ModelFileError, match=problem):
        load_model(folder / "m.skops", **options)


def nodes(part, loader=None):
    """Nodes, of one kind or of all, at any depth."""
    if isinstance(part, dict):
        if isinstance(kind := part.get("__loader__"), str) and loader in (None, kind):
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


# Names ----------------------------------------------------------------------------

HOSTILE = {
    "builtin": eval,
    "function": os.system,
    "partial": functools.partial(os.system, "true"),
    "method caller": operator.methodcaller("system", "true"),
    "numpy function": np.save,
    "function transformer": FunctionTransformer(os.system),
    "method that writes a file": KernelRegressor().save,
    "function of a kernel": as_kernel(np.save),
    "another package's class": pd.Timestamp("2006-07-16"),
    "machine of LIBSVM, whose arrays may be too short": SVC().fit(SAMPLES, CLASSES),
    "trees whose nodes may lie beyond": HistGradientBoostingRegressor(max_iter=1).fit(
        SAMPLES, CLASSES
    ),
    "categories that are written beyond their columns": OneHotEncoder().fit(FRAME),
    "reader of files that columns name": CountVectorizer(input="filename"),
    "random numbers": KFold(shuffle=True, random_state=np.random.RandomState(0)),
    "rows of a file": looms.blocks.ArrayBlocks(SAMPLES),
    "impostor": type("Impostor", (BaseEstimator,), {"__module__": "loomsy"})(),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_objects_are_refused(tmp_path, monkeypatch, case):
    module = type(sys)("loomsy")
    module.Impostor = type(HOSTILE["impostor"])
    monkeypatch.setitem(sys.modules, "loomsy", module)
    refused(tmp_path, *dumped(HOSTILE[case]), r"it names .*not hold.*Nothing was loaded")


LOADERS = ("TypeNode", "FunctionNode", "ObjectNode", "ConstructorFromReduceNode", "ListNode")
NAMES = [
    *("os.system", "builtins.exec", "builtins.getattr", "subprocess.Popen", "operator.attrgetter"),
    *("numpy.load", "numpy.memmap", "numpy.ctypeslib.load_library", "scipy.io.loadmat"),
    *("joblib.load", "pandas.read_pickle", "sklearn.datasets.load_files", "looms.os", "looms.load"),
    *("looms.__main__.main", "looms._optional.require", "looms.model_files.zipfile.ZipFile"),
    *("looms.blocks.ArrayBlocks", "looms.datasets.read_table", "looms.nowhere.Thing"),
    *("looms.model_files.ModelFileError", "looms.optimize._search.Recorder", "loomsy.Thing"),
    *("looms.onnx._check.Candidate", "sklearn.utils._tags.Tags"),
]


@pytest.mark.parametrize(
    ("loader", "name"), [*((loader, "os.system") for loader in LOADERS), *in_turn(LOADERS, NAMES)]
)
def test_hostile_names_are_refused(tmp_path, monkeypatch, loader, name):
    """A node of every kind with a name in it, put where the model is."""
    schema, members = dumped(StandardScaler())
    arguments = {**dumped(("true",))[0]["content"]["model"], "__id__": 2}
    node = {"__loader__": loader, "__id__": 1, "content": [] if loader == "ListNode" else arguments}
    node["__module__"], _, node["__class__"] = name.rpartition(".")
    schema["content"]["model"] = node
    monkeypatch.setattr("skops.io._audit.Node.construct", None)  # nothing may be built
    modules = {*sys.modules}
    refused(tmp_path, schema, members, rf"it names {name}, which .* not hold")
    assert not {one for one in sys.modules if one.startswith("looms")} - modules


OTHERS = sorted({loader for loader, _ in NODE_TYPE_MAPPING} - _parts.admitted().keys())


@pytest.mark.parametrize("loader", OTHERS)
def test_other_kinds_of_nodes_are_refused(tmp_path, loader):
    """Those that look up code even under the name of a type that the caller admits."""
    schema, members = dumped(PCA())
    schema["content"]["model"]["__loader__"] = loader
    looks_up = loader in ("MethodNode", "PartialNode", "OperatorFuncNode")
    refused(tmp_path, schema, members, r"names sklearn.*PCA", [PCA] if looks_up else [])


@pytest.mark.parametrize("protocol", [0, 1, 3, True, 2.0, "2", None])
def test_only_the_protocol_that_is_written_is_read(tmp_path, protocol):
    """An older one has a node for functions whose name is not where names are looked for."""
    schema, members = dumped(FUNCTION)
    schema["protocol"] = protocol
    (function,) = nodes(schema, "FunctionNode")
    function["content"] = {"module_path": "os", "function": "abort"}
    trusted = ["numpy.log1p", "numpy.core._multiarray_umath.log1p", FunctionTransformer]
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


def test_an_object_under_the_number_of_another_is_refused(tmp_path):
    """The first of a number is built for all: here its attributes would be the scaler's."""
    schema, members = dumped(make_pipeline(attribute({"transform": 3}), StandardScaler()))
    model, scaler = [n for n in nodes(schema, "ObjectNode") if n["__class__"] != "Pipeline"]
    scaler["content"]["__id__"] = model["content"]["content"]["mu"]["__id__"]
    refused(tmp_path, schema, members, "two objects of one number")
    scaler["content"]["__loader__"] = "CachedNode"
    refused(tmp_path, schema, members, "builtins.dict")
    del scaler["content"]["__id__"]
    refused(tmp_path, schema, members, "an object without a number")


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (make_pipeline(StandardScaler(), memory="folder"), "memory is set"),
        (ColumnTransformer([("all", "passthrough", [0])], n_jobs=10**6), "n_jobs is set"),
        (
            ColumnTransformer([], verbose_feature_names_out="{feature_name:>9999999999}"),
            "verbose_feature_names_out is set",
        ),
    ],
)
def test_what_writes_files_starts_processes_or_formats_names_is_refused(tmp_path, model, problem):
    refused(tmp_path, *dumped(model), problem)


# Reading beyond arrays ------------------------------------------------------------


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
    save_model(tmp_path / "m.skops", model)
    load_model(tmp_path / "m.skops")
    samples.indices[:] = 1_000_000
    refused(tmp_path, *dumped(model))


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.csc_array, sparse.bsr_array])
def test_sparse_samples_of_another_format_are_refused_under_the_name_of_csr_too(tmp_path, kind):
    schema, members = dumped(attribute(kind(np.eye(3))))
    refused(tmp_path, schema, members, rf"names scipy\.sparse\.\S+{kind.__name__}")
    (node,) = nodes(schema, "SparseMatrixNode")
    node["__module__"], node["__class__"] = "scipy.sparse._csr", "csr_array"
    refused(tmp_path, schema, members, "is another format than a fit leaves")


# Memory ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["<U0", "|V0", "|S0"])
def test_values_without_a_size_are_refused(tmp_path, kind):
    """Any number of them are in a small file."""
    schema, members = dumped(attribute(np.zeros(3)))
    header = io.BytesIO()
    fields = {"descr": kind, "fortran_order": False, "shape": (10**9,)}
    np.lib.format.write_array_header_1_0(header, fields)
    refused(tmp_path, schema, dict.fromkeys(members, header.getvalue()))


def test_a_long_text_in_the_place_of_gaps_is_refused(tmp_path):
    imputer = SimpleImputer().fit(SAMPLES)
    imputer._fill_dtype = np.dtype("U250000000")
    refused(tmp_path, *dumped(imputer))


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
        node = {**node, "__id__": number, "content": [node, {**node, "content": []}]}
    schema["content"]["model"]["content"]["content"]["mu"] = node
    refused(tmp_path, schema, members, "two objects of one number")


def bomb(name):
    return zipped({name: b"a" * (15 << 20)}, zipfile.ZIP_DEFLATED)


def with_size_in_directory(data, n_bytes):
    """The same file, its directory saying that a member is of so many bytes."""
    at = data.index(b"PK\x01\x02") + 24
    return data[:at] + struct.pack("<I", n_bytes) + data[at + 4 :]


LARGER = "larger than 1000000 bytes"
HUGE = {
    "as its directory says": lambda: bomb("schema.json"),
    "as a list of types does when read": lambda: zipped({"schema.json": b"a" * 100_000}),
    "and its directory lies": lambda: with_size_in_directory(bomb("schema.json"), 60_000),
    "in a zip file in it": lambda: zipped({"a.npz": bomb("data.npy")}),
    "in one that begins as its end": lambda: zipped({"a.npz": b"PK\x05\x06" + bomb("data.npy")}),
}


@pytest.mark.parametrize("case", HUGE)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused_before(tmp_path, case):
    data, lies = HUGE[case](), "lies" in case
    problem = f"not a whole one|{LARGER}" if lies else LARGER
    assert traced(lambda: refused_bytes(tmp_path, data, problem, max_bytes=10**6)) < 10 << 20


def test_the_limit_can_be_raised(tmp_path):
    save_model(tmp_path / "m.skops", regressor())
    with pytest.raises(ModelFileError, match=r"larger than 1000 bytes.*allow more by max_bytes"):
        load_model(tmp_path / "m.skops", max_bytes=1000)
    load_model(tmp_path / "m.skops", max_bytes=10**7)


# Damaged, and of other content ----------------------------------------------------


def flipped(data):
    return data[:60] + bytes([data[60] ^ 1]) + data[61:]


NOT_WHOLE = "not a model file, or not a whole one"
NOT_READ = {
    **{f"cut at {k}": (lambda data, k=k: data[:k], NOT_WHOLE) for k in (4, 10, 1000, -1, -30)},
    "a flipped bit": (flipped, "m.skops"),
    "empty": (lambda _: b"", "the file is empty"),
    "a pickle": (lambda _: pickle.dumps({"a": 1}), "it is not a model file. looms fit"),
    "no schema": (lambda _: zipped({"a.txt": "hello"}), NOT_WHOLE),
    **{
        f"the schema {text[:9]}": (lambda _, text=text: zipped({"schema.json": text}), NOT_WHOLE)
        for text in ("hello", "[]", '{"protocol": 1000}', "[" * 100_000)
    },
    "a file of others": (lambda _: skops.io.dumps(StandardScaler()), "but not one of looms"),
}


@pytest.mark.parametrize("case", NOT_READ)
def test_what_is_no_whole_model_file_is_refused(tmp_path, case):
    changed, problem = NOT_READ[case]
    save_model(tmp_path / "m.skops", regressor())
    refused_bytes(tmp_path, changed((tmp_path / "m.skops").read_bytes()), problem)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"looms_model_file": 2, "model": PCA()}, "format 2, and looms .* reads format 1.*Upgrade"),
        *(({"metadata": metadata}, DAMAGED) for metadata in ("{", "[]", None)),
        ({"model": 3}, DAMAGED),
    ],
)
def test_other_content_is_refused(tmp_path, changes, problem):
    refused(tmp_path, *dumped(**{"model": StandardScaler(), **changes}), problem)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(ModelFileError, match="no such file"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="this is a folder"):
        load_model(tmp_path)


# Changed at random ----------------------------------------------------------------

LIMIT = 8 << 30
VALUES = [None, True, -1, 0, 7, 10**9, 1.5, -1e308, float("nan"), "x", "passthrough", [1], {"a": 1}]
ATTRIBUTES = ["transform", "predict", "fit", "__class__", "__dict__", "mean_", "kernel_", "x"]


def mutate(schema, members, rng):
    """Change one value, in place; names and numbers of nodes have tests of their own."""
    change = rng.choice(["swap", "attribute", "drop", *["value"] * 4, *["array"] * 6])
    if change == "swap":
        node, other = rng.sample([*nodes(schema)], 2)
        kept = copy.deepcopy(node)
        node.clear(), node.update(copy.deepcopy(other))
        other.clear(), other.update(kept)
    elif change in ("attribute", "drop"):
        content = rng.choice([n for n in nodes(schema, "DictNode") if n["content"]])["content"]
        value = content.pop(rng.choice(list(content)))
        if change == "attribute":
            content[rng.choice(ATTRIBUTES)] = value
    elif change == "value":
        rng.choice([*nodes(schema, "JsonNode")])["content"] = json.dumps(rng.choice(VALUES))
    else:
        file = rng.choice([name for name in members if name.endswith(".npy")])
        buffer = io.BytesIO()
        np.save(buffer, changed_array(np.load(io.BytesIO(members[file])), rng))
        members[file] = buffer.getvalue()


def changed_array(array, rng):
    is_number = array.dtype.kind in "iuf"
    one = np.array(array)
    if array.size and is_number:
        value = np.array(rng.choice([-1, 2**31 - 1, 7]))
        one.flat[rng.randrange(array.size)] = value.astype(array.dtype)
    choices = [array.ravel()[: max(1, array.size // 2)], np.concatenate([np.atleast_1d(array)] * 2)]
    choices += [array.T if array.ndim > 1 else array[None], np.array(["x"] * max(1, array.size))]
    choices += [one, array.astype(np.float32) if is_number else array[:0]]
    return rng.choice([*choices, np.zeros((0, *array.shape[1:]))])


def n_refused_of(path, rows, n):
    """Number of n changed files that are refused; the others' models predict, or raise an error."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    warnings.simplefilter("ignore")
    schema, members = unpacked(path.read_bytes())
    n_refused = 0
    for seed in range(n):
        changed, others = copy.deepcopy(schema), dict(members)
        mutate(changed, others, random.Random(seed))
        hostile = path.with_suffix(f".{seed}")  # the last one tells of a process that ended
        hostile.write_bytes(zipped({**others, "schema.json": json.dumps(changed)}))
        try:
            model = load_model(hostile).model
        except ModelFileError:
            n_refused += 1
            continue
        try:
            model.predict(rows)
        except MemoryError:
            raise
        except Exception:
            pass
    return n_refused


def prepared():
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    table = TablePreprocessor()
    both = ColumnTransformer([("numbers", numbers, ["number"]), ("words", table, ["kind"])])
    return make_pipeline(both, KernelClassifier("linear", mu=0.1)).fit(FRAME, FRAME["kind"] < "c")


MUTATED = {
    "table": lambda: (prepared(), FRAME),
    "sparse": lambda: (
        make_pipeline(TablePreprocessor(), KernelRegressor("linear")).fit(
            sparse.csr_array(SAMPLES), SAMPLES[:, 0]
        ),
        sparse.csr_array(SAMPLES),
    ),
    "pool": lambda: (NonconformityClassifier().fit(SAMPLES, CLASSES), SAMPLES),
}


@pytest.mark.slow
def test_a_file_with_one_thing_changed_is_refused_or_gives_rows_or_an_error(tmp_path):
    n_refused = {}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        for name, made in MUTATED.items():
            model, rows = made()
            save_model(tmp_path / f"{name}.skops", model)
            counted = other.submit(n_refused_of, tmp_path / f"{name}.skops", rows, 25)
            n_refused[name] = counted.result()
    assert 3 < n_refused["table"] < 25
    assert 3 < n_refused["sparse"] < 25  # numbers of a pool are not checked
