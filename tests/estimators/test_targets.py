"""Targets as they may be given: one column, labels in objects, gaps, in another order."""

import warnings
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from pairwise import in_turn
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

import looms
from looms import (
    Intervals,
    KernelClassifier,
    KernelRegressor,
    NonconformityClassifier,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.diagnostics import case_deletion, goodness_of_fit, influence, left_out_fits
from looms.folds import GapKFold

N = 40
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 2))
FRAME = pd.DataFrame(X, columns=["a", "b"])
PRICE = np.exp(X[:, 0] + 0.3 * rng.normal(size=N))
UP = X[:, 0] + 0.5 * rng.normal(size=N) > 0

COLUMNS = {
    "frame": lambda y: pd.DataFrame({"price": y}),
    "polars": lambda y: pl.DataFrame({"price": y}),
    "array": lambda y: y[:, None],
    "list": lambda y: y[:, None].tolist(),
}
REGRESSORS = {
    "table of numbers": partial(TabularRegressor, ["linear"]),
    "kernel of numbers": partial(KernelRegressor, mu=0.1),
    "closed intervals": partial(Intervals, Ridge()),
    "intervals": partial(Intervals, RandomForestRegressor(3, random_state=0), cv=3),
}
CLASSIFIERS = {
    "table": partial(TabularClassifier, ["linear"]),
    "kernel": partial(KernelClassifier, mu=0.1),
    "hinge": partial(
        KernelClassifier, looms.kernels.RBF(0.5), mu=0.1, search=Search(criterion="hinge")
    ),
    "nonconformity": partial(NonconformityClassifier, [LogisticRegression()]),
}


@pytest.mark.slow
@pytest.mark.parametrize(("Model", "given"), in_turn(REGRESSORS, COLUMNS))
def test_one_column_is_one_target(Model, given):
    Model, given = REGRESSORS[Model], COLUMNS[given]
    flat = Model().fit(X, PRICE)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        column = Model().fit(X, given(PRICE))
    for model in (flat, column):
        if hasattr(model, "evaluate"):
            model.evaluate(nested=False)
    assert_array_equal(column.predict(X), flat.predict(X))
    assert_array_equal(column.predict_interval(X, 0.8), flat.predict_interval(X, 0.8))
    assert column.score(X, given(PRICE)) == flat.score(X, PRICE)
    if hasattr(flat, "with_rows"):
        with pytest.warns(DataConversionWarning):
            more = column.with_rows(X[:3] + 0.1, given(PRICE[:3]))
        assert_array_equal(more.predict(X), flat.with_rows(X[:3] + 0.1, PRICE[:3]).predict(X))


DAYS = pd.date_range("2024-01-01", periods=2)
CLEAR = {
    "whole numbers": pd.Series(UP.astype(int), dtype=object),
    "booleans": np.array(UP, dtype=object),
    "whole floats": np.array(UP.astype(float), dtype=object),
    "text": np.where(UP, "up", "down").astype(object),
}
if hasattr(np.dtypes, "StringDType"):  # from NumPy 2
    CLEAR["numpy's text"] = np.where(UP, "up", "down").astype(np.dtypes.StringDType())
TYPED = {
    name: pd.Series(UP.astype(int)).astype(name)
    for name in ("boolean", "Int64", "Int8", "category", "Sparse[int]")
}
UNCLEAR = {
    "Decimal": [Decimal(int(up)) for up in UP],
    "date": [DAYS[int(up)].date() for up in UP],
    "Interval": pd.Series(pd.cut(X[:, 0], 2)),
    "Period": pd.Series(DAYS[UP.astype(int)]).dt.to_period("D"),
    "bool and int": pd.Series([bool(up) if k % 2 else int(up) for k, up in enumerate(UP)]),
}


@pytest.mark.parametrize("Model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_labels_in_objects(Model):
    for labels in [*CLEAR.values(), *TYPED.values()]:
        plain = np.array(np.asarray(labels).tolist())
        model, expected = (Model().set_params(random_state=0).fit(X, y) for y in (labels, plain))
        assert model.classes_.dtype.kind in (expected.classes_.dtype.kind, "O")
        assert model.classes_.tolist() == expected.classes_.tolist()
        assert_array_equal(model.predict(X), expected.predict(X))
        assert model.score(X, labels) == expected.score(X, plain)
    for kind, labels in UNCLEAR.items():
        with pytest.raises(ValueError, match=f"y holds objects of the type {kind}, but classes"):
            Model().fit(X, labels)


@pytest.mark.parametrize("gap", [None, pd.NA])
def test_gaps_are_told_of_as_in_fit(gap):
    numbers, labels = (pd.Series(each, dtype=object) for each in (PRICE, np.where(UP, "up", "no")))
    numbers[5] = labels[5] = gap
    pair = {"one": Ridge(), "other": LogisticRegression()}
    for use in (
        lambda: looms.assess(Ridge(), X, numbers, 2, scoring=None),
        lambda: looms.assess(LogisticRegression(), X, labels, 2),
        lambda: looms.compare(pair, X, labels, n_splits=2),
        lambda: Intervals(Ridge()).fit(X, numbers),
        lambda: KernelRegressor().fit(X, numbers),
    ):
        with pytest.raises(ValueError, match="1 of 40 rows, the first is row 5"):
            use()


@pytest.mark.parametrize(
    ("Model", "turned"),
    in_turn([*REGRESSORS, *CLASSIFIERS], ["y", "groups", "sample_weight", "time"]),
)
def test_an_index_in_another_order_is_told(Model, turned):
    """Rows are matched by their places, as in scikit-learn: nothing changes but the warning."""
    place = pd.Series(np.arange(N))
    turned = "y" if Model == "nonconformity" else turned
    kinds, y = (REGRESSORS, PRICE) if Model in REGRESSORS else (CLASSIFIERS, UP)
    rows = {"y": pd.Series(y), "groups": place // 2, "sample_weight": place % 3 + 1.0}
    rows = {name: (rows | {"time": place})[name] for name in {"y", turned}}
    rows[turned] = rows[turned][::-1]
    cv = {"cv": GapKFold(3, time=rows.pop("time"))} if turned == "time" else {}
    with pytest.warns(UserWarning, match=f"X and {turned} have the same index in an") as told:
        kinds[Model]().set_params(**cv).fit(FRAME, **rows)
    assert sum("another order" in str(one.message) for one in told) == 1


def _uses_of_rows():
    """Functions of rows and what belongs to them, besides `fit`, with the arguments they take."""
    model = KernelClassifier(mu=0.1).fit(FRAME, UP)
    whole = TabularClassifier(["linear"]).fit(FRAME, UP)
    numbers = TabularRegressor(["linear"], target="none").fit(FRAME, PRICE)
    two = {"one": DummyClassifier(), "other": DummyClassifier(strategy="stratified")}
    splits = {"n_splits": 2, "scoring": "accuracy"}
    weighed, grouped = ("y", "sample_weight"), ("y", "groups")
    return {
        "score": (model.score, weighed),
        "with_rows": (model.with_rows, weighed),
        "with_rows of a table": (whole.with_rows, weighed),
        "with_rows of numbers": (numbers.with_rows, weighed),
        "assess": (partial(looms.assess, DummyClassifier(), **splits), (*weighed, "groups")),
        "compare": (partial(looms.compare, two, **splits), (*weighed, "groups")),
        "left_out_fits": (partial(left_out_fits, GaussianNB()), grouped),
        "influence": (partial(influence, GaussianNB()), grouped),
        "goodness_of_fit": (partial(goodness_of_fit, GaussianNB(), n_bootstrap=99), ("y",)),
        "case_deletion": (lambda X, y, groups: case_deletion(model, names=X, groups=groups), ()),
        "GapKFold": (lambda X, y, groups: [*GapKFold(3).split(X, y, groups)], grouped),
    }


@pytest.mark.slow
@pytest.mark.parametrize("use", _uses_of_rows())
def test_an_index_in_another_order_is_told_by_all(use):
    call, names = _uses_of_rows()[use]
    place = pd.Series(np.arange(len(PRICE)))
    rows = {"y": pd.Series(PRICE if "numbers" in use else UP)}
    rows |= {"sample_weight": place % 3 + 1.0, "groups": place // 2}
    wanted = {name: rows[name] for name in names or ("y", "groups")}
    for turned in names or ("groups",):
        given = wanted | {turned: wanted[turned][::-1]}
        with warnings.catch_warnings(record=True, action="always") as told:
            call(X=FRAME, **given)
        told = [str(one.message) for one in told if "another order" in str(one.message)]
        assert len(told) == 1
        assert f"and {turned} have the same index" in told[0]


@pytest.mark.parametrize("form", [list, lambda y: np.array(y, dtype=object)])
def test_classes_may_be_whole_numbers_of_64_bits(form):
    X, y = np.arange(8.0)[:, None], [1, 1, 1, 1, 2**63, 2**63, 2**63, 2**63]
    assert KernelClassifier("linear").fit(X, form(y)).predict(X).tolist() == y
    for given, words in ((form([1, 2**64] * 4), "64 bits"), ([[1], [1, 2]] * 4, "lengths")):
        with pytest.raises(ValueError, match=words):
            KernelClassifier("linear").fit(X, given)


@pytest.mark.parametrize("Model", [*REGRESSORS, *CLASSIFIERS])
def test_what_is_no_target_is_told(Model):
    kind = (REGRESSORS | CLASSIFIERS)[Model]
    with pytest.raises(TypeError, match="got str for y"):
        kind().fit(FRAME, "a")
    if Model in REGRESSORS:
        infinite = np.r_[PRICE[1:], np.inf]
        for y, word in (
            (infinite, "y is infinite"),
            ([10**400, *range(N - 1)], "y has numbers out of"),
        ):
            with pytest.raises(ValueError, match=word):
                kind().fit(X, y)


def _made_with(Model, y, **given):
    return Model().fit(X, y, **given).predict(X)


ONE_COLUMN = {
    "kernel": partial(_made_with, CLASSIFIERS["kernel"], UP),
    "table": partial(_made_with, CLASSIFIERS["table"], UP),
    "intervals": partial(_made_with, REGRESSORS["closed intervals"], PRICE),
    "assess": lambda **given: looms.assess(GaussianNB(), X, UP, 2, **given).mean,
    "score": lambda sample_weight=None, groups=None: (
        KernelClassifier(mu=0.1).fit(X, UP, groups=groups).score(X, UP, sample_weight)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("use", ONE_COLUMN.values(), ids=ONE_COLUMN)
def test_one_column_of_groups_or_weights_is_taken(use):
    place = pd.Series(np.arange(N), name="place")
    for name, values in {"groups": place // 2, "sample_weight": place % 3 + 1.0}.items():
        for column in (values.to_frame(), values.to_numpy()[:, None]):
            assert_array_equal(use(**{name: column}), use(**{name: values}))
