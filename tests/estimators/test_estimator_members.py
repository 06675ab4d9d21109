"""Estimators of scikit-learn as candidates and members of a stack, against refits by hand."""

import pickle

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, ShuffleSplit
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
from looms.folds import GapKFold
from looms.kernels import RBF
from looms.lssvm.fit import KernelMember
from looms.report import cautions, summary
from looms.selection._stack import stacking_weights

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + np.sign(X[:, 1]) + 0.3 * RNG.normal(size=N)
TWO, THREE = np.where(Y > 0, "yes", "no"), np.digitize(Y, [-1.0, 1.0])
NEW = RNG.normal(size=(7, 2))
TREE = DecisionTreeRegressor(max_depth=3, random_state=0)


def stack(estimator, **options):
    return stacked_regressor(["linear", estimator], **options)


def codes(estimator, rows, y):
    """Outputs of a fitted classifier by hand."""
    p = 2 * estimator.predict_proba(rows) - 1
    return p[:, 1] if len(np.unique(y)) == 2 else p


@pytest.mark.parametrize("groups", [None, np.arange(N) // 2], ids=["rows", "groups"])
@pytest.mark.slow
def test_a_stack_weighs_outputs_of_refits_without_folds(groups):
    model = stack(TREE).fit(X, Y, groups=groups)
    outer, outputs = model.choice_units_, np.empty((2, N))
    for out in outer:
        rest = np.delete(np.arange(N), out)
        kernel = KernelRegressor("linear")
        kernel.fit(X[rest], Y[rest], groups=None if groups is None else groups[rest])
        tree = clone(TREE).fit(X[rest], Y[rest])
        outputs[:, out] = kernel.predict(X[out]), tree.predict(X[out])
    weights = stacking_weights(Y, outputs, np.ones(N), labeled=False)
    assert (weights > 0).all()
    assert_allclose(model.candidate_weights_, weights, atol=1e-6)
    whole = weights[0] * KernelRegressor("linear").fit(X, Y, groups=groups).predict(NEW) + weights[
        1
    ] * clone(TREE).fit(X, Y).predict(NEW)
    for rows in (NEW, ArrayBlocks(NEW, size=3)):
        assert_allclose(model.predict(rows), whole, rtol=1e-6)
    assert_allclose(pickle.loads(pickle.dumps(model)).predict(NEW), model.predict(NEW))
    assert model.candidates_[1].params == {}
    assert isinstance(model.members_[0], KernelMember)
    assert model.kernel_ is model.members_[0].kernel


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), KNeighborsClassifier()], ids=["logistic", "neighbors"]
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


@pytest.mark.parametrize("n_groups", [3, 5, 8])
@pytest.mark.parametrize("cv", [None, LeaveOneGroupOut()], ids=["folds", "groups"])
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


def test_an_evaluation_in_three_folds_stacks_without_them():
    model = stack(TREE, cv=KFold(3)).fit(X, Y)
    assert model.candidate_weights_ is not None
    for members in model.evaluate()._nested.models:
        assert len(members) == np.count_nonzero(model.candidate_weights_) == 2


def test_decision_values_and_classes_that_some_rows_lack():
    model = stacked_classifier([RidgeClassifier()]).fit(X, TWO)
    assert_allclose(model._outputs(NEW), RidgeClassifier().fit(X, TWO).decision_function(NEW))
    (member,) = stacked_classifier([LogisticRegression()]).fit(X, THREE).members_
    codes = 2.0 * (THREE[:, None] == np.arange(3)) - 1
    rest = THREE > 0
    values = member.trained(X[rest], codes[rest], np.ones(rest.sum())).values(NEW)
    assert (values[:, 0] == -1).all()
    assert_allclose(values[:, 1] + values[:, 2], 0, atol=1e-12)


@pytest.mark.parametrize(
    "estimator",
    [LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())],
    ids=["alone", "in a pipeline"],
)
def test_weights_reach_the_estimator(estimator):
    weight = RNG.integers(0, 4, N).astype(float)
    model = stacked_regressor([estimator]).fit(X, Y, sample_weight=weight)
    own = LinearRegression().fit(X, Y, sample_weight=weight)
    assert_allclose(model.predict(NEW), own.predict(NEW))
    assert_allclose(model.loo_.outputs[weight == 0], own.predict(X[weight == 0]))


@pytest.mark.parametrize("name", ["removed", "added"])
@pytest.mark.slow
def test_intervals_and_updates_are_of_refits(name):
    model = stack(LinearRegression()).fit(X, Y)
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


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("combine", ["stack", "best"])
@pytest.mark.parametrize("y", [Y, TWO], ids=["numbers", "classes"])
@pytest.mark.slow
def test_influence_is_on_the_kernels_or_on_the_best_of_them_without_weight(y, combine, saved):
    """By the model of one kernel with the same values; and tested rows by blocks likewise."""
    numbers = y is Y
    tree = TREE if numbers else DecisionTreeClassifier(max_depth=3, random_state=0)
    cls, one = (
        (stacked_regressor, KernelRegressor) if numbers else (stacked_classifier, KernelClassifier)
    )
    model = cls(["linear", RBF(1e-9, gamma_bounds="fixed"), tree], combine=combine).fit(X, y)
    # The narrow kernel has no weight, and of the best alone, the tree, no kernel has.
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


@pytest.mark.slow
def test_folds_of_which_the_first_pass_misses_a_row_have_intervals():
    cv = ShuffleSplit(20, test_size=0.4, random_state=0)
    with pytest.warns(UserWarning, match="not stacked"):
        model = evaluated(stacked_regressor(["linear", TREE], cv=cv).fit(X, Y))
    assert model.members_[-1].units is not None
    lower, upper = model.predict_interval(NEW).T
    assert (lower < upper).all()


def test_a_saved_model_of_blocks_has_cautions():
    model = stacked_classifier([KernelClassifier(n_landmarks=20), LogisticRegression()])
    model.fit(ArrayBlocks(X, 17), TWO)
    again = pickle.loads(pickle.dumps(model))
    titles = [{one["title"] for one in cautions(each)} for each in (model, again)]
    assert titles[1] <= titles[0]


@pytest.mark.parametrize("change", ["removed", "added"])
@pytest.mark.parametrize("groups", [None, np.arange(N) // 2], ids=["rows", "groups"])
@pytest.mark.slow
def test_an_updated_stack_is_refitted_in_five_folds_and_tells_all(groups, change):
    fits = []

    class Counted(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

    steps = np.where((X[:, 0] > 0.1) ^ (X[:, 1] > -0.2), "yes", "no")
    candidates = ["rbf", Counted(max_depth=3, random_state=0)]
    model = stacked_classifier(candidates).fit(X, steps, groups=groups)
    assert (model.candidate_weights_ > 0).all()
    fits.clear()
    if change == "removed":
        model = model.without([0, 1])
    elif groups is None:
        model = model.with_rows(NEW, steps[:7])
    else:
        pytest.skip("new rows have no groups")
    assert len(fits) == FOLDS + 1
    scores, told = model.evaluate(nested=False), summary(model)
    assert {"accuracy", "roc_auc"} <= set(scores)
    assert told["features"]["rows"][0]["importance"] > 0
    deletion = case_deletion(model)
    assert np.isfinite(deletion.surprise).all()
    assert deletion.by_kernels
    assert row_order(model) is None or row_order(model).by_kernels
    assert len(fits) == FOLDS + 1


def test_influence_needs_a_kernel():
    model = stacked_regressor([LinearRegression()]).fit(X, Y)
    for asked in (case_deletion, row_order):
        with pytest.raises(ValueError, match="has no kernel"):
            asked(model)


@pytest.mark.parametrize("cv", [None, "2x3"])
@pytest.mark.parametrize("options", [{}, {"search": Search(method="grid")}, {"n_landmarks": 10}])
@pytest.mark.slow
def test_options_of_a_kernel_leave_estimators_as_they_are(options, cv):
    candidates = [KernelRegressor("linear", **options), TREE]
    model = stacked_regressor(candidates, cv=cv).fit(X, Y)
    assert model.candidates_[1].stop_reason.name == "GIVEN"
    assert "of its kernel models" in str(model.certify())
    assert model.certificate_.holds
    both = stacked_regressor(candidates, combine="best", cv=cv).fit(X, Y)
    assert both.best_index_ == 1
    assert len(both.members_) == 1
    assert_allclose(both.predict(NEW), clone(TREE).fit(X, Y).predict(NEW))


@pytest.mark.parametrize(
    ("machine", "y", "message"),
    [
        (stacked_classifier([LinearRegression()]), TWO, r"LinearRegression\(\) is no classifier"),
        (stacked_regressor([LogisticRegression()]), Y, r"LogisticRegression\(\) is no regressor"),
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
    with pytest.raises(ValueError, match=message):
        machine.fit(X, y, sample_weight=1.0 + np.arange(N))


def test_a_kernel_matrix_is_no_table_of_features():
    machine = stacked_regressor(["precomputed", LinearRegression()], combine="best")
    with pytest.raises(ValueError, match="X cannot be both"):
        machine.fit(X @ X.T, Y)


@pytest.mark.slow
def test_an_estimator_wins_where_it_is_better():
    rows = RNG.uniform(-1, 1, size=(150, 3))
    steps = np.where((rows[:, 0] > 0.3) ^ (rows[:, 1] > -0.2), "a", "b")
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = stacked_classifier(["rbf", tree, SVC(C=10.0)], combine="best").fit(rows, steps)
    assert model.candidates_[model.best_index_].kernel_name.startswith("DecisionTree")
    assert model.evaluate()._nested is not None
    assert model.evaluate()["accuracy"] > 0.85


@pytest.mark.parametrize(
    "machine",
    [KernelClassifier("linear", n_landmarks=10), stacked_classifier([LogisticRegression()])],
    ids=["kernel", "estimator"],
)
@pytest.mark.parametrize("zeros", [slice(5), slice(-5, None)], ids=["first", "last"])
def test_scores_of_blocks_with_rows_of_weight_zero_are_of_the_other_rows(machine, zeros):
    weight = np.ones(N)
    weight[zeros] = 0.0
    ours, theirs = clone(machine), clone(machine)
    ours.fit(ArrayBlocks(X, size=17), TWO, sample_weight=weight)
    theirs.fit(ArrayBlocks(X[weight > 0], size=17), TWO[weight > 0])
    assert ours.evaluate() == pytest.approx(theirs.evaluate())


@pytest.mark.slow
def test_a_single_estimator_is_scored_where_its_threshold_was_set():
    fits = []

    class Counted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

    model = stacked_classifier([Counted()]).fit(X, TWO)
    assert len(fits) == 6
    decided = model.held_out_.outputs > model.threshold_
    assert model.evaluate(nested=False)["accuracy"] == pytest.approx(
        np.mean(decided == (TWO == "yes"))
    )
    assert len(fits) == 6
    assert model.predict_set(NEW).shape == (len(NEW), 2)
    assert len(fits) == 6
    model.evaluate()
    made = len(fits)
    assert model.predict_set(NEW).shape == (len(NEW), 2)
    assert len(fits) == made > 6
    for refused in (lambda: model.without([0]), model.certify):
        with pytest.raises(ValueError, match=r"no kernel|has none"):
            refused()
    with pytest.raises(ValueError, match="scaled' needs a kernel"):
        evaluated(stacked_regressor([LinearRegression()]).fit(X, Y)).predict_interval(
            NEW, method="scaled"
        )


@pytest.mark.slow
def test_a_rare_class_is_scored_by_the_five_refits_of_the_fit():
    fits, rare = [], np.arange(N) < 2
    rows = X + 9.0 * rare[:, None]

    class Counted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            fits.append(-len(X))
            return super().predict_proba(X)

    model = stacked_classifier([Counted()]).fit(rows, rare)
    assert fits == [*fits[:10], N, -1]  # of five folds; then all rows, and one to look at
    assert set(model.evaluate(nested=False)) == {
        "accuracy",
        "balanced_accuracy",
        "roc_auc",
        "log_loss",
    }
    assert sum(n_rows > 0 for n_rows in fits) == 5 + 1
    many = np.zeros((1000, 2))
    model.predict(many)
    assert fits[-1] == -1000  # at once: the estimator's own predict may not be safe in threads


@pytest.mark.parametrize("gap", [0, 1, 3])
@pytest.mark.parametrize("splits", [3, 5])
def test_folds_with_gaps_are_nested(splits, gap):
    cv = GapKFold(splits, gap=gap)
    model = KernelRegressor("linear", cv=cv).fit(X, Y)
    out = list(model.evaluate()._nested.units)[1]
    tested = model.evaluate()._nested.units.tested_by[1]
    rest = np.delete(np.arange(N), out)
    alone = KernelRegressor("linear", cv=model.units_.among(rest).codes)
    expected = alone.fit(X[rest], Y[rest]).predict(X[tested])
    assert_allclose(model.evaluate()._nested.held_out.outputs[tested], expected, rtol=1e-6)
