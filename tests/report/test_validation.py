"""Validation on other rows, against the model's own scores and predictions."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier, KernelRegressor, TabularClassifier
from looms.blocks import ArrayBlocks
from looms.calibration import recalibration
from looms.report import DecisionCurveDisplay, validation

RNG = np.random.default_rng(0)
N, GROUPS = 60, np.arange(60) // 3
X = RNG.normal(size=(2 * N, 3))
SIGNAL = 2 * X[:, 0] + RNG.normal(size=2 * N)
Y = np.where(SIGNAL > 0.4, "<b>ill", "well")
WEIGHT = np.where(np.arange(N) % 4, 1.5, 0.0)


def test_scores_calibration_and_decisions(tmp_path):
    model = KernelClassifier("linear", mu=0.1, pos_label="<b>ill").fit(X[:N], Y[:N])
    held_out, new = model.evaluate(), (X[N:], Y[N:], WEIGHT, GROUPS)
    found = validation(model, *new, title="<script>")
    expected = model.scores(*new)
    for row in found["scores"]:
        assert expected.loc[row["key"], "value"] == row["value"]
        assert expected.loc[row["key"], "standard_error"] == row["standard_error"]
        assert held_out.with_errors[row["key"]] == (row["held_out"], row["held_out_error"])
        assert held_out.baselines[row["key"]] == row["held_out_baseline"]
    own = WEIGHT > 0
    event, p = Y[N:] == "<b>ill", model.predict_proba(X[N:])[:, 0]
    assert (found["n_rows"], found["n_events"]) == (own.sum(), event[own].sum())
    assert (found["n_fit"], found["n_fit_events"]) == (N, (Y[:N] == "<b>ill").sum())
    shares = [f"{100 * np.mean(labels == '<b>ill'):.0f} %" for labels in (Y[N:][own], Y[:N])]
    assert all(f" of <b>ill ({share})" in repr(found) for share in shares)
    of = recalibration(np.where(event, 1, -1), p, WEIGHT, GROUPS)
    assert found["recalibration"] == pytest.approx(vars(of))
    fit = LogisticRegression(C=np.inf, tol=1e-9).fit(np.log(p / (1 - p))[own, None], event[own])
    assert found["recalibration"]["slope"] == pytest.approx(fit.coef_[0, 0], rel=1e-5)
    thresholds = found.displays["decisions"].benefit.threshold
    given = {"groups": GROUPS[own], "thresholds": thresholds}
    again = DecisionCurveDisplay.from_predictions(event[own], p[own], **given).benefit
    np.testing.assert_allclose(found.displays["decisions"].benefit.gain_error, again.gain_error)
    assert json.loads(json.dumps(dict(found))) == dict(found)
    assert f"Calibration slope {of.slope:.2f}" in repr(found)
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 2
    assert "<script>" not in page
    assert "<b>ill" not in page
    assert all(f"</bdi> ({share})" in page for share in shares)
    assert "a first cause is another share of <bdi>&lt;b&gt;ill</bdi>: compare" in page
    assert f"slope {of.slope:.2f} ± {of.slope_error:.2f}" in page


def test_steps_before_the_model_and_values_it_has_not_seen():
    table = pd.DataFrame(X, columns=list("abc")).assign(site=np.where(X[:, 1] > 0, "u", "v"))
    new = table[N:].assign(site=["w", *table["site"][N + 1 :]])
    new.iloc[3, 0] = 99.0
    model = TabularClassifier(["linear"]).fit(table[:N], Y[:N])
    found = validation(model, new, Y[N:])
    with pytest.warns(UserWarning, match="no training row"):
        expected = model.scores(new, Y[N:])
    assert [row["value"] for row in found["scores"]] == pytest.approx(list(expected.value))
    assert "99" in "".join(found["remarks"])
    assert "'w'" in "".join(found["remarks"])
    pipeline = make_pipeline(StandardScaler(), KernelClassifier("linear", mu=0.1))
    pipeline.fit(X[:N], Y[:N])
    found = validation(pipeline, X[N:], Y[N:])
    assert found["scores"][0]["value"] == pipeline.score(X[N:], Y[N:])
    assert found["remarks"] == []


@pytest.mark.parametrize("made", [np.asarray, csr_array, ArrayBlocks])
def test_rows_of_the_fit_and_what_they_lack(tmp_path, made):
    """Equal rows, and groups or weights that only the fit had, are told in every form."""
    model = KernelClassifier("linear", mu=0.1, n_landmarks=20)
    own = WEIGHT * X[:N, 0] ** 2, GROUPS
    model.fit(X[:N], Y[:N], *own)
    with pytest.warns(UserWarning, match="have none"):
        found = validation(model, made(X[N - 5 : N + 5]), Y[N - 5 : N + 5])
    weights, groups, known = found["remarks"]
    assert "no weights as in the fit" in weights
    assert "each row counts as one draw" in groups
    assert "in 4 rows of 10 all features equal those of a training row" in known
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert all(remark in page and remark[:30] in repr(found) for remark in found["remarks"])
    assert validation(model, made(X[N:]), Y[N:], *own)["remarks"] == []


def test_classes_that_are_apart(tmp_path):
    """Intervals stay within the range of a score, and the intercept is told without a slope."""
    model = KernelClassifier("linear", mu=0.1).fit(X[:N], Y[:N])
    clear = np.abs(model.decision_function(X)) > 1.0
    found = validation(model, X[clear], model.predict(X[clear]))
    scores = {row["key"]: row for row in found["scores"]}
    assert scores["accuracy"]["high"] == scores["roc_auc"]["high"] == 1.0
    loss = scores["log_loss"]
    half = 1.959964 * loss["standard_error"]
    ends = max(0, loss["value"] - half), loss["value"] + half
    assert (loss["low"], loss["high"]) == pytest.approx(ends, rel=1e-6)
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"{100 * scores['accuracy']['low']:.1f} % to 100.0 %" in page
    calibrated = found["recalibration"]
    assert calibrated["slope"] is None
    shown = (
        f"intercept {calibrated['intercept']:.2f} ± {calibrated['intercept_error']:.2f}, no slope"
    )
    assert shown in repr(found)
    assert shown.replace("-", "−") in page
    assert "Recalibrated to these rows" not in page


def test_rows_without_targets():
    model = KernelClassifier("linear", mu=0.1).fit(X[:N], Y[:N])
    with pytest.raises(ValueError, match="y is None: give the targets"):
        validation(model, X[N:], None)


def test_optimistic_scores_are_called_so():
    model = KernelClassifier("linear").fit(X[:N], Y[:N])
    assert f"Held out in the fit: {model.evaluate(nested=False).kind}" in repr(
        validation(model, X[N:], Y[N:])
    )
    assert model.evaluate(nested=False).optimistic


@pytest.mark.filterwarnings("ignore:labels that the model does not know:UserWarning")
def test_what_there_is_no_calibration_of(tmp_path):
    several = np.digitize(SIGNAL, [-1, 1])
    plain = KernelClassifier("linear", mu=0.1, calibration=None)
    cases = [
        (KernelClassifier("linear", mu=0.1), several, several[N:]),
        (KernelClassifier("linear", mu=0.1), Y, np.where(np.arange(N), Y[N:], "other")),
        (plain, Y, Y[N:]),
        (KernelRegressor("linear", mu=0.1), SIGNAL, SIGNAL[N:]),
    ]
    for k, (model, y, new) in enumerate(cases):
        found = validation(model.fit(X[:N], y[:N]), X[N:], new)
        assert not found.displays
        assert found["recalibration"] is None
        assert (found["n_events"] is None) == (k in (0, 3))
        found.report(tmp_path / "page.html")
        assert "<svg" not in (tmp_path / "page.html").read_text()
        assert "Calibration slope" not in repr(found)
