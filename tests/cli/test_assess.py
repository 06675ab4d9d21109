"""looms assess and compare: splits, resumption, progress, refusals."""

import json
import os
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from looms import TabularClassifier, compare
from looms.assessment._result import Assessment
from looms.assessment._split_run import SplitResult
from looms.cli import _progress
from looms.cli._progress import Meter
from looms.cli._request import FitRequest
from looms.cli.assess import SeveralRequests, SplitRequest, show_result

LINEAR = ("-t", "kind", "-c", "linear")


def test_options_are_those_of_python(pets):
    options = {"groups": "weight", "sample_weight": "indoors", "seed": 3, "jobs": 2}
    request = FitRequest("kind", file=pets, **options)
    frame = pd.read_csv(pets).fillna({"weight": 4}).astype({"indoors": int})
    frame.to_csv(pets, index=False)
    prepared = request.prepare()
    given = SplitRequest(7, 0.25, "kfold", ["f1"], "kept").options(request, prepared)
    assert given.pop("groups") is prepared.groups
    assert given.pop("sample_weight") is prepared.weight
    assert given == {
        **{"n_splits": 7, "test_size": 0.25, "method": "kfold", "scoring": ["f1"]},
        **{"store": "kept", "n_jobs": 2, "random_state": 3, "gap": 0},
    }
    given = SplitRequest(test_size=5.0).options(FitRequest(file=pets, time="day", gap=4), prepared)
    assert [given[name] for name in ("test_size", "method", "gap")] == [5, "forward", 4]
    assert isinstance(given["test_size"], int)
    assert SplitRequest().options(FitRequest(file=pets), prepared)["method"] == "shuffle"


def test_each_candidate_is_a_model_of_its_own():
    requests = SeveralRequests(file="t.csv", candidates=["auto", "rbf"], cv="5").requests()
    models = {name: request.model(True) for name, request in requests.items()}
    assert models["auto"].candidates == TabularClassifier().candidates
    assert models["rbf"].candidates == ["rbf"]
    assert [model.cv for model in models.values()] == [5, 5]


@pytest.mark.slow
def test_resumes(looms, pets):
    arguments = ("assess", pets, *LINEAR, "--store", "kept")
    first = looms(*arguments, "-n", 2, "-o", "a.csv")
    assert first.exit_code == 0, first.stderr
    assert "were in the store" not in first.stderr
    more = looms(*arguments, "-n", 4, "-o", "b.csv")
    assert "2 of 4 splits were in the store" in more.stderr
    assert more.stderr.count("Split ") == 2
    looms("assess", pets, *LINEAR, "-n", 4, "-o", "c.csv")
    with open("b.csv", "rb") as resumed, open("c.csv", "rb") as whole:
        assert resumed.read() == whole.read()


@pytest.mark.slow
@pytest.mark.parametrize("given", [(), ("--store", "kept")])
def test_interrupted_it_prints_the_table_so_far(looms, pets, monkeypatch, given):
    def stopping(self, done, total, result):
        if done == 3:
            raise KeyboardInterrupt

    arguments = ("assess", pets, *LINEAR, "-n", 4, *given)
    with monkeypatch.context() as patched:
        patched.setattr(Meter, "split", stopping)
        stopped = looms(*arguments, "-o", "t.csv")
    assert stopped.exit_code == 130
    assert "3 random splits, seed 0" in stopped.stdout
    assert re.search(r"^balanced_accuracy +[\d.]+ +[\d.]+ +[\d.]+ to [\d.]+", stopped.stdout, re.M)
    last = stopped.stderr.splitlines()[-1]
    assert last.startswith("Interrupted. 3 of 4 splits are done and ")
    assert "repeat it to run the rest" in last if given else "--store" in last
    assert not os.path.exists("t.csv")
    resumed = looms(*arguments)
    assert ("3 of 4 splits were in the store" in resumed.stderr) == bool(given)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "kfold", "-n", 7], "not a multiple of the 10 folds"),
        (["--test-size", 1.5], "--test-size"),
        (["--store", "."], "holds other files, such as 'pets.csv'"),
        (["--report", "nowhere/r.html"], "there is no folder nowhere"),
        (["--report", "r.html", "-o", "r.html"], "--output and --report are both r.html"),
        (["--report", "pets.csv"], "is an input and would be lost; name another --report"),
    ],
)
def test_refusals(looms, pets, one_line, arguments, said):
    one_line(looms("assess", pets, "-t", "kind", *arguments), 2, said)
    assert os.listdir() == ["pets.csv"]


def test_failed_splits_are_warned_of_before_the_table(capsys):
    splits = [SplitResult(k, 9, 3, {"roc_auc": 0.6 + k / 10}) for k in range(2)]
    splits += [SplitResult(2, 9, 3, error="ValueError: one class")]
    made = Assessment(tuple(splits), None, ("roc_auc",), "shuffle", 0, "a model")
    show_result(made, FitRequest(file="t.csv"), json=False)
    text = "Warning: 1 of 3 splits failed: the scores are without them; the first: ValueError: one"
    assert capsys.readouterr().err.startswith(text)


def test_lines_and_durations(capsys):
    result = SplitResult(3, 9, 1, error="ValueError: no\nway")
    meter = Meter("Splits")
    meter.split(0, 2, None)
    meter.split(1, 2, result)
    assert "Split 3: raised ValueError: no way (1 of 2" in capsys.readouterr().err
    meter.split(2, 2, SplitResult(-1, 9, 0, {"roc_auc": 0.6}, {"roc_auc": 0.75}))
    assert "All rows: roc_auc 0.6000, own 0.7500 (2 of 2)\n" in capsys.readouterr().err
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
def test_the_bar_counts_splits_from_those_in_the_store(looms, pets, monkeypatch):
    shown, result = shown_on_a_terminal(looms, monkeypatch, "assess", pets, *LINEAR, "-n", 3)
    assert [each[:2] for each in shown] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert all("balanced_accuracy" in text for *_, text in shown[1:])
    assert np.isfinite(float(re.search(r"balanced_accuracy +([\d.]+)", result.stdout)[1]))


@pytest.mark.slow
def test_the_bar_counts_candidates_and_shows_the_search(looms, pets, monkeypatch):
    pytest.importorskip("sklearn.callback")
    arguments = ("fit", pets, *LINEAR, "-c", "rbf")
    shown, _ = shown_on_a_terminal(looms, monkeypatch, *arguments)
    assert shown[0] == (0, 2, "linear, squared error")
    assert (2, 2) in [each[:2] for each in shown]
    assert shown[-1] == (5, 5, "fits without a fold")
    text = re.compile(r"rbf, squared error: 40 of 40 rows, evaluation 1, best 0\.")
    assert any(text.match(each) for *_, each in shown)


@pytest.mark.slow
def test_candidates_are_compared_on_the_same_splits(looms, pets, one_line):
    given = ("compare", pets, *LINEAR, "-n", 2, "--metric", "accuracy")
    one_line(looms(*given), 2, "needs two --candidates or more")
    told = looms(*given, "-c", "rbf", "-o", "d.csv", "--json", "--quiet")
    assert (told.exit_code, told.stderr) == (0, "")
    told = json.loads(told.stdout)
    frame = pd.read_csv(pets)
    models = {name: TabularClassifier([name]) for name in ("linear", "rbf")}
    X, y = frame.drop(columns="kind"), frame["kind"]
    expected = compare(models, X, y, n_splits=2, scoring=["accuracy"], random_state=0)
    found = pd.read_csv("d.csv")
    assert found["first"].tolist() == ["linear"]
    for name in ("difference", "standard_error"):
        assert found[name].tolist() == pytest.approx(expected.differences()[name].tolist())
        assert told["differences"][0][name] == pytest.approx(found[name][0])
    assert list(told["candidates"]) == ["linear", "rbf"]
