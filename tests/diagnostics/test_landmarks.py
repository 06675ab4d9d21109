"""Machines on landmarks without each sample, or group, against refits with the landmarks held."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from looms import LSSVMClassifierCV, LSSVMRegressor, LSSVMRegressorCV
from looms.blocks import ArrayBlocks
from looms.criteria import as_criterion
from looms.diagnostics import _case_deletion, case_deletion, deviance, influence, left_out_fits
from looms.diagnostics._left_out import least_squares_outputs, likelihood_of_outputs
from looms.diagnostics._problem import pose
from looms.lssvm import landmarks, left_out

RNG = np.random.default_rng(0)
N, M = 60, 12
X = RNG.normal(size=(N, 3))
NUMBERS = X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=N)
CLASSES = np.digitize(NUMBERS, [0.3, 1.2])
WEIGHT = np.where(np.arange(N) % 7 == 0, 0.0, RNG.uniform(0.3, 3.0, N))
GROUPS = {"apart": np.arange(N), "groups": np.array([f"ward {k}" for k in np.arange(N) // 4 % 9])}


def refitted(model, rows):
    """Outputs for all rows of the machine trained on some, and its ridge and landmarks held."""
    seen = np.flatnonzero(model.fit_weight_)
    K, y = model.kernel_(X, model.landmarks_), model.loo_.y.reshape(N, -1)
    phi = np.column_stack([K, np.ones(N)])[:, : M + model.fit_intercept_]
    penalty = np.zeros((phi.shape[1],) * 2)
    penalty[:M, :M] = len(seen) * model.mu_ * model.kernel_(model.landmarks_, model.landmarks_)
    weighted = model.fit_weight_[rows, None] * phi[rows]
    return phi @ np.linalg.solve(phi[rows].T @ weighted + penalty, weighted.T @ y[rows])


def criterion_of_refits(model, criterion, group, rows):
    """Criterion of the machine of some rows, by refits without each of its units."""
    y, weight = model.loo_.y, model.loo_.sample_weight
    held_out = np.empty((N, *y.shape[1:]))
    for unit in np.unique(group[rows]):
        own = rows[group[rows] == unit]
        held_out[own] = refitted(model, np.setdiff1d(rows, own)).reshape(held_out.shape)[own]
    return as_criterion(criterion).evaluate(y[rows], held_out[rows], weight[rows]).value


@pytest.mark.slow
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize(
    "machine",
    [
        LSSVMRegressorCV("matern12", rank=M, nested=None),
        LSSVMRegressorCV("matern12", rank=M, nested=None, fit_intercept=False),
        LSSVMClassifierCV("matern12", rank=M, nested=None, class_weight="balanced"),
    ],
)
def test_case_deletion_equals_refits(machine, groups, monkeypatch):
    monkeypatch.setattr(landmarks, "_NUMBERS", 9 * M)  # some units at a time
    monkeypatch.setattr(left_out, "_NUMBERS", 5 * N)
    y = CLASSES if isinstance(machine, LSSVMClassifierCV) else NUMBERS
    model = machine.fit(X, y, sample_weight=WEIGHT)
    result = case_deletion(model, groups=None if groups == "apart" else GROUPS[groups])
    seen, y = np.flatnonzero(model.fit_weight_), model.loo_.y.reshape(N, -1)
    whole = refitted(model, seen)
    judged = partial(criterion_of_refits, model, result.criterion, GROUPS[groups])
    for k, unit in enumerate(np.unique(GROUPS[groups])):
        own = GROUPS[groups] == unit
        inside, rest = seen[own[seen]], seen[~own[seen]]
        if not len(inside):
            assert np.isnan([result.rms_change[k], result.surprise[k]]).all()
            continue
        outputs = refitted(model, rest)
        change = (outputs - whole).reshape(N, *result.own_change.shape[1:])
        assert_allclose(result.own_change[inside], change[inside], rtol=1e-6, atol=1e-9)
        residual = (y - outputs).reshape(change.shape)
        assert_allclose(result.residual[inside], residual[inside], rtol=1e-6, atol=1e-9)
        assert_allclose(result.rms_change[k], np.sqrt(np.mean(change[rest] ** 2)), rtol=1e-6)
        assert_allclose(result.largest_change[k], np.abs(change[rest]).max(), rtol=1e-6)
        of_criterion = judged(rest) - judged(seen)
        assert_allclose(result.criterion_change[k], of_criterion, rtol=1e-6, atol=1e-9)


def test_surprise_with_landmarks_at_all_rows_is_that_of_the_whole_kernel():
    low = LSSVMRegressorCV("matern12", rank=N, nested=None).fit(X, NUMBERS)
    whole = LSSVMRegressor(low.kernel_, mu=low.mu_).fit(X, NUMBERS)
    for groups in (None, np.arange(N) // 7):
        of_low, of_whole = (case_deletion(model, groups=groups) for model in (low, whole))
        for name in ("surprise", "rms_change", "leverage", "own_change"):
            assert_allclose(getattr(of_low, name), getattr(of_whole, name), rtol=1e-6)


def test_mislabeled_samples_are_those_against_the_machine_without_them():
    y = np.where(X[:, 0] > 0, "a", "b")
    wrong = int(X[:, 0].argmax())
    y[wrong] = "b"
    model = LSSVMClassifierCV("linear", rank=3, nested=None).fit(X, y)
    assert case_deletion(model).mislabeled(1).index.tolist() == [wrong]


def test_more_samples_than_can_be_paired_have_no_change_of_criterion(monkeypatch):
    model = LSSVMRegressorCV("matern12", rank=M, nested=None).fit(X, NUMBERS)
    few = case_deletion(model)
    monkeypatch.setattr(_case_deletion, "MOST_PAIRED", N - 1)
    many = case_deletion(model)
    assert_allclose(many.rms_change, few.rms_change, rtol=1e-10)
    assert np.isnan(many.largest_change).all()
    assert np.isnan(many.criterion_change).all()
    assert "criterion" not in repr(many)


def test_rows_that_are_not_kept_are_refused_in_one_line():
    blocks = LSSVMClassifierCV("matern12", rank=M, nested=None).fit(ArrayBlocks(X), CLASSES)
    with pytest.raises(ValueError, match="fitted to rows in blocks does not keep them") as caught:
        case_deletion(blocks)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize(
    "options",
    [{"kernel": "matern12", "rank": M}, {"kernel": ["linear", "matern12"], "combine": "stack"}],
)
def test_deviance_and_influence_are_those_of_refits_with_the_members_held(options, groups):
    y, group = (CLASSES > 0).astype(int), np.unique(GROUPS[groups], return_inverse=True)[1]
    model = LSSVMClassifierCV(**options, nested=None).fit(X, y)
    machine = clone(pose(model, X, y, "auto").machine).fit(X, y)
    assert_allclose(machine._outputs(X), model._outputs(X), atol=1e-8)
    outputs, rows = least_squares_outputs(machine, group)
    for k, f in enumerate(rows):
        rest, expected = np.flatnonzero(group != k), 0.0
        for one in machine._members:
            basis = X[rest] if one.landmarks is None else one.landmarks
            phi, m = np.c_[one.kernel(X, basis), np.ones(N)], len(basis)
            A = phi[rest].T @ phi[rest]
            A[:m, :m] += N * one.mu * one.kernel(basis)
            theta = np.linalg.lstsq(A, phi[rest].T @ (2.0 * y[rest] - 1), rcond=1e-14)[0]
            expected = expected + one.weight * phi @ theta
        assert_allclose(f, expected, atol=1e-5)
    fits = left_out_fits(model, X, y, groups=None if groups == "apart" else GROUPS[groups])
    terms = likelihood_of_outputs(outputs, rows, y, group)
    assert_allclose(deviance(fits).cv_score, -2 * terms.left_out.sum())
    assert_allclose(influence(fits).values, -2 * (terms.fitted.sum() - terms.rest))
