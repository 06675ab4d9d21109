"""Thresholds against a search through every cut."""

from functools import partial
from itertools import combinations_with_replacement

import numpy as np
import pytest
from pairwise import pairwise
from sklearn.metrics import zero_one_loss

from looms import HeldOut
from looms.criteria._error_rates import balanced_error_rate, error_rate
from looms.threshold import (
    AtLeast,
    Cost,
    FBeta,
    Metric,
    ThresholdRule,
    find_threshold,
    ordinal_thresholds,
    threshold_rule,
)


def random_loo(seed, *, levels=None, weighted=False, zeros=False):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1, -1
    outputs = 0.5 * y + rng.normal(size=n) - 0.4
    if levels:
        outputs = np.round(outputs * levels) / levels
    weight = rng.uniform(0.1, 3, size=n) if weighted else np.ones(n)
    if zeros:
        weight[2:] *= rng.random(n - 2) < 0.7
    return HeldOut(y, outputs, weight)


WEIGHTING = {"equal": (False, False), "weighted": (True, False), "zeros": (True, True)}


def test_of_equally_good_cuts_the_nearest_to_zero():
    #             three cuts of rate 1/4: at −3, 1 and 5
    loo = HeldOut([-1, 1, -1, 1], [-4.0, -2.0, 4.0, 6.0])
    assert find_threshold(loo, "balanced") == (pytest.approx(-3.0), pytest.approx(0.25))
    moved = HeldOut([-1, 1, -1, 1], [-8.0, -6.0, 0.0, 2.0])
    assert find_threshold(moved, "balanced") == (pytest.approx(1.0), pytest.approx(0.25))


@pytest.mark.parametrize("shift", [-9.0, 0.0, 9.0])
def test_where_nothing_separates_it_lies_above_wherever_the_outputs_are(shift):
    """Which end is nearer to zero would tell, in nested predictions, the class left out."""
    threshold, rate = find_threshold(HeldOut([1, -1], [0.0 + shift, 3.0 + shift]), "balanced")
    assert (threshold, rate) == (4.0 + shift, 0.5)


@pytest.mark.parametrize(
    ("y", "weight"),
    [([1, 1, 1], None), ([-1, -1, -1], None), ([1, -1, -1], [0, 1, 1])],
    ids=["no negatives", "no positives", "no weight"],
)
def test_one_class_is_an_error(y, weight):
    with pytest.raises(ValueError, match="both classes"):
        find_threshold(HeldOut(y, [0.1, 0.2, 0.3], weight), "balanced")


def test_several_columns_are_an_error():
    with pytest.raises(ValueError, match="two classes"):
        find_threshold(HeldOut(np.ones((3, 2)), np.ones((3, 2))), "balanced")


def counts_at(loo, cut):
    seen = loo.sample_weight > 0
    w, t, p = loo.sample_weight[seen], loo.y[seen] > 0, loo.outputs[seen] > cut
    return [float(w[a & b].sum()) for a, b in ((t, p), (~t, p), (t, ~p), (~t, ~p))]


def precision_and_recall(loo, cut):
    tp, fp, fn, _ = counts_at(loo, cut)
    return (tp / (tp + fp) if tp + fp else 0.0), tp / (tp + fn)


def f_beta(loo, cut, beta):
    precision, recall = precision_and_recall(loo, cut)
    weighted = beta**2 * precision + recall
    return (1 + beta**2) * precision * recall / weighted if weighted else 0.0


def mean_cost(loo, cut, *costs):
    return np.dot(counts_at(loo, cut), costs) / loo.sample_weight.sum()


def at_precision(loo, cut, least):
    precision, recall = precision_and_recall(loo, cut)
    return (1 - recall if precision >= least - 1e-12 else 1 + least - precision), -precision


def at_recall(loo, cut, least):
    precision, recall = precision_and_recall(loo, cut)
    return (1 - precision if recall >= least - 1e-12 else 1 + least - recall), -recall


def weighted_accuracy(y_true, y_pred, sample_weight):
    return np.average(y_true == y_pred, weights=sample_weight)


#: Each rule with its loss at one cut by definition, the second entry deciding among equals.
ORACLES = {
    "balanced": ("balanced", lambda loo, cut: (balanced_error_rate(*loo, threshold=cut),)),
    "f1": ("f1", lambda loo, cut: (1 - f_beta(loo, cut, 1.0),)),
    "F2": (FBeta(2.0), lambda loo, cut: (1 - f_beta(loo, cut, 2.0),)),
    "F half": (FBeta(0.5), lambda loo, cut: (1 - f_beta(loo, cut, 0.5),)),
    "cost": (Cost(1.0, 5.0), lambda loo, cut: (mean_cost(loo, cut, 0, 1, 5, 0),)),
    "gain": (Cost(2, 3, -4, -0.5), lambda loo, cut: (mean_cost(loo, cut, -4, 2, 3, -0.5),)),
    "precision": (AtLeast("precision", 0.7), lambda loo, cut: at_precision(loo, cut, 0.7)),
    "precision 1": (AtLeast("precision", 1.0), lambda loo, cut: at_precision(loo, cut, 1.0)),
    "recall": (AtLeast("recall", 0.8), lambda loo, cut: at_recall(loo, cut, 0.8)),
    "recall 1": (AtLeast("recall", 1), lambda loo, cut: at_recall(loo, cut, 1.0)),
    "metric": (weighted_accuracy, lambda loo, cut: (-1 + error_rate(*loo, threshold=cut),)),
    "loss": (
        Metric(zero_one_loss, greater_is_better=False),
        lambda loo, cut: (error_rate(*loo, threshold=cut),),
    ),
}


@pytest.mark.parametrize(
    ("name", "seed", "levels", "weighting"), pairwise(ORACLES, range(3), [None, 3], WEIGHTING)
)
def test_every_rule_equals_a_search_through_every_cut(name, seed, levels, weighting):
    weighted, zeros = WEIGHTING[weighting]
    rule, oracle = ORACLES[name]
    loo = random_loo(seed, levels=levels, weighted=weighted, zeros=zeros)
    f = np.unique(loo.outputs[loo.sample_weight > 0])
    cuts = np.concatenate([[f[0] - 1], (f[:-1] + f[1:]) / 2, [f[-1] + 1]])
    losses = np.array([oracle(loo, cut) for cut in cuts])
    best = np.arange(len(cuts))
    for column in losses.T:
        best = best[column[best] <= column[best].min() + 1e-11]
    threshold, loss = find_threshold(loo, rule)
    assert threshold == pytest.approx(cuts[best[np.argmin(np.abs(cuts[best]))]], abs=1e-12)
    assert loss == pytest.approx(losses[best[0], 0], abs=1e-11)


def test_between_neighbors_among_floating_point_numbers():
    low = 1.0
    loo = HeldOut([-1, 1], [np.nextafter(low, 0), low])
    threshold, rate = find_threshold(loo)
    assert rate == 0
    assert balanced_error_rate(*loo, threshold=threshold) == 0


def test_a_metric_without_weights_and_weights_that_differ():
    def accuracy(y_true, y_pred):
        return np.mean(y_true == y_pred)

    y, f = [-1, 1, 1], [-0.5, 0.1, 0.4]
    assert find_threshold(HeldOut(y, f, [2, 2, 2]), accuracy)[1] == -1
    with pytest.raises(ValueError, match="takes no sample_weight"):
        find_threshold(HeldOut(y, f, [1, 2, 2]), accuracy)


class Undefined(ThresholdRule):
    def losses(self, counts):
        return (np.where(counts.true_positive + counts.false_positive > 0, 0.5, np.nan),)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("f1", FBeta()),
        ("recall=0.9", AtLeast("recall", 0.9)),
        ("precision=.8", AtLeast("precision", 0.8)),
        ("cost=2.5:1", Cost(false_positive=2.5, false_negative=1.0)),
    ],
)
def test_rules_by_name(text, rule):
    assert threshold_rule(text) == rule


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FBeta(0), "beta must be a number, above 0, got 0"),
        (lambda: Cost(false_negative=np.inf), "false_negative must be a number, finite"),
        (lambda: AtLeast("precision", 1.1), "precision must be a number, above 0 and at most 1"),
        (lambda: AtLeast("recall", 0.0), "recall"),
        *[
            (
                partial(threshold_rule, each),
                "'balanced', 'f1', .*'cost=1:5', an object of looms.threshold",
            )
            for each in ("best", "F1", "f1=2", "recall", "recall:1", "recall=90%", "cost=1", FBeta)
        ],
        (
            lambda: threshold_rule("recall=1.5"),
            "recall must be a number, above 0 and at most 1, got 1.5",
        ),
        (lambda: threshold_rule("cost=0:5"), "each cost must be a number, above 0, got 0"),
        (
            lambda: find_threshold(HeldOut([1, -1], [0, 1]), lambda a, b: np.nan),
            "nan for a threshold",
        ),
        (lambda: find_threshold(HeldOut([1, -1], [0, np.nan])), "finite"),
        (lambda: find_threshold(HeldOut([1, -1], [0, 1]), Undefined()), "Undefined.*gives NaN"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_recall_that_is_met_but_for_rounding_is_met():
    """Eight tenths of weight 0.1 are 0.7999... of ten."""
    y = np.array([1, 1, 1, 1, 1, 1, 1, 1, -1, 1, 1, -1])
    loo = HeldOut(y, -np.arange(12.0), np.full(12, 0.1))
    assert find_threshold(loo, AtLeast("recall", 0.8)) == (-7.5, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_thresholds_of_ordered_classes_have_the_least_absolute_error_of_all(seed):
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1, 2, 3], rng.integers(0, 4, 14)])
    f = np.round(y + 1.2 * rng.normal(size=18), 1)
    weight, spacing = rng.uniform(0.1, 3, size=18), np.array([0.0, 1.0, 4.0, 5.0])

    def error(thresholds, levels):
        given = levels[np.searchsorted(thresholds, f)]
        return weight @ np.abs(given - levels[y])

    values = np.unique(f)
    cuts = np.concatenate([[-9], (values[:-1] + values[1:]) / 2, [9]])
    found = ordinal_thresholds(HeldOut(y, f, weight))
    for levels in (np.arange(4.0), spacing):
        least = min(error(each, levels) for each in combinations_with_replacement(cuts, 3))
        assert error(found, levels) == pytest.approx(least)
    assert (np.diff(found) >= 0).all()
