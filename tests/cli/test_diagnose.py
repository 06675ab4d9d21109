"""looms diagnose: the figures, what is written, refusals."""

import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from looms import SVCCV, KernelClassifier
from looms.cli.diagnose import _BY_OPTION, Plan, Subject, diagnosed
from looms.diagnostics import deviance, excess_error, goodness_of_fit, influence
from looms.kernels import RBF
from looms.selection._svm_search import spaces_of
from looms.svm._svc import SVCProblem
from looms.svm.dual import DualSolution
from looms.tables import TablePreprocessor

pytestmark = pytest.mark.filterwarnings("ignore::looms.BoundWarning")
GIVEN = ("--C", 1, "--gamma", 0.25)


@pytest.fixture
def catches(tmp_path):
    """A table of two classes that overlap, with a column of text and a mistake in row 4."""
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
    path = tmp_path / "catches.csv"
    frame.to_csv(path, index=False)
    return path


def parts(path):
    frame = pd.read_csv(path)
    X, y = frame.drop(columns="found"), frame["found"].to_numpy(str)
    return TablePreprocessor(), X, y


def row(output, name):
    return [float(v) for v in re.search(rf"^ *{name} +([\d. -]+)$", output, re.M)[1].split()]


@pytest.mark.slow
def test_figures(looms, catches):
    given = ("-c", "linear", "--C", 0.5, "--bootstrap", 39, "--alpha", 0.1, "--seed", 3)
    result = looms("diagnose", catches, "-t", "found", *given)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Support vector machine, linear kernel, C = 0.5; catches.csv")
    assert "chosen on these rows" not in result.stderr
    before, X, y = parts(catches)
    sample = make_pipeline(before, SVC(kernel="linear", C=0.5)), X, y
    errors, spread = excess_error(*sample), deviance(*sample)
    expected = [50, errors.apparent, errors.leave_one_out, errors.excess]
    assert row(result.stdout, "all") == pytest.approx(expected, abs=1e-4)
    assert row(result.stdout, "deviance")[0] == pytest.approx(spread.deviance, abs=0.01)
    assert row(result.stdout, "CV score")[0] == pytest.approx(spread.cv_score, abs=0.01)
    fit = goodness_of_fit(*sample, 39, alpha=0.1, random_state=3)
    critical = row(result.stdout, "critical at 0.1")[0]
    assert critical == pytest.approx(fit.critical_value, abs=0.01)
    assert f"Goodness of fit: {fit.verdict}, p = {fit.p_value:.3g};" in result.stdout
    assert "39 bootstrap samples of labels" in result.stdout
    assert "Bootstrap: 39 of 39" in result.stderr
    assert influence(*sample, alpha=0.1).flagged[0] == 3
    assert re.search(r"^ +4 +no +\d+\.\d+ +[\de.-]+ *$", result.stdout, re.M)


SVM = re.compile(
    r"machine, (\w+) kernel, C = ([\d.e+-]+)(?:, gamma = ([\d.e+-]+))?; catches.csv, 50"
)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_machine_is_tuned_and_can_be_given(looms, catches, kernel):
    """What was chosen, given, is the same machine; for rbf it is that of SVCCV."""
    options = ("diagnose", catches, "-t", "found", "--bootstrap", 0, "-c", kernel)
    result = looms(*options)
    assert result.exit_code == 0, result.stderr
    assert "Goodness of fit" not in result.stdout
    names = "C was" if kernel == "linear" else "C and gamma were"
    assert f"{names} chosen on these rows by leave-one-out" in result.stderr
    name, C, gamma = SVM.search(result.stdout).groups()
    assert name == kernel
    before, X, y = parts(catches)
    Z = before.fit_transform(X)
    expected = SVCCV(kernel, resolution=1.0).fit(Z, y)
    without = expected.classes_[(expected.loo_.outputs > 0).astype(int)]
    assert row(result.stdout, "all")[2] == pytest.approx((without != y).mean(), abs=1e-4)
    given = ("--C", C, *(() if gamma is None else ("--gamma", gamma)))
    again = looms(*options, *given)
    assert "chosen on these rows" not in again.stderr
    assert row(again.stdout, "deviance")[0] == pytest.approx(
        row(result.stdout, "deviance")[0], abs=0.02
    )
    if kernel == "rbf":
        assert float(C) == pytest.approx(expected.C_, rel=1e-5)
        assert float(gamma) == pytest.approx(expected.kernel_.gamma, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "name"), [(("--C", 0.7), "gamma"), (("--gamma", 0.2), "C")], ids=["C", "gamma"]
)
def test_what_is_given_is_held(looms, catches, given, name):
    result = looms("diagnose", catches, "-t", "found", "--bootstrap", 0, *given)
    assert f"Note: {name} was chosen on these rows" in result.stderr
    _, C, gamma = SVM.search(result.stdout).groups()
    assert float({"C": gamma, "gamma": C}[name]) == given[1]
    assert float({"C": C, "gamma": gamma}[name]) != given[1]


@pytest.mark.parametrize(
    ("options", "machine"),
    [
        (("-c", "quadratic", "--gamma", 0.2), SVC(kernel="poly", degree=2, coef0=1, gamma=0.2)),
        (("-c", "cubic", "--gamma", 0.1), SVC(kernel="poly", degree=3, coef0=1, gamma=0.1)),
        (("--gamma", 2), SVC(gamma=2.0)),
    ],
)
@pytest.mark.slow
def test_kernels(looms, catches, options, machine):
    given = ("-t", "found", "--bootstrap", 0, "--C", 1, *options)
    result = looms("diagnose", catches, *given)
    before, X, y = parts(catches)
    expected = deviance(make_pipeline(before, machine), X, y).deviance
    assert row(result.stdout, "deviance")[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.slow
def test_resampling_and_drop(looms, catches):
    options = ("diagnose", catches, "-t", "found", "--bootstrap", 39, *GIVEN)
    labels = looms(*options)
    pairs = looms(*options, "--resampling", "pairs")
    assert "samples of pairs" in pairs.stdout
    assert row(pairs.stdout, "critical at 0.05") != row(labels.stdout, "critical at 0.05")
    dropped = looms(*options, "--drop", "gear")
    assert row(pairs.stdout, "deviance") != row(dropped.stdout, "deviance")


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

    count(type(machine), "fit", "refits")
    count(SVCProblem, "solve", "SVCProblem.solve")
    count(DualSolution, "left_out", "DualSolution.left_out")
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = make_pipeline(StandardScaler(), machine)
    subject = Subject(model, X, np.arange(30) % k, None, "a machine", "a.csv")
    diagnosis = diagnosed(subject, Plan(0, "labels", 0.05, 0, 1))
    assert +solves == expected
    assert diagnosis.influence.fits is diagnosis.deviance.fits is diagnosis.errors.fits


@pytest.mark.slow
def test_files(looms, catches):
    options = ("diagnose", catches, "-t", "found", "--bootstrap", 19, *GIVEN)
    options = (*options, "--plot", "figures")
    result = looms(*options, "-o", "rows.csv")
    assert result.exit_code == 0, result.stderr
    names = {"deviance.png", "excess_error.png", "goodness_of_fit.png", "influence.png"}
    assert set(os.listdir("figures")) == names
    for name in names:
        with open(f"figures/{name}", "rb") as file:
            assert file.read(4) == b"\x89PNG"
    before, X, y = parts(catches)
    table = pd.read_csv("rows.csv", index_col="row")
    found = influence(make_pipeline(before, SVC(C=1.0, gamma=0.25)), X, y)
    assert table.index.tolist() == list(range(1, 51))
    assert table["class"].tolist() == y.tolist()
    np.testing.assert_allclose(table["influence"], found.values)
    np.testing.assert_allclose(table["deviance"].sum(), found.deviance)


@pytest.mark.slow
def test_nothing_is_overwritten(looms, catches, one_line):
    options = ("diagnose", catches, "-t", "found", "--bootstrap", 0, *GIVEN)
    assert looms(*options, "--plot", "figures").exit_code == 0
    one_line(looms(*options, "--plot", "figures"), 2, "excess_error.png exists; use --force")
    one_line(looms(*options, "-o", catches, "--force"), 2, "is an input and would be lost")
    (Path("figures") / "deviance.png").write_text("The deviance of my yacht.")
    one_line(looms(*options, "--plot", "figures", "--force"), 2, "not a file that this command")
    (Path("figures") / "deviance.png").unlink()
    (Path("figures") / "goodness_of_fit.png").write_text("not made without a bootstrap")
    assert looms(*options, "--plot", "figures", "--force").exit_code == 0


@pytest.mark.slow
def test_a_model_of_looms_fit(looms, fit, catches):
    assert fit(catches, "-t", "found", "-o", "m.skops").exit_code == 0
    result = looms("diagnose", catches, "--model", "m.skops", "--bootstrap", 19)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Least-squares machine of m.skops")
    assert "with fixed hyper-parameters" in result.stderr
    shown = looms("show", "m.skops").stdout
    error = re.search(r"leave-one-out +([\d.]+)", shown)[1]
    assert row(result.stdout, "all")[2] == float(error)


def test_every_advice_of_the_search_has_its_option():
    X = np.arange(6.0).reshape(-1, 1)
    for axis in spaces_of([RBF()], {}, X)[0].axes:
        for advice in (axis.at_lower, axis.at_upper):
            assert any(words in advice for words in _BY_OPTION), advice


@pytest.mark.slow
def test_bounds_of_the_search_are_told_in_options(looms, fit):
    rng = np.random.default_rng(1)
    y = np.arange(100) % 2
    table = pd.DataFrame(
        rng.normal(size=(100, 4)) + np.outer(y, [1, 0, 0, 0]), columns=list("abcd")
    )
    table.assign(kind=np.where(y == 1, "cat", "dog")).to_csv("linear.csv", index=False)
    result = looms("diagnose", "linear.csv", "-t", "kind", "-b", 0)
    assert result.exit_code == 0, result.stderr
    assert "or give another by --gamma" in result.stderr
    assert "param_grid" not in result.stderr
    result = fit("linear.csv", "-t", "kind", "-m", "svm", "--threshold", 0, "-o", "s.skops")
    assert "values as param_grid of looms.SVCCV in Python" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [(), ("--threshold", "recall=0.95")])
def test_a_support_vector_machine_of_looms_fit(looms, catches, threshold):
    fit = ("fit", catches, "-t", "found", "-m", "svm", "-c", "linear", "-o", "s.skops", *threshold)
    assert looms(*fit).exit_code == 0
    result = looms("diagnose", catches, "--model", "s.skops", "--bootstrap", 0)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Support vector machine of s.skops")
    error = re.search(r"leave-one-out +([\d.]+)", looms("show", "s.skops").stdout)[1]
    assert row(result.stdout, "all")[2] == float(error)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("catches.csv",), "name the column to predict with --target"),
        (("catches.csv", "-t", "found", "--C", "0"), "--C must be a positive number, not 0"),
        (("catches.csv", "-t", "found", "--gamma", "nan"), "--gamma must be a positive number"),
        (
            ("catches.csv", "-t", "found", "-c", "linear", "--gamma", "1"),
            "not for the linear kernel",
        ),
        (("catches.csv", "-t", "found", "-c", "cubic", "--C", "1"), "goes with --gamma"),
        (
            ("catches.csv", "-t", "found", "--alpha", "1"),
            "--alpha must be a number between 0 and 1",
        ),
        (("catches.csv", "-t", "found", "--bootstrap", "9"), "0.05, which takes at least 19 sam"),
        (("catches.csv", "-t", "depth", "-b", "9"), "0.05, which takes at least 19 sam"),
        (("catches.csv", "-t", "found", "--jobs", "0"), "--jobs 0 would run nothing"),
        (("catches.csv", "-t", "found", "--plot", "no/figures"), "there is no folder no"),
        (("catches.csv", "-t", "found", "--plot", "catches.csv"), "catches.csv is not a folder"),
        (("catches.csv", "-t", "found", "-o", "no/rows.csv"), "there is no folder no"),
        (("catches.csv", "-t", "depth"), "diagnostics are for classes, but the target has 50"),
        (("texts.csv", "-t", "y", "--sep", ","), "'p;q' in data row 11, 'r;s' in data row 12"),
        (("catches.csv", "-t", "found", "--drop", "net"), "there is no column 'net'"),
        (("one.csv", "-t", "y"), "only one value, 'a'"),
        (("alone.csv", "-t", "y"), "Class 'b' has one member"),
        (("flat.csv", "-t", "y"), "no column of the table has two different values"),
        (("catches.csv", "--model", "m.skops", "--C", "1"), "--C is for a support vector machine"),
        (("catches.csv", "--model", "m.skops", "--drop", "gear"), "--drop is for an SVM"),
        (("catches.csv", "--model", "m.skops", "-t", "gear"), "it predicts 'found', not 'gear'"),
        (("catches.csv", "--model", "r.skops"), "it is a regression"),
        (("catches.csv", "--model", "no.skops"), "there is no such file"),
        (("catches.csv", "--estimator", "Ridge"), "Ridge is not one"),
        (("catches.csv", "--estimator", "LogisticRegresion"), "did you mean LogisticRegression?"),
        (("catches.csv", "--estimator", "SVC(C=open('x'))"), "with plain values by name"),
        (("catches.csv", "--estimator", "SVC(cost=2)"), "unexpected keyword argument 'cost'"),
        (("catches.csv", "--estimator", "SVC", "--C", "1"), "--C is for a support vector machine"),
        (("catches.csv", "--estimator", "SVC", "--model", "m.skops"), "--estimator is a machine"),
    ],
)
def test_refusals(looms, fit, catches, arguments, text, one_line):
    x = np.arange(12.0)
    tables = {
        "one": {"x": x, "y": "a"},
        "alone": {"x": x, "y": ["b", *"a" * 11]},
        "flat": {"x": 1.0, "y": [*"ab" * 6]},
        "texts": {"x": x, "y": [*(x[:10] + 0.5), "p;q", "r;s"]},
    }
    for name, columns in tables.items():
        pd.DataFrame(columns).to_csv(f"{name}.csv", index=False)
    if "m.skops" in arguments:
        fit(catches, "-t", "found", "-o", "m.skops")
    if "r.skops" in arguments:
        fit(catches, "-t", "depth", "-o", "r.skops")
    before = set(os.listdir())
    result = looms("diagnose", *arguments)
    assert result.stdout == ""
    one_line(result, 2, text)
    assert set(os.listdir()) == before


@pytest.mark.slow
def test_copies_are_noted(looms, fit, catches):
    frame = pd.read_csv(catches)
    pd.concat([frame, frame[:20]]).to_csv(catches, index=False)
    assert fit(catches, "-t", "found", "-o", "m.skops", "--duplicates", "together").exit_code == 0
    stderr = looms("diagnose", catches, "-t", "found", "--model", "m.skops", "-b", 0).stderr
    assert "20 of 70 rows are copies of other rows" in stderr
    assert "held out together are left out one at a time here" in stderr
    stderr = looms("diagnose", catches, "-t", "found", *GIVEN, "-b", 0).stderr
    assert "decides at output 0" in stderr


@pytest.mark.slow
def test_any_classifier_of_scikit_learn(looms, catches):
    options = ("--estimator", "LogisticRegression(C=0.5)", "--cv", "5", "-b", "39")
    result = looms("diagnose", catches, "-t", "found", *options)
    assert result.exit_code == 0, result.stderr
    preprocessor, X, y = parts(catches)
    machine = make_pipeline(preprocessor, LogisticRegression(C=0.5))
    expected = deviance(machine, X, y, cv=5)
    assert row(result.stdout, "CV score")[0] == pytest.approx(expected.cv_score, abs=0.006)
    assert "LogisticRegression(C=0.5); catches.csv, 50 rows in 5 folds" in result.stdout
    eic = goodness_of_fit(machine, X, y, 39, random_state=0).eic
    assert row(result.stdout, "EIC")[0] == pytest.approx(eic, abs=0.006)
    assert "5-fold" in result.stdout


@pytest.mark.slow
def test_an_infinite_cv_score_is_noted(looms, catches):
    forest = "RandomForestClassifier(n_estimators=3, random_state=0)"
    result = looms("diagnose", catches, "-t", "found", "--estimator", forest, "--cv", 3, "-b", 0)
    assert result.exit_code == 0, result.stderr
    assert re.search(r"CV score +inf", result.stdout)
    assert "probability 0 of the true class" in " ".join(result.stderr.split())
