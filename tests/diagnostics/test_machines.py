"""Case deletion of each kind of least-squares machine, against refits at its hyper-parameters."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search, TabularRegressor
from looms.criteria import as_criterion
from looms.diagnostics import _case_deletion, case_deletion, deviance, influence, left_out_fits
from looms.diagnostics._left_out import likelihood_of_outputs
from looms.diagnostics._problem import pose
from looms.lssvm import landmarks, left_out

RNG = np.random.default_rng(0)
N, M = 24, 8
X = RNG.normal(size=(N, 2))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=N)
CLASSES = np.digitize(NUMBERS, [-0.3, 0.5])
WEIGHT = np.where(np.arange(N) % 7 == 0, 0.0, np.random.default_rng(1).uniform(0.3, 3.0, N))
GROUPS = {"apart": np.arange(N), "groups": np.array([f"ward {k}" for k in np.arange(N) // 3 % 6])}

tuned, classes = KernelRegressor, KernelClassifier


def stacked(task, **options):
    """A stack of two kernels, with these options of each."""
    stack = stacked_classifier if task is KernelClassifier else stacked_regressor
    search = Search(max_iter=4)
    return stack([task(kernel, search=search, **options) for kernel in ("linear", "rbf")])


MACHINES = {
    "grid": lambda: classes("rbf", search=Search(method="grid")),
    "landmarks": lambda: tuned("matern12", n_landmarks=M),
    "landmarks without intercept": lambda: tuned("matern12", n_landmarks=M, fit_intercept=False),
    "landmarks of classes": lambda: classes("matern12", n_landmarks=M, class_weight="balanced"),
    "stack": lambda: stacked(tuned),
    "stack of classes": lambda: stacked(classes),
    "stack on landmarks": lambda: stacked(tuned, n_landmarks=M),
    "stack of classes on landmarks": lambda: stacked(classes, n_landmarks=M),
}


def refitted(model, rows, y=None):
    """Outputs (n, t) for all rows of the machine trained on some, at its ridges and landmarks."""
    y = (model.loo_.y if y is None else y).reshape(N, -1)
    return sum(one.weight * refitted_member(model, one, rows, y) for one in model.members_)


_KERNELS = {}


def grams(one):
    """Kernel matrix with all rows or with the landmarks, and that of the landmarks; kept."""
    if id(one.kernel) not in _KERNELS:
        own = None if one.landmarks is None else one.kernel(one.landmarks, one.landmarks)
        _KERNELS[id(one.kernel)] = one.kernel, one.kernel(X, one.landmarks), own
    return _KERNELS[id(one.kernel)][1:]


def refitted_member(model, one, rows, y):
    """The same of a single machine, by its normal equations or its whole kernel matrix."""
    weight = model.fit_weight_
    ridge, bias = one.mu * weight.sum(), np.ones((N, int(model.fit_intercept_)))
    K, own = grams(one)
    if one.landmarks is None:
        K = np.hstack([K[:, rows], bias])
        system = np.zeros((K.shape[1],) * 2)
        system[: len(rows)] = K[rows]
        system[: len(rows), : len(rows)] += np.diag(ridge / weight[rows])
        system[len(rows) :, : len(rows)] = bias[rows].T
        targets = np.vstack([y[rows], np.zeros((bias.shape[1], y.shape[1]))])
        return K @ np.linalg.solve(system, targets)
    phi, m = np.hstack([K, bias]), one.landmarks.shape[0]
    penalty = np.zeros((phi.shape[1],) * 2)
    penalty[:m, :m] = ridge * own
    weighted = weight[rows, None] * phi[rows]
    # of a linear kernel, landmarks are linearly dependent
    solution = np.linalg.pinv(phi[rows].T @ weighted + penalty, hermitian=True, rcond=1e-13)
    return phi @ (solution @ (weighted.T @ y[rows]))


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
@pytest.mark.parametrize("machine", MACHINES)
def test_case_deletion_equals_refits(machine, groups, monkeypatch):
    monkeypatch.setattr(landmarks, "_NUMBERS", 9 * M)  # some units at a time
    monkeypatch.setattr(left_out, "_NUMBERS", 5 * N)
    model = MACHINES[machine]()
    model.fit(X, CLASSES if is_classifier(model) else NUMBERS, sample_weight=WEIGHT)
    assert len(model.members_) == 1 + ("stack" in machine)
    result = case_deletion(model, groups=None if groups == "apart" else GROUPS[groups])
    near = {"rtol": 1e-6, "atol": 1e-9} if "landmarks" in machine else {"rtol": 1e-7}
    close = partial(assert_allclose, **near)
    group, units, y = GROUPS[groups], np.unique(GROUPS[groups]), model.loo_.y.reshape(N, -1)
    seen, shape = np.flatnonzero(model.fit_weight_), result.own_change.shape[1:]
    whole, judged = refitted(model, seen), partial(criterion_of_refits, model, result.criterion)
    smoother = refitted(model, seen, np.eye(N))
    metric = model.fit_weight_[:, None] * (np.eye(N) - smoother)
    energy, sizes = np.full((len(units), y.shape[1]), np.nan), np.zeros(len(units))
    for k, unit in enumerate(units):
        inside, rest = seen[group[seen] == unit], seen[group[seen] != unit]
        if not len(inside):
            assert np.isnan([result.rms_change[k], result.surprise[k]]).all()
            continue
        outputs = refitted(model, rest)
        change, e = outputs - whole, (y - outputs)[inside]
        own_change = change[inside].reshape(-1, *shape)
        close(result.own_change[inside], own_change)
        if groups == "apart" and len(model.members_) > 1:  # those without the folds that weighed it
            e_held_out = model.held_out_.residuals[inside]
        else:
            e_held_out = e.reshape(-1, *shape)
        close(result.residual[inside], e_held_out)
        close(result.rms_change[k], np.sqrt(np.mean(change[rest] ** 2)))
        close(result.largest_change[k], np.abs(change[rest]).max())
        of_criterion = judged(group, rest) - judged(group, seen)
        assert_allclose(result.criterion_change[k], of_criterion, rtol=1e-6, atol=1e-9)
        energy[k] = np.einsum("it,ij,jt->t", e, metric[np.ix_(inside, inside)], e)
        sizes[k] = len(inside)
    left = sizes > 0
    usual = energy[left].sum(axis=0) / len(seen)
    surprise = np.sqrt(np.mean(energy[left] / sizes[left, None] / usual, axis=1))
    close(result.surprise[left], surprise)
    close(result.leverage[seen], smoother.diagonal()[seen])


def test_surprise_with_landmarks_at_all_rows_is_that_of_the_whole_kernel():
    low = tuned("matern12", n_landmarks=N).fit(X, NUMBERS)
    whole = KernelRegressor(low.kernel_, mu=low.mu_).fit(X, NUMBERS)
    for groups in (None, np.arange(N) // 7):
        of_low, of_whole = (case_deletion(model, groups=groups) for model in (low, whole))
        for name in ("surprise", "rms_change", "leverage", "own_change"):
            assert_allclose(getattr(of_low, name), getattr(of_whole, name), rtol=1e-6)


def test_more_samples_than_can_be_paired_have_no_change_of_criterion(monkeypatch):
    model = tuned("matern12", n_landmarks=M).fit(X, NUMBERS)
    few = case_deletion(model)
    monkeypatch.setattr(_case_deletion, "MOST_PAIRED", N - 1)
    many = case_deletion(model)
    assert_allclose(many.rms_change, few.rms_change, rtol=1e-10)
    assert np.isnan(many.largest_change).all()
    assert np.isnan(many.criterion_change).all()
    assert "criterion" not in repr(many)


def test_a_transformed_target_is_on_the_scale_of_the_transform():
    y = np.exp(NUMBERS)
    model = TabularRegressor(["rbf"], target="log", preprocess=None).fit(X, y)
    ours, theirs = case_deletion(model), case_deletion(tuned("rbf").fit(X, NUMBERS))
    assert_allclose(ours.rms_change, theirs.rms_change, rtol=1e-7)
    assert_allclose(ours.residual, theirs.residual, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize(
    "machine", ["landmarks of two classes", "stack of classes", "stack of classes on landmarks"]
)
@pytest.mark.slow
def test_deviance_and_influence_are_those_of_refits_with_the_members_held(machine, groups):
    y, group = (CLASSES > 0).astype(int), np.unique(GROUPS[groups], return_inverse=True)[1]
    made = MACHINES | {"landmarks of two classes": lambda: classes("matern12", n_landmarks=M)}
    model = made[machine]().fit(X, y)
    posed = clone(pose(model, X, y, "auto").estimator).fit(X, y)
    assert_allclose(posed._outputs(X), model._outputs(X), atol=1e-8)
    rows = np.array(
        [refitted(posed, np.flatnonzero(group != k))[:, 0] for k in range(group.max() + 1)]
    )
    fits = left_out_fits(model, X, y, groups=None if groups == "apart" else GROUPS[groups])
    terms = likelihood_of_outputs(model._outputs(X), rows, y, group)
    assert_allclose(deviance(fits).cv_score, -2 * terms.left_out.sum(), rtol=1e-5)
    expected = -2 * (terms.fitted.sum() - terms.rest)
    assert_allclose(influence(fits).values, expected, atol=1e-4)
