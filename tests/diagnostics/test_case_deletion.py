"""Case deletion of each sample against refits of the whole machine."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier, KernelRegressor, Search
from looms.criteria import DIFFERENTIABLE, SmoothedError, as_criterion
from looms.diagnostics import case_deletion
from looms.kernels import RBF
from looms.lssvm import inner, left_out, solve

N = 20
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
NOISY = X[:, 0] + 0.4 * RNG.normal(size=N)
LABELS = {
    "two classes": np.where(NOISY > 0, "yes", "no"),
    "three classes": np.digitize(NOISY, [-0.3, 0.4]),
}
WEIGHTS = {
    "unweighted": None,
    "weighted": RNG.uniform(0.2, 3.0, N),
    "zeros": np.where(np.arange(N) % 6 == 0, 0.0, RNG.uniform(0.2, 3.0, N)),
}
K, MU = RBF(0.3), 0.05


GROUPS = {
    "apart": np.arange(N),
    "groups": np.array([f"ward {k}" for k in [0, 3, 3, 1, 2, 2, 0, 4, 4, 4] * 2]),
    "pairs": np.arange(N) // 2,
}


def refitted(model, criterion, units):
    """Changes by refits without each unit of seen samples: (n, m[, t]) of the outputs, (m,) of J.

    And the residuals of the samples of each unit without it.
    """
    seen = np.flatnonzero(model.fit_weight_ > 0)
    gram, y = K(X[seen]), model.loo_.y[seen]
    zeta, weight = model.fit_weight_[seen], model.loo_.sample_weight[seen]
    units = units[seen]

    def outputs(rows):
        machine = solve(
            gram[np.ix_(rows, rows)],
            y[rows],
            model.mu_ * len(seen) / len(rows),  # the same ridge
            sample_weight=zeta[rows],
            fit_intercept=model.fit_intercept,
        ).expansion
        return (gram[:, rows] @ machine.coefficients + machine.intercept).reshape(y.shape)

    def held_out(rows):
        """Outputs of rows without the rows of their unit."""
        values = np.empty(y.shape)
        for unit in np.unique(units[rows]):
            own = rows[units[rows] == unit]
            values[own] = outputs(np.setdiff1d(rows, own))[own]
        return values[rows]

    def judged(rows):
        return as_criterion(criterion).evaluate(y[rows], held_out(rows), weight[rows]).value

    every = np.arange(len(seen))
    rest = [np.flatnonzero(units != unit) for unit in np.unique(units)]
    changes = np.stack([outputs(rows) - outputs(every) for rows in rest], axis=1)
    of_criterion = np.array([judged(rows) - judged(every) for rows in rest])
    return changes, of_criterion, y - held_out(every)


def check(model, criterion, groups):
    found = case_deletion(
        model, criterion=criterion, groups=None if groups == "apart" else GROUPS[groups]
    )
    changes, of_criterion, residual = refitted(model, criterion, GROUPS[groups])
    seen = np.flatnonzero(model.fit_weight_ > 0)
    labels, own = np.unique(GROUPS[groups], return_inverse=True)
    present = np.unique(own[seen])
    assert_array_equal(found.group, own)
    if groups == "apart":
        assert (found.unit, found.labels.tolist()) == ("sample", found.names.tolist())
    else:
        assert_array_equal(found.labels, labels)
    assert_allclose(found.residual[seen], residual, rtol=1e-8, atol=1e-10)
    assert found.table.shape[0] == len(labels)
    for place, k in enumerate(present):
        inside, change = own[seen] == k, changes[:, place]
        expected = change[inside]
        assert_allclose(found.own_change[seen][inside], expected, rtol=1e-8, atol=1e-10)
        others = np.abs(change[~inside])
        assert_allclose(found.largest_change[k], others.max(), rtol=1e-8)
        assert_allclose(found.rms_change[k], np.sqrt(np.mean(others**2)), rtol=1e-8)
    assert_allclose(found.criterion_change[present], of_criterion, rtol=1e-8, atol=1e-10)
    absent = np.setdiff1d(np.arange(len(labels)), present)
    for name in ("largest_change", "rms_change", "criterion_change", "surprise"):
        assert np.isnan(getattr(found, name)[absent]).all()
    assert np.isnan(found.own_change[np.setdiff1d(np.arange(N), seen)]).all()


@pytest.mark.parametrize(
    ("labels", "weights", "criterion", "fit_intercept", "groups"),
    pairwise(LABELS, WEIGHTS, [*DIFFERENTIABLE, SmoothedError(3.0)], [True, False], GROUPS),
)
def test_classifiers_equal_refits(labels, weights, criterion, fit_intercept, groups):
    model = KernelClassifier(K, mu=MU, fit_intercept=fit_intercept, class_weight="balanced")
    model.fit(X, LABELS[labels], WEIGHTS[weights])
    check(model, criterion, groups)


@pytest.mark.parametrize(
    ("weights", "fit_intercept", "columns", "groups"),
    pairwise(WEIGHTS, [True, False], [0, 2, 3], GROUPS),
)
def test_regressors_equal_refits(weights, fit_intercept, columns, groups):
    y = RNG.normal(size=(N, columns)) if columns else NOISY
    model = KernelRegressor(K, mu=MU, fit_intercept=fit_intercept).fit(X, y, WEIGHTS[weights])
    check(model, "press", groups)


def test_surprise_of_a_group_is_its_residual_whitened():
    """P_GG⁻¹ is the covariance of residuals under the Gaussian process of covariance K."""
    model = KernelRegressor(K, mu=MU, fit_intercept=False).fit(X, NOISY)
    gram, number = K(X) + N * MU * np.eye(N), np.unique(GROUPS["groups"], return_inverse=True)[1]
    energy = np.empty(5)
    for k in range(5):
        own, rest = number == k, number != k
        solved = np.linalg.solve(gram[np.ix_(rest, rest)], gram[np.ix_(rest, own)])
        e = NOISY[own] - solved.T @ NOISY[rest]
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
    clear = 6 * np.argmax(np.abs(NOISY[::6]))  # of weight zero
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
    model = make_pipeline(StandardScaler(), KernelRegressor(mu=1e-3)).fit(frame, NOISY)
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
        (N, {"groups": ["a", "b"]}, "groups .* 20"),
        (N, {"groups": np.arange(N) % 2}, "three groups .* 2"),
    ],
)
def test_bad_input(n, options, message):
    model = KernelRegressor(mu=1e-3).fit(X[:n], NOISY[:n])
    with pytest.raises(ValueError, match=message):
        case_deletion(model, **options)


def test_other_models():
    with pytest.raises(TypeError, match="Ridge"):
        case_deletion(Ridge().fit(X, NOISY))
    with pytest.raises(NotFittedError):
        case_deletion(KernelRegressor(mu=1e-3))
