"""Residuals with two folds held out, against refits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.kernels import RBF
from looms.lssvm import NotPositiveDefiniteError, refit_loo, solve
from looms.lssvm._fold_pairs import pair_residuals

N, MU = 14, 0.03
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, 3))
K = RBF(0.5)(X)
TARGETS = {"one": RNG.standard_normal(N), "three": RNG.standard_normal((N, 3))}
WEIGHT = RNG.uniform(0.3, 3.0, N)
FOLDS = {
    "each": np.arange(N),
    "uneven": np.array([0, 1, 1, 2, 0, 3, 3, 3, 3, 4, 5, 1, 6, 0]),
    "thirds": np.arange(N) % 3,
}


def folds_of(labels):
    return [np.flatnonzero(labels == k) for k in np.unique(labels)]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fold", FOLDS)
def test_they_are_the_held_out_residuals_of_the_machine_without_the_other_fold(
    fold, target, intercept
):
    y, labels = TARGETS[target], FOLDS[fold]
    folds = folds_of(labels)
    models = solve(K, y, MU, sample_weight=WEIGHT, fit_intercept=intercept).models()
    alpha = models.fit.alpha.reshape(N, -1)
    for outer, residuals in pair_residuals(models.P, alpha, folds, MU):
        for g, e in zip(range(N)[outer], residuals.transpose(1, 0, 2), strict=True):
            rest = np.delete(np.arange(N), folds[g])
            without = refit_loo(
                K[np.ix_(rest, rest)],
                y[rest],
                MU * N / len(rest),  # λ = n μ / ζ is held while rows are out
                sample_weight=WEIGHT[rest],
                fit_intercept=intercept,
                folds=labels[rest],
            )
            assert_allclose(e[rest], without.residuals.reshape(len(rest), -1), rtol=1e-7, atol=1e-9)
            own = refit_loo(
                K, y, MU, sample_weight=WEIGHT, fit_intercept=intercept, folds=labels
            ).residuals.reshape(N, -1)
            assert_allclose(e[folds[g]], own[folds[g]], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array([0, 1, 1])])
def test_two_folds_that_leave_no_row_for_the_intercept_are_refused(labels):
    n = len(labels)
    models = solve(np.eye(n), np.arange(n, dtype=float), 0.1).models()
    with pytest.raises(NotPositiveDefiniteError, match="leverage"):
        list(pair_residuals(models.P, models.fit.alpha[:, None], folds_of(labels), 0.1))
