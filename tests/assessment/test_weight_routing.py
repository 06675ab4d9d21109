"""Weights of samples in assessments: beside repeated rows, and beside the same done by hand."""

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import looms
from looms.assessment import AllSplitsRaisedError, compare
from looms.assessment._assess import stored
from looms.assessment._bootstrap632 import KNOWN, no_information
from looms.assessment._scoring import score_all
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import plan
from looms.criteria._error_rates import balanced_error_rate
from looms.estimators._metrics import named_scorer

SCORES = ["balanced_accuracy", "accuracy", "roc_auc", "neg_log_loss"]
W60 = np.random.default_rng(5).integers(1, 5, 60).astype(float)
W50 = np.random.default_rng(6).integers(0, 4, 50).astype(float)


def folds(y, n=4, method="shuffle", stratified=True):
    options = {"n_splits": n, "test_size": 0.1, "random_state": 0, "stratified": stratified}
    return [split.rows(y) for split in plan(y, method=method, **options)]


def scores_of_duplicates(model, X, y, weight, names, train, test):
    """Of a fit to, and a test on, rows repeated as often as they weigh."""
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    model.fit(*(v[copies[np.isin(copies, train)]] for v in (X, y)))
    rows = copies[np.isin(copies, test)]
    return score_all({n: named_scorer(n) for n in names}, model, X[rows], y[rows])


def weighted(model, X, y, weight, n=4, **options):
    return looms.assess(model, X, y, n, random_state=0, sample_weight=weight, **options)


@pytest.mark.slow
@pytest.mark.parametrize("model", [
    LogisticRegression(tol=1e-10, max_iter=1000),
    make_pipeline(sklearn.preprocessing.FunctionTransformer(), LogisticRegression(tol=1e-10)),
    GridSearchCV(LogisticRegression(tol=1e-10), {"C": [1.0]}, cv=2),
    looms.KernelClassifier("linear", mu=0.1, calibration=None),
], ids=["plain", "pipeline", "search", "machine"])  # fmt: skip
def test_integer_weights_are_copies(two_classes, model):
    X, y = two_classes
    names = SCORES[:3] if isinstance(model, looms.KernelClassifier) else SCORES
    found = weighted(model, X, y, W60, scoring=names)
    for (train, test), split in zip(folds(y), found.splits, strict=True):
        expected = scores_of_duplicates(model, X, y, W60, names, train, test)
        assert split.scores == pytest.approx(expected, rel=1e-5)
    plain = looms.assess(model, X, y, 4, scoring=names, random_state=0)
    assert not np.allclose(found.table[names], plain.table[names])


@pytest.mark.parametrize("model", [
    Ridge(),
    make_pipeline(Ridge()),
    TransformedTargetRegressor(Ridge()),
    GridSearchCV(make_pipeline(Ridge()), {"ridge__alpha": [1.0]}, cv=2),
    looms.KernelRegressor("linear", mu=0.1),
], ids=["plain", "pipeline", "transformed", "search", "machine"])  # fmt: skip
def test_integer_weights_are_copies_in_regressions(a_line, model):
    """Zeros among them."""
    X, y = a_line
    names = ["rmse", "r2", "neg_mean_absolute_error"]
    found = weighted(model, X, y, W50, scoring=names)
    for (train, test), split in zip(folds(y, stratified=False), found.splits, strict=True):
        expected = scores_of_duplicates(model, X, y, W50, names, train, test)
        assert split.scores == pytest.approx(expected)


def test_defaults_of_an_ensemble(two_classes):
    model = VotingClassifier([("a", LogisticRegression()), ("b", DummyClassifier())], voting="soft")
    X, y = two_classes
    found = weighted(model, X, y, W60, 2)
    for (train, test), split in zip(folds(y, 2), found.splits, strict=True):
        model.fit(X[train], y[train], sample_weight=W60[train])
        p = model.predict_proba(X[test])[:, 1]
        assert split.scores["roc_auc"] == roc_auc_score(y[test], p, sample_weight=W60[test])


@pytest.mark.slow
def test_the_whole_selection_and_leave_one_out_by_hand(two_classes):
    X, y = two_classes
    model = make_pipeline(StandardScaler(), looms.KernelClassifier("linear", threshold="balanced"))
    found = weighted(model, X, y, W60, scoring=SCORES[:3])
    for (train, _), (_, row) in zip(folds(y), found.table.iterrows(), strict=True):
        fit = {"kernelclassifier__sample_weight": W60[train]}
        machine = model.fit(X[train], y[train], **fit)[-1]
        outputs, weight = machine.loo_.outputs, W60[train]
        said = np.where(outputs > machine.threshold_, "yes", "no")
        right = accuracy_score(y[train], said, sample_weight=weight)
        assert (row["mu"], row["threshold"]) == (machine.mu_, machine.threshold_)
        assert row["loo_accuracy"] == pytest.approx(right)
        apart = clone(model).fit(X[train], y[train], **fit)
        assert row["loo_roc_auc"] == pytest.approx(apart[-1].evaluate(nested=False)["roc_auc"])
        rate = balanced_error_rate(*machine.loo_, threshold=machine.threshold_)
        assert row["loo_balanced_accuracy"] == pytest.approx(1 - rate)
    plain = looms.assess(model, X, y, 4, scoring=SCORES[:3], random_state=0)
    assert not np.allclose(found.table["loo_roc_auc"], plain.table["loo_roc_auc"])


@pytest.mark.parametrize("form", [list, np.asarray, lambda w: w.astype(int)])
def test_forms_of_weights_and_other_data(two_classes, form):
    X, y = two_classes
    expected = weighted(LogisticRegression(), X, y, W60).table
    assert weighted(LogisticRegression(), X, y, form(W60)).table.equals(expected)
    found = weighted(LogisticRegression(), sparse.csr_array(X), y, form(W60)).table
    np.testing.assert_allclose(found["roc_auc"], expected["roc_auc"])


def test_scorers_that_take_weights_and_others(two_classes):
    X, y = two_classes

    def takes(estimator, X, y, sample_weight=None):
        return 0.0 if sample_weight is None else sample_weight.sum()

    def takes_none(estimator, X, y):
        return len(y)

    scoring = {"takes": takes, "none": takes_none, "accuracy": "accuracy"}
    found = weighted(LogisticRegression(), X, y, W60, scoring=scoring)
    for (_, test), split in zip(folds(y), found.splits, strict=True):
        assert (split.scores["takes"], split.scores["none"]) == (W60[test].sum(), len(test))
    assert list(found.splits[0].scores) == list(scoring)


def test_a_class_without_weight_does_not_count():
    scorers = {"balanced_accuracy": named_scorer("balanced_accuracy")}
    y, weight = np.array([0, 0, 1, 1]), np.array([1.0, 3.0, 0.0, 0.0])
    model = DummyClassifier(strategy="constant", constant=0).fit(y[:, None], y)
    assert score_all(scorers, model, y[:, None], y, weight) == {"balanced_accuracy": 1.0}
    assert score_all(scorers, model, y[:, None], y) == {"balanced_accuracy": 0.5}


@pytest.mark.parametrize("task", ["classes", "values"])
def test_no_information_is_that_of_copies(task):
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, 40)
    copies = np.repeat(np.arange(40), weight)
    if task == "classes":
        y, predicted, names = rng.integers(3, size=40), rng.integers(3, size=40), SCORES[:2]
    else:
        y, predicted, names = rng.normal(size=40), rng.normal(1, size=40), ["rmse", "r2"]
    assert set(names) <= set(KNOWN)
    scorers = {name: named_scorer(name) for name in names}
    found = no_information(scorers, y, predicted, weight)
    assert found == pytest.approx(no_information(scorers, y[copies], predicted[copies]))
    assert found != pytest.approx(no_information(scorers, y, predicted))
    unweighted = {name: lambda estimator, X, y: 0.0 for name in names}
    expected = no_information(scorers, y, predicted)
    assert no_information(unweighted, y, predicted, weight) == pytest.approx(expected)


def test_bootstrap_draws_rows_with_their_weights(two_classes):
    X, y = two_classes
    model = LogisticRegression()
    found = weighted(model, X, y, W60, 5, scoring=SCORES[:2], method="bootstrap")
    _, *splits = folds(y, 5, "bootstrap")
    for (train, test), split in zip(splits, found.splits, strict=True):
        assert len(np.unique(train)) < len(train)
        model.fit(X[train], y[train], sample_weight=W60[train])
        right = model.score(X[test], y[test], sample_weight=W60[test])
        assert split.scores["accuracy"] == pytest.approx(right)
    model.fit(X, y, sample_weight=W60)
    assert found.whole.scores["accuracy"] == pytest.approx(model.score(X, y, W60))
    scorers = {name: named_scorer(name) for name in SCORES[:2]}
    expected = no_information(scorers, y, model.predict(X), W60)
    assert found.whole.no_information == expected


@pytest.mark.slow
def test_stores_tell_weights_apart_and_resume(two_classes, tmp_path):
    X, y = two_classes

    def run(n, weight, store="store"):
        ran = []
        options = {"store": tmp_path / store, "progress": lambda *said: ran.append(said[2])}
        result = weighted(LogisticRegression(), X, y, weight, n, **options)
        return result.table, len([split for split in ran if split is not None])

    expected = weighted(LogisticRegression(), X, y, W60, 6).table
    assert run(3, W60)[1] == 3
    found, ran = run(6, W60.tolist())
    assert ran == 3
    assert found.to_csv() == expected.to_csv()
    nearly = W60.copy()
    nearly[0] = np.nextafter(nearly[0], 9)
    assert run(6, nearly)[1] == 6
    assert run(6, None)[1] == 6
    assert run(6, np.ones(60))[1] == 6
    options = {"store": tmp_path / "store", "random_state": 0}
    there = stored(LogisticRegression(), X, y, 6, sample_weight=W60, **options)
    assert there.table.to_csv() == expected.to_csv()
    assert stored(LogisticRegression(), X, y, 6, sample_weight=2 * W60, **options) is None


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_workers_give_the_same(two_classes, backend):
    """Routing too, which is a setting of the thread that calls."""
    X, y = two_classes
    scoring = ["neg_log_loss", "balanced_accuracy"]
    with joblib.parallel_config(backend):
        steps = make_pipeline(StandardScaler(), LogisticRegression())
        by_name = [weighted(steps, X, y, W60, scoring=scoring, n_jobs=n).table for n in (1, 2)]
    with joblib.parallel_config(backend), sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=True),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
        routed = [weighted(model, X, y, W60, scoring=scoring, n_jobs=n).table for n in (1, 2)]
    assert by_name[0].equals(by_name[1])
    assert routed[0].equals(routed[1])  # with the scaler weighted
    assert (by_name[0]["neg_log_loss"] != routed[0]["neg_log_loss"]).all()


@pytest.mark.slow
def test_metadata_routing(two_classes, tmp_path):
    """As `cross_validate` routes them; every part that could take weights says whether it does."""
    X, y = two_classes

    def model(of_scaler):
        return make_pipeline(
            StandardScaler().set_fit_request(sample_weight=of_scaler),
            LogisticRegression().set_fit_request(sample_weight=True),
        )

    with sklearn.config_context(enable_metadata_routing=True):
        accuracy = named_scorer("accuracy").set_score_request(sample_weight=True)
        log_loss = named_scorer("neg_log_loss").set_score_request(sample_weight=False)
        scoring = {"accuracy": accuracy, "log_loss": log_loss}
        options = {"scoring": scoring, "store": tmp_path / "store"}
        for of_scaler in (True, False):
            found = weighted(model(of_scaler), X, y, W60, **options).table
            theirs = cross_validate(
                model(of_scaler),
                X,
                y,
                cv=folds(y),
                scoring=scoring,
                params={"sample_weight": W60},
            )
            for name in scoring:
                np.testing.assert_array_equal(found[name], theirs[f"test_{name}"])
        kept = weighted(model(False), X, y, W60, **options).table
        scoring["accuracy"] = named_scorer("accuracy").set_score_request(sample_weight=False)
        other = weighted(model(False), X, y, W60, **options).table
        assert kept.equals(found)
        assert (kept["log_loss"] == other["log_loss"]).all()
        assert (kept["accuracy"] != other["accuracy"]).any()
        assert weighted(model(True), X, y, W60, scoring="balanced_accuracy").failures == {}
        with pytest.raises(UnsetMetadataPassedError, match="set_fit_request"):
            weighted(LogisticRegression(), X, y, W60)
        refused = LogisticRegression().set_fit_request(sample_weight=False)
        with pytest.raises(ValueError, match="nothing in LogisticRegression asks for"):
            weighted(refused, X, y, W60)
        with pytest.raises((ValueError, TypeError), match="sample_weight"):
            weighted(make_pipeline(StandardScaler(), LogisticRegression()), X, y, W60)


@pytest.mark.slow
def test_comparison(two_classes):
    X, y = two_classes
    models = {"a": LogisticRegression(), "b": LogisticRegression(C=1e-3)}
    found = compare(models, X, y, n_splits=4, random_state=0, sample_weight=W60)
    for name, model in models.items():
        assert found.results[name].table.equals(weighted(model, X, y, W60).table)
    ran = []
    options = {"progress": lambda *said: ran.append(said), "n_splits": 4}
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\(\) takes no sample_weight"):
        compare({**models, "c": KNeighborsClassifier()}, X, y, sample_weight=W60, **options)
    assert ran == []


@pytest.mark.parametrize(
    ("model", "weight", "said"),
    [
        (KNeighborsClassifier(), W60, r"KNeighborsClassifier\(\) takes no sample_weight in fit"),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier()),
            W60,
            r"^Pipeline.*KNeighborsClassifier.* takes no",
        ),
        (GridSearchCV(KNeighborsClassifier(), {}), W60, "takes no sample_weight"),
        (make_pipeline(StandardScaler(), "passthrough"), W60, "takes no sample_weight"),
        (LogisticRegression(), W60[:-1], "each of the 60 samples, but has shape"),
        (LogisticRegression(), 1.0, "each of the 60 samples"),
        (LogisticRegression(), -W60, "not negative"),
        (LogisticRegression(), np.full(60, np.nan), "finite"),
        (LogisticRegression(), np.zeros(60), "not all zero"),
    ],
)
def test_refusals(two_classes, model, weight, said):
    with pytest.raises(ValueError, match=said):
        weighted(model, *two_classes, weight)


def test_a_test_part_without_weight_is_recorded(two_classes):
    X, y = two_classes
    first = folds(y)[0][1]
    weight = np.ones(60)
    weight[first] = 0.0
    found = weighted(LogisticRegression(), X, y, weight)
    assert found.failures == {0: "ValueError: No row of the test part has a positive weight."}


def test_all_splits_raise_with_their_result(two_classes):
    X, y = two_classes
    with pytest.raises(AllSplitsRaisedError, match="All 3 splits raised; the first") as caught:
        weighted(LogisticRegression(C=-1.0), X, y, W60, 3)
    assert [type(split) for split in caught.value.result.splits] == 3 * [SplitResult]
    assert len(caught.value.result.failures) == 3
