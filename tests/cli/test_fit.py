"""What `looms fit` says of a table, and what it leaves alone."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor
from stacks import stacked_regressor

from looms._scores import score_with_error
from looms._words import estimate_text, score_text
from looms.cli.fit import certified
from looms.model_files import load_model, save_model


@pytest.fixture
def replicates(tmp_path):
    """A table in which every row stands twice."""
    path = tmp_path / "table.csv"
    rows = [f"{i % 7},{(i * i) % 11},{'x' if i % 3 else 'y'}" for i in range(20)]
    path.write_text("\n".join(["a,b,c", *rows, *rows]) + "\n")
    return path


def test_the_input_is_never_overwritten(fit, replicates, one_line):
    before = replicates.read_bytes()
    result = fit(replicates, "--target", "c", "--output", replicates, "--force")
    one_line(result, 2, "is an input and would be lost")
    assert replicates.read_bytes() == before


@pytest.mark.slow
def test_predictions_overwrite_neither_model_nor_table(looms, fit, replicates, one_line):
    assert fit(replicates, "--target", "c", "-o", "m.skops").exit_code == 0
    for name in ("m.skops", replicates):
        result = looms("predict", "m.skops", replicates, "-o", name, "--force")
        one_line(result, 2, "is an input and would be lost")
    load_model("m.skops")


@pytest.mark.slow
def test_copies_are_pointed_out_where_they_are_no_accident(fit, replicates):
    result = fit(replicates, "--target", "c", "-o", "m.skops")
    assert "copies" not in result.stderr  # of few discrete values
    rows = [f"{i * i / 7},{i * 7 % 20 / 11},{'x' if i % 3 else 'y'}" for i in range(20)]
    Path("fine.csv").write_text("\n".join(["a,b,c", *rows, *rows[:9]]) + "\n")
    result = fit("fine.csv", "--target", "c", "-o", "fine.skops")
    assert result.stderr.count("9 of 29") == 1
    assert "--duplicates group" in result.stderr
    result = fit("fine.csv", "-t", "c", "--duplicates", "group", "-o", "together.skops")
    assert "of 29" not in result.stderr
    assert load_model("together.skops").model.units_.grouped


@pytest.mark.slow
def test_the_model_is_certified(fit, replicates, monkeypatch):
    result = fit(replicates, "-t", "c", "-o", "m.skops")
    assert "outputs of 3 rows agree with refits" in result.stderr
    assert load_model("m.skops").model.certificate_.holds
    monkeypatch.setattr("looms.cli.fit._CHEAP", 30)
    result = fit(replicates, "-t", "c", "-o", "two.skops")
    assert "agree with refits" not in result.stderr
    result = fit(replicates, "-t", "c", "-o", "three.skops", "--certify")
    assert "agree with refits" in result.stderr


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
@pytest.mark.slow
def test_a_certificate_that_is_cut_short_leaves_the_model(fit, replicates, monkeypatch, failure):
    def cut_short(*arguments, **options):
        raise failure

    monkeypatch.setattr("looms.estimators._model.Model.certify", cut_short)
    result = fit(replicates, "-t", "c", "-o", "m.skops", "--certify")
    assert result.exit_code == (130 if failure is KeyboardInterrupt else 1)
    assert "the model is in m.skops, without a certificate" in result.stderr
    assert not hasattr(load_model("m.skops").model, "certificate_")


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.slow
def test_an_interrupted_fit_says_if_its_model_is_in_the_file(fit, replicates, monkeypatch, written):
    def interrupted(*arguments):
        if written:
            save_model(*arguments)
        raise KeyboardInterrupt

    assert fit(replicates, "-t", "c", "-c", "linear", "-o", "m.skops").exit_code == 0
    monkeypatch.setattr("looms.cli.fit.save_model", interrupted)
    result = fit(replicates, "-t", "c", "-c", "linear", "-o", "m.skops", "--force")
    assert result.exit_code == 130
    assert ("the model is in m.skops" in result.stderr) == written
    assert result.stderr.endswith("Interrupted.\n")


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("scored", MemoryError("too many rows to score")),
        ("certified", ValueError("no refit")),
        ("facts_of", KeyError("a fact")),
        ("write_page", OSError("full")),
    ],
)
@pytest.mark.slow
def test_the_model_is_in_its_file_before_what_may_fail(fit, replicates, monkeypatch, step, error):
    def failing(*arguments, **options):
        raise error

    monkeypatch.setattr(f"looms.cli.fit.{step}", failing)
    more = "--test", replicates, "--report", "page.html"
    result = fit(replicates, "-t", "c", "-c", "linear", "-o", "m.skops", *more)
    assert result.exit_code
    assert "the model is in m.skops\n" in result.stderr
    assert len(load_model("m.skops").model.predict(pd.read_csv(replicates).drop(columns="c")))


@pytest.mark.slow
def test_trees_alone_have_no_certificate():
    rows = np.arange(40.0)[:, None]
    tree = DecisionTreeRegressor(max_depth=2)
    model = stacked_regressor([tree]).fit(rows, (rows[:, 0] > 15) * 1.0)
    for always in (False, True):
        assert certified(SimpleNamespace(last=model), None, always) is None


@pytest.mark.slow
def test_a_machine_without_certain_digits_is_warned_of(fit, replicates, monkeypatch):
    monkeypatch.setattr("looms.fitted._certificate.LARGEST_BOUND", 0.0)
    result = fit(replicates, "-t", "c", "-o", "m.skops")
    assert result.exit_code == 0
    (line,) = [each for each in result.stderr.splitlines() if "refits" in each]
    assert line.startswith("Warning: Outputs of 3 rows are too ill-conditioned to tell")


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0376, "0.0376"),
        (0.0, "0.0000"),
        (4.7e-8, "4.7e-08"),
        (391.9773, "392.0"),
        (-12180.7, "-12181"),
        (11031258.48, "1.103e+07"),
    ],
)
def test_scores_have_digits_in_any_units(value, text):
    assert score_text(value) == text


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (440.53, 4740.2, "441"),
        (1.9e-17, 0.25, "0.0000"),
        (-3e-9, 0.25, "0.0000"),
        (-6.78, 4011.0, "-7"),
        (3.21, 52.0, "3.21"),
    ],
)
def test_what_belongs_to_a_score_has_its_decimals(value, of, text):
    assert score_text(value, of) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (4740.2, 440.5, "4740 ± 440"),
        (10161.3, 868.0, "10161 ± 870"),
        (0.5479, 0.0769, "0.5479 ± 0.077"),
        (3e-12, 2e-13, "3e-12 ± 2e-13"),
        (0.5, float("nan"), "0.5"),
        (float("nan"), 1.0, "–"),
    ],
)
def test_standard_errors_have_two_digits_and_no_exponents(value, error, text):
    assert estimate_text(value, error) == text


def test_shares_and_r2_have_at_most_four_decimals():
    assert score_with_error("r2", -0.034196, 1.9e-17) == "-0.0342 ± 0"
    assert score_with_error("rmse", 0.034196, 1.9e-17) == "0.0342 ± 1.9e-17"


@pytest.mark.slow
def test_scores_of_rare_events_begin_with_those_of_probabilities(fit):
    rng = np.random.default_rng(0)
    ill = rng.permutation(200) < 34
    table = pd.DataFrame({"x": rng.normal(size=200) + 1.2 * ill, "ill": np.where(ill, "yes", "no")})
    table.to_csv("rare.csv", index=False)
    for options, first in (((), "log loss"), (("--threshold", "balanced"), "accuracy")):
        result = fit("rare.csv", "-t", "ill", "-c", "linear", "-o", "m.skops", "--force", *options)
        (head,) = (line for line in result.stdout.splitlines() if "balanced accuracy" in line)
        assert head.strip().startswith(first)
        assert "no better than the baseline" not in result.stderr
