"""The .632+ bootstrap by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    make_scorer,
    r2_score,
    root_mean_squared_error,
    zero_one_loss,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier, KernelRegressor, assess
from looms.assessment._bootstrap632 import KNOWN, no_information, out_of_bag, plus_632
from looms.assessment._splits import plan
from looms.estimators._metrics import named_scorer

ACCURACIES = ["accuracy", "balanced_accuracy"]


def test_by_hand():
    # err = .1, Err(1) = .3, gamma = .5: R = .5, .632 estimate .0368 + .1896 = .2264,
    # correction .2 * .368 * .632 * .5 / (1 - .184)
    expected = 0.2264 + 0.2 * 0.368 * 0.632 * 0.5 / 0.816
    assert plus_632("accuracy", 0.9, 0.7, 0.5) == pytest.approx(1 - expected, rel=1e-12)


def test_without_overfitting_it_is_the_632():
    assert plus_632("accuracy", 0.8, 0.8, 0.5) == pytest.approx(0.8)
    assert plus_632("accuracy", 0.7, 0.8, 0.5) == pytest.approx(0.368 * 0.7 + 0.632 * 0.8)
    assert plus_632("accuracy", 0.5, 0.4, 0.6) == pytest.approx(0.368 * 0.5 + 0.632 * 0.4)


def test_full_overfitting_is_the_out_of_bag_error():
    assert plus_632("accuracy", 1.0, 0.5, 0.5) == pytest.approx(0.5)


def test_beyond_the_error_without_information_overfitting_stays_full():
    expected = 0.368 * 0.1 + 0.632 * 0.8 + (0.5 - 0.1) * 0.368
    assert plus_632("accuracy", 0.9, 0.2, 0.5) == pytest.approx(1 - expected)


def test_no_information_is_the_score_over_all_pairs():
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(3, size=40), rng.integers(3, size=40)
    pairs = np.repeat(y, 40), np.tile(predicted, 40)
    found = no_information(dict.fromkeys(KNOWN), y, predicted)
    assert found["accuracy"] == pytest.approx(accuracy_score(*pairs))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(*pairs))
    assert found["roc_auc"] == 0.5
    y, f = rng.normal(size=40), rng.normal(1.0, size=40)
    pairs = np.repeat(y, 40), np.tile(f, 40)
    found = no_information({"rmse": None, "r2": None}, y, f)
    assert found["rmse"] == pytest.approx(root_mean_squared_error(*pairs))
    assert found["r2"] == pytest.approx(r2_score(*pairs))


def resamples(y, n, stratified=True):
    options = {"n_splits": n, "test_size": 0.1, "random_state": 0, "stratified": stratified}
    return [split.rows(y) for split in plan(y, method="bootstrap", **options)][1:]


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["classes", "values"])
def test_out_of_bag_error_is_a_mean_over_rows(two_classes, a_line, task, weighted):
    """Row by row, as it is defined, of machines fitted by hand to the copies."""
    if task == "classes":
        (X, y), names = two_classes, ACCURACIES
        # Calibration sees copies where it sees no weights: the decisions are those of outputs.
        model = KernelClassifier("linear", mu=0.1, calibration=None)
        loss = lambda y, f: float(y != f)  # noqa: E731
    else:
        (X, y), model, names = a_line, KernelRegressor("linear", mu=0.1), ["rmse", "r2"]
        loss = lambda y, f: (y - f) ** 2  # noqa: E731
    w = np.random.default_rng(3).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    parts = resamples(y, 12, task == "classes")
    losses = [[] for _ in y]
    for train, test in parts:
        model.fit(X[train], y[train], sample_weight=w[train])
        for i, f in zip(test, model.predict(X[test]), strict=True):
            losses[i].append(loss(y[i], f))
    kept = [i for i in range(len(y)) if losses[i]]
    own, w_kept, y_kept = np.array([np.mean(losses[i]) for i in kept]), w[kept], y[kept]
    if task == "classes":
        error = np.sum(w_kept * own) / np.sum(w_kept)
        by_class = [
            np.sum((w_kept * own)[y_kept == c]) / np.sum(w_kept[y_kept == c]) for c in set(y)
        ]
        expected = dict(zip(ACCURACIES, (1 - error, 1 - np.mean(by_class)), strict=True))
    else:
        square, mean = np.sum(w_kept * own) / np.sum(w_kept), np.sum(w_kept * y_kept) / w_kept.sum()
        variance = np.sum(w_kept * (y_kept - mean) ** 2) / np.sum(w_kept)
        expected = {"rmse": np.sqrt(square), "r2": 1 - square / variance}
    options = {"method": "bootstrap", "random_state": 0, "scoring": names}
    result = assess(model, X, y, 12, sample_weight=w if weighted else None, **options)
    assert {n: each.score for n, each in result.out_of_bag.items()} == pytest.approx(expected)
    for name in names:
        whole = (result.whole.scores[name], result.out_of_bag[name].score)
        estimate = plus_632(name, *whole, result.whole.no_information[name])
        assert result.mean[name] == pytest.approx(estimate)
        assert result.out_of_bag[name].score != result.table[name].mean()


def test_the_area_is_a_mean_over_resamples(two_classes):
    options = {"method": "bootstrap", "random_state": 0, "scoring": "roc_auc"}
    result = assess(LogisticRegression(), *two_classes, 5, **options)
    assert result.out_of_bag["roc_auc"].score == result.table["roc_auc"].mean()


@pytest.mark.parametrize("own", [None, np.random.default_rng(5).uniform(0.5, 2.0, 60)])
@pytest.mark.parametrize("model", [
    make_pipeline(StandardScaler(), KernelClassifier("linear")),
    GridSearchCV(make_pipeline(LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}),
], ids=["machine", "search"])  # fmt: skip
@pytest.mark.slow
def test_copies_of_a_row_are_one_row_of_their_weight(two_classes, model, own):
    X, y = two_classes
    options = {"method": "bootstrap", "random_state": 0, "scoring": "accuracy"}
    result = assess(model, X, y, 3, sample_weight=own, **options)
    argument = {Pipeline: "kernelclassifier__sample_weight"}.get(
        type(model), "logisticregression__sample_weight"
    )
    for (train, test), split in zip(resamples(y, 3), result.splits, strict=True):
        times = np.bincount(train, minlength=60)
        rows = np.flatnonzero(times)
        weight = times * (np.ones(60) if own is None else own)
        model.fit(X[rows], y[rows], **{argument: weight[rows]})
        w = None if own is None else own[test]
        right = accuracy_score(y[test], model.predict(X[test]), sample_weight=w)
        assert split.scores == pytest.approx({"accuracy": right})
        assert split.n_train == len(rows) == 60 - split.n_test


@pytest.mark.parametrize("model", [
    KNeighborsClassifier(1),
    VotingClassifier([("a", LogisticRegression()), ("b", KNeighborsClassifier(1))]),
], ids=["plain", "voting"])  # fmt: skip
def test_estimators_without_weights_get_the_copies_and_a_warning(two_classes, model):
    X, y = two_classes
    with pytest.warns(UserWarning, match=f"{type(model).__name__} cannot be given sample_weight"):
        result = assess(model, X, y, 3, method="bootstrap", scoring="accuracy", random_state=0)
    assert [split.n_train for split in result.splits] == [60, 60, 60]
    assert "contained duplicate rows" in repr(result)


@pytest.mark.slow
def test_selection_by_leave_one_out_is_not_misled(data_folder):
    """Ripley's split of the Pima data: random splits and the test set give 0.72 to 0.75."""
    table = pd.read_csv(data_folder / "pima_tr.csv")
    X, y = table.drop(columns="target").to_numpy(), table["target"].to_numpy()
    model = make_pipeline(StandardScaler(), KernelClassifier("rbf"))
    result = assess(model, X, y, 8, scoring="balanced_accuracy", method="bootstrap", random_state=0)
    assert result.mean["balanced_accuracy"] > 0.68
    assert result.table["gamma"].median() < 0.1  # with copies 1, the nearest neighbor
    assert "copies" not in repr(result)


@pytest.mark.filterwarnings("ignore:KNeighborsClassifier cannot be given sample_weight")
@pytest.mark.slow
def test_assessment_puts_them_together(two_classes):
    X, y = two_classes
    nearest = KNeighborsClassifier(1)
    result = assess(nearest, X, y, 20, scoring="accuracy", method="bootstrap", random_state=0)
    assert result.whole.scores["accuracy"] == 1.0
    out_of_bag = result.out_of_bag["accuracy"].score
    expected = plus_632("accuracy", 1.0, out_of_bag, result.whole.no_information["accuracy"])
    assert 0.632 * (1 - out_of_bag) < 1 - result.mean["accuracy"] <= 1 - out_of_bag
    assert result.mean["accuracy"] == pytest.approx(expected)
    interval = result.interval()
    assert interval.loc["accuracy", "low"] < expected < interval.loc["accuracy", "high"]
    assert "20 bootstrap resamples" in result.summary()


#: Errors from the mean losses E under probabilities p of the samples.
FUNCTIONALS = {
    "accuracy": lambda p, E, y: p @ E / p.sum(),
    "balanced_accuracy": lambda p, E, y: np.mean(
        [p[y == k] @ E[y == k] / p[y == k].sum() for k in (0, 1)]
    ),
    "rmse": lambda p, E, y: np.sqrt(p @ E / p.sum()),
    "r2": lambda p, E, y: p @ E / (p @ (y - p @ y / p.sum()) ** 2),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_standard_error_is_the_delta_method_of_its_definition(
    name, learns, weighted, numerical_gradient
):
    """Derivatives of the score by differences; a machine that learns shifts with what it drew."""
    n, n_resamples, rng = 16, 40, np.random.default_rng(4)
    y = np.arange(n) % 2 if name in ACCURACIES else rng.normal(size=n)
    p = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    resamples, losses, drawn = [], np.zeros((n_resamples, n)), []
    for b in range(n_resamples):
        train = rng.integers(n, size=n)
        test = np.setdiff1d(np.arange(n), train)
        f = y[test] + 0.3 * rng.normal(size=len(test)) + learns * (1 + y[train].mean())
        f = f > rng.uniform(0.0, 2.0, len(test)) if name in ACCURACIES else f
        resamples.append((train, test, SimpleNamespace(scores={name: 0.0}, predictions=f)))
        losses[b, test] = (y[test] - f) ** 2
        drawn.append(np.bincount(train, minlength=n))
    out = np.equal(drawn, 0)
    E = losses.sum(axis=0) / out.sum(axis=0)
    score = FUNCTIONALS[name]
    p = p / p.sum()
    by_E = numerical_gradient(lambda E: score(p, E, y), E)
    by_p = numerical_gradient(lambda p: score(p, E, y), p, 1e-3 / n)
    tested = p * (by_p - p @ by_p)
    terms = (np.array(drawn) - 1) * ((out * (losses - E)) @ (by_E / out.sum(axis=0)))[:, None]
    noise = n_resamples * terms.var(axis=0, ddof=1).sum()
    variance = np.sum((tested + terms.sum(axis=0)) ** 2) - noise
    expected = np.sqrt(max(variance, np.sum(tested**2)))
    ours = out_of_bag({name: named_scorer(name)}, y, p if weighted else None, resamples)[name]
    assert ours.standard_error == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("names", [ACCURACIES, ["rmse", "r2"]])
def test_standard_errors_are_those_of_new_data(names):
    """Over 40 data sets of 50 rows, against the spread of the estimates."""
    estimates, errors = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 3))
        y = X[:, 0] + X[:, 1] + rng.normal(size=50)
        model = Ridge() if "r2" in names else GaussianNB()
        y = y if "r2" in names else y > 0
        result = assess(model, X, y, 20, scoring=names, method="bootstrap", random_state=seed)
        estimates.append(result.mean)
        errors.append(result.standard_error)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(estimates, axis=0)
    assert (ratio > 0.75).all()
    assert (ratio < 1.35).all()


def test_no_interval_from_few_resamples(a_line):
    result = assess(Ridge(), *a_line, 19, method="bootstrap", random_state=0)
    assert result.interval().isna().all(axis=None)
    assert result.standard_error.isna().all()
    assert "An interval needs 20 resamples." in str(result)
    assert "nan" not in str(result)


def test_scores_without_a_definition(two_classes):
    with pytest.raises(ValueError, match=r"not for f1_macro, neg_log_loss; .*shuffle"):
        assess(
            KNeighborsClassifier(),
            *two_classes,
            scoring=["accuracy", "f1_macro", "neg_log_loss"],
            method="bootstrap",
        )


def test_another_score_by_a_known_name(two_classes):
    count = make_scorer(zero_one_loss, normalize=False)
    with pytest.raises(ValueError, match="under these names, not for accuracy"):
        assess(LogisticRegression(), *two_classes, scoring={"accuracy": count}, method="bootstrap")


def test_several_targets_are_refused():
    with pytest.raises(ValueError, match="takes one target"):
        assess(Ridge(), np.eye(9), np.eye(9), method="bootstrap")
