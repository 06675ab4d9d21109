"""What is said of a machine that should not be trusted, and of rows that it does not know."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def rare(tmp_path):
    """36 of 600 rows are of a class that the features rank well."""
    rng = np.random.default_rng(3)
    positive = np.arange(600) < 36
    frame = pd.DataFrame(rng.normal(size=(600, 3)) + 2.0 * positive[:, None], columns=list("abc"))
    frame["ward"] = rng.choice(["north", "south"], 600)
    frame["event"] = np.where(positive, "yes", "no")
    frame.to_csv(tmp_path / "rare.csv", index=False)
    return frame


def said(result):
    assert result.exit_code == 0, result.stderr
    return [line for line in result.stderr.splitlines() if not line.startswith("Candidate ")]


@pytest.mark.slow
def test_a_rare_class_is_warned_of_with_the_remedy_and_shown(looms, fit, rare):
    rare.assign(a=rare.a * 0.3, b=0.0).to_csv("rare.csv", index=False)
    result = fit("rare.csv", "-t", "event", "-c", "linear", "--calibration", "none")
    warnings = [line for line in said(result) if line.startswith("Warning: ")]
    assert len(warnings) == 1
    assert "are predicted to be 'yes', but 36 are" in warnings[0]
    assert (
        "Consider --threshold balanced, --class-weight balanced or another kernel (--candidates)."
        in warnings[0]
    )
    assert "Confusion, leave-one-out" in result.stdout
    assert re.search(r"yes +35 +1 +2.8%", result.stdout)
    assert "Confusion, leave-one-out" in looms("show", "rare.looms.skops").stdout
    result = fit("rare.csv", "-t", "event", "-c", "linear", "--threshold", "balanced", "-f")
    assert not [line for line in said(result) if line.startswith("Warning: ")]


@pytest.mark.slow
def test_an_option_of_the_search_that_met_a_bound_is_said_once(fit, rare):
    rare.to_csv("t.csv", index=False)
    lines = said(fit("t.csv", "-t", "event", "-c", "rbf", "--max-iter", 1))
    assert sum("max_iter" in line for line in lines) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "score"])
def test_rows_unlike_those_of_training_are_counted(looms, fit, rare, command):
    fit("rare.csv", "-t", "event", "-c", "linear")
    new = rare.head(20).copy()
    new["a"] += 100
    new.loc[:4, "b"] = -99.5
    new.loc[2, "ward"] = "west"
    new.to_csv("new.csv", index=False)
    low, high = rare.a.min(), rare.a.max()
    assert said(looms(command, "rare.looms.skops", "new.csv")) == [
        f"Warning: in all of 20 rows 'a' is far outside its training range, {low:.6g} to "
        f"{high:.6g}, furthest {new.a.max():.6g}; predictions there are extrapolated",
        f"Note: in 5 of 20 rows 'b' is far outside its training range, {rare.b.min():.6g} to "
        f"{rare.b.max():.6g}, furthest -99.5; predictions there are extrapolated",
        "Note: in 1 of 20 rows 'ward' has a value that no training row has, first 'west': it "
        "counts as rare, or as none",
    ]


@pytest.mark.slow
def test_rows_outside_in_several_columns_have_one_note(looms, fit, rare):
    fit("rare.csv", "-t", "event", "-c", "linear")
    assert said(looms("predict", "rare.looms.skops", "rare.csv")) == []
    rare.head(1).assign(a=50, c=60).to_csv("new.csv", index=False)
    (line,) = said(looms("predict", "rare.looms.skops", "new.csv"))
    assert line.startswith("Note: in 1 of 1 row 'a' is far outside its training range, ")
    assert ", furthest 50 and 'c' is far outside its training range, " in line


@pytest.mark.slow
def test_the_report_speaks_of_options_too(looms, fit, rare):
    rare.assign(a=rare.a * 0.3, b=0.0).to_csv("rare.csv", index=False)
    options = ("--calibration", "none", "--report", "page.html")
    fit("rare.csv", "-t", "event", "-c", "linear", *options)
    page = Path("page.html").read_text(encoding="utf-8")
    assert "--class-weight balanced" in page
    assert "class_weight=&#39;balanced" not in page
    assert "class_weight='balanced" not in page


@pytest.mark.slow
def test_what_holds_for_all_rows_is_a_warning(looms, fit, rare):
    fit("rare.csv", "-t", "event", "-c", "linear")
    rare.head(9).assign(ward="east").to_csv("new.csv", index=False)
    (line,) = said(looms("predict", "rare.looms.skops", "new.csv", "-q"))
    assert line.startswith("Warning: in all of 9 rows 'ward' has a value that no training row has")


@pytest.mark.slow
def test_a_target_of_other_labels_is_not_scored(looms, fit, rare, one_line):
    fit("rare.csv", "-t", "event", "-c", "linear")
    rare.assign(event="other").to_csv("new.csv", index=False)
    one_line(looms("score", "rare.looms.skops", "new.csv"), 2, "none of the labels of the target")


@pytest.mark.slow
def test_a_column_without_a_value_is_named(looms, fit, rare):
    fit("rare.csv", "-t", "event", "-c", "linear")
    rare.head(9).assign(a=np.nan).to_csv("new.csv", index=False)
    (line,) = said(looms("predict", "rare.looms.skops", "new.csv"))
    assert line == "Note: no row has a value of 'a': typical values are used instead"


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_scores_of_rows_of_training_are_said_to_be_optimistic(looms, fit, rare, loss):
    rare = rare[::3]
    rare.to_csv("rare.csv", index=False)
    fit("rare.csv", "-t", "event", "-c", "linear", "--loss", loss)
    other = rare.head(20).copy()
    other["c"] += 1e-3 * np.arange(20)  # the first row stays as it is
    other.to_csv("other.csv", index=False)
    (line,) = said(looms("score", "rare.looms.skops", "other.csv"))
    assert line.startswith("Note: in 1 row of 20 all features equal those of a training")
    assert "scores are optimistic; see looms assess" in line


@pytest.mark.slow
def test_dates_out_of_range_are_shown_as_dates(looms, fit, rare):
    rare["day"] = pd.date_range("2020-01-01", periods=600).strftime("%d.%m.%Y")
    rare.to_csv("t.csv", index=False)
    fit("t.csv", "-t", "event", "-c", "linear")
    rare.assign(day="06.05.2031").to_csv("later.csv", index=False)
    read, line = said(looms("predict", "t.looms.skops", "later.csv"))
    assert "'day': read as a date, the day before the month," in read
    assert "range, 2020-01-01 to 2021-08-22, furthest 2031-05-06;" in line
