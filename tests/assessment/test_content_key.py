"""Keys: equal for equal content, in every process; different for any difference."""

import functools
import logging
import os
import re
import subprocess
import sys
import threading
import types
from collections import deque
from contextlib import redirect_stdout
from decimal import Decimal
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import get_scorer, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

from looms import KernelClassifier
from looms.assessment._content_key import content_key, package_versions
from looms.held_out import HeldOut
from looms.kernels import RBF


def key(thing):
    return content_key(thing=thing)


def score_a(y, f, power=2):
    return float(np.mean(np.abs(y - f) ** power))


def score_b(y, f, power=2):
    return float(np.mean(np.abs(y + f) ** power))


def frame(**changes):
    columns = {"a": [1.0, 2.0, np.nan], "b": ["x", None, "y"], "c": pd.Categorical(["u", "v", "u"])}
    return pd.DataFrame({**columns, **changes})


# Each of these is made twice, and differs from all others.
THINGS = {
    "none": lambda: None,
    "true": lambda: True,
    "one": lambda: 1,
    "one as a float": lambda: 1.0,
    "one as text": lambda: "1",
    "bytes": lambda: b"1",
    "list": lambda: [1, 2],
    "nested list": lambda: [[1], 2],
    "long text": lambda: ["ab", "c"],
    "other text": lambda: ["a", "bc"],
    "dict": lambda: {"a": 1, "b": 2},
    "other dict": lambda: {"a": 2, "b": 1},
    "set": lambda: {"x", "y", "z"},
    "floats": lambda: np.arange(6.0),
    "other shape": lambda: np.arange(6.0).reshape(2, 3),
    "transposed": lambda: np.arange(6.0).reshape(3, 2).T,
    "float32": lambda: np.arange(6.0, dtype=np.float32),
    "integers": lambda: np.arange(6),
    "one bit": lambda: np.nextafter(np.arange(6.0), 1.0),
    "objects": lambda: np.array(["a", None, 1.0], dtype=object),
    "strings": lambda: np.array(["a", "b"]),
    "sparse": lambda: sparse.csr_array(np.eye(3)),
    "frame": frame,
    "frame, other value": lambda: frame(a=[1.0, 2.5, np.nan]),
    "frame, other text": lambda: frame(b=["x", None, "z"]),
    "frame, other dtype": lambda: frame(a=pd.array([1, 2, None], dtype="Int64")),
    "frame, other name": lambda: frame().rename(columns={"a": "A"}),
    "frame, dates": lambda: frame(a=pd.to_datetime(["2020-01-01", None, "2020-01-03"])),
    "frame, other order of categories": lambda: frame(
        c=pd.Categorical(["u", "v", "u"], categories=["v", "u"])
    ),
    "frame, ordered categories": lambda: frame(c=pd.Categorical(["u", "v", "u"], ordered=True)),
    "series": lambda: pd.Series([1.0, 2.0]),
    "machine": lambda: stacked_classifier(["linear", "rbf"], combine="best"),
    "other machine": lambda: stacked_classifier(["linear", "cubic"], combine="best"),
    "kernel object": lambda: KernelClassifier(RBF(gamma=0.5)),
    "other kernel object": lambda: KernelClassifier(RBF(gamma=0.25)),
    "pipeline": lambda: make_pipeline(StandardScaler(), KernelClassifier()),
    "other pipeline": lambda: make_pipeline(StandardScaler(with_mean=False), KernelClassifier()),
    "forest": lambda: RandomForestClassifier(random_state=np.random.RandomState(0)),
    "other forest": lambda: RandomForestClassifier(random_state=np.random.RandomState(1)),
    "generator": lambda: np.random.default_rng(0),
    "pattern": lambda: re.compile("a" * 300),
    "other pattern": lambda: re.compile("a" * 301),
    "time": lambda: pd.Timestamp("2020-01-01"),
    "other time": lambda: pd.Timestamp("2020-01-02"),
    "time in a zone": lambda: pd.Timestamp("2020-01-01", tz="UTC"),
    "no time": lambda: pd.NaT,
    "no value": lambda: pd.NA,
    "decimal": lambda: Decimal("0.10"),
    "queue": lambda: deque([1, 2]),
    "scorer": lambda: make_scorer(score_a),
    "other scorer": lambda: make_scorer(score_b),
    "scorer of sklearn": lambda: get_scorer("roc_auc"),
    "other scorer of sklearn": lambda: get_scorer("accuracy"),
    "partial": lambda: functools.partial(score_a, power=3),
    "other partial": lambda: functools.partial(score_a, power=4),
    "lambda": lambda: lambda x: x + 1,
    "other lambda": lambda: lambda x: x + 2,
    "builtin": lambda: max,
    "type": lambda: np.float32,
    "dtype": lambda: np.dtype("float32"),
    "method": lambda: "abc".upper if False else HeldOut([1.0], [2.0]).__repr__,
    "object": lambda: HeldOut([1.0], [2.0]),
    "other object": lambda: HeldOut([1.0], [3.0]),
}


def test_same_content_same_key_and_all_are_different():
    keys = {}
    for name, make in THINGS.items():
        assert key(make()) == key(make()), name
        keys.setdefault(key(make()), []).append(name)
    assert [names for names in keys.values() if len(names) > 1] == []


def test_closures_count():
    def adding(k):
        return lambda x: x + k

    assert key(adding(1)) == key(adding(1)) != key(adding(2))


def test_order_does_not_count():
    assert key({"a": 1, "b": 2}) == key({"b": 2, "a": 1})
    assert key(np.asfortranarray(np.eye(3)[:, :2])) == key(np.eye(3)[:, :2].copy())
    assert key(sparse.csc_array(np.eye(3))) == key(sparse.coo_array(np.eye(3)))
    assert key(frame()) == key(frame().set_axis([7, 8, 9]))


def test_fitting_does_not_count():
    model = StandardScaler()
    before = key(model)
    assert key(model.fit(np.eye(3))) == before


CODE = """
import sys; sys.path[:0] = sys.argv[1:]
from test_content_key import THINGS, key
print(*(key(make()) for name, make in THINGS.items() if name not in ("lambda", "other lambda")))
"""


@pytest.mark.slow
def test_keys_are_the_same_in_every_process(monkeypatch):
    """Whatever their hashes of texts begin with."""
    folder = os.path.dirname(__file__)
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    other = subprocess.run(
        [sys.executable, "-c", CODE, folder, os.path.dirname(folder)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    monkeypatch.setattr(sys, "argv", ["", folder])
    monkeypatch.setattr(sys, "path", [*sys.path])
    with redirect_stdout(StringIO()) as here:
        exec(CODE, {})
    assert here.getvalue() == other


def test_a_matrix_with_repeated_entries_stays_as_it_is():
    X = sparse.csr_matrix(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 3))
    same = sparse.csr_matrix([[3.0, 0.0, 0.0]])
    assert key(X) == key(same)
    assert X.nnz == 2


def test_a_function_without_its_variable_has_no_key():
    def score(estimator, X, y):
        return later

    with pytest.raises(TypeError, match=r"thing names a variable .* that has no value"):
        key(score)
    later = 1.0


def test_no_key():
    with pytest.raises(TypeError, match=r"thing\['x'\] is a generator, which has no key"):
        key({"x": (i for i in range(3))})
    circle = []
    circle.append(circle)
    with pytest.raises(TypeError, match="contains itself"):
        key(circle)


USERS = """
import functools
import helpers
from sklearn.base import BaseEstimator
from sklearn.metrics import make_scorer

POWER = 2

def shrunk(value):
    return value * 0.5

def counted(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args) + 0.0
    return inner

class Base(BaseEstimator):
    offset = 1.0

    def predict(self, X):
        return X + self.offset

class Mine(Base):
    def fit(self, X, y=None):
        return self

    @property
    def twice(self):
        return [x * 2 for x in range(3)]

    @staticmethod
    def start():
        return 7

    @functools.cached_property
    def slow(self):
        return 11

@counted
def score(y, f):
    return helpers.error(y, shrunk(f)) ** POWER if y is not None else score(y, f)

estimator, scorer = Mine(), make_scorer(score)
"""
HELPERS = "def error(y, f):\n    return abs(y - f)\n"


def users(monkeypatch, old="", new=""):
    """Keys of an estimator and a scorer whose code was changed in one place."""
    assert old in USERS + HELPERS
    modules = {}
    for name, code in {"helpers": HELPERS, "users": USERS}.items():
        modules[name] = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, modules[name])
        exec(code.replace(old, new), vars(modules[name]))
    return key(modules["users"].estimator), key(modules["users"].scorer)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("X + self.offset", "X - self.offset"),
        ("offset = 1.0", "offset = 2.0"),
        ("x * 2", "x * 3"),
        ("return 7", "return 8"),
        ("return 11", "return 12"),
        ("class Mine(Base):", "class Mine(Base):\n    extra = 1\n"),
    ],
)
def test_the_code_of_an_estimator_counts(monkeypatch, old, new):
    estimator, scorer = users(monkeypatch)
    changed = users(monkeypatch, old, new)
    assert changed[0] != estimator
    assert changed[1] == scorer


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("POWER = 2", "POWER = 3"),
        ("value * 0.5", "value * 0.25"),
        ("abs(y - f)", "abs(y + f)"),
        ("+ 0.0", "+ 1.0"),
        ("** POWER", "* POWER"),
    ],
)
def test_what_a_scorer_names_counts(monkeypatch, old, new):
    estimator, scorer = users(monkeypatch)
    changed = users(monkeypatch, old, new)
    assert changed[0] == estimator
    assert changed[1] != scorer


def test_comments_and_other_functions_do_not_count(monkeypatch):
    before = users(monkeypatch)
    assert users(monkeypatch) == before
    assert users(monkeypatch, "POWER = 2", "# The error is squared.\n\nPOWER = 2") == before
    assert users(monkeypatch, "\nimport helpers", "\nimport json\nimport helpers") == before


def test_a_method_put_in_place_of_another_counts(monkeypatch):
    class Mine(StandardScaler):
        def transform(self, X):
            return X

    before = key(Mine())
    monkeypatch.setattr(Mine, "transform", lambda self, X: X + 1)
    assert key(Mine()) != before


def test_names_of_things_without_content_do_no_harm():
    assert key(reading_the_environment) == key(reading_the_environment)


LOCK, STREAM = threading.Lock(), (k for k in range(3))


def reading_the_environment(estimator, X, y):
    with LOCK:
        return next(STREAM) + logging.getLogger("x").level + len(os.environ)


@pytest.mark.slow
def test_packages_that_things_are_made_of():
    assert package_versions(make_pipeline(StandardScaler(), KernelClassifier())) == {}
    versions = package_versions({"scorer": make_scorer(score_of_pandas)})
    assert versions == {"pandas": pd.__version__}


def score_of_pandas(y, f):
    return pd.Series(y).corr(pd.Series(f))
