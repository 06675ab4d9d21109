"""Reports on machines that are no sums of least-squares machines, and on transformed targets."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

from looms import (
    KernelClassifier,
    KernelRegressor,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.estimators import BoundWarning
from looms.report import (
    CriterionHistoryDisplay,
    ImportanceDisplay,
    SearchPathDisplay,
    cautions,
    summary,
    summary_schema,
)
from looms.report.facts import Facts
from looms.report.page import render

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
SIGNAL = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * RNG.normal(size=60)


def svm(kernel="rbf", criterion=None, resolution=0.5, **options):
    search = Search(criterion, resolution=resolution)
    return KernelClassifier(kernel, loss="hinge", search=search, **options)


def on_numbers(candidates, **options):
    """A regressor that prepares no columns."""
    return TabularRegressor(candidates, preprocess=None, **options)


MACHINES = {
    "svm": (lambda: svm(resolution=4.0), SIGNAL > 0),
    "three classes": (lambda: svm("linear", resolution=8.0), np.digitize(SIGNAL[:36], [-0.5, 0.5])),
    "nested svm": (lambda: svm("linear", resolution=4.0), SIGNAL > 0),
    "log": (lambda: on_numbers(["linear"], target="log"), np.exp(SIGNAL)),
    "of several": (lambda: on_numbers(["rbf"]), np.exp(SIGNAL)),
    "stack of a log": (lambda: on_numbers(["linear", "rbf"], target="log"), np.exp(SIGNAL)),
    "table": (lambda: TabularClassifier(["linear"]), SIGNAL > 0),
}


@pytest.fixture(scope="module", params=MACHINES)
def fitted(request):
    """A pipeline of a model, and its facts."""
    make, y = MACHINES[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        model = make_pipeline(StandardScaler(), make()).fit(X[: len(y)], y)
        if request.param == "nested svm":
            model[-1].evaluate()
        return model, Facts(model)


@pytest.mark.slow
def test_scores_are_those_of_what_predicts(fitted):
    told, machine = fitted[1].summary, fitted[0][-1]
    pytest.importorskip("jsonschema").validate(told, summary_schema())
    shown = {each["key"]: each for each in told["loo"]["scores"] if each["key"] != "brier"}
    evaluated = machine._scores.get("nested") is not None
    scores = machine.evaluate(nested=evaluated)
    assert {key: each["value"] for key, each in shown.items()} == scores
    assert {key: each["standard_error"] for key, each in shown.items()} == scores.standard_errors
    # without the choice, or the weights of the stack
    without = evaluated or machine.fitted_.in_folds is not None
    assert told["loo"]["nested"] == without != told["headline"]["optimistic"]
    assert told["certificate"]["holds"]
    titles = {each["title"] for each in told["cautions"]}
    assert ("No outer estimate" in titles) == (not without)
    assert {each["title"] for each in cautions(fitted[0])} <= titles
    sizes = np.abs(machine.held_out_.residuals)
    if told["task"] == "regression":  # on the scale of the target
        assert told["samples"]["rows"][0]["residual"] == pytest.approx(sizes.max())


@pytest.mark.slow
def test_what_was_chosen(fitted):
    told, machine, page = fitted[1].summary["chosen"], fitted[0][-1], render(fitted[1])
    assert told["kernel"] == machine.cv_results_["kernel"][machine.best_index_]
    assert told["mu"] == machine.mu_
    supports = [one.support for one in machine.members_ if hasattr(one, "support")]
    assert told["n_support"] == (len(supports[0]) if supports else None)
    assert told["transform"] == getattr(machine, "transform_", None)
    errors = getattr(machine, "transforms_", {})
    assert {each["name"]: each["error"] for each in told["transforms"]} == errors
    assert [each["name"] for each in told["transforms"] if each["chosen"]] == (
        [told["transform"]] if errors else []
    )
    assert told["reason"] in page
    assert ("support vectors" in page) == bool(supports)
    assert ("Transforms of the target" in page) == (len(errors) > 1)


@pytest.mark.slow
def test_importance_is_of_support_vectors_too_and_a_surface_is_not():
    members = ["rbf", svm("linear", resolution=8.0)]
    for model in (svm("linear", "hinge", 2.0), stacked_classifier(members)):
        importance = ImportanceDisplay.compute(model.fit(X, SIGNAL > 0))
        assert importance.value[0] > 2 * importance.standard_error[0]
        y, f = model.held_out_.y, model.left_out().outputs(model.units_)[0, :, 0]
        assert importance.press == pytest.approx(np.mean((y - f) ** 2), rel=1e-6)
    machine = svm("linear", "hinge", 4.0).fit(X, SIGNAL > 0)
    with pytest.raises(TypeError, match="surface of least-squares models"):
        SearchPathDisplay.compute(machine)
    history = CriterionHistoryDisplay.compute(machine)
    assert min(history.value) == machine.selection_.value


def test_a_transform_that_was_chosen_counts_as_a_choice():
    """Also if the machine has given hyper-parameters."""
    for target, chosen in (("auto", True), ("log", False)):
        machine = on_numbers([KernelRegressor("linear", mu=1e-3)], target=target)
        told = summary(machine.fit(X, np.exp(SIGNAL)))
        texts = [c["text"] for c in told["cautions"] if c["title"] == "No outer estimate"]
        assert [text.partition(", so")[0] for text in texts] == (
            ["Leave-one-out chose a transform of the target"] * chosen
        )
