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

import looms
from looms import (
    KernelClassifier,
    KernelRegressor,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.calibration import loo_probabilities
from looms.calibration._scores import brier_score
from looms.diagnostics import case_deletion, permutation_test
from looms.folds import GapKFold
from looms.report import EffectDisplay, facts, summary_schema
from looms.report import summary as of_report
from looms.report.facts import SCHEMA, Facts
from looms.report.page import render
from looms.threshold import FBeta

TABLE = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["x", "z"])
Y = pd.Series(np.where(TABLE.x > 0.3 * np.sin(9 * TABLE.x), "yes", "no"), name="ill")


jsonschema = pytest.importorskip("jsonschema")
VALIDATOR = jsonschema.Draft202012Validator(summary_schema())


def faults(values):
    return [f"{list(error.path)}: {error.message}" for error in VALIDATOR.iter_errors(values)]


def summary(*of, **facts):
    """The summary, which JSON holds, and which is as its schema says."""
    found = of_report(*of, **facts)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert faults(found) == []
    return found


@pytest.mark.slow
def test_the_schema_admits_no_other_keys_and_types(hostile):
    jsonschema.Draft202012Validator.check_schema(summary_schema())
    assert summary_schema()["properties"]["schema"]["const"] == SCHEMA
    values = summary(hostile[0], X=hostile[1], y=hostile[2])
    for wrong in ({"more": 1}, {"task": "ranking"}, {"n_candidates": None}):
        assert len(faults(values | wrong)) == 1
    values["loo"]["scores"][0]["value"] = "0.1"
    assert len(faults(values)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "of_fit"),
    [
        ({"mu": 1e-3}, {"sample_weight": np.arange(60) % 3}),
        ({"cv": 5}, {}),
        ({"kernel": "ard", "search": Search(max_iter=2)}, {}),
        ({"n_landmarks": 20, "calibration": None}, {}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_summary_is_as_the_schema_says(options, of_fit):
    summary(KernelClassifier(**options).fit(TABLE, Y, **of_fit))


@pytest.mark.slow
def test_keys_are_the_documented_ones(binary):
    model, X, y, assessment = binary
    keys = re.findall(r"``(\w+)``", of_report.__doc__.split("Its keys")[1].split("Raises")[0])
    found = summary(model, X=X, y=y, assessment=assessment)
    assert keys == list(found)
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
    assert "'day'" in remark
    assert of(notes=["the dose is of a day"]) == (title, ["The dose is of a day."])
    assert of(notes=()) == (title, [])
    assert of(y=Y.rename("sick"))[0] == "Classification of sick"


@pytest.mark.filterwarnings("ignore::looms.ColumnsWarning")
@pytest.mark.parametrize("grouped", [False, True])
def test_remarks_on_columns_have_the_levels_of_a_check(grouped):
    number = np.arange(len(Y)) // 2
    groups = number if grouped else None
    table = TABLE.assign(who=[f"P{k}" for k in number], salt=np.where(number % 9, number % 11, 999))
    found = summary(TabularClassifier(["linear"]).fit(table, Y, groups=groups))["cautions"]
    told = {one["text"]: one["level"] for one in found if one["title"] == "Columns"}
    assert [*told.values()] == ["serious"] * (1 if grouped else 2)
    checked = {one["text"]: one["level"] for one in looms.check(table, Y, groups)["findings"]}
    assert told.items() <= checked.items()


@pytest.mark.parametrize("grouped", [False, True])
def test_the_top_of_a_page_tells_groups_and_events(grouped):
    groups = np.arange(len(Y)) // 2 if grouped else None
    model = TabularClassifier(["linear"]).fit(TABLE.mask(TABLE > 2), Y, groups=groups)
    page = render(Facts(model))
    n = int((Y == "yes").sum())
    of_groups = " of 30 groups" * grouped
    head = f"60 rows{of_groups}, {n} of <bdi>yes</bdi> ({100 * n / 60:.0f} %), 2 columns made into"
    assert head in page
    assert "Gaps, in 1 column, have features of their own, and those of numbers" in page


@pytest.mark.slow
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
    estimate = type(assessment).estimate

    def told(standard_error):
        def estimated(self, *score):
            return replace(estimate(self, *score), standard_error=standard_error)

        monkeypatch.setattr(type(assessment), "estimate", estimated)
        return summary(model, assessment=assessment)

    few, many = told(1.0), told(1e-6)
    assert few["headline"] == summary(model)["headline"]
    assert (few["headline"]["optimistic"], few["headline"]["outer"]) == (False, False)
    assert many["headline"]["outer"] is True
    assert many["headline"]["value"] == pytest.approx(assessment.mean["balanced_accuracy"])
    page = render(Facts(model, assessment=assessment))
    assert "Report on outer splits" in page


@pytest.mark.slow
def test_chosen_and_candidates(binary, several):
    machine, found = binary[0][-1], summary(binary[0])
    assert found["n_candidates"] == 4
    assert [c["chosen"] for c in found["candidates"]] == [True, False, False, False]
    assert found["chosen"]["kernel"] == found["candidates"][0]["kernel"]
    assert found["chosen"]["mu"] == machine.mu_
    assert found["chosen"]["threshold"] == machine.threshold_
    losses = [c["loss"] for c in found["candidates"]]
    assert losses == sorted(losses)
    given = KernelClassifier(mu=1e-3).fit(*several[1:])
    before = set(vars(given))
    found = summary(given)
    assert (found["candidates"], found["chosen"]["threshold"]) == ([], None)
    assert found["loo"]["confusion"]["labels"] == ["0", "1", "2"]
    assert np.sum(found["loo"]["confusion"]["counts"]) == len(several[2])
    assert set(vars(given)) == before  # nothing is left on the machine


def test_samples_are_named_by_the_index(binary):
    model, X, y, _ = binary
    rows = summary(model, X=X)["samples"]["rows"]
    loo = model[-1].held_out_
    surprise = np.maximum(1 - loo.y * loo.outputs, 0)
    assert rows[0]["name"] == f"patient {surprise.argmax()}"
    assert rows[0]["target"] == y.iloc[surprise.argmax()]
    found = case_deletion(model, names=X)
    assert f"patient {found.rms_change.argmax()}" in [row["name"] for row in rows]
    assert model[-1].threshold_ != 0
    for row in rows:
        of_deletion = found.table.loc[row["name"]]
        assert row["predicted"] == of_deletion["predicted"]
        assert row["margin"] == pytest.approx(of_deletion["margin"])
        assert row["surprise"] == pytest.approx(of_deletion["surprise"])
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


@pytest.mark.slow
@pytest.mark.parametrize("which", ["of_days", "several"])
def test_other_data_and_data_in_another_order_are_refused(which, request, binary, regression):
    model = request.getfixturevalue(which)
    if which == "of_days":
        X, y = TABLE.assign(day=pd.date_range("2021-03-01", periods=len(Y))), Y
    else:
        model, X, y = model[:3]
    assert summary(model, X=X, y=y)["data"]["n_samples"] == len(y)
    for name, data in {"X": X, "y": y}.items():
        order = [1, 0, *range(2, len(y))] if name == "X" else np.argsort(np.asarray(y)[::-1])
        for rows in (order, range(1, len(y))):
            with pytest.raises(ValueError, match=rf"{name} (is not that of|has {len(y) - 1} rows)"):
                summary(model, **{name: data.iloc[rows]})
    for assessment in ({}, binary[3]):  # no assessment, and one of the other task
        with pytest.raises(TypeError, match=r"dict|classifier"):
            summary(regression[0], assessment=assessment)


@pytest.mark.slow
def test_rows_and_targets_are_compared_as_they_are():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) * [1.0, 1e12, 1.0], rng.normal(size=40)
    model = KernelRegressor("linear", mu=0.1).fit(X, y)
    assert summary(model, X=X, y=y[:, None])["data"]["n_samples"] == 40
    for other in (X[:, :2], np.where(np.arange(3) == 2, X[::-1], X)):
        with pytest.raises(ValueError, match="row 0"):
            summary(model, X=other)
    scattered = sparse.random_array((40, 3), density=0.5, random_state=0, format="csr")
    model = KernelRegressor("linear", mu=0.1).fit(scattered, y)
    assert summary(model, X=scattered)["data"]["n_samples"] == 40
    with pytest.raises(ValueError, match="X is not"):
        summary(model, X=scattered[::-1])
    encoder = make_pipeline(TargetEncoder(), KernelRegressor("linear", mu=0.1))
    codes = rng.integers(0, 4, (40, 1))
    assert summary(encoder.fit(codes, y), X=codes)["data"]["n_samples"] == 40


@pytest.mark.slow
def test_many_classes_and_features_are_cut():
    rng = np.random.default_rng(0)
    y = np.arange(96) % 32
    facts = Facts(KernelClassifier(mu=1e-3).fit(rng.normal(size=(96, 70)) + y[:, None], y))
    found, page = facts.summary, render(facts)
    assert found["loo"]["confusion"] is None
    assert (len(found["data"]["classes"]), found["data"]["n_classes"]) == (30, 32)
    names = {row["name"] for row in found["features"]["rows"]}
    assert names < {f"feature {k}" for k in range(1, 71)}
    assert (len(names), found["features"]["n_features"]) == (60, 70)
    assert found["data"]["named"] is False
    assert "the 30 largest of 32" in page
    assert "60 of 70 columns: the largest rises" in page


def test_effects_are_of_the_leading_columns():
    """By the display of each; dates and text as JSON has them."""
    table = TABLE.assign(day=pd.date_range("2021-03-01", periods=60), side=["left", "right"] * 30)
    y = 3.0 * TABLE.x + (table.side == "left") + 0.1 * table.day.dt.day
    model = TabularRegressor([KernelRegressor("linear", mu=0.01)]).fit(table, y)
    found = summary(model)
    leading = [
        row["name"]
        for row in found["features"]["rows"]
        if row["importance"] > 2 * row["standard_error"]
    ]
    assert {"x", "day", "side"} <= set(leading)
    told = {one.pop("column"): one for one in found["effects"]}
    assert list(told) == leading
    for name, one in told.items():
        effect = EffectDisplay.compute(model, name, values=one["values"], n_samples=100)
        for key in ("mean", "standard_error"):
            np.testing.assert_allclose(one[key], getattr(effect, key), rtol=1e-9)
        assert (one["n_samples"], one["mean_of"]) == (60, "prediction of the target")
    assert told["side"]["values"] == ["left", "right"]
    assert len(told["day"]["values"]) == 10
    assert told["day"]["values"][0].startswith("2021-03-")


def test_of_noise_there_are_no_effects_and_the_test_says_so():
    noise = np.random.default_rng(3).normal(size=60)
    facts = Facts(KernelRegressor(mu=0.1).fit(TABLE, noise))
    assert facts.summary["effects"] == []
    assert "No column has a rise above" in render(facts)
    told = facts.summary["permutation"]
    test = permutation_test(facts.estimator, told["n_permutations"])
    assert told["p_value"] == test.p_value > 0.05
    assert f"p = {test.p_value:.3g}, by 199 permutations of the target among rows." in render(facts)


def test_where_a_permutation_test_has_no_meaning(monkeypatch):
    windows = KernelClassifier(mu=0.1, cv=GapKFold(4)).fit(TABLE, Y)
    assert summary(windows)["permutation"] is None
    assert "Better than chance?" not in render(Facts(windows))
    model = KernelClassifier(mu=0.1).fit(TABLE, Y)
    told = summary(model)["permutation"]
    assert told == {"p_value": 0.005, "n_permutations": 199, "permuted": "rows"}
    assert "p = 0.005, the least that 199 permutations" in render(Facts(model))
    monkeypatch.setattr(facts, "MOST_PERMUTED", 59)
    assert summary(model)["permutation"] is None


def test_spectra_and_several_targets_have_no_effects():
    waves = np.random.default_rng(0).normal(size=(40, 30))
    spectra = pd.DataFrame(waves, columns=[str(k) for k in range(900, 930)])
    told = Facts(KernelRegressor(mu=0.1).fit(spectra, waves[:, 3]))
    assert told.summary["effects"] is None
    assert 'id="effects"' not in render(told)
    several = KernelRegressor(mu=0.1).fit(TABLE, TABLE)
    kinds = KernelClassifier(mu=0.1).fit(TABLE, np.arange(60) % 3)
    assert summary(several)["effects"] is summary(kinds)["effects"] is None


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
    found, method = summary(model.fit((X - X.mean()) / 9, y)), "5-fold cross-validation"
    assert found["loss"] == {"name": "1 - F2", "key": "", "method": method}
    assert "The choice is not settled" not in {c["title"] for c in found["cautions"]}
    balanced = {"name": "balanced error rate", "key": "balanced_accuracy", "method": method}
    assert summary(binary[0])["loss"] == balanced


@pytest.mark.slow
def test_every_index_names_samples(several):
    model, X, _ = several
    size = np.linalg.norm(np.maximum(1 - model.loo_.y * model.loo_.outputs, 0), axis=1)
    for index in (range(0, 300, 2), range(1, 151), range(150)):
        frame = X.set_axis(pd.Index(index, name="row of the file"), axis=0)
        found = summary(model, X=frame)["samples"]
        assert found["rows"][0]["name"] == str(index[size.argmax()])
        assert "row of the file" in found["named_by"]
    assert "numbered from 0" in summary(model)["samples"]["named_by"]


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
    # Without labels a group is called by its first sample.
    firsts = [f"visit {5 * int(name.split()[1])}" for name in most.index]
    report = summary(model, X=frame)
    assert [row["name"] for row in report["groups"]["rows"]] == firsts
    assert report["samples"]["criterion"] is None
    two = KernelClassifier("linear").fit(frame, y, groups=np.arange(60) % 2)
    assert summary(two)["groups"] is None
    others = np.array([f"site {k // 6}" for k in range(60)])
    for wrong, problem in ((["a", "b"], "has 2 rows"), (others, "is not .* first in row 5")):
        with pytest.raises(ValueError, match=f"groups {problem}"):
            summary(model, groups=wrong)


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


@pytest.mark.slow
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
