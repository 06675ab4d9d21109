"""Rows held out together, in groups and folds, and the grid: from the options to the scores."""

import json

import numpy as np
import pandas as pd
import pytest

from looms import KernelClassifier
from looms.cli._options import Columns, Source
from looms.cli._prepare import prepare_file
from looms.cli._request import ModelRequest
from looms.diagnostics import influence
from looms.folds import group_numbers
from looms.model_files import load_model


@pytest.fixture
def visits(tmp_path):
    """Forty patients of eight visits, each ill or not by chance."""
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(40), 8)
    frame = pd.DataFrame(rng.normal(size=(40, 4))[number] + 0.2 * rng.normal(size=(320, 4)))
    frame.columns = list("abcd")
    frame["patient"] = [f"p{k}" for k in number]
    frame["ill"] = np.where(rng.permutation(np.arange(40) % 2)[number], "yes", "no")
    path = tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
@pytest.mark.slow
def test_a_fit_with_groups_is_that_of_the_estimator(looms, fit, visits, figures):
    result = fit(visits, "-t", "ill", "--groups", "patient", "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert "leave-one-group-out tuned this model" in result.stderr
    assert "looms fit without --no-evaluate) and looms assess give unbiased ones" in result.stderr
    assert "--groups" not in result.stderr
    saved = load_model("m.skops")
    assert list(saved.metadata["columns"]) == list("abcd")
    table = pd.read_csv(visits)
    X = saved.model.preprocessor_.transform(table[list("abcd")])
    machine = KernelClassifier().fit(X, table["ill"], groups=table["patient"])
    scores = machine.evaluate(nested=False)
    assert figures(result.stdout) == pytest.approx(list(scores.values()), abs=1e-3)
    assert scores.optimistic
    assert scores.kind in result.stdout
    assert scores["balanced_accuracy"] < 0.6
    assert "--groups patient" in looms("show", "m.skops").stdout


@pytest.mark.parametrize("kind", ["number", "text"])
def test_groups_of_a_file_are_numbered_as_in_python(visits, kind):
    table = pd.read_csv(visits)
    if kind == "number":
        table["patient"] = table["patient"].str[1:].astype(int)
    table = table.sample(frac=1, random_state=0)
    table.to_csv(visits, index=False)
    prepared = prepare_file(Source(file=visits), Columns("ill"), ModelRequest(groups="patient"))
    expected = group_numbers(table["patient"], len(table))
    np.testing.assert_array_equal(group_numbers(prepared.groups, len(table)), expected)


@pytest.mark.slow
def test_prediction_takes_no_notice_of_the_groups(looms, fit, visits):
    assert fit(visits, "-t", "ill", "--groups", "patient", "-o", "m.skops").exit_code == 0
    result = looms("predict", "m.skops", visits)
    assert result.exit_code == 0, result.stderr
    assert "ignored" not in result.stderr
    pd.read_csv(visits).drop(columns="patient").to_csv("new.csv", index=False)
    assert looms("predict", "m.skops", "new.csv").stdout == result.stdout
    assert "column" not in looms("score", "m.skops", visits).stderr
    assert "each row counts as one draw" in looms("score", "m.skops", "new.csv").stderr
    load_model("m.skops").model.save("without_names.skops")
    result = looms("score", "without_names.skops", visits)
    assert "each row counts as one draw" in result.stderr


@pytest.mark.filterwarnings("ignore::looms.BoundWarning", "ignore::looms.OneClassWarning")
@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--cv", "5", "--search", "grid")], ids=["search", "grid"])
def test_everything_is_repeated_without_the_folds(looms, visits, figures, more):
    options = ("--groups", "patient", "-c", "linear", "--report", "r.html", *more)
    result = looms("fit", visits, "-t", "ill", *options, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert "everything was repeated without each of" in result.stderr
    assert "optimistic" not in result.stderr
    model = load_model("m.skops").model
    scores = model._scores.get("nested")
    assert f"{scores.kind} " in result.stdout
    assert figures(result.stdout) == pytest.approx(list(scores.values()), abs=1e-4)
    assert dict(scores) != pytest.approx(dict(model.evaluate(nested=False)), abs=1e-3)
    assert model.cv == (5 if more else None)
    if more:
        assert model.candidates[0].search.method == "grid"
    with open("r.html", encoding="utf-8") as page:
        text = page.read()
    assert "without each fold of whole groups" in text
    assert (
        f"{scores['balanced_accuracy']:.3f}" in text
        or f"{100 * scores['balanced_accuracy']:.1f}" in text
    )
    asked = text[text.index('<dl class="asked">') :]
    assert "<dt>groups</dt>" in asked
    assert "optimistic" not in text


def test_a_gap_among_the_groups_is_refused(fit, visits, one_line):
    table = pd.read_csv(visits)
    table.loc[[3, 7], "patient"] = None
    table.to_csv(visits, index=False)
    result = fit(visits, "-t", "ill", "--groups", "patient")
    one_line(result, 2, "--groups patient has no label in 2 rows of 320, first in data row 4;")


@pytest.mark.parametrize(
    ("command", "options", "text"),
    [
        (
            "assess",
            ("--groups", "nurse"),
            "there is no column 'nurse' for --groups besides the target ('a', 'b'",
        ),
        ("fit", ("--groups", "patent"), "). Did you mean 'patient'?"),
        ("assess", ("--groups", "ill"), "--groups ill is the target; name another column"),
        (
            "fit",
            ("--groups", "a", "--cv", 400),
            "--groups a: --cv must be from 2 folds to the number",
        ),
        ("fit", ("--groups", "same"), "--groups same: All rows are in one group"),
        ("assess", ("--groups", "side"), "--groups side: All rows of class 'no' are in one group"),
        ("fit", ("--cv", 1), "Error: --cv must be from 2 folds"),
    ],
)
def test_what_cannot_be_is_refused_by_its_option(looms, visits, one_line, command, options, text):
    table = pd.read_csv(visits)
    table["same"], table["side"] = "x", np.where(table["ill"] == "no", "one", table["patient"])
    table.to_csv(visits, index=False)
    one_line(looms(command, visits, "-t", "ill", *options), 2, text)


def test_a_column_of_groups_may_be_dropped_too(fit, visits):
    result = fit(visits, "-t", "ill", "--groups", "patient", "--drop", "patient")
    assert result.exit_code == 0, result.stderr
    assert "'patient' only groups rows; it is not a feature" in result.stderr


def test_a_file_without_columns_has_no_groups(fit, tmp_path, one_line):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{k % 2} 1:{k} 2:{k * k}\n" for k in range(1, 30)))
    result = fit(path, "--groups", "1")
    one_line(result, 2, "there is no column '1' for --groups: the file has no named columns")


@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
@pytest.mark.slow
def test_a_diagnosis_leaves_out_the_groups_of_the_fit(looms, fit, visits):
    options = ("--groups", "patient", "-c", "linear", "-o", "m.skops")
    assert fit(visits, "-t", "ill", *options).exit_code == 0
    result = looms("diagnose", "m.skops", "--data", visits, "-b", 0, "-o", "d.csv")
    assert result.exit_code == 0, result.stderr
    assert "320 rows of visits.csv in 40 groups" in result.stdout
    assert "leave-one-group-out" in result.stdout
    assert "left out one at a time" not in result.stderr
    table, rows = pd.read_csv(visits), pd.read_csv("d.csv")
    assert rows["group"].tolist() == table["patient"].tolist()
    saved = load_model("m.skops")
    found = influence(saved.model, table, table["ill"], groups=table["patient"])
    in_order = rows.groupby("group")["influence"].first()  # of the sorted labels
    assert in_order.tolist() == pytest.approx(found.values.tolist())
    assert (rows["influence"].groupby(rows["group"]).nunique() == 1).all()
    of_fit = looms("diagnose", "m.skops", "-b", 0, "-o", "f.csv")
    assert "320 rows of its fit in 40 groups" in of_fit.stdout
    names = {f"group of row {k}" for k in table.drop_duplicates("patient").index + 1}
    assert set(pd.read_csv("f.csv")["group"]) == names
    table.rename(columns={"patient": "person"}).to_csv("other.csv", index=False)
    result = looms("diagnose", "m.skops", "--data", "other.csv", "-b", 0)
    assert "left out one at a time here; see --groups" in result.stderr
    result = looms("diagnose", "m.skops", "--data", "other.csv", "-b", 0, "--groups", "person")
    assert "320 rows of other.csv in 40 groups" in result.stdout
    assert "ignored" not in result.stderr
    result = looms("diagnose", "m.skops", "--data", "other.csv", "--groups", "ward")
    assert "there is no column 'ward'" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("method", ["kfold", "bootstrap"])
@pytest.mark.filterwarnings("ignore")
def test_an_assessment_keeps_groups_together_in_its_store(looms, visits, method):
    options = ["assess", visits, "-t", "ill", "-c", "rbf", "--method", method, "--store", "s"]
    folds = ["-n", 5, "--test-size", 0.2] if method == "kfold" else ["-n", 3]
    options += [*folds, "-o", "table.csv", "--force"]
    tables = []
    for groups in (["--drop", "patient"], ["--groups", "patient"], ["--groups", "patient"]):
        result = looms(*options, *groups)
        assert result.exit_code == 0, result.stderr
        assert ("groups kept together" in result.stdout) == (groups[0] == "--groups")
        tables.append(pd.read_csv("table.csv"))
    told = json.loads(looms(*options, "--groups", "patient", "--json").stdout)
    assert (told["groups_kept_together"], told["estimator"]) == (True, "candidates rbf")
    apart, together, again = tables
    assert again.equals(together)
    assert together["balanced_accuracy"].mean() < 0.7 < 0.8 < apart["balanced_accuracy"].mean()
    loo = "loo_balanced_accuracy"
    assert together[loo].mean() < 0.7 < 0.8 < apart[loo].mean()


@pytest.mark.slow
def test_a_class_in_too_few_groups_is_named_and_no_evaluation_advised(looms, tmp_path):
    group = np.repeat(np.arange(6), [11, 4, 2, 4, 6, 11])
    kind = np.where(np.arange(38) % 2, "yes", "no").astype(object)
    for place, size in ((0, 4), (11, 1), (15, 2)):  # in three groups, two of them in one fold
        kind[place : place + size] = "rare"
    x = np.random.default_rng(0).normal(size=38)
    pd.DataFrame({"x": x, "batch": group, "kind": kind}).to_csv("few.csv", index=False)
    options = ("-t", "kind", "--groups", "batch", "-c", "linear", "--report", "few.html")
    told = looms("fit", "few.csv", *options).stderr
    assert "Class 'rare' has 1 group left without an outer fold, too few to tune on" in told
    assert "join it with another class, or leave the class out" in told
    assert "looms assess gives unbiased ones" in told
    told += looms("predict", "few.looms.skops", "few.csv", "--confidence-level", 0.5).stderr
    assert "evaluation (" not in told + (tmp_path / "few.html").read_text()
