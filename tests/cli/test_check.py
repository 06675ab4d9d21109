"""A table by itself at the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from looms import check


@pytest.fixture
def clinic(tmp_path):
    """Visits of patients, whose repeats a held-out row leaves in the training set."""
    rng = np.random.default_rng(0)
    patient = np.arange(30).repeat(4)
    rows = rng.normal(size=(30, 3))[patient] + 0.01 * rng.normal(size=(120, 3))
    frame = pd.DataFrame(rows, columns=["crp", "age", "dose"])
    frame["patient"] = [f"P{k}" for k in patient]
    frame["ill"] = np.where(rng.random(30)[patient] < 0.5, "yes", "no")
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "clinic.csv", index=False)
    return "clinic.csv"


@pytest.mark.slow
def test_findings_are_those_of_python_and_speak_of_options(looms, clinic):
    frame = pd.read_csv(clinic)
    frame["day"] = pd.date_range("2021-01-01", periods=len(frame)).astype(str)
    frame.to_csv("days.csv", index=False)
    pd.concat([frame, frame[::2]]).to_csv("more.csv", index=False)
    result = looms("check", "days.csv", "-t", "ill", "--report", "page.html")
    said = " ".join((result.stdout + looms("check", "more.csv", "-t", "ill").stdout).split())
    for option in ("--time", "--groups patient", "--duplicates group"):
        assert option in said
    assert not {"GapKFold", "groups="} & {*said.split()}
    with open("page.html", encoding="utf-8") as page:
        assert "--groups" in page.read()
    found = json.loads(looms("check", "more.csv", "-t", "ill", "--json", "-q").stdout)
    expected = check(pd.read_csv("more.csv"), "ill")
    for name in ("classes", "columns", "n_rows", "task"):
        assert found[name] == expected[name]
    titles = [[one["title"] for one in each["findings"]] for each in (found, expected)]
    assert titles[0] == titles[1] != []


@pytest.mark.slow
def test_options_of_the_rows(looms, clinic):
    given = ("check", clinic, "-t", "ill")
    assert looms(*given, "--groups", "patient").stdout.endswith("Nothing was found.\n")
    assert "Rows like repeats of others" in looms(*given, "--drop", "patient").stdout
    frame = pd.read_csv(clinic)
    frame.loc[[2, 5], "ill"] = None
    frame.to_csv(clinic, index=False)
    assert looms(*given).stdout.startswith("Classification of 'ill': 118 rows")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-t", "il"), "'il'"),
        ((), "there is no target"),
        (("-t", "ill", "--groups", "patients"), "there is no column 'patients' for --groups"),
        (("-t", "ill", "--drop", "weight"), "there is no column 'weight' for --drop"),
        (("-t", "ill", "--task", "regression"), "must be numbers"),
        (("-t", "ill", "--report", "clinic.csv"), "is an input and would be lost"),
    ],
)
def test_refusals(looms, clinic, one_line, options, text):
    one_line(looms("check", clinic, *options), 2, text)
