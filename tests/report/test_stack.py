"""What a report says of a stack of machines, and of candidates compared in folds."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from stacks import stacked_regressor

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
    of_candidates = {c["kernel"]: c["weight"] for c in report["candidates"]}
    assert sum(of_candidates.values()) == pytest.approx(1.0)
    assert all(of_candidates[one["kernel"]] == one["weight"] for one in members)
    assert [c["chosen"] for c in report["candidates"]] == [
        of_candidates[c["kernel"]] > 0 for c in report["candidates"]
    ]


@pytest.mark.slow
def test_pages_tell_how_candidates_were_compared(stack, best):
    report = summary(best)
    assert report["chosen"]["members"] == []
    assert report["loss"]["method"] == "5-fold cross-validation"
    assert {c["weight"] for c in report["candidates"]} == {None}
    assert "stack" not in report["chosen"]["reason"]
    for model in (stack, best):
        page = re.sub("<[^>]*>", "", render(Facts(model, X=X, y=Y)))
        assert "5 folds" in page
        assert (f"stack of {len(stack.members_)} models" in page) == (model is stack)
        assert ("largest model of the stack" in page) == (model is stack)


@pytest.mark.slow
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
    assert "all the weight" in reason
    assert ("5 folds" in reason) != many
    tried = {c["kernel"]: (c["weight"], c["chosen"]) for c in report["candidates"]}
    assert tried == {"linear": (1.0, True), "rbf": (0.0, False)}


def test_cautions_are_of_every_machine_in_the_stack(stack):
    names = {c.kernel_name for c in stack.candidates_ if c.at_bounds}
    of_bounds = [c["text"] for c in cautions(stack) if c["title"] == "Hyper-parameter at a bound"]
    in_stack = {type(one.kernel).__name__.lower() for one in stack.members_}
    assert all(any(name in text for text in of_bounds) for name in names & in_stack)
    told = {c["title"]: c["text"] for c in summary(stack)["cautions"]}
    n = sum(len(one.kernel.theta) + 1 for one in stack.members_)
    assert f"{n} hyper-parameters" in told["Many hyper-parameters"]
    assert "The choice is not settled" not in told
