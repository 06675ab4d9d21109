"""Figures as notebooks show them: in tables of HTML whose text is escaped."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from stacks import stacked_classifier

import looms
from looms import KernelClassifier, KernelRegressor, Search

X, Y = load_iris(return_X_y=True)
#: A name that would run a script, turn the direction of writing, and end a cell.
NAME = "<script>1</script>\u202e & \x1b</td>"
SHOWN = "<script>1</script> & </td>"


def rows_of(shown):
    """Cells of all rows of the tables; an error for what is not well-formed."""
    tree = ElementTree.fromstring(f"<all>{shown._repr_html_()}</all>")
    return [[cell.text or "" for cell in row] for row in tree.iter("tr")]


def text_of(shown):
    tree = ElementTree.fromstring(f"<all>{shown._repr_html_()}</all>")
    return " ".join(tree.itertext())


@pytest.fixture(scope="module")
def comparison():
    estimators = {NAME: KernelClassifier(mu=1e-3), "majority": DummyClassifier()}
    return looms.compare(estimators, X, Y, n_splits=3, random_state=0)


@pytest.mark.slow
def test_a_comparison_shows_means_and_tests(comparison):
    rows = rows_of(comparison)
    assert rows[0] == ["mean ± s.e.", "balanced_accuracy", "accuracy", "log_loss"]
    assert [row[0] for row in rows[1:3]] == [SHOWN, "majority"]
    assert rows[3] == ["difference", "mean ± s.e.", "95 % interval", "t", "p", "splits"]
    test = comparison.differences().loc[(NAME, "majority", "balanced_accuracy")]
    assert rows[4][0] == f"balanced_accuracy, {SHOWN} − majority"
    assert float(rows[4][1].split()[0]) == pytest.approx(test["difference"], rel=1e-3)
    assert float(rows[4][4]) == pytest.approx(test["p_value"], rel=0.06)


def test_an_assessment_shows_its_figures_and_remarks(comparison):
    result = comparison.results[NAME]
    rows = rows_of(result)
    assert rows[0] == ["", "mean", "s.e.", "95 % interval", "own"]
    assert float(rows[1][1]) == pytest.approx(result.mean["balanced_accuracy"], rel=1e-3)
    assert result.optimism_text("balanced_accuracy") in text_of(result)
    failed = replace(result, splits=(*result.splits[:2], replace(result.splits[2], error=NAME)))
    assert f"1 of 3 splits raised; split 2: {SHOWN}" in text_of(failed)
    without_loo = comparison.results["majority"]
    assert [row[4] for row in rows_of(without_loo)[1:]] == ["", "", ""]


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.slow
def test_nested_predictions_show_the_scores_of_the_machine(kind):
    machine = (
        KernelClassifier(search=Search(method="grid"))
        if kind == "classes"
        else KernelRegressor("linear")
    )
    data = (X[:100:2], Y[:100:2]) if kind == "classes" else load_diabetes(return_X_y=True)
    machine.fit(*(values[:60] for values in data))
    scores = machine.evaluate()
    head, *rows = rows_of(scores)
    assert head[1:] == ["value", "s.e.", "95 % interval", "baseline"]
    assert [name for name, *_ in rows] == list(scores)
    for name, *cells in rows:
        ends = scores.intervals()[name]
        shown = scores[name], scores.standard_errors[name], *ends, scores.baselines[name]
        numbers = " ".join(cells).replace(" to ", " ").split()
        assert [float(each) for each in numbers] == pytest.approx(shown, rel=1e-3, abs=1e-4)
        assert any(
            line.split() == [name, *" ".join(cells).split()] for line in repr(scores).splitlines()
        )
    assert scores.kind in text_of(scores)


def test_held_out_outputs_show_figures():
    loo = KernelClassifier(mu=1e-3).fit(X, Y).loo_
    assert [row[0] for row in rows_of(loo)[1:]] == ["rmse", "mae", "r2"]
    remark = "f ±1 are classes, accuracies and AUC are in evaluate()"
    assert remark in text_of(loo)
    assert remark in repr(loo)


@pytest.mark.slow
def test_candidates_are_a_list_and_a_table(tmp_path):
    machine = stacked_classifier(
        [KernelClassifier(k, search=Search(method="grid")) for k in ["linear", "rbf"]],
        combine="best",
    ).fit(X[:100], Y[:100])
    rows = rows_of(machine.candidates_)
    assert [row[0] for row in rows] == ["kernel", "linear", "rbf"]
    assert isinstance(machine.candidates_, list)
    looms.model_files.save_model(tmp_path / "model.skops", machine, {})
    again = looms.model_files.load_model(tmp_path / "model.skops").model
    assert rows_of(again.candidates_) == rows
    assert np.isfinite([candidate.loss for candidate in again.candidates_]).all()
