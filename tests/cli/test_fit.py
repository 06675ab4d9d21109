"""What `looms fit` says of a table and a model, and what it leaves alone."""

import html
import json
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor
from stacks import stacked_regressor
from typer.testing import CliRunner

from looms.cli._app import app
from looms.cli.fit import certified
from looms.diagnostics import row_order
from looms.model_files import load_model

LINEAR = ("-t", "c", "-c", "linear", "-o", "m.skops")


@pytest.fixture
def replicates(tmp_path):
    """A table in which every row stands twice."""
    path = tmp_path / "table.csv"
    rows = [f"{i % 7},{(i * i) % 11},{'x' if i % 3 else 'y'}" for i in range(20)]
    path.write_text("\n".join(["a,b,c", *rows, *rows]) + "\n")
    return path


# The model in its file ---------------------------------------------------------------


@pytest.mark.slow
def test_the_model_is_certified(fit, replicates, monkeypatch):
    assert "outputs of 3 rows agree with refits" in fit(replicates, *LINEAR).stderr
    assert load_model("m.skops").model.certificate_.holds
    monkeypatch.setattr("looms.cli.fit._CHEAP", 1)
    assert "agree with refits" not in fit(replicates, *LINEAR, "-f").stderr
    assert "agree with refits" in fit(replicates, *LINEAR, "-f", "--certify").stderr
    monkeypatch.setattr("looms.fitted._certificate.LARGEST_BOUND", 0.0)
    result = fit(replicates, *LINEAR, "-f", "--certify")
    (line,) = [each for each in result.stderr.splitlines() if "refits" in each]
    assert line.startswith("Warning: Outputs of 3 rows are too ill-conditioned to tell")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
@pytest.mark.slow
def test_a_certificate_that_is_cut_short_leaves_the_model(fit, replicates, monkeypatch, failure):
    def cut_short(*arguments, **options):
        raise failure

    monkeypatch.setattr("looms.estimators._model.Model.certify", cut_short)
    result = fit(replicates, *LINEAR, "--certify")
    assert result.exit_code == (130 if failure is KeyboardInterrupt else 1)
    assert "the model is in m.skops" in result.stderr
    assert not hasattr(load_model("m.skops").model, "certificate_")


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("scored", MemoryError("too many rows to score")),
        ("certified", ValueError("no refit")),
        ("facts_of", KeyboardInterrupt()),
        ("write_page", OSError("full")),
    ],
)
@pytest.mark.slow
def test_the_model_is_in_its_file_before_what_may_fail(fit, replicates, monkeypatch, step, error):
    def failing(*arguments, **options):
        raise error

    monkeypatch.setattr(f"looms.cli.fit.{step}", failing)
    result = fit(replicates, *LINEAR, "--test", replicates, "--report", "page.html")
    assert result.exit_code
    assert "the model is in m.skops\n" in result.stderr
    assert len(load_model("m.skops").model.predict(pd.read_csv(replicates).drop(columns="c")))


@pytest.mark.slow
def test_trees_alone_have_no_certificate():
    rows = np.arange(40.0)[:, None]
    tree = DecisionTreeRegressor(max_depth=2)
    model = stacked_regressor([tree]).fit(rows, (rows[:, 0] > 15) * 1.0)
    for always in (False, True):
        assert certified(SimpleNamespace(last=model), always) is None


@pytest.mark.slow
def test_a_table_goes_through_each_room_in_turn(fit, pets):
    """The rooms that the command line calls, each once."""
    stations = ("cli", "datasets", "tables", "estimators", "model_files", "report")
    walk = []

    def station(frame):
        name = frame.f_globals.get("__name__", "")
        return name.split(".")[1] if name.startswith("looms.") else None

    def follow(frame, event, _):
        room = station(frame) if event == "call" else None
        attribute = frame.f_code.co_name.endswith("_")  # of Python, or fitted
        if room in stations[1:] and not attribute:
            caller = frame.f_back
            while station(caller) not in stations:
                caller = caller.f_back
            if station(caller) == "cli" and walk[-1:] != [room]:
                walk.append(room)

    import_module("looms.cli.fit")
    sys.setprofile(follow)
    try:
        result = fit(pets, "-t", "kind", "-c", "linear", "-o", "m.skops")
    finally:
        sys.setprofile(None)
    assert result.exit_code == 0, result.stderr
    assert walk.pop(0) == "estimators"  # which refuses options before any file is read
    assert tuple(dict.fromkeys(walk)) == ("datasets", "tables", "estimators", *stations[4:])


# The page ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_has_the_notes_on_columns_that_the_fit_prints(fit, tmp_path, monkeypatch):
    asked = []

    def counted(machine):
        asked.append(machine)
        return row_order(machine)

    monkeypatch.setattr("looms.report._cautions.row_order", counted)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=40).round(1), "name": [f"row {k}" for k in range(40)]}
    )
    frame["when"] = pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d")
    frame["c"] = np.where(frame.a + rng.normal(size=40) > 0, "x", "y")
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = fit("t.csv", *LINEAR, "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    assert "the report is in r.html" in result.stderr
    assert len(asked) == 1  # for the page and the terminal
    page = html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    notes = [line.partition(": ")[2] for line in result.stderr.splitlines()]
    columns = [line for line in notes if "'when'" in line or "'name'" in line]
    assert len(columns) == 2
    for line in columns:
        assert f"<dt>Columns</dt><dd>{line[0].upper()}{line[1:]}.</dd>" in page


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_what_is_not_installed_is_said_before_the_fit(fit, pets, one_line, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    result = fit(pets, "-t", "kind", "-o", "m.skops", "--report", "r.html")
    one_line(result, 1, f'{package}, which is not installed: pip install ".[report]"')
    assert not pets.with_name("m.skops").exists()


# Doubts ------------------------------------------------------------------------------


def _rare():
    """20 of 200 rows are of a class that the features rank well."""
    rng = np.random.default_rng(3)
    positive = np.arange(200) < 20
    frame = pd.DataFrame(rng.normal(size=(200, 3)) + 2.0 * positive[:, None], columns=list("abc"))
    frame["ward"] = rng.choice(["north", "south"], 200)
    frame["day"] = pd.date_range("2020-01-01", periods=200).strftime("%d.%m.%Y")
    frame["event"] = np.where(positive, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """A model of that table, fitted once, and only read."""
    folder = tmp_path_factory.mktemp("rare")
    _rare().to_csv(folder / "rare.csv", index=False)
    names = [str(folder / name) for name in ("rare.csv", "rare.skops")]
    options = ["-t", "event", "-c", "linear", "--no-evaluate", "-o"]
    assert CliRunner().invoke(app, ["fit", names[0], *options, names[1]]).exit_code == 0
    return names[1]


def said(result):
    assert result.exit_code == 0, result.stderr
    lines = result.stderr.splitlines()
    return [one for one in lines if "read as a date" not in one and not one.startswith("Cand")]


@pytest.mark.slow
def test_a_rare_class_is_warned_of_with_the_remedy_and_shown(looms, fit):
    frame = _rare().drop(columns="day")
    frame.assign(a=frame.a * 0.3, b=0.0).to_csv("rare.csv", index=False)
    given = ("rare.csv", "-t", "event", "-c", "linear", "-f")
    result = fit(*given, "--calibration", "none", "--report", "page.html")
    (line,) = [line for line in said(result) if line.startswith("Warning: ")]
    remedy = "Consider --threshold balanced, --class-weight balanced or another kernel (--candid"
    assert remedy in line
    page = Path("page.html").read_text(encoding="utf-8")
    assert "--class-weight balanced" in page
    assert "class_weight=" not in page
    values = looms("show", "rare.looms.skops", "--json").stdout
    assert r"\u206" not in values
    texts = [one["text"] for one in json.loads(values)["cautions"]]
    assert any("'yes'" in text for text in texts)
    shown = looms("show", "rare.looms.skops").stdout
    assert "Confusion, leave-one-out" in shown
    assert "Confusion, leave-one-out" in result.stdout
    for options, first in (((), "log loss"), (("--threshold", "balanced"), "accuracy")):
        result = fit(*given, *options)
        assert options == () or not [line for line in said(result) if line.startswith("Warning: ")]
        (head,) = (line for line in result.stdout.splitlines() if "balanced accuracy" in line)
        assert head.strip().startswith(first)


@pytest.mark.slow
def test_an_option_of_the_search_that_met_a_bound_is_said_once(fit, tmp_path):
    _rare().to_csv(tmp_path / "t.csv", index=False)
    result = fit("t.csv", "-t", "event", "--criterion", "wmw", "--max-iter", 1)
    assert result.stderr.count("--max-iter") == 1
    assert "max_iter" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "score"])
def test_rows_unlike_those_of_training_are_counted(looms, rare, command):
    frame = _rare()
    new = frame.head(20).copy()
    new["a"] += 100
    new.loc[:4, "b"] = -99.5
    new.loc[2, "ward"] = "west"
    new.to_csv("new.csv", index=False)
    low, high = frame.a.min(), frame.a.max()
    assert said(looms(command, rare, "new.csv")) == [
        f"Warning: in all of 20 rows 'a' is far outside its training range, {low:.6g} to "
        f"{high:.6g}, furthest {new.a.max():.6g}; predictions there are extrapolated",
        f"Note: in 5 of 20 rows 'b' is far outside its training range, {frame.b.min():.6g} to "
        f"{frame.b.max():.6g}, furthest -99.5; predictions there are extrapolated",
        "Note: in 1 of 20 rows 'ward' has a value that no training row has, first 'west': it "
        "counts as rare, or as none",
    ]


@pytest.mark.slow
def test_notes_on_new_rows(looms, rare):
    frame = _rare()

    def told(rows, command="predict", *options):
        rows.to_csv("new.csv", index=False)
        return said(looms(command, rare, "new.csv", *options))

    assert told(frame) == []
    (line,) = told(frame.head(1).assign(a=50, c=60))
    assert line.startswith("Note: in 1 of 1 row 'a' is far outside its training range, ")
    assert ", furthest 50 and 'c' is far outside its training range, " in line
    (line,) = told(frame.head(9).assign(ward="east"), "predict", "-q")
    assert line.startswith("Warning: in all of 9 rows 'ward' has a value that no training row has")
    assert told(frame.head(9).assign(a=np.nan)) == [
        "Note: no row has a value of 'a': typical values are used instead"
    ]
    (line,) = told(frame.assign(day="06.05.2031"))
    assert "range, 2020-01-01 to 2020-07-18, furthest 2031-05-06;" in line
    other = frame.head(20).copy()
    other["c"] += 1e-3 * np.arange(20)  # the first row stays as it is
    (line,) = told(other, "score")
    assert line.startswith("Note: in 1 row of 20 all features equal those of a training")
    extra = {f"extra{j}": 0 for j in range(12)}
    (line,) = told(frame.assign(**extra))
    assert line.startswith("Note: 12 columns ignored, unknown to the model: 'extra0")
    assert line.endswith("'extra9' and 2 more")


@pytest.mark.slow
def test_copies_are_pointed_out_where_they_are_no_accident(fit, replicates):
    assert "copies" not in fit(replicates, *LINEAR).stderr  # of few discrete values
    rows = [f"{i * i / 7},{i * 7 % 20 / 11},{'x' if i % 3 else 'y'}" for i in range(20)]
    Path("fine.csv").write_text("\n".join(["a,b,c", *rows, *rows[:9]]) + "\n")
    result = fit("fine.csv", *LINEAR, "-f")
    assert result.stderr.count("9 of 29") == 1
    assert "--duplicates group" in result.stderr
    result = fit("fine.csv", *LINEAR, "-f", "--duplicates", "group")
    assert "of 29" not in result.stderr
    assert load_model("m.skops").model.units_.grouped
