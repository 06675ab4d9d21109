"""Support vector machines on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from looms import SVCCV
from looms.folds import GapKFold
from looms.model_files import load_model

pytestmark = pytest.mark.filterwarnings("ignore::looms.BoundWarning")
SVM = ("--target", "kind", "--machine", "svm")


@pytest.mark.slow
def test_fit_show_predict_score(looms, pets, figures):
    fitted = looms("fit", pets, *SVM, "-o", "m.skops")
    assert fitted.exit_code == 0, fitted.stderr
    assert "leave-one-out chose this machine" in fitted.stderr
    machine = load_model("m.skops").model[-1]
    assert isinstance(machine, SVCCV)
    assert machine.criterion == "log_likelihood"
    shown = looms("show", "m.skops").stdout
    assert f"Best of {len(machine.cv_results_['params'])} settings" in shown
    chosen = f"C = {machine.C_:.4g}, gamma = {machine.kernel_.gamma:.4g}"
    assert f"{chosen}, threshold = {machine.threshold_:.4g}" in shown
    assert "machine=svm" in shown
    assert "optimizer" not in shown
    assert looms("predict", "m.skops", pets).stdout.startswith(
        "row,prediction,decision_dog,probability_"
    )
    assert figures(looms("score", "m.skops", pets).stdout)[:3] == [0.0, 0.0, 1.0]


@pytest.mark.filterwarnings("ignore::looms.OptimisticScoresWarning")
def test_groups_and_folds_reach_the_figures(looms, pets, figures, tmp_path):
    table = pd.read_csv(pets)
    table["litter"] = [f"l{k // 3}" for k in range(len(table))]
    table.to_csv(tmp_path / "litters.csv", index=False)
    options = ("-k", "linear", "--groups", "litter", "--cv", "4")
    result = looms("fit", "litters.csv", *SVM, *options, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    saved = load_model("m.skops")
    machine = saved.model[-1]
    assert "litter" not in saved.metadata["columns"]
    assert [len(np.unique(each)) for each in (machine.units_.clusters, machine.units_.number)] == [
        14,
        4,
    ]
    assert "scores are optimistic" not in result.stderr  # a note says so
    assert figures(result.stdout)[:4] == pytest.approx(list(machine.scores_.values()), abs=1e-3)


@pytest.mark.filterwarnings("ignore::looms.OptimisticScoresWarning")
def test_windows_of_time_and_a_grid_are_those_of_python(looms, pets, tmp_path):
    table = pd.read_csv(pets)
    table["day"] = np.random.default_rng(0).permutation(len(table))
    table.to_csv(tmp_path / "days.csv", index=False)
    options = ("-k", "linear", "--search", "grid", "--time", "day", "--cv", "4")
    result = looms("fit", "days.csv", *SVM, *options, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    saved, table = load_model("m.skops"), table.sort_values("day")
    machine = saved.model[-1]
    X = saved.model[:-1].transform(table.drop(columns=["day", "kind"]))
    expected = SVCCV("linear", search="grid", cv=GapKFold(4)).fit(X, table["kind"])
    np.testing.assert_array_equal(machine.held_out_.outputs, expected.held_out_.outputs)


def test_sets_of_labels(looms, pets):
    assert looms("fit", pets, *SVM, "-k", "linear", "-o", "m.skops").exit_code == 0
    result = looms("predict", "m.skops", pets, "--coverage", 0.9)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0].endswith(",set")


@pytest.mark.skipif(not hasattr(SVCCV, "set_callbacks"), reason="of scikit-learn since 1.9")
@pytest.mark.slow
def test_each_kernel_is_announced(looms, pets):
    result = looms("fit", pets, *SVM, "-k", "linear", "-k", "rbf", "-o", "m.skops")
    assert "Candidate 1 of 2: linear, log_likelihood" in result.stderr
    assert "Candidate 2 of 2: rbf, log_likelihood" in result.stderr


@pytest.mark.slow
def test_several_classes(looms, tmp_path):
    rows = [{"a": i % 3 + 0.1 * (i % 7), "b": i % 5, "kind": "xyz"[i % 3]} for i in range(30)]
    pd.DataFrame(rows).to_csv(tmp_path / "three.csv", index=False)
    result = looms("fit", "three.csv", *SVM, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    predicted = looms("predict", "m.skops", "three.csv").stdout
    assert predicted.startswith("row,prediction,decision_x,decision_y,decision_z,probability_")


@pytest.mark.slow
def test_assess(looms, pets):
    result = looms("assess", pets, *SVM, "-k", "linear", "-n", "2", "-o", "splits.csv")
    assert result.exit_code == 0, result.stderr
    table = pd.read_csv("splits.csv")
    assert {"ber", "loo_ber", "loo_auc", "C", "kernel", "threshold"} <= set(table.columns)
    assert table[["C", "loo_ber"]].notna().all(axis=None)


def test_a_kernel_of_many_scales_is_refused_by_the_estimator(looms, pets, one_line):
    text = "without gradient takes 2 at most: hold some by bounds='fixed', or use --machine lssvm"
    one_line(looms("fit", pets, *SVM, "-k", "ard"), 2, text)


@pytest.mark.slow
def test_page_and_json_show_the_machine(looms, pets):
    result = looms("fit", pets, *SVM, "-o", "m.skops", "--report", "page.html", "--json")
    assert result.exit_code == 0, result.stderr
    told, machine = json.loads(result.stdout), load_model("m.skops").model[-1]
    assert told["chosen"]["C"] == machine.C_
    assert told["chosen"]["n_support"] == len(machine.support_)
    assert told["n_candidates"] == len(machine.cv_results_["params"])
    best = {each["name"]: each["value"] for each in told["candidates"][0]["parameters"]}
    assert best == machine.cv_results_["params"][machine.best_index_]
    assert "C, cost of errors" in pets.with_name("page.html").read_text(encoding="utf-8")
    assert json.loads(looms("show", "m.skops", "--json").stdout)["loo"] == told["loo"]


def test_the_log_likelihood_is_shown_as_the_deviance_that_is_minimized(looms, pets):
    result = looms("fit", pets, "-t", "kind", "-m", "svm", "-k", "linear")
    assert "deviance" in result.stdout
    assert "log_likelihood" not in result.stdout
