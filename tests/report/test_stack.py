"""What a report says of a stack of machines, and of candidates compared in folds."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_friedman1
from stacks import stacked_regressor

from looms import assess
from looms.report import cautions, summary
from looms.report.facts import Facts
from looms.report.page import render

KERNELS = ["linear", "rbf", "ard"]
X, Y = make_friedman1(70, n_features=5, noise=1.0, random_state=0)


@pytest.fixture(scope="module")
def stack():
    return stacked_regressor(KERNELS).fit(X, Y)


@pytest.fixture(scope="module")
def best():
    return stacked_regressor(KERNELS, combine="best").fit(X, Y)


@pytest.mark.slow
def test_members_are_named_with_their_weights_the_largest_first(stack):
    report = summary(stack)
    chosen, members = report["chosen"], report["chosen"]["members"]
    weights = [one["weight"] for one in members]
    assert weights == sorted((one.weight for one in stack.members_), reverse=True)
    assert members[0]["kernel"] == chosen["kernel"]
    assert members[0]["mu"] == chosen["mu"] == stack.mu_
    assert f"Of 3 candidates, {len(members)} are stacked" in chosen["reason"]
    assert "5 folds" in chosen["reason"]
    of_candidates = {c["kernel"]: c["weight"] for c in report["candidates"]}
    assert sum(of_candidates.values()) == pytest.approx(1.0)
    assert all(of_candidates[one["kernel"]] == one["weight"] for one in members)
    assert [c["chosen"] for c in report["candidates"]] == [
        of_candidates[c["kernel"]] > 0 for c in report["candidates"]
    ]


@pytest.mark.slow
def test_the_page_of_a_stack_tells_what_is_of_its_largest_machine(stack):
    page = re.sub("<[^>]*>", "", render(Facts(stack, X=X, y=Y)))
    assert f"stack of {len(stack.members_)} models" in page
    assert page.count("Shown for the largest model of the stack.") == 2  # path and history
    assert "without each fold, and weighted on the other folds" in page
    assert "model selection was repeated" not in page
    assert "Hyper-parameters of the largest model of the stack" in page
    assert "the largest of the stack is marked" in page
    assert "Moves others by" in page


@pytest.mark.slow
def test_the_page_of_the_best_tells_how_candidates_were_compared(best):
    page, report = re.sub("<[^>]*>", "", render(Facts(best))), summary(best)
    assert report["chosen"]["members"] == []
    assert "RMSE in 5 folds, each predicted by models tuned without it" in page
    assert report["loss"]["method"] == "5-fold cross-validation"
    assert "Candidates by 5-fold cross-validation RMSE" in page
    assert {c["weight"] for c in report["candidates"]} == {None}
    assert "stack" not in report["chosen"]["reason"]
    assert "Moves others by" in page


@pytest.mark.parametrize("many", [False, True])
def test_a_stack_of_one_says_that_it_was_weighed(many, monkeypatch):
    monkeypatch.setattr("looms.estimators._selection.MOST_IN_FOLDS", 1 if many else 2000)
    monkeypatch.setattr(
        "looms.fitted._outcome.stacking_weights", lambda *of, **how: np.array([1.0, 0.0])
    )
    model = stacked_regressor(["linear", "rbf"]).fit(X, Y)
    taken, other = model.candidates_
    assert other.loss < taken.loss
    report = summary(model)
    reason = report["chosen"]["reason"]
    assert reason.startswith("Of 2 candidates, a stack of all gave it all the weight: no weighted")
    assert ("5 folds" in reason) != many
    tried = {c["kernel"]: (c["weight"], c["chosen"]) for c in report["candidates"]}
    assert tried == {"linear": (1.0, True), "rbf": (0.0, False)}
    page = re.sub("<[^>]*>", "", render(Facts(model)))
    assert "Weight in the stack" in page
    assert many or "and weighted on the other folds" in page


def test_cautions_are_of_every_machine_in_the_stack(stack):
    names = {c.kernel_name for c in stack.candidates_ if c.at_bounds}
    of_bounds = [c["text"] for c in cautions(stack) if c["title"] == "Hyper-parameter at a bound"]
    in_stack = {type(one.kernel).__name__.lower() for one in stack.members_}
    assert all(any(name in text for text in of_bounds) for name in names & in_stack)
    counted = [
        c["text"] for c in summary(stack)["cautions"] if c["title"] == "Many hyper-parameters"
    ]
    n = sum(len(one.kernel.theta) + 1 for one in stack.members_)
    assert counted[0].startswith(f"{n} hyper-parameters")


@pytest.mark.slow
def test_an_assessment_records_the_members_of_each_split():
    model = stacked_regressor(["linear", "rbf"])
    assessment = assess(model, X, Y, n_splits=2, random_state=0)
    table = assessment.table
    weights = table[[name for name in table if name.startswith("weight of ")]]
    assert_allclose(weights.sum(axis=1), 1.0)
    assert set(table["kernel"]) <= {"linear, press + rbf, press", "linear", "rbf"}
    fitted = model.fit(X, Y)
    text = " ".join(c["text"] for c in summary(fitted, assessment=assessment)["cautions"])
    assert "Leave-one-out is optimistic" not in text
