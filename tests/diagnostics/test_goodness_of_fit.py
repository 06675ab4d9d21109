"""The bootstrap of the deviance against one written out here, and what its replicates give."""

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from looms import KernelClassifier
from looms.calibration._sigmoid import fit_sigmoid
from looms.diagnostics import goodness_of_fit, left_out_fits
from looms.diagnostics._goodness_of_fit import GoodnessOfFit


def sample(n=50, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, np.where(X[:, 0] + random.normal(scale=0.7, size=n) > 0, "yes", "no")


def platt_deviance(machine, X, y):
    positive = y == "yes"
    if hasattr(machine, "predict_proba") and not isinstance(machine, SVC):
        p = machine.predict_proba(X)[:, 1]
    else:
        outputs = machine.decision_function(X)
        p = fit_sigmoid(outputs, np.where(positive, 1, -1)).probability(outputs)
    return -2 * np.log(np.where(positive, p, 1 - p)).sum()


def drawn(n, n_bootstrap, seed):
    """Rows of every replicate, by the seeds that the function documents."""
    for own in np.random.RandomState(seed).randint(2**31 - 1, size=n_bootstrap):
        yield np.random.RandomState(own).randint(n, size=n)


MACHINES = {
    "folded svc": SVC(C=2.0, gamma=0.5, tol=1e-8),
    "folded logistic": LogisticRegression(tol=1e-10),
    "folded least squares": KernelClassifier("linear", mu=0.1, calibration=None),
    "repeated rows": LinearSVC(C=0.1, tol=1e-10, max_iter=10**5),
    "refitted pipeline": make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10)),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.slow
def test_replicates_equal_fits_to_repeated_rows(name):
    X, y = sample()
    machine = MACHINES[name]
    found = goodness_of_fit(
        machine, X, y, 20, random_state=3, preprocessing="refitted", resampling="pairs"
    )
    expected = []
    for rows in drawn(len(y), 20, 3):
        fitted = clone(machine).fit(X[rows], y[rows])
        expected.append(platt_deviance(fitted, X[rows], y[rows]))
    np.testing.assert_allclose(found.bootstrapped, expected, rtol=1e-5)
    assert found.deviance == pytest.approx(platt_deviance(clone(machine).fit(X, y), X, y), rel=1e-5)


@pytest.mark.slow
def test_a_held_scaler_is_that_of_the_sample():
    X, y = sample()
    X[:5] *= 20
    pipeline = make_pipeline(StandardScaler(), SVC(gamma=0.5))
    held = goodness_of_fit(pipeline, X, y, 20, random_state=0)
    scaled = goodness_of_fit(pipeline[-1], StandardScaler().fit_transform(X), y, 20, random_state=0)
    assert held.bootstrapped.tolist() == scaled.bootstrapped.tolist()
    refitted = goodness_of_fit(
        *(pipeline, X, y, 20), random_state=0, preprocessing="refitted", resampling="pairs"
    )
    held = goodness_of_fit(pipeline, X, y, 20, random_state=0, resampling="pairs")
    assert np.abs(refitted.bootstrapped - held.bootstrapped).max() > 0.1


def test_labels_are_drawn_from_the_probabilities():
    X, y = sample(n=80)
    machine = LogisticRegression(C=1e6, tol=1e-10)
    options = {"alpha": 0.1, "random_state": 0}
    found = goodness_of_fit(machine, X, y, 9, **options)
    assert found.resampling == "labels"
    p = clone(machine).fit(X, y).predict_proba(X)[:, 1]
    for k, seed in enumerate(np.random.RandomState(0).randint(2**31 - 1, size=9)):
        drawn = np.random.RandomState(seed).uniform(size=(80, 1))[:, 0]
        labels = np.where(drawn > 1 - p, "yes", "no")
        expected = platt_deviance(clone(machine).fit(X, labels), X, labels)
        assert found.bootstrapped[k] == pytest.approx(expected, rel=1e-6)
    pairs = goodness_of_fit(machine, X, y, 9, **options, resampling="pairs")
    assert np.abs(pairs.bootstrapped - found.bootstrapped).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine", [SVC(gamma=0.5, tol=1e-8), LogisticRegression(tol=1e-10), MACHINES["repeated rows"]]
)
def test_held_out_deviances_of_labels_from_held_out_probabilities(machine):
    X, y = sample(n=24)
    found = goodness_of_fit(machine, X, y, 4, alpha=0.3, random_state=0, resampling="held-out")
    of_sample = left_out_fits(machine, X, y).likelihood
    assert found.deviance == pytest.approx(-2 * of_sample.left_out.sum())
    assert found.apparent == pytest.approx(-2 * of_sample.fitted.sum())
    assert found.eic > found.apparent
    p = np.exp(np.where(y == "yes", of_sample.left_out, np.log(-np.expm1(of_sample.left_out))))
    for k, seed in enumerate(np.random.RandomState(0).randint(2**31 - 1, size=4)):
        random = np.random.RandomState(seed)
        while True:
            labels = np.where(random.uniform(size=(24, 1)) > 1 - p[:, None], "yes", "no")[:, 0]
            if 1 < np.sum(labels == "yes") < 23:
                break
        expected = -2 * left_out_fits(machine, X, labels).likelihood.left_out.sum()
        assert found.bootstrapped[k] == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("resampling", ["pairs", "labels", "held-out"])
def test_several_classes(resampling):
    X, _ = sample(n=15)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    options = {"alpha": 0.3, "random_state": 0, "resampling": resampling}
    for machine in (SVC(), LogisticRegression()):
        assert (goodness_of_fit(machine, X, y, 3, **options).bootstrapped > 0).all()
    with pytest.raises(ValueError, match="two classes"):
        goodness_of_fit(LinearSVC(), X, y, 3, **options)


@pytest.mark.slow
def test_seeds():
    X, y = sample(n=20)
    steps, options = [], {"alpha": 0.2, "random_state": 5}
    one = goodness_of_fit(SVC(), X, y, 9, **options, progress=lambda *s: steps.append(s))
    assert steps == [(i + 1, 9) for i in range(9)]
    with parallel_config("threading"):
        two = goodness_of_fit(SVC(), X, y, 9, **options, n_jobs=2)
    assert one.bootstrapped.tolist() == two.bootstrapped.tolist()
    fewer = goodness_of_fit(SVC(), X, y, 5, **options)
    assert fewer.bootstrapped.tolist() == one.bootstrapped[:5].tolist()
    other = goodness_of_fit(SVC(), X, y, 9, alpha=0.2, random_state=6)
    assert (one.bootstrapped != other.bootstrapped).all()


@pytest.mark.slow
def test_samples_without_a_class_are_drawn_again():
    X, y = sample(n=12)
    y[:10], y[10:] = "yes", "no"
    found = goodness_of_fit(SVC(), X, y, 60, random_state=0, resampling="pairs")
    lacking = sum(len(set(y[rows])) == 1 for rows in drawn(12, 60, 0))
    assert lacking > 0
    assert np.isfinite(found.bootstrapped).all()


@pytest.mark.parametrize(("n", "alpha", "rank"), [(100, 0.05, 96), (399, 0.1, 360)])
def test_order_statistic_and_p_value_agree(n, alpha, rank):
    replicates = np.random.default_rng(0).permutation(n).astype(float)
    for deviance in (rank - 1.0, rank - 0.5, rank - 2.0):
        found = GoodnessOfFit(deviance, 0.0, replicates, replicates, alpha, "pairs", "none")
        assert found.critical_value == rank - 1.0
        assert found.fits_poorly == (deviance > rank - 1.0) == (found.p_value <= alpha)
    assert found.percentile == pytest.approx(100 * (rank - 2) / n)


@pytest.mark.parametrize(
    ("n", "reached", "verdict"),
    [
        (400, 20, "undecided by 400 replicates, more than 100000 would decide"),
        (200, 11, "undecided by 200 replicates, about 7300 would decide"),
        (19, 0, "undecided by 19 replicates, about 73 would decide"),
        (400, 8, "fits poorly"),
        (19, 10, "no evidence of a poor fit"),
    ],
)
def test_a_verdict_within_the_monte_carlo_error_is_none(n, reached, verdict):
    replicates = np.arange(n, dtype=float)
    found = GoodnessOfFit(n - reached - 0.5, 0.0, replicates, replicates, 0.05, "labels", "none")
    low, high = found.p_interval
    assert low <= reached / n <= high
    assert binom.sf(reached - 1, n, low) == pytest.approx(0.025 if reached else 1.0)
    assert binom.cdf(reached, n, high) == pytest.approx(0.025)
    assert found.verdict == verdict
    assert found.decided == ("undecided" not in verdict)
    assert verdict in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bootstrap": 9.5}, "n_bootstrap"),
        ({"n_bootstrap": 18}, "n_bootstrap=19"),
        ({"n_bootstrap": 98, "alpha": 0.01}, "n_bootstrap=99"),
        ({"n_bootstrap": 1, "alpha": 1 / 3}, "n_bootstrap=2"),
        ({"n_bootstrap": 5, "alpha": 0.15}, "n_bootstrap=6"),
        ({"alpha": 1.5}, "alpha"),
        ({"resampling": "rows"}, "'rows'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        goodness_of_fit(SVC(), *sample(), **options)


@pytest.mark.slow
def test_balanced_weights_are_those_of_the_sample():
    X, y = sample()
    y[:15] = "no"
    share = {label: len(y) / (2 * np.sum(y == label)) for label in ("no", "yes")}
    held, explicit, plain = (
        goodness_of_fit(
            SVC(gamma=0.5, class_weight=weight), X, y, 20, random_state=0, resampling="pairs"
        )
        for weight in ("balanced", share, None)
    )
    assert held.bootstrapped.tolist() == explicit.bootstrapped.tolist()
    assert held.bootstrapped.tolist() != plain.bootstrapped.tolist()


@pytest.mark.parametrize("resampling", ["pairs", "labels"])
@pytest.mark.slow
def test_the_extended_information_criterion_of_a_likelihood_model_is_near_its_AIC(resampling):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    y = (X[:, 0] + random.logistic(size=200) > 0).astype(int)
    model = LogisticRegression(C=np.inf, tol=1e-8)
    result = goodness_of_fit(model, X, y, 60, resampling=resampling, random_state=0)
    error = np.std(result.optimism) / np.sqrt(60)
    assert error < 1  # about 2 chi² of four degrees of freedom, of deviation 5.7
    assert abs(result.eic - (result.apparent + 2 * 4)) < 2 * error


def test_the_optimism_of_a_replicate_of_pairs():
    X, y = load_iris(return_X_y=True)
    X, y, all_rows = X[50:, :2], y[50:], np.arange(100)
    model = LogisticRegression(tol=1e-10, max_iter=1000)
    result = goodness_of_fit(model, X, y, 1, alpha=0.6, resampling="pairs", random_state=3)
    seed = np.random.RandomState(3).randint(2**31 - 1, size=1)[0]
    rows = np.random.RandomState(seed).randint(100, size=100)

    def deviance(taken, on):
        log_p = clone(model).fit(X[taken], y[taken]).predict_log_proba(X[on])
        return -2 * log_p[all_rows, y[on] - 1].sum()

    on_sample = deviance(rows, all_rows) - deviance(all_rows, all_rows)
    on_replicate = deviance(rows, rows) - deviance(all_rows, rows)
    np.testing.assert_allclose(result.optimism, on_sample - on_replicate, rtol=1e-4)
