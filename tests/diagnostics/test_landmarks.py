"""Machines on landmarks without each sample, or group, against refits with the landmarks held."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms import LSSVMClassifierCV, LSSVMRegressor, LSSVMRegressorCV
from looms.blocks import ArrayBlocks
from looms.diagnostics import case_deletion, influence
from looms.lssvm import _low_rank_changes

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
    monkeypatch.setattr(_low_rank_changes, "_NUMBERS", 9 * M)  # some units at a time
    y = CLASSES if isinstance(machine, LSSVMClassifierCV) else NUMBERS
    model = machine.fit(X, y, sample_weight=WEIGHT)
    result = case_deletion(model, groups=None if groups == "apart" else GROUPS[groups])
    seen, y = np.flatnonzero(model.fit_weight_), model.loo_.y.reshape(N, -1)
    whole = refitted(model, seen)
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
    assert np.isnan(result.largest_change).all()
    assert np.isnan(result.criterion_change).all()
    assert "criterion" not in repr(result)


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


def test_what_is_not_a_sum_over_samples_is_refused_in_one_line():
    model = LSSVMClassifierCV("matern12", rank=M, nested=None).fit(X, CLASSES)
    blocks = LSSVMClassifierCV("matern12", rank=M, nested=None).fit(ArrayBlocks(X), CLASSES)
    for call, message in (
        (lambda: case_deletion(model, criterion="press"), "12 landmarks: leave out criterion"),
        (lambda: case_deletion(blocks), "fitted to rows in blocks does not keep them"),
        (lambda: influence(model, X, CLASSES), "the machine has 12 landmarks"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
