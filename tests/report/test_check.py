"""What `looms.check` finds in a table, and what it leaves alone."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris

import looms
from looms.report import TableCheck

N = 120


def table(seed=0):
    """Rows without any fault: numbers, a category, and classes that they tell of."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"dose": rng.normal(size=N), "age": rng.integers(20, 80, N)})
    frame["ward"] = rng.choice(["A", "B", "C"], N)
    frame["ill"] = np.where(frame["dose"] + rng.normal(size=N) > 0, "yes", "no")
    return frame


FRAME = table()


def titles(frame, target="ill", **options):
    found = looms.check(frame, target, **options)["findings"]
    return {one["title"]: one["text"] for one in found}


def test_a_good_table_has_no_findings():
    found = looms.check(FRAME, "ill")
    assert found["findings"] == []
    assert "120 rows, 3 columns" in str(found).splitlines()[0]
    assert found["classes"] == [
        {"label": label, "n": int((FRAME["ill"] == label).sum())} for label in ("no", "yes")
    ]
    ward = {"name": "ward", "kind": "category", "n_values": 3, "n_gaps": 0}
    assert found["columns"][2] == ward


CASES = {
    "One class": lambda f: f.assign(ill="yes"),
    "A column that cannot be read": lambda f: f.assign(
        odd=pd.Series([1.5, b"x", *[2.5] * (N - 2)], dtype=object)
    ),
    "A column gives the target": lambda f: f.assign(paid=np.where(f.ill == "yes", "p", "q")),
    "Duplicates": lambda f: pd.concat([f, f[::2]], ignore_index=True),
    "Constant columns": lambda f: f.assign(site="here"),
    "Identifiers": lambda f: f.assign(name=[f"P{k:03d}" for k in range(len(f))]),
    "Dates": lambda f: f.assign(day=pd.date_range("2021-01-01", periods=len(f)).astype(str)),
    "Dates that can be read in two ways": lambda f: f.assign(
        day=[f"0{1 + k % 9}/0{1 + k % 7}/2021" for k in range(len(f))]
    ),
    "Words among numbers": lambda f: f.assign(
        odd=[str(k % 7) if k else "none" for k in range(len(f))]
    ),
    "Columns of mostly gaps": lambda f: f.assign(rare=[k if k < 9 else None for k in range(N)]),
    "A small class": lambda f: f.assign(ill=np.where(np.arange(N) < 3, "rare", f.ill)),
    "Rows without a target": lambda f: f.assign(ill=f.ill.where(np.arange(N) > 4)),
    "Labels": lambda f: f.assign(ill=np.where(np.arange(N) % 3 == 0, f.ill.str.upper(), f.ill)),
}


@pytest.mark.parametrize("title", CASES)
def test_each_fault_is_found_by_its_name(title):
    assert title in titles(CASES[title](FRAME.copy()))


def test_serious_findings_come_first():
    frame = CASES["A column gives the target"](CASES["Constant columns"](FRAME))
    found = looms.check(frame, "ill")["findings"]
    assert [one["level"] for one in found] == ["serious", "note"]


def test_rows_that_may_belong_together_are_graver_than_identifiers():
    frame = CASES["Identifiers"](FRAME).assign(batch=[f"B{k // 4}" for k in range(N)])
    levels = {one["title"]: one["level"] for one in looms.check(frame, "ill")["findings"]}
    together = "Rows that may belong together"
    assert levels == {together: "serious", "Identifiers": "note"}
    known = looms.check(frame.drop(columns="name"), "ill", np.arange(N) // 2)["findings"]
    assert known == []


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "array"])
def test_numbers_whose_rows_are_alike_may_be_groups(form):
    rng = np.random.default_rng(0)
    teacher = rng.permutation(np.concatenate([np.arange(40), rng.integers(0, 40, 160)]))
    X = pd.DataFrame({"n": rng.integers(5, 60, 200), "age": rng.integers(30, 70, 40)[teacher]})
    X["teacher"], y = teacher, rng.normal(size=40)[teacher] + 0.5 * rng.normal(size=200)
    given = X if form == "table" else X.to_numpy()
    text = titles(given, y)["Rows that may belong together"]
    assert {"table": "'teacher'", "array": "'x2'"}[form] in text
    assert titles(given, y, groups=teacher) == {}
    assert "Rows that may belong together" not in titles(X[["n"]].assign(x=rng.random(200)), y)


def near_repeats():
    """Five rows of each of 40 patients, in no order, and a target of the patient."""
    rng = np.random.default_rng(0)
    visit = rng.permutation(np.arange(40).repeat(5))
    rows = rng.normal(size=(40, 4))[visit] + 0.01 * rng.normal(size=(200, 4))
    y = rng.normal(size=40)[visit] + 0.01 * rng.normal(size=200)
    return pd.DataFrame(rows, columns=list("abcd")).assign(y=y, visit=visit)


@pytest.mark.slow
def test_near_repeats_and_their_effect():
    frame = near_repeats()
    X, visit = frame.drop(columns=["y", "visit"]), frame["visit"]
    assert "(there are 40)" in titles(X, frame["y"])["Rows like repeats of others"]
    assert titles(X, frame["y"], groups=visit) == {}
    assert titles(frame, "y", groups="visit") == {}


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4])
def test_few_near_repeats_are_found_among_few_rows(k):
    rng = np.random.default_rng(0)
    unit = rng.permutation(np.arange(25).repeat(k))
    X = pd.DataFrame(rng.normal(size=(25, 4))[unit] + 0.1 * rng.normal(size=(25 * k, 4)))
    y = rng.permutation(np.arange(25) % 2)[unit]
    assert "Rows like repeats of others" in titles(X, y)
    assert titles(X, y, groups=unit) == {}


@pytest.mark.slow
def test_what_cannot_be_looked_for_is_said(monkeypatch):
    few = looms.check(FRAME[:20], "ill")
    assert str(few).splitlines()[-2:] == few["not_searched"]
    assert "30 rows" in few["not_searched"][0]
    assert "40 rows" in few["not_searched"][1]
    twice = pd.concat([FRAME, table(1)])
    assert looms.check(twice, "ill")["not_searched"] == []
    monkeypatch.setattr("looms.report.check.MOST", 200)
    assert "200 rows" in looms.check(twice, "ill")["not_searched"][0]
    failed = looms.check(FRAME, "ill", groups=FRAME["ill"])
    assert any("order" in each for each in failed["not_searched"])


def test_duplicates_of_a_large_table_are_compared_in_whole_sets(monkeypatch):
    monkeypatch.setattr("looms.report.check.MOST", 200)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3)).repeat(2, axis=0)
    order, y = rng.permutation(400), rng.integers(0, 2, 200).repeat(2)
    text = titles(pd.DataFrame(rows[order], columns=list("abc")), y[order])["Duplicates"]
    alone, together = re.search(r"200 of the rows, is (\S+) %, and (\S+) % when", text).groups()
    assert float(alone) > 90
    assert float(together) < 60


@pytest.mark.slow
def test_duplicates_with_another_target_are_counted():
    rng = np.random.default_rng(0)
    twice = pd.DataFrame(rng.normal(size=(60, 3)).repeat(2, axis=0), columns=list("abc"))
    assert "120 rows" in titles(twice, np.arange(120) % 2)["Duplicates"]
    coarse = pd.DataFrame(rng.integers(0, 4, (300, 4)), columns=list("abcd"))
    y, groups = rng.normal(size=300), np.arange(300) // 3
    assert titles(coarse, y) == {}
    assert titles(coarse, y, groups=groups) == {}


def test_columns_that_give_the_target_hide_no_repeats():
    frame = near_repeats().drop(columns="visit")
    assert set(titles(frame.assign(copy=frame["y"]), "y")) == {
        "A column gives the target",
        "Rows like repeats of others",
    }


def card(rng):
    """Applicants, and spending that only those who got a card have, most of them."""
    accepted = np.repeat([True, False], [511, 148])
    spending = np.where(accepted & (np.arange(659) >= 10), rng.lognormal(5, 1, 659), 0.0)
    return pd.DataFrame({"spending": spending, "age": rng.integers(18, 80, 659)}), accepted


def crash(rng):
    """Persons in crashes, and an injury that names most of the dead, with codes above that."""
    dead = np.arange(800) < 36
    injury = np.where(
        dead, 4, rng.choice([0, 1, 2, 3, 5, 6], 800, p=[0.3, 0.2, 0.2, 0.27, 0.02, 0.01])
    )
    injury = np.where(np.arange(800) < 2, 3, injury).astype(float)
    injury[rng.random(800) < 0.01] = np.nan
    return pd.DataFrame({"injury": injury, "age": rng.integers(18, 80, 800)}), dead


@pytest.mark.slow
@pytest.mark.parametrize("table", [card, crash])
def test_one_value_may_give_the_target(table):
    X, y = table(np.random.default_rng(0))
    assert f"'{X.columns[0]}' (" in titles(X, y)["A column gives the target"]
    assert titles(X.drop(columns=X.columns[0]).assign(noise=X["age"] % 7), y) == {}


@pytest.mark.slow
@pytest.mark.parametrize("well", [False, 0.0, "fever", "none"])
def test_a_sign_of_a_rare_class_that_others_have_too_does_not_give_it(well):
    """Ten events with fever, and 85 of the others: one of ten with fever is an event."""
    ill, rng = np.arange(1000) < 10, np.random.default_rng(0)
    fever = np.where(np.arange(1000) < 95, type(well)(7), well)
    X = pd.DataFrame({"fever": fever, "age": rng.integers(18, 80, 1000)})
    assert "A column gives the target" not in titles(X, ill)


def test_a_code_of_most_events_that_no_other_row_has_gives_the_target():
    rng = np.random.default_rng(0)
    dead = np.arange(300) < 60
    cause = np.where(dead, "I46", "none").astype(object)
    cause[[*range(4), *range(60, 67)]] = "R99"
    X = pd.DataFrame({"age": rng.integers(18, 80, 300), "cause": cause}).assign(site="here")
    first, second = looms.check(X, dead)["findings"]
    assert (first["level"], first["title"]) == ("serious", "A column gives the target")
    assert second["title"] == "Constant columns"
    few = looms.check(X.assign(cause=dead + 0.4 * rng.normal(size=300)), dead)["findings"]
    assert [one["title"] for one in few] == ["A column nearly gives the target", "Constant columns"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "column"),
    [
        (load_iris, "'petal length (cm)' (ROC AUC 0.982)"),
        (load_breast_cancer, "'worst perimeter' (ROC AUC 0.975)"),
    ],
)
def test_a_strong_column_is_a_question(load, column):
    X, y = load(return_X_y=True, as_frame=True)
    (found,) = (one for one in looms.check(X, y)["findings"] if one["title"].startswith("A column"))
    assert (found["level"], found["title"]) == ("note", "A column nearly gives the target")
    assert column in found["text"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", looms.ColumnsWarning)
        looms.TabularClassifier(["linear"]).fit(X, y)


@pytest.mark.slow
def test_a_strong_column_among_many_of_few_rows_may_be_chance():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [20, 10])
    X = pd.DataFrame(rng.normal(size=(30, 300)), columns=[f"a{k}" for k in range(300)])
    X["a0"] = np.where(np.arange(30) == 9, 1.0, y) + 0.1 * rng.normal(size=30)
    title = "A column nearly gives the target"
    assert title not in titles(X, y)
    assert title in titles(X[["a0", "a1"]], y)


def test_a_nearly_telling_number():
    rng = np.random.default_rng(0)
    y = rng.normal(size=N)
    found = titles(FRAME.drop(columns="ill").assign(paid=y + 0.1 * rng.normal(size=N)), y)
    assert found["A column nearly gives the target"].startswith("'paid' (rank correlation 0.99")


def test_numbers_without_ties_are_no_identifiers():
    prices = np.random.default_rng(0).permutation(10 * np.arange(N) + 7)
    assert titles(FRAME.assign(price=prices), "ill") == {}
    assert "Identifiers" in titles(FRAME.assign(patient_id=prices), "ill")


def test_small_classes_are_one_finding():
    y = np.arange(N) % 40
    (found,) = looms.check(FRAME[["dose", "age"]], y, task="classification")["findings"]
    assert (found["title"], found["level"]) == ("A small class", "serious")
    assert "'0' has 3 rows" in found["text"]
    assert "39 other" in found["text"]


def test_rows_are_numbered_by_the_table():
    odd = FRAME.assign(odd=[str(k % 7) if k != 50 else "none" for k in range(N)])
    odd.loc[3, "ill"] = None
    assert "'none' in row 50" in titles(odd, "ill")["Words among numbers"]
    assert "row 3" in titles(odd, "ill")["Rows without a target"]


@pytest.mark.usefixtures("all_partitions")
def test_rows_in_an_order():
    *walks, y = np.random.default_rng(0).normal(size=(4, N)).cumsum(axis=1)
    assert "Rows in an order" in titles(pd.DataFrame(np.transpose(walks)), y)


@pytest.mark.slow
def test_duplicates_in_one_group_are_as_they_should_be():
    rng = np.random.default_rng(0)
    twice = pd.DataFrame(rng.normal(size=(60, 3)).repeat(2, axis=0), columns=list("abc"))
    y = rng.normal(size=60).repeat(2)
    text = titles(twice, y)["Duplicates"]
    assert "60 of 120 rows" in text
    (together,) = re.search(r"model is .* 10⁻\S+, and (\S+) when", text).groups()
    assert float(together) == pytest.approx(y.std(), rel=0.2)
    assert titles(twice, y, groups=np.arange(60).repeat(2)) == {}
    assert "other groups" in titles(twice, y, groups=np.arange(120) % 60)["Duplicates"]


@pytest.mark.parametrize("form", ["polars", "array", "sparse", "values"])
def test_other_tables(form):
    y = FRAME["ill"]
    if form == "polars":
        polars = pytest.importorskip("polars")
        found = looms.check(polars.DataFrame(FRAME.to_dict("list")), "ill")
        assert found["columns"] == looms.check(FRAME, "ill")["columns"]
    else:
        X = FRAME[["dose", "age"]].to_numpy()
        given = {"array": X, "sparse": sparse.csr_array(X), "values": FRAME[["dose", "age"]]}
        found = looms.check(given[form], y)
    assert found["findings"] == []
    assert found["target"] == "ill"


def test_it_is_a_mapping_that_json_can_hold(tmp_path):
    found = looms.check(CASES["A column gives the target"](FRAME), "ill")
    assert json.loads(json.dumps(dict(found), allow_nan=False)) == dict(found)
    assert isinstance(found, TableCheck)
    pytest.importorskip("jinja2")
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "paid" in page
    assert "<script" not in page
    hostile = FRAME.rename(columns={"ward": "<img src=x onerror=alert(1)>"})
    looms.check(hostile, "ill").report(tmp_path / "page.html")
    assert "<img" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((FRAME, "il"), "target: .*'il'"),
        ((FRAME, "ill", "wards"), "groups: .*'wards'"),
        ((FRAME, FRAME["ill"][1:]), "numbers of samples"),
        ((FRAME, None), "target"),
        ((FRAME, FRAME["ill"][::-1]), "target .*index"),
        ((FRAME, "ill", FRAME["ward"][::-1]), "groups .*index"),
        ((FRAME, np.where(np.arange(N) == 3, np.inf, FRAME["dose"])), "infinite"),
        ((FRAME.to_numpy(), "ill"), "names"),
    ],
)
def test_what_cannot_be_checked_is_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        looms.check(*arguments)


def test_the_task_may_be_given():
    counts = FRAME.assign(visits=np.arange(N) % 9)
    assert looms.check(counts, "visits")["task"] == "classification"
    assert looms.check(counts, "visits", task="regression")["task"] == "regression"
