"""What is said to be distrusted: each caution where it is due, and not elsewhere."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import LSSVMClassifier, LSSVMClassifierCV, LSSVMRegressorCV, assess
from looms.kernels import RBF
from looms.report import summary
from looms.report._cautions import _essence


def titles(estimator, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = summary(estimator, **options)["cautions"]
    assert all(c["level"] in ("serious", "note") and c["text"].endswith(".") for c in found)
    levels = [c["level"] for c in found]
    assert levels == sorted(levels, reverse=True)
    return {c["title"]: (c["level"], c["text"]) for c in found}


def quietly(estimator, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y, **options)


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    return X, X[:, 0] + 0.5 * rng.normal(size=160) > 0


def test_a_good_fit_has_few(points):
    X, y = points
    found = titles(quietly(LSSVMClassifierCV("linear"), X, y))
    assert set(found) == {"No outer estimate"}
    assert "chose 1 hyper-parameter," in found["No outer estimate"][1]


def test_outer_estimate(points):
    X, y = points
    model = quietly(LSSVMClassifierCV(["linear", "rbf"], threshold="ber"), X, y)
    assert "and a threshold" in titles(model)["No outer estimate"][1]
    result = assess(model, X, y, n_splits=3, random_state=0)
    found = titles(model, assessment=result)
    assert "No outer estimate" not in found
    text = found["Optimism of leave-one-out"][1]
    assert "chose among 2 candidates and 1 hyper-parameter and a" in text
    assert result.optimism_text("ber") in text
    (score, _) = summary(model, assessment=result)["assessment"]["scores"]
    assert score["standard_error"] == result.standard_error["ber"]
    assert score["optimism_error"] == result.figures("ber").optimism_error


def test_given_hyperparameters_were_not_chosen(points):
    assert titles(LSSVMClassifier().fit(*points)) == {}


def test_failed_splits(points):
    X, y = points

    mean = X[:, 0].mean()

    class Sometimes(StandardScaler):
        def fit(self, X, y=None, sample_weight=None):
            if X[:, 0].mean() > mean:
                raise ValueError("not today")
            return super().fit(X, y)

    model = quietly(make_pipeline(Sometimes(), LSSVMClassifierCV("linear")), X, y)
    result = assess(model, X, y, n_splits=8, random_state=0)
    assert 0 < len(result.failures) < 8
    level, text = titles(model, assessment=result)["Failed splits"]
    assert level == "serious"
    assert "not today" in text


def test_many_hyperparameters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = X[:, 0]
    found = titles(quietly(LSSVMRegressorCV("ard", max_iter=5), X, y))
    assert found["Many hyper-parameters"][0] == "serious"
    assert "9 hyper-parameters were tuned on 60 samples" in found["Many hyper-parameters"][1]
    held = titles(quietly(LSSVMRegressorCV("ard", max_iter=5, prior=True), X, y))
    assert held["Many hyper-parameters"][0] == "note"


def test_bounds_and_early_stop(points):
    X, y = points
    kernel = RBF(eta=64.0, eta_bounds=(32.0, 64.0))
    found = titles(quietly(LSSVMClassifierCV(kernel), X, y))
    assert "eta\u2069 ended at its lower bound 32" in found["Hyper-parameter at a bound"][1]
    stopped = titles(quietly(LSSVMRegressorCV("ard", max_iter=1), X, X[:, 0] ** 2))
    assert "max_iter" in stopped["Search stopped early"][1]


def test_replicates(points):
    X, y = points
    X, y = np.vstack([X, X[:20]]), np.append(y, y[:20])
    level, text = titles(LSSVMClassifier().fit(X, y))["Replicates"]
    assert level == "serious"
    assert text.startswith("40 of 180 samples")
    assert titles(LSSVMClassifier().fit(X[:162], y[:162]))["Replicates"][0] == "note"


def test_few_samples_and_a_rare_class(points):
    X, y = points
    keep = np.flatnonzero(~y)[:40].tolist() + np.flatnonzero(y)[:4].tolist()
    found = titles(LSSVMClassifier().fit(X[keep], y[keep]))
    assert {"Few samples", "A small class", "Unequal classes"} <= set(found)
    assert "\u2068True\u2069 has 4 samples" in found["A small class"][1]
    assert "Consider" in found["Unequal classes"][1]
    weighted = titles(LSSVMClassifier(class_weight="balanced").fit(X[keep], y[keep]))
    assert "were weighted" in weighted["Unequal classes"][1]


def test_no_better_than_a_guess(points):
    X, _ = points
    noise = np.random.default_rng(1).normal(size=len(X))
    assert "No better than a guess" in titles(LSSVMClassifier(mu=1.0).fit(X, noise > 0))
    found = titles(quietly(LSSVMRegressorCV("linear"), X, noise))
    assert "the mean of the targets predicts as well" in found["No better than a guess"][1]


def test_too_good(points):
    X, y = points
    assert "Too good" in titles(LSSVMClassifier().fit(X + 9 * y[:, None], y))


def test_close_candidates(points):
    X, y = points
    found = titles(quietly(LSSVMClassifierCV(["linear", "rbf", "quadratic"]), X, y))
    assert "2 other candidates of 3" in found["The choice is not settled"][1]


def test_preprocessing_and_weights(points):
    X, y = points
    found = titles(make_pipeline(StandardScaler(), LSSVMClassifier()).fit(X, y))
    assert "(standardscaler)" in found["Preprocessing saw all samples"][1]
    weight = np.ones(len(y))
    weight[:7] = 0
    level, text = titles(LSSVMClassifier().fit(X, y, weight))["Samples of weight zero"]
    assert (level, text.startswith("7 of 160")) == ("note", True)


def test_intervals(points):
    X, _ = points
    rng = np.random.default_rng(0)
    y = X[:, 0] + 0.3 * rng.normal(size=len(X))
    found = titles(quietly(LSSVMRegressorCV("linear"), X, y))
    assert "fixed beforehand" in found["Intervals"][1]


def test_an_assessment_of_something_else(points):
    X, y = points
    model = quietly(LSSVMClassifierCV("linear"), X, y)
    same = assess(LSSVMClassifierCV("linear"), X, y, 2, random_state=0)
    assert not {"Another estimator was assessed", "Other samples were assessed"} & set(
        titles(model, assessment=same)
    )
    other = assess(LSSVMClassifier("linear"), X[:100], y[:100], 2, random_state=0)
    found = titles(model, assessment=other)
    assert found["Another estimator was assessed"][0] == "serious"
    assert "kernel='linear'), and this is LSSVM" in found["Another estimator was assessed"][1]
    assert "of 100 samples, and the machine of 160" in found["Other samples were assessed"][1]


@pytest.mark.parametrize("text", ["S(C=1, n_jobs=2, p=3)", "S(C=1, p=3, verbose=1)", "S(C=1, p=3)"])
def test_parameters_that_change_nothing_make_no_other_estimator(text):
    assert _essence(text) == "S(C=1, p=3)"
    assert _essence(text.replace("C=1", "C=2")) != "S(C=1, p=3)"


def test_no_sign_where_nobody_says_which_way_is_better(points):
    X, y = points
    model = quietly(LSSVMClassifierCV("linear"), X, y)

    def share(model, X, y):
        return float(np.mean(model.predict(X)))

    result = assess(model, X, y, n_splits=3, scoring=share, random_state=0)
    assert "Optimism of leave-one-out" not in titles(model, assessment=result)
    (score,) = summary(model, assessment=result)["assessment"]["scores"]
    assert score["optimism"] is score["smaller_is_better"] is None
