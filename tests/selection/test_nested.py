"""Nested choice among fixed candidates, against the same choice made anew without each fold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise

from looms.kernels import RBF, Polynomial
from looms.lssvm import solve
from looms.selection import Objective
from looms.selection._nested import choose_nested

N = 24
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, 3))
LABELS = np.where(X[:, 0] + RNG.standard_normal(N) > 0, 1.0, -1.0)
TARGETS = {
    "two classes": LABELS,
    "three classes": np.where(RNG.integers(0, 3, N)[:, None] == np.arange(3), 1.0, -1.0),
}
CVS = {
    "each row": {},
    "groups": {"groups": np.arange(N) // 3},
    "folds": {"cv": 5},
}
WEIGHTS = {"unweighted": None, "weighted": RNG.uniform(0.3, 3.0, N)}


def candidates_of(kernels, y, criterion, options):
    for kernel in kernels:
        objective = Objective(X, y, kernel=kernel, criterion=criterion, **options)
        for width in (-2.0, 1.0) if len(objective.theta0) > 1 else (0.0,):
            for ridge in (-4.0, 0.0, 4.0):
                shift = np.append(np.full(len(objective.theta0) - 1, width), ridge)
                yield objective, objective.theta0 + shift


@pytest.mark.parametrize(
    ("target", "cv", "weight", "criterion", "intercept"),
    pairwise(TARGETS, CVS, WEIGHTS, ["press", "wmw", "squared_hinge"], [True, False]),
)
def test_it_is_the_choice_made_anew_without_each_fold(target, cv, weight, criterion, intercept):
    y, zeta = TARGETS[target], WEIGHTS[weight]
    options = {"sample_weight": zeta, "fit_intercept": intercept, **CVS[cv]}
    candidates = list(candidates_of([RBF(), Polynomial(2)], y, criterion, options))
    choice = choose_nested(candidates)
    points = [objective.evaluate(theta, gradient=False) for objective, theta in candidates]
    assert_allclose(choice.values, [point.value for point in points], rtol=1e-10)
    assert choice.best == np.argmin([point.value for point in points])
    objective = candidates[0][0]
    zeta = objective.sample_weight
    number = np.arange(N) if objective.folds is None else objective.folds[0]
    assert [len(left_out) for left_out in choice.left_out].count(1) == len(choice.folds)
    for r, left_out in list(enumerate(choice.left_out))[:: 1 if cv == "folds" else 2]:
        fold = np.concatenate([choice.folds[g] for g in left_out])
        rest = np.delete(np.arange(N), fold)
        machines = []
        for objective, theta in candidates:
            K = objective.kernel_at(theta)(X)
            mu = objective.mu_at(theta) * N / len(rest)  # λ = n μ / ζ is held
            machines.append(
                solve(
                    K[np.ix_(rest, rest)],
                    y[rest],
                    mu,
                    sample_weight=zeta[rest],
                    fit_intercept=intercept,
                    folds=number[rest],
                ).fit
            )
        values = [
            objective.criterion.evaluate(y[rest], fit.held_out[0], zeta[rest]).value
            for fit in machines
        ]
        k = int(np.argmin(values))
        assert choice.chosen[r] == k
        objective, theta = candidates[k]
        fit = machines[k]
        K = objective.kernel_at(theta)(X)
        theirs = K[np.ix_(fold, rest)] @ fit.alpha + fit.intercept
        ours = choice.outputs[r].reshape(y.shape)
        assert_allclose(ours[fold], theirs, rtol=1e-8, atol=1e-9)
        assert_allclose(ours[rest], fit.held_out[0], rtol=1e-8, atol=1e-9)
        if len(left_out) == 1:
            assert_array_equal(choice.held_out.reshape(y.shape)[fold], ours[fold])


def test_candidates_that_cannot_be_evaluated_are_not_chosen():
    K = X @ X.T - 3.0 * np.eye(N)
    objective = Objective(K, LABELS, kernel="precomputed")
    choice = choose_nested([(objective, np.array([m])) for m in (-20.0, 3.0, 5.0)])
    assert_array_equal(np.isfinite(choice.values), [False, True, True])
    assert (choice.chosen > 0).all()
    with pytest.raises(ValueError, match="No candidate"):
        choose_nested([(objective, np.array([-20.0]))])


@pytest.mark.parametrize(("cv", "match"), [("2x3", "one number"), (2, "three or more")])
def test_repetitions_and_two_folds_are_refused(cv, match):
    objective = Objective(X, LABELS, cv=cv)
    with pytest.raises(ValueError, match=match):
        choose_nested([(objective, objective.theta0)])
