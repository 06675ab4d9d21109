"""``python -m papers``: running parts of plans, tables beside the papers', refusals."""

import os
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import looms
from papers.__main__ import app

pytestmark = pytest.mark.slow


@pytest.fixture
def papers(tmp_path, monkeypatch):
    """Run ``python -m papers`` with these arguments in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """A folder with a small set in the challenge's format, called hiva."""
    monkeypatch.delenv("LOOMS_DATA", raising=False)
    folder = tmp_path / "sets"
    folder.mkdir()
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.4, 1, -1)
    np.savetxt(folder / "hiva_train.data", rng.normal(size=(60, 3)) + 0.7 * y[:, None], fmt="%.3f")
    np.savetxt(folder / "hiva_train.labels", y, fmt="%d")
    return folder


HIVA = ("--data", "hiva", "--folder", "sets")
PART = ("--only", "criterion=press", "--only", "weighting=none", "--only", "kernel=linear,rbf")


def rows(markdown):
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return pd.DataFrame(body, columns=head)


def test_run_prints_the_table(papers, sets):
    result = papers("run", *HIVA, *PART, "-n", 3)
    assert result.exit_code == 0, result.stderr
    table = rows(result.stdout)
    assert table["experiment"].tolist() == ["press-linear", "press-rbf"]
    assert table["paper"].tolist() == ["0.2727", "0.2530"]
    assert "hiva: 60 rows" in result.stderr
    assert "prepared as hiva; 2 experiments" in result.stderr
    assert "Experiment 2 of 2: press-rbf" in result.stderr
    assert len(re.findall(r"^Split \d: ber [\d.]+, own [\d.]+; auc", result.stderr, re.M)) == 6
    assert "false_alarm" not in result.stderr
    assert os.listdir() == ["sets"]


def test_an_experiment_that_always_raises_is_in_the_table(papers, sets, monkeypatch):
    fit = looms.KernelClassifier.fit

    def not_rbf(self, X, y, sample_weight=None):
        if self.kernel == "rbf":
            raise FloatingPointError("no luck")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(looms.KernelClassifier, "fit", not_rbf)
    run = papers("run", *HIVA, *PART, "-n", 3, "--store", "kept")
    assert run.exit_code == 0, run.stderr
    assert "Note: press-rbf: 3 of 3 splits raised; split 0: FloatingPointError" in run.stderr
    shown = rows(run.stdout).set_index("experiment")
    assert shown["splits"].to_dict() == {"press-linear": "3", "press-rbf": "0"}
    assert shown["failure"].to_dict()["press-rbf"] == "FloatingPointError: no luck"
    table = papers("table", *HIVA, *PART, "-n", 3, "--store", "kept")
    assert table.exit_code == 0, table.stderr
    assert table.stdout == run.stdout
    assert "in the store" not in table.stderr
    more = papers("table", *HIVA, *PART, "-n", 5, "--store", "kept")
    assert "2 of 2 experiments have fewer than 5 splits in the store, at least 3" in more.stderr
    chosen = papers("run", *HIVA, *PART, "-n", 3, "--store", "kept", "-p", "table5")
    assert chosen.exit_code == 0, chosen.stderr
    assert "press-linear" in chosen.stdout
    assert "press-rbf" not in chosen.stdout


def test_parts_resume_and_tables_only_read(papers, sets):
    papers("run", *HIVA, *PART, "-n", 2, "--store", "kept")
    again = papers("run", *HIVA, *PART, "-n", 3, "--store", "kept")
    assert again.stderr.count("2 of 3 splits were in the store") == 2
    assert again.stderr.count("Split ") == 2
    table = papers("table", *HIVA, "-n", 100, "--store", "kept")
    assert table.exit_code == 0, table.stderr
    assert table.stdout == again.stdout
    assert "Split" not in table.stderr
    assert "Note: the store has 2 of the 70 experiments" in table.stderr


def test_choices_have_a_validation_rate(papers, sets):
    arguments = (*HIVA, "--only", "1,3,4", "-n", 3, "--store", "kept")
    papers("run", *arguments)
    read = papers("table", *arguments, "--plan", "table5")
    assert set(rows(read.stdout)["ber_valid"][:3]) == {""}
    assert "Note: the store lacks the validation part of some choices" in read.stderr
    run = papers("run", *arguments, "--plan", "table5")
    assert run.stderr.count("validation part of split") == 3
    rates = rows(run.stdout)["ber_valid"][:3].astype(float)
    assert rates.between(0, 1).all()
    guesses = ("--held-out", 3, "-n", 2, "--plan", "table6")
    table6 = rows(papers("run", *arguments[:-4], *guesses).stdout)
    of_loo = table6[(table6["guess_by"] == "loo") & table6["held_out"].str.isdigit()]
    assert of_loo["ber_valid"].astype(float).tolist() == rates.tolist()


@pytest.mark.parametrize("plan", ["table6", "game"])
def test_plans_with_guesses(papers, sets, plan):
    arguments = (*HIVA, "--only", "press-linear,press-rbf", "-n", 2, "--held-out", 2, "-p", plan)
    run = papers("run", *arguments, "--store", "kept", "--jobs", 2)
    assert run.exit_code == 0, run.stderr
    assert "Experiment 6 of 6: press-rbf, guess for tenth 2" in run.stderr
    table = rows(run.stdout)
    assert table["held_out"].tolist().count("mean") == {"table6": 2, "game": 3}[plan]
    assert table["held_out"].tolist().count("paper") == {"table6": 2, "game": 3}[plan]
    read = papers("table", *arguments, "--store", "kept")
    assert read.stdout == run.stdout


def test_entries_beyond_the_plan_by_another_optimizer_over_several_sets(papers, sets):
    names = ("press-normalized_cubic-training", "press-polynomial4")
    arguments = (*HIVA, "--rows", 50, "-n", 2, "--store", "kept", "--optimizer", "nelder-mead")
    run = papers("run", *arguments, "--only", ",".join(names))
    assert run.exit_code == 0, run.stderr
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
    lbfgs = papers("table", *arguments[:-2], "--only", ",".join(names))
    assert "the store has none of these experiments" in lbfgs.stderr


def test_files_and_plots(papers, sets):
    pytest.importorskip("matplotlib")
    papers("run", *HIVA, *PART, "-n", 2, "--store", "kept")
    options = ("--store", "kept", "--form", "csv", "-o", "table.csv", "--plot", "plot.svg")
    result = papers("table", *HIVA, *PART, *options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    with open("table.csv") as file:
        assert re.fullmatch(r"# python .*(; commit [0-9a-f]{7}\+?)?\n", file.readline())
    table = pd.read_csv("table.csv", index_col="experiment", comment="#")
    assert table.loc["press-rbf", "paper"] == 0.2530
    with open("plot.svg") as file:
        assert "<svg" in file.read()
    again = papers("table", *HIVA, *PART, *options)
    assert "table.csv exists; use --force" in again.stderr
    assert papers("table", *HIVA, *PART, *options, "--force").exit_code == 0


def test_a_file_of_more_classes(papers, tmp_path):
    rng = np.random.default_rng(0)
    digit = np.arange(60) % 4
    frame = pd.DataFrame({"a": digit % 2 + rng.normal(0, 0.3, 60), "digit": digit})
    frame.to_csv("digits.csv", index=False)
    arguments = ("--data", "digits.csv", "--target", "digit", "--positive", "1,3")
    result = papers("run", *arguments, "--only", "1", "-n", 2)
    assert result.exit_code == 0, result.stderr
    assert "60 rows, 30 of them positive (1, 3), 1 columns, prepared as table" in result.stderr
    other = papers(*("run", *arguments, "--only", "1", "-n", 2, "--preparation", "standardize"))
    assert "prepared as standardize" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", *HIVA, "--only", "kernel=cosine"), "No experiment of the plan is 'cosine'"),
        (("run", *HIVA, "--rows", 60), "--rows 60 is not fewer than the 60 of hiva"),
        (("overall", "sets/hiva_train.data"), "must be of one kind"),
        (("overall", "none.csv"), "none.csv"),
        (("overall", "a/ada.csv", "b/ada.csv"), "two tables have the name ada"),
        (("run", *HIVA, "--jobs", 0), "--jobs 0 would run nothing"),
        (("run", *HIVA, "--target", "y"), "--target is for a file"),
        (("run", "--data", "ada", "--folder", "nowhere"), "nowhere: there is no such folder"),
        (("run", "--data", "nova", "--folder", "sets"), "There is no set 'nova' in sets"),
        (("run", "--data", "none.csv"), "none.csv"),
        (("run", *HIVA, "--store", "sets"), "the folder is no store and holds other files"),
        (("table", *HIVA, "--store", "nowhere"), "there is no store nowhere; python -m papers run"),
        (("table", *HIVA, "--store", "sets"), "the store has none of these experiments"),
        (("table", *HIVA, "--store", "sets", "-o", "no/a.csv"), "there is no folder no"),
    ],
)
def test_refusals(papers, sets, one_line, arguments, said):
    one_line(papers(*arguments), 2, said)
    assert os.listdir() == ["sets"]


def test_a_part_of_a_set(papers, sets, one_line):
    os.remove("sets/hiva_train.labels")
    one_line(papers("run", *HIVA), 2, "sets has hiva_train.data but not hiva_train.l")


def test_a_plot_of_another_kind(papers, sets, one_line):
    papers("run", *HIVA, *PART, "-n", 2, "--store", "kept")
    result = papers("table", *HIVA, "--store", "kept", "--plot", "plot.txt")
    assert result.exit_code == 2
    assert "the plot can be .png, .svg or .pdf" in result.stderr
    assert not os.path.exists("plot.txt")
