"""Nested choice among fixed candidates, against the same choice made anew without each fold."""

from collections import Counter
from itertools import groupby
from operator import itemgetter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise

from looms import KernelRegressor, Search
from looms.fitted._outcome import Classes
from looms.kernels import RBF, Linear, Polynomial
from looms.lssvm import solve
from looms.lssvm.fit import Fit
from looms.lssvm.refit import refit_loo
from looms.optimize._search import Point
from looms.selection import _nested, _objective, _scan
from looms.selection._candidates import HeldOutLoss
from looms.selection._nested import InnerFolds
from looms.selection._objective import Objective, objective_of
from looms.selection._scan import scan
from looms.units import Units

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
    "groups": {"units": Units.of(None, LABELS, np.arange(N) // 3)},
    "folds": {"units": Units.of(5, LABELS)},
}
WEIGHTS = {"unweighted": None, "weighted": RNG.uniform(0.3, 3.0, N)}


KERNELS = {"two kernels": [RBF(), Polynomial(2)], "few features": [Linear()]}


def candidates_of(kernels, y, criterion, options):
    for kernel in kernels:
        objective = objective_of(X, y, kernel=kernel, criterion=criterion, **options)
        for width in (-2.0, 1.0) if len(objective.theta0) > 1 else (0.0,):
            for ridge in (-4.0, 0.0, 4.0):
                shift = np.append(np.full(len(objective.theta0) - 1, width), ridge)
                yield objective, objective.theta0 + shift


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernels", "target", "cv", "weight", "criterion", "intercept"),
    pairwise(KERNELS, TARGETS, CVS, WEIGHTS, ["press", "wmw", "squared_hinge"], [True, False]),
)
def test_it_is_the_choice_made_anew_without_each_fold(
    kernels, target, cv, weight, criterion, intercept
):
    y, zeta = TARGETS[target], WEIGHTS[weight]
    options = {"sample_weight": zeta, "fit_intercept": intercept, **CVS[cv]}
    candidates = list(candidates_of(KERNELS[kernels], y, criterion, options))
    objective = candidates[0][0]
    units = objective.units
    choice = InnerFolds(y, units, Classes(np.arange(2)))
    values = [choice.evaluate(*candidate).value for candidate in candidates]
    points = [objective.evaluate(theta, gradient=False) for objective, theta in candidates]
    assert_allclose(values, [point.value for point in points], rtol=1e-10)
    zeta = objective.sample_weight
    held_out = choice.nested(zeta, lambda *_: HeldOutLoss(0.0)).held_out.outputs
    assert [len(left_out) for left_out in choice.left_out].count(1) == units.n_units
    for r, left_out in list(enumerate(choice.left_out))[:: 1 if cv == "folds" else 2]:
        fold = np.flatnonzero(np.isin(units.number[0], left_out))
        rest = np.delete(np.arange(N), fold)
        machines = []
        for objective, theta in candidates:
            K = objective.kernel_at(theta)(X)
            mu = objective.mu_at(theta) * N / len(rest)  # λ = n μ / ζ is held
            machine = solve(
                K[np.ix_(rest, rest)],
                y[rest],
                mu,
                sample_weight=zeta[rest],
                fit_intercept=intercept,
            )
            own = units.among(rest)
            machines.append(Fit.of(machine, own, y[rest], objective.kernel))
        values = [
            objective.criterion.evaluate(y[rest], fit.held_out[0], zeta[rest]).value
            for fit in machines
        ]
        k = int(np.argmin(values))
        assert choice.chosen[r] == k
        objective, theta = candidates[k]
        fit = machines[k]
        K = objective.kernel_at(theta)(X)
        theirs = K[np.ix_(fold, rest)] @ fit.member.dual_coef + fit.member.intercept
        ours = choice.outputs[r].reshape(y.shape)
        assert_allclose(ours[fold], theirs, rtol=1e-8, atol=1e-9)
        assert_allclose(ours[rest], fit.held_out[0], rtol=1e-8, atol=1e-9)
        if len(left_out) == 1:
            assert_array_equal(held_out[fold], ours[fold])


def test_candidates_that_cannot_be_evaluated_are_not_chosen():
    K = X @ X.T - 3.0 * np.eye(N)
    objective = Objective(K, LABELS, kernel="precomputed")
    choice = InnerFolds(LABELS, objective.units, Classes(np.arange(2)))
    values = [choice.evaluate(objective, np.array([m])).value for m in (-20.0, 3.0, 5.0)]
    assert_array_equal(np.isfinite(values), [False, True, True])
    assert (choice.chosen > 0).all()
    choice = InnerFolds(LABELS, objective.units, Classes(np.arange(2)))
    choice.evaluate(objective, np.array([-20.0]))
    with pytest.raises(ValueError, match="No candidate"):
        choice.nested(np.ones(N), lambda *_: HeldOutLoss(0.0))


@pytest.mark.parametrize(
    ("units", "takes"),
    [
        (Units.of("2x3", LABELS), False),
        (Units.of(2, LABELS), False),
        (Units.of(3, LABELS), True),
        (Units.of_numbers(np.arange(N) - 1), False),
        (Units.rows(N), True),
    ],
)
def test_inner_folds_take_units_in_which_every_row_is_once(units, takes):
    assert InnerFolds.can_take(units) is takes


def _on(thetas):
    """A grid of these points."""
    return lambda objective: thetas


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("cv", [None, 5, "5x2"])
def test_a_scan_takes_the_least_of_all_points(kernels, cv, monkeypatch):
    options = {"units": Units.of(cv, LABELS)}
    candidates = list(candidates_of(KERNELS[kernels], LABELS, "press", options))
    for objective, some in groupby(candidates, itemgetter(0)):
        points = _on([theta for _, theta in some])
        monkeypatch.setattr(_scan, "grid_points", points)
        monkeypatch.setattr(_nested, "grid_points", points)
        thetas = _scan.grid_points(objective)
        theirs = [objective.evaluate(theta, gradient=False) for theta in thetas]
        ours = []
        tuning, fit = scan(objective, evaluated=lambda _, point, ours=ours: ours.append(point))
        for found in (ours, tuning.history):
            assert [point.theta.tolist() for point in found] == [p.theta.tolist() for p in theirs]
            assert_allclose([point.value for point in found], [p.value for p in theirs], rtol=1e-9)
        best = min(theirs, key=lambda point: point.value)
        assert_allclose(fit.held_out, best.model.held_out, rtol=1e-9)
        if cv != "5x2":
            others = InnerFolds(LABELS, objective.units, Classes(np.arange(2))).scan(objective)
            least = min(others, key=lambda point: point.value)
            assert least.value == pytest.approx(tuning.value, rel=1e-9)
            assert_allclose(least.model.held_out, fit.held_out, rtol=1e-9)


def test_points_that_cannot_be_solved_are_not_taken(monkeypatch):
    K = X @ X.T - 3.0 * np.eye(N)
    objective = Objective(K, LABELS, kernel="precomputed")
    points = [np.array([m]) for m in (-20.0, 3.0, 5.0)]
    monkeypatch.setattr(_scan, "grid_points", _on(points))
    seen = []
    _, fit = scan(objective, evaluated=lambda _, point: seen.append(point.value))
    assert_array_equal(np.isfinite(seen), [False, True, True])
    assert_array_equal(
        fit.member.dual_coef, objective.fit(points[int(np.argmin(seen))]).member.dual_coef
    )
    monkeypatch.setattr(_scan, "grid_points", _on(points[:1]))
    assert scan(objective)[1] is None
    monkeypatch.setattr(_scan, "grid_points", _on(points))
    # Should eigenvectors give a value where a factorization fails, it is not the least.
    monkeypatch.setattr(
        objective, "along_mu", lambda _, log2_mu: [Point(np.array([m]), m, 1.0) for m in log2_mu]
    )
    seen.clear()
    _, fit = scan(objective, evaluated=lambda _, point: seen.append(point.value))
    assert_array_equal(fit.member.dual_coef, objective.fit(points[1]).member.dual_coef)
    assert seen[0] == np.inf
    assert seen[1] == objective.evaluate(points[1], gradient=False).value


@pytest.mark.parametrize(
    ("n_features", "taken", "more"),
    [
        (4, {"decompose_features": 1}, {"decompose_features": 1}),
        (60, {"decompose": 1, "Dense": 1}, {"Dense": 17}),
    ],
)
def test_a_grid_of_a_linear_machine_takes_one_decomposition(monkeypatch, n_features, taken, more):
    S = RNG.standard_normal((40, n_features))
    y = S[:, 0] + RNG.standard_normal(40)
    counts = Counter()

    def counted(module, name):
        call = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *args, **options: counts.update([name]) or call(*args, **options)
        )

    counted(_objective, "decompose_features")
    counted(_objective, "decompose")
    counted(_objective, "Dense")
    model = KernelRegressor("linear", search=Search(method="grid")).fit(S, y)
    assert counts == taken
    counts.clear()
    model.evaluate()
    assert counts == more
    assert len(model.selection_.stages[0][1].history) == 17
    refitted = refit_loo(S @ S.T, y, model.mu_).outputs
    assert_allclose(model.loo_.outputs, refitted, rtol=1e-8)
    assert_allclose(model.selection_.value, np.mean((y - refitted) ** 2), rtol=1e-8)
