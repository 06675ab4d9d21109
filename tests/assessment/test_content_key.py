"""Keys: equal for equal content, in every process; different for any difference."""

import functools
import importlib
import linecache
import sys
import types

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


# Each of these is made twice, and differs from all others; plain values are those of joblib.
THINGS = {
    "number": lambda: 1,
    "text": lambda: "1",
    "floats": lambda: np.arange(6.0),
    "other shape": lambda: np.arange(6.0).reshape(2, 3),
    "transposed": lambda: np.arange(6.0).reshape(3, 2).T,
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
    "machine": lambda: stacked_classifier(["linear", "rbf"], combine="best"),
    "other machine": lambda: stacked_classifier(["linear", "cubic"], combine="best"),
    "kernel object": lambda: KernelClassifier(RBF(gamma=0.5)),
    "other kernel object": lambda: KernelClassifier(RBF(gamma=0.25)),
    "forest": lambda: RandomForestClassifier(random_state=np.random.RandomState(0)),
    "other forest": lambda: RandomForestClassifier(random_state=np.random.RandomState(1)),
    "scorer": lambda: make_scorer(score_a),
    "other scorer": lambda: make_scorer(score_b),
    "scorer of sklearn": lambda: get_scorer("roc_auc"),
    "other scorer of sklearn": lambda: get_scorer("accuracy"),
    "partial": lambda: functools.partial(score_a, power=3),
    "other partial": lambda: functools.partial(score_a, power=4),
}


def test_same_content_same_key_and_all_are_different():
    keys = {}
    for name, make in THINGS.items():
        assert key(make()) == key(make()), name
        keys.setdefault(key(make()), []).append(name)
    assert [names for names in keys.values() if len(names) > 1] == []


def test_order_does_not_count():
    assert key({"a": 1, "b": 2}) == key({"b": 2, "a": 1})
    assert key(np.asfortranarray(np.eye(3)[:, :2])) == key(np.eye(3)[:, :2].copy())
    assert key(sparse.csc_array(np.eye(3))) == key(sparse.coo_array(np.eye(3)))
    assert key(frame()) == key(frame().set_axis([7, 8, 9]))


def test_a_matrix_with_repeated_entries_stays_as_it_is():
    X = sparse.csr_matrix(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 3))
    same = sparse.csr_matrix([[3.0, 0.0, 0.0]])
    assert key(X) == key(same)
    assert X.nnz == 2


def test_what_has_no_key_is_named():
    for thing in ((k for k in range(3)), lambda y, f: 0.0):
        with pytest.raises(TypeError, match=r"^thing has no key for a store"):
            key(thing)


USERS = """
from sklearn.base import BaseEstimator
from sklearn.metrics import make_scorer
import helpers

class Mine(helpers.Base):
    def predict(self, X):
        return X

def score(y, f):
    return abs(y - f)

estimator, scorer = Mine(), make_scorer(score)
"""
HELPERS = """
from sklearn.base import BaseEstimator

class Base(BaseEstimator):
    offset = 1.0
"""


def test_files_of_the_users_own_code_count(tmp_path, monkeypatch):
    """Those of an estimator, its base class, and what holds it; not of installed packages."""
    monkeypatch.syspath_prepend(tmp_path)

    def keys(**changed):
        for name, code in ({"users": USERS, "helpers": HELPERS} | changed).items():
            (tmp_path / f"{name}.py").write_text(code)
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        importlib.invalidate_caches()
        users = importlib.import_module("users")
        return key(make_pipeline(StandardScaler(), users.estimator)), key({"own": users.scorer})

    before = keys()
    assert keys() == before
    assert not {*keys(users=USERS.replace("return X", "return X + 1"))} & {*before}
    after = keys(helpers=HELPERS.replace("1.0", "2.0"))
    assert after[0] != before[0]
    assert after[1] == before[1]


@pytest.mark.parametrize("changed", ["first", "second"])
def test_each_function_that_was_typed_in_counts(monkeypatch, changed):
    """Also if others were typed into the same module."""

    def typed(**numbers):
        module = types.ModuleType("typed_in")
        monkeypatch.setitem(sys.modules, "typed_in", module)
        for name, number in numbers.items():
            lines = [f"def {name}(y, f):\n", f"    return {number}\n"]
            monkeypatch.setitem(linecache.cache, f"<{name}>", (99, None, lines, f"<{name}>"))
            exec(compile("".join(lines), f"<{name}>", "exec"), vars(module))
        return key([module.first, module.second])

    before = typed(first=1, second=2)
    assert typed(first=1, second=2) == before
    assert typed(**{"first": 1, "second": 2, changed: 3}) != before


def test_what_was_typed_in_needs_its_source(monkeypatch):
    module = types.ModuleType("typed_in")
    monkeypatch.setitem(sys.modules, "typed_in", module)
    exec(HELPERS, vars(module))
    with pytest.raises(TypeError, match=r"thing takes Base, whose source is not known"):
        key(module.Base())


@pytest.mark.slow
def test_packages_that_things_are_made_of():
    assert package_versions(make_pipeline(StandardScaler(), KernelClassifier())) == {}
    assert package_versions({"scorer": make_scorer(pd.factorize)}) == {"pandas": pd.__version__}
