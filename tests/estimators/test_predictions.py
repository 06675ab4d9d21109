"""Predictions and scores of new rows as data frames."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.dummy import DummyClassifier

from looms import KernelClassifier, KernelRegressor, TabularClassifier, TabularRegressor

RNG = np.random.default_rng(7)
X = pd.DataFrame(RNG.normal(size=(60, 3)), index=range(100, 160)).rename(columns="x{}".format)
SIGNAL = X["x0"] + np.sin(2 * X["x1"]) + 0.4 * RNG.normal(size=60)
TARGETS = {
    "two": pd.Series(np.where(SIGNAL > 0, "yes", "no")),
    "first": pd.Series(np.where(SIGNAL > 0, "yes", "no")),
    "three": pd.Series(np.digitize(SIGNAL, [-0.7, 0.7]).astype(float)),
    "ordered": pd.Series(pd.cut(SIGNAL.to_numpy(), [-9, -0.7, 0.7, 9], labels=["l", "m", "h"])),
    "numbers": pd.Series(np.exp(SIGNAL.to_numpy())),
    "several": pd.DataFrame({"a": SIGNAL.to_numpy(), "b": -2 * SIGNAL.to_numpy()}),
}
TRAIN, NEW = slice(0, 40), slice(40, 60)
WEIGHT = RNG.uniform(0.5, 2, size=20)


@pytest.fixture(scope="module")
def fitted():
    """Evaluated models by the name of their target, those of tables with a column as text."""
    table = X.assign(x2=np.where(X["x2"] > 0, "high", "low"))
    models = {
        "two": (KernelClassifier(mu=0.01), X),
        "first": (TabularClassifier("rbf", pos_label="no"), table),
        "three": (KernelClassifier("linear", mu=0.01), X),
        "ordered": (TabularClassifier("rbf"), table),
        "numbers": (TabularRegressor(["linear"], target="log"), table),
        "several": (KernelRegressor(mu=0.01), X),
    }
    found = {}
    for name, (model, rows) in models.items():
        model.fit(rows[TRAIN], TARGETS[name][TRAIN]).evaluate()
        found[name] = model, rows[NEW], TARGETS[name][NEW]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two", "first", "three", "ordered"])
def test_predictions_of_classes_are_those_of_the_methods(fitted, name):
    model, new, _ = fitted[name]
    frame = model.predictions(new, confidence_level=0.8)
    labels = [f"{label:g}" if isinstance(label, float) else label for label in model.classes_]
    by_rank = ["l", "m", "h"] if name == "ordered" else labels
    order = [labels.index(label) for label in by_rank]
    decision, members = model.decision_function(new), model.predict_set(new, 0.8)
    if name in ("two", "first"):
        shown = {"decision_yes": decision} if name == "two" else {"decision_no": -decision}
    else:
        shown = {f"decision_{labels[k]}": decision[:, k] for k in order}
    p = model.predict_proba(new)
    shown |= {f"probability_{labels[k]}": p[:, k] for k in order}
    expected = pd.DataFrame({"prediction": model.predict(new)} | shown, index=new.index)
    expected["set"] = ["|".join(np.array(labels)[order][row]) for row in members[:, order]]
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    assert frame.drop(columns="set").equals(model.predictions(new))
    wide = model.predictions(new, 0.8, class_conditional=True)["set"].str.len().sum()
    assert wide != frame["set"].str.len().sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "several"])
def test_predictions_of_numbers_are_those_of_the_methods(fitted, name):
    model, new, _ = fitted[name]
    frame = model.predictions(new, confidence_level=0.8, method="minmax")
    ends = model.predict_interval(new, 0.8, method="minmax")
    values = np.stack([model.predict(new), ends[..., 0], ends[..., 1]])
    names = ["prediction", "lower", "upper"]
    if name == "several":
        names = [f"{part}_{k}" for part in names for k in range(2)]
    expected = np.moveaxis(values, 1, 0).reshape(len(new), -1)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected, new.index, names))
    assert not frame.equals(model.predictions(new, 0.8))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_scikit_learn(n_classes):
    y = np.array(["a", "b", "c"])[np.digitize(SIGNAL, [0.3, 1.0][: n_classes - 1])]
    model, new = KernelClassifier("linear", mu=0.1).fit(X[TRAIN], y[TRAIN]), y[NEW]
    scores, weight = model.scores(X[NEW], new, WEIGHT), {"sample_weight": WEIGHT}
    predicted, p = model.predict(X[NEW]), model.predict_proba(X[NEW])
    decision = model.decision_function(X[NEW]).reshape(len(new), -1)
    areas = [
        metrics.roc_auc_score(new == label, decision[:, k], **weight)
        for k, label in enumerate(model.classes_[-decision.shape[1] :])
    ]
    expected = {
        "accuracy": metrics.accuracy_score(new, predicted, **weight),
        "balanced_accuracy": metrics.balanced_accuracy_score(new, predicted, **weight),
        "roc_auc": np.mean(areas),
        "log_loss": metrics.log_loss(new, p, **weight),
    }
    assert scores.value.to_dict() == pytest.approx(expected)
    dummy = DummyClassifier(strategy="prior").fit(new, new, WEIGHT)
    of_shares = metrics.log_loss(new, dummy.predict_proba(new), **weight)
    assert scores.baseline["log_loss"] == pytest.approx(of_shares)
    assert scores.baseline["accuracy"] == pytest.approx(dummy.score(new, new, WEIGHT))
    assert scores.baseline["balanced_accuracy"] == pytest.approx(1 / n_classes)
    losses = -np.log(p[np.arange(len(new)), np.searchsorted(model.classes_, new)])
    error = model.scores(X[NEW], new).standard_error["log_loss"]
    assert error == pytest.approx(losses.std(ddof=1) / np.sqrt(len(new)))
    alike = model.scores(X[NEW], np.full(len(new), "b")).value
    assert alike["accuracy"] == alike["balanced_accuracy"]
    assert alike["accuracy"] == pytest.approx((predicted == "b").mean())
    assert np.isnan(alike["roc_auc"])


@pytest.mark.slow
def test_scores_of_numbers_and_ranks_are_those_of_scikit_learn(fitted):
    for name in ("numbers", "several"):
        model, new, y = fitted[name]
        of_rows, weight = (y, model.predict(new)), {"sample_weight": WEIGHT}
        expected = {
            "rmse": np.sqrt(metrics.mean_squared_error(*of_rows, **weight)),
            "mae": metrics.mean_absolute_error(*of_rows, **weight),
            "r2": metrics.r2_score(*of_rows, **weight),
        }
        assert model.scores(new, y, WEIGHT).value.to_dict() == pytest.approx(expected)
    model, new, y = fitted["ordered"]
    ranks = {label: k for k, label in enumerate("lmh")}
    true, predicted = y.astype(str).map(ranks), pd.Series(model.predict(new)).map(ranks)
    away = np.abs(true.to_numpy() - predicted.to_numpy()).mean()
    assert model.scores(new, y).value["mean_rank_error"] == pytest.approx(away)


def test_errors_of_new_rows_are_over_groups():
    model = KernelRegressor("linear", mu=0.1).fit(X[TRAIN], SIGNAL[TRAIN])
    y = SIGNAL[NEW].to_numpy()
    pairs = np.arange(20) // 2
    alone, grouped = (model.scores(X[NEW], y, groups=groups) for groups in (None, pairs))
    assert alone.value.equals(grouped.value)
    misses = np.abs(y - model.predict(X[NEW]))
    assert alone.standard_error["mae"] == pytest.approx(misses.std(ddof=1) / np.sqrt(20))
    error = misses.reshape(10, 2).mean(axis=1).std(ddof=1) / np.sqrt(10)
    draws = min(20, 1 + misses.var() / error**2)
    draws = 1 / ((1 - 10**-2) / draws + 10**-3)  # a little nearer to 10
    assert grouped.standard_error["mae"] == pytest.approx(np.sqrt(misses.var() / (draws - 1)))


@pytest.mark.slow
def test_labels_that_are_no_class_are_errors_and_have_no_probability(fitted):
    model, new, y = fitted["two"]
    odd = y.mask(np.arange(20) == 3, "maybe")
    with pytest.warns(UserWarning, match="'maybe'"):
        scores = model.scores(new, odd)
    n_right = int((model.predict(new) == odd).sum())
    assert scores.value["accuracy"] == pytest.approx(n_right / 20)
    assert np.isnan(scores.value["log_loss"])
    model, new, y = fitted["ordered"]
    with pytest.raises(ValueError, match="maybe"):
        model.scores(new, odd)


@pytest.mark.slow
def test_predictions_at_other_prevalences(fitted):
    model, new, _ = fitted["first"]
    moved = model.at_prevalence({"no": 0.05})
    frame = moved.predictions(new)
    assert frame.index.equals(new.index)
    np.testing.assert_allclose(frame["probability_no"], moved.predict_proba(new)[:, 0])
    np.testing.assert_allclose(frame["decision_no"], -moved.decision_function(new))
    assert (frame["prediction"] == moved.predict(new)).all()


def test_targets_that_cannot_be_scored_are_refused():
    model = KernelRegressor("linear", mu=0.1).fit(X[TRAIN], SIGNAL[TRAIN])
    rows = X[NEW]
    for y in (None, TARGETS["two"][NEW], SIGNAL[TRAIN], TARGETS["several"][NEW]):
        with pytest.raises(ValueError, match=r"y|samples"):
            model.scores(rows, y)
