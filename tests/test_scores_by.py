"""Scores by subgroup against scikit-learn's, and against those of all rows."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

import looms
from looms import KernelClassifier, KernelRegressor, NonconformityClassifier, Search
from looms.calibration import recalibration
from looms.folds import GapKFold

N = 90
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, 3))
SIGNAL = X[:, 0] + RNG.normal(size=N)
PARTS = pd.Series(np.array(["c", "a", "b"])[RNG.integers(0, 3, N)], name="site")
WEIGHT = np.where(np.arange(N) % 7 == 2, 0.0, RNG.uniform(1, 2, N))
ALL = np.zeros(N)
TARGETS = {
    "two classes": SIGNAL > 0.3,
    "three classes": SIGNAL.argsort().argsort() // 30,
    "ordered": pd.Categorical(np.clip(SIGNAL.round(), -1, 1), [-1, 0, 1], ordered=True),
    "number": SIGNAL,
    "two numbers": np.column_stack([SIGNAL, X @ [0, 1, 1]]),
}
CASES = {
    "given": {"mu": 0.1},
    "own": {"cv": None},
    "in folds": {"cv": 3},
    "of a grid": {"search": Search(method="grid")},
}

pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
]


def scores_of(which, case, **fit):
    y, numbers = TARGETS[which], "number" in which
    model = (KernelRegressor if numbers else KernelClassifier)("linear", **CASES[case])
    return model, model.fit(X, y, **fit).evaluate(nested=case != "own")


def test_calibration_in_subgroups():
    model, scores = scores_of("two classes", "in folds", sample_weight=WEIGHT, groups=ALL + X[:, 0])
    of_parts, rows = scores.by(PARTS), scores.rows
    for label, part in of_parts.iterrows():
        own = PARTS[rows] == label
        y = np.where(TARGETS["two classes"][rows][own], 1, -1)
        p = scores.decisions.probabilities[own, 1]
        found = recalibration(y, p, WEIGHT[rows][own])
        for name in ("intercept", "intercept_error", "slope", "slope_error"):
            assert part[f"calibration_{name}"] == pytest.approx(getattr(found, name))
    model.set_params(calibration=None).fit(X, TARGETS["two classes"])
    assert not any("calibration" in name for name in model.evaluate().by(PARTS))


@pytest.mark.parametrize(
    ("which", "case"),
    [
        ("two classes", "in folds"),
        ("three classes", "in folds"),
        ("two classes", "of a grid"),
        ("three classes", "given"),
        ("ordered", "in folds"),
        ("number", "own"),
        ("two numbers", "given"),
    ],
)
def test_all_rows_have_the_scores_of_evaluate(which, case):
    groups = np.arange(N) // 2
    _, scores = scores_of(which, case, sample_weight=WEIGHT, groups=groups)
    (found,) = scores.by(ALL).to_dict("records")
    assert found["n_rows"] == np.count_nonzero(WEIGHT)
    pooled = {"roc_auc"} if case in ("of a grid", "given") else set()
    for name, pair in scores.with_errors.items():
        if name not in pooled:
            assert (found[name], found[f"{name}_error"]) == pytest.approx(pair, rel=1e-9)
        else:
            assert found[name] == pytest.approx(pair[0], abs=0.05)
    assert len(found) == 1 + 5 * (which == "two classes") + 2 * len(scores)


@pytest.mark.parametrize("case", ["given", "in folds"])
def test_subgroups_have_those_of_their_rows(case):
    model, scores = scores_of("two classes", case, sample_weight=WEIGHT)
    y, found = TARGETS["two classes"], scores.by(PARTS)
    assert found.index.tolist() == ["a", "b", "c"]
    assert found.index.name == "site"
    p, predicted = np.full((N, 2), np.nan), np.zeros(N, int)
    p[scores.rows], predicted[scores.rows] = scores.decisions.probabilities, scores.decisions.wrong
    for label, row in found.iterrows():
        inside = PARTS.eq(label) & (WEIGHT > 0)
        of = {"sample_weight": WEIGHT[inside]}
        assert row["n_rows"] == inside.sum()
        assert row["n_events"] == y[inside].sum()
        if case == "given":  # each row is decided several times, which losses average over
            assert row["roc_auc"] == pytest.approx(roc_auc_score(y[inside], p[inside, 1], **of))
            continue
        assert row["log_loss"] == pytest.approx(log_loss(y[inside], p[inside], **of))
        decided = y[inside] != predicted[inside]
        balanced = balanced_accuracy_score(y[inside], decided, **of)
        assert row["balanced_accuracy"] == pytest.approx(balanced)
        right = total = 0.0
        own = np.full(N, -1)
        own[scores.rows] = scores._nested.units.own
        f = scores.predictions.outputs
        for i in np.flatnonzero(inside & y):
            for j in np.flatnonzero(inside & ~y & (own == own[i])):
                right += WEIGHT[i] * WEIGHT[j] * (f[i] > f[j])
                total += WEIGHT[i] * WEIGHT[j]
        assert row["roc_auc"] == pytest.approx(right / total)
    assert model.evaluate()["roc_auc"] == scores["roc_auc"]


@pytest.mark.parametrize(
    ("which", "options"),
    [("two classes", {"cv": GapKFold(9)}), ("three classes", {}), ("number", {})],
)
def test_a_subgroup_of_one_draw_has_no_errors(which, options):
    tens, groups = np.arange(N) // 10, None if options else np.arange(N) // 10
    kind = KernelRegressor if which == "number" else KernelClassifier
    model = kind("linear", mu=0.1, **options).fit(X, TARGETS[which], groups=groups)
    scores = model.evaluate()
    errors = [f"{name}_error" for name in scores]
    assert scores.by(tens)[errors].isna().all(axis=None)
    two_draws = scores.by(tens // 2).iloc[:4]
    assert two_draws[errors].notna().all(axis=None)


def test_labels(tmp_path):
    y = TARGETS["two classes"]
    model, scores = scores_of("two classes", "given")
    labels = pd.Categorical(np.where(y, "ill", "well"), ["well", "none", "ill"], ordered=True)
    found = scores.by(labels)
    assert found.index.tolist() == ["well", "ill"]
    assert found["n_events"].tolist() == [0, y.sum()]
    assert found[["roc_auc", "roc_auc_error", "balanced_accuracy"]].isna().all(axis=None)
    assert found[["accuracy", "log_loss", "log_loss_error"]].notna().all(axis=None)
    some = scores.by([None, None, *["x"] * (N - 2)])
    assert some["n_rows"].tolist() == [N - 2, 2]
    first = KernelClassifier("linear", mu=0.1, pos_label=False).fit(X, y).evaluate().by(labels)
    assert first["n_events"].tolist() == [(~y).sum(), 0]
    wrong = [1, 2, 3], None, (x for x in labels), np.column_stack([y, y]), pd.DataFrame(PARTS)
    for each, shape in zip(wrong, ("(3,)", "()", "()", "(90, 2)", "(90, 1)"), strict=True):
        says = f"one column, with a label for each of 90 rows of the fit, but have shape {shape}"
        with pytest.raises(ValueError, match=re.escape(says)):
            scores.by(each)
    with pytest.raises(ValueError, match=re.escape("no name of a column: table['sex']")):
        scores.by("sex")
    pairs = [*zip(PARTS, y, strict=True)]
    assert sorted(scores.by(pairs).index) == sorted(set(pairs))
    model.save(tmp_path / "model.skops")
    again = looms.load(tmp_path / "model.skops").evaluate()
    pd.testing.assert_frame_equal(again.by(PARTS), scores.by(PARTS))
    other = NonconformityClassifier(validation="split").fit(X, y).evaluate()
    with pytest.raises(TypeError, match="cannot be made again"):
        other.by(PARTS)
