"""Machines chosen by nonconformity on the command line."""

import numpy as np
import pandas as pd
import pytest

from looms import NonconformityClassifier
from looms.model_files import load_model

OURS = ("--target", "kind", "--nonconformity")


@pytest.mark.slow
def test_fit_show_predict_score(looms, fit, pets, figures):
    fitted = looms("fit", pets, *OURS, "-o", "m.skops", "--metric", "accuracy")
    assert fitted.exit_code == 0, fitted.stderr
    assert "scores of the selection, made for each row by the others" in fitted.stderr
    model = load_model("m.skops").model
    machine = model[-1]
    assert isinstance(machine, NonconformityClassifier)
    assert f"\naccuracy: {machine.evaluate()['accuracy']:.4g} ±" in fitted.stdout
    shown = looms("show", "m.skops").stdout
    assert f"{len(machine.deciding_)} of the models" in shown
    assert f"{machine.validation_errors_.min():.4f}" in shown
    assert (
        f"the selection, of each row by the others     {machine.evaluate()['accuracy']:.4f}"
        in shown
    )
    predicted = looms("predict", "m.skops", pets, "--confidence-level", 0.8, "-o", "p.csv")
    assert predicted.exit_code == 0, predicted.stderr
    table, rows = pd.read_csv("p.csv"), pd.read_csv(pets)
    assert list(table) == ["row", "prediction", "p_value_cat", "p_value_dog", "set"]
    X = model[:-1].transform(rows)
    np.testing.assert_array_equal(table["prediction"], model.predict(rows))
    np.testing.assert_allclose(
        table[["p_value_cat", "p_value_dog"]], machine.p_values(X), rtol=1e-5
    )
    sets = ["|".join(machine.classes_[row]) for row in machine.predict_set(X, 0.8)]
    assert table["set"].fillna("").tolist() == sets
    scored = looms("score", "m.skops", pets)
    wrong = (table["prediction"] != rows["kind"]).mean()
    assert figures(scored.stdout)[0] == pytest.approx(1 - wrong, abs=1e-4)
    assert "if they are the same rows, scores are optimistic" in scored.stderr
    assert looms("predict", "m.skops", pets, "-o", "p.csv", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--cv", "1"), "from 2 folds to the number of rows, 40, got 1"),
        (("--report", "page.html"), "--report is not for --nonconformity"),
        (("--certify",), "--certify is not for --nonconformity"),
    ],
)
def test_what_does_not_apply_is_refused_by_name(looms, fit, pets, one_line, options, text):
    one_line(looms("fit", pets, *OURS, *options), 2, text)


@pytest.mark.slow
def test_other_tables_are_refused_by_name(looms, fit, pets, one_line, tmp_path):
    (tmp_path / "s.svm").write_text("1 1:1 3:2\n-1 2:1\n" * 6)
    one_line(looms("fit", "s.svm", *OURS[2:]), 2, "--nonconformity is for dense tables")
    (tmp_path / "n.csv").write_text("a,b\n" + "".join(f"{k % 5},{k / 7}\n" for k in range(30)))
    one_line(looms("fit", "n.csv", "-t", "b", *OURS[2:]), 2, "is for classification")
    assert looms("fit", pets, *OURS, "-o", "m.skops").exit_code == 0
    result = looms("diagnose", "m.skops", "--data", pets)
    one_line(result, 2, "has neither decision_function nor predict_proba, so it has no")
    one_line(looms("predict", "m.skops", pets, "--confidence-level", 2), 2, "between 0 and 1")
    one_line(looms("predict", "m.skops", "s.svm"), 2, "was fitted to a table that is not sparse")
