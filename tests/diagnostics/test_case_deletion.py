"""Case deletion of each kind of least-squares machine, against refits at its hyper-parameters."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import refits
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search, TabularRegressor
from looms.criteria import DIFFERENTIABLE, SmoothedError, as_criterion
from looms.diagnostics import _case_deletion, case_deletion, deviance, influence, left_out_fits
from looms.diagnostics._left_out import likelihood_of_outputs
from looms.diagnostics._problem import pose
from looms.kernels import RBF
from looms.lssvm import inner, landmarks, left_out

RNG = np.random.default_rng(0)
N, M = 24, 8
X = RNG.normal(size=(N, 2))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=N)
LABELS = {
    "two classes": np.where(NUMBERS + 0.7 * RNG.normal(size=N) > 0, "yes", "no"),
    "three classes": np.digitize(NUMBERS, [-0.3, 0.5]),
}
CLASSES = LABELS["three classes"]
WEIGHTS = {
    "unweighted": None,
    "weighted": RNG.uniform(0.3, 3.0, N),
    "zeros": np.where(np.arange(N) % 7 == 0, 0.0, np.random.default_rng(1).uniform(0.3, 3.0, N)),
}
GROUPS = {
    "apart": np.arange(N),
    "groups": np.array([f"ward {k}" for k in np.arange(N) // 3 % 6]),
    "pairs": np.arange(N) // 2,
}
K, MU = RBF(0.3), 0.05

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


refitted = partial(refits.refitted, X)


def criterion_of_refits(model, criterion, group, rows):
    """Criterion of the machine of some rows, by refits without each of its units."""
    y, weight = model.loo_.y, model.loo_.sample_weight
    held_out = np.empty((N, *y.shape[1:]))
    for unit in np.unique(group[rows]):
        own = rows[group[rows] == unit]
        held_out[own] = refitted(model, np.setdiff1d(rows, own)).reshape(held_out.shape)[own]
    return as_criterion(criterion).evaluate(y[rows], held_out[rows], weight[rows]).value


GIVEN = {"rtol": 1e-8, "atol": 1e-10}
TUNED = {"rtol": 1e-7}
ON_LANDMARKS = {"rtol": 1e-6, "atol": 1e-9}


def check(model, groups, near, criterion=None):
    """Changes, residuals, surprise and leverage, by refits without each unit."""
    apart = groups == "apart"
    result = case_deletion(model, criterion=criterion, groups=None if apart else GROUPS[groups])
    close, criterion = partial(assert_allclose, **near), criterion or result.criterion
    group, units, y = GROUPS[groups], np.unique(GROUPS[groups]), model.loo_.y.reshape(N, -1)
    seen, shape = np.flatnonzero(model.fit_weight_), result.own_change.shape[1:]
    whole, judged = refitted(model, seen), partial(criterion_of_refits, model, criterion, group)
    smoother = refitted(model, seen, np.eye(N))
    metric = model.fit_weight_[:, None] * (np.eye(N) - smoother)
    energy, sizes = np.full((len(units), y.shape[1]), np.nan), np.zeros(len(units))
    for k, unit in enumerate(units):
        inside, rest = seen[group[seen] == unit], seen[group[seen] != unit]
        if not len(inside):
            for values in (result.rms_change, result.largest_change, result.surprise):
                assert np.isnan(values[k])
            continue
        outputs = refitted(model, rest)
        change, e = outputs - whole, (y - outputs)[inside]
        own_change = change[inside].reshape(-1, *shape)
        close(result.own_change[inside], own_change)
        if apart and len(model.members_) > 1:  # those without the folds that weighed it
            e_held_out = model.held_out_.residuals[inside]
        else:
            e_held_out = e.reshape(-1, *shape)
        close(result.residual[inside], e_held_out)
        close(result.rms_change[k], np.sqrt(np.mean(change[rest] ** 2)))
        close(result.largest_change[k], np.abs(change[rest]).max())
        closest = GIVEN if near is GIVEN else ON_LANDMARKS
        assert_allclose(result.criterion_change[k], judged(rest) - judged(seen), **closest)
        energy[k] = np.einsum("it,ij,jt->t", e, metric[np.ix_(inside, inside)], e)
        sizes[k] = len(inside)
    left = sizes > 0
    usual = energy[left].sum(axis=0) / len(seen)
    surprise = np.sqrt(np.mean(energy[left] / sizes[left, None] / usual, axis=1))
    close(result.surprise[left], surprise)
    close(result.leverage[seen], smoother.diagonal()[seen])
    assert_array_equal(result.group, np.unique(group, return_inverse=True)[1])
    assert_array_equal(result.labels, units)
    assert result.unit == ("sample" if apart else "group")
    assert np.isnan(result.own_change[np.setdiff1d(np.arange(N), seen)]).all()


@pytest.mark.slow
@pytest.mark.parametrize("groups", ["apart", "groups"])
@pytest.mark.parametrize("machine", MACHINES)
def test_equals_refits(machine, groups, monkeypatch):
    monkeypatch.setattr(landmarks, "_NUMBERS", 9 * M)  # some units at a time
    monkeypatch.setattr(left_out, "_NUMBERS", 5 * N)
    model = MACHINES[machine]()
    y = CLASSES if is_classifier(model) else NUMBERS
    model.fit(X, y, sample_weight=WEIGHTS["zeros"])
    assert len(model.members_) == 1 + ("stack" in machine)
    check(model, groups, ON_LANDMARKS if "landmarks" in machine else TUNED)


@pytest.mark.parametrize(
    ("labels", "weights", "criterion", "fit_intercept", "groups"),
    pairwise(LABELS, WEIGHTS, [*DIFFERENTIABLE, SmoothedError(3.0)], [True, False], GROUPS),
)
def test_classifiers_equal_refits(labels, weights, criterion, fit_intercept, groups):
    model = KernelClassifier(K, mu=MU, fit_intercept=fit_intercept, class_weight="balanced")
    check(model.fit(X, LABELS[labels], WEIGHTS[weights]), groups, GIVEN, criterion)


@pytest.mark.parametrize(
    ("weights", "fit_intercept", "columns", "groups"),
    pairwise(WEIGHTS, [True, False], [0, 2, 3], GROUPS),
)
def test_regressors_equal_refits(weights, fit_intercept, columns, groups):
    y = RNG.normal(size=(N, columns)) if columns else NUMBERS
    model = KernelRegressor(K, mu=MU, fit_intercept=fit_intercept)
    check(model.fit(X, y, WEIGHTS[weights]), groups, GIVEN, "press")


def test_surprise_of_a_group_is_its_residual_whitened():
    """P_GG⁻¹ is the covariance of residuals under the Gaussian process of covariance K."""
    model = KernelRegressor(K, mu=MU, fit_intercept=False).fit(X, NUMBERS)
    gram, number = K(X) + N * MU * np.eye(N), np.unique(GROUPS["groups"], return_inverse=True)[1]
    energy = np.empty(6)
    for k in range(6):
        own, rest = number == k, number != k
        solved = np.linalg.solve(gram[np.ix_(rest, rest)], gram[np.ix_(rest, own)])
        e = NUMBERS[own] - solved.T @ NUMBERS[rest]
        covariance = gram[np.ix_(own, own)] - gram[np.ix_(own, rest)] @ solved
        energy[k] = e @ np.linalg.solve(covariance, e)
    expected = np.sqrt(energy / np.bincount(number) / (energy.sum() / N))
    assert_allclose(case_deletion(model, groups=number).surprise, expected, rtol=1e-8)


def test_a_group_apart_from_the_others_changes_the_machine_most():
    rng = np.random.default_rng(3)
    patient = np.array([f"patient {k}" for k in np.repeat(np.arange(12), 5)])
    x = rng.normal(size=(60, 2))
    y = x[:, 0] + 0.3 * rng.normal(size=60)
    y[patient == "patient 7"] += 3
    model = KernelRegressor("linear").fit(x, y, groups=patient)
    found = case_deletion(model, groups=patient)
    assert found.most_influential(1).index.tolist() == ["patient 7"]
    assert found.most_surprising(1).index.tolist() == ["patient 7"]
    assert "n_groups=12" in repr(found)
    assert repr(found).endswith("most_influential='patient 7')")
    assert found.table.n_samples.tolist() == [5] * 12
    numbered = case_deletion(model)  # the machine knows numbers only
    assert_allclose(numbered.rms_change, found.rms_change)
    assert (
        numbered.labels[numbered.rms_change.argmax()]
        == model.units_.clusters[patient == "patient 7"][0]
    )


def test_mislabeled_samples_are_named_with_their_group():
    model = KernelClassifier(K, mu=MU).fit(X, LABELS["two classes"])
    found = case_deletion(model, groups=GROUPS["groups"])
    doubtful, counted = found.mislabeled(), found.table.n_contradicted
    assert (doubtful.group == GROUPS["groups"][doubtful.index]).all()
    assert counted.sum() == len(doubtful) > 0
    assert counted[counted > 0].to_dict() == doubtful.groupby("group").size().to_dict()


@pytest.mark.parametrize("numbers", [1, 3 * N])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_blocks(labels, numbers, monkeypatch):
    model = KernelClassifier(K, mu=MU).fit(X, labels)
    whole = case_deletion(model, criterion="hinge").table
    for module in (left_out, inner):
        monkeypatch.setattr(module, "_NUMBERS", numbers)
    pd.testing.assert_frame_equal(case_deletion(model, criterion="hinge").table, whole)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_margins_and_labels(labels):
    model = KernelClassifier(K, mu=MU).fit(X, labels)
    found = case_deletion(model)
    outputs = model.loo_.outputs - model.threshold_
    if outputs.ndim == 1:
        margin = np.where(labels == "yes", outputs, -outputs)
    else:
        margin = [row[c] - np.delete(row, c).max() for row, c in zip(outputs, labels, strict=True)]
    assert_allclose(found.margin, margin, rtol=1e-12)
    assert_array_equal(found.label, labels)
    assert_array_equal(found.predicted != labels, found.margin < 0)
    doubtful = found.mislabeled()
    assert (doubtful.margin < 0).all()
    assert doubtful.margin.is_monotonic_increasing
    assert len(doubtful) == (found.margin < 0).sum() > 1
    assert len(found.mislabeled(1)) == 1


def test_samples_of_weight_zero_are_not_ranked_but_judged():
    labels = LABELS["two classes"].copy()
    weight = WEIGHTS["zeros"]
    clear = 6 * np.argmax(np.abs(NUMBERS[::6]))  # of weight zero
    labels[clear] = "no" if labels[clear] == "yes" else "yes"
    found = case_deletion(KernelClassifier(K, mu=MU).fit(X, labels, weight))
    seen = np.flatnonzero(weight > 0)
    for ranked in (found.most_influential(N), found.most_surprising(N)):
        assert sorted(ranked.index) == seen.tolist()
    assert np.isfinite(found.margin).all()
    assert clear in found.mislabeled().index


def test_the_criterion_of_the_selection_is_taken():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    labels = X[:, 0] + 0.5 * rng.normal(size=60) > 0
    model = KernelClassifier(search=Search("hinge")).fit(X, labels)
    found, press = case_deletion(model), case_deletion(model, criterion="press")
    assert (found.criterion, press.criterion) == ("hinge", "press")
    assert np.abs(found.criterion_change - press.criterion_change).max() > 1e-4
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=60)
    assert case_deletion(KernelRegressor().fit(X, y)).criterion == "press"


def test_wmw_is_not_defined_without_the_only_member_of_a_class():
    labels = np.where(np.arange(N) == 4, "rare", "common")
    found = case_deletion(KernelClassifier(K, mu=MU).fit(X, labels), criterion="wmw")
    assert np.flatnonzero(np.isnan(found.criterion_change)).tolist() == [4]


def test_of_a_machine_that_holds_out_groups_residuals_are_without_the_group():
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(12), 3)
    X = rng.normal(size=(12, 2))[number] + 0.1 * rng.normal(size=(36, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=12)[number] > 0
    model = KernelClassifier("linear").fit(X, y, groups=number)
    found = case_deletion(model)
    t, held_out = np.where(y, 1.0, -1.0), model.held_out_.outputs
    assert_allclose(found.residual, t - held_out, rtol=1e-8)
    assert_allclose(found.margin, t * (held_out - model.threshold_), rtol=1e-8)
    assert np.abs(held_out - model.loo_.outputs).max() > 0.01
    assert_array_equal(found.labels, np.unique(model.units_.clusters))
    # So are the changes of a machine that was given its values.
    given = KernelClassifier(model.kernel_, mu=model.mu_).fit(X, y)
    expected = case_deletion(given, groups=number, criterion="press").criterion_change
    assert_allclose(case_deletion(model, criterion="press").criterion_change, expected, rtol=1e-8)


def test_names_and_columns_of_the_table():
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"row {i}" for i in range(N)])
    model = make_pipeline(StandardScaler(), KernelRegressor(mu=1e-3)).fit(frame, NUMBERS)
    for names in (frame, frame.index.tolist()):
        found = case_deletion(model, names=names)
        assert found.table.index.tolist() == frame.index.tolist()
        assert "most_influential='row " in repr(found)
    assert case_deletion(model).table.index.tolist() == list(range(N))
    assert found.table.columns.tolist() == [
        *("rms_change", "largest_change", "own_change", "criterion_change"),
        *("leverage", "residual", "surprise"),
    ]
    with pytest.raises(ValueError, match="labels"):
        found.mislabeled()
    found = case_deletion(KernelClassifier(mu=1e-3).fit(X, LABELS["three classes"]))
    assert found.table.columns.tolist()[7:] == ["margin", "label", "predicted"]
    assert_allclose(found.table["residual"], np.linalg.norm(found.residual, axis=1))


@pytest.mark.parametrize(
    ("n", "options", "message"),
    [
        (N, {"names": ["a"]}, "names?"),
        (N, {"names": np.zeros((N, 2))}, "names?"),
        (N, {"criterion": "hinge"}, "'hinge'"),
        (N, {"criterion": "auc"}, "criterion"),
        (2, {}, "three samples .* 2"),
        (N, {"groups": ["a", "b"]}, "groups .* 24"),
        (N, {"groups": np.arange(N) % 2}, "three groups .* 2"),
    ],
)
def test_bad_input(n, options, message):
    model = KernelRegressor(mu=1e-3).fit(X[:n], NUMBERS[:n])
    with pytest.raises(ValueError, match=message):
        case_deletion(model, **options)


def test_other_models():
    with pytest.raises(TypeError, match="Ridge"):
        case_deletion(Ridge().fit(X, NUMBERS))
    with pytest.raises(NotFittedError):
        case_deletion(KernelRegressor(mu=1e-3))


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


@pytest.mark.parametrize("groups", ["apart", "groups"])
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
