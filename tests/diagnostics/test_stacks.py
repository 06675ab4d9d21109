"""Case deletion on a stack of machines, against refits of its members."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms import LSSVMClassifierCV, LSSVMRegressorCV
from looms.criteria import as_criterion
from looms.diagnostics import case_deletion
from looms.lssvm import solve

RNG = np.random.default_rng(0)
N = 24
X = RNG.normal(size=(N, 2))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=N)
CLASSES = np.digitize(NUMBERS, [-0.3, 0.5])
WEIGHT = RNG.uniform(0.3, 3.0, N)
GROUPS = {"apart": np.arange(N), "groups": np.array([f"ward {k}" for k in np.arange(N) // 3 % 6])}


def refitted(model, rows):
    """Outputs (n, t) for all rows of the stack trained on some, at its ridges."""
    y, zeta, outputs = model.loo_.y.reshape(N, -1), model.fit_weight_, 0.0
    for one in model.members_:
        K = one.kernel(X)
        mu = one.mu * zeta.sum() / zeta[rows].sum()
        weight = zeta[rows] * len(rows) / zeta[rows].sum()
        fit = solve(K[np.ix_(rows, rows)], y[rows], mu, sample_weight=weight).projection.machine
        outputs = outputs + one.weight * (K[:, rows] @ fit.coefficients + fit.intercept)
    return outputs


def criterion_of_refits(model, criterion, group, rows):
    """Criterion of the stack of some rows, by refits without each of its units."""
    y, weight = model.loo_.y, model.loo_.sample_weight
    held_out = np.empty((N, *y.shape[1:]))
    for unit in np.unique(group[rows]):
        own = rows[group[rows] == unit]
        held_out[own] = refitted(model, np.setdiff1d(rows, own)).reshape(held_out.shape)[own]
    return as_criterion(criterion).evaluate(y[rows], held_out[rows], weight[rows]).value


@pytest.mark.slow
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("machine", [LSSVMRegressorCV, LSSVMClassifierCV])
def test_case_deletion_of_a_stack_equals_refits(machine, groups):
    y = CLASSES if machine is LSSVMClassifierCV else NUMBERS
    model = machine(["linear", "rbf"], combine="stack", nested=None).fit(X, y, WEIGHT)
    assert len(model.members_) == 2
    result = case_deletion(model, groups=None if groups == "apart" else GROUPS[groups])
    y, every, group = model.loo_.y.reshape(N, -1), np.arange(N), GROUPS[groups]
    whole, units = refitted(model, every), np.unique(group)
    smoother = sum(one.weight * smoother_of(model, one) for one in model.members_)
    metric = model.fit_weight_[:, None] * (np.eye(N) - smoother)
    energy = np.empty((len(units), y.shape[1]))
    for k, unit in enumerate(units):
        own, rest = np.flatnonzero(group == unit), np.flatnonzero(group != unit)
        outputs = refitted(model, rest)
        change, e = outputs - whole, (y - outputs)[own]
        assert_allclose(result.own_change[own].reshape(change[own].shape), change[own], rtol=1e-7)
        if groups == "apart":  # a stack without groups holds out the folds that weighed it
            assert_allclose(result.residual[own], model.held_out_.residuals[own])
        else:
            assert_allclose(result.residual[own].reshape(e.shape), e, rtol=1e-7)
        assert_allclose(result.rms_change[k], np.sqrt(np.mean(change[rest] ** 2)), rtol=1e-7)
        assert_allclose(result.largest_change[k], np.abs(change[rest]).max(), rtol=1e-7)
        judged = [criterion_of_refits(model, result.criterion, group, r) for r in (rest, every)]
        assert_allclose(result.criterion_change[k], judged[0] - judged[1], rtol=1e-6, atol=1e-9)
        energy[k] = np.einsum("it,ij,jt->t", e, metric[np.ix_(own, own)], e) / len(own)
    sizes = np.unique(group, return_counts=True)[1]
    usual = (energy * sizes[:, None]).sum(axis=0) / N
    assert_allclose(result.surprise, np.sqrt(np.mean(energy / usual, axis=1)), rtol=1e-7)
    assert_allclose(result.leverage, smoother.diagonal(), rtol=1e-7)


def smoother_of(model, one):
    """H of a member, f = H y, by a solution for each row as the only target."""
    K = one.kernel(X)
    fit = solve(K, np.eye(N), one.mu, sample_weight=model.fit_weight_).projection.machine
    return K @ fit.coefficients + fit.intercept
