"""Residuals with two folds held out, against refits."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.kernels import RBF
from looms.lssvm import NotPositiveDefiniteError, _without_folds, refit_loo, solve
from looms.lssvm._without_folds import InnerFolds

N, MU = 14, 0.03
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, 3))
K = RBF(0.5)(X)
TARGETS = {"one": RNG.standard_normal(N), "three": RNG.standard_normal((N, 3))}
WEIGHT = RNG.uniform(0.3, 3.0, N)
FOLDS = {
    "each": np.arange(N),
    "uneven": np.array([0, 1, 1, 2, 0, 3, 3, 3, 3, 4, 5, 1, 6, 0]),
    "quarters": np.arange(N) % 4,
}


def folds_of(labels):
    return [np.flatnonzero(labels == k) for k in np.unique(labels)]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("n_left_out", [1, 2])
def test_they_are_the_held_out_residuals_of_the_machine_without_some_folds(
    fold, target, intercept, n_left_out
):
    y, labels = TARGETS[target], FOLDS[fold]
    folds = folds_of(labels)
    models = solve(K, y, MU, sample_weight=WEIGHT, fit_intercept=intercept).models()
    alpha = models.fit.alpha.reshape(N, -1)
    outer = list(combinations(range(len(folds)), n_left_out))[:40]
    for part, residuals in InnerFolds(folds, outer).residuals(models.P, alpha, MU):
        for left_out, e in zip([outer[k] for k in part], residuals.transpose(1, 0, 2), strict=True):
            out = np.isin(labels, np.unique(labels)[list(left_out)])
            rest = np.flatnonzero(~out)
            options = {"sample_weight": WEIGHT[rest], "fit_intercept": intercept}
            problem = K[np.ix_(rest, rest)], y[rest], MU * N / len(rest)  # λ is held
            if len(np.unique(labels[rest])) > 1:
                inner = refit_loo(*problem, folds=labels[rest], **options).residuals
                assert_allclose(e[rest], inner.reshape(len(rest), -1), rtol=1e-7, atol=1e-9)
            fit = solve(*problem, **options).fit
            own = y[out] - K[np.ix_(out, rest)] @ fit.alpha - fit.intercept
            assert_allclose(e[out], own.reshape(out.sum(), -1), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array([0, 1, 1])])
def test_two_folds_that_leave_no_row_for_the_intercept_are_refused(labels):
    n = len(labels)
    models = solve(np.eye(n), np.arange(n, dtype=float), 0.1).models()
    folds = folds_of(labels)
    outer = [(k,) for k in range(len(folds))]
    with pytest.raises(NotPositiveDefiniteError, match="leverage"):
        list(InnerFolds(folds, outer).residuals(models.P, models.fit.alpha[:, None], 0.1))


def test_folds_of_few_and_of_many_rows_have_the_same_residuals(monkeypatch):
    labels = np.repeat([0, 1, 2, 3], [2, 3, 4, 5])
    folds = folds_of(labels)
    models = solve(K, TARGETS["three"], MU, sample_weight=WEIGHT).models()
    outer = [(0,), (1, 2), (3,), (0, 3)]

    def all_residuals():
        parts = dict.fromkeys(range(len(outer)))
        for part, e in InnerFolds(folds, outer).residuals(models.P, models.fit.alpha, MU):
            parts |= dict(zip(part.tolist(), e.transpose(1, 0, 2), strict=True))
        return np.array(list(parts.values()))

    few = all_residuals()
    monkeypatch.setattr(_without_folds, "_FEW", 1)
    assert_allclose(all_residuals(), few, rtol=1e-9)
