"""Rows in order of time: windows and gaps, from the options to the scores."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from looms import KernelRegressor
from looms.cli._options import Columns, Source
from looms.cli._prepare import prepare_file
from looms.cli._request import ModelRequest
from looms.folds import GapKFold
from looms.model_files import load_model

N = 90


def wandering(rng, n):
    """A stationary series of unit variance and autocorrelation 0.95."""
    steps = rng.normal(size=n)
    for k in range(1, n):
        steps[k] = 0.95 * steps[k - 1] + np.sqrt(1 - 0.95**2) * steps[k]
    return steps


@pytest.fixture
def demand(tmp_path):
    """Days in no order, of demand that wanders by itself and of features that do so too."""
    rng = np.random.default_rng(5)
    columns = {name: wandering(rng, N) for name in ("wind", "price", "demand")}
    frame = pd.DataFrame({"day": pd.date_range("2021-03-01", periods=N).astype(str), **columns})
    path = tmp_path / "demand.csv"
    frame.sample(frac=1, random_state=2).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_a_fit_in_time_is_that_of_the_estimator_on_sorted_rows(looms, fit, demand):
    assert fit(demand, "-t", "demand", "--drop", "day", "-o", "p.skops").exit_code == 0
    options = ("--time", "day", "--gap", 5, "-o", "m.skops", "--report", "r.html")
    result = fit(demand, "-t", "demand", *options)
    assert result.exit_code == 0, result.stderr
    assert "looms assess --time gives unbiased ones" in result.stderr
    saved = load_model("m.skops")
    assert list(saved.metadata["columns"]) == ["wind", "price"]
    assert "--candidates rbf --drop day --no-evaluate\n" in looms("show", "p.skops").stdout
    asked = "--candidates rbf --time day --gap 5 --no-evaluate"
    assert f"Options: {asked}\n" in looms("show", "m.skops").stdout
    command = f"looms fit {demand.name} --target demand {asked}"
    with open("r.html", encoding="utf-8") as page:
        assert f"<dt>Command</dt><dd><bdi>{command}</bdi>" in page.read()
    table = pd.read_csv(demand).sort_values("day")
    X = saved.model.preprocessor_.transform(table[["wind", "price"]])
    machine = KernelRegressor(cv=GapKFold(10, gap=5)).fit(X, table["demand"])
    np.testing.assert_array_equal(saved.model.units_.codes, machine.units_.codes)
    scores = machine.evaluate(nested=False)
    assert dict(saved.model.evaluate(nested=False)) == pytest.approx(dict(scores))
    assert f"{scores['rmse']:.4f}" in result.stdout
    # There is no relation.
    apart = load_model("p.skops").model.evaluate(nested=False)
    assert scores["r2"] < 0 < 0.3 < apart["r2"]
    assert looms("predict", "m.skops", demand).stderr == ""
    covered = looms("predict", "m.skops", demand, "--confidence-level", 0.9)
    assert "--confidence-level comes from single held-out rows" in covered.stderr


@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M", "%d.%m.%Y", "%j"])
@pytest.mark.slow
def test_times_are_dates_or_numbers_however_they_are_written(looms, fit, demand, written):
    table = pd.read_csv(demand)
    in_order = table.sort_values("day").demand.tolist()
    table["day"] = pd.to_datetime(table["day"]).dt.strftime(written)
    table.to_csv(demand, index=False)
    result = fit(demand, "-t", "demand", "--time", "day", "--cv", 4, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    machine = load_model("m.skops").model
    assert machine.cv.n_splits == 4
    assert machine.loo_.y.tolist() == in_order


def test_rows_keep_their_numbers_in_the_file(demand):
    request = ModelRequest(groups="price", time="day")
    prepared = prepare_file(Source(file=demand), Columns("demand"), request)
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
    frame = pd.DataFrame({"ns": times, "x": order * 1.0, "y": order + 0.5})
    if kind == "dates":
        frame["ns"] = pd.to_datetime(frame["ns"])
    frame.to_parquet(path)
    prepared = prepare_file(Source(file=path), Columns("y"), ModelRequest(time="ns"))
    assert prepared.groups is None
    assert "held out together" not in capsys.readouterr().err
    np.testing.assert_array_equal(prepared.target.y, np.arange(N) + 0.5)


@pytest.mark.slow
def test_rows_of_one_time_are_held_out_together(looms, fit, demand):
    table = pd.read_csv(demand)
    table["day"] = table["day"].str[:7]
    table["day"] = table["day"].map({"2021-03": 1, "2021-04": 2.5, "2021-05": 3})
    table.to_csv(demand, index=False)
    result = fit(demand, "-t", "demand", "--time", "day", "--cv", 3, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert "--time day: rows of one time are held out together" in result.stderr
    machine = load_model("m.skops").model
    assert np.bincount(machine.units_.clusters).tolist() == [31, 30, 29]
    assert "There are only 3 windows of time" in result.stderr


@pytest.mark.slow
def test_a_page_calls_times_as_the_file_does(looms, fit, demand):
    table = pd.read_csv(demand)
    table["day"] = pd.to_datetime(table["day"]).dt.to_period("W").dt.start_time.dt.date
    table.to_csv(demand, index=False)
    options = ("--time", "day", "--cv", 3, "-c", "linear", "--report", "r.html")
    assert fit(demand, "-t", "demand", *options).exit_code == 0
    page = Path("r.html").read_text()
    assert re.search(r"The most influential of 1\d times: the effect of leaving each out", page)
    assert re.search(r"<bdi>2021-0\d-\d\d</bdi>", page)
    assert "group" not in re.sub("(?s)<style>.*</style>|<script>.*</script>|<[^>]*>", "", page)


@pytest.mark.slow
def test_an_assessment_in_time_tests_later_rows(looms, fit, demand):
    options = ("--time", "day", "--gap", 3, "-o", "s.csv")
    result = looms("assess", demand, "-t", "demand", *options)
    assert result.exit_code == 0, result.stderr
    assert "5 forward splits" in result.stdout
    table = pd.read_csv("s.csv")
    assert table["n_test"].tolist() == [9] * 5
    assert table["n_train"].tolist() == [N - 9 * k - 3 for k in range(1, 6)]


@pytest.mark.parametrize(
    ("command", "options", "text"),
    [
        (
            "assess",
            ("--time", "hour"),
            "no column 'hour' for --time besides the target ('day', 'wind'",
        ),
        ("fit", ("--time", "demand"), "--time demand is the target; name another column"),
        (
            "assess",
            ("--time", "name"),
            "--time name holds 'row 0' in data row 1, which is neither a number",
        ),
        (
            "fit",
            ("--time", "unclear"),
            "--time unclear has dates in which either number may be the day",
        ),
        (
            "assess",
            ("--time", "same"),
            "--time same is the same in every row; write dates as 2021-12-31",
        ),
        (
            "fit",
            ("--time", "empty"),
            "--time empty has no time in 2 rows of 90, first in data row 4;",
        ),
        ("assess", ("--time", "day", "--cv", 91), "--time day --cv 91: n_splits must be from 2 to"),
        ("fit", ("--time", "day", "--gap", 90), "--time day --gap 90: The window from"),
    ],
)
def test_what_cannot_be_is_refused_by_its_option(looms, demand, one_line, command, options, text):
    table = pd.read_csv(demand)
    table["name"] = [f"row {k}" for k in range(N)]
    table["unclear"] = [f"0{1 + k % 8}/0{1 + k % 9}/2021" for k in range(N)]
    table["same"] = 1
    table["empty"] = np.where(np.isin(np.arange(N), [3, 8]), np.nan, np.arange(N))
    table.to_csv(demand, index=False)
    one_line(looms(command, demand, "-t", "demand", *options), 2, text)


@pytest.mark.slow
def test_the_choice_is_repeated_without_each_window(looms, demand):
    options = ("--time", "day", "--gap", 2, "--cv", 4, "-c", "linear", "-o", "m.skops")
    result = looms("fit", demand, "-t", "demand", *options)
    assert result.exit_code == 0, result.stderr
    assert "everything was repeated without each of 4 windows of time: the" in result.stderr
    assert "nested 4-fold by windows of time " in result.stdout
    model = load_model("m.skops").model
    scores = model._scores.get("nested")
    np.testing.assert_array_equal(scores._nested.units.codes, model.units_.codes)
    assert f"{scores['rmse']:.4f}" in result.stdout


def test_an_assessment_in_time_has_its_own_method(looms, demand, one_line):
    result = looms("assess", demand, "-t", "demand", "--time", "day", "--method", "kfold")
    one_line(result, 2, "--time tests rows after the training rows, which --method kfold mixes")
