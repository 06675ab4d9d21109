"""Model files: round trips, writing whole or not at all, and files made by an adversary."""

import functools
import importlib
import io
import json
import operator
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import looms
from looms import LeaveOneOut, LSSVMRegressorCV, challenge, model_files
from looms.kernels import RBF, Linear, as_kernel
from looms.model_files import ModelFileError, load_model, save_model
from looms.optimise import Outcome, Point, Search
from looms.tables import table_preprocessor

X = np.arange(12.0).reshape(6, 2) ** 1.5
Y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0])
METADATA = {"target": "y", "columns": {"a": "int64"}, "n_rows": 6, "none": None}


def fitted():
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    best = Point(np.ones(2), 0.5, 0.1)
    ridge = model[-1]
    ridge.kernel_ = RBF(eta=2.0) * Linear() + as_kernel("normalized_ard")
    ridge.loo_ = LeaveOneOut(Y, Y[::-1], np.ones(6))
    ridge.search_ = Search(best, Outcome.WITHIN_NOISE, (best, best), 1)
    return model


def test_round_trip(tmp_path):
    model = fitted()
    save_model(tmp_path / "m.skops", model, METADATA)
    saved = load_model(tmp_path / "m.skops")
    assert saved.metadata == METADATA
    np.testing.assert_array_equal(saved.model.predict(X), model.predict(X))
    ours, theirs = saved.model[-1], model[-1]
    assert repr(ours.kernel_) == repr(theirs.kernel_)
    np.testing.assert_array_equal(ours.loo_.outputs, theirs.loo_.outputs)
    assert not ours.loo_.outputs.flags.writeable
    assert ours.search_.outcome is Outcome.WITHIN_NOISE
    assert ours.search_.history[1].value == 0.5


@pytest.mark.parametrize("outcome", Outcome)
def test_outcomes_survive_pickle_too(outcome):
    assert pickle.loads(pickle.dumps(outcome)) is outcome


def test_round_trip_of_a_table_preprocessor(tmp_path):
    frame = pd.DataFrame(
        {
            "a": [1, None, 3.0, 4.0],
            "b": ["x", None, "y", "é"],
            "c": [True, False, True, False],
            "d": pd.to_datetime(["2006-07-16", None, "2007-08-12", "2008-01-01"]),
        }
    )
    transformer = table_preprocessor(frame).fit(frame)
    save_model(tmp_path / "m.skops", transformer, {})
    loaded = load_model(tmp_path / "m.skops").model
    np.testing.assert_array_equal(loaded.transform(frame), transformer.transform(frame))
    assert (tmp_path / "m.skops").stat().st_size < 20_000


def in_a_fresh_process(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(Path(looms.__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.stderr == ""
    return result.stdout


def test_a_fresh_process_reads_it(tmp_path):
    """Nothing but the module is imported; the types in the file must be known all the same."""
    frame = pd.DataFrame({"a": [1.0, 2, 3, 5], "b": ["x", "x", "y", "z"]})
    model = make_pipeline(table_preprocessor(frame), LSSVMRegressorCV()).fit(frame, [1, 2, 3, 4])
    save_model(tmp_path / "m.skops", model, {})
    code = (
        "import sys; from looms.model_files import load_model; print(load_model(sys.argv[1]).model)"
    )
    assert "LSSVMRegressorCV" in in_a_fresh_process(code, tmp_path / "m.skops")


@pytest.mark.parametrize("kind", ["ada", "gina", "sylva"])
def test_a_fresh_process_reads_the_challenge_s(tmp_path, kind):
    """Estimators of a room that the module does not import."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 3 == 0, 1, -1)
    X = rng.integers(1, 5, size=(40, 8)) + 0.5 * y[:, None]
    X[:, 7] = (y < 0) & (np.arange(40) % 2 == 0)
    prepared = challenge.preparation(kind, X)
    if kind == "ada":
        prepared = challenge.ADAColumns(0, 1, 2, 3)
    machine = challenge.ReducedLSSVMClassifierCV("linear")
    model = make_pipeline(prepared, machine).fit(X, y)
    save_model(tmp_path / "m.skops", model, {})
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy; from looms.model_files import load_model\n"
        "model = load_model(sys.argv[1]).model\n"
        "print(model.decision_function(numpy.load(sys.argv[2])).tolist())"
    )
    printed = in_a_fresh_process(code, tmp_path / "m.skops", tmp_path / "X.npy")
    assert json.loads(printed) == model.decision_function(X).tolist()


def test_what_reading_would_refuse_is_refused_when_saving(tmp_path):
    """Types of rooms that happen to be imported here, and are not where a file is read."""
    model = fitted()
    model[-1].data_ = challenge.Experiment("press", "none", "linear")
    with pytest.raises(ModelFileError, match=r"the model holds looms\.challenge.*Experiment"):
        save_model(tmp_path / "m.skops", model, {})


def test_names_of_what_a_file_may_hold_are_right():
    for name in model_files._ALLOWED:
        module, _, part = name.rpartition(".")
        assert hasattr(importlib.import_module(module), part)
    code = (
        "import sys, looms.model_files\n"
        "print([m for m in sys.modules if m.startswith('looms.') and m.count('.') == 1])"
    )
    imported = in_a_fresh_process(code)
    assert all(f"'looms.{room}'" in imported for room in model_files._ROOMS)


def test_saving_replaces_the_file_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "m.skops"
    path.write_text("old")
    save_model(path, fitted(), {})
    load_model(path)
    assert os.listdir(tmp_path) == ["m.skops"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_interrupted_writing_leaves_the_old_file(tmp_path, monkeypatch, fault, where):
    path = tmp_path / "m.skops"
    path.write_text("old")

    def fail(*arguments):
        raise fault

    monkeypatch.setattr(f"looms._files.os.{where}", fail)
    expected = ModelFileError if isinstance(fault, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        save_model(path, fitted(), {})
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["m.skops"]


def test_the_file_is_synced_before_it_gets_its_name(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("looms._files.os.fsync", lambda fd: (calls.append("fsync"), fsync(fd)))
    monkeypatch.setattr(
        "looms._files.os.replace", lambda a, b: (calls.append("replace"), replace(a, b))
    )
    save_model(tmp_path / "m.skops", fitted(), {})
    assert calls == ["fsync", "replace"]


def test_saving_where_there_is_no_folder(tmp_path):
    with pytest.raises(ModelFileError, match=r"cannot be written \(No such file or directory\)"):
        save_model(tmp_path / "nowhere" / "m.skops", fitted(), {})


def test_metadata_that_json_cannot_hold(tmp_path):
    with pytest.raises(TypeError):
        save_model(tmp_path / "m.skops", fitted(), {"array": np.ones(2)})
    assert not os.listdir(tmp_path)


def test_a_function_in_the_model_is_refused_when_saving(tmp_path):
    model = fitted()
    model[-1].kernel_ = as_kernel(np.save)
    with pytest.raises(ModelFileError, match=r"the model holds .*numpy.*save"):
        save_model(tmp_path / "m.skops", model, {})
    assert not os.listdir(tmp_path)


# Files that are no model files -------------------------------------------------


def written(folder, data):
    path = folder / "m.skops"
    path.write_bytes(data)
    return path


def whole(folder):
    save_model(folder / "whole", fitted(), METADATA)
    data = (folder / "whole").read_bytes()
    (folder / "whole").unlink()
    return data


@pytest.mark.parametrize("cut", [10, 1000, -1, -30])
def test_truncated(tmp_path, cut):
    path = written(tmp_path, whole(tmp_path)[:cut])
    with pytest.raises(ModelFileError, match="not a model file, or not a whole one"):
        load_model(path)


def test_a_flipped_bit(tmp_path):
    data = bytearray(whole(tmp_path))
    data[60] ^= 1
    with pytest.raises(ModelFileError, match=str(tmp_path)):
        load_model(written(tmp_path, bytes(data)))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04", "not a model file, or not a whole one"),
        (pickle.dumps({"a": 1}), "not a model file, or not a whole one"),
    ],
)
def test_not_a_zip_file(tmp_path, data, problem):
    with pytest.raises(ModelFileError, match=problem):
        load_model(written(tmp_path, data))


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "members",
    [
        {"a_txt": "hello"},
        {"schema_json": "hello"},
        {"schema_json": "[]"},
        {"schema_json": "{}"},
        {"schema_json": '{"protocol": 1000}'},
        {"schema_json": "[" * 100_000},
    ],
)
def test_not_a_skops_file(tmp_path, members):
    with pytest.raises(ModelFileError, match=r"it is not a model file \("):
        load_model(written(tmp_path, zipped(**members)))


def test_a_skops_file_of_others(tmp_path):
    with pytest.raises(ModelFileError, match="a skops file, but not of looms"):
        load_model(written(tmp_path, skops.io.dumps(Ridge())))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"looms_model_file": 2}, "it has the format 2, and looms .* reads format 1.*Upgrade"),
        ({"metadata": "{"}, "its content is damaged"),
        ({"metadata": "[]"}, "its content is damaged"),
        ({"metadata": None}, "its content is damaged"),
        ({"model": 3}, "its content is damaged"),
    ],
)
def test_other_content(tmp_path, changes, problem):
    content = {"looms_model_file": 1, "metadata": "{}", "model": Ridge(), **changes}
    with pytest.raises(ModelFileError, match=problem):
        load_model(written(tmp_path, skops.io.dumps(content)))


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(ModelFileError, match="no such file"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="this is a folder"):
        load_model(tmp_path)


def test_another_version_of_scikit_learn_is_one_warning(tmp_path, monkeypatch):
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    monkeypatch.setattr("sklearn.base.__version__", "1.0")
    save_model(tmp_path / "m.skops", model, {})
    monkeypatch.undo()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_model(tmp_path / "m.skops")
    assert [w.category for w in caught] == [UserWarning]
    assert "saved with scikit-learn 1.0" in str(caught[0].message)
    assert not any(issubclass(w.category, InconsistentVersionWarning) for w in caught)


# Files made by an adversary ----------------------------------------------------

HOSTILE = {
    "builtin": eval,
    "function": os.system,
    "partial": functools.partial(os.system, "true"),
    "method caller": operator.methodcaller("system", "true"),
    "numpy function": np.save,
    "function transformer": FunctionTransformer(os.system),
    "method": RBF(eta=1.0).set_params,
    "tree, which may read beyond its arrays": DecisionTreeRegressor().fit(X, Y),
    "another package's class": pd.Timestamp("2006-07-16"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_objects_are_refused(tmp_path, case):
    content = {"looms_model_file": 1, "metadata": "{}", "model": HOSTILE[case]}
    with pytest.raises(ModelFileError, match=r"it names .*Nothing was loaded|not a model file"):
        load_model(written(tmp_path, skops.io.dumps(content)))


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
    ("joblib", "load"),
    ("pandas", "read_pickle"),
    ("looms", "os"),
    ("looms._optional", "require"),
    ("looms._optional", "import_module"),
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
    ("looms.tables", "Pipeline"),
    ("looms.model_files", "ModelFileError"),
    ("looms.optimise._search", "Recorder"),
    ("sklearn.utils._tags", "Tags"),
)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(("module", "name"), NAMES)
def test_hostile_names_are_refused(tmp_path, monkeypatch, loader, module, name):
    """A node of every kind with a name in it, put where the model is."""
    content = {"looms_model_file": 1, "metadata": "{}", "model": Ridge()}
    state = tampered(skops.io.dumps(content), loader, module, name)
    monkeypatch.setattr("skops.io._audit.Node.construct", None)  # nothing may be built
    with pytest.raises(ModelFileError, match=r"it names .*which a model file may not hold"):
        load_model(written(tmp_path, state))


def tampered(data, loader, module, name):
    arguments = json.loads(
        zipfile.ZipFile(io.BytesIO(skops.io.dumps(("true",)))).read("schema.json")
    )
    node = {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "__id__": 1,
        "content": [] if loader == "ListNode" else {**arguments, "__id__": 2},
    }
    schema = json.loads(zipfile.ZipFile(io.BytesIO(data)).read("schema.json"))
    schema["content"]["model"] = node
    return zipped(schema_json=json.dumps(schema))


@pytest.mark.parametrize("steps", [True, False])
def test_sparse_samples_come_back_checked(tmp_path, steps):
    """Products with a sparse matrix do not check its indices."""
    model = Ridge()
    model.X_fit_ = sparse.csr_array(np.eye(3))
    saved = make_pipeline(StandardScaler(), model) if steps else model
    save_model(tmp_path / "m.skops", saved, {})
    loaded = load_model(tmp_path / "m.skops").model
    loaded = loaded[-1] if steps else loaded
    np.testing.assert_array_equal(loaded.X_fit_.toarray(), np.eye(3))
    model.X_fit_.indices[:] = 1_000_000
    save_model(tmp_path / "m.skops", saved, {})
    with pytest.raises(ModelFileError, match="its content is damaged"):
        load_model(tmp_path / "m.skops")


def column_transformer(hidden):
    inner = make_pipeline(StandardScaler(), hidden)
    return make_pipeline(ColumnTransformer([("both", inner, [0, 1])]), Ridge())


def attribute(value):
    model = Ridge()
    model.kept_ = value
    return model


HIDING = {
    "a pipeline in a column transformer": column_transformer,
    "a dict": lambda hidden: attribute({"a": {"b": hidden}}),
    "a list of tuples": lambda hidden: attribute([(1, hidden)]),
    "an array of objects": lambda hidden: attribute(np.array([hidden, None], dtype=object)),
    "a kernel": lambda hidden: attribute(RBF(eta=hidden)),
}


@pytest.mark.parametrize("case", HIDING)
def test_hostile_sparse_samples_are_found_anywhere(tmp_path, case):
    samples = sparse.csr_array(np.eye(3))
    model = HIDING[case](attribute(samples))
    save_model(tmp_path / "m.skops", model, {})
    load_model(tmp_path / "m.skops")
    samples.indices[:] = 1_000_000
    save_model(tmp_path / "m.skops", model, {})
    with pytest.raises(ModelFileError, match="its content is damaged"):
        load_model(tmp_path / "m.skops")


def test_a_type_of_a_module_that_is_not_imported_is_refused(tmp_path, monkeypatch):
    data = skops.io.dumps({"looms_model_file": 1, "metadata": "{}", "model": RBF(eta=1.0)})
    load_model(written(tmp_path, data))
    monkeypatch.delitem(sys.modules, "looms.kernels._stationary")
    with pytest.raises(ModelFileError, match=r"it names looms\.kernels\._stationary\.RBF"):
        load_model(written(tmp_path, data))


def test_a_package_whose_name_begins_alike_is_refused(tmp_path, monkeypatch):
    impostor = type("Impostor", (BaseEstimator,), {"__module__": "loomsy"})
    monkeypatch.setitem(sys.modules, "loomsy", SimpleNamespace(Impostor=impostor))
    data = skops.io.dumps({"looms_model_file": 1, "metadata": "{}", "model": impostor()})
    with pytest.raises(ModelFileError, match=r"it names loomsy\.Impostor"):
        load_model(written(tmp_path, data))


def test_without_skops_the_message_names_the_extra(tmp_path, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="skops")

    monkeypatch.setattr("looms._optional.import_module", absent)
    with pytest.raises(ImportError, match=r'needs skops, .* pip install "looms\[cli\]"'):
        load_model(tmp_path / "m.skops")
