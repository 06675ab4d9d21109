"""Model files: what was fitted comes back, files are written whole, other versions are named."""

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
from evaluated import evaluated
from sklearn import model_selection as split
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
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
from looms.folds import ForwardSplit, GapKFold
from looms.kernels import RBF, Kernel, Linear
from looms.kernels._names import as_kernel
from looms.model_files import ModelFileError, _files, _parts, load_model, save_model
from looms.optimize._search import StopReason
from looms.tables import TablePreprocessor
from looms.threshold import ThresholdRule
from looms.units import Units

X = np.arange(12.0).reshape(6, 2) ** 1.5
Y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0])
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(24, 2))
NUMBERS = POINTS + RNG.normal(size=(24, 2))
LABELS = np.array([*"abc"] * 8)
FEW, OF_FEW = POINTS[:12], LABELS[:12]
GRID = {"C": [1.0, 8.0], "gamma": [0.1, 1.0]}
MIXED = pd.DataFrame({"n": RNG.normal(size=40), "gaps": [None, 1.0, 2.0, 4.0] * 10}).assign(
    k=[*"abcde"] * 8, day=pd.date_range("2026-01-01", periods=40)
)
MEANS = np.exp(MIXED["n"] + 0.2 * np.sin(9 * MIXED["n"]))
SIGNS = np.where(MIXED["n"] + (MIXED["k"] < "c") > 0.5, "yes", "no")


def pipeline():
    kernel = RBF(gamma=2.0) * Linear() + as_kernel("normalized_ard") + as_kernel("ranked_rbf")
    return make_pipeline(StandardScaler(), KernelRegressor(kernel, mu=0.1)).fit(X, Y)


def prepared(transformer):
    """A pipeline, fitted to rows of which one has a gap in the first column."""
    rows = np.where(np.arange(48).reshape(24, 2) == 4, np.nan, POINTS)
    model = make_pipeline(transformer, KernelRegressor("linear", mu=1e-3))
    return model.fit(rows, NUMBERS[:, 0])


def chosen(target, method="gradient", groups=None, kernels=("linear", "rbf"), **options):
    """An evaluated choice among kernels, for a target: classes, numbers, or two of these."""
    one, several = KernelRegressor, stacked_regressor
    if target == "classes":
        one, several = KernelClassifier, stacked_classifier
    y = {"classes": NUMBERS[:, 0] > 0, "numbers": NUMBERS[:, 0], "two targets": NUMBERS}[target]
    candidates = [one(kernel, search=Search(method=method)) for kernel in kernels]
    return evaluated(several(candidates, combine="best", **options).fit(POINTS, y, groups=groups))


THREE = np.array(["Ann", "Bo", "Cy"] * 8)
MODELS = {
    "pipeline": pipeline,
    "two classes": lambda: KernelClassifier("linear").fit(POINTS, LABELS == "a"),
    "a weight of false": lambda: KernelClassifier(mu=0.1, class_weight={False: 2.0, True: 1.0}).fit(
        POINTS, LABELS == "a"
    ),
    "nested": lambda: evaluated(
        KernelClassifier("linear", cv=3, search=Search(method="grid")).fit(POINTS, LABELS == "a"),
        nested=True,
    ),
    "three classes": lambda: KernelClassifier("ard", calibration="isotonic").fit(POINTS, LABELS),
    "numbers": lambda: KernelRegressor("rbf").fit(POINTS, NUMBERS[:, 0]),
    "stack": lambda: evaluated(stacked_regressor(["linear", "rbf"]).fit(POINTS, NUMBERS[:, 0])),
    "classes in folds": lambda: chosen("classes", cv=3, kernels=["linear"]),
    "repetitions": lambda: chosen("numbers", cv="2x3", kernels=["linear"]),
    "two targets in folds by number": lambda: chosen(
        "two targets", cv=np.arange(24) % 4, kernels=["linear"]
    ),
    "classes in groups": lambda: chosen("classes", "grid", THREE),
    "trees": lambda: BoostedTreesRegressor().fit(POINTS, NUMBERS[:, 0]),
    "transformed": lambda: evaluated(
        TabularRegressor(["linear"], target=["none", "log"]).fit(FEW, np.exp(FEW[:, 0])),
        nested=True,
    ),
    "classes of a table": lambda: evaluated(
        TabularClassifier(["linear"]).fit(MIXED, SIGNS), nested=True
    ),
    "numbers of a table": lambda: TabularRegressor(["linear"]).fit(MIXED, MEANS),
    "svm": lambda: KernelClassifier("linear", loss="hinge").fit(FEW, OF_FEW),
    "nested svm": lambda: evaluated(
        KernelClassifier("linear", loss="squared_hinge").fit(FEW, OF_FEW), nested=True
    ),
    "pool": lambda: NonconformityClassifier().fit(FEW, OF_FEW == "a"),
    "pool of three": lambda: NonconformityClassifier(GRID, validation="loo").fit(FEW, OF_FEW),
    "table": lambda: TablePreprocessor().fit(MIXED),
    "scaler": lambda: MaxAbsScaler().fit(POINTS),
    "indicators of gaps": lambda: prepared(
        make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    ),
    "a constant for gaps": lambda: prepared(SimpleImputer(strategy="constant", fill_value=0.0)),
    "the remainder passed on": lambda: prepared(
        ColumnTransformer([("a", SimpleImputer(), [0])], remainder="passthrough")
    ),
    "the remainder scaled": lambda: prepared(
        ColumnTransformer([("a", StandardScaler(), [1])], remainder=SimpleImputer())
    ),
}


@functools.cache
def fitted(name):
    with warnings.catch_warnings():
        for expected in (looms.BoundWarning, looms.OneClassWarning):
            warnings.simplefilter("ignore", expected)
        return MODELS[name]()


def rows_of(name):
    return MIXED if "table" in name else X if name == "pipeline" else POINTS


def saved(path, model, metadata=None, **options):
    """The model, saved and loaded."""
    save_model(path, model, metadata, **options)
    return load_model(path, **options).model


def said(model, rows):
    """All that a model says: of new rows, of those held out, and its scores."""
    last = model[-1] if hasattr(model, "steps") else model
    values = {"new": (model.predict if hasattr(model, "predict") else model.transform)(rows)}
    if getattr(last, "units_", None) is not None:
        values |= {name: getattr(last, name).outputs for name in ("held_out_", "loo_")}
        values |= {name: getattr(last.units_, name) for name in ("number", "tested", "clusters")}
        values |= {"kernel": repr(last.kernel_), "parameters": repr(last)}
    if getattr(last, "_scores", None):
        scores = last.evaluate()
        values |= {"scores": dict(scores), "errors": dict(scores.standard_errors)}
        values |= {"kind": scores.kind, "summary": repr(scores)}
        with_sets = hasattr(last, "predict_set")
        values["sure"] = (last.predict_set if with_sets else last.predict_interval)(rows, 0.7)
    return values


FAST = ("pipeline", "two classes", "a weight of false", "table", "scaler", "indicators of gaps")


@pytest.mark.parametrize(
    "name",
    [*FAST, *(pytest.param(one, marks=pytest.mark.slow) for one in MODELS if one not in FAST)],
)
def test_what_was_fitted_comes_back(tmp_path, name):
    model, rows = fitted(name), rows_of(name)
    loaded = saved(tmp_path / "m.skops", model)
    np.testing.assert_equal(said(loaded, rows), said(model, rows))


def test_metadata_and_read_only_arrays_come_back(tmp_path):
    metadata = {"target": "y", "columns": {"a": "int64"}, "n_rows": 6, "none": None}
    save_model(tmp_path / "m.skops", fitted("pipeline"), metadata)
    again = load_model(tmp_path / "m.skops")
    assert again.metadata == {**metadata, "looms_version": looms.__version__}
    assert not again.model[-1].loo_.outputs.flags.writeable


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
    assert not os.listdir(tmp_path)


def test_the_record_of_a_search_comes_back(tmp_path):
    ours, theirs = saved(tmp_path / "m.skops", fitted("numbers")), fitted("numbers")
    assert ours.selection_.stop_reason is theirs.selection_.stop_reason
    (_, search), (_, expected) = ours.selection_.stages[-1], theirs.selection_.stages[-1]
    assert [p.value for p in search.history] == [p.value for p in expected.history]
    assert all(pickle.loads(pickle.dumps(reason)) is reason for reason in StopReason)


GROUPS = np.arange(6) // 2
SPLITTERS = [
    *(
        split.KFold(3, shuffle=True, random_state=0),
        split.RepeatedKFold(n_splits=3, random_state=0),
    ),
    *(split.GroupKFold(3), split.LeavePOut(2), split.LeaveOneGroupOut(), split.LeavePGroupsOut(1)),
    *(
        split.TimeSeriesSplit(2),
        split.PredefinedSplit(GROUPS),
        split.ShuffleSplit(2, random_state=0),
    ),
]


@pytest.mark.parametrize("cv", SPLITTERS, ids=repr)
def test_splitters_of_scikit_learn_come_back(tmp_path, cv):
    loaded = saved(tmp_path / "m.skops", KernelRegressor("linear", cv=cv))
    groups = GROUPS if "Group" in type(cv).__name__ else None
    ours, theirs = (list(one.split(X, Y, groups)) for one in (loaded.cv, cv))
    np.testing.assert_equal(ours, theirs)


def test_splits_and_windows_come_back(tmp_path):
    days = pd.Series(pd.date_range("2020", periods=len(X)))
    several = [list(split.KFold(3).split(X)), GapKFold(3, 0.1, np.arange(len(X)) / 2)]
    several += [GapKFold(3, timedelta(1), [day.date() for day in days])]
    several += [GapKFold(3, pd.Timedelta(days=1), of) for of in (days, days.dt.tz_localize("UTC"))]
    several += [GapKFold(3, 1, held(range(len(X)))) for held in (pd.Series, pl.Series, pa.array)]
    several += [ForwardSplit(3, 1, days.dt.day), split.TimeSeriesSplit(3)]
    several += [GapKFold(3, 1, [2**70 + k for k in range(len(X))])]
    several += [GapKFold(3, Decimal("0.5"), [Fraction(k, 3) for k in range(len(X))])]
    for cv in several:
        model = KernelRegressor("linear", cv=cv).fit(X, Y)
        loaded = saved(tmp_path / "m.skops", model)
        np.testing.assert_array_equal(loaded.units_.codes, model.units_.codes)
        np.testing.assert_array_equal(loaded.units_.uncounted, model.units_.uncounted)
        np.testing.assert_array_equal(loaded.fit(X, Y).units_.codes, model.units_.codes)


@pytest.mark.slow
def test_scores_come_back_as_nested_and_not(tmp_path):
    model = copy.deepcopy(fitted("stack"))
    kinds = [model.evaluate(nested=nested).kind for nested in (False, True)]
    loaded = saved(tmp_path / "m.skops", model)
    assert [loaded.evaluate(nested=nested).kind for nested in (False, True)] == kinds
    assert len({*kinds}) == 2
    assert [one.weight for one in loaded.members_] == [one.weight for one in model.members_]
    assert loaded.candidates_[loaded.best_index_].kernel is loaded.kernel_


@pytest.mark.slow
def test_a_fresh_process_predicts_the_same(tmp_path):
    """Nothing but the module is imported there; the types in the files must be known all the same.

    One has many columns and was evaluated.
    """
    wide = pd.DataFrame(RNG.normal(size=(60, 400))).add_prefix("wave ")
    wide = wide.assign(**{f"k{k}": RNG.choice([*"abcde", None], 60) for k in range(20)})
    of_many = evaluated(
        TabularClassifier(["linear"]).fit(wide, wide["wave 7"] + RNG.normal(size=60) > 0)
    )
    names = ("pipeline", "two classes", "classes of a table", "numbers of a table")
    models = {name: (fitted(name), rows_of(name)) for name in names} | {"wide": (of_many, wide)}
    for name, (model, rows) in models.items():
        save_model(tmp_path / f"{name}.skops", model)
        pd.to_pickle(rows, tmp_path / f"{name}.rows")
    code = (
        "import pickle, sys; from pathlib import Path; from looms.model_files import load_model\n"
        "for path in Path(sys.argv[1]).glob('*.skops'):\n"
        "    model = load_model(path).model\n"
        "    predicted = model.predict(pickle.loads(path.with_suffix('.rows').read_bytes()))\n"
        "    path.with_suffix('.predicted').write_bytes(pickle.dumps(predicted))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(looms.__file__).parents[1])}
    command = [sys.executable, "-c", code, tmp_path]
    assert subprocess.run(command, env=environment, capture_output=True).stderr == b""
    for name, (model, rows) in models.items():
        predicted = pd.read_pickle(tmp_path / f"{name}.predicted")
        np.testing.assert_array_equal(predicted, model.predict(rows))


def test_every_kernel_and_criterion_of_looms_may_be_in_a_file():
    admitted = set().union(*_parts.admitted().values())
    for room in (looms.kernels, looms.criteria, looms.threshold, looms.estimators):
        for value in vars(room).values():
            final = isinstance(value, type) and not inspect.isabstract(value)
            if final and issubclass(value, Kernel | Criterion | ThresholdRule | BaseEstimator):
                is_there = _parts.type_name(value) in admitted
                assert is_there != (value is looms.Intervals)  # of a regressor of another library


def test_columns_are_arrays_in_the_file():
    """Kinds, ranges, names, remarks, categories: the list of types knows nothing of each column."""

    def size(n):
        columns = {f"{k}": RNG.normal(size=60) for k in range(n)}
        columns |= {f"text {k}": RNG.choice([*"abcdefgh", None], 60) for k in range(n)}
        columns |= {f"row {k}": np.arange(60) + k for k in range(n)}
        prepare = TablePreprocessor(max_categories=6).fit(pd.DataFrame(columns))
        with zipfile.ZipFile(io.BytesIO(skops.io.dumps(prepare))) as archive:
            return archive.getinfo("schema.json").file_size

    assert size(40) < 1.1 * size(4)


# Writing --------------------------------------------------------------------------


def with_function():
    model = copy.deepcopy(fitted("pipeline"))
    object.__setattr__(model[-1].fitted_.leading, "kernel", as_kernel(np.save))
    return model


def with_a_part_of_another_room():
    """Which happens to be imported here, and is not where a file is read."""
    model = copy.deepcopy(fitted("pipeline"))
    model[-1].data_ = Table(None, None, "t")
    return model


NOT_SAVED = {
    "a function": (with_function, {}, ModelFileError, r"numpy\.save"),
    "another room": (with_a_part_of_another_room, {}, ModelFileError, r"looms\.datasets.*Table"),
    "processes": (
        lambda: ColumnTransformer([("all", "passthrough", [0])]).fit(X).set_params(n_jobs=2),
        *({}, ModelFileError, "n_jobs"),
    ),
    "metadata": (pipeline, {"array": np.ones(2)}, TypeError, "array"),
}


@pytest.mark.parametrize("case", NOT_SAVED)
def test_what_reading_would_refuse_is_not_saved(tmp_path, case):
    made, metadata, error, named = NOT_SAVED[case]
    with pytest.raises(error, match=named):
        save_model(tmp_path / "m.skops", made(), metadata)
    assert not os.listdir(tmp_path)


def test_the_file_is_synced_before_it_gets_its_name_and_nothing_stays_beside(tmp_path, monkeypatch):
    """`test_faults.py` makes each of these operations fail: the old file stays whole."""
    (tmp_path / "m.skops").write_text("old")
    calls, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr("looms._files.os.fsync", lambda fd: (calls.append("fsync"), fsync(fd)))
    monkeypatch.setattr(
        "looms._files.os.replace", lambda a, b: (calls.append("replace"), replace(a, b))
    )
    saved(tmp_path / "m.skops", fitted("pipeline"))
    assert calls == ["fsync", "replace", "fsync"]  # the file, its name, the folder
    assert os.listdir(tmp_path) == ["m.skops"]


def test_where_no_file_can_be_written(tmp_path):
    with pytest.raises(ModelFileError, match="No such file or directory"):
        save_model(tmp_path / "nowhere" / "m.skops", fitted("pipeline"))
    with pytest.raises(TypeError, match="Pipeline"):
        save_model(fitted("pipeline"), tmp_path / "m.skops")


# Types that the caller admits -----------------------------------------------------


@pytest.mark.parametrize("trusted", [[PCA], ["sklearn.decomposition._pca.PCA"]])
def test_other_types_are_admitted_by_name_only(tmp_path, trusted):
    model, path = make_pipeline(PCA(1), KernelRegressor(mu=1e-3)).fit(X, Y), tmp_path / "m.skops"
    with pytest.raises(ModelFileError, match=r"holds sklearn\.decomposition.*PCA.*in trusted"):
        save_model(path, model)
    loaded = saved(path, model, trusted=trusted)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ModelFileError, match=r"names sklearn\.decomposition.*trusted=\[\.\.\.\]"):
        load_model(path)


def test_functions_are_admitted_by_name_only(tmp_path):
    candidate = TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1)
    model, path = stacked_regressor([candidate]).fit(X, Y - Y.min()), tmp_path / "m.skops"
    trusted = {TransformedTargetRegressor, Ridge, "numpy.log1p", "numpy.expm1"}
    for unnamed in sorted(trusted, key=str):
        with pytest.raises(ModelFileError, match="may not hold"):
            save_model(path, model, {}, trusted=trusted - {unnamed})
    loaded = saved(path, model, trusted=trusted)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    for unnamed in ("numpy.expm1", "numpy.log1p"):
        with pytest.raises(ModelFileError, match=f"names {unnamed}"):
            load_model(path, trusted=trusted - {unnamed})


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


# Parts that do not agree, and other versions --------------------------------------


def save_unchecked(path, model, metadata=None):
    """Save a model as an adversary would, who does not check what it holds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_files, "check", lambda *_: None)
        save_model(path, model, metadata)


CONTRADICTIONS = {
    "weights of other rows": ("rows.weight", np.ones(3)),
    "targets of other classes": ("rows.targets", np.ones((24, 2))),
    "an outcome of numbers": ("rows.outcome", Numbers()),
    "units of other rows": ("units", Units.rows(5)),
    "rows that are none": ("rows", 3),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_parts_of_a_fit_that_do_not_agree_are_refused(tmp_path, case):
    name, value = CONTRADICTIONS[case]
    model = copy.deepcopy(fitted("two classes"))
    owner, _, attribute = f"fitted_.{name}".rpartition(".")
    object.__setattr__(operator.attrgetter(owner)(model), attribute, value)
    save_unchecked(tmp_path / "m.skops", model)
    with pytest.raises(ModelFileError, match="its content is damaged"):
        load_model(tmp_path / "m.skops")


def test_a_newer_looms_is_named(tmp_path):
    path, newer = tmp_path / "m.skops", {"looms_version": "99.1rc2"}
    save_model(path, fitted("pipeline"), newer)
    with pytest.warns(UserWarning, match=r"saved with looms 99\.1rc2, read with .* upgrade"):
        load_model(path)
    model = copy.deepcopy(fitted("two classes"))
    object.__setattr__(model.fitted_, "members", ())
    save_unchecked(path, model, newer)
    with pytest.raises(ModelFileError, match=r"damaged .*looms wrote it \(99\.1rc2; .* upgrade"):
        load_model(path)
    save_model(path, make_pipeline(PCA()), newer, trusted=[PCA])
    with pytest.raises(ModelFileError, match=r"names .*looms wrote it \(99\.1rc2; .* upgrade"):
        load_model(path)


@pytest.mark.parametrize("version", ["0.0.7", looms.__version__])
def test_classes_of_another_version_are_no_attack(tmp_path, version):
    path = tmp_path / "m.skops"
    save_model(path, fitted("pipeline"), {"looms_version": version})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    renamed = members["schema.json"].replace(b'"looms.fitted._fitted"', b'"looms.fitted._older"')
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, "schema.json": renamed}.items():
            archive.writestr(name, content)
    with pytest.raises(
        ModelFileError, match=r"looms\.fitted\._older\.\w+,.* fit .* anew"
    ) as caught:
        load_model(path)
    assert "trusted" not in str(caught.value)


def test_parts_that_another_version_does_not_write_are_named(tmp_path):
    model = copy.deepcopy(fitted("two classes"))
    del vars(model.fitted_.leading)["mu"]
    save_unchecked(tmp_path / "m.skops", model, {"looms_version": "0.0.7"})
    with pytest.raises(ModelFileError, match=r"mu is not there.*wrote it \(0\.0\.7; .* anew"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize("version", ["0", "boo", 7, None])
def test_other_versions_are_not_newer(tmp_path, version):
    again = saved(tmp_path / "m.skops", fitted("pipeline"), {"looms_version": version})
    np.testing.assert_array_equal(again.predict(X), fitted("pipeline").predict(X))


def test_another_version_of_scikit_learn_is_one_warning(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.base.__version__", "1.0")
    save_model(tmp_path / "m.skops", fitted("pipeline"))
    monkeypatch.undo()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_model(tmp_path / "m.skops")
    assert [w.category for w in caught] == [UserWarning]
    assert "saved with scikit-learn 1.0" in str(caught[0].message)


def test_without_skops_the_message_names_the_extra(tmp_path, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="skops")

    monkeypatch.setattr("looms._optional.import_module", absent)
    with pytest.raises(ImportError, match=r'needs skops, .* pip install "\.\[cli\]"'):
        load_model(tmp_path / "m.skops")
