"""Standard errors over draws of the training rows against refits without pairs of units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

from looms import KernelClassifier, KernelRegressor, TabularRegressor
from looms._scores import mean_and_error
from looms.fitted._scores import scored
from looms.fitted._training_draws import NOTHING, training_draws
from looms.folds import GapKFold
from looms.kernels import RBF

RNG = np.random.default_rng(4)
N = 24
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * RNG.normal(size=N)
LABELS = np.digitize(Y, [-0.5, 0.7])
GROUPS = np.arange(N) // 2
WEIGHT = np.where(np.arange(N) % 6 == 2, 0.0, RNG.uniform(0.5, 2, N))
KERNEL = RBF(0.4)
CASES = {
    "numbers": (KernelRegressor(KERNEL, mu=0.02), Y, {}),
    "weights": (KernelRegressor(KERNEL, mu=0.02), Y, {"sample_weight": WEIGHT}),
    "groups": (KernelRegressor(KERNEL, mu=0.02), Y, {"groups": GROUPS}),
    "no intercept": (KernelRegressor("linear", mu=0.02, fit_intercept=False), Y, {}),
    "landmarks": (KernelRegressor(KERNEL, mu=0.02, n_landmarks=24), Y, {}),
    "two classes": (KernelClassifier(KERNEL, mu=0.02), LABELS > 0, {}),
    "three classes": (KernelClassifier(KERNEL, mu=0.02), LABELS, {"groups": GROUPS}),
}


def outputs(K, ridge, y, rest, rows, intercept):
    """Outputs of rows by the model of the rows ``rest``, solved anew."""
    n = len(rest)
    C = np.zeros((n + 1, n + 1))
    C[:n, :n] = K[np.ix_(rest, rest)] + np.diag(ridge[rest])
    C[:n, n] = C[n, :n] = 1.0
    if not intercept:
        C[:n, n] = C[n, :n] = 0.0
        C[n, n] = 1.0
    right = np.zeros((n + 1, y.shape[1]))
    right[:n] = y[rest]
    solved = np.linalg.solve(C, right)
    return K[np.ix_(rows, rest)] @ solved[:n] + solved[n]


@pytest.mark.parametrize("case", CASES)
def test_pairs_are_those_of_refits(case):
    model, y, options = CASES[case]
    model.fit(X, y, **options)
    own = model.fitted_.rows.train
    targets = model.fitted_.rows.targets[own].reshape(len(own), -1)
    K = (KERNEL if model.kernel is KERNEL else model.kernel_)(X[own])
    zeta = model.fitted_.rows.fit_weight[own]
    ridge = len(own) * model.mu * zeta.mean() / zeta
    group, given = np.unique(options.get("groups", np.arange(N))[own], return_inverse=True)[1], None
    weight = options.get("sample_weight", np.ones(N))[own]
    rows, wrong_columns = np.arange(len(own)), 2 if targets.shape[1] > 2 else 1
    low, high = targets.min(axis=0), targets.max(axis=0)

    def losses(*without):
        """Of the rows of the last unit by the model without all of these: squares, and shares."""
        tested = rows[group == without[-1]]
        rest = rows[~np.isin(group, without)]
        f, y = outputs(K, ridge, targets, rest, tested, model.fit_intercept), targets[tested]
        squares = ((y - np.minimum(np.maximum(f, low), high)) ** 2).sum(axis=1)
        shares = np.interp(y * f, [-0.5, 0.5], [1, 0]).sum(axis=1) / wrong_columns
        return tested, np.column_stack([squares, shares])

    n_units = group.max() + 1
    alone = np.empty((len(rows), 2))
    for i in range(n_units):
        tested, given = losses(i)
        alone[tested] = given
    errors = []
    for j in range(n_units):
        tested, values = map(
            np.concatenate, zip(*(losses(j, i) for i in range(n_units) if i != j), strict=True)
        )
        errors.append(np.average(values, axis=0, weights=weight[tested]))
    both = (n_units - 1) / n_units * np.sum((errors - np.mean(errors, axis=0)) ** 2, axis=0)
    plain = np.array([mean_and_error(values, weight, group)[1] for values in alone.T])
    expected = max(1, np.sqrt(both[0]) / plain[0]), max(0, both[1] - plain[1] ** 2)
    assert_allclose(training_draws(model.fitted_), expected, rtol=1e-6)


def test_errors_of_scores_count_both_draws(monkeypatch):
    model = KernelClassifier(KERNEL, mu=0.02).fit(X, LABELS > 0)
    ratio, variance = training_draws(model.fitted_)
    assert ratio > 1
    assert variance > 0
    scores = model.evaluate()
    monkeypatch.setattr("looms.fitted._scores.training_draws", lambda model: NOTHING)
    plain = scored(model.fitted_, None)
    for name, error in scores.standard_errors.items():
        alone = plain.standard_errors[name]
        if name in ("accuracy", "balanced_accuracy"):
            assert error == pytest.approx(np.sqrt(alone**2 + variance))
        else:
            assert error == pytest.approx(alone * ratio)
        assert scores[name] == plain[name]


@pytest.mark.parametrize("loss", ["squared", "hinge", "squared_hinge"])
@pytest.mark.parametrize("kernel", ["linear", RBF(0.4)])
@pytest.mark.parametrize("mu", [1e-2, 1e-6])
def test_errors_of_shares_are_those_of_shares(loss, kernel, mu):
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(24, 21))
    model = KernelClassifier(kernel, loss=loss, mu=mu)
    errors = model.fit(wide, wide[:, 0] + 0.3 * rng.normal(size=24) > 0).evaluate().standard_errors
    assert max(errors["accuracy"], errors["balanced_accuracy"], errors["roc_auc"]) <= 0.5
    errors = model.fit(X, LABELS > 0).evaluate().standard_errors
    assert max(errors["accuracy"], errors["balanced_accuracy"], errors["roc_auc"]) <= 0.25


def test_a_sample_of_units_stands_for_all(monkeypatch):
    model = KernelRegressor(KERNEL, mu=0.02).fit(np.tile(X, (4, 1)), np.tile(Y, 4))
    whole = training_draws(model.fitted_)
    monkeypatch.setattr("looms.fitted._training_draws.MOST", 60)
    again = KernelRegressor(KERNEL, mu=0.02).fit(np.tile(X, (4, 1)), np.tile(Y, 4))
    assert_allclose(training_draws(again.fitted_), whole, rtol=0.3)


@pytest.mark.parametrize(
    "model",
    [
        KernelRegressor(KERNEL, mu=0.02, cv=GapKFold(4)),
        TabularRegressor([LinearRegression(), LinearRegression(fit_intercept=False)]),
    ],
)
def test_what_has_no_pairs_has_plain_errors(model):
    assert training_draws(model.fit(X, Y).fitted_) == NOTHING


def test_intervals_are_of_normal_errors_within_the_range_of_a_score():
    scores = KernelClassifier(KERNEL, mu=0.02).fit(X, LABELS > 0).evaluate()
    for level, z in ((0.95, 1.959964), (0.5, 0.67449)):
        for name, (low, high) in scores.intervals(level).items():
            value, error = scores.with_errors[name]
            most = np.inf if name == "log_loss" else 1.0
            assert low == pytest.approx(max(0.0, value - z * error), abs=1e-6)
            assert high == pytest.approx(min(most, value + z * error), abs=1e-6)
    with pytest.raises(ValueError, match="confidence_level"):
        scores.intervals(95)
