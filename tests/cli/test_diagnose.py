"""looms diagnose: the figures, what is written, refusals."""

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from looms import KernelClassifier, KernelRegressor, TabularClassifier
from looms.cli.diagnose import Plan, Subject, diagnosed
from looms.diagnostics import deviance, excess_error, goodness_of_fit, influence
from looms.diagnostics._problem import GivenMembers
from looms.diagnostics._statistics import Deviance
from looms.model_files import load_model, save_model
from looms.svm._svc import SVCProblem
from looms.svm.dual import DualSolution

pytestmark = pytest.mark.filterwarnings("ignore::looms.BoundWarning")


@pytest.fixture(scope="module")
def of_catches(tmp_path_factory):
    """Two classes that overlap, with text and a mistake in row 4, and models of them."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "depth": random.normal(size=50),
            "temperature": random.normal(size=50),
            "gear": random.choice(["net", "line"], 50),
        }
    )
    frame["found"] = np.where(frame["depth"] + random.normal(scale=0.4, size=50) > 0, "yes", "no")
    frame.loc[3, ["depth", "found"]] = 2.5, "no"
    folder = tmp_path_factory.mktemp("catches")
    frame.to_csv(folder / "catches.csv", index=False)
    svm = KernelClassifier("linear", loss="hinge", mu=0.01)
    for name, model in {
        "m": TabularClassifier(["linear"]),
        "stack": TabularClassifier(["linear", "rbf"]),
        "svm": TabularClassifier([svm], threshold="recall=0.95"),
    }.items():
        model.fit(frame.drop(columns="found"), frame["found"])
        model.save(folder / f"{name}.skops")
    return folder


@pytest.fixture
def catches(of_catches, tmp_path):
    """A copy of that table and the linear model of it, m.skops, in this folder."""
    shutil.copy(of_catches / "m.skops", tmp_path)
    return shutil.copy(of_catches / "catches.csv", tmp_path)


def row(output, name):
    return [float(v) for v in re.search(rf"^ *{name} +([\d. -]+)$", output, re.M)[1].split()]


@pytest.mark.slow
@pytest.mark.parametrize("given", [(), ("--data", "catches.csv")], ids=["rows of the fit", "file"])
def test_figures(looms, catches, given):
    options = ("--bootstrap", 39, "--alpha", 0.1, "--seed", 3)
    result = looms("diagnose", "m.skops", *given, *options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Model of m.skops; ")
    frame, model = pd.read_csv(catches), load_model("m.skops").model
    sample = model, frame.drop(columns="found"), frame["found"].to_numpy(str)
    errors, spread = excess_error(*sample), deviance(*sample)
    assert errors.apparent == np.mean(model.predict(frame) != frame["found"])
    expected = [50, errors.apparent, errors.leave_one_out, errors.excess]
    assert row(result.stdout, "all") == pytest.approx(expected, abs=1e-4)
    left_out = np.where(model.loo_.outputs > model.threshold_, *model.classes_[::-1])
    assert row(result.stdout, "all")[2] == np.mean(left_out != frame["found"])
    assert row(result.stdout, "training rows")[0] == pytest.approx(spread.deviance, abs=0.01)
    assert row(result.stdout, "held-out rows")[0] == pytest.approx(spread.cv_score, abs=0.01)
    found = goodness_of_fit(*sample, 39, alpha=0.1, random_state=3)
    critical = row(result.stdout, "limit for training rows, level 0.1")[0]
    assert critical == pytest.approx(found.critical_value, abs=0.01)
    assert f"Goodness of fit: {found.verdict}, p = {found.p_value:.3g};" in result.stdout
    assert "Bootstrap: 39 of 39" in result.stderr
    assert influence(*sample, alpha=0.1).flagged[0] == 3
    assert re.search(r"^ +4 +no +\d+\.\d+ +[\de.-]+ *$", result.stdout, re.M)
    pairs = looms("diagnose", "m.skops", *given, *options, "--resampling", "pairs")
    assert row(pairs.stdout, "limit for training rows, level 0.1") != [critical]
    folds = looms("diagnose", "m.skops", *given, "--cv", "5", "-b", 0)
    expected = deviance(*sample, cv=5)
    assert row(folds.stdout, "held-out rows")[0] == pytest.approx(expected.cv_score, abs=0.006)
    assert "in 5 folds" in folds.stdout


@pytest.mark.slow
def test_the_error_that_repeats_the_tuning_is_told(looms, catches, monkeypatch):
    asked = "diagnose", "m.skops", "--bootstrap", 0
    assert "optimistic; looms fit without --no-evaluate" in looms(*asked).stderr
    model = load_model("m.skops").model
    frame = pd.read_csv(catches)
    model.fit(frame.drop(columns="found"), frame["found"])
    error = 1 - model.evaluate()["accuracy"]
    save_model("m.skops", model, {"target": "found"})
    monkeypatch.setattr(Deviance, "n_impossible", 2)
    told = looms(*asked).stderr
    assert f"everything repeated the error is {error:.4f}" in told
    assert "2 held-out rows got probability 0 of the true class" in told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stack", "svm"])
def test_errors_of_other_models_are_those_of_their_decisions(looms, catches, of_catches, name):
    file = of_catches / f"{name}.skops"
    result = looms("diagnose", file, "--bootstrap", 0)
    assert result.exit_code == 0, result.stderr
    assert "Goodness of fit" not in result.stdout
    model, frame = load_model(file).model, pd.read_csv(catches)
    wrong = model.predict(frame) != frame["found"]
    assert row(result.stdout, "all")[1] == pytest.approx(np.mean(wrong), abs=1e-4)
    error = np.mean((model.loo_.outputs > model.threshold_) != (model.loo_.y > 0))
    assert row(result.stdout, "all")[2] == pytest.approx(error, abs=1e-4)
    again = looms("diagnose", file, "--data", catches, "--bootstrap", 0)
    assert row(again.stdout, "all") == row(result.stdout, "all")
    none = looms("diagnose", file, "--bootstrap", 0, "--alpha", 1e-9).stdout
    assert "\nInfluential: none of 50 rows" in none


@pytest.mark.parametrize(
    ("machine", "k", "expected"),
    [
        (SVC(gamma=0.2), 2, {"SVCProblem.solve": 1, "DualSolution.left_out": 1}),
        (SVC(gamma=0.2), 3, {"refits": 30}),
        (KernelClassifier(mu=0.01), 2, {}),
        (KernelClassifier(mu=0.01), 3, {"refits": 30}),
        (LogisticRegression(), 2, {"refits": 30}),
    ],
    ids=["svc", "svc of three classes", "least squares", "of three classes", "other"],
)
def test_every_fit_without_a_row_is_made_once(machine, k, expected, monkeypatch):
    solves = Counter()

    def count(owner, method, name):
        original = getattr(owner, method)

        def counted(self, *arguments, **options):
            left_out = method != "fit" or len(arguments[1]) == 29
            solves[name] += left_out
            return original(self, *arguments, **options)

        monkeypatch.setattr(owner, method, counted)

    own = isinstance(machine, KernelClassifier)
    count(GivenMembers if own else type(machine), "fit", "refits")
    count(SVCProblem, "solve", "SVCProblem.solve")
    count(DualSolution, "left_out", "DualSolution.left_out")
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = make_pipeline(StandardScaler(), machine)
    subject = Subject(model, X, np.arange(30) % k, None, np.arange(30), "a.csv")
    diagnosis = diagnosed(subject, Plan(0, "labels", 0.05, 0, 1))
    assert +solves == expected
    assert diagnosis.influence.fits is diagnosis.deviance.fits is diagnosis.error_rates.fits


@pytest.mark.slow
def test_files(looms, catches, one_line):
    options = ("diagnose", "m.skops", "--bootstrap", 19, "--plot", "figures")
    result = looms(*options, "-o", "rows.csv")
    assert result.exit_code == 0, result.stderr
    names = {"deviance.png", "error_rates.png", "goodness_of_fit.png", "influence.png"}
    assert set(os.listdir("figures")) == names
    for name in names:
        assert Path("figures", name).read_bytes().startswith(b"\x89PNG")
    frame, model = pd.read_csv(catches), load_model("m.skops").model
    table = pd.read_csv("rows.csv", index_col="row")
    found = influence(model, frame.drop(columns="found"), frame["found"].to_numpy(str))
    assert table.index.tolist() == list(range(1, 51))
    assert table["class"].tolist() == frame["found"].tolist()
    np.testing.assert_allclose(table["influence"], found.values)
    np.testing.assert_allclose(table["deviance"].sum(), found.deviance)
    assert "deviance_without" in table
    one_line(looms(*options), 2, "error_rates.png exists; use --force")
    Path("figures/deviance.png").write_text("The deviance of my yacht.")
    one_line(looms(*options, "--force"), 2, "not a file that this command")
    Path("figures/deviance.png").unlink()
    Path("figures/goodness_of_fit.png").write_text("not made without a bootstrap")
    assert looms(*options[:3], 0, *options[4:], "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("m.skops", "--alpha", "1"), "--alpha must be"),
        (("m.skops", "--bootstrap", "9"), "0.05, which takes at least 19 sam"),
        (("m.skops", "--plot", "no/figures"), "there is no folder no"),
        (("m.skops", "--plot", "catches.csv"), "catches.csv is not a folder"),
        (("m.skops", "--groups", "gear"), "--groups is a column of --data; give both"),
        (
            ("m.skops", "--data", "catches.csv", "--groups", "net"),
            "there is no column 'net' to keep",
        ),
        (("m.skops", "--data", "texts.csv", "--sep", ","), "'p;q' in data row 11, 'r;s' in data"),
        (("m.skops", "--data", "numbers.csv"), "diagnostics are for classes"),
        (("m.skops", "--data", "one.csv"), "only one value, 'a'"),
        (("m.skops", "--data", "alone.csv"), "Class 'b' has one member"),
        (("r.skops",), "case_deletion(looms.load('r.skops'))"),
    ],
)
def test_refusals(looms, catches, arguments, text, one_line):
    x = np.arange(12.0)
    found = {
        "one": "a",
        "alone": ["b", *"a" * 11],
        "texts": [*(x[:10] + 0.5), "p;q", "r;s"],
        "numbers": x + 0.5,
    }
    for name, values in found.items():
        frame = pd.DataFrame({"depth": x, "temperature": x, "gear": "net", "found": values})
        frame.to_csv(f"{name}.csv", index=False)
    KernelRegressor("linear", mu=0.1).fit(x[:, None], x).save("r.skops")
    before = sorted(os.listdir())
    one_line(looms("diagnose", *arguments), 2, text)
    assert sorted(os.listdir()) == before


@pytest.mark.slow
def test_models_of_python_are_diagnosed_on_their_rows_and_copies_told(looms, catches):
    frame = pd.read_csv(catches)
    pd.concat([frame, frame.iloc[10:30]]).to_csv("twice.csv", index=False)
    told = looms("diagnose", "m.skops", "--data", "twice.csv", "-b", 0).stderr
    assert "20 of 70 rows are duplicates of other rows" in told
    X, y = frame[["depth", "temperature"]].to_numpy(), frame["found"].to_numpy(str)
    model = make_pipeline(StandardScaler(), KernelClassifier("linear")).fit(X, y)
    save_model("p.skops", model)
    result = looms("diagnose", "p.skops", "--bootstrap", 0)
    assert result.exit_code == 0, result.stderr
    assert "number in the training data, counted from 1" in result.stdout
    expected = excess_error(model, X, y)
    rates = [expected.apparent, expected.leave_one_out]
    assert row(result.stdout, "all")[1:3] == pytest.approx(rates, abs=1e-4)
