"""Nested predictions of a choice on a grid, against the same choice made anew without the rows."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search
from looms._classes import class_indices
from looms.calibration import fit_calibrator
from looms.calibration._calibrators import class_probabilities, output_at
from looms.conformal import jackknife_minmax, jackknife_plus, prediction_sets
from looms.conformal._sets import class_margins
from looms.criteria import as_criterion
from looms.held_out import HeldOut
from looms.kernels import RBF, Linear
from looms.lssvm import solve
from looms.selection._fold_pairs import fold_pairs
from looms.selection._objective import Objective
from looms.selection._scan import grid_points
from looms.threshold import find_threshold
from looms.units import Units

N = 17
RNG = np.random.default_rng(2)
X = RNG.normal(size=(N, 3))
NEW = RNG.normal(size=(6, 3))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + 0.7 * RNG.normal(size=N)
TARGETS = {
    "numbers": SIGNAL,
    "two targets": np.column_stack([SIGNAL, X[:, 2] + RNG.normal(size=N)]),
    "two classes": np.where(SIGNAL > 0.6, "yes", "no"),
    "three classes": np.digitize(SIGNAL, [-0.6, 0.5]),
}
WEIGHTS = {
    "unweighted": None,
    "some are zero": np.where(np.arange(N) % 7 == 3, 0.0, RNG.uniform(0.5, 2, N)),
}
TOGETHER = {
    "rows": {},
    "groups": {"groups": np.arange(N) * 3 % 8},
    "folds": {"cv": 4},
    "folds of groups": {"cv": 5, "groups": np.arange(N) * 3 % 11},
}
KERNELS = [Linear(), RBF(gamma=0.3, gamma_bounds="fixed")]

pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
    pytest.mark.filterwarnings("ignore:The least populated class"),
]


def fitted(target, together, weight, criterion="press", **options):
    one, several = KernelRegressor, stacked_regressor
    if "classes" in target:
        one, several = KernelClassifier, stacked_classifier
    candidates = [one(kernel, search=Search(criterion, method="grid")) for kernel in KERNELS]
    options = {"combine": "best", **options, **TOGETHER[together]}
    groups = options.pop("groups", None)
    model = several(candidates, **options)
    return model.fit(X, TARGETS[target], sample_weight=WEIGHTS[weight], groups=groups)


class Anew:
    """The choice made anew without some rows: λ_i = n μ / ζ_i of each point is held."""

    def __init__(self, model):
        self.rows = np.flatnonzero(model.fit_weight_)
        self.y, self.w = model.loo_.y[self.rows], model.fit_weight_[self.rows]
        self.criterion = as_criterion(model.candidates_[0].criterion)
        self.selection_weight = model.selection_weight_[self.rows]
        (self.number,) = model.units_.number[:, self.rows]
        objectives = [
            Objective(X[self.rows], self.y, kernel=kernel, sample_weight=self.w)
            for kernel in KERNELS
        ]
        self.points = [
            (objective.kernel_at(theta), objective.mu_at(theta))
            for objective in objectives
            for theta in grid_points(objective)
        ]
        self.grams = [kernel(X[self.rows]) for kernel, _ in self.points]

    @cache  # noqa: B019 (lives as long as its test)
    def without(self, *numbers):
        """Rows outside some folds, the best point there, and its held-out outputs."""
        rest = np.flatnonzero(~np.isin(self.number, numbers))
        units = Units.of_numbers(self.number[rest])
        values, held_out = [], []
        for k in range(len(self.points)):
            outputs = self.projection(k, rest).outputs(units)
            held_out.append(outputs.reshape(self.y[rest].shape))
            values.append(
                self.criterion.evaluate(
                    self.y[rest], held_out[-1], self.selection_weight[rest]
                ).value
            )
        best = int(np.argmin(values))
        return SimpleNamespace(rest=rest, point=best, outputs=held_out[best])

    def projection(self, point, rest):
        """Solved system of one point on some rows."""
        mu = self.points[point][1] * len(self.rows) / len(rest)
        K = self.grams[point][np.ix_(rest, rest)]
        return solve(K, self.y[rest], mu, sample_weight=self.w[rest])

    def outputs(self, point, numbers, at):
        """Outputs at rows, or new samples, of a machine without some folds."""
        kernel, _ = self.points[point]
        rest = np.flatnonzero(~np.isin(self.number, numbers))
        K = self.grams[point]
        machine = self.projection(point, rest).expansion
        between = K[at] if at.ndim == 1 else kernel(at, X[self.rows])
        outputs = between[:, rest] @ machine.coefficients + machine.intercept
        return outputs.reshape(len(outputs), *self.y.shape[1:])


CASES = pairwise(
    TARGETS, ["groups", "folds"], WEIGHTS, ["press", "squared_hinge"], [None, "balanced"]
)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "together", "weight", "criterion", "class_weight"), CASES)
def test_outputs_intervals_and_sets_are_of_models_chosen_without_the_rows(
    target, together, weight, criterion, class_weight
):
    options = {}
    if "classes" in target:
        options = {"criterion": criterion, "class_weight": class_weight}
    model = fitted(target, together, weight, **options)
    nested, anew = model.evaluate()._nested, Anew(model)
    assert_array_equal(model.fitted_.rows.train, anew.rows)
    assert_array_equal(nested.held_out.y, anew.y)
    assert_array_equal(nested.held_out.sample_weight, model.loo_.sample_weight[anew.rows])
    F = np.empty((len(NEW), *anew.y.shape))
    for number in np.unique(anew.number):
        fold = np.flatnonzero(anew.number == number)
        k = anew.without(number).point
        kernel, mu = anew.points[k]
        for own in nested.model_of_fold[nested.units.own[fold]]:
            assert nested.models[own].kernel.theta == pytest.approx(kernel.theta)
            assert nested.models[own].mu == pytest.approx(mu)
        theirs = anew.outputs(k, [number], fold)
        assert_allclose(nested.held_out.outputs[fold], theirs, rtol=1e-6, atol=1e-8)
        F[:, fold] = anew.outputs(k, [number], NEW)[:, None]
    assert len(nested.models) > 1  # else nothing is shown
    r = nested.held_out.residuals
    if "classes" not in target:
        for method, jackknife in (("plus", jackknife_plus), ("minmax", jackknife_minmax)):
            ours = evaluated(model).predict_interval(NEW, 0.8, method)
            assert_allclose(ours, jackknife(r, F, 0.8), rtol=1e-6, atol=1e-8)
        return
    labels = class_indices(anew.y)
    own = class_margins((anew.y - r).reshape(len(r), -1))[np.arange(len(r)), labels]
    margins = class_margins(F.reshape(*F.shape[:2], -1))
    for share in (0.6, 0.85):
        assert_array_equal(
            evaluated(model).predict_set(NEW, share), prediction_sets(own, margins, share)
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "together", "weight", "class_weight", "threshold"),
    pairwise(
        ["two classes", "three classes"],
        TOGETHER,
        WEIGHTS,
        [None, "balanced"],
        [0.5, "balanced"],
    ),
)
def test_classes_and_probabilities_are_set_without_the_rows(
    target, together, weight, class_weight, threshold
):
    if target == "three classes":
        threshold = 0.5
    model = fitted(target, together, weight, class_weight=class_weight, threshold=threshold)
    nested, anew = model.evaluate()._nested, Anew(model)
    Y, number = anew.y.reshape(len(anew.y), -1), anew.number
    weight = nested.held_out.sample_weight
    labels = class_indices(anew.y)
    fit_weight = weight.copy()
    mass = np.bincount(labels, weights=weight)
    if class_weight == "balanced":
        fit_weight *= weight.sum() / (len(mass) * mass[labels])
    folds = [np.flatnonzero(number == g) for g in np.unique(number)]
    position = np.unique(number, return_inverse=True)[1]
    pairs = [tuple(np.unique(number)[[g, h]]) for g, h in fold_pairs(Y, position)]
    alone = set(np.unique(number)) - {g for pair in pairs for g in pair}
    rounds, wrong, losses = np.zeros((3, len(labels)))
    for out in [*pairs, *((g,) for g in alone)]:
        rows, inner = np.flatnonzero(np.isin(number, out)), anew.without(*out)
        rest = inner.rest
        outside = np.bincount(labels[rest], weights=weight[rest])
        factor = (mass / outside)[labels[rest]]
        held_out = HeldOut(anew.y[rest], inner.outputs, factor * weight[rest])
        calibrator = fit_calibrator(held_out)
        of_fit = HeldOut(anew.y[rest], inner.outputs, factor * fit_weight[rest])
        deciding = fit_calibrator(of_fit)  # class weights decide, and are in no probability
        limit = 0.0
        if threshold == "balanced":
            limit = find_threshold(held_out, "balanced")[0]
        elif target == "two classes":
            limit = output_at(deciding, held_out.outputs)
        else:
            limit = deciding.thresholds(held_out.outputs[held_out.sample_weight > 0])
        f = anew.outputs(inner.point, out, rows)
        rounds[rows] += 1
        wrong[rows] += class_indices(f, limit) != labels[rows]
        p = class_probabilities(calibrator, f)
        losses[rows] -= np.log(p[np.arange(len(rows)), labels[rows]])
    assert len(folds) > 3
    assert_allclose(nested.decisions.wrong, wrong / rounds, atol=1e-12)
    assert_allclose(nested.decisions.losses, losses / rounds, rtol=1e-5, atol=1e-7)
    assert model.evaluate()["accuracy"] == pytest.approx(
        1 - np.average(wrong / rounds, weights=weight)
    )
    assert model.evaluate()["log_loss"] == pytest.approx(
        np.average(losses / rounds, weights=weight), rel=1e-5
    )


@pytest.mark.parametrize("target", ["two classes", "three classes"])
@pytest.mark.slow
def test_area_is_of_pairs_with_the_choice_made_without_both(target):
    together = "folds"
    model = fitted(target, together, "some are zero")
    anew = Anew(model)
    Y, number = anew.y.reshape(len(anew.y), -1), anew.number
    weight = model.evaluate()._nested.held_out.sample_weight
    areas = []
    for c in range(Y.shape[1]):
        right = total = 0.0
        for i in np.flatnonzero(Y[:, c] > 0):
            for j in np.flatnonzero(Y[:, c] < 0):
                out = np.unique(number[[i, j]]).tolist()
                k = anew.without(*out).point
                f = anew.outputs(k, out, np.array([i, j])).reshape(2, -1)[:, c]
                w = weight[i] * weight[j]
                right, total = right + w * (f[0] > f[1]), total + w
        areas.append(right / total)
    assert model.evaluate()._nested.auc[0] == pytest.approx(np.mean(areas), rel=1e-9)
    assert model.evaluate()["roc_auc"] == model.evaluate()._nested.auc[0]


def test_a_regressor_of_labels_predicts_numbers():
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    scores = KernelRegressor(search=Search(method="grid")).fit(X, y).evaluate()
    assert list(scores) == ["rmse", "mae", "r2"]
