"""Prediction intervals of any regressor: against refits by hand, and what they refuse."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, ShuffleSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from looms import Intervals, KernelRegressor
from looms.conformal import jackknife_minmax, jackknife_plus

N, M = 40, 6
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(M, 3))
ONE = X[:, 0] + 0.5 * RNG.normal(size=N)
TARGETS = {"one": ONE, "two": np.column_stack([ONE, RNG.normal(size=N)])}
WEIGHTS = {
    "unweighted": None,
    "weighted": RNG.uniform(0.2, 3.0, N),
    "zeros": np.where(np.arange(N) % 5 == 0, 0.0, RNG.uniform(0.2, 3.0, N)),
    "sevens": np.full(N, 7.0),
}


def decaying(x, z, rate):
    """A kernel as `KernelRidge` takes functions: of two rows."""
    return np.exp(-rate * np.abs(x - z).sum())


GROUPS = RNG.permutation(np.arange(N) // 4)
CLOSED = {
    "ridge": Ridge(0.7),
    "ridge without intercept": Ridge(2.0, fit_intercept=False),
    "linear": KernelRidge(0.5),
    "rbf": KernelRidge(0.5, kernel="rbf", gamma=0.3),
    "polynomial": KernelRidge(3.0, kernel="poly", degree=2, coef0=0.5),
}
REFITTED = {
    "function": KernelRidge(0.5, kernel=decaying, kernel_params={"rate": 0.2}),
    "no positive kernel": KernelRidge(9.0, kernel="sigmoid", gamma=0.01),
    "least squares": LinearRegression(),
    "pipeline": make_pipeline(StandardScaler(), Ridge(0.7)),
    "tuned": RidgeCV([0.1, 1.0, 10.0]),
    "tree": DecisionTreeRegressor(max_depth=2, random_state=0),
    "positive ridge": Ridge(0.7, positive=True),
    "power of products": KernelRidge(3.0, kernel="poly", degree=2.5, gamma=0.1, coef0=9.0),
    "a ridge for each target": Ridge([0.7]),
}
CV = {"default": (None, None), "groups": (None, GROUPS), "folds": (4, None)}


def refitted(estimator, splits, X, y, weight, X_new):
    """Residuals of rows, and outputs of new rows by the model without each, by refits."""
    residuals, F = np.empty_like(y), np.empty((len(X_new), *y.shape))
    step = "ridge__" if hasattr(estimator, "steps") else ""
    options = {} if weight is None else {f"{step}sample_weight": weight}
    for train, test in splits:
        own = {name: values[train] for name, values in options.items()}
        one = clone(estimator).fit(X[train], y[train], **own)
        residuals[test] = y[test] - one.predict(X[test])
        F[:, test] = one.predict(X_new)[:, None]
    return residuals, F


def splits_of(model):
    every = np.arange(len(model.held_out_.y))
    return [(np.setdiff1d(every, rows), rows) for rows in model.units_]


@pytest.mark.parametrize(
    ("name", "way", "target", "weight"), pairwise([*CLOSED, *REFITTED], CV, TARGETS, WEIGHTS)
)
def test_intervals_are_those_of_refits(name, way, target, weight):
    estimator, (cv, groups) = {**CLOSED, **REFITTED}[name], CV[way]
    y, zeta = TARGETS[target], WEIGHTS[weight]
    if name == "a ridge for each target" and target == "two":
        estimator = Ridge([0.7, 2.0])
    model = Intervals(estimator, cv=cv).fit(X, y, zeta, groups)
    seen = np.arange(N) if zeta is None else np.flatnonzero(zeta)
    own = None if zeta is None else zeta[seen]
    r, F = refitted(estimator, splits_of(model), X[seen], y[seen], own, X_NEW)
    assert_allclose(model.held_out_.residuals, r, rtol=1e-7, atol=1e-9)
    assert (model.estimators_ is None) == (name in CLOSED)
    for method, interval in (("plus", jackknife_plus), ("minmax", jackknife_minmax)):
        ends = model.predict_interval(X_NEW, 0.8, method)
        assert_allclose(ends, interval(r, F, 0.8), rtol=1e-7, atol=1e-9)
    options = {} if own is None or hasattr(estimator, "steps") else {"sample_weight": own}
    if hasattr(estimator, "steps") and own is not None:
        options = {"ridge__sample_weight": own}
    whole = clone(estimator).fit(X[seen], y[seen], **options)
    assert_array_equal(model.predict(X_NEW), whole.predict(X_NEW))


def test_units_by_default():
    """Rows or groups by themselves where that takes no refits; else ten shuffled folds."""
    assert Intervals(Ridge()).fit(X, ONE).units_.alone
    assert Intervals(Ridge()).fit(X, ONE, groups=GROUPS).units_.n_units == N // 4
    tree = Intervals(DecisionTreeRegressor(max_depth=2))
    folds = tree.fit(X, ONE).units_
    assert folds.n_units == 10
    assert (np.diff(folds.own) < 0).sum() > 9  # not in the order of the rows
    assert not np.array_equal(
        folds.own, clone(tree).set_params(random_state=1).fit(X, ONE).units_.own
    )
    grouped = tree.fit(X, ONE, groups=GROUPS).units_.own
    assert all(len(set(grouped[group == GROUPS])) == 1 for group in GROUPS)


@pytest.mark.parametrize(
    ("cv", "groups"), [(LeaveOneOut(), None), (KFold(5), None), (GroupKFold(5), GROUPS)]
)
def test_splitters(cv, groups):
    estimator = KNeighborsRegressor(3)
    model = Intervals(estimator, cv=cv).fit(X, ONE, groups=groups)
    r, F = refitted(estimator, cv.split(X, ONE, groups), X, ONE, None, X_NEW)
    assert_allclose(model.predict_interval(X_NEW), jackknife_plus(r, F, 0.9), rtol=1e-9)


def test_data_frames_with_text_and_gaps():
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=np.where(X[:, 1] > 0, "u", "v"))
    frame.loc[::7, "a"] = np.nan
    columns = make_column_transformer(
        (SimpleImputer(), list("abc")), (OneHotEncoder(), ["d"]), verbose_feature_names_out=False
    )
    with parallel_config("threading"):
        model = Intervals(make_pipeline(columns, LinearRegression()), n_jobs=2).fit(frame, ONE)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    lower, upper = model.predict_interval(frame).T
    assert (lower < upper).all()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_interval(frame)[:, 0], lower)


@pytest.mark.parametrize(
    "estimator",
    [
        GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=GroupKFold(3)),
        make_pipeline(StandardScaler(), KernelRegressor("linear")),
    ],
    ids=["search", "looms"],
)
def test_groups_are_passed_on_to_what_tunes_by_them(estimator):
    model = Intervals(estimator).fit(X, ONE, groups=GROUPS)
    name = "kernelregressor__groups" if hasattr(estimator, "steps") else "groups"
    for (train, _), one in zip(splits_of(model), model.estimators_, strict=True):
        theirs = clone(estimator).fit(X[train], ONE[train], **{name: GROUPS[train]})
        assert_allclose(one.predict(X_NEW), theirs.predict(X_NEW), rtol=1e-10)


@pytest.mark.parametrize("estimator", [Ridge(0.7), Ridge(0.7, solver="lsqr", tol=1e-12)])
def test_sparse_rows(estimator):
    sparse = Intervals(estimator).fit(sp.csr_array(X), ONE)
    dense = Intervals(Ridge(0.7)).fit(X, ONE)
    assert_allclose(
        sparse.predict_interval(sp.csr_array(X_NEW)), dense.predict_interval(X_NEW), rtol=1e-6
    )


ILL_SCALED = X * [50.0, 1.0, 1.0]


@pytest.mark.filterwarnings("ignore:The max_iter was reached")
@pytest.mark.parametrize(
    ("options", "rows", "exact"),
    [
        ({"solver": "saga", "max_iter": 20, "random_state": 0}, ILL_SCALED, False),
        ({"solver": "lsqr", "max_iter": 1}, ILL_SCALED, False),
        ({"max_iter": 1}, sp.csr_array(ILL_SCALED), False),
        ({"solver": "lbfgs", "positive": True}, ILL_SCALED, False),
        ({"solver": "auto", "copy_X": False}, ILL_SCALED, True),
        ({"solver": "cholesky"}, ILL_SCALED.astype(np.float32), True),
        ({"solver": "svd", "copy_X": False}, ILL_SCALED, True),
    ],
    ids=lambda value: value.get("solver", "sparse") if isinstance(value, dict) else "",
)
def test_a_ridge_that_is_not_solved_exactly_is_refitted(options, rows, exact):
    estimator, rows = Ridge(0.7, **options), rows.copy()  # some change their rows
    model = Intervals(estimator, cv=LeaveOneOut()).fit(rows, ONE)
    assert (model.estimators_ is None) == exact
    r, F = refitted(estimator, LeaveOneOut().split(X), rows, ONE, None, X_NEW)
    assert_allclose(model.held_out_.residuals, r, rtol=0, atol=1e-5 if exact else 1e-12)
    assert_allclose(model.predict_interval(X_NEW), jackknife_plus(r, F, 0.9), rtol=1e-4)
    folds = Intervals(estimator).fit(rows.copy(), ONE).units_
    assert folds.n_units == (N if exact else 10)


@pytest.mark.parametrize(
    ("model", "y", "says"),
    [
        (Intervals("ridge"), ONE, "no regressor"),
        (Intervals(LogisticRegression()), ONE > 0, "no regressor"),
        (Intervals(KernelRidge(kernel="precomputed")), ONE, "kernel values"),
        (Intervals(Ridge()), np.where(ONE > 0, "a", "b"), "must be numbers"),
        (Intervals(Ridge(), cv=ShuffleSplit(3)), ONE, "cv tests"),
        (Intervals(Ridge(), cv="2x5"), ONE, "more than once"),
        (Intervals(Ridge()), ONE, "99 "),
    ],
)
def test_refusals(model, y, says):
    with pytest.raises(ValueError, match=says):
        model.fit(X, y).predict_interval(X_NEW, 0.99)


def test_an_estimator_that_changes_its_rows():
    expected = Intervals(LinearRegression(), cv=4).fit(X, ONE).predict_interval(X_NEW)
    model = Intervals(LinearRegression(copy_X=False), cv=4).fit(X.copy(), ONE)
    assert_allclose(model.predict_interval(X_NEW), expected, rtol=1e-9)


@pytest.mark.slow
def test_memory_does_not_grow_with_new_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 2)), rng.normal(size=(30_000, 2))
    model = Intervals(LinearRegression()).fit(X, X[:, 0] + rng.normal(size=300))
    tracemalloc.start()
    try:
        ends = model.predict_interval(new)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(X) * len(new)  # a number for each row of the fit and new one
    monkeypatch.setattr("looms.fitted._without_units._NUMBERS", len(X) * len(new))
    assert_array_equal(model.predict_interval(new), ends)


@pytest.mark.slow
def test_coverage():
    """Of new rows, over 60 draws of 60 rows: 0.9 within three standard errors, 0.005 each."""
    inside = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(260, 3))
        t = Z[:, 0] + rng.normal(size=260)
        lower, upper = Intervals(Ridge(1.0)).fit(Z[:60], t[:60]).predict_interval(Z[60:]).T
        inside.append(np.mean((lower <= t[60:]) & (t[60:] <= upper)))
    assert 0.885 < np.mean(inside) < 0.915
