"""Rows whose target is missing: an error that names the option, or left out with a note."""

import json

import numpy as np
import pandas as pd
import pytest

from looms.model_files import load_model

OPTION = "--drop-missing-targets"


@pytest.fixture
def gaps(tmp_path):
    """A table of 60 rows without the target in rows 3, 17 and 18; and the table without these."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60).round(3), "b": rng.normal(size=60).round(3)})
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    frame.loc[[2, 16, 17], "y"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.dropna().to_csv(tmp_path / "whole.csv", index=False)
    return frame


@pytest.mark.parametrize("options", [(), ("--n-landmarks", 9)])
@pytest.mark.parametrize("command", ["fit", "assess"])
def test_the_error_names_the_option(looms, gaps, one_line, command, options):
    result = looms(command, "t.csv", "-t", "y", *options)
    text = "'y' is missing in 3 of 60 rows, first in data row 3. Remove the rows whose target is "
    one_line(result, 2, f"{text}not known, or leave them out by {OPTION}")


@pytest.mark.slow
def test_all_commands_number_rows_as_the_file_does(looms, fit, gaps, one_line):
    assert fit("t.csv", "-t", "y", OPTION, "-c", "linear", "-o", "m.skops").exit_code == 0
    diagnose = ("diagnose", "m.skops", "--bootstrap", 0, "--output")
    assert looms(*diagnose, "fit.csv").exit_code == 0
    assert looms(*diagnose, "file.csv", "--data", "t.csv", OPTION).exit_code == 0
    expected = (gaps["y"].dropna().index + 1).tolist()
    for name in ("fit.csv", "file.csv"):
        assert pd.read_csv(name)["row"].tolist() == expected
    shown = json.loads(looms("show", "m.skops", "--json").stdout)["samples"]["rows"]
    labels = gaps["y"].to_dict()
    assert [labels[int(row["name"]) - 1] for row in shown] == [row["target"] for row in shown]
    gaps.assign(y=gaps["a"].where(gaps["y"].notna())).replace(
        {"y": {gaps["a"][20]: "high"}}
    ).to_csv("t.csv", index=False)
    one_line(fit("t.csv", "-t", "y", OPTION), 2, "1 is not: 'high' in data row 21")


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--n-landmarks", 9)])
def test_a_fit_and_a_score_without_them(looms, fit, gaps, one_line, options):
    fitted = fit("t.csv", "-t", "y", OPTION, "-c", "linear", "-o", "m.skops", *options)
    assert fitted.exit_code == 0, fitted.stderr
    assert "Note: t.csv: 3 rows of 60 left out" in fitted.stderr
    expected = fit("whole.csv", "-t", "y", "-c", "linear", "-o", "w.skops", *options)
    assert "left out" not in expected.stderr
    one, other = (load_model(name).model for name in ("m.skops", "w.skops"))
    np.testing.assert_array_equal(one.held_out_.outputs, other.held_out_.outputs)
    one_line(looms("score", "m.skops", "t.csv"), 2, f"or leave them out by {OPTION}")
    scored = looms("score", "m.skops", "t.csv", OPTION, "--json")
    assert "3 rows of 60 left out" in scored.stderr
    assert scored.stdout == looms("score", "m.skops", "whole.csv", "--json").stdout
    assert len(looms("predict", "m.skops", "t.csv").stdout.splitlines()) == 61
    gaps["b"] = gaps["b"].astype(object)
    gaps.loc[40, "b"] = "often"
    gaps.to_csv("t.csv", index=False)
    one_line(looms("score", "m.skops", "t.csv", OPTION), 2, "data row 41 holds 'often'")


def test_without_any_target_it_stays_an_error(looms, gaps, tmp_path, one_line):
    gaps.assign(y=np.nan).to_csv(tmp_path / "t.csv", index=False)
    one_line(looms("fit", "t.csv", "-t", "y", OPTION), 2, "'y' is missing in 60 of 60 rows")
