"""Weights of samples in assessments: beside repeated rows, and beside the same done by hand."""

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import looms
from looms.assessment import compare
from looms.assessment._bootstrap632 import no_information
from looms.assessment._scoring import score_all
from looms.criteria._error_rates import balanced_error_rate
from looms.estimators._metrics import named_scorer

SCORES = ["balanced_accuracy", "accuracy", "roc_auc", "neg_log_loss"]
W60 = np.random.default_rng(5).integers(1, 5, 60).astype(float)
W50 = np.random.default_rng(6).integers(0, 4, 50).astype(float)
LOGISTIC = LogisticRegression(tol=1e-10, max_iter=1000)


def weighted(model, X, y, weight, n=4, **options):
    return looms.assess(model, X, y, n, random_state=0, sample_weight=weight, **options)


@pytest.mark.slow
@pytest.mark.parametrize("model", [
    LOGISTIC,
    make_pipeline(sklearn.preprocessing.FunctionTransformer(), LOGISTIC),
    GridSearchCV(LOGISTIC, {"C": [1.0]}, cv=2),
    looms.KernelClassifier("linear", mu=0.1, calibration=None),
    TransformedTargetRegressor(Ridge()),
    GridSearchCV(make_pipeline(Ridge()), {"ridge__alpha": [1.0]}, cv=2),
    looms.KernelRegressor("linear", mu=0.1),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_integer_weights_are_copies(folds, two_classes, a_line, model):
    """Of a fit to, and a test on, rows repeated as often as they weigh; zeros among them."""
    if classes := sklearn.base.is_classifier(model):
        (X, y), weight = two_classes, W60
        names = SCORES if hasattr(model, "predict_proba") else SCORES[:3]
    else:
        (X, y), weight, names = a_line, W50, ["rmse", "r2", "neg_mean_absolute_error"]
    found = weighted(model, X, y, weight, scoring=names)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    scorers = {name: named_scorer(name) for name in names}
    for (train, test), split in zip(folds(y, stratified=classes), found.splits, strict=True):
        model.fit(*(v[copies[np.isin(copies, train)]] for v in (X, y)))
        rows = copies[np.isin(copies, test)]
        assert split.scores == pytest.approx(score_all(scorers, model, X[rows], y[rows]), rel=1e-5)
    plain = looms.assess(model, X, y, 4, scoring=names, random_state=0)
    assert not np.allclose(found.table[names], plain.table[names])


@pytest.mark.slow
def test_the_whole_selection_and_leave_one_out_by_hand(folds, two_classes):
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
        assert (row["kernel"], row["criterion"]) == ("linear", "press")
        assert row["loo_accuracy"] == pytest.approx(right)
        apart = clone(model).fit(X[train], y[train], **fit)
        assert row["loo_roc_auc"] == pytest.approx(apart[-1].evaluate(nested=False)["roc_auc"])
        rate = balanced_error_rate(*machine.loo_, threshold=machine.threshold_)
        assert row["loo_balanced_accuracy"] == pytest.approx(1 - rate)


@pytest.mark.slow
def test_forms_of_weights_and_other_data(two_classes):
    X, y = two_classes
    expected = weighted(LogisticRegression(), X, y, W60).table
    for weight in (W60.tolist(), W60.astype(int), W60[:, None]):
        assert weighted(LogisticRegression(), X, y, weight).table.equals(expected)
    found = weighted(LogisticRegression(), sparse.csr_array(X), y, W60).table
    np.testing.assert_allclose(found["roc_auc"], expected["roc_auc"])


def test_scorers_that_take_weights_and_others(folds, two_classes):
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


@pytest.mark.parametrize("names", [SCORES[:2], ["rmse", "r2"]])
def test_no_information_is_that_of_copies(names):
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, 40)
    copies = np.repeat(np.arange(40), weight)
    y, predicted = rng.normal([[0.0], [1.0]], size=(2, 40))
    if "accuracy" in names:
        y, predicted = rng.integers(3, size=(2, 40))
    scorers = {name: named_scorer(name) for name in names}
    found = no_information(scorers, y, predicted, weight)
    assert found == pytest.approx(no_information(scorers, y[copies], predicted[copies]))
    expected = no_information(scorers, y, predicted)
    assert found != pytest.approx(expected)
    unweighted = {name: lambda estimator, X, y: 0.0 for name in names}
    assert no_information(unweighted, y, predicted, weight) == pytest.approx(expected)


def test_the_fit_to_all_rows_has_their_weights(two_classes):
    X, y = two_classes
    whole = weighted(
        LogisticRegression(), X, y, W60, 5, scoring=SCORES[:2], method="bootstrap"
    ).whole
    model = LogisticRegression().fit(X, y, sample_weight=W60)
    assert whole.scores["accuracy"] == pytest.approx(model.score(X, y, W60))
    scorers = {name: named_scorer(name) for name in SCORES[:2]}
    assert whole.no_information == no_information(scorers, y, model.predict(X), W60)


def routed(of_scaler):
    return make_pipeline(
        StandardScaler().set_fit_request(sample_weight=of_scaler),
        LogisticRegression().set_fit_request(sample_weight=True),
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_workers_give_the_same(two_classes, backend):
    """Routing too, which is a setting of the thread that calls."""
    options = {"scoring": ["neg_log_loss", "balanced_accuracy"]}
    tables = []
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            model = (
                routed(True) if routing else make_pipeline(StandardScaler(), LogisticRegression())
            )
            alone = weighted(model, *two_classes, W60, **options).table
            with joblib.parallel_config(backend, n_jobs=2):
                assert weighted(model, *two_classes, W60, **options).table.equals(alone)
        tables.append(alone)
    assert (tables[0]["neg_log_loss"] != tables[1]["neg_log_loss"]).all()  # of a weighted scaler


@pytest.mark.slow
def test_metadata_routing(folds, two_classes, tmp_path):
    """As `cross_validate` routes them; every part that could take weights says whether it does."""
    X, y = two_classes
    with sklearn.config_context(enable_metadata_routing=True):
        accuracy = named_scorer("accuracy").set_score_request(sample_weight=True)
        log_loss = named_scorer("neg_log_loss").set_score_request(sample_weight=False)
        scoring = {"accuracy": accuracy, "log_loss": log_loss}
        options = {"scoring": scoring, "store": tmp_path / "store"}
        for of_scaler in (True, False):
            model = routed(of_scaler)
            found = weighted(model, X, y, W60, **options).table
            theirs = cross_validate(
                *(model, X, y), cv=folds(y), scoring=scoring, params={"sample_weight": W60}
            )
            for name in scoring:
                np.testing.assert_array_equal(found[name], theirs[f"test_{name}"])
        assert weighted(model, X, y, W60, scoring="balanced_accuracy").failures == {}
        scoring["accuracy"] = named_scorer("accuracy").set_score_request(sample_weight=False)
        other = weighted(model, X, y, W60, **options).table
        assert (found["log_loss"] == other["log_loss"]).all()
        assert (found["accuracy"] != other["accuracy"]).any()
        with pytest.raises(UnsetMetadataPassedError, match="set_fit_request"):
            weighted(LogisticRegression(), X, y, W60)
        refused = LogisticRegression().set_fit_request(sample_weight=False)
        with pytest.raises(ValueError, match="LogisticRegression"):
            weighted(refused, X, y, W60)
        with pytest.raises((ValueError, TypeError), match="sample_weight"):
            weighted(make_pipeline(StandardScaler(), LogisticRegression()), X, y, W60)
        model, options["scoring"] = routed(True), "log_loss"
        by_request = weighted(model, X, y, W60, **options).table
    by_name = weighted(model, X, y, W60, **options).table  # in the same store; not of the scaler
    assert (by_name["log_loss"] != by_request["log_loss"]).all()


@pytest.mark.slow
def test_comparison(two_classes):
    X, y = two_classes
    models = {"a": LogisticRegression(), "b": LogisticRegression(C=1e-3)}
    found = compare(models, X, y, n_splits=4, random_state=0, sample_weight=W60)
    for name, model in models.items():
        assert found.results[name].table.equals(weighted(model, X, y, W60).table)
    ran = []
    with pytest.raises(ValueError, match="KNeighborsClassifier"):
        compare(
            {**models, "c": KNeighborsClassifier()},
            *(X, y),
            sample_weight=W60,
            progress=lambda *said: ran.append(said),
        )
    assert ran == []


@pytest.mark.parametrize(
    ("model", "weight", "said"),
    [
        (KNeighborsClassifier(), W60, "KNeighborsClassifier"),
        (make_pipeline(StandardScaler(), "passthrough"), W60, "sample_weight"),
        (LogisticRegression(), W60[:-1], r"shape \(59,\)"),
        (LogisticRegression(), 1.0, "60 samples"),
        (LogisticRegression(), -W60, "sample_weight .* not negative"),
        (LogisticRegression(), np.full(60, np.nan), "sample_weight .* finite"),
        (LogisticRegression(), np.zeros(60), "sample_weight .* zero"),
    ],
)
def test_refusals(two_classes, model, weight, said):
    with pytest.raises(ValueError, match=said):
        weighted(model, *two_classes, weight)


def test_a_test_part_without_weight_is_recorded(folds, two_classes):
    X, y = two_classes
    weight = np.ones(60)
    weight[folds(y)[0][1]] = 0.0
    (failure,) = weighted(LogisticRegression(), X, y, weight).failures.items()
    assert failure[0] == 0
    assert "positive weight" in failure[1]
