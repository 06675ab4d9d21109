"""Assessments against scikit-learn's own loop, by hand, and with things that go wrong."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer, make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.svm import LinearSVC
from stacks import stacked_classifier

import looms
from looms import KernelClassifier, Search
from looms.assessment import AllSplitsRaisedError, AssessmentInterrupted, compare
from looms.assessment._assess import stored
from looms.assessment._scoring import kind_of
from looms.assessment._split_run import distinct


@pytest.mark.slow
@pytest.mark.parametrize("method", ["shuffle", "kfold"])
def test_scores_are_those_of_cross_validate(two_classes, folds, method):
    X, y = two_classes
    scoring = ["balanced_accuracy", "roc_auc", "neg_log_loss", "accuracy"]
    model, options = LogisticRegression(), {"scoring": scoring, "random_state": 0}
    result = looms.assess(model, X, y, 10, method=method, **options)
    theirs = cross_validate(model, X, y, cv=folds(y, 10, method), scoring=scoring)
    for name in scoring:
        np.testing.assert_array_equal(result.table[name], theirs[f"test_{name}"])
    assert "loo_balanced_accuracy" not in result.table
    found = result.estimate("balanced_accuracy")
    assert np.isnan([found.loo, found.optimism, found.signed_optimism]).all()


def test_figures_by_hand(two_classes):
    result = looms.assess(LogisticRegression(), *two_classes, 10, random_state=0)
    scores = result.table["roc_auc"].to_numpy()
    assert result.mean["roc_auc"] == scores.mean()
    error = np.sqrt((1 / 10 + 2 * 6 / 54) * scores.var(ddof=1))
    assert result.standard_error["roc_auc"] == pytest.approx(error)
    ends = kind_of(get_scorer("roc_auc")).interval(
        *(scores.mean(), error, stats.t.ppf(0.95, 9), result.n_rows["roc_auc"])
    )
    assert result.interval(0.9).loc["roc_auc"].tolist() == pytest.approx(ends)
    with pytest.raises(ValueError, match="level"):
        result.interval(95)


def test_default_scores(two_classes, a_line):
    X, y = load_iris(return_X_y=True)
    of_three, of_two = (looms.assess(DummyClassifier(), *each, 2) for each in ((X, y), two_classes))
    assert of_three.scores == ("balanced_accuracy", "accuracy", "log_loss")
    assert of_two.scores == ("balanced_accuracy", "roc_auc", "log_loss")
    assert of_three.mean["log_loss"] == pytest.approx(np.log(3))
    grouped = looms.assess(DummyClassifier(), X, y, 2, groups=np.arange(150) % 9)
    assert grouped.scores == ("balanced_accuracy", "accuracy")
    resampled = looms.assess(DummyClassifier(), *two_classes, 2, method="bootstrap")
    assert resampled.scores == ("balanced_accuracy", "roc_auc")
    assert looms.assess(Ridge(), *a_line, 2).scores == ("rmse", "r2")
    seldom = np.repeat([0, 1, 2], [70, 78, 2])  # not in every test part
    scores = looms.assess(DummyClassifier(strategy="prior"), X, seldom, 4).table["log_loss"]
    assert np.isfinite(scores).all()


@pytest.mark.slow
def test_loo_scores_of_several_classes(folds):
    X, y = load_iris(return_X_y=True)
    table = looms.assess(looms.KernelClassifier(mu=1e-3), X, y, 2, random_state=0).table
    for (train, _), (_, row) in zip(folds(y, n=2), table.iterrows(), strict=True):
        machine = looms.KernelClassifier(mu=1e-3).fit(X[train], y[train])
        outputs = machine.evaluate(nested=False).decisions.outputs - machine.threshold_
        assert row["loo_accuracy"] == pytest.approx(np.mean(outputs.argmax(axis=1) == y[train]))
        assert row["gamma"] > 0


def test_loo_scores_of_a_regression(a_line, folds):
    X, y = a_line
    result = looms.assess(looms.KernelRegressor("linear"), X, y, 3, random_state=0)
    for (train, _), (_, row) in zip(
        folds(y, n=3, stratified=False), result.table.iterrows(), strict=True
    ):
        loo = looms.KernelRegressor("linear").fit(X[train], y[train]).loo_
        assert row["loo_rmse"] == pytest.approx(np.sqrt(np.mean(loo.residuals**2)))
    difference = result.table["loo_rmse"] - result.table["rmse"]
    assert result.optimism["rmse"] == pytest.approx(difference.mean())


def test_scorers_see_an_estimator_like_others(a_line):
    def looks(estimator, X, y):
        return len(repr(estimator)) * (len(estimator.get_params()) > 0)

    def decides(estimator, X, y):
        return float(hasattr(estimator, "decision_function"))

    X, y = a_line
    for machine, targets in (
        (looms.KernelRegressor(mu=1e-3), y),
        (looms.KernelClassifier(mu=1e-3), y > 0),
    ):
        scoring = {"looks": looks, "decides": decides}
        row = looms.assess(machine, X, targets, 2, scoring=scoring, random_state=0).table.iloc[0]
        assert row["loo_looks"] > 0
        assert row["loo_decides"] == row["decides"]


@pytest.mark.slow
def test_optimism_is_said_with_its_corrected_error(two_classes):
    _, y = two_classes
    wide = np.random.default_rng(0).normal(size=(60, 40))  # nothing to learn, much to choose
    result = looms.assess(
        looms.KernelClassifier("ard", threshold="balanced"), wide, y, 8, 0.3, random_state=0
    )
    estimate, table = result.estimate("balanced_accuracy"), result.table
    difference = table["loo_balanced_accuracy"] - table["balanced_accuracy"]
    error = np.sqrt((1 / 8 + 18 / 42) * difference.var(ddof=1))
    assert estimate.optimism_error == pytest.approx(error)
    assert estimate.signed_optimism > stats.t.ppf(0.975, 7) * error
    by = f"{estimate.signed_optimism:.2g} ± {error:.2g} (balanced_accuracy)"
    assert f"The fit's own score is optimistic by {by}." in repr(result)


@pytest.mark.slow
def test_an_optimism_within_two_errors_has_no_direction(two_classes):
    X = np.repeat([[0.0], [1.0]], 20, axis=0) + np.linspace(0, 0.1, 40)[:, None]
    right = looms.KernelClassifier("linear", mu=1e-3), X, np.repeat([0, 1], 20)
    some = looms.KernelClassifier(mu=1e-3), *two_classes
    for data, n, said in ((some, 6, "No clear"), (right, 5, "No clear"), (some, 3, "cannot tell")):
        result = looms.assess(*data, n, scoring="accuracy", random_state=0)
        assert said in result.optimism_text("accuracy")
        assert "is optimistic" not in repr(result)
        size = result.estimate("accuracy").optimism
        assert ("±" in result.optimism_text("accuracy")) == (size != 0)


def interrupt_after(n_done):
    def interrupt(done, total, result):
        if done == n_done:
            raise KeyboardInterrupt

    return interrupt


@pytest.mark.slow
@pytest.mark.parametrize("method", ["shuffle", "bootstrap"])
def test_an_interrupted_assessment_has_what_was_done(two_classes, tmp_path, method):
    options = {"random_state": 0, "method": method, "n_splits": 9, "store": tmp_path}
    data = LogisticRegression(), *two_classes
    with pytest.raises(AssessmentInterrupted, match="4 of ") as stopped:
        looms.assess(*data, progress=interrupt_after(4), **options)
    assert str(tmp_path) in str(stopped.value)
    so_far = stopped.value.result
    n = len(so_far.splits)
    assert n == 4 - (method == "bootstrap")
    again = stored(*data, **{**options, "n_splits": n})
    assert repr(again) == repr(so_far)
    assert so_far.table.equals(looms.assess(*data, **options).table.iloc[:n])


def test_an_interrupted_assessment_may_have_no_figures(two_classes):
    for model, method in ((LogisticRegression(), "bootstrap"), (LogisticRegression(C=-1), "kfold")):
        with pytest.raises(AssessmentInterrupted, match="store=") as stopped:
            looms.assess(model, *two_classes, 10, method=method, progress=interrupt_after(1))
        assert stopped.value.result is None


def test_outputs_of_different_machines_are_not_ranked_together(two_classes):
    X, labels = two_classes
    scoring = {
        "likely": "neg_log_loss",  # of probabilities, which the outputs are not
        "average_precision": "average_precision",
        "partial": make_scorer(roc_auc_score, max_fpr=0.5, response_method="decision_function"),
        "roc_auc": "roc_auc",
    }
    data = X, (labels == "yes").astype(int)
    model = looms.KernelClassifier(mu=1e-3)
    table = looms.assess(model, *data, 2, scoring=scoring, random_state=0).table
    assert table[list(scoring)].notna().all(axis=None)
    assert table["loo_roc_auc"].notna().all()
    lacking = [f"loo_{name}" for name in scoring if name != "roc_auc"]
    assert table[lacking].isna().all(axis=None)


@pytest.mark.slow
def test_chosen_kernel_and_grid_search(two_classes, folds):
    X, y = two_classes
    members = [KernelClassifier("linear"), KernelClassifier("rbf", search=Search("wmw"))]
    machine = stacked_classifier(members, combine="best")
    table = looms.assess(machine, X, y, 2, random_state=0).table
    for (train, _), (_, row) in zip(folds(y, n=2), table.iterrows(), strict=True):
        best = min(machine.fit(X[train], y[train]).candidates_, key=lambda c: c.loss)
        assert (row["kernel"], row["criterion"]) == (
            {"Linear": "linear", "RBF": "rbf"}[type(best.kernel).__name__],
            best.criterion,
        )
        assert row["mu"] == best.mu
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]})
    assert set(looms.assess(search, X, y, 3, random_state=0).table["C"]) <= {0.1, 1.0}
    inside = GridSearchCV(looms.KernelClassifier(mu=1e-3), {"mu": [1e-3, 1e-1]})
    assert "loo_balanced_accuracy" in looms.assess(inside, X, y, 2, random_state=0).table


@pytest.mark.slow
def test_estimator_stays_as_it_is_and_random_ones_repeat(two_classes):
    forest = RandomForestClassifier(5)
    tables = [looms.assess(forest, *two_classes, n, random_state=0).table for n in (3, 6)]
    pd.testing.assert_frame_equal(tables[0], tables[1].head(3))
    assert not hasattr(forest, "classes_")
    assert forest.random_state is None


@pytest.mark.slow
def test_kinds_of_data(two_classes):
    X, y = two_classes
    expected = looms.assess(looms.KernelClassifier("linear", mu=1e-3), X, y, 3, random_state=0).mean
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(60) * 7)
    kernel_matrix = X @ X.T
    for samples, targets, machine in [
        (frame, pd.Series(y, index=frame.index), "linear"),
        (X.tolist(), y.tolist(), "linear"),
        (sparse.coo_array(X), y, "linear"),
        (kernel_matrix, y, "precomputed"),
    ]:
        result = looms.assess(
            looms.KernelClassifier(machine, mu=1e-3), samples, targets, 3, random_state=0
        )
        pd.testing.assert_series_equal(result.mean, expected)


LABELS_OF = {
    "categories": lambda: pl.Series(np.resize(["b", "a"], 60).tolist(), dtype=pl.Categorical),
    "booleans": lambda: pl.Series(np.resize([True, False], 60)),
    "frame": lambda: pl.DataFrame({"y": np.resize(["yes", "no"], 60).tolist()}),
    "pyarrow": lambda: pa.chunked_array([np.resize(["yes", "no"], 60).tolist()]),
    "decimals": lambda: pl.Series(np.resize([0.5, 2.25, 7.0], 60)).cast(pl.Decimal(9, 2)),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("kind", LABELS_OF)
def test_targets_and_tables_of_polars(kind, tmp_path):
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 500, 60)
    X = pl.DataFrame(
        {
            "x": rng.normal(size=60),
            "day": pl.Series(days.astype("datetime64[D]")),
            "hue": pl.Series(rng.choice(["red", "blue"], 60).tolist(), dtype=pl.Categorical),
            "n": pl.Series([None, *range(59)]),
        }
    )
    y, numbers = LABELS_OF[kind](), kind == "decimals"
    model = (looms.TabularRegressor if numbers else looms.TabularClassifier)(["linear"])
    plain = np.asarray(y, dtype=float) if numbers else np.asarray(y).ravel()
    options = {"n_splits": 2, "method": "bootstrap", "duplicates": "group"}
    result = looms.assess(model, X, y, **options, store=tmp_path)
    assert not result.failures
    expected = looms.assess(model, X.to_pandas(), plain, **options).mean
    pd.testing.assert_series_equal(result.mean, expected)
    kept = stored(model, X.clone(), y, store=tmp_path, random_state=0, **options)
    pd.testing.assert_series_equal(kept.mean, expected)


class Fussy(ClassifierMixin, BaseEstimator):
    """Does not take the first sample for training, and warns of the second."""

    def __init__(self, always=False):
        self.always = always

    def fit(self, X, y):
        if self.always or 0 in X[:, 0]:
            raise RuntimeError("no zeros, please")
        if 1 in X[:, 0]:
            np.float64(1.0) / np.float64(0.0)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def numbered():
    return np.arange(60)[:, None], np.repeat([0, 1], 30)


def test_splits_that_raise_are_recorded(numbered, folds):
    X, y = numbered
    result = looms.assess(Fussy(), X, y, 30, scoring="balanced_accuracy", random_state=0)
    raised = {i for i, (train, _) in enumerate(folds(y, n=30)) if 0 in train}
    assert 0 < len(raised) < 30
    assert set(result.failures) == raised
    assert set(result.failures.values()) == {"RuntimeError: no zeros, please"}
    table = result.table
    assert set(table.index[table["failure"].notna()]) == raised
    assert table.loc[table["failure"].notna(), "balanced_accuracy"].isna().all()
    assert result.mean["balanced_accuracy"] == 0.5
    assert f"{len(raised)} of 30 splits raised; split {min(raised)}: RuntimeError" in repr(result)
    assert "RuntimeWarning: divide by zero" in repr(result)


@pytest.mark.filterwarnings("ignore:Fussy cannot be given sample_weight")
def test_all_splits_raise(numbered):
    options = {"scoring": "balanced_accuracy", "random_state": 0}
    with pytest.raises(AllSplitsRaisedError, match="no zeros") as raised:
        looms.assess(Fussy(True), *numbered, 3, **options)
    assert len(raised.value.result.failures) == 3
    with pytest.raises(ValueError, match="all rows"):
        looms.assess(Fussy(), *numbered, 30, method="bootstrap", **options)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"scoring": "goodness"}, "'goodness'"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": np.random.RandomState(0), "store": "s"}, "random_state"),
    ],
)
def test_refusals(two_classes, options, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=name):
        looms.assess(DummyClassifier(), *two_classes, 3, **options)
    assert not list(tmp_path.iterdir())


def test_scorers_by_name_and_callable(two_classes):
    def always(estimator, X, y):
        return 0.25

    result = looms.assess(
        DummyClassifier(), *two_classes, 3, scoring={"a": always, "b": "balanced_accuracy"}
    )
    assert result.mean.to_dict() == {"a": 0.25, "b": 0.5}
    assert looms.assess(DummyClassifier(), *two_classes, 3, scoring=always).scores == ("always",)


def test_progress(two_classes):
    heard = []
    looms.assess(DummyClassifier(), *two_classes, 3, progress=lambda *told: heard.append(told))
    assert [(done, total) for done, total, _ in heard] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert heard[0][2] is None
    assert {result.index for _, _, result in heard[1:]} == {0, 1, 2}


def test_an_error_from_without_says_what_was_done(two_classes):
    with pytest.raises(ZeroDivisionError) as stopped:
        looms.assess(DummyClassifier(), *two_classes, 3, progress=lambda done, *_: 1 / (2 - done))
    assert stopped.value.__notes__[0].startswith(
        "2 of 3 splits are done and were not stored: store="
    )


def test_random_state_objects(two_classes):
    results = [
        looms.assess(DummyClassifier(), *two_classes, 2, random_state=np.random.RandomState(s))
        for s in (0, 0, 1)
    ]
    assert results[0].random_state == results[1].random_state != results[2].random_state


@pytest.mark.slow
def test_an_interval_has_a_width_though_every_row_is_right():
    """That of all rows or groups; of as many rows of each class as the rarest has."""
    X, y = np.repeat([[0.0], [9.0]], [54, 6], axis=0), np.repeat([0, 1], [54, 6])
    expected = {"accuracy": 60, "balanced_accuracy": 12, "roc_auc": 12, "recall": 6}
    square = stats.t.ppf(0.975, 8) ** 2
    for groups, size in ((None, 1), (np.arange(60) // 2, 2)):
        options = {"groups": groups, "scoring": list(expected), "method": "kfold"}
        result = looms.assess(LogisticRegression(), X, y, 9, 1 / 3, **options)
        for name, n_rows in expected.items():
            n = n_rows / size
            assert (result.n_units[name], result.mean[name]) == (n, 1.0)
            assert result.interval().loc[name].tolist() == pytest.approx([n / (n + square), 1.0])


def test_an_interval_of_groups_counts_rows_between_the_ends():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(600, 1)), np.arange(600) // 30
    y = X[:, 0] + rng.normal(size=600) > 0
    result = looms.assess(LogisticRegression(), X, y, 10, groups=groups, scoring="accuracy")
    value, error = result.mean["accuracy"], result.standard_error["accuracy"]
    low, high = result.interval().loc["accuracy"]
    assert high - low == pytest.approx(2 * stats.t.ppf(0.975, 9) * error, rel=0.1)
    assert error < np.sqrt(value * (1 - value) / 20) / 2


# Comparison ----------------------------------------------------------------------


def test_a_comparison_has_the_scores_that_all_have(two_classes):
    given = {"likely": LogisticRegression(), "decides": LinearSVC()}
    compared = looms.compare(given, *two_classes, n_splits=2)
    assert {one.scores for one in compared.results.values()} == {("balanced_accuracy", "roc_auc")}
    alone = looms.assess(given["likely"], *two_classes, n_splits=2)
    assert alone.scores == ("balanced_accuracy", "roc_auc", "log_loss")
    codes = two_classes[0], np.unique(two_classes[1], return_inverse=True)[1]
    with pytest.raises(ValueError, match="no score in common"):
        looms.compare({"a": Ridge(), "b": LogisticRegression()}, *codes, n_splits=2)


@pytest.mark.slow
def test_comparison_by_hand(two_classes):
    models = {
        "machine": KernelClassifier("linear", mu=0.1),
        "logistic": LogisticRegression(),
        "majority": DummyClassifier(),
    }
    found = compare(models, *two_classes, n_splits=10, random_state=0)
    differences = found.differences()
    assert len(differences) == 3 * 3
    a, b = (
        found.results[name].table["balanced_accuracy"].to_numpy()
        for name in ("machine", "majority")
    )
    row = differences.loc[("machine", "majority", "balanced_accuracy")]
    error = np.sqrt((1 / 10 + 6 / 54) * (a - b).var(ddof=1))
    assert row["difference"] == pytest.approx((a - b).mean())
    assert row["standard_error"] == pytest.approx(error)
    t = (a - b).mean() / error
    assert row["t"] == pytest.approx(t)
    assert row["p_value"] == pytest.approx(2 * stats.t.cdf(-abs(t), 9))
    low, high = stats.t.interval(0.95, 9, (a - b).mean(), error)
    assert [row["low"], row["high"]] == pytest.approx([low, high])
    assert found.table.loc["majority", "balanced_accuracy"] == 0.5
    assert "balanced_accuracy, machine − majority" in repr(found)


@pytest.mark.slow
def test_comparison_leaves_out_splits_that_raised(numbered):
    models = {"fussy": Fussy(), "majority": DummyClassifier(), "again": Fussy()}
    found = compare(models, *numbered, n_splits=30, scoring="balanced_accuracy", random_state=0)
    n_raised = len(found.results["fussy"].failures)
    assert found.differences()["n_splits"].tolist() == 3 * [30 - n_raised]


def test_comparisons_refused(two_classes):
    two = dict.fromkeys("ab", DummyClassifier())
    with pytest.raises(ValueError, match="estimators"):
        compare({"one": DummyClassifier()}, *two_classes)
    with pytest.raises(ValueError, match="did you mean 'n_splits'"):
        compare({"a": DummyClassifier(), "b": LogisticRegression()}, *two_classes, nsplits=3)
    for method in ("bootstrap", "forward"):
        with pytest.raises(ValueError, match=method):
            compare(two, *two_classes, method=method)
    same = compare(two, *two_classes, n_splits=5).differences()
    assert (same[["difference", "t", "p_value"]] == [0, 0, 1]).all(axis=None)


@pytest.mark.parametrize(
    ("given", "n"),
    [
        (["rare: 'a' ('x1'), 'b' ('u'). Correct", "rare: 'a' (\"it, x\") and 2 more. Correct"], 1),
        (["2 rows: 'a' (ROC AUC 0.99) gives", "3 rows: 'a' (ROC AUC 0.98) gives"], 1),
        (["'a' (ROC AUC 0.99) gives", "'b' (ROC AUC 0.99) gives"], 2),
    ],
)
def test_warnings_that_differ_in_values_are_one(given, n):
    assert distinct(given) == tuple(given[:n])
