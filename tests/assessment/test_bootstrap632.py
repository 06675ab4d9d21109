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
from looms.assessment._bootstrap632 import (
    KNOWN,
    OutOfBag,
    no_information,
    out_of_bag,
    plus_632,
    standard_error_632,
)
from looms.estimators._metrics import named_scorer

ACCURACIES = ["accuracy", "balanced_accuracy"]


@pytest.mark.parametrize(
    ("apparent", "out_of_bag", "none", "error"),
    [
        # R = .5, .632 estimate .0368 + .1896 = .2264, correction .2 * .368 * .632 * .5 / (1 - .184)
        (0.9, 0.7, 0.5, 0.2264 + 0.2 * 0.368 * 0.632 * 0.5 / 0.816),
        # without overfitting it is the .632 estimator
        (0.8, 0.8, 0.5, 0.2),
        (0.7, 0.8, 0.5, 0.368 * 0.3 + 0.632 * 0.2),
        (0.5, 0.4, 0.6, 0.368 * 0.5 + 0.632 * 0.6),
        # full overfitting is the out-of-bag error, and stays full beyond
        (1.0, 0.5, 0.5, 0.5),
        (0.9, 0.2, 0.5, 0.368 * 0.1 + 0.632 * 0.8 + (0.5 - 0.1) * 0.368),
    ],
)
def test_by_hand(apparent, out_of_bag, none, error):
    assert plus_632("accuracy", apparent, out_of_bag, none) == pytest.approx(1 - error, rel=1e-12)


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


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["classes", "values"])
def test_out_of_bag_error_is_a_mean_over_rows(two_classes, a_line, folds, task, weighted):
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
    losses = [[] for _ in y]
    for train, test in folds(y, 12, "bootstrap", task == "classes"):
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
def test_copies_of_a_row_are_one_row_of_their_weight(two_classes, folds, model, own):
    X, y = two_classes
    options = {"method": "bootstrap", "random_state": 0, "scoring": "accuracy"}
    result = assess(model, X, y, 3, sample_weight=own, **options)
    argument = {Pipeline: "kernelclassifier__sample_weight"}.get(
        type(model), "logisticregression__sample_weight"
    )
    for (train, test), split in zip(folds(y, 3, "bootstrap"), result.splits, strict=True):
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


@pytest.mark.parametrize(
    ("apparent", "out", "ratio"),
    [(0.7, 0.8, 0.632 + 0.368 * 0.3 / 0.2), (0.9, 0.2, 0.632)],
    ids=["no overfitting", "full overfitting"],
)
def test_standard_error_is_that_of_the_out_of_bag_error_in_proportion(apparent, out, ratio):
    found = standard_error_632("accuracy", apparent, OutOfBag(out, 0.05), 0.5)
    assert found == pytest.approx(0.05 * ratio)


@pytest.mark.slow
def test_standard_errors_are_those_of_new_data():
    """Over 30 data sets of 50 rows, against the spread of the estimates."""
    estimates, errors = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 3))
        y = X[:, 0] + X[:, 1] + rng.normal(size=50) > 0
        options = {"scoring": ACCURACIES, "method": "bootstrap", "random_state": seed}
        result = assess(GaussianNB(), X, y, 20, **options)
        estimates.append(result.mean)
        errors.append(result.standard_error)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(estimates, axis=0)
    assert (ratio > 0.75).all()
    assert (ratio < 1.35).all()


@pytest.mark.slow
def test_an_interval_needs_twenty_resamples(a_line):
    few, enough = (assess(Ridge(), *a_line, n, method="bootstrap") for n in (19, 20))
    assert few.interval().isna().all(axis=None)
    assert "20 resamples" in str(few)
    assert "nan" not in str(few)
    ends = enough.interval()
    assert ((ends["low"] < enough.mean) & (enough.mean < ends["high"])).all()


def test_scores_without_a_definition(two_classes):
    count = make_scorer(zero_one_loss, normalize=False)
    for scoring, names in ((["accuracy", "f1_macro"], "not for f1_macro;"), ({"r2": count}, "r2;")):
        with pytest.raises(ValueError, match=names):
            assess(LogisticRegression(), *two_classes, scoring=scoring, method="bootstrap")
    with pytest.raises(ValueError, match="one target"):
        assess(Ridge(), np.eye(9), np.eye(9), method="bootstrap")
