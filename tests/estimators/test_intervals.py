"""Prediction intervals and sets of the estimators: against refits, and what they cover."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from looms import KernelClassifier, KernelRegressor, Search
from looms.conformal import jackknife_minmax, jackknife_plus
from looms.conformal._local_scale import LocalScale
from looms.fitted._without_units import outputs_without
from looms.kernels import RBF
from looms.lssvm import left_out
from looms.lssvm.features import Features
from looms.model_files import load_model, save_model
from looms.units import Units

N, M = 24, 7
RNG = np.random.default_rng(0)
X = np.where(RNG.uniform(size=(N, 3)) < 0.3, 0.0, RNG.normal(size=(N, 3)))
X_NEW = RNG.normal(size=(M, 3))
NOISY = X[:, 0] + 0.4 * RNG.normal(size=N)
TARGETS = {"one": NOISY, "two": np.column_stack([NOISY, RNG.normal(size=N)])}
LABELS = {
    "two classes": np.where(NOISY > 0, "yes", "no"),
    "three classes": np.digitize(NOISY, [-0.3, 0.4]),
}
WEIGHTS = {
    "unweighted": None,
    "weighted": RNG.uniform(0.2, 3.0, N),
    "zeros": np.where(np.arange(N) % 5 == 0, 0.0, RNG.uniform(0.2, 3.0, N)),
}
MU = 0.05
METHODS = ("plus", "minmax", "scaled")
UNITS = np.array([1.0, 1e6, 1e-4])


def assert_close(ours, theirs):
    assert ours.shape == theirs.shape
    assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())


class TestFewFeatures:
    """Intervals of a linear machine take no matrix of rows, and lose no digits to units."""

    @pytest.mark.parametrize(
        ("weights", "targets", "grouped", "fit_intercept"),
        pairwise(WEIGHTS, TARGETS, [False, True], [True, False]),
    )
    def test_intervals_are_of_n_refits(self, monkeypatch, weights, targets, grouped, fit_intercept):
        S, S_new, y = X * UNITS, X_NEW * UNITS, TARGETS[targets]
        monkeypatch.setattr(Features, "matrix", None)
        monkeypatch.setattr("looms.fitted._scores.training_draws", lambda model: (1.0, 0.0))
        model = KernelRegressor("linear", mu=MU, fit_intercept=fit_intercept)
        model.fit(S, y, sample_weight=WEIGHTS[weights])
        group = np.arange(N) // 3 if grouped else np.arange(N)
        seen = np.flatnonzero(model.fit_weight_)
        units = Units.of_numbers(group[seen], group[seen]).spread(seen, group)
        model.fitted_ = replace(model.fitted_, units=units)
        r, F = np.empty((len(seen), *y.shape[1:])), np.empty((M, len(seen), *y.shape[1:]))
        ridge = Ridge(alpha=len(seen) * MU, fit_intercept=fit_intercept, solver="svd")
        for place, i in enumerate(seen):
            rest = seen[group[seen] != group[i]]
            ridge.fit(S[rest], y[rest], model.fit_weight_[rest])
            r[place], F[:, place] = y[i] - ridge.predict(S[[i]])[0], ridge.predict(S_new)
        for method, interval in (("plus", jackknife_plus), ("minmax", jackknife_minmax)):
            ours = evaluated(model).predict_interval(S_new, 0.8, method)
            assert_allclose(ours, interval(r, F, 0.8), rtol=1e-7, atol=1e-7)
        copied = pickle.loads(pickle.dumps(model))
        assert vars(copied).keys() == vars(model).keys()
        assert not {"left_out", "solved", "units_of_fit"} & vars(copied.fitted_).keys()


class TestModels:
    @pytest.mark.parametrize("targets", TARGETS)
    @pytest.mark.parametrize("Kind", [np.asarray, sp.csr_array])
    def test_precomputed_and_sparse(self, targets, Kind):
        k, y, weight = RBF(0.3), TARGETS[targets], WEIGHTS["zeros"]
        dense = evaluated(KernelRegressor(k, mu=MU).fit(X, y, weight))
        given = evaluated(KernelRegressor("precomputed", mu=MU).fit(Kind(k(X)), y, weight))
        sparse = evaluated(KernelRegressor(k, mu=MU).fit(Kind(X), y, weight))
        for method in METHODS:
            theirs = dense.predict_interval(X_NEW, 0.8, method)
            assert_close(given.predict_interval(Kind(k(X_NEW, X)), 0.8, method), theirs)
            assert_close(sparse.predict_interval(Kind(X_NEW), 0.8, method), theirs)

    def test_blocks_of_rows_change_nothing_and_bound_the_memory(self, monkeypatch):
        model = KernelRegressor(RBF(0.3), mu=1e-3)
        whole = evaluated(model.fit(X, NOISY)).predict_interval(X_NEW, 0.8, "scaled")
        for numbers in (1, 3 * N, 8 * N):
            monkeypatch.setattr(left_out, "_NUMBERS", numbers)
            parts = evaluated(model.fit(X, NOISY)).predict_interval(X_NEW, 0.8, "scaled")
            assert_allclose(parts, whole, rtol=1e-10)
        models = model._models_without(of_fit=True)
        sizes = [F.size for _, F in outputs_without(models, np.tile(X_NEW, (9, 1)))]
        assert (max(sizes), len(sizes)) == (8 * N, 8)


class TestIntervals:
    def test_each_target_has_its_own_scales(self):
        model = KernelRegressor(RBF(0.3), mu=1e-3)
        both = evaluated(model.fit(X, TARGETS["two"])).predict_interval(X_NEW, 0.8, "scaled")
        for ends, y in zip(both.swapaxes(0, 1), TARGETS["two"].T, strict=True):
            alone = evaluated(model.fit(X, y)).predict_interval(X_NEW, 0.8, "scaled")
            assert_allclose(ends, alone, rtol=1e-9)

    @pytest.mark.parametrize(("N", "groups"), [(12, None), (N, np.arange(N) // 3)])
    @pytest.mark.slow
    def test_scaled_is_the_jackknife_plus_on_local_scales(self, N, groups):
        k, X, NOISY = RBF(0.3), globals()["X"][:N], globals()["NOISY"][:N]
        model = KernelRegressor(k, mu=MU).fit(X, NOISY, groups=groups)
        number = np.arange(N) if groups is None else groups
        units = Units.of_numbers(number)
        R, F_new = np.empty((N, units.n_units)), np.empty((M, units.n_units))

        def refitted(rest):
            return KernelRegressor(k, mu=MU * N / rest.sum()).fit(X[rest], NOISY[rest])

        for i, rows in enumerate(units):
            out = np.isin(np.arange(N), rows)
            F_new[:, i] = refitted(~out).predict(X_NEW)
            for inner in units:
                rest = ~out & ~np.isin(np.arange(N), inner)
                R[inner, i] = NOISY[inner] - refitted(rest).predict(X[inner])
        local, (number,) = LocalScale(R, k(X), units.number[0]), units.number
        theirs = jackknife_plus(
            R[np.arange(N), number],
            F_new[:, number],
            0.8,
            loo_scales=local.loo,
            scales=local.at(k(X_NEW, X))[:, number],
        )
        assert_allclose(evaluated(model).predict_interval(X_NEW, 0.8, "scaled"), theirs, rtol=1e-7)
        plain = evaluated(model).predict_interval(X_NEW, 0.8)
        assert np.abs(theirs - plain).max() > 0.05

    def test_options_change_the_answer(self):
        model = evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY))
        plain = model.predict_interval(X_NEW)
        assert_array_equal(plain, model.predict_interval(X_NEW, 0.9, "plus"))
        widths = [np.ptp(model.predict_interval(X_NEW, c), axis=1) for c in (0.5, 0.8, 0.95)]
        assert (widths[0] < widths[1]).all()
        assert (widths[1] < widths[2]).all()
        assert (np.ptp(model.predict_interval(X_NEW, method="minmax"), axis=1) > widths[1]).all()


COVERAGE = 0.8


def covered(method, n_repeats=40, n=40, m=100):
    """Share of new targets inside, of noise that grows, over training sets at the same kernel."""
    shares = []
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(n + m, 1))
        y = np.sin(6 * X[:, 0]) + (0.05 + X[:, 0] ** 2) * rng.normal(size=n + m)
        model = KernelRegressor(RBF(8.0), mu=2e-3).fit(X[:n], y[:n])
        lower, upper = evaluated(model).predict_interval(X[n:], COVERAGE, method).T
        shares.append(np.mean((lower <= y[n:]) & (y[n:] <= upper)))
    return np.mean(shares), np.std(shares, ddof=1) / np.sqrt(n_repeats)


class TestCoverage:
    @pytest.mark.slow
    @pytest.mark.parametrize("method", METHODS)
    def test_made_data(self, method):
        share, error = covered(method)
        assert share > COVERAGE - 3 * error
        assert share < 0.93

    @pytest.mark.slow
    @pytest.mark.parametrize("class_conditional", [False, True])
    def test_sets_on_made_data(self, class_conditional):
        n_classes, shares, by_class = 3, [], []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            y = np.digitize(rng.uniform(size=260), [0.8, 0.9][: n_classes - 1])
            X = rng.normal(size=(260, 2)) + 1.2 * np.column_stack([y == 1, y == 2])
            if np.bincount(y[:60], minlength=n_classes).min() < 4:
                continue
            model = KernelClassifier(RBF(0.3), mu=1e-2).fit(X[:60], y[:60])
            sets = evaluated(model).predict_set(X[60:], COVERAGE, class_conditional)
            held = sets[np.arange(200), y[60:]]
            shares.append(held.mean())
            by_class.append([held[y[60:] == c].mean() for c in range(n_classes)])
        error = np.std(shares, ddof=1) / np.sqrt(len(shares))
        assert np.mean(shares) > COVERAGE - 3 * error
        rare = np.mean(by_class, axis=0)[1:]
        if class_conditional:
            errors = np.std(by_class, axis=0, ddof=1)[1:] / np.sqrt(len(by_class))
            assert (rare > COVERAGE - 3 * errors).all()
        else:
            assert rare.max() < COVERAGE - 0.1


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90, np.nan, "0.9", None])
def test_what_is_no_confidence_level(coverage):
    message = "confidence_level must be"
    with pytest.raises(ValueError, match=message):
        evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY)).predict_interval(X_NEW, coverage)
    model = evaluated(KernelClassifier(mu=1e-3).fit(X, LABELS["two classes"]))
    for conditional in (False, True):
        with pytest.raises(ValueError, match=message):
            model.predict_set(X_NEW, coverage, conditional)


def test_too_few_samples():
    zeros = evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY, WEIGHTS["zeros"]))
    with pytest.raises(ValueError, match=r"20 .* got 19: .* 0.95 "):
        zeros.predict_interval(X_NEW, 0.951)
    assert zeros.predict_interval(X_NEW, 0.95).shape == (M, 2)
    model = evaluated(KernelClassifier(mu=1e-3).fit(X, np.where(np.arange(N) == 3, "rare", "no")))
    with pytest.raises(ValueError, match=r"99 .*got 24"):
        model.predict_set(X_NEW, 0.99)
    with pytest.raises(ValueError, match=r"'rare': .* 9 .*got 1"):
        model.predict_set(X_NEW, 0.9, class_conditional=True)
    assert model.predict_set(X_NEW, 0.9).shape == (M, 2)
    two = evaluated(KernelRegressor(mu=1e-3).fit(X[:2], NOISY[:2]))
    assert two.predict_interval(X_NEW, 0.5).shape == (M, 2)
    with pytest.raises(ValueError, match="three samples of non-zero weight, got 2"):
        two.predict_interval(X_NEW, 0.5, "scaled")


def test_what_is_refused():
    model = evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY))
    for method in ("Plus", None, 3, ["plus"]):
        with pytest.raises(ValueError, match="plus, minmax, scaled"):
            model.predict_interval(X_NEW, method=method)
    with pytest.raises(ValueError, match="2 features"):
        model.predict_interval(X_NEW[:, :2])
    classifier = evaluated(KernelClassifier(mu=1e-3).fit(X, LABELS["two classes"]))
    with pytest.raises(ValueError, match=r"class_conditional .* 'no'"):
        classifier.predict_set(X_NEW, class_conditional="no")
    for predict in (clone(model).predict_interval, clone(classifier).predict_set):
        with pytest.raises(NotFittedError):
            predict(X_NEW)


OTHERS = {
    "kernel": "linear",
    "mu": 10.0,
    "n_landmarks": 7,
    "fit_intercept": False,
    "class_weight": "balanced",
    "threshold": 0.2,
    "pos_label": False,
    "calibration": None,
    "search": Search("wmw", class_weight="balanced"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
@pytest.mark.parametrize("Estimator", [KernelClassifier, KernelRegressor])
def test_parameters_set_after_the_fit_change_no_prediction(Estimator, tmp_path):
    y = LABELS["two classes"] if Estimator is KernelClassifier else NOISY + 5
    model = Estimator().fit(X, y)
    changed = clone(model).fit(X, y)
    known = changed.get_params()
    changed.set_params(**{name: value for name, value in OTHERS.items() if name in known})
    save_model(tmp_path / "model", changed, {})
    ones = [
        evaluated(m, nested=True) for m in (model, changed, load_model(tmp_path / "model").model)
    ]
    for name in (
        "predict",
        "decision_function",
        "predict_set",
        "predict_proba",
        "predict_interval",
    ):
        if hasattr(model, name):
            expected, *others = (getattr(one, name)(X_NEW) for one in ones)
            for other in others:
                assert_array_equal(other, expected)
