"""What `looms.check` finds in a table, and what it leaves alone."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

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
    assert str(found).splitlines() == [
        "Classification of 'ill': 120 rows, 3 columns",
        "Nothing was found.",
    ]
    assert found["classes"] == [
        {"label": label, "n": int((FRAME["ill"] == label).sum())} for label in ("no", "yes")
    ]
    ward = {"name": "ward", "kind": "category", "n_values": 3, "n_gaps": 0}
    assert found["columns"][2] == ward


CASES = {
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


def test_near_repeats_and_their_effect():
    rng = np.random.default_rng(0)
    means, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    order = rng.permutation(200)
    rows = (means.repeat(5, axis=0) + 0.01 * rng.normal(size=(200, 4)))[order]
    targets = (y.repeat(5) + 0.01 * rng.normal(size=200))[order]
    text = titles(pd.DataFrame(rows), targets)["Rows like repeats of others"]
    assert "left out together with the rest of its cluster (there are 40)" in text
    visits = np.arange(40).repeat(5)[order]
    assert titles(pd.DataFrame(rows), targets, groups=visits) == {}
    by_name = pd.DataFrame(rows, columns=list("abcd")).assign(y=targets, visit=visits)
    assert titles(by_name, "y", groups="visit") == {}


@pytest.mark.usefixtures("all_partitions")
def test_rows_in_an_order():
    *walks, y = np.random.default_rng(0).normal(size=(4, N)).cumsum(axis=1)
    text = titles(pd.DataFrame(np.transpose(walks)), y)["Rows in an order"]
    assert "of a plain kernel model" in text
    assert "by blocks of consecutive rows" in text


def test_duplicates_in_one_group_are_as_they_should_be():
    rng = np.random.default_rng(0)
    twice = pd.DataFrame(rng.normal(size=(60, 3)).repeat(2, axis=0), columns=list("abc"))
    y = rng.normal(size=60).repeat(2)
    assert "held-out scores are optimistic" in titles(twice, y)["Duplicates"]
    assert "when duplicates are left out together, it is" in titles(twice, y)["Duplicates"]
    assert titles(twice, y, groups=np.arange(60).repeat(2)) == {}
    text = titles(twice, y, groups=np.arange(120) % 60)["Duplicates in other groups"]
    assert text.startswith("120 of 120 rows are equal in every feature to rows of other groups")


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
    assert "alone predicts the target" in page
    assert "<script" not in page
    hostile = FRAME.rename(columns={"ward": "<img src=x onerror=alert(1)>"})
    looms.check(hostile, "ill").report(tmp_path / "page.html")
    assert "<img" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((FRAME, "il"), "target: there is no column 'il'; the columns are 'dose', 'age'"),
        ((FRAME, "ill", "wards"), "groups: there is no column 'wards'"),
        ((FRAME, FRAME["ill"][1:]), "inconsistent numbers of samples"),
        ((FRAME.assign(ill="yes"), "ill"), "the target has only one value, 'yes'"),
        ((FRAME.to_numpy(), "ill"), "the columns have no names"),
    ],
)
def test_what_cannot_be_checked_is_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        looms.check(*arguments)


def test_the_task_may_be_given():
    counts = FRAME.assign(visits=np.arange(N) % 9)
    assert looms.check(counts, "visits")["task"] == "classification"
    assert looms.check(counts, "visits", task="regression")["task"] == "regression"
    with pytest.raises(ValueError, match="Unknown task 'classes'"):
        looms.check(counts, "visits", task="classes")
