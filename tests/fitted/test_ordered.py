"""Ordered classes, against refits without the rows, other orders of the classes, and sigmoids."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, cohen_kappa_score, log_loss
from typer.testing import CliRunner

from looms import KernelClassifier, Search, TabularClassifier, assess, load
from looms.assessment._experiment import Experiment
from looms.calibration._sigmoid import Sigmoid, fit_increasing_sigmoid
from looms.cli._app import app
from looms.diagnostics import case_deletion
from looms.fitted._ordered import CumulativeSigmoid, OrderedClasses, fit_cumulative_sigmoid
from looms.fitted._outcome import Classes
from looms.held_out import HeldOut
from looms.report import cautions, summary
from looms.selection._decisions import Rule

NAMES = ["low", "medium", "high", "top"]  # which no sorting gives
CUTS = [-1.5, 0.0, 1.5]


def drawn(n, seed):
    """Rows with proportional odds, ranks, and their ordered names."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    ranks = np.searchsorted(CUTS, 1.5 * X[:, 0] + np.sin(2 * X[:, 1]) + rng.logistic(0, 0.7, n))
    return X, ranks, as_ordered(ranks)


def as_ordered(ranks, names=NAMES):
    return pd.Series(pd.Categorical.from_codes(ranks, names, ordered=True), name="grade")


def ranks_of(labels):
    return np.array([NAMES.index(label) for label in labels])


def in_order(columns, model):
    """Columns of the classes in their order."""
    return columns[:, [model.classes_.tolist().index(name) for name in NAMES]]


X, RANKS, Y = drawn(70, 1)
GIVEN = KernelClassifier("rbf", mu=1e-2)


def weight_without(rest):
    """Weights with which the classes of some rows have their shares in all."""
    return np.bincount(RANKS)[RANKS[rest]] / np.bincount(RANKS[rest])[RANKS[rest]]


def scores_of(ranks, predicted, p):
    """The scores by scikit-learn and by their formulas."""
    up_to = ranks[:, None] <= np.arange(4)
    return {
        "accuracy": accuracy_score(ranks, predicted),
        "mean_rank_error": np.abs(ranks - predicted).mean(),
        "quadratic_kappa": cohen_kappa_score(ranks, predicted, weights="quadratic"),
        "ranked_probability": ((np.cumsum(p, axis=1) - up_to) ** 2).sum(axis=1).mean(),
        "log_loss": log_loss(ranks, p),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        TabularClassifier(["rbf"]),
        TabularClassifier([LogisticRegression()], combine="best"),
    ],
)
def test_scores_are_those_of_refits_without_each_fold(model):
    scores = clone(model).fit(X, Y).evaluate()
    predicted, p = np.empty(70, dtype=int), np.empty((70, 4))
    for tested in scores._nested.units.tested_by:
        rest = np.delete(np.arange(70), tested)
        one = clone(model).fit(X[rest], Y[rest], sample_weight=weight_without(rest))
        predicted[tested] = ranks_of(one.predict(X[tested]))
        p[tested] = in_order(one.predict_proba(X[tested]), one)
    assert dict(scores) == pytest.approx(scores_of(RANKS, predicted, p), rel=1e-6)
    assert scores.kind.startswith("nested")
    assert set(scores.baselines) == set(scores)
    assert all(0 < error < np.inf for error in scores.standard_errors.values())


@pytest.mark.slow
def test_scores_of_several_passes_are_means_over_them():
    model = clone(GIVEN).set_params(cv="3x5").fit(X, Y)
    units = model.fitted_.units_of_fit
    outputs = model.left_out().outputs(units)
    outcome, rule, passes = model.fitted_.outcome, model.fitted_.rule, []
    for row in outputs[:, :, 0]:
        p = in_order(outcome.probabilities(row, rule), model)
        passes.append(scores_of(RANKS, np.searchsorted(model.threshold_, row), p))
    expected = {name: np.mean([one[name] for one in passes]) for name in passes[0]}
    expected.pop("quadratic_kappa")  # a ratio of means
    found = {name: value for name, value in model.evaluate().items() if name in expected}
    assert len(units.passes) == 3
    assert found == pytest.approx(expected, rel=1e-9)


def test_sets_are_those_of_refits_without_each_row():
    model, n = clone(GIVEN).fit(X, Y), 70
    model.evaluate()
    new, others = drawn(5, 2)[0], np.arange(n)
    away, of_new = np.empty(n), np.empty((5, n, 4))
    one = clone(GIVEN).set_params(mu=1e-2 * n / (n - 1), kernel=model.kernel_)
    for i in others:
        rest = np.delete(others, i)
        one.fit(X[rest], Y[rest])
        away[i] = abs(one._outputs(X[[i]])[0] - RANKS[i])
        of_new[:, i] = np.abs(one._outputs(new)[:, None] - np.arange(4))
    for confidence_level in (0.6, 0.9):
        sets = in_order(model.predict_set(new, confidence_level), model)
        p = (1 + (away[:, None] >= of_new).sum(axis=1)) / (n + 1)
        assert_array_equal(sets, p > 1 - confidence_level)


@pytest.mark.parametrize("calibration", ["sigmoid", None])
def test_the_reverse_order_changes_nothing(calibration):
    other = pd.Series(pd.Categorical(Y, NAMES[::-1], ordered=True))
    models = [clone(GIVEN).set_params(calibration=calibration).fit(X, y) for y in (Y, other)]
    new, (one, reverse) = drawn(60, 3)[0], models
    assert_array_equal(one.classes_, sorted(NAMES))
    assert_array_equal(one.predict(new), reverse.predict(new))
    decision = one.decision_function(new)
    assert_allclose(decision, reverse.decision_function(new), atol=1e-8)
    assert_array_equal(one.classes_[decision.argmax(axis=1)], one.predict(new))
    assert hasattr(one, "predict_proba") == (calibration is not None)
    if calibration:
        assert_allclose(one.predict_proba(new), reverse.predict_proba(new), atol=1e-5)


def test_two_ranks_have_the_sigmoid_of_two_classes():
    ranks, outputs = np.minimum(RANKS, 1.0), X[:, 0] + 100.0
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 70)
    ours = fit_cumulative_sigmoid(HeldOut(ranks, outputs, weight), 2)
    theirs = fit_increasing_sigmoid(outputs, 2 * ranks - 1, weight)
    assert_allclose(ours.probability(outputs)[:, 1], theirs.probability(outputs), atol=1e-5)


def test_the_constants_are_where_the_loss_is_least():
    outputs, k = 1.5 * X[:, 0], 4
    fit = fit_cumulative_sigmoid(HeldOut(RANKS, outputs), k)
    n = np.bincount(RANKS)[RANKS]
    targets = np.repeat((1 / (n + 2) / (k - 1))[:, None], k, axis=1)
    targets[np.arange(70), RANKS] = (n + 1) / (n + 2)

    def loss(slope, constants):
        return -np.sum(targets * np.log(type(fit)(slope, constants).probability(outputs)))

    least = loss(fit.slope, fit.constants)
    for step in np.vstack([np.eye(k), -np.eye(k)]) * 1e-3:
        assert loss(fit.slope + step[0], fit.constants + step[1:]) > least
    p = fit.probability(np.linspace(-1e3, 1e3, 9))
    assert_allclose(p.sum(axis=1), 1.0)
    assert (np.diff(np.cumsum(p, axis=1)[:, :-1], axis=0) <= 0).all()


def test_noise_has_one_class_or_the_middle_and_finite_scores():
    outcome = OrderedClasses.of(
        np.array(["a", "b", "c"]), np.array(["c", "a", "b"]), "sigmoid", False
    )
    loss = outcome.loss(HeldOut([0, 0, 1, 2], np.zeros(4)), np.ones(4))
    assert loss.calibrator.slope == 0
    loss = outcome.loss(HeldOut([0, 0, 2, 2], [0.0, 0.1, 1.8, 2.0]), np.ones(4))  # none has rank 1
    assert_array_equal(np.searchsorted(loss.threshold, [-9.0, 0.5, 1.5, 9.0]), [0, 0, 2, 2])
    assert loss.value == 0


def test_class_weights_move_the_cuts_and_not_the_probabilities():
    outputs, weight = X[:, 0], np.where(RANKS == 3, 9.0, 1.0)
    outcome = OrderedClasses.of(np.sort(NAMES), np.array(NAMES), "sigmoid", weighted=True)
    plain = replace(outcome, weighted=False)
    found = outcome.loss(HeldOut(RANKS, outputs), weight)
    cuts = plain.loss(HeldOut(RANKS, outputs, weight), weight)
    p = plain.loss(HeldOut(RANKS, outputs), weight)
    assert_array_equal(found.threshold, cuts.threshold)
    assert_array_equal(found.calibrator.constants, p.calibrator.constants)
    assert not np.array_equal(cuts.threshold, p.threshold)
    assert found.value == cuts.value


def test_outputs_at_a_cut_up_to_rounding_count_for_both_sides():
    outcome = OrderedClasses.of(np.sort(NAMES), np.array(NAMES), None, weighted=False)
    rule = Rule(np.array([0.5, 1.5, 2.5]), None, 1e-12)  # of targets up to one
    shares = outcome.decided(np.arange(3), np.array([0.5 + 2e-12, 1.5 - 2e-12, 2.6]), rule).shares
    expected = [[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    assert_array_equal(shares[:, outcome.in_order], expected)


def test_estimators_give_mean_ranks():
    model = TabularClassifier([LogisticRegression()]).fit(X, Y)
    (member,) = model.members_
    expected = member.estimator.predict_proba(X) @ ranks_of(member.estimator.classes_)
    assert_allclose(model.fitted_.outputs(X), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": "balanced"}, "two "),
        ({"calibration": "isotonic"}, "without order"),
        ({"loss": "hinge"}, "without order"),
        ({"search": Search("wmw")}, "ordered classes"),
    ],
)
def test_what_is_for_classes_without_order_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        KernelClassifier(**options).fit(X, Y)


def test_an_order_of_two_classes_says_nothing():
    two = as_ordered(np.minimum(RANKS, 1), NAMES[:2])
    model = clone(GIVEN).fit(X, two)
    assert isinstance(model.fitted_.outcome, Classes)
    assert "roc_auc" in model.evaluate()


# Report, files and the command line ----------------------------------------------------


@pytest.mark.slow
def test_a_report_has_the_scores_of_ranks_and_classes_in_order():
    model = clone(GIVEN).fit(X, Y)
    scores, found = model.evaluate(), summary(model)
    assert found["headline"]["key"] == "mean_rank_error"
    assert found["headline"]["value"] == scores["mean_rank_error"]
    rows = {row["key"]: (row["value"], row["baseline"]) for row in found["loo"]["scores"]}
    assert rows == {name: (scores[name], scores.baselines[name]) for name in scores}
    confusion = np.array(found["loo"]["confusion"]["counts"])
    assert found["loo"]["confusion"]["labels"] == NAMES
    assert_array_equal(confusion.sum(axis=1), np.bincount(RANKS))
    assert np.trace(confusion) / 70 == pytest.approx(scores["accuracy"])
    noise = np.random.default_rng(0).normal(size=X.shape)
    titles = [caution["title"] for caution in cautions(clone(GIVEN).fit(noise, Y))]
    assert titles[0] == "May be no better than the baseline"


@pytest.mark.slow
def test_files_and_the_command_line_keep_the_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = TabularClassifier(["linear"]).fit(table, Y)
    model.save("m.skops")
    assert_array_equal(load("m.skops").predict_proba(table), model.predict_proba(table))
    new, ranks, labels = drawn(40, 6)
    rows = pd.DataFrame(new, columns=["a", "b", "c"])
    rows.assign(grade=labels.astype(str)).to_csv("new.csv", index=False)
    table.assign(grade=Y.astype(str)).to_csv("t.csv", index=False)

    def run(*arguments):
        return CliRunner().invoke(app, arguments)

    fit = ["fit", "t.csv", "-t", "grade", "-c", "linear", "--no-evaluate", "-o", "c.skops"]
    assert run(*fit, "--order", ",".join(NAMES)).exit_code == 0
    assert_array_equal(load("c.skops").predict_proba(table), model.predict_proba(table))
    assert "order" in run(*fit, "--order", ",".join(NAMES[1:])).stderr
    assert run("predict", "m.skops", "new.csv", "-o", "p.csv").exit_code == 0
    written = pd.read_csv("p.csv")
    assert_array_equal(written["prediction"], model.predict(rows))
    p = in_order(model.predict_proba(rows), model)
    assert_allclose(written[[f"probability_{name}" for name in NAMES]], p, atol=1e-5)
    shown = json.loads(run("score", "m.skops", "new.csv", "--json").stdout)["scores"]
    expected = scores_of(ranks, ranks_of(model.predict(rows)), p)
    assert {name: one["value"] for name, one in shown.items()} == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("form", [pd.Series, pd.Categorical])
def test_an_assessment_scores_ranks(form):
    """Also of others, which know no order."""
    y, names = form(Y), ["accuracy", "mean_rank_error", "quadratic_kappa", "ranked_probability"]
    assert set(assess(clone(GIVEN), X, y, n_splits=2).scores) == {*names[:2], "log_loss"}
    for estimator in (clone(GIVEN), LogisticRegression()):
        options = {"scoring": [*names, "log_loss"], "random_state": 0}
        experiment = Experiment.of(estimator, X, y, 2, **options)
        split = experiment.splits[0]
        rest, out = experiment.rows(split)
        model = clone(estimator).fit(X[rest], Y[rest])
        p = in_order(model.predict_proba(X[out]), model)
        expected = scores_of(RANKS[out], ranks_of(model.predict(X[out])), p)
        assert experiment.run(split).scores == pytest.approx(expected)
    assert "threshold[low|medium]" in assess(clone(GIVEN), X, y, n_splits=2).splits[0].chosen
    with pytest.raises(ValueError, match="the classes have no order"):
        assess(clone(GIVEN), X, Y.astype(str), n_splits=3, scoring="mean_rank_error")


def test_a_margin_is_the_distance_to_the_cuts():
    """The class of a row is right if the margin is positive; a rank farther is worse."""
    model = clone(GIVEN).fit(X, Y)
    found, outputs = case_deletion(model), model.loo_.outputs
    cuts = np.concatenate([[-np.inf], model.threshold_, [np.inf]])
    inside = np.minimum(outputs - cuts[RANKS], cuts[RANKS + 1] - outputs)
    assert_allclose(found.margin, inside)
    assert_array_equal(found.predicted == found.label, found.margin >= 0)


@pytest.mark.parametrize(
    ("parts", "of_rule"),
    [
        ({"ranks": np.array([0, 1, 1, 2])}, {}),
        ({}, {"threshold": np.array([0.5, 1.5])}),
        ({}, {"threshold": np.array([0.5, 1.5, 1.0])}),
        ({}, {"calibrator": Sigmoid(-1.0, 0.0)}),
        ({}, {"calibrator": CumulativeSigmoid(1.0, np.arange(4.0))}),
    ],
)
def test_parts_that_contradict_themselves_are_refused(parts, of_rule):
    fitted = clone(GIVEN).fit(X, Y).fitted_
    rows = replace(fitted.rows, outcome=replace(fitted.outcome, **parts))
    with pytest.raises(ValueError):
        replace(fitted, rows=rows, rule=replace(fitted.rule, **of_rule))
