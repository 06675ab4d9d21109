"""Several candidates, by rows that each was tuned without: the best, or a stack of them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor
from looms.folds import GapKFold
from looms.kernels import ARD, RBF
from looms.selection._stack import stacking_weights

#: What is tuned of each in a moment: others are searched in the tests of `selection`.
KERNELS = {
    "linear": "linear",
    "rbf": RBF(0.5, gamma_bounds="fixed"),
    "ard": ARD([3.0, 3.0, 1.0, 2.0, 0.3], gammas_bounds="fixed"),
}
RNG = np.random.default_rng(0)
X, Y = make_friedman1(60, n_features=5, noise=1.0, random_state=0)
X_NEW = RNG.uniform(size=(7, 5))
TWO = np.digitize(Y, [np.median(Y)])
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
TARGETS = {"numbers": Y, "two targets": np.c_[Y, X[:, 0] + Y**2 / 20], "two": TWO, "three": THREE}


def machine(target, **options):
    kind = stacked_regressor if "numbers" in target or "target" in target else stacked_classifier
    return kind(**{"candidates": list(KERNELS.values()), "combine": "best", **options})


def weights_in(rest, target, weight):
    """Weights of some rows, whose classes are as heavy as in all."""
    y, own = TARGETS[target], weight.copy()
    if target in ("two", "three"):
        for label in np.unique(y):
            of = y == label
            own[of] *= weight[of].sum() / weight[of & rest].sum()
    return own[rest]


def mean_weights(y, outputs, weight, labeled):
    """Mean of the weights by outputs in folds and by those of fits to all of the rows."""
    return np.mean([stacking_weights(y, f, weight, labeled=labeled) for f in outputs], axis=0)


@pytest.mark.parametrize(
    ("combine", "target"),
    [("best", "numbers"), ("stack", "two targets"), ("stack", "three")],
)
@pytest.mark.slow
def test_held_out_outputs_are_of_machines_tuned_without_the_fold(target, combine):
    """As the weights are: the candidates are weighted on the other folds."""
    weight, groups = RNG.uniform(0.5, 2.0, len(X)), np.arange(len(X)) // 3
    model = machine(target, combine=combine)
    model.fit(X, TARGETS[target], sample_weight=weight, groups=groups)
    nested, y = model.evaluate(nested=False)._nested, model.loo_.y
    fold_of, labeled = nested.units.own, target == "three"
    assert all(len(set(fold_of[groups == g])) == 1 for g in range(20))
    outputs, others = np.empty((3, *y.shape)), []
    for fold in range(5):
        rest = fold_of != fold
        own = weights_in(rest, target, weight)
        for k, kernel in enumerate(KERNELS.values()):
            alone = machine(target, candidates=[kernel])
            alone.fit(X[rest], TARGETS[target][rest], sample_weight=own, groups=groups[rest])
            outputs[k, ~rest] = alone._outputs(X[~rest])
            others.append(alone.held_out_.outputs)
    squares = ((y - outputs) ** 2).reshape(3, len(y), -1).mean(axis=2)
    for fold in range(5):
        rest = fold_of != fold
        own = weights_in(rest, target, weight)
        shares = np.eye(3)[np.argmin(squares[:, rest] @ own)]
        if combine == "stack":
            both = outputs[:, rest], np.array(others[3 * fold : 3 * fold + 3])
            shares = mean_weights(y[rest], both, own, labeled)
        expected = np.tensordot(shares, outputs[:, ~rest], 1)
        assert_allclose(nested.held_out.outputs[~rest], expected, rtol=1e-6, atol=1e-9)
    assert_array_equal(model.held_out_.outputs, nested.held_out.outputs)
    if combine == "best":
        scores = [c.loss for c in model.candidates_]
        assert_allclose(scores, squares @ weight / weight.sum(), rtol=1e-6)
        assert len(model.members_) == 1
        return
    fits = [machine(target, candidates=[kernel]) for kernel in KERNELS.values()]
    fits = [one.fit(X, TARGETS[target], sample_weight=weight, groups=groups) for one in fits]
    by_fit = np.array([one.held_out_.outputs for one in fits])
    shares = mean_weights(y, (outputs, by_fit), weight, labeled)
    by_kernel = {type(one.kernel).__name__.lower(): one.weight for one in model.members_}
    assert len(by_kernel) > 1
    assert_allclose([by_kernel.get(k, 0.0) for k in KERNELS], shares, atol=1e-4)


@pytest.fixture
def shared(monkeypatch):
    """Two searches serve all folds."""
    monkeypatch.setattr("looms.estimators._choice_folds.LEAST_SHARED", 60)


def values_of_part(model, kernel, target, rows):
    """Kernel and μ that a search on some rows finds, μ for others in number."""
    weight = weights_in(rows, target, np.ones(len(X)))
    alone = machine(target, candidates=[kernel]).fit(X[rows], TARGETS[target][rows], weight)
    return alone.kernel_, alone.mu_ * np.sqrt(rows.sum())


@pytest.mark.slow
@pytest.mark.parametrize("target", ["numbers", "three"])
def test_two_searches_serve_the_folds_that_they_have_no_rows_of(target, shared):
    kernels = ["linear", "rbf"]
    model = machine(target, candidates=kernels, combine="stack").fit(X, TARGETS[target])
    nested, y = model.fitted_.in_folds, model.loo_.y
    fold_of, outputs = nested.units.own, np.empty((2, *y.shape))
    for part, folds in (([0, 1], [2, 3, 4]), ([2, 3], [0, 1])):
        for k, kernel in enumerate(kernels):
            found, mu = values_of_part(model, kernel, target, np.isin(fold_of, part))
            for fold in folds:
                rest = fold_of != fold
                own = weights_in(rest, target, np.ones(len(X)))
                kind = KernelRegressor if target == "numbers" else KernelClassifier
                given = kind(found, mu=mu / np.sqrt(rest.sum()))
                given.fit(X[rest], TARGETS[target][rest], own)
                outputs[k, ~rest] = given._outputs(X[~rest])
    for fold in range(5):
        rest = fold_of != fold
        own = weights_in(rest, target, np.ones(len(X)))
        shares = stacking_weights(y[rest], outputs[:, rest], own, labeled=target == "three")
        expected = np.tensordot(shares, outputs[:, ~rest], 1)
        assert_allclose(nested.held_out.outputs[~rest], expected, rtol=1e-6, atol=1e-9)


def test_given_values_are_those_without_each_fold(shared):
    kernels = [KernelRegressor(KERNELS["rbf"], mu=0.01), "linear"]
    model = stacked_regressor(kernels).fit(X, Y)
    folds = model.fitted_.in_folds
    given = [one for each in folds.models for one in each if isinstance(one.kernel, RBF)]
    assert {one.mu for one in given} == {0.01}


@pytest.mark.parametrize(
    "options",
    [
        {"cv": KFold(5)},
        {"groups": np.arange(60) // 2},
        {"y": np.digitize(np.arange(60), [3])},
    ],
    ids=["splitter", "few groups", "rare class"],
)
@pytest.mark.filterwarnings("ignore:The model predicts class")
def test_each_fold_has_a_search_where_a_part_has_too_little(options, shared, monkeypatch):
    numbers, groups = options.pop("y", None), options.pop("groups", None)
    kind = stacked_regressor if numbers is None else stacked_classifier
    kernels = list(KERNELS.values())[:2]
    model = kind(kernels, **options).fit(X, Y if numbers is None else numbers, groups=groups)
    monkeypatch.undo()
    alone = kind(kernels, **options).fit(X, Y if numbers is None else numbers, groups=groups)
    assert_array_equal(model.held_out_.outputs, alone.held_out_.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["two targets", "two"])
def test_outputs_of_a_stack_are_the_weighted_outputs_of_its_members(target):
    weight = np.where(np.arange(len(X)) < 5, 0.0, 1.0)
    model = machine(target, combine="stack").fit(X, TARGETS[target], sample_weight=weight)
    alone = [machine(target, candidates=[kernel]) for kernel in KERNELS.values()]
    for one in alone:
        one.fit(X, TARGETS[target], sample_weight=weight)
    names = [type(one.kernel).__name__.lower() for one in model.members_]
    shares = {n: one.weight for n, one in zip(names, model.members_, strict=True)}
    for of, at in (
        (lambda m: m._outputs(X_NEW), model._outputs(X_NEW)),
        (lambda m: m.loo_.outputs, model.loo_.outputs),
    ):
        expected = sum(shares.get(k, 0.0) * of(m) for k, m in zip(KERNELS, alone, strict=True))
        assert_allclose(at, expected, rtol=1e-8)
    largest = max(model.members_, key=lambda one: one.weight)
    assert model.kernel_ is largest.kernel
    assert model.candidates_[model.best_index_].kernel is largest.kernel


@pytest.mark.slow
def test_weights_are_of_the_least_loss():
    y = RNG.normal(size=60)
    F = y + RNG.normal(size=(3, 60)) * np.array([[0.5], [0.8], [2.0]])
    zeta = RNG.uniform(0.5, 2, 60)
    w = stacking_weights(y, F, zeta, labeled=False)
    grid = np.random.default_rng(1).dirichlet(np.ones(3), 20000)
    losses = (zeta * (y - grid @ F) ** 2).sum(axis=1)
    own = zeta @ (y - w @ F) ** 2
    assert (w.sum(), w.min() >= 0) == (pytest.approx(1.0), True)
    assert own <= losses.min() <= own * 1.001
    labels = np.sign(y)
    w = stacking_weights(labels, F, zeta, labeled=True)

    def loss(x):
        return log_loss(labels, 1 / (1 + np.exp(-x[:3] @ F - x[3])), sample_weight=zeta)

    best = minimize(loss, [1, 1, 1, 0], bounds=[(0, None)] * 3 + [(None, None)]).x
    assert_allclose(w, best[:3] / best[:3].sum(), atol=0.02)


@pytest.mark.parametrize("labeled", [False, True])
def test_a_row_of_weight_two_counts_in_a_stack_as_two_rows(labeled):
    F, zeta = RNG.normal(size=(3, 30)), RNG.integers(1, 4, 30)
    y = np.sign(F.sum(axis=0) + RNG.normal(size=30)) if labeled else RNG.normal(size=30)
    ours = stacking_weights(y, F, zeta.astype(float), labeled=labeled)
    copies = np.repeat(np.arange(30), zeta)
    theirs = stacking_weights(y[copies], F[:, copies], np.ones(len(copies)), labeled=labeled)
    assert_allclose(ours, theirs, atol=1e-4)
    assert np.count_nonzero(ours) > 1


@pytest.mark.parametrize(("share", "kept"), [(5e-4, [1.0, 0.0]), (2e-3, [0.998, 0.002])])
def test_weights_below_a_thousandth_are_zero(share, kept):
    outputs = np.random.default_rng(0).normal(size=(2, 50))
    y = (1 - share) * outputs[0] + share * outputs[1]
    assert_allclose(stacking_weights(y, outputs, np.ones(50), labeled=False), kept, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("combine", ["stack", "best"])
def test_weights_are_told_where_one_candidate_has_them_all(combine):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    kernels = ["linear", RBF(1e4)]  # the second is no use
    model = stacked_regressor(kernels, combine=combine).fit(rows, rows[:, 0])
    assert len(model.members_) == 1
    if combine == "stack":
        assert_array_equal(model.candidate_weights_, [1.0, 0.0])
        assert_array_equal(model.without([0]).candidate_weights_, [1.0, 0.0])
    else:
        assert model.candidate_weights_ is None


def test_of_equal_candidates_the_simplest():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat([0, 1], 15)
    X[:, 0] += 20 * y
    model = stacked_classifier(["rbf", "linear"], combine="best").fit(X, y)
    assert [c.loss for c in model.candidates_] == [0, 0]
    assert type(model.kernel_).__name__ == "Linear"


@pytest.mark.filterwarnings("ignore:Class|The model predicts class|mu ended at its upper")
@pytest.mark.parametrize("splits", [False, True])
def test_without_folds_the_best_is_taken_with_a_warning(splits):
    y = np.where(np.arange(len(X)) < (30 if splits else 2), 0, 1)
    cv = KFold(2, shuffle=True, random_state=0) if splits else None
    model = stacked_classifier(["linear", "rbf"], cv=cv)
    why = "cv has 2 folds" if splits else "class 0 has fewer than 3 rows, but folds need as many"
    with pytest.warns(UserWarning, match=f"are not stacked, since {why}"):
        model.fit(X, y)
    assert len(model.members_) == 1
    assert model.choice_units_ is None


@pytest.mark.slow
def test_splits_are_the_folds_that_candidates_are_tuned_without():
    kernels = ["linear", KERNELS["rbf"]]
    stack = stacked_regressor(kernels, cv=GapKFold(4, gap=2)).fit(X, Y)
    outer, outputs = stack.choice_units_, np.empty((2, len(Y)))
    for rows, tested in zip(outer, outer.tested_by, strict=True):
        rest = np.delete(np.arange(len(Y)), rows)
        inner = outer.among(rest).codes
        for k, kernel in enumerate(kernels):
            alone = KernelRegressor(kernel, cv=inner).fit(X[rest], Y[rest])
            outputs[k, tested] = alone.predict(X[tested])
    own = stack.candidates_
    errors = [np.mean((Y - f) ** 2) for f in outputs]
    assert_allclose([each.loss for each in own], errors, rtol=1e-6)
    fits = [KernelRegressor(kernel, cv=GapKFold(4, gap=2)).fit(X, Y) for kernel in kernels]
    both = outputs, np.array([one.held_out_.outputs for one in fits])
    weights = mean_weights(Y, both, np.ones(len(Y)), labeled=False)
    assert_allclose(stack.candidate_weights_, weights, atol=1e-5)
    alone = stacked_regressor(kernels, cv=inner).fit(X[rest], Y[rest])
    nested = stack.evaluate()._nested
    assert nested.whole
    assert_allclose(nested.held_out.outputs[tested], alone.predict(X[tested]), rtol=1e-6)
    loaded = pickle.loads(pickle.dumps(stack))
    assert loaded.evaluate() == pytest.approx(stack.evaluate())


@pytest.mark.filterwarnings("ignore:The model predicts class")
@pytest.mark.parametrize("seed", [49, 131])
def test_of_noise_no_probability_is_sure_where_models_in_folds_have_hardly_any_output(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 5)), rng.permutation(np.arange(40) < 20)
    model = stacked_classifier(["linear", "rbf"]).fit(X, y)
    p = model.predict_proba(rng.normal(size=(200, 5)))
    assert abs(p - 0.5).max() < 0.25


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "n"), [(0.05, 150), (1.0, 300)])
def test_evaluations_of_numbers_almost_without_noise_have_no_shortcuts(noise, n, three_folds):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)
    options = {"candidates": ["linear", "rbf"], "combine": "stack"}
    nested = machine("numbers", **options).fit(X, y).evaluate()._nested
    rest = nested.units.own != 3
    alone = machine("numbers", **options).fit(X[rest], y[rest]).predict(X[~rest])
    assert nested.units.n_units == (10 if noise < 0.1 else 5)
    assert np.allclose(nested.held_out.outputs[~rest], alone, rtol=1e-6) == (noise < 0.1)
