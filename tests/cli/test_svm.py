"""Support vector machines on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from looms.model_files import load_model

pytestmark = pytest.mark.filterwarnings("ignore::looms.BoundWarning")
SVM = ("--target", "kind", "--loss", "hinge")


@pytest.mark.slow
def test_fit_show_predict_score(looms, fit, pets, figures):
    fitted = fit(pets, *SVM, "-o", "m.skops")
    assert fitted.exit_code == 0, fitted.stderr
    model = load_model("m.skops").model
    (member,) = model.members_
    assert (member.loss, model.candidates_[0].criterion) == ("hinge", "deviance")
    shown = looms("show", "m.skops").stdout
    assert "deviance" in shown
    chosen = f"gamma = {member.kernel.gamma:.4g}, regularization mu = {member.mu:.4g}"
    assert f"{chosen}, threshold = {model.threshold_:.4g}" in shown
    assert looms("predict", "m.skops", pets).stdout.startswith(
        "row,prediction,decision_dog,probability_"
    )
    assert figures(looms("score", "m.skops", pets).stdout)[:3] == [1.0, 1.0, 1.0]


@pytest.mark.slow
def test_groups_and_folds_reach_the_scores(looms, fit, pets, figures, tmp_path):
    table = pd.read_csv(pets)
    table["litter"] = [f"l{k // 3}" for k in range(len(table))]
    table.to_csv(tmp_path / "litters.csv", index=False)
    options = ("-c", "linear", "--groups", "litter", "--cv", "4")
    result = fit("litters.csv", *SVM, *options, "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    saved = load_model("m.skops")
    machine = saved.model
    assert "litter" not in saved.metadata["columns"]
    assert [len(np.unique(each)) for each in (machine.units_.clusters, machine.units_.number)] == [
        14,
        4,
    ]
    assert result.stderr.count("optimistic") == 1  # said once
    assert figures(result.stdout)[:4] == pytest.approx(
        list(machine.evaluate(nested=False).values()), abs=1e-3
    )


def test_a_kernel_of_many_scales_is_refused_by_the_estimator(looms, fit, pets, one_line):
    text = "without gradient takes 2 at most: hold some by bounds='fixed', or use"
    one_line(fit(pets, *SVM, "-c", "ard"), 2, text)


@pytest.mark.slow
def test_page_and_json_show_the_machine(looms, fit, pets):
    result = fit(pets, *SVM, "-o", "m.skops", "--report", "page.html", "--json")
    assert result.exit_code == 0, result.stderr
    told, model = json.loads(result.stdout), load_model("m.skops").model
    (member,) = model.members_
    assert told["chosen"]["n_support"] == len(member.support)
    assert told["chosen"]["mu"] == member.mu
    page = pets.with_name("page.html").read_text(encoding="utf-8")
    assert "support vectors" in page
    assert "deviance" in page
    assert json.loads(looms("show", "m.skops", "--json").stdout)["loo"] == told["loo"]
