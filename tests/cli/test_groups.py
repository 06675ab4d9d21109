"""Rows held out together and rows in order of time: from the options to what is held out."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from looms import TabularRegressor
from looms.cli._app import app
from looms.cli._request import FitRequest
from looms.diagnostics import influence
from looms.folds import GapKFold, group_numbers
from looms.model_files import load_model

N = 90


@pytest.fixture
def visits(tmp_path):
    """Forty patients of four visits, each ill or not by chance."""
    return _visits(tmp_path / "visits.csv")


def _visits(path):
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(40), 4)
    frame = pd.DataFrame(rng.normal(size=(40, 4))[number] + 0.2 * rng.normal(size=(160, 4)))
    frame.columns = list("abcd")
    frame["patient"] = [f"p{k}" for k in number]
    frame["ill"] = np.where(rng.permutation(np.arange(40) % 2)[number], "yes", "no")
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """A model of that table in groups, fitted once, and only read."""
    folder = tmp_path_factory.mktemp("visits")
    table, model = _visits(folder / "visits.csv"), folder / "m.skops"
    options = ["-t", "ill", "--groups", "patient", "--drop", "patient", "-c", "linear"]
    command = ["fit", str(table), *options, "--no-evaluate", "-o", str(model)]
    result = CliRunner().invoke(app, command)
    assert "'patient' only groups rows; it is not a feature" in result.stderr
    assert load_model(model).metadata["columns"].keys() == set("abcd")
    return model


@pytest.mark.parametrize("kind", ["number", "text"])
def test_groups_of_a_file_are_numbered_as_in_python(visits, kind):
    table = pd.read_csv(visits)
    if kind == "number":
        table["patient"] = table["patient"].str[1:].astype(int)
    table = table.sample(frac=1, random_state=0)
    table.to_csv(visits, index=False)
    prepared = FitRequest("ill", file=visits, groups="patient").prepare()
    expected = group_numbers(table["patient"], len(table))
    np.testing.assert_array_equal(group_numbers(prepared.groups, len(table)), expected)


def test_equal_rows_are_a_group_if_they_are_to_be(tmp_path):
    rows = pd.DataFrame({"a": range(20), "b": [0.5, 1] * 10, "y": ["u", "v"] * 10})
    pd.concat([rows, rows[:9]]).to_csv(tmp_path / "twice.csv", index=False)
    request = FitRequest("y", file=tmp_path / "twice.csv", duplicates="group")
    prepared = request.prepare()
    number = group_numbers(prepared.groups, 29)
    assert (number[:9] == number[20:]).all()
    assert len(np.unique(number)) == 20


@pytest.mark.slow
def test_prediction_takes_no_notice_of_the_groups(looms, grouped, visits):
    result = looms("predict", grouped, visits)
    assert result.exit_code == 0, result.stderr
    assert "ignored" not in result.stderr
    pd.read_csv(visits).drop(columns="patient").to_csv("new.csv", index=False)
    assert looms("predict", grouped, "new.csv").stdout == result.stdout
    assert "column" not in looms("score", grouped, visits).stderr
    assert "each row counts as one draw" in looms("score", grouped, "new.csv").stderr
    load_model(grouped).model.save("without_names.skops")
    result = looms("score", "without_names.skops", visits)
    assert "each row counts as one draw" in result.stderr


@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
@pytest.mark.slow
def test_a_diagnosis_leaves_out_the_groups_of_the_fit(looms, grouped, visits):
    result = looms("diagnose", grouped, "--data", visits, "-b", 0, "-o", "d.csv")
    assert result.exit_code == 0, result.stderr
    assert "160 rows of visits.csv in 40 groups" in result.stdout
    assert "left out one at a time" not in result.stderr
    table, rows = pd.read_csv(visits), pd.read_csv("d.csv")
    assert rows["group"].tolist() == table["patient"].tolist()
    saved = load_model(grouped)
    found = influence(saved.model, table, table["ill"], groups=table["patient"])
    in_order = rows.groupby("group")["influence"].first()  # of the sorted labels
    assert in_order.tolist() == pytest.approx(found.values.tolist())
    assert (rows["influence"].groupby(rows["group"]).nunique() == 1).all()
    of_fit = looms("diagnose", grouped, "-b", 0, "-o", "f.csv")
    assert "160 rows of its fit in 40 groups" in of_fit.stdout
    names = [f"group of row {k:>3}" for k in table.drop_duplicates("patient").index + 1]
    assert sorted(set(pd.read_csv("f.csv")["group"])) == sorted(names)
    table.rename(columns={"patient": "person"}).to_csv("other.csv", index=False)
    given = ("diagnose", grouped, "--data", "other.csv", "-b", 0)
    assert "left out one at a time here; see --groups" in looms(*given).stderr
    assert "160 rows of other.csv in 40 groups" in looms(*given, "--groups", "person").stdout


# Order in time -----------------------------------------------------------------------


@pytest.fixture
def demand(tmp_path):
    """Days in no order, with two features and a number to predict."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"day": pd.date_range("2021-03-01", periods=N).astype(str)})
    frame = frame.join(pd.DataFrame(rng.normal(size=(N, 3)), columns=["wind", "price", "demand"]))
    path = tmp_path / "demand.csv"
    frame.sample(frac=1, random_state=2).to_csv(path, index=False)
    return path


def prepared_in_time(file, **options):
    return FitRequest("demand", file=file, time="day", **options).prepare()


@pytest.mark.slow
def test_a_fit_in_time_is_that_of_the_estimator_on_sorted_rows(looms, fit, demand):
    options = ("--time", "day", "--gap", 5, "-c", "linear", "-o", "m.skops")
    result = fit(demand, "-t", "demand", *options)
    assert result.exit_code == 0, result.stderr
    assert "looms assess --time gives unbiased ones" in result.stderr
    saved = load_model("m.skops")
    table = pd.read_csv(demand).sort_values("day")
    model = TabularRegressor(["linear"], cv=GapKFold(10, gap=5))
    model.fit(table[["wind", "price"]], table["demand"])
    np.testing.assert_array_equal(saved.model.units_.codes, model.units_.codes)
    np.testing.assert_array_equal(saved.model.held_out_.outputs, model.held_out_.outputs)
    assert looms("predict", "m.skops", demand).stderr == ""
    covered = looms("predict", "m.skops", demand, "--confidence-level", 0.9)
    assert "--confidence-level comes from single held-out rows" in covered.stderr


@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M", "%d.%m.%Y", "%j"])
def test_times_are_dates_or_numbers_however_they_are_written(demand, written):
    table = pd.read_csv(demand)
    in_order = table.sort_values("day").demand.tolist()
    table["day"] = pd.to_datetime(table["day"]).dt.strftime(written)
    table.to_csv(demand, index=False)
    assert prepared_in_time(demand).target.y.tolist() == in_order


def test_rows_in_order_of_time_are_matched_with_their_targets(fit, demand):
    result = fit(demand, "-t", "demand", "--time", "day", "-c", "linear", "--cv", 3)
    assert result.exit_code == 0, result.stderr
    assert "index" not in result.stderr


def test_rows_keep_their_numbers_in_the_file(demand):
    prepared = prepared_in_time(demand, groups="price")
    table = pd.read_csv(demand, dtype=str).astype({"price": float, "demand": float})
    assert (np.diff(prepared.rows) < 0).any()
    assert table["day"][prepared.rows - 1].is_monotonic_increasing
    np.testing.assert_array_equal(table["demand"][prepared.rows - 1], prepared.target.y)
    prices = prepared.groups.astype(float)
    np.testing.assert_array_equal(table["price"][prepared.rows - 1], prices)


@pytest.mark.parametrize("kind", ["whole numbers", "dates"])
def test_times_that_floats_would_round_are_told_apart(tmp_path, capsys, kind):
    order = np.random.default_rng(3).permutation(N)
    times = 1_700_000_000_000_000_000 + order
    path = tmp_path / "fast.parquet"
    frame = pd.DataFrame({"day": times, "x": order * 1.0, "demand": order + 0.5})
    if kind == "dates":
        frame["day"] = pd.to_datetime(frame["day"])
    frame.to_parquet(path)
    prepared = prepared_in_time(path)
    assert prepared.groups is None
    assert "held out together" not in capsys.readouterr().err
    np.testing.assert_array_equal(prepared.target.y, np.arange(N) + 0.5)


def test_rows_of_one_time_are_held_out_together(demand, capsys):
    table = pd.read_csv(demand)
    month = table["day"].str[:7].map({"2021-03": 1, "2021-04": 2.5, "2021-05": 3})
    table.assign(day=month).to_csv(demand, index=False)
    number = group_numbers(prepared_in_time(demand).groups, N)
    assert number.tolist() == np.repeat([0, 1, 2], [31, 30, 29]).tolist()
    assert "--time day: rows of one time are held out together" in capsys.readouterr().err


@pytest.mark.slow
def test_a_page_calls_times_as_the_file_does(looms, fit, demand):
    table = pd.read_csv(demand)
    table["day"] = pd.to_datetime(table["day"]).dt.to_period("W").dt.start_time.dt.date
    table.to_csv(demand, index=False)
    options = ("--time", "day", "--cv", 3, "-c", "linear", "--report", "r.html", "-o", "m.skops")
    assert fit(demand, "-t", "demand", *options).exit_code == 0
    assert "groups" not in looms("score", "m.skops", demand).stderr
    page = Path("r.html").read_text(encoding="utf-8")
    assert "times: the effect of leaving each out" in page
    assert "<bdi>2021-0" in page


# Refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "options", "text"),
    [
        ("assess", ("--groups", "nurse"), "no column 'nurse' for --groups besides the target ('a'"),
        ("fit", ("--groups", "patent"), "Did you mean 'patient'?"),
        ("assess", ("--groups", "ill"), "--groups ill is the target"),
        ("fit", ("--groups", "a", "--cv", 400), "--groups a: --cv must be from 2 folds"),
        ("fit", ("--groups", "same"), "--groups same: "),
        ("assess", ("--groups", "side"), "--groups side: "),
        (
            "fit",
            ("--groups", "gaps"),
            "--groups gaps has no label in 2 rows of 160, first in ",
        ),
        ("fit", ("--cv", 1), "--cv must be from 2 folds"),
    ],
)
def test_groups_that_cannot_be(looms, visits, one_line, command, options, text):
    table = pd.read_csv(visits)
    table["same"], table["side"] = "x", np.where(table["ill"] == "no", "one", table["patient"])
    table["gaps"] = table["patient"].where(~np.isin(np.arange(160), [3, 7]))
    table.to_csv(visits, index=False)
    one_line(looms(command, visits, "-t", "ill", *options), 2, text)


def test_a_file_without_columns_has_no_groups(fit, tmp_path, one_line):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{k % 2} 1:{k} 2:{k * k}\n" for k in range(1, 30)))
    result = fit(path, "--groups", "1")
    one_line(result, 2, "there is no column '1' for --groups: the file has no named columns")


@pytest.mark.parametrize(
    ("command", "options", "text"),
    [
        ("assess", ("--time", "hour"), "no column 'hour' for --time"),
        ("fit", ("--time", "demand"), "--time demand is the target"),
        ("assess", ("--time", "name"), "--time name holds 'row 0' in data row 1"),
        ("fit", ("--time", "unclear"), "--time unclear has dates in which either number may be"),
        ("assess", ("--time", "same"), "--time same is the same in every row"),
        ("fit", ("--time", "empty"), "--time empty has no time in 2 rows of 90, first in data row"),
        ("assess", ("--time", "day", "--cv", 91), "--time day --cv 91: "),
        ("fit", ("--time", "day", "--gap", 90), "--time day --gap 90: "),
        ("assess", ("--time", "day", "--method", "kfold"), "which --method kfold mixes"),
    ],
)
def test_times_that_cannot_be(looms, demand, one_line, command, options, text):
    table = pd.read_csv(demand)
    table["name"] = [f"row {k}" for k in range(N)]
    table["unclear"] = [f"0{1 + k % 8}/0{1 + k % 9}/2021" for k in range(N)]
    table["same"] = 1
    table["empty"] = np.where(np.isin(np.arange(N), [3, 8]), np.nan, np.arange(N))
    table.to_csv(demand, index=False)
    one_line(looms(command, demand, "-t", "demand", *options), 2, text)
