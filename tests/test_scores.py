"""Scores of held-out predictions: against plain formulas, refits, and chance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.dummy import DummyRegressor
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from looms import KernelClassifier, KernelRegressor, Search
from looms._classes import class_indices, rounding
from looms._scores import (
    class_baselines,
    class_scores,
    effective_size,
    number_baselines,
    number_scores,
)
from looms.calibration._calibrators import class_probabilities
from looms.criteria import mean_class_error
from looms.fitted._outcome import Classes
from looms.folds import GapKFold
from looms.lssvm import solve
from looms.scores import held_out_decisions
from looms.selection._decisions import Rule
from looms.selection._fold_pairs import fold_pairs, pair_auc
from looms.units import Units

N = 14
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N, 2))
SIGNAL = X[:, 0] + 0.8 * RNG.normal(size=N)
LABELS = {"two classes": SIGNAL > 0.3, "three classes": SIGNAL.argsort().argsort() // 5}
GROUPS = np.arange(N) * 3 % 7
WEIGHTS = {
    "unweighted": None,
    "some are zero": np.where(np.arange(N) == 5, 0, RNG.uniform(1, 2, N)),
}

pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
]


class TestPlainFormulas:
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 0])
    predicted = np.array([0, 1, 0, 1, 2, 2, 2, 0, 2, 0])
    probabilities = RNG.dirichlet(np.ones(3), size=10)
    weight = RNG.integers(1, 4, size=10).astype(float)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_of_classes(self, weighted):
        w = self.weight if weighted else np.ones(10)
        losses = -np.log(self.probabilities[np.arange(10), self.labels])
        wrong = 1.0 * (self.predicted != self.labels)
        arguments = self.labels, wrong, (0.7, np.full(10, 0.1)), w, None, losses
        scores = class_scores(*arguments)
        assert list(scores) == ["accuracy", "balanced_accuracy", "roc_auc", "log_loss"]
        truth = {"y_true": self.labels, "sample_weight": w}
        expected = {
            "accuracy": accuracy_score(y_pred=self.predicted, **truth),
            "balanced_accuracy": balanced_accuracy_score(y_pred=self.predicted, **truth),
            "roc_auc": 0.7,
            "log_loss": log_loss(self.labels, self.probabilities, sample_weight=w),
        }
        assert {name: value for name, (value, _) in scores.items()} == pytest.approx(expected)
        n = w.sum() ** 2 / (w @ w)
        assert scores["roc_auc"] == pytest.approx((0.7, 0.1 * np.sqrt(10 * n / (n - 1))))
        assert list(class_scores(*arguments[:-1])) == ["accuracy", "balanced_accuracy", "roc_auc"]

    def test_standard_errors_of_classes(self):
        losses = -np.log(self.probabilities[np.arange(10), self.labels])
        wrong = 1.0 * (self.predicted != self.labels)
        scores = class_scores(self.labels, wrong, (0.7, wrong), np.ones(10), None, losses)
        p = (3 + 1) / 12
        assert scores["accuracy"][1] == pytest.approx(np.sqrt(p * (1 - p) / 10))
        rates = [((1 + 1) / 6, 4), ((1 + 1) / 4, 2), ((1 + 1) / 6, 4)]
        total = sum(p * (1 - p) / n for p, n in rates)
        assert scores["balanced_accuracy"][1] == pytest.approx(np.sqrt(total) / 3)
        assert scores["log_loss"][1] == pytest.approx(losses.std(ddof=1) / np.sqrt(10))

    @pytest.mark.parametrize("targets", [(), (2,)])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_of_numbers(self, targets, weighted):
        rng = np.random.default_rng(4)
        y, f = rng.normal(size=(2, 10, *targets))
        w = self.weight if weighted else np.ones(10)
        scores = number_scores(y, f[None], w)
        assert list(scores) == ["rmse", "mae", "r2"]
        mse = np.average(
            root_mean_squared_error(y, f, sample_weight=w, multioutput="raw_values") ** 2
        )
        assert scores["rmse"][0] == pytest.approx(np.sqrt(mse))
        assert scores["mae"][0] == pytest.approx(mean_absolute_error(y, f, sample_weight=w))
        assert scores["r2"][0] == pytest.approx(r2_score(y, f, sample_weight=w))
        if not (weighted or targets):
            squares, sizes = (y - f) ** 2, np.abs(y - f)
            assert scores["mae"][1] == pytest.approx(sizes.std(ddof=1) / np.sqrt(10))
            expected = squares.std(ddof=1) / np.sqrt(10) / (2 * np.sqrt(mse))
            assert scores["rmse"][1] == pytest.approx(expected)

    def test_a_constant_target_has_no_r2_and_no_error_no_division(self):
        scores = number_scores(np.ones(4), np.ones((1, 4)), np.ones(4))
        assert scores["rmse"] == (0.0, 0.0)
        assert np.isnan(scores["r2"][0])

    def test_rows_of_a_group_count_as_one_draw(self):
        once = number_scores(SIGNAL, X[None, :, 0], np.ones(N))
        copies = [np.tile(array, 3) for array in (SIGNAL, X[:, 0], np.ones(N), np.arange(N))]
        copies[1] = copies[1][None]
        thrice = number_scores(*copies)
        apart = number_scores(*copies[:3])
        for name in ("rmse", "mae", "r2"):
            assert thrice[name] == pytest.approx(once[name])
            assert apart[name][1] < 0.6 * once[name][1]
        labels, wrong, weight = RNG.integers(0, 2, N), 1.0 * RNG.integers(0, 2, N), np.ones(N)
        once = class_scores(labels, wrong, (0.5, wrong), weight)
        copies = [np.tile(array, 3) for array in (labels, wrong, weight, np.arange(N))]
        thrice = class_scores(*copies[:2], (0.5, copies[1]), *copies[2:])
        assert thrice["accuracy"] == pytest.approx(once["accuracy"])
        assert thrice["balanced_accuracy"] == pytest.approx(once["balanced_accuracy"])
        assert effective_size(np.array([1.0, 1.0, 2.0, 0.0])) == pytest.approx(16 / 6)


def grouped_decisions(together, rng, n_groups=60):
    """Labels, wrong decisions, outputs and groups of rows that are alike in groups, or not."""
    groups = np.repeat(np.arange(n_groups), rng.integers(5, 30, n_groups))
    level, tilt = together * rng.normal(size=(2, n_groups))
    labels = 1 * (rng.normal(size=len(groups)) + level[groups] > 0.8)
    outputs = 1.2 * labels + tilt[groups] + rng.normal(size=len(groups))
    return labels, 1.0 * ((outputs > 0.6) != labels), outputs, groups


def area_of(labels, outputs, weight, groups=None):
    targets = np.where(labels > 0, 1.0, -1.0)[:, None]
    compared = targets, outputs[:, None], [np.arange(len(labels))], [], [], weight
    return pair_auc(*compared, groups=groups)


@pytest.mark.slow
@pytest.mark.parametrize("together", [0.0, 2.0])
def test_errors_of_grouped_rows_are_those_of_a_bootstrap_of_groups(together):
    rng = np.random.default_rng(5)
    labels, wrong, outputs, groups = grouped_decisions(together, rng)
    one = np.ones(len(labels))
    scores = class_scores(labels, wrong, area_of(labels, outputs, one, groups), one, groups)
    drawn = []
    for _ in range(400):
        weight = 1.0 * np.bincount(rng.integers(0, 60, 60), minlength=60)[groups]
        area = roc_auc_score(labels, outputs, sample_weight=weight)
        accuracy = 1 - wrong @ weight / weight.sum()
        drawn.append((accuracy, 1 - mean_class_error(labels, wrong, weight), area))
    for name, error in zip(scores, np.std(drawn, axis=0), strict=True):
        assert scores[name][1] == pytest.approx(error, rel=0.15), name


def test_the_error_of_an_area_within_groups():
    """Where groups are compared within themselves, it is that of a ratio of sums over groups."""
    rng = np.random.default_rng(3)
    labels, _, outputs, groups = grouped_decisions(0.5, rng, 30)
    targets, sets = np.where(labels > 0, 1.0, -1.0)[:, None], Units.of_numbers(groups).tested_by
    one = np.ones(len(labels))
    area, deviations = pair_auc(targets, outputs[:, None], sets, [], [], one, groups=groups)
    ranked = [outputs[S][labels[S] > 0][:, None] > outputs[S][labels[S] == 0] for S in sets]
    right, mass = np.array([(won.sum(), won.size) for won in ranked]).T
    assert area == pytest.approx(right.sum() / mass.sum())
    sums = np.bincount(groups, weights=deviations)
    assert_allclose(np.sort(sums), np.sort((right - area * mass) / mass.sum()), atol=1e-12)


def test_without_an_error_or_within_one_group_each_group_is_one_draw():
    labels, groups, one = np.arange(60) // 10 % 2, np.arange(60) // 5, np.ones(60)
    right = class_scores(labels, 0 * one, (1.0, 0 * one), one, groups)
    firsts = labels[::5], np.zeros(12), (1.0, np.zeros(12)), np.ones(12)
    for name, expected in class_scores(*firsts).items():
        assert right[name] == pytest.approx(expected)
    wrong = 1.0 * (np.arange(60) % 2)
    alone = class_scores(1 * (groups == 3), wrong, (0.5, 0 * one), one, groups)
    p = (0.4 + 1) / 3  # class 1 is in one group
    assert alone["balanced_accuracy"][1] > np.sqrt(p * (1 - p)) / 2


def test_errors_in_windows_of_time_are_between_windows():
    rng = np.random.default_rng(2)
    level, cv = np.repeat(rng.normal(size=10), 20), GapKFold(10)
    X, y = rng.normal(size=(200, 2)), level + 0.5 * rng.normal(size=200)
    model = KernelRegressor("linear", mu=0.1, cv=cv).fit(X, y)
    squares, scores = model.held_out_.residuals**2, model.evaluate()
    means = squares.reshape(10, 20).mean(axis=1)
    expected = means.std(ddof=1) / np.sqrt(10) / (2 * scores["rmse"])
    assert scores.standard_errors["rmse"] == pytest.approx(expected, rel=0.05)
    machine = KernelClassifier("linear", mu=0.1, cv=cv).fit(X, y > 0)
    scores = machine.evaluate()
    means = scores.decisions.wrong.reshape(10, 20).mean(axis=1)
    expected = means.std(ddof=1) / np.sqrt(10)
    assert scores.standard_errors["accuracy"] == pytest.approx(expected, rel=0.05)


def refitted(model, out, at):
    """Outputs at rows by the machine without others; λ_i = n μ / ζ_i is held, μ Σw / w_i."""
    w = model.fit_weight_
    rest = np.setdiff1d(np.flatnonzero(w), out)
    given = KernelRegressor(model.kernel_, mu=model.mu_ * w.sum() / w[rest].sum())
    return given.fit(X[rest], model.loo_.y[rest], sample_weight=w[rest]).predict(X[at])


def fitted(target, together, weight):
    weight = WEIGHTS[weight]
    if together == "rows, given":
        return KernelClassifier(mu=0.05).fit(X, LABELS[target], sample_weight=weight)
    groups = GROUPS if together == "groups" else None
    model = KernelClassifier(threshold=0.45 if target == "two classes" else 0.5)
    return model.fit(X, LABELS[target], sample_weight=weight, groups=groups)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("together", ["rows", "rows, given", "groups"])
@pytest.mark.parametrize("target", LABELS)
def test_of_a_machine_are_of_pairs_left_out(target, together, weight):
    model = fitted(target, together, weight)
    w, train = model.loo_.sample_weight, np.flatnonzero(model.fit_weight_)
    Y = model.loo_.y.reshape(N, -1)
    number = GROUPS if together == "groups" else np.arange(N)
    labels, kept = class_indices(model.loo_.y), Units.of_numbers(number[train]).number[0]
    rounds, wrong, losses = np.zeros((3, N))
    pairs = fold_pairs(Y[train], kept)
    alone = set(kept) - {g for pair in pairs for g in pair}
    for out in [*pairs, *((g,) for g in alone)]:
        rows = train[np.isin(kept, out)]
        f = refitted(model, rows, rows)
        rounds[rows] += 1
        wrong[rows] += class_indices(f, model.threshold_) != labels[rows]
        p = class_probabilities(model.calibrator_, f)
        losses[rows] -= np.log(p[np.arange(len(rows)), labels[rows]])
    wrong, losses, w = wrong[train] / rounds[train], losses[train] / rounds[train], w[train]
    expected = {
        "accuracy": 1 - np.average(wrong, weights=w),
        "balanced_accuracy": 1 - mean_class_error(labels[train], wrong, w),
        "roc_auc": model.evaluate(nested=False)["roc_auc"],
        "log_loss": np.average(losses, weights=w),
    }
    assert model.evaluate(nested=False) == pytest.approx(expected, rel=1e-6)
    assert list(model.evaluate(nested=False).standard_errors) == list(expected)
    assert all(0 < error < 1 for error in model.evaluate(nested=False).standard_errors.values())


@pytest.mark.parametrize("cv", [3, "4x3", GapKFold(4, 2, np.arange(N) * 9 % N)])
def test_of_folds_areas_are_within_folds(cv):
    model = KernelClassifier(cv=cv).fit(X, LABELS["two classes"])
    y, areas = LABELS["two classes"], []
    for repetition in (
        [model.units_.codes] if isinstance(cv, GapKFold) else model.units_.codes[:, None]
    ):
        right = total = 0
        for k in np.unique(repetition[repetition >= 0]):
            rows = np.flatnonzero((repetition == k).any(axis=0))
            out = np.flatnonzero(((repetition == k) | (repetition == -2 - k)).any(axis=0))
            f, positive = refitted(model, out, rows), y[rows]
            weight = positive.sum() * (~positive).sum()
            if weight > 0:
                right, total = right + weight * roc_auc_score(positive, f), total + weight
        areas.append(right / total)
    assert model.evaluate(nested=False)["roc_auc"] == pytest.approx(np.mean(areas))
    assert all(np.isfinite(list(model.evaluate(nested=False).standard_errors.values())))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cv": 3},
        {"cv": GapKFold(4, gap=2)},
        {"groups": GROUPS},
        {"search": Search(method="grid")},
    ],
)
@pytest.mark.slow
def test_of_numbers_are_of_the_outputs_held_out(options):
    options = dict(options)
    groups = options.pop("groups", None)
    model = KernelRegressor(**options).fit(
        X, SIGNAL, sample_weight=WEIGHTS["some are zero"], groups=groups
    )
    kept = model.fit_weight_ > 0
    y, w = SIGNAL[kept], model.loo_.sample_weight[kept]
    for nested in (True, False):
        scores = model.evaluate(nested=nested)
        outputs = model.held_out_.outputs[kept]
        if nested:
            outputs = scores._nested.held_out.outputs
        expected = root_mean_squared_error(y, outputs, sample_weight=w)
        assert scores["rmse"] == pytest.approx(expected)
        assert scores["r2"] == pytest.approx(r2_score(y, outputs, sample_weight=w))
        assert scores.standard_errors["rmse"] > 0


@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("log10_mu", [16, 20])
def test_outputs_that_differ_by_rounding_are_ties(cv, log10_mu):
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(60, 4)), np.where(np.arange(60) < 25, 1.0, -1.0)
    K = np.exp(-0.1 * np.square(features[:, None] - features).sum(axis=2))
    units = Units.of_numbers(np.arange(60) % (cv or 60))
    machine = solve(K, y, 10.0**log10_mu)
    rule = Rule(0.0, None, rounding(60))
    options = np.ones(60), rule, y.shape, Classes(np.arange(2))
    _, (area, deviations) = held_out_decisions(machine, units, *options)
    assert area == pytest.approx(0.5, abs=1e-12)
    assert_allclose(deviations, 0.0, atol=1e-12)


def pooled_auc(y, outputs, weight):
    """All rows compared with all, as outputs of one machine."""
    Y, F = (values.reshape(len(y), -1) for values in (y, outputs))
    return pair_auc(Y, F, [np.arange(len(y))], [], [], weight)


def test_standard_error_of_the_area_of_pooled_outputs():
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(0.7, 1, 60).round(1), rng.normal(0, 1, 90).round(1)
    outputs = np.concatenate([positive, negative])
    y, weight = np.where(np.arange(150) < 60, 1.0, -1.0), np.ones(150)
    area, deviations = pooled_auc(y, outputs, weight)
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    assert area == pytest.approx(wins.mean())
    expected = wins.mean(axis=1).var() / 60 + wins.mean(axis=0).var() / 90
    assert np.sum(deviations**2) == pytest.approx(expected)
    assert np.isnan(pooled_auc(y, outputs, 1.0 * (y > 0))[0])
    both = pooled_auc(np.stack([y, -y], 1), np.stack([outputs, -outputs], 1), weight)
    assert both[0] == pytest.approx(area)
    assert_allclose(both[1], deviations)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(50, 50), (20, 20), (100, 10)], ids=str)
def test_an_area_of_one_is_no_certainty(sizes):
    """By as much as its standard error does the truth fall short, on the average over machines."""
    y = np.repeat([1.0, -1.0], sizes)
    f, one = np.arange(len(y), 0.0, -1.0), np.ones(len(y))
    auc = pooled_auc(y, f, one)
    assert auc[0] == pytest.approx(1)
    error = class_scores((y > 0).astype(int), np.zeros(len(y)), auc, one)["roc_auc"][1]
    rng, short = np.random.default_rng(0), []
    areas = rng.uniform(0.8, 1.0, 20_000)
    for area, distance in zip(areas, np.sqrt(2) * norm.ppf(areas), strict=True):
        if (distance + rng.normal(size=sizes[0])).min() > rng.normal(size=sizes[1]).max():
            short.append(1 - area)
    assert 0.3 * error < np.sqrt(np.mean(np.square(short))) <= error


def test_an_area_without_classes_that_meet_has_no_standard_error():
    made = np.array([0, 0, 1]), np.zeros(3), (np.nan, np.full(3, np.nan)), np.ones(3)
    assert np.isnan(class_scores(*made)["roc_auc"]).all()


def test_baselines_of_classes_without_weight():
    weight, labels = np.array([1.0, 1, 0, 2]), np.array([0, 1, 2, 1])
    used = weight > 0
    expected = class_baselines(labels[used], weight[used])
    with np.errstate(all="raise"):
        found = class_baselines(labels, weight)
    assert {**found, "brier": found["brier"] / 2} == pytest.approx(expected)


def test_baselines_are_those_of_dummies():
    rng = np.random.default_rng(0)
    y, weight = rng.exponential(size=(30, 2)), rng.integers(0, 3, size=30).astype(float)
    dummies = {name: DummyRegressor(strategy=name).fit(y, y, weight) for name in ("mean", "median")}
    means, medians = (dummies[name].predict(y) for name in ("mean", "median"))
    expected = {
        "rmse": np.sqrt(mean_squared_error(y, means, sample_weight=weight)),
        "mae": mean_absolute_error(y, medians, sample_weight=weight),
        "r2": r2_score(y, means, sample_weight=weight),
    }
    assert number_baselines(y, weight) == pytest.approx(expected, abs=1e-12)
    labels = rng.integers(0, 2, size=30)
    shares = np.tile(np.bincount(labels, weights=weight) / weight.sum(), (30, 1))
    expected = {
        "accuracy": shares.max(),
        "balanced_accuracy": 0.5,
        "roc_auc": 0.5,
        "log_loss": log_loss(labels, shares, sample_weight=weight),
        "brier": brier_score_loss(labels, shares[:, 1], sample_weight=weight),
    }
    assert class_baselines(labels, weight) == pytest.approx(expected)
