"""``python -m papers``: running parts of plans, tables beside the papers', refusals."""

import os
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from papers.__main__ import app

pytestmark = pytest.mark.slow


@pytest.fixture
def papers(folder, monkeypatch):
    """Run ``python -m papers`` with these arguments beside the folder `sets`, which has hiva."""
    monkeypatch.delenv("LOOMS_DATA", raising=False)
    monkeypatch.chdir(folder.parent)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


HIVA = ("--data", "hiva", "--folder", "sets")
PART = ("--only", "criterion=press", "--only", "weighting=none", "--only", "kernel=linear,rbf")


def rows(markdown):
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return pd.DataFrame(body, columns=head)


def test_parts_resume_and_tables_only_read(papers):
    papers("run", *HIVA, *PART, "-n", 2, "--store", "kept")
    again = papers("run", *HIVA, *PART, "-n", 3, "--store", "kept")
    shown = rows(again.stdout)
    assert shown["experiment"].tolist() == ["press-linear", "press-rbf"]
    assert shown["paper"].tolist() == ["0.2727", "0.2530"]
    assert again.stderr.count("2 of 3 splits were in the store") == 2
    assert again.stderr.count("Split ") == 2
    table = papers("table", *HIVA, "-n", 100, "--store", "kept")
    assert table.stdout == again.stdout
    assert "Split" not in table.stderr
    assert "2 of the 70 experiments" in table.stderr


def test_choices_have_a_validation_rate(papers):
    arguments = (*HIVA, "--only", "1,3,4", "-n", 3, "--store", "kept")
    papers("run", *arguments)
    read = papers("table", *arguments, "--plan", "table5")
    assert set(rows(read.stdout)["ber_valid"][:3]) == {""}
    assert "validation part" in read.stderr
    run = papers("run", *arguments, "--plan", "table5")
    assert run.stderr.count("validation part of split") == 3
    rates = rows(run.stdout)["ber_valid"][:3].astype(float)
    assert rates.between(0, 1).all()
    guesses = ("--held-out", 3, "-n", 2, "--plan", "table6")
    table6 = rows(papers("run", *arguments[:-4], *guesses).stdout)
    of_loo = table6[(table6["guess_by"] == "loo") & table6["held_out"].str.isdigit()]
    assert of_loo["ber_valid"].astype(float).tolist() == rates.tolist()


@pytest.mark.parametrize("plan", ["table6", "game"])
def test_plans_with_guesses(papers, plan):
    arguments = (*HIVA, "--only", "press-linear,press-rbf", "-n", 2, "--held-out", 2, "-p", plan)
    run = papers("run", *arguments, "--store", "kept", "--jobs", 2)
    assert run.exit_code == 0, run.stderr
    table = rows(run.stdout)
    assert table["held_out"].tolist().count("mean") == {"table6": 2, "game": 3}[plan]
    assert table["held_out"].tolist().count("paper") == {"table6": 2, "game": 3}[plan]
    read = papers("table", *arguments, "--store", "kept")
    assert read.stdout == run.stdout


def test_entries_beyond_the_plan_by_another_optimizer_over_several_sets(papers):
    names = ("press-normalized_cubic-training", "press-polynomial4")
    arguments = (*HIVA, "--rows", 50, "-n", 2, "--store", "kept", "--optimizer", "nelder-mead")
    run = papers("run", *arguments, "--only", ",".join(names))
    assert "hiva: 50 rows" in run.stderr
    table = ("table", *arguments, "--only", ",".join(names), "--form", "csv", "-o")
    assert papers(*table, "ada.csv").exit_code == 0
    assert papers(*table, "nova.csv").exit_code == 0
    overall = papers("overall", "ada.csv", "nova.csv")
    assert overall.exit_code == 0, overall.stderr
    figures = rows(overall.stdout)
    assert figures["experiment"].tolist() == list(names)
    assert figures["ada"].tolist() == figures["nova"].tolist() == figures["mean"].tolist()
    assert list(figures)[-1] == "rank"


def test_files_and_plots(papers):
    pytest.importorskip("matplotlib")
    papers("run", *HIVA, *PART, "-n", 2, "--store", "kept")
    options = ("--store", "kept", "--form", "csv", "-o", "table.csv", "--plot", "plot.svg")
    result = papers("table", *HIVA, *PART, *options)
    assert result.exit_code == 0, result.stderr
    with open("table.csv") as file:
        assert re.fullmatch(r"# python .*(; commit [0-9a-f]{7}\+?)?\n", file.readline())
    table = pd.read_csv("table.csv", index_col="experiment", comment="#")
    assert table.loc["press-rbf", "paper"] == 0.2530
    with open("plot.svg") as file:
        assert "<svg" in file.read()
    assert "table.csv" in papers("table", *HIVA, *PART, *options).stderr
    assert papers("table", *HIVA, *PART, *options, "--force").exit_code == 0
    refused = papers("table", *HIVA, "--store", "kept", "--plot", "plot.txt")
    assert refused.exit_code == 2
    assert not os.path.exists("plot.txt")


def test_a_file_of_more_classes(papers):
    rng = np.random.default_rng(0)
    digit = np.arange(60) % 4
    frame = pd.DataFrame({"a": digit % 2 + rng.normal(0, 0.3, 60), "digit": digit})
    frame.to_csv("digits.csv", index=False)
    arguments = ("--data", "digits.csv", "--target", "digit", "--positive", "1,3")
    result = papers("run", *arguments, "--only", "1", "-n", 2)
    assert "60 rows, 30 of them positive (1, 3), 1 columns, prepared as table" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("run", *HIVA, "--only", "kernel=cosine"), "cosine"),
        (("run", *HIVA, "--rows", 60), "--rows 60"),
        (("overall", "a/ada.csv", "b/ada.csv"), "ada"),
        (("run", *HIVA, "--target", "y"), "--target"),
        (("run", "--data", "ada", "--folder", "nowhere"), "nowhere"),
        (("run", *HIVA, "--store", "sets"), "sets"),
        (("table", *HIVA, "--store", "nowhere"), "nowhere"),
        (("table", *HIVA, "--store", "sets"), "none of these experiments"),
        (("table", *HIVA, "--store", "sets", "-o", "no/a.csv"), "no"),
    ],
)
def test_refusals(papers, arguments, named):
    result = papers(*arguments)
    assert result.exit_code == 2
    assert named in result.stderr.splitlines()[-1]
    assert os.listdir() == ["sets"]
