"""A table by itself at the command line."""

import json

import numpy as np
import pandas as pd
import pytest


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


def test_findings_speak_of_options(looms, clinic):
    result = looms("check", clinic, "-t", "ill", "--drop", "patient", "--report", "page.html")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Classification of 'ill': 120 rows, 3 columns\n")
    assert "- Rows like repeats of others" in result.stdout
    assert "--groups" in result.stdout
    assert "groups=" not in result.stdout
    with open("page.html", encoding="utf-8") as page:
        assert "hold them out together, by --groups" in page.read()
    assert looms("check", clinic, "-t", "ill", "--groups", "patient").stdout.endswith(
        "Nothing was found.\n"
    )


def test_no_finding_speaks_python(looms, clinic):
    frame = pd.read_csv(clinic)
    frame["day"] = pd.date_range("2021-01-01", periods=len(frame)).astype(str)
    pd.concat([frame, frame[::2]]).to_csv("more.csv", index=False)
    frame.to_csv("days.csv", index=False)
    said = looms("check", "days.csv", "-t", "ill").stdout
    said = " ".join((said + looms("check", "more.csv", "-t", "ill").stdout).split())
    assert "hold out windows of time by --time" in said
    assert "hold them out together by --groups COLUMN." in said
    assert "Drop them, or give --duplicates group." in said
    assert "GapKFold" not in said
    assert "as groups" not in said


def test_values_are_those_of_python(looms, clinic):
    import looms as library

    found = json.loads(looms("check", clinic, "-t", "ill", "--json", "-q").stdout)
    expected = library.check(pd.read_csv(clinic), "ill")
    assert {name: found[name] for name in ("classes", "columns", "n_rows", "task")} == {
        name: expected[name] for name in ("classes", "columns", "n_rows", "task")
    }
    assert [one["title"] for one in found["findings"]] == [
        one["title"] for one in expected["findings"]
    ]


def test_rows_without_a_target_are_left_out(looms, clinic):
    frame = pd.read_csv(clinic)
    frame.loc[[2, 5], "ill"] = None
    frame.to_csv("gaps.csv", index=False)
    result = looms("check", "gaps.csv", "-t", "ill")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Classification of 'ill': 118 rows")


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
