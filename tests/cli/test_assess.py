"""looms assess: scores, table, resumption, refusals."""

import json
import os
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import looms as package
from looms.assessment._result import Assessment
from looms.assessment._split_run import SplitResult
from looms.cli import _progress
from looms.cli import assess as assess_module
from looms.cli._progress import Meter
from looms.cli._request import ModelRequest
from looms.cli.fit import train


@pytest.mark.slow
def test_summary_and_table(looms, pets):
    result = looms("assess", pets, "-t", "kind", "-n", 5, "-c", "linear", "-o", "table.csv")
    assert result.exit_code == 0, result.stderr
    table = pd.read_csv("table.csv", index_col="split")
    frame = pd.read_csv(pets)
    X, y = frame.drop(columns="kind"), frame["kind"].to_numpy(str)
    model = package.TabularClassifier(["linear"])
    expected = package.assess(model, X, y, 5, random_state=0)
    assert np.isfinite(table["loo_roc_auc"]).all()
    assert table["balanced_accuracy"].tolist() == expected.table["balanced_accuracy"].tolist()
    assert table["loo_roc_auc"].tolist() == expected.table["loo_roc_auc"].tolist()
    assert (
        len(
            re.findall(
                r"^Split \d: balanced_accuracy [\d.]+, own [\d.]+; roc_auc", result.stderr, re.M
            )
        )
        == 5
    )
    assert re.search(r"\(1 of 5, about \d+ s left\)", result.stderr)
    assert "(5 of 5)" in result.stderr
    assert result.stdout.splitlines()[0] == "candidates linear"
    assert f"balanced_accuracy   {expected.mean['balanced_accuracy']:.4f}" in result.stdout
    assert expected.optimism_text("balanced_accuracy") in result.stdout
    assert "a row for each split is in table.csv" in result.stderr


@pytest.mark.slow
def test_regression(looms, data_folder):
    result = looms("assess", data_folder / "mcycle.csv", "-t", "target", "-c", "rbf", "--splits", 3)
    assert result.exit_code == 0, result.stderr
    assert re.search(r"^rmse +[\d.]+ +[\d.]+ +[\d.]+ to [\d.]+ +[\d.]+$", result.stdout, re.M)


@pytest.mark.slow
def test_resumes(looms, pets):
    arguments = ("assess", pets, "-t", "kind", "-c", "rbf", "--store", "kept")
    first = looms(*arguments, "-n", 3, "-o", "a.csv")
    assert first.exit_code == 0, first.stderr
    assert "were in the store" not in first.stderr
    more = looms(*arguments, "-n", 5, "-o", "b.csv")
    assert "3 of 5 splits were in the store" in more.stderr
    assert more.stderr.count("Split ") == 2
    looms("assess", pets, "-t", "kind", "-c", "rbf", "-n", 5, "-o", "c.csv")
    with open("b.csv", "rb") as resumed, open("c.csv", "rb") as whole:
        assert resumed.read() == whole.read()


@pytest.mark.slow
@pytest.mark.parametrize("given", [(), ("--store", "kept")])
def test_interrupted_it_prints_the_table_so_far(looms, pets, monkeypatch, given):
    def stopping(self, done, total, result):
        if done == 3:
            raise KeyboardInterrupt

    arguments = ("assess", pets, "-t", "kind", "-c", "rbf", "-n", 5, *given)
    with monkeypatch.context() as patched:
        patched.setattr(Meter, "split", stopping)
        stopped = looms(*arguments, "-o", "t.csv")
    assert stopped.exit_code == 130
    assert "3 random splits, seed 0" in stopped.stdout
    assert re.search(r"^balanced_accuracy +[\d.]+ +[\d.]+ +[\d.]+ to [\d.]+", stopped.stdout, re.M)
    last = stopped.stderr.splitlines()[-1]
    assert last.startswith("Interrupted. 3 of 5 splits are done and ")
    assert "repeat it to run the rest" in last if given else "--store" in last
    assert not os.path.exists("t.csv")
    resumed = looms(*arguments)
    assert ("3 of 5 splits were in the store" in resumed.stderr) == bool(given)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["kfold", "bootstrap"])
def test_methods(looms, pets, method):
    result = looms(
        *(
            "assess",
            pets,
            "-t",
            "kind",
            "-c",
            "rbf",
            "--method",
            method,
            "-n",
            4,
            "--test-size",
            0.25,
        ),
    )
    assert result.exit_code == 0, result.stderr
    assert {"kfold": "4 folds", "bootstrap": "4 bootstrap resamples"}[method] in result.stdout
    assert ("All rows: " in result.stderr) == (method == "bootstrap")


@pytest.mark.slow
def test_report(looms, data_folder, tmp_path, monkeypatch):
    file = data_folder / "haberman.csv"
    given = ("-t", "target", "-n", 3, "-c", "linear", "--test-size", 0.3, "--threshold", "balanced")
    result = looms("assess", file, *given, "--report", "nested.html")
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "nested.html").read_text(encoding="utf-8")
    assert "score of the outer splits has a larger standard error" in page  # 3 times 92 of 306 rows
    assert "Nested cross-validation report" in page
    monkeypatch.setattr(  # the model of all rows is not evaluated
        assess_module, "train", lambda *given: train(*given[:3], False, *given[4:])
    )
    result = looms("assess", file, *given, "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    assert "the report is in r.html" in result.stderr
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>target, haberman.csv</title>" in page
    assert "alanced accuracy to expect on new rows" in page
    assert "an optimistic score" not in page
    outer = re.search(r"^balanced_accuracy +([\d.]+)", result.stdout, re.M)[1]
    headline = page[page.index('class="headline"') :].partition("</section>")[0]
    assert f"{float(outer):.3f}" in headline or f"{100 * float(outer):.1f}" in headline
    assert "Another estimator was assessed" not in page
    assert "called by their number in the file, counted from 1" in page
    again = looms("assess", file, *given, "--report", "r.html")
    assert again.exit_code == 2
    assert again.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "kfold", "-n", 7], "not a multiple of the 10 folds"),
        (["--test-size", 1.5], "--test-size must be a share between 0 and 1"),
        (["--jobs", 0], "--jobs 0 would run nothing"),
        (["-c", "cosine"], "Unknown --candidates 'cosine'"),
        (["--store", "."], "the folder is no store and holds other files, such as 'pets.csv'"),
        (["-o", "nowhere/table.csv"], "there is no folder nowhere"),
        (["--report", "nowhere/r.html"], "there is no folder nowhere"),
        (["--report", "r.html", "-o", "r.html"], "--output and --report are both r.html; give"),
        (["--report", "pets.csv"], "is an input and would be lost; name another --report"),
    ],
)
def test_refusals(looms, pets, one_line, arguments, said):
    one_line(looms("assess", pets, "-t", "kind", *arguments), 2, said)
    assert os.listdir() == ["pets.csv"]


def test_class_with_one_member(looms, pets, one_line):
    frame = pd.read_csv(pets)
    frame.loc[0, "kind"] = "ferret"
    frame.to_csv("rare.csv", index=False)
    result = looms("assess", "rare.csv", "-t", "kind")
    one_line(result, 2, "Class 'ferret' has 1 member, and a split")
    assert not re.search(r"^Split \d", result.stderr, re.M)  # before any work


def test_failed_splits_are_warned_of_before_the_table(capsys):
    splits = [SplitResult(k, 9, 3, {"roc_auc": 0.6 + k / 10}) for k in range(2)]
    splits += [SplitResult(2, 9, 3, error="ValueError: one class")]
    made = Assessment(tuple(splits), None, ("roc_auc",), "shuffle", 0, "a model")
    assess_module.show_result(made, ModelRequest(), json=False)
    text = "Warning: 1 of 3 splits failed: the scores are without them; the first: ValueError: one"
    assert capsys.readouterr().err.startswith(text)


def test_lines_and_durations(capsys):
    result = SplitResult(3, 9, 1, error="ValueError: no\nway")
    meter = Meter("Splits")
    meter.split(0, 2, None)
    meter.split(1, 2, result)
    assert "Split 3: raised ValueError: no way (1 of 2" in capsys.readouterr().err
    durations = [_progress.duration(s) for s in (3, 119, 150, 7000, 7300)]
    assert durations == ["3 s", "119 s", "2 min", "117 min", "2 h 2 min"]


@pytest.fixture
def meter(monkeypatch):
    """Meter of one candidate of 4000 rows, and a function that moves its clock."""
    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])

    def passes(seconds):
        now[0] += seconds

    root = SimpleNamespace(parent=None, max_subtasks=1)
    task = SimpleNamespace(parent=root, task_id=0, task_name="rbf, press", max_subtasks=None)
    meter = Meter("", 4000)
    meter.on_fit_task_begin(None, task)
    return meter, passes, task


def test_a_search_tells_where_it_is_and_the_time_left(meter, capsys):
    meter, passes, task = meter
    meter.on_stage(None, 1000, None)
    for value in (0.5, 0.4):
        passes(2)
        meter.on_evaluation(None, 1000, value)
    assert capsys.readouterr().err == ""  # too soon for another line
    passes(7)
    meter.on_evaluation(None, 1000, 0.45)
    text = (
        "Candidate 1 of 1: rbf, squared error: 1000 of 4000 rows, evaluation 3, best 0.4, "
        "about 6 min left"
    )
    assert capsys.readouterr().err == f"{text} (11 s)\n"
    meter.on_stage(None, 4000, 500)
    passes(12)
    meter.on_evaluation(None, 4000, 0.41)
    line = capsys.readouterr().err
    assert "500 landmarks of 4000 rows, evaluation 4, best 0.41, about 2 min left" in line
    passes(20)
    meter.on_stage(None, 4000, None)
    assert (
        "4000 of 4000 rows, whole kernel matrix, about 2 min left (43 s)" in capsys.readouterr().err
    )
    passes(130)
    meter.on_evaluation(None, 4000, 0.42)
    assert "evaluation 5, best 0.42 (3 min)" in capsys.readouterr().err
    meter.on_stage(None, 4000, None)  # the landmarks did not suffice
    passes(130)
    meter.on_evaluation(None, 4000, 0.4)
    assert "evaluation 6, best 0.4, about 4 min left (5 min)" in capsys.readouterr().err
    meter.on_fit_task_end(None, task)


def test_outer_folds_tell_the_time_left(meter, capsys):
    meter, passes, task = meter
    passes(50)
    meter.on_fit_task_end(None, task)
    capsys.readouterr()
    for done in range(1, 11):
        passes(6)
        meter.on_outer_fold(None, done, 10)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Scores: fit without a fold 1 of 10, about 54 s left"
    assert lines[1] == "Scores: fit without a fold 3 of 10, about 42 s left"
    assert lines[-1] == "Scores: 10 fits, each without a fold, which it predicts"


def shown_on_a_terminal(looms, monkeypatch, *arguments):
    """Counts and texts that the bar of a command is given, which writes no lines."""
    shown = []
    show = Meter.show

    def record(self, done, total, text, line, after=0.0):
        shown.append((done, total, text))
        show(self, done, total, text, line, after)

    monkeypatch.setattr(_progress, "_is_terminal", lambda: True)
    monkeypatch.setattr(Meter, "show", record)
    result = looms(*arguments)
    assert result.exit_code == 0, result.stderr
    assert not re.search(r"^(Split|Candidate) \d", result.stderr, re.M)
    return shown, result


@pytest.mark.slow
def test_copies_together_are_on_one_side_of_every_split(looms):
    rng = np.random.default_rng(0)
    once = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).assign(y=["u", "v"] * 20)
    pd.concat([once] * 3).to_csv("thrice.csv", index=False)
    command = (
        "assess",
        "thrice.csv",
        "-t",
        "y",
        "-n",
        "3",
        "--test-size",
        "0.3",
        "--candidates",
        "rbf",
    )
    result = looms(*command)
    assert "80 of 120 rows are duplicates" in " ".join(result.stderr.split())
    assert "rows are duplicates" not in result.stdout  # of the splits, which is the same news
    looms(*command, "--duplicates", "group", "-o", "splits.csv")
    assert pd.read_csv("splits.csv")["balanced_accuracy"].mean() < 0.7


@pytest.mark.slow
def test_the_bar_counts_splits_from_those_in_the_store(looms, pets, monkeypatch):
    arguments = ("assess", pets, "-t", "kind", "-c", "rbf", "-n", 3)
    shown, result = shown_on_a_terminal(looms, monkeypatch, *arguments)
    assert [each[:2] for each in shown] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert all("balanced_accuracy" in text for *_, text in shown[1:])
    assert np.isfinite(float(re.search(r"balanced_accuracy +([\d.]+)", result.stdout)[1]))


@pytest.mark.slow
def test_the_bar_counts_candidates_and_shows_the_search(looms, pets, monkeypatch):
    pytest.importorskip("sklearn.callback")
    arguments = ("fit", pets, "-t", "kind", "-c", "linear", "-c", "rbf", "--no-evaluate")
    shown, _ = shown_on_a_terminal(looms, monkeypatch, *arguments)
    assert shown[0] == (0, 2, "linear, squared error")
    assert (2, 2) in [each[:2] for each in shown]
    assert shown[-1] == (10, 10, "fits without a fold")  # by which the two are compared
    text = re.compile(r"rbf, squared error: 40 of 40 rows, evaluation 1, best 0\.")
    assert any(text.match(each) for *_, each in shown)


@pytest.mark.slow
def test_the_bar_counts_refits(looms, pets_model, monkeypatch):
    arguments = ("diagnose", pets_model, "-b", 19)
    shown, _ = shown_on_a_terminal(looms, monkeypatch, *arguments)
    assert shown[-1][:2] == (19, 19)


@pytest.mark.slow
def test_candidates_are_compared_on_the_same_splits(looms, pets, one_line):
    given = ("-t", "kind", "-n", 3, "--metric", "accuracy")
    result = looms("compare", pets, *given, "-c", "linear", "-c", "rbf", "-o", "d.csv")
    assert result.exit_code == 0, result.stderr
    frame = pd.read_csv(pets)
    models = {name: package.TabularClassifier([name]) for name in ("linear", "rbf")}
    expected = package.compare(
        models,
        frame.drop(columns="kind"),
        frame["kind"],
        n_splits=3,
        scoring=["accuracy"],
        random_state=0,
    )
    found = pd.read_csv("d.csv")
    assert found["first"].tolist() == ["linear"]
    for name in ("difference", "standard_error"):
        assert found[name].tolist() == pytest.approx(expected.differences()[name].tolist())
    assert result.stdout.count("3 random splits, seed 0") == 2
    assert "accuracy, linear − rbf" in result.stdout
    told = looms("compare", pets, *given, "-c", "linear", "-c", "rbf", "--json", "--quiet")
    assert told.stderr == ""
    assert set(json.loads(told.stdout)["candidates"]) == {"linear", "rbf"}
    blocks = result.stdout.split("\n\n")
    assert [block.splitlines()[0] for block in blocks[:2]] == ["linear", "rbf"]
    one_line(looms("compare", pets, *given, "-c", "rbf"), 2, "needs two --candidates or more")


def test_auto_is_compared_as_the_default_model(looms, pets, monkeypatch):
    given = []
    monkeypatch.setattr(
        assess_module, "compare_splits", lambda models, *_, **__: given.append(models) or 1 / 0
    )
    looms("compare", pets, "-t", "kind", "-c", "auto,rbf", "-n", 2)
    (models,) = given
    assert models["auto"].candidates == package.TabularClassifier().candidates
    assert models["rbf"].candidates == ["rbf"]
