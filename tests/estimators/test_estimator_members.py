"""Estimators of scikit-learn as candidates and members of a stack, against refits by hand."""

import pickle
from typing import ClassVar

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search
from looms.blocks import ArrayBlocks
from looms.conformal import jackknife_plus
from looms.diagnostics import case_deletion, row_order
from looms.diagnostics._problem import BY_BEST, BY_KERNELS
from looms.estimators._estimator_member import FOLDS
from looms.fitted._rows import outer_folds
from looms.kernels import RBF
from looms.report import summary

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + np.sign(X[:, 1]) + 0.3 * RNG.normal(size=N)
TWO, THREE = np.where(Y > 0, "yes", "no"), np.digitize(Y, [-1.0, 1.0])
NEW = RNG.normal(size=(7, 2))
TREE = DecisionTreeRegressor(max_depth=3, random_state=0)


class Counted(LogisticRegression):
    """It notes of how many rows it is fitted, and, as a negative number, asked."""

    fits: ClassVar = []

    def fit(self, X, y, sample_weight=None):
        self.fits.append(len(y))
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        self.fits.append(-len(X))
        return super().predict_proba(X)


@pytest.fixture
def fits():
    Counted.fits.clear()
    return lambda: sum(n_rows > 0 for n_rows in Counted.fits)


def codes(estimator, rows, y):
    """Outputs of a fitted classifier by hand."""
    p = 2 * estimator.predict_proba(rows) - 1
    return p[:, 1] if len(np.unique(y)) == 2 else p


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LogisticRegression(), TWO), (KNeighborsClassifier(), THREE)],
    ids=["two", "three"],
)
def test_outputs_of_classes_are_those_of_their_probabilities(y, estimator):
    model = stacked_classifier([estimator]).fit(X, y)
    alone = clone(estimator).fit(X, y)
    assert_allclose(model._outputs(NEW), codes(alone, NEW, y))
    folds = outer_folds(None, y, model.units_.clusters, True, 0, FOLDS)
    assert folds.n_units == 5
    for out in folds:
        rest = np.delete(np.arange(N), out)
        f = codes(clone(estimator).fit(X[rest], y[rest]), X[out], y)
        assert_allclose(model.held_out_.outputs[out], f)
    assert model.evaluate()["roc_auc"] > 0.7
    with pytest.raises(AttributeError):
        _ = model.kernel_


@pytest.mark.parametrize(
    ("n_groups", "cv"), [(3, None), (8, None), (5, LeaveOneGroupOut())], ids=str
)
def test_models_without_a_fold_do_not_know_it(n_groups, cv):
    groups = np.arange(N) % n_groups
    model = stacked_regressor(["linear", TREE], cv=cv).fit(X, Y, groups=groups)
    nested = model.fitted_.in_folds
    assert nested.units.n_units == (min(n_groups, 5) if cv is None else n_groups)
    for k, (out, members) in enumerate(zip(nested.units, nested.models, strict=True)):
        rest = np.delete(np.arange(N), out)
        trees = [one for one in members if not one.closed]
        for one in trees:
            alone = clone(TREE).fit(X[rest], Y[rest])
            assert_allclose(one.values(NEW)[:, 0], alone.predict(NEW), err_msg=str(k))
        assert trees or model.candidate_weights_[1] == 0


def test_classes_keep_their_shares_in_folds():
    y, groups = np.repeat([0, 1], N // 2), np.repeat(np.arange(10), N // 10)
    rows = np.random.default_rng(0).normal(size=(N, 2)) + y[:, None]
    seen = []

    class Noted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append((y, sample_weight))
            return super().fit(X, y, sample_weight)

    options = {"cv": GroupKFold(5), "combine": "best"}
    model = stacked_classifier([LogisticRegression(), Noted()], **options)
    model.fit(rows, y, groups=groups)
    assert len(seen) == 6
    for labels, weight in seen:
        share = labels.mean() if weight is None else (weight @ labels) / weight.sum()
        assert share == pytest.approx(0.5)
        assert weight is None or weight.mean() == pytest.approx(1.0)


def test_decision_values_and_classes_that_some_rows_lack():
    model = stacked_classifier([RidgeClassifier()]).fit(X, TWO)
    assert_allclose(model._outputs(NEW), RidgeClassifier().fit(X, TWO).decision_function(NEW))
    (member,) = stacked_classifier([LogisticRegression()]).fit(X, THREE).members_
    codes = 2.0 * (THREE[:, None] == np.arange(3)) - 1
    rest = THREE > 0
    values = member.trained(X[rest], codes[rest], np.ones(rest.sum())).values(NEW)
    assert (values[:, 0] == -1).all()
    assert_allclose(values[:, 1] + values[:, 2], 0, atol=1e-12)


def test_weights_reach_the_estimator():
    weight = RNG.integers(0, 4, N).astype(float)
    model = stacked_regressor([make_pipeline(StandardScaler(), LinearRegression())])
    model.fit(X, Y, sample_weight=weight)
    own = LinearRegression().fit(X, Y, sample_weight=weight)
    assert_allclose(model.predict(NEW), own.predict(NEW))
    assert_allclose(model.loo_.outputs[weight == 0], own.predict(X[weight == 0]))


@pytest.mark.parametrize("name", ["removed", "added"])
@pytest.mark.slow
def test_intervals_and_updates_are_of_refits(name):
    model = stacked_regressor(["linear", LinearRegression()]).fit(X, Y)
    kernel, estimator = model.members_
    rows, y = X, Y
    if name == "removed":
        rows, y, model = X[2:], Y[2:], model.without([0, 1])
    else:
        rows, y = np.vstack([X, NEW]), np.append(Y, np.zeros(7))
        model = model.with_rows(NEW, np.zeros(7))

    def outputs(rest, new):
        """The kernel machine keeps its ridges."""
        K = rows[rest] @ rows[rest].T + N * kernel.mu * np.eye(len(rest))
        M = np.block([[K, np.ones((len(rest), 1))], [np.ones(len(rest)), np.zeros(1)]])
        solved = np.linalg.solve(M, np.append(y[rest], 0.0))
        f = new @ rows[rest].T @ solved[:-1] + solved[-1]
        other = LinearRegression().fit(rows[rest], y[rest]).predict(new)
        return kernel.weight * f + estimator.weight * other

    every = np.arange(len(rows))
    assert_allclose(model.predict(NEW), outputs(every, NEW), rtol=1e-7, atol=1e-9)
    folds = evaluated(model).members_[1].units
    assert folds.n_units == FOLDS
    without = [np.delete(every, list(folds)[k]) for k in folds.own]
    residuals = np.array([y[i] - outputs(G, rows[i : i + 1])[0] for i, G in enumerate(without)])
    F = np.stack([outputs(G, NEW) for G in without], axis=1)
    expected = jackknife_plus(residuals, F, 0.8)
    assert_allclose(model.predict_interval(NEW, 0.8), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("y", "combine", "saved"),
    [(Y, "stack", True), (TWO, "stack", False), (TWO, "best", True)],
    ids=["numbers", "classes", "best of classes"],
)
@pytest.mark.slow
def test_influence_is_on_the_kernels_or_on_the_best_of_them_without_weight(y, combine, saved):
    """By the model of one kernel with the same values; and tested rows by blocks likewise."""
    numbers = y is Y
    tree = TREE if numbers else DecisionTreeClassifier(max_depth=3, random_state=0)
    cls, one = (
        (stacked_regressor, KernelRegressor) if numbers else (stacked_classifier, KernelClassifier)
    )
    model = cls(["linear", RBF(1e-4, gamma_bounds="fixed"), tree], combine=combine).fit(X, y)
    # The wide kernel has no weight, and of the best alone, the tree, no kernel has.
    assert sum(one.units is None for one in model.members_) == (combine == "stack")
    if saved:
        model = pickle.loads(pickle.dumps(model))
    best = min(model.candidates_[:2], key=lambda one: one.loss)
    assert best.kernel_name == "linear"
    alone = one(best.kernel, mu=best.mu).fit(X, y)
    found, expected = (case_deletion(one, criterion="press") for one in (model, alone))
    assert found.by_kernels == (BY_KERNELS if combine == "stack" else BY_BEST)
    assert expected.by_kernels == ""
    for name in ("rms_change", "surprise", "leverage", "criterion_change", "residual"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-9)
    ours, theirs = row_order(model), row_order(alone)
    assert ours.p_value == theirs.p_value
    assert ours.scores == pytest.approx(theirs.scores)


@pytest.mark.parametrize(
    ("change", "groups"),
    [("removed", np.arange(N) // 2), ("added", None)],
    ids=["removed", "added"],
)
@pytest.mark.slow
def test_an_updated_stack_is_refitted_in_five_folds_and_tells_all(change, groups, fits):
    model = stacked_classifier([RBF(1.0, gamma_bounds="fixed"), Counted()])
    model.fit(X, TWO, groups=groups)
    assert (model.candidate_weights_ > 0).all()
    Counted.fits.clear()
    model = model.without([0, 1]) if change == "removed" else model.with_rows(NEW, TWO[:7])
    assert fits() == FOLDS + 1
    scores, told = model.evaluate(nested=False), summary(model)
    assert {"accuracy", "roc_auc"} <= set(scores)
    assert told["features"]["rows"][0]["importance"] > 0
    deletion = case_deletion(model)
    assert np.isfinite(deletion.surprise).all()
    assert deletion.by_kernels
    assert row_order(model) is None or row_order(model).by_kernels
    assert fits() == FOLDS + 1


def test_influence_needs_a_kernel():
    model = stacked_regressor([LinearRegression()]).fit(X, Y)
    for asked in (case_deletion, row_order):
        with pytest.raises(ValueError, match="has no kernel"):
            asked(model)


@pytest.mark.parametrize(
    ("options", "cv"), [({"search": Search(method="grid")}, None), ({"n_landmarks": 10}, "2x3")]
)
@pytest.mark.slow
def test_options_of_a_kernel_leave_estimators_as_they_are(options, cv):
    candidates = [KernelRegressor("linear", **options), TREE]
    model = stacked_regressor(candidates, cv=cv).fit(X, Y)
    assert model.candidates_[1].stop_reason.name == "GIVEN"
    assert model.certify().holds
    both = stacked_regressor(candidates, combine="best", cv=cv).fit(X, Y)
    assert both.best_index_ == 1
    assert len(both.members_) == 1
    assert_allclose(both.predict(NEW), clone(TREE).fit(X, Y).predict(NEW))


@pytest.mark.parametrize(
    ("machine", "y", "message"),
    [
        (stacked_classifier([LinearRegression()]), TWO, "no classifier"),
        (stacked_regressor([LogisticRegression()]), Y, "no regressor"),
        (
            stacked_regressor(["precomputed", LinearRegression()], combine="best"),
            X @ X.T,
            "X cannot be both",
        ),
        (stacked_regressor([KernelRidge(kernel="precomputed")]), Y, "takes kernel values"),
        (stacked_regressor([KNeighborsRegressor()]), Y, "takes no sample_weight"),
        (stacked_regressor([KMeans(3)]), Y, "is no regressor"),
        (
            stacked_classifier([SVC(decision_function_shape="ovo")]),
            THREE,
            "for each pair of classes",
        ),
    ],
)
def test_estimators_that_cannot_be_members(machine, y, message):
    X_given, y = (y, Y) if y.ndim == 2 else (X, y)
    with pytest.raises(ValueError, match=message):
        machine.fit(X_given, y, sample_weight=1.0 + np.arange(N))


@pytest.mark.parametrize(
    ("machine", "zeros"),
    [
        (KernelClassifier("linear", n_landmarks=10), slice(5)),
        (stacked_classifier([LogisticRegression()]), slice(-5, None)),
    ],
    ids=["kernel", "estimator"],
)
def test_scores_of_blocks_with_rows_of_weight_zero_are_of_the_other_rows(machine, zeros):
    weight = np.ones(N)
    weight[zeros] = 0.0
    ours, theirs = clone(machine), clone(machine)
    ours.fit(ArrayBlocks(X, size=17), TWO, sample_weight=weight)
    theirs.fit(ArrayBlocks(X[weight > 0], size=17), TWO[weight > 0])
    assert ours.evaluate() == pytest.approx(theirs.evaluate())


@pytest.mark.slow
def test_a_single_estimator_is_scored_where_its_threshold_was_set(fits):
    model = stacked_classifier([Counted()]).fit(X, TWO)
    decided = model.held_out_.outputs > model.threshold_
    right = pytest.approx(np.mean(decided == (TWO == "yes")))
    assert model.evaluate(nested=False)["accuracy"] == right
    assert model.predict_set(NEW).shape == (len(NEW), 2)
    assert fits() == 6
    model.evaluate()
    made = fits()
    assert model.predict_set(NEW).shape == (len(NEW), 2)
    assert fits() == made > 6
    for refused in (lambda: model.without([0]), model.certify):
        with pytest.raises(ValueError, match=r"no kernel|has none"):
            refused()
    numbers = evaluated(stacked_regressor([LinearRegression()]).fit(X, Y))
    with pytest.raises(ValueError, match="'scaled'"):
        numbers.predict_interval(NEW, method="scaled")


@pytest.mark.slow
def test_a_rare_class_is_scored_by_the_five_refits_of_the_fit(fits):
    rare = np.arange(N) < 2
    model = stacked_classifier([Counted()]).fit(X + 9.0 * rare[:, None], rare)
    assert Counted.fits[10:] == [N, -1]  # after five folds; all rows, and one to look at
    assert "roc_auc" in model.evaluate(nested=False)
    assert fits() == 5 + 1
    model.predict(np.zeros((1000, 2)))
    assert Counted.fits[-1] == -1000  # at once: its predict may not be safe in threads
