"""Model files: round trips, writing whole or not at all, and files of other versions."""

import contextlib
import copy
import functools
import inspect
import io
import operator
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import skops.io
from archives import zipped
from evaluated import evaluated
from pairwise import in_turn
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    OneHotEncoder,
    StandardScaler,
)
from stacks import stacked_classifier, stacked_regressor

import looms
from looms import (
    KernelClassifier,
    KernelRegressor,
    NonconformityClassifier,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.criteria import Criterion
from looms.datasets._table import Table
from looms.estimators._trees import BoostedTreesRegressor
from looms.fitted._outcome import Numbers
from looms.folds import GapKFold
from looms.kernels import (
    RBF,
    Kernel,
    Linear,
)
from looms.kernels._names import as_kernel
from looms.model_files import ModelFileError, _files, _parts, load_model, save_model
from looms.optimize._search import StopReason
from looms.tables import TablePreprocessor
from looms.threshold import ThresholdRule
from looms.units import Units

X = np.arange(12.0).reshape(6, 2) ** 1.5
Y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0])
METADATA = {"target": "y", "columns": {"a": "int64"}, "n_rows": 6, "none": None}


def fitted():
    kernel = RBF(gamma=2.0) * Linear() + as_kernel("normalized_ard") + as_kernel("ranked_rbf")
    return make_pipeline(StandardScaler(), KernelRegressor(kernel, mu=0.1)).fit(X, Y)


def save_unchecked(path, model, metadata=METADATA):
    """Save a model as an adversary would, who does not check what it holds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_files, "check", lambda *_: None)
        save_model(path, model, metadata)


def test_round_trip(tmp_path):
    model = fitted()
    save_model(tmp_path / "m.skops", model, METADATA)
    saved = load_model(tmp_path / "m.skops")
    assert saved.metadata == {**METADATA, "looms_version": looms.__version__}
    np.testing.assert_array_equal(saved.model.predict(X), model.predict(X))
    ours, theirs = saved.model[-1], model[-1]
    assert repr(ours.kernel_) == repr(theirs.kernel_)
    np.testing.assert_array_equal(ours.loo_.outputs, theirs.loo_.outputs)
    assert not ours.loo_.outputs.flags.writeable


@pytest.mark.parametrize("name", ["y", None])
@pytest.mark.parametrize("model", [KernelRegressor(mu=0.1), TabularRegressor(["linear"])])
def test_a_model_saves_itself_with_the_name_of_its_target(tmp_path, model, name):
    table = pd.DataFrame(X, columns=["a", "b"])
    with warnings.catch_warnings(action="ignore"):
        model = model.fit(table, pd.Series(Y, name=name))
    model.save(tmp_path / "m.skops")
    metadata = load_model(tmp_path / "m.skops").metadata
    assert metadata == {"looms_version": looms.__version__} | ({"target": name} if name else {})
    again = looms.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    again.save(tmp_path / "again.skops")
    assert load_model(tmp_path / "again.skops").metadata == metadata


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        KernelRegressor().save(tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_the_record_of_a_search_comes_back(tmp_path):
    model = KernelRegressor("rbf").fit(X, Y)
    save_model(tmp_path / "m.skops", model, {})
    ours, theirs = load_model(tmp_path / "m.skops").model.selection_, model.selection_
    assert ours.stop_reason is theirs.stop_reason
    (_, search), (_, expected) = ours.stages[-1], theirs.stages[-1]
    assert [p.value for p in search.history] == [p.value for p in expected.history]


HELD_OUT = {
    "folds": {"cv": 3, "kernels": ["linear"]},
    "repetitions": {"cv": "2x3", "kernels": ["linear"]},
    "numbered folds": {"cv": np.arange(24) % 4},
    "grid of folds": {"cv": 4, "method": "grid"},
    "grid of groups": {"method": "grid", "groups": np.array(["Ann", "Bo", "Cy"] * 8)},
    "grid of rows": {"method": "grid"},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "target"),
    [
        *in_turn(HELD_OUT, ["classes", "numbers", "two targets"]),
        ("grid of groups", "classes"),
        ("grid of rows", "numbers"),
    ],
)
def test_what_was_held_out_comes_back(tmp_path, target, options):
    rng = np.random.default_rng(0)
    samples, signal = rng.normal(size=(2, 24, 2))
    signal += samples
    options = {"kernels": ["linear", "rbf"], "method": "gradient", **HELD_OUT[options]}
    groups, search = options.pop("groups", None), Search(method=options.pop("method"))
    one, several, y = KernelRegressor, stacked_regressor, signal[:, 0]
    if target == "two targets":
        y = signal
    if target == "classes":
        one, several, y = KernelClassifier, stacked_classifier, y > 0
    candidates = [one(kernel, search=search) for kernel in options.pop("kernels")]
    model = several(candidates, combine="best", **options).fit(samples, y, groups=groups)
    model.evaluate()
    save_model(tmp_path / "m.skops", model, {})
    loaded = load_model(tmp_path / "m.skops").model
    for name in ("held_out_", "loo_"):
        ours, theirs = (getattr(one, name) for one in (loaded, model))
        np.testing.assert_array_equal(ours.outputs, theirs.outputs)
    for name in ("number", "tested", "clusters"):
        ours, theirs = (getattr(one.units_, name) for one in (loaded, model))
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(loaded.cv, model.cv)
    assert loaded.evaluate() == pytest.approx(model.evaluate(), nan_ok=True)
    assert loaded.evaluate().standard_errors == pytest.approx(
        model.evaluate().standard_errors, nan_ok=True
    )
    assert [repr(machine) for machine in loaded.evaluate()._nested.models] == [
        repr(machine) for machine in model.evaluate()._nested.models
    ]
    for field in ("model_of_fold", "whole"):
        ours, theirs = (getattr(one.evaluate()._nested, field) for one in (loaded, model))
        np.testing.assert_array_equal(ours, theirs)
    if target == "classes":
        ours, theirs = (one.evaluate()._nested.decisions for one in (loaded, model))
        for field in ("outputs", "predicted", "wrong", "probabilities", "losses"):
            np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
        np.testing.assert_array_equal(
            loaded.predict_set(samples, 0.7), model.predict_set(samples, 0.7)
        )
    else:
        np.testing.assert_array_equal(
            loaded.predict_interval(samples, 0.7), model.predict_interval(samples, 0.7)
        )


GROUPS = np.arange(6) // 2
SPLITTERS = [
    *(KFold(3), KFold(3, shuffle=True, random_state=0), RepeatedKFold(n_splits=3, random_state=0)),
    *(GroupKFold(3), LeaveOneOut(), LeavePOut(2), LeaveOneGroupOut(), LeavePGroupsOut(1)),
    *(TimeSeriesSplit(2), PredefinedSplit(GROUPS), ShuffleSplit(2, random_state=0)),
]


@pytest.mark.parametrize("cv", SPLITTERS, ids=repr)
def test_splitters_of_scikit_learn_come_back(tmp_path, cv):
    save_model(tmp_path / "m.skops", KernelRegressor("linear", cv=cv), {})
    loaded = load_model(tmp_path / "m.skops").model
    groups = GROUPS if "Group" in type(cv).__name__ else None
    pairs = (list(one.split(X, Y, groups)) for one in (loaded.cv, cv))
    for ours, theirs in zip(*pairs, strict=True):
        np.testing.assert_equal(ours, theirs)


def test_an_evaluated_model_with_a_splitter_comes_back(tmp_path):
    model = KernelRegressor("linear", cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    scores = model.evaluate()
    model.save(tmp_path / "m.skops")
    loaded = looms.load(tmp_path / "m.skops")
    assert loaded.evaluate() == pytest.approx(scores)
    np.testing.assert_array_equal(loaded.fit(X, Y, groups=GROUPS).predict(X), model.predict(X))


def test_splits_and_windows_come_back(tmp_path):
    days = pd.Series(pd.date_range("2020", periods=len(X)))
    several = [list(KFold(3).split(X)), GapKFold(3, 0.1, np.arange(len(X)) / 2)]
    several += [GapKFold(3, timedelta(1), [day.date() for day in days])]
    several += [GapKFold(3, pd.Timedelta(days=1), of) for of in (days, days.dt.tz_localize("UTC"))]
    several += [GapKFold(3, 1, held(range(len(X)))) for held in (pd.Series, pl.Series, pa.array)]
    several += [GapKFold(3, 1, [2**70 + k for k in range(len(X))])]
    several += [GapKFold(3, Decimal("0.5"), [Fraction(k, 3) for k in range(len(X))])]
    for k, cv in enumerate(several):
        model = KernelRegressor("linear", cv=cv).fit(X, Y)
        save_model(tmp_path / f"m{k}.skops", model, {})
        loaded = load_model(tmp_path / f"m{k}.skops").model
        np.testing.assert_array_equal(loaded.units_.codes, model.units_.codes)
        np.testing.assert_array_equal(loaded.fit(X, Y).units_.codes, model.units_.codes)


@pytest.mark.slow
@pytest.mark.parametrize("nested", [(False,), (True,), (False, True)])
def test_scores_come_back_as_nested_or_not(tmp_path, nested):
    model = stacked_regressor(["linear", "rbf"]).fit(POINTS, machine("stack").loo_.y)
    kinds = [model.evaluate(nested=each).kind for each in nested]
    save_model(tmp_path / "m.skops", model, {})
    loaded = load_model(tmp_path / "m.skops").model
    assert [loaded.evaluate(nested=each).kind for each in nested] == kinds
    assert list(loaded._scores) == ["nested" if again else "fit" for again in nested]


def test_the_key_false_comes_back(tmp_path):
    """Classes are true and false, and weights are by class."""
    weights = {False: 2.0, True: 1.0}
    model = KernelClassifier(mu=0.1, class_weight=weights).fit(X, Y > 2)
    save_model(tmp_path / "m.skops", model, {})
    assert load_model(tmp_path / "m.skops").model.class_weight == weights


@pytest.mark.parametrize("outcome", StopReason)
def test_outcomes_survive_pickle_too(outcome):
    assert pickle.loads(pickle.dumps(outcome)) is outcome


def test_round_trip_of_a_preprocessor_of_tables(tmp_path):
    frame = pd.DataFrame(
        {
            "a": [1, None, 3.0, 4.0],
            "b": ["x", None, "y", "é"],
            "c": [True, False, True, False],
            "d": pd.to_datetime(["2006-07-16", None, "2007-08-12", "2008-01-01"]),
        }
    )
    transformer = TablePreprocessor().fit(frame)
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


@pytest.mark.slow
def test_a_fresh_process_reads_it(tmp_path):
    """Nothing but the module is imported; the types in the file must be known all the same."""
    frame = pd.DataFrame({"a": [1.0, 2, 3, 5], "b": ["x", "x", "y", "z"]})
    model = make_pipeline(TablePreprocessor(), KernelRegressor()).fit(frame, [1, 2, 3, 4])
    save_model(tmp_path / "m.skops", model, {})
    code = (
        "import sys; from looms.model_files import load_model; print(load_model(sys.argv[1]).model)"
    )
    assert "KernelRegressor" in in_a_fresh_process(code, tmp_path / "m.skops")


@pytest.mark.slow
def test_a_fresh_process_predicts_the_same(tmp_path):
    """By each class; nothing but the module of model files is imported there."""
    numbers, y = MIXED[["n"]].to_numpy(), np.exp(MIXED["n"])
    models = {
        "kernel classifier": (KernelClassifier("linear", mu=0.1).fit(numbers, SIGNS), numbers),
        "kernel regressor": (KernelRegressor(mu=0.1).fit(numbers, y), numbers),
        "table of classes": (machine("classes of a table"), MIXED),
        "table of numbers": (machine("numbers of a table"), MIXED),
    }
    for name, (model, _) in models.items():
        save_model(tmp_path / f"{name}.skops", model, {})
    MIXED.to_pickle(tmp_path / "table.pickle")
    code = (
        "import sys, pickle; from looms.model_files import load_model\n"
        "table = pickle.load(open('table.pickle', 'rb'))\n"
        "for name in sys.argv[1:]:\n"
        "    model = load_model(f'{name}.skops').model\n"
        "    rows = table if 'table' in name else table[['n']].to_numpy()\n"
        "    print(*model.predict(rows).tolist())\n"
    )
    with contextlib.chdir(tmp_path):
        told = in_a_fresh_process(code, *models).splitlines()
    for line, (model, rows) in zip(told, models.values(), strict=True):
        assert line.split() == [str(each) for each in model.predict(rows).tolist()]


def test_what_reading_would_refuse_is_refused_when_saving(tmp_path):
    """Types of rooms that happen to be imported here, and are not where a file is read."""
    model = fitted()
    model[-1].data_ = Table(None, None, "t")
    with pytest.raises(ModelFileError, match=r"the model holds looms\.datasets.*Table"):
        save_model(tmp_path / "m.skops", model, {})


PREPARED = {
    "indicators of gaps": make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
    "a constant for gaps": SimpleImputer(strategy="constant", fill_value=0.0),
    "the remainder passed on": ColumnTransformer(
        [("scaled", StandardScaler(), ["a"])], remainder="passthrough"
    ),
    "the remainder scaled": ColumnTransformer(
        [("scaled", SimpleImputer(), ["a"])], remainder=StandardScaler()
    ),
    "the first category dropped": OneHotEncoder(drop="first"),
    "one of two categories dropped": OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
}


@pytest.mark.parametrize("case", PREPARED)
def test_what_is_saved_is_read(tmp_path, case):
    words = isinstance(PREPARED[case], OneHotEncoder)
    frame = pd.DataFrame(
        {"a": [*"uvvuvu"], "b": [*"xyzxyz"]} if words else X.copy(), columns=["a", "b"]
    )
    if "gaps" in case:
        frame.loc[2, "a"] = np.nan
    model = make_pipeline(PREPARED[case], KernelRegressor("linear", mu=1e-3)).fit(frame, Y)
    save_model(tmp_path / "m.skops", model, {})
    again = load_model(tmp_path / "m.skops").model
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_state_that_reading_would_refuse_is_refused_when_saving(tmp_path):
    step = ColumnTransformer([("all", "passthrough", [0, 1])]).fit(X).set_params(n_jobs=2)
    model = make_pipeline(step, KernelRegressor("linear", mu=1e-3))
    with pytest.raises(ModelFileError, match=r"could not be read again .ColumnTransformer: n_jobs"):
        save_model(tmp_path / "m.skops", model, {})
    assert not os.listdir(tmp_path)


def test_every_kernel_and_criterion_of_looms_may_be_in_a_file():
    admitted = set().union(*_parts.admitted().values())
    for room in (looms.kernels, looms.criteria, looms.threshold, looms.estimators):
        for value in vars(room).values():
            final = isinstance(value, type) and not inspect.isabstract(value)
            if final and issubclass(value, Kernel | Criterion | ThresholdRule | BaseEstimator):
                is_there = _parts.type_name(value) in admitted
                assert is_there != (value is looms.Intervals)  # of a regressor of another library


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
    assert calls == ["fsync", "replace", "fsync"]  # the file, its name, the folder


def test_saving_where_there_is_no_folder(tmp_path):
    with pytest.raises(ModelFileError, match=r"cannot be written \(No such file or directory\)"):
        save_model(tmp_path / "nowhere" / "m.skops", fitted(), {})


def test_a_model_in_the_place_of_the_path(tmp_path):
    with pytest.raises(TypeError, match="the path first, then the model; got Pipeline as path"):
        save_model(fitted(), tmp_path / "m.skops", {})


def test_metadata_that_json_cannot_hold(tmp_path):
    with pytest.raises(TypeError):
        save_model(tmp_path / "m.skops", fitted(), {"array": np.ones(2)})
    assert not os.listdir(tmp_path)


def test_a_function_in_the_model_is_refused_when_saving(tmp_path):
    model = fitted()
    object.__setattr__(model[-1].fitted_.leading, "kernel", as_kernel(np.save))
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
        (pickle.dumps({"a": 1}), "it is not a model file. looms fit and the models' save"),
    ],
)
def test_not_a_zip_file(tmp_path, data, problem):
    with pytest.raises(ModelFileError, match=problem):
        load_model(written(tmp_path, data))


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
    with pytest.raises(ModelFileError, match=r"not a model file, or not a whole one \("):
        load_model(written(tmp_path, zipped(**members)))


def test_a_skops_file_of_others(tmp_path):
    with pytest.raises(ModelFileError, match="a skops file, but not one of looms"):
        load_model(written(tmp_path, skops.io.dumps(StandardScaler())))


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
    content = {"looms_model_file": 1, "metadata": "{}", "model": StandardScaler(), **changes}
    with pytest.raises(ModelFileError, match=problem):
        load_model(written(tmp_path, skops.io.dumps(content)))


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(ModelFileError, match="no such file"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="this is a folder"):
        load_model(tmp_path)


def test_another_version_of_scikit_learn_is_one_warning(tmp_path, monkeypatch):
    model = make_pipeline(StandardScaler(), KernelRegressor(mu=1e-3)).fit(X, Y)
    monkeypatch.setattr("sklearn.base.__version__", "1.0")
    save_model(tmp_path / "m.skops", model, {})
    monkeypatch.undo()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_model(tmp_path / "m.skops")
    assert [w.category for w in caught] == [UserWarning]
    assert "saved with scikit-learn 1.0" in str(caught[0].message)
    assert not any(issubclass(w.category, InconsistentVersionWarning) for w in caught)


# Fitted state -----------------------------------------------------------------------

LABELS = np.array(["a", "b", "c"] * 4)
POINTS = np.random.default_rng(0).normal(size=(12, 2))
FRAME = pd.DataFrame({"n": [*range(11), None], "k": [*"abcdefabcde", None]})
MIXED = pd.DataFrame(
    {"n": np.random.default_rng(2).normal(size=40), "gaps": [None, 1.0, 2.0, 4.0] * 10}
).assign(k=[*"abcde"] * 8, day=pd.date_range("2026-01-01", periods=40))
MEANS = np.exp(MIXED["n"] + 0.2 * np.sin(9 * MIXED["n"]))
SIGNS = np.where(MIXED["n"] + (MIXED["k"] < "c") > 0.5, "yes", "no")


MACHINES = {
    "two classes": lambda: KernelClassifier("linear").fit(POINTS, LABELS == "a"),
    "in folds": lambda: KernelClassifier("linear").fit(POINTS, LABELS == "a"),
    "nested": lambda: evaluated(
        KernelClassifier("linear", cv=3, search=Search(method="grid")).fit(POINTS, LABELS == "a"),
        nested=True,
    ),
    "three classes": lambda: KernelClassifier("ard", calibration="isotonic").fit(POINTS, LABELS),
    "regression": lambda: KernelRegressor("linear", mu=0.1).fit(np.eye(6), np.arange(6)),
    "stack": lambda: stacked_regressor(["linear", "rbf"]).fit(
        POINTS,
        POINTS[:, 0] + np.abs(POINTS[:, 1]) + 0.4 * np.random.default_rng(1).normal(size=12),
    ),
    "trees": lambda: BoostedTreesRegressor().fit(
        np.linspace(0, 1, 96).reshape(48, 2), np.sin(np.arange(48) / 9)
    ),
    "transformed": lambda: evaluated(
        TabularRegressor(["linear"], target=["none", "log"]).fit(POINTS, np.exp(POINTS[:, 0])),
        nested=True,
    ),
    "classes of a table": lambda: evaluated(
        TabularClassifier(["linear", "rbf"]).fit(MIXED, SIGNS), nested=True
    ),
    "numbers of a table": lambda: TabularRegressor(["linear"]).fit(MIXED, MEANS),
    "svm": lambda: KernelClassifier("linear", loss="hinge").fit(POINTS, LABELS),
    "nested svm": lambda: evaluated(
        KernelClassifier("linear", loss="squared_hinge").fit(POINTS, LABELS), nested=True
    ),
    "pool": lambda: NonconformityClassifier().fit(POINTS, LABELS == "a"),
    "pool of three": lambda: NonconformityClassifier(validation="loo").fit(POINTS, LABELS),
    "table": lambda: TablePreprocessor().fit(FRAME),
    "scaler": lambda: MaxAbsScaler().fit(POINTS),
}


@functools.cache
def machine(name):
    with warnings.catch_warnings():
        for expected in (looms.BoundWarning, looms.OneClassWarning):
            warnings.simplefilter("ignore", expected)
        return MACHINES[name]()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.slow
def test_what_was_fitted_loads_and_predicts_the_same(tmp_path, name):
    model = machine(name)
    save_model(tmp_path / "m.skops", model, {})
    loaded = load_model(tmp_path / "m.skops").model
    new = {"table": FRAME, "regression": np.eye(6)}.get(name, MIXED if "table" in name else POINTS)
    method = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_array_equal(getattr(loaded, method)(new), getattr(model, method)(new))


CONTRADICTIONS = {
    "weights of other rows": ("rows.weight", np.ones(3)),
    "targets of other classes": ("rows.targets", np.ones((12, 2))),
    "an outcome of numbers": ("rows.outcome", Numbers()),
    "units of other rows": ("units", Units.rows(5)),
    "outputs of other rows": ("loo_outputs", np.ones(3)),
    "no members": ("members", ()),
    "rows that are none": ("rows", 3),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_parts_of_a_fit_that_do_not_agree_are_refused(tmp_path, case):
    name, value = CONTRADICTIONS[case]
    model = copy.deepcopy(machine("two classes"))
    owner, _, attribute = f"fitted_.{name}".rpartition(".")
    object.__setattr__(operator.attrgetter(owner)(model), attribute, value)
    save_unchecked(tmp_path / "m.skops", model)
    with pytest.raises(ModelFileError, match="its content is damaged"):
        load_model(tmp_path / "m.skops")


def test_a_stack_comes_back_whole(tmp_path):
    model = machine("stack")
    save_model(tmp_path / "m.skops", model, {})
    loaded = load_model(tmp_path / "m.skops").model
    assert [one.weight for one in loaded.members_] == [one.weight for one in model.members_]
    assert loaded.candidates_[loaded.best_index_].kernel is loaded.kernel_
    assert loaded.evaluate() == pytest.approx(model.evaluate())
    ours, theirs = (evaluated(one).predict_interval(POINTS, 0.8) for one in (loaded, model))
    np.testing.assert_allclose(ours, theirs)


# Types that the caller admits -----------------------------------------------------


@pytest.mark.parametrize("trusted", [[PCA], ["sklearn.decomposition._pca.PCA"]])
def test_other_types_are_admitted_by_name_only(tmp_path, trusted):
    model = make_pipeline(PCA(1), KernelRegressor(mu=1e-3)).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"holds sklearn\.decomposition.*PCA.*in trusted"):
        save_model(tmp_path / "m.skops", model, {})
    save_model(tmp_path / "m.skops", model, {}, trusted=trusted)
    with pytest.raises(ModelFileError, match=r"names sklearn\.decomposition.*trusted=\[\.\.\.\]"):
        load_model(tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops", trusted=trusted).model
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_functions_are_admitted_by_name_only(tmp_path):
    candidate = TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1)
    model, path = stacked_regressor([candidate]).fit(X, Y - Y.min()), tmp_path / "m.skops"
    trusted = {TransformedTargetRegressor, Ridge, "numpy.log1p", "numpy.expm1"}
    for unnamed in sorted(trusted, key=str):
        with pytest.raises(ModelFileError, match="may not hold"):
            save_model(path, model, {}, trusted=trusted - {unnamed})
    save_model(path, model, {}, trusted=trusted)
    for unnamed in ("numpy.expm1", "numpy.log1p"):
        with pytest.raises(ModelFileError, match=f"names {unnamed}"):
            load_model(path, trusted=trusted - {unnamed})
    loaded = load_model(path, trusted=trusted).model
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_class_of_a_script_cannot_be_imported_elsewhere(tmp_path, monkeypatch):
    class Script(PCA):
        pass

    Script.__module__, Script.__qualname__ = "__main__", "Script"
    monkeypatch.setattr(sys.modules["__main__"], "Script", Script, raising=False)
    path = tmp_path / "m.skops"
    save_model(path, make_pipeline(Script(1)).fit(X), {}, trusted=[Script])
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"cannot be imported here .*__main__.*Script"):
        load_model(path, trusted=["__main__.Script"])


# Size ------------------------------------------------------------------------


def test_the_limit_can_be_raised(tmp_path):
    save_model(tmp_path / "m.skops", fitted(), {})
    with pytest.raises(ModelFileError, match=r"larger than 1000 bytes.*allow more by max_bytes"):
        load_model(tmp_path / "m.skops", max_bytes=1000)
    load_model(tmp_path / "m.skops", max_bytes=10**7)


def wide_table(n_rows, n_columns, texts=0):
    """A table of which the last columns hold texts, some rare or lacking, and two classes."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, n_columns)).cumsum(axis=1)
    table = pd.DataFrame(numbers, columns=[f"wave {k}" for k in range(n_columns)])
    for name in table.columns[n_columns - texts :]:
        values = np.array([*"abcdefgh", None], dtype=object)
        table[name] = values[rng.integers(0, 9, n_rows)]
    middle = numbers[:, n_columns // 2]
    return table, np.where(middle + middle.std() * rng.normal(size=n_rows) > 0, "yes", "no")


def test_columns_are_arrays_in_the_file():
    """Kinds, ranges, names, remarks, categories: the list of types knows nothing of each column."""

    def size(n_columns):
        table, _ = wide_table(60, 2 * n_columns, n_columns)
        table = table.round().astype({table.columns[0]: int}).assign(row=np.arange(60))
        table = table.assign(**{f"row {k}": np.arange(60) + k for k in range(n_columns)})
        prepare = TablePreprocessor(max_categories=6).fit(table)
        with zipfile.ZipFile(io.BytesIO(skops.io.dumps(prepare))) as archive:
            return archive.getinfo("schema.json").file_size

    assert size(40) < 1.1 * size(4)


@pytest.mark.parametrize(("n_rows", "n_columns", "texts"), [(60, 2000, 0), (1000, 200, 20)])
@pytest.mark.slow
def test_an_evaluated_model_of_many_columns_loads(tmp_path, n_rows, n_columns, texts):
    table, labels = wide_table(n_rows, n_columns, texts)
    model = TabularClassifier(["linear"]).fit(table, labels)
    model.evaluate()
    model.save(tmp_path / "m.skops")
    table.head(30).to_pickle(tmp_path / "rows.pkl")
    code = (
        "import os, sys, numpy as np, pandas as pd, looms; os.chdir(sys.argv[1]); "
        "rows = pd.read_pickle('rows.pkl'); "
        "np.save('p.npy', looms.load('m.skops').predict_proba(rows))"
    )
    in_a_fresh_process(code, tmp_path)
    assert np.array_equal(np.load(tmp_path / "p.npy"), model.predict_proba(table.head(30)))


# Files of another version ----------------------------------------------------------


def test_a_newer_looms_is_named(tmp_path):
    path = tmp_path / "m.skops"
    save_model(path, fitted(), {"looms_version": "99.1rc2"})
    with pytest.warns(UserWarning, match=r"saved with looms 99\.1rc2, read with .* upgrade"):
        load_model(path)
    model = copy.deepcopy(machine("two classes"))
    object.__setattr__(model.fitted_, "members", ())
    save_unchecked(path, model, {"looms_version": "99.1rc2"})
    with pytest.raises(ModelFileError, match=r"damaged .*looms wrote it \(99\.1rc2; .* upgrade"):
        load_model(path)
    save_model(path, make_pipeline(PCA()), {"looms_version": "99.1rc2"}, trusted=[PCA])
    with pytest.raises(ModelFileError, match=r"names .*looms wrote it \(99\.1rc2; .* upgrade"):
        load_model(path)


@pytest.mark.parametrize("version", ["0.0.7", looms.__version__])
def test_classes_of_another_version_are_no_attack(tmp_path, version):
    path = tmp_path / "m.skops"
    save_model(path, fitted(), {"looms_version": version})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    renamed = members["schema.json"].replace(b'"looms.fitted._fitted"', b'"looms.fitted._older"')
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, "schema.json": renamed}.items():
            archive.writestr(name, content)
    problem = r"names looms\.fitted\._older\.\w+, .*other.* of looms .*wrote it.* fit .* anew"
    with pytest.raises(ModelFileError, match=f"(?i){problem}") as caught:
        load_model(path)
    assert "trusted" not in str(caught.value)


def test_parts_that_another_version_does_not_write_are_named(tmp_path):
    model = copy.deepcopy(machine("two classes"))
    del vars(model.fitted_.leading)["mu"]
    save_unchecked(tmp_path / "m.skops", model, {"looms_version": "0.0.7"})
    with pytest.raises(ModelFileError, match=r"mu is not there.*wrote it \(0\.0\.7; .* anew"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize("version", ["0", looms.__version__, "boo", 7, None])
def test_other_versions_are_not_newer(tmp_path, version):
    model = fitted()
    save_model(tmp_path / "m.skops", model, {"looms_version": version})
    again = load_model(tmp_path / "m.skops").model
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_without_skops_the_message_names_the_extra(tmp_path, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="skops")

    monkeypatch.setattr("looms._optional.import_module", absent)
    with pytest.raises(ImportError, match=r'needs skops, .* pip install "\.\[cli\]"'):
        load_model(tmp_path / "m.skops")
