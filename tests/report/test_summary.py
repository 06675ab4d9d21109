"""The dict that a report is made of."""

import json
import re
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from evaluated import evaluated
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from stacks import stacked_classifier

from looms import (
    KernelClassifier,
    KernelRegressor,
    TabularClassifier,
    TabularRegressor,
    assess,
)
from looms.calibration import loo_probabilities
from looms.calibration._scores import brier_score
from looms.diagnostics import case_deletion
from looms.report import facts, summary, summary_schema
from looms.report.facts import Facts
from looms.report.page import render
from looms.threshold import FBeta

TABLE = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["x", "z"])
Y = pd.Series(np.where(TABLE.x > 0.3 * np.sin(9 * TABLE.x), "yes", "no"), name="ill")


@pytest.mark.parametrize("which", ["binary", "several", "regression", "hostile"])
@pytest.mark.slow
def test_json_holds_it(which, request):
    model, X, y = request.getfixturevalue(which)[:3]
    found = summary(model, X=X, y=y)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.slow
def test_keys_are_the_documented_ones(binary):
    model, X, y, assessment = binary
    keys = re.findall(r"``(\w+)``", summary.__doc__.split("Its keys")[1].split("Raises")[0])
    assert keys == list(summary(model, X=X, y=y, assessment=assessment))
    assert set(keys) == set(summary_schema()["required"])


@pytest.fixture(scope="module")
def of_days():
    """A model of a table with a column of dates, evaluated."""
    table = TABLE.assign(day=pd.date_range("2021-03-01", periods=len(Y)))
    return evaluated(TabularClassifier(["rbf"]).fit(table, Y), nested=True)


def test_remarks_on_columns_and_the_name_of_the_target_are_those_of_the_fit(of_days):
    def of(**facts):
        found = summary(of_days, **facts)
        columns = [one["text"] for one in found["cautions"] if one["title"] == "Columns"]
        return found["title"], columns

    title, (remark,) = of()
    assert title == "Classification of ill"
    assert remark.startswith("'day': read as a date and used as a number of days; leave it out")
    assert of(notes=["the dose is of a day"]) == (title, ["The dose is of a day."])
    assert of(notes=()) == (title, [])
    assert of(y=Y.rename("sick"))[0] == "Classification of sick"
    assert of(y=Y.tolist())[0] == "Classification"


def test_columns_that_evaluation_prepares_anew_are_not_distrusted(of_days):
    def seen(model):
        titles = {one["title"] for one in summary(model)["cautions"]}
        page = render(Facts(model)).split("<footer>")[1]
        return "Preprocessing saw all rows" in titles, "preprocessing was held" in page

    assert seen(of_days) == (False, False)
    assert "on columns prepared anew." in render(Facts(of_days))
    scaled = make_pipeline(StandardScaler(), TabularClassifier(["rbf"]))
    scaled.fit(np.asarray(TABLE), Y)[-1].evaluate()
    assert seen(scaled) == (True, True)  # by the step before it
    of_fit = evaluated(TabularClassifier(["rbf"]).fit(TABLE, Y), nested=False)
    assert seen(of_fit) == (True, True)


def quotes(report):
    """Sentences that advise to report the outer estimate."""
    return [one["text"] for one in report["cautions"] if "Quote the outer" in one["text"]]


@pytest.mark.slow
def test_headline_is_the_outer_estimate_of_a_machine_chosen_by_its_scores(binary, by_loo):
    assessment = binary[3]
    alone, beside = summary(by_loo)["headline"], summary(by_loo, assessment=assessment)["headline"]
    assert (alone["optimistic"], beside["optimistic"]) == (True, False)
    assert (alone["outer"], beside["outer"]) == (False, True)
    assert alone["value"] == beside["loo"] != beside["value"]
    assert beside["value"] == pytest.approx(assessment.mean["balanced_accuracy"])
    low, high = assessment.interval().loc["balanced_accuracy"]
    assert (beside["low"], beside["high"]) == pytest.approx((low, high))
    assert alone["low"] < alone["value"] < alone["high"]


@pytest.mark.slow
def test_headline_of_a_nested_choice_and_outer_splits_is_that_of_smaller_error(binary, monkeypatch):
    shared, _, _, assessment = binary
    model = deepcopy(shared)  # others take what the fit has
    assert model[-1].evaluate()._nested is not None
    alone, few = summary(model), summary(model, assessment=assessment)  # of four splits
    assert (
        model[-1].evaluate().standard_errors["balanced_accuracy"]
        < assessment.estimate("balanced_accuracy").standard_error
    )
    assert few["headline"] == alone["headline"]
    assert (few["headline"]["optimistic"], few["headline"]["outer"]) == (False, False)
    assert not quotes(few)
    page = render(Facts(model, assessment=assessment))
    assert '<p class="kicker">Nested cross-validation report</p>' in page
    assert "score of the outer splits has a larger standard error" in page
    assert "the scores to report" not in page
    estimate = type(assessment).estimate
    monkeypatch.setattr(
        type(assessment),
        "estimate",
        lambda self, *score: replace(estimate(self, *score), standard_error=1e-6),
    )
    many = summary(model, assessment=assessment)
    assert many["headline"]["outer"] is True
    assert many["headline"]["value"] == pytest.approx(assessment.mean["balanced_accuracy"])
    assert quotes(many)
    page = render(Facts(model, assessment=assessment))
    assert '<p class="kicker">Report on outer splits</p>' in page
    assert "of 4 splits: the scores to report" in page


@pytest.mark.slow
def test_the_title_is_of_the_scores_shown(by_loo):
    assert '<p class="kicker">Leave-one-out report</p>' in render(Facts(by_loo))
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    groups = np.arange(40) // 4
    model = KernelClassifier("linear").fit(X, y, groups=groups)
    assert '<p class="kicker">Leave-one-group-out report</p>' in render(Facts(model))


@pytest.mark.slow
def test_a_negative_rise_is_explained_where_there_is_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    noise = rng.normal(size=60)
    text = "Where the rise is negative, the model predicts rows better with the wrong values"
    for y, negative in ((noise, True), (X @ [3.0, 2.0, 1.0], False)):
        model = KernelRegressor("linear", mu=1e-3).fit(X, y)
        rises = [row["importance"] for row in summary(model)["features"]["rows"]]
        assert (min(rises) < 0) == negative
        assert (text in render(Facts(model))) == negative


def test_chosen_and_candidates(binary):
    machine = binary[0][-1]
    found = summary(binary[0])
    assert found["n_candidates"] == 4
    assert [c["chosen"] for c in found["candidates"]] == [True, False, False, False]
    assert found["chosen"]["kernel"] == found["candidates"][0]["kernel"]
    assert found["chosen"]["mu"] == machine.mu_
    assert found["chosen"]["threshold"] == machine.threshold_
    losses = [c["loss"] for c in found["candidates"]]
    assert losses == sorted(losses)


@pytest.mark.slow
def test_given_hyperparameters(several):
    _, X, y = several
    found = summary(KernelClassifier(mu=1e-3).fit(X, y))
    assert found["candidates"] == []
    assert found["chosen"]["outcome"] is None
    assert found["chosen"]["threshold"] is None
    assert found["loo"]["confusion"]["labels"] == ["0", "1", "2"]
    assert np.sum(found["loo"]["confusion"]["counts"]) == len(y)


def test_samples_are_named_by_the_index(binary):
    model, X, y, _ = binary
    rows = summary(model, X=X)["samples"]["rows"]
    loo = model[-1].held_out_
    surprise = np.maximum(1 - loo.y * loo.outputs, 0)
    assert rows[0]["name"] == f"patient {surprise.argmax()}"
    assert rows[0]["target"] == y.iloc[surprise.argmax()]
    most = case_deletion(model).rms_change.argmax()
    assert f"patient {most}" in [row["name"] for row in rows]
    numbered = summary(model, X=X.to_numpy())["samples"]["rows"]
    assert numbered[0]["name"] == str(surprise.argmax())


def test_rows_are_listed_for_their_class():
    rng = np.random.default_rng(0)
    X, event = rng.normal(size=(200, 2)), np.arange(200) < 24
    X[event] += 1.0
    X[150] += 4.0  # no event, but far on their side
    found = summary(KernelClassifier("linear", mu=1e-2).fit(X, event))["samples"]["rows"]
    assert found[0]["name"] == "150"
    events = [row["target"] == "True" for row in found]
    assert 0 < sum(events[:20]) < 20
    assert not all(events[20:])


@pytest.mark.slow
def test_influence_of_many_samples_is_left_out(several, monkeypatch):
    monkeypatch.setattr(facts, "MOST_DELETIONS", 149)
    found = summary(several[0])["samples"]
    assert found["criterion"] is None
    assert all(row["rms_change"] is None for row in found["rows"])


@pytest.mark.parametrize("name", ["X", "y"])
def test_other_data_are_refused(several, name):
    model, X, y = several
    wrong = {"X": X.iloc[1:], "y": y.iloc[1:]}[name]
    with pytest.raises(ValueError, match=f"{name} has 149 rows, .* fitted to 150"):
        summary(model, **{name: wrong})


@pytest.mark.parametrize("which", ["of_days", "several"])
def test_data_in_another_order_are_refused(which, request):
    model = request.getfixturevalue(which)
    if which == "of_days":
        X, y = TABLE.assign(day=pd.date_range("2021-03-01", periods=len(Y))), Y
    else:
        model, X, y = model[:3]
    assert summary(model, X=X, y=y)["data"]["n_samples"] == len(y)
    for name, data in {"X": X, "y": y}.items():
        order = [1, 0, *range(2, len(y))] if name == "X" else np.argsort(np.asarray(y)[::-1])
        other = data.iloc[order] if hasattr(data, "iloc") else data[order]
        with pytest.raises(ValueError, match=f"{name} is not that of the fit, first in row"):
            summary(model, **{name: other})


def test_rows_and_targets_are_compared_as_they_are():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) * [1.0, 1e12, 1.0], rng.normal(size=40)
    model = KernelRegressor("linear", mu=0.1).fit(X, y)
    assert summary(model, X=X, y=y[:, None])["data"]["n_samples"] == 40
    for other in (X[::-1], X[:, :2], np.where(np.arange(3) == 2, X[::-1], X)):
        with pytest.raises(ValueError, match="X is not that of the fit, first in row 0"):
            summary(model, X=other)
    scattered = sparse.random_array((40, 3), density=0.5, random_state=0, format="csr")
    model = KernelRegressor("linear", mu=0.1).fit(scattered, y)
    assert summary(model, X=scattered)["data"]["n_samples"] == 40
    with pytest.raises(ValueError, match="X is not that of the fit"):
        summary(model, X=scattered[::-1])
    pair = KernelRegressor("linear", mu=0.1).fit(X, np.column_stack([y, -y]))
    assert summary(pair, y=np.column_stack([y, -y]))["data"]["n_targets"] == 2
    encoder = make_pipeline(TargetEncoder(), KernelRegressor("linear", mu=0.1))
    codes = rng.integers(0, 4, (40, 1))
    assert summary(encoder.fit(codes, y), X=codes)["data"]["n_samples"] == 40


def test_an_assessment_is_one(several):
    with pytest.raises(TypeError, match=r"a result of looms\.assess, got dict"):
        summary(several[0], assessment={})


@pytest.mark.slow
def test_without_feature_names(several):
    _, X, y = several
    found = summary(KernelClassifier(mu=1e-3).fit(X.to_numpy(), y))
    assert found["data"]["named"] is False
    assert {row["name"] for row in found["features"]["rows"]} == {
        f"feature {k}" for k in range(1, 5)
    }


@pytest.mark.slow
def test_many_classes_and_features_are_cut():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 40
    X = pd.DataFrame(rng.normal(size=(120, 90)) + y[:, None])
    found = summary(KernelClassifier(mu=1e-3).fit(X.to_numpy(), y))
    assert found["loo"]["confusion"] is None
    assert len(found["data"]["classes"]) == 30
    assert found["data"]["n_classes"] == 40
    assert len(found["features"]["rows"]) == 60
    assert found["features"]["n_features"] == 90


@pytest.mark.slow
def test_several_targets_and_kernel_matrices(regression):
    _, X, y = regression
    both = summary(KernelRegressor(mu=0.1).fit(X, np.column_stack([y, y**2])))
    assert both["data"]["n_targets"] == 2
    assert both["samples"]["rows"][0]["target"] is None
    K = X.to_numpy() @ X.to_numpy().T
    assert summary(KernelRegressor("precomputed").fit(K, y))["features"] is None


@pytest.mark.slow
def test_probabilities_are_judged(binary, by_loo):
    machine = by_loo[-1]
    found = {f["key"]: f["value"] for f in summary(by_loo)["loo"]["scores"]}
    p = loo_probabilities(machine.loo_)
    assert found["log_loss"] == machine.evaluate(nested=False)["log_loss"]
    assert found["brier"] == pytest.approx(brier_score(machine.loo_, p))
    without = KernelClassifier(mu=1e-3, calibration=None).fit(binary[1], binary[2])
    assert "brier" not in {f["key"] for f in summary(without)["loo"]["scores"]}


@pytest.mark.slow
def test_candidates_compete_by_what_the_threshold_is_set_for(binary):
    _, X, y, _ = binary
    model = stacked_classifier(["linear", "rbf"], combine="best", threshold=FBeta(2.0))
    model.fit((X - X.mean()) / 9, y)
    found = summary(model)
    method = "5-fold cross-validation"
    assert found["loss"] == {"name": "1 - F2", "key": "", "method": method}
    assert "1 - F2" in found["chosen"]["reason"]
    assert "The choice is not settled" not in {c["title"] for c in found["cautions"]}
    assert "1 - F2" in render(Facts(model))
    assert summary(binary[0])["loss"] == {
        "name": "balanced error rate",
        "key": "balanced_accuracy",
        "method": method,
    }


@pytest.mark.slow
def test_every_index_names_samples(several):
    model, X, _ = several
    for index in (range(0, 300, 2), range(1, 151), range(150)):
        frame = X.set_axis(pd.Index(index), axis=0)
        found = summary(model, X=frame)["samples"]
        size = np.linalg.norm(np.maximum(1 - model.loo_.y * model.loo_.outputs, 0), axis=1)
        assert found["rows"][0]["name"] == str(index[size.argmax()])
        assert found["named_by"] == "Rows are called as in the index."
    frame.index.name = "row of the file"
    assert summary(model, X=frame)["samples"]["named_by"].endswith("by their row of the file.")
    assert "numbered from 0" in summary(model)["samples"]["named_by"]
    assert "by their row of the file" in render(Facts(model, X=frame))


def test_the_target_is_no_column_of_a_table(regression):
    _, X, y = regression
    both = pd.DataFrame({"name": y, "other": -y})
    model = KernelRegressor(mu=0.1).fit(X, both)
    assert summary(model, y=both)["data"]["target"] is None


def test_the_margin_is_that_of_case_deletion(binary):
    model, X, *_ = binary
    assert model[-1].threshold_ != 0
    table = case_deletion(model, names=X).table
    for row in summary(model, X=X)["samples"]["rows"]:
        of_deletion = table.loc[row["name"]]
        assert row["predicted"] == of_deletion["predicted"]
        assert row["margin"] == pytest.approx(of_deletion["margin"])
        assert row["surprise"] == pytest.approx(of_deletion["surprise"])


@pytest.mark.slow
def test_nothing_is_left_on_the_machine(several):
    _, X, y = several
    model = KernelClassifier(mu=1e-3).fit(X, y)
    before = set(vars(model))
    summary(model)
    assert set(vars(model)) == before


@pytest.mark.slow
def test_classes_are_counted_in_english(several):
    assert ", 3 classes ·" in render(Facts(several[0]))


def test_an_assessment_of_the_other_task(several, binary, regression):
    with pytest.raises(TypeError, match="assessment is of a classifier, but the model is a reg"):
        summary(regression[0], assessment=binary[3])


def test_headline_of_several_targets(regression):
    _, X, y = regression
    model, both = KernelRegressor(mu=0.1), np.column_stack([y, 9 * y])
    result = assess(model, X, both, n_splits=3, random_state=0)
    head = summary(model.fit(X, both), assessment=result)["headline"]
    assert head["baseline"] is None
    assert head["loo"] == pytest.approx(result.estimate("rmse").loo)


@pytest.mark.slow
def test_groups_that_matter_are_named():
    rng = np.random.default_rng(0)
    X, patient = rng.normal(size=(60, 3)), np.repeat([f"patient {k}" for k in range(12)], 5)
    y = pd.Series(X[:, 0] > 0)
    frame = pd.DataFrame(X, index=[f"visit {k}" for k in range(60)], columns=list("abc"))
    model = KernelClassifier("linear").fit(frame, y, groups=patient)
    groups = summary(model, X=frame, groups=patient)["groups"]
    most = case_deletion(model, groups=patient).most_influential()
    assert [row["name"] for row in groups["rows"]] == most.index.tolist()
    assert [row["rms_change"] for row in groups["rows"]] == most.rms_change.tolist()
    assert groups["n_groups"] == 12
    assert most.index[0] in render(Facts(model, X=frame, groups=patient))
    # Without labels a group is called by its first sample.
    firsts = [f"visit {5 * int(name.split()[1])}" for name in most.index]
    report = summary(model, X=frame)
    assert [row["name"] for row in report["groups"]["rows"]] == firsts
    assert report["samples"]["criterion"] is None
    assert summary(KernelClassifier("linear").fit(frame, y))["groups"] is None
    two = KernelClassifier("linear").fit(frame, y, groups=np.arange(60) % 2)
    assert summary(two)["groups"] is None
    with pytest.raises(ValueError, match="groups has 2 rows"):
        summary(model, groups=["a", "b"])


@pytest.mark.parametrize("positive", [None, "no"])
@pytest.mark.parametrize("threshold", ["balanced", 0.3])
def test_the_probability_of_the_threshold_parts_the_predictions(threshold, positive):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0.5, "yes", "no")
    model = KernelClassifier("linear", mu=0.1, threshold=threshold, pos_label=positive).fit(X, y)
    least = summary(model)["chosen"]["probability"]
    label = positive or "yes"
    p = model.predict_proba(X)[:, model.classes_.tolist().index(label)]
    assert ((p > least) == (model.predict(X) == label)).all()


def test_the_headline_is_as_optimistic_as_the_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=40))
    given = KernelRegressor(mu=1e-2).fit(X, y)
    tuned = TabularRegressor(["linear", "rbf"]).fit(X, y)
    tuned.evaluate(nested=False)  # the transform of the target was chosen on all rows
    for model, optimistic in ((given, False), (tuned, True)):
        told = summary(model)
        assert told["headline"]["optimistic"] == optimistic
        titles = [each["title"] for each in told["cautions"]]
        assert ("No outer estimate" in titles) == optimistic
