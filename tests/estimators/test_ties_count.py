"""Ties count in prediction sets and intervals: exact arithmetic, and any order of the rows."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn, pairwise
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import LeaveOneOut
from sklearn.tree import DecisionTreeRegressor

from looms import (
    Intervals,
    KernelClassifier,
    KernelRegressor,
    TabularRegressor,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
    pytest.mark.filterwarnings("ignore::looms.DuplicatesWarning"),
    pytest.mark.filterwarnings("ignore:y has only one value"),
]

LEVEL = Fraction(4, 5)
CORNERS = np.array([[a, b] for a in (0, 1) for b in (0, 1)])


def solved(A, B):
    """Solution of a linear system of fractions with several right sides, by elimination."""
    rows, n = [[*a, *b] for a, b in zip(A, B, strict=True)], len(A)
    for j in range(n):
        pivot = next(i for i in range(j, n) if rows[i][j] != 0)
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows[j] = [value / rows[j][j] for value in rows[j]]
        for i in range(n):
            if i != j and rows[i][j] != 0:
                rows[i] = [a - rows[i][j] * b for a, b in zip(rows[i], rows[j], strict=True)]
    return np.array([row[n:] for row in rows], dtype=object)


def exact(values):
    return np.array([[Fraction(int(v)) for v in row] for row in values], dtype=object)


def without_each(X, Y, penalty, new):
    """Outputs of ridge regression without each row, for new rows and that row, in fractions."""
    Z, T = (np.hstack([exact(np.ones((len(A), 1))), exact(A)]) for A in (X, new))
    Y, ridge = exact(Y), penalty * exact(np.diag([0] + [1] * X.shape[1]))
    of_new, own = [], []
    for i in range(len(Z)):
        rest = np.delete(np.arange(len(Z)), i)
        w = solved(Z[rest].T @ Z[rest] + ridge, Z[rest].T @ Y[rest])
        of_new.append(T @ w)
        own.append(Z[i] @ w)
    return np.stack(of_new, axis=1), np.array(own)


def margins(F):
    """Output of each class less the largest of the others."""
    n_classes = F.shape[-1]
    if n_classes == 1:
        return np.concatenate([-F, F], axis=-1)
    others = [np.delete(F, y, axis=-1).max(axis=-1) for y in range(n_classes)]
    return F - np.stack(others, axis=-1)


def exact_sets(X, y, penalty, new, n_classes, within):
    targets = 2 * (y[:, None] == np.arange(n_classes)) - 1
    F, own = without_each(X, targets[:, 1:] if n_classes == 2 else targets, penalty, new)
    s, S = margins(own)[np.arange(len(y)), y], margins(F)
    sets = np.empty((len(new), n_classes), dtype=bool)
    for k in range(n_classes):
        some = y == k if within else np.full(len(y), True)
        above = (s[some] <= S[:, some, k]).sum(axis=1) + 1
        sets[:, k] = [Fraction(int(count), int(some.sum()) + 1) > 1 - LEVEL for count in above]
    return sets


def classes_of_bits(seed, n=16, n_classes=2):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, size=(n, 2)), rng.permutation(np.arange(n) % n_classes)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(("n_classes", "n"), [(2, 16), (3, 15)])
def test_sets_are_those_of_exact_arithmetic(n_classes, n, within):
    for seed in range(4):
        X, y = classes_of_bits(seed, n, n_classes)
        model = KernelClassifier("linear", mu=2 / n).fit(X, y)
        model.evaluate()
        ours = model.predict_set(CORNERS, 0.8, class_conditional=within)
        assert_array_equal(ours, exact_sets(X, y, Fraction(2), CORNERS, n_classes, within))


MODELS = {
    "plus": (lambda penalty, n: KernelRegressor("linear", mu=penalty / n), {}),
    "minmax": (lambda penalty, n: KernelRegressor("linear", mu=penalty / n), {"method": "minmax"}),
    "closed": (lambda penalty, n: Intervals(Ridge(penalty)), {}),
    "refits": (lambda penalty, n: Intervals(Ridge(penalty), cv=LeaveOneOut()), {}),
}


@pytest.mark.parametrize("name", MODELS)
def test_intervals_contain_those_of_exact_arithmetic(name):
    make, options = MODELS[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 2, size=(16, 2)), rng.integers(0, 3, size=16)
        model = make(2.0, 16).fit(X, y)
        if name in ("plus", "minmax"):
            model.evaluate()
        ours = model.predict_interval(CORNERS, 0.8, **options)
        F, own = without_each(X, y[:, None], Fraction(2), CORNERS)
        r, k = np.abs(exact(y[:, None]) - own)[:, 0], ceil(LEVEL * 17)
        F = F[..., 0]
        if name == "minmax":
            q = sorted(r)[k - 1]
            lower, upper = F.min(axis=1) - q, F.max(axis=1) + q
        else:
            lower, upper = np.sort(F - r)[:, 16 - k], np.sort(F + r)[:, k - 1]
        assert all(
            Fraction(low) <= end for low, end in zip(ours[:, 0].tolist(), lower, strict=True)
        )
        assert all(
            Fraction(high) >= end for high, end in zip(ours[:, 1].tolist(), upper, strict=True)
        )
        assert_allclose(ours, np.stack([lower, upper], 1).astype(float), rtol=0, atol=1e-12)


TREE = {"max_depth": 2, "random_state": 0}
SETS = {
    "rbf": lambda: KernelClassifier("rbf", mu=1e-3),
    "squared_hinge": lambda: KernelClassifier("linear", loss="squared_hinge", mu=0.1),
    "hinge": lambda: KernelClassifier("linear", loss="hinge", mu=0.1),
}
INTERVALS = {
    "rbf": lambda: KernelRegressor("rbf", mu=1e-3),
    "scaled": lambda: KernelRegressor("rbf", mu=1e-3),
    "gp": lambda: Intervals(GaussianProcessRegressor(alpha=0.1, optimizer=None), cv=LeaveOneOut()),
    "least squares": lambda: Intervals(LinearRegression(), cv=LeaveOneOut()),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_classes", "groups"), pairwise(SETS, [2, 3], [None, np.arange(18) // 2])
)
def test_order_of_rows_changes_no_set(name, n_classes, groups):
    rng = np.random.default_rng(3)
    X, y = classes_of_bits(1, 18, n_classes)
    sets = []
    for order in [np.arange(18), *(rng.permutation(18) for _ in range(2))]:
        own = None if groups is None else groups[order]
        model = SETS[name]().fit(X[order], y[order], groups=own)
        model.evaluate(nested=False)
        sets.append([model.predict_set(CORNERS, 0.7, within) for within in (False, True)])
    for others in sets[1:]:
        assert_array_equal(others, sets[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", INTERVALS)
def test_order_of_rows_changes_no_target_inside(name):
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 2, size=(18, 2)).astype(float), rng.integers(0, 4, size=18).astype(float)
    options = {"method": "scaled"} if name == "scaled" else {}
    known = None
    for order in [np.arange(18), *(rng.permutation(18) for _ in range(2))]:
        model = INTERVALS[name]().fit(X[order], y[order])
        if hasattr(model, "evaluate"):
            model.evaluate(nested=False)
        ends = model.predict_interval(CORNERS, 0.8, **options)
        inside = (ends[:, :1] <= np.arange(4)) & (np.arange(4) <= ends[:, 1:])
        known = (ends, inside) if known is None else known
        assert_allclose(ends, known[0], rtol=0, atol=1e-11)
        assert_array_equal(inside, known[1])


CONSTANT = {
    "linear": KernelRegressor("linear", mu=1e-2),
    "rbf": KernelRegressor("rbf", mu=1e-6),
    "ridge": Intervals(Ridge()),
    "tree": Intervals(DecisionTreeRegressor(**TREE)),
    "least squares": Intervals(LinearRegression()),
    "table": TabularRegressor(["linear"], target="none"),
    "log": TabularRegressor(["linear"], target="log"),
    "estimator": TabularRegressor([DecisionTreeRegressor(**TREE)], target="sqrt"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), in_turn(CONSTANT, [123.456, 1e-9, 1.7e12]))
def test_a_constant_target_is_inside(name, value):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = CONSTANT[name].fit(X, np.full(30, value))
    for method in ("plus", "minmax"):
        for nested in (False, True):
            if hasattr(model, "evaluate"):
                model.evaluate(nested=nested)
            lower, upper = model.predict_interval(X, 0.8, method=method).T
            assert ((lower <= value) & (value <= upper)).all()
            assert_allclose([lower, upper], value, rtol=1e-7)
