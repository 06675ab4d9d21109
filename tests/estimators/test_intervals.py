"""Prediction intervals and sets of the estimators: against refits, and what they cover."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from looms import KernelClassifier, KernelRegressor, Search
from looms.conformal import jackknife_minmax, jackknife_plus
from looms.conformal._local_scale import LocalScale
from looms.fitted._without_units import outputs_without
from looms.kernels import RBF, Polynomial
from looms.kernels._names import as_kernel
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
KERNELS = {"rbf": RBF(0.3), "linear": "linear", "cubic": Polynomial(3, 1.0)}
MU = 0.05
METHODS = ("plus", "minmax", "scaled")
UNITS = np.array([1.0, 1e6, 1e-4])


def all_outputs(model, X_new):
    """(m, n_seen) or (m, n_seen, t) outputs of the leave-one-out models."""
    F = model.left_out().at(X_new, Units.rows(np.count_nonzero(model.fit_weight_)))
    return F if model.loo_.y.ndim == 2 else F[:, :, 0]


def refitted_outputs(model, K, K_new, y):
    """The same by n refits of the bordered system, λ of the whole."""
    seen = np.flatnonzero(model.fit_weight_ > 0)
    ridge = len(seen) * model.mu_ / model.fit_weight_[seen]
    size = len(seen) + model.fit_intercept
    C = np.ones((len(seen) + 1, len(seen) + 1))
    C[-1, -1] = 0.0
    C[:-1, :-1] = K[np.ix_(seen, seen)] + np.diag(ridge)
    right = np.vstack([y[seen].reshape(len(seen), -1), np.zeros((1, y[0].size))])
    features = np.hstack([K_new[:, seen], np.ones((len(K_new), 1))])
    outputs = []
    for i in range(len(seen)):
        rest = np.delete(np.arange(size), i)
        outputs.append(features[:, rest] @ np.linalg.solve(C[np.ix_(rest, rest)], right[rest]))
    return np.stack(outputs, axis=1).reshape(len(K_new), len(seen), *y.shape[1:])


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

    @pytest.mark.parametrize("search", ["gradient", "grid"])
    @pytest.mark.slow
    def test_models_of_a_repeated_choice_are_those_that_it_predicts_by(self, search, tmp_path):
        S = X * UNITS
        model = KernelRegressor("linear", search=Search(method=search)).fit(S, NOISY)
        models = evaluated(model, nested=True)._models_without("predict_interval")
        F = np.vstack([outputs for _, outputs in outputs_without(models, S)])
        assert_allclose(np.diagonal(F), NOISY - models.residuals, rtol=1e-9, atol=1e-9)
        nested = model.evaluate()._nested
        for i in range(N):
            rest = nested.units.own != nested.units.own[i]
            mine = nested.models[nested.model_of_fold[nested.units.own[i]]]
            grid = search == "grid"
            mu, scale = (mine.mu, N) if grid else (mine[0].mu, rest.sum())  # tuned anew
            ridge = Ridge(alpha=scale * mu, solver="svd").fit(S[rest], NOISY[rest])
            assert_allclose(F[:, i], ridge.predict(S), rtol=1e-7, atol=1e-7)
        save_model(tmp_path / "m.skops", model, {})
        read = load_model(tmp_path / "m.skops").model
        ours = evaluated(read, nested=True).predict_interval(S)
        assert_array_equal(ours, model.predict_interval(S))

    def test_sets_are_those_of_the_kernel_matrix(self):
        labels = LABELS["three classes"]
        ours = KernelClassifier("linear", mu=MU).fit(sp.csr_array(X), labels)
        theirs = KernelClassifier("precomputed", mu=MU).fit(X @ X.T, labels)
        sets = evaluated(ours).predict_set(sp.csr_array(X_NEW), 0.7)
        assert_array_equal(sets, evaluated(theirs).predict_set(X_NEW @ X.T, 0.7))
        assert 0 < sets.mean() < 1


class TestModels:
    @pytest.mark.parametrize(
        ("kernel", "weights", "targets", "fit_intercept"),
        pairwise(KERNELS, WEIGHTS, TARGETS, [True, False]),
    )
    def test_regressors_equal_n_refits(self, kernel, weights, targets, fit_intercept):
        kernel, y = KERNELS[kernel], TARGETS[targets]
        model = KernelRegressor(kernel, mu=MU, fit_intercept=fit_intercept)
        model.fit(X, y, sample_weight=WEIGHTS[weights])
        k = as_kernel(kernel)
        assert_close(all_outputs(model, X_NEW), refitted_outputs(model, k(X), k(X_NEW, X), y))

    @pytest.mark.parametrize(
        ("labels", "weights", "class_weight", "fit_intercept"),
        pairwise(LABELS, WEIGHTS, [None, "balanced"], [True, False]),
    )
    def test_classifiers_equal_n_refits(self, labels, weights, class_weight, fit_intercept):
        k = RBF(0.3)
        model = KernelClassifier(k, mu=MU, fit_intercept=fit_intercept, class_weight=class_weight)
        model.fit(X, LABELS[labels], sample_weight=WEIGHTS[weights])
        theirs = refitted_outputs(model, k(X), k(X_NEW, X), model.loo_.y)
        assert_close(all_outputs(model, X_NEW), theirs)

    @pytest.mark.parametrize("weights", WEIGHTS)
    @pytest.mark.parametrize("targets", TARGETS)
    @pytest.mark.parametrize("Kind", [np.asarray, sp.csr_array, sp.csr_matrix])
    def test_precomputed_and_sparse(self, weights, targets, Kind):
        k, y, weight = RBF(0.3), TARGETS[targets], WEIGHTS[weights]
        dense = KernelRegressor(k, mu=MU).fit(X, y, weight)
        given = KernelRegressor("precomputed", mu=MU).fit(Kind(k(X)), y, weight)
        sparse = KernelRegressor(k, mu=MU).fit(Kind(X), y, weight)
        for method in METHODS:
            theirs = evaluated(dense).predict_interval(X_NEW, 0.8, method)
            assert_close(evaluated(given).predict_interval(Kind(k(X_NEW, X)), 0.8, method), theirs)
            assert_close(evaluated(sparse).predict_interval(Kind(X_NEW), 0.8, method), theirs)

    def test_scikit_learns_kernel_ridge(self):
        """Without intercept the refits are KernelRidge's, alpha = n mu at the full n."""
        model = KernelRegressor(RBF(0.3), mu=MU, fit_intercept=False).fit(X, NOISY)
        theirs = np.empty((M, N))
        for i in range(N):
            rest = np.arange(N) != i
            ridge = KernelRidge(alpha=N * MU, kernel="rbf", gamma=0.3)
            theirs[:, i] = ridge.fit(X[rest], NOISY[rest]).predict(X_NEW)
        assert_close(all_outputs(model, X_NEW), theirs)
        r = model.loo_.residuals
        assert_close(evaluated(model).predict_interval(X_NEW, 0.9), jackknife_plus(r, theirs, 0.9))
        ours = evaluated(model).predict_interval(X_NEW, 0.9, "minmax")
        assert_close(ours, jackknife_minmax(r, theirs, 0.9))

    @pytest.mark.parametrize("Estimator", [KernelRegressor, KernelClassifier])
    def test_machines_that_chose_their_hyperparameters(self, Estimator):
        rng = np.random.default_rng(1)
        X, X_new = rng.normal(size=(60, 2)), rng.normal(size=(5, 2))
        noisy = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=60)
        weight = np.where(np.arange(60) % 7 == 0, 0.0, rng.uniform(0.5, 2, 60))
        y = noisy > 0 if Estimator is KernelClassifier else noisy
        model = Estimator()
        if Estimator is KernelClassifier:
            model.set_params(class_weight="balanced", threshold="balanced")
        model.fit(X, y, weight)
        k = model.kernel_
        theirs = refitted_outputs(model, k(X), k(X_new, X), model.loo_.y)
        assert_close(all_outputs(model, X_new), theirs)
        outputs = model.left_out().outputs(Units.rows(np.count_nonzero(weight)))
        assert_allclose(outputs[0, :, 0], model.loo_.outputs[weight > 0], rtol=1e-8)

    def test_fit_weight(self):
        weight = WEIGHTS["zeros"]
        model = KernelClassifier(mu=1e-3, class_weight={"yes": 3}).fit(
            X, LABELS["two classes"], weight
        )
        assert_array_equal(model.fit_weight_ == 0, weight == 0)
        assert model.fit_weight_.sum() == pytest.approx((weight > 0).sum())
        expected = weight * np.where(LABELS["two classes"] == "yes", 3, 1)
        ratio = model.fit_weight_[weight > 0] / expected[weight > 0]
        assert_allclose(ratio, ratio[0], rtol=1e-12)

    @pytest.mark.parametrize("method", METHODS)
    def test_samples_of_weight_zero_take_no_part(self, method):
        seen = WEIGHTS["zeros"] > 0
        zeros = KernelRegressor(RBF(0.3), mu=1e-3).fit(X, NOISY, WEIGHTS["zeros"])
        without = KernelRegressor(RBF(0.3), mu=1e-3).fit(
            X[seen], NOISY[seen], WEIGHTS["zeros"][seen]
        )
        ours = evaluated(zeros).predict_interval(X_NEW, 0.8, method)
        assert_allclose(ours, evaluated(without).predict_interval(X_NEW, 0.8, method), rtol=1e-9)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("targets", TARGETS)
    def test_blocks_of_rows(self, method, targets, monkeypatch):
        model = KernelRegressor(RBF(0.3), mu=1e-3).fit(X, TARGETS[targets])
        whole = evaluated(model).predict_interval(X_NEW, 0.8, method)
        for numbers in (1, 3 * N, 8 * N):
            monkeypatch.setattr(left_out, "_NUMBERS", numbers)
            parts = evaluated(clone(model).fit(X, TARGETS[targets])).predict_interval(
                X_NEW, 0.8, method
            )
            assert_allclose(parts, whole, rtol=1e-10)

    def test_memory_does_not_grow_with_new_points(self, monkeypatch):
        monkeypatch.setattr(left_out, "_NUMBERS", 4 * N)
        model = KernelRegressor(RBF(0.3), mu=1e-3).fit(X, NOISY)
        models = evaluated(model)._models_without("predict_interval", of_fit=True)
        blocks = outputs_without(models, np.tile(X_NEW, (9, 1)))
        sizes = [F.size for _, F in blocks]
        assert max(sizes) == 4 * N
        assert len(sizes) == 16


class TestKept:
    def test_made_once_and_again_after_a_fit(self):
        model = KernelRegressor(RBF(0.3), mu=1e-3).fit(X, NOISY)
        assert "left_out" not in vars(model.fitted_)
        first = evaluated(model).predict_interval(X_NEW)
        models = model.left_out()
        evaluated(model).predict_interval(X_NEW, method="scaled")
        assert model.left_out() is models
        second = evaluated(model.fit(X, 2 * NOISY)).predict_interval(X_NEW)
        assert model.left_out() is not models
        assert_allclose(second, 2 * first, rtol=1e-9)

    def test_need_a_fit(self):
        with pytest.raises(NotFittedError):
            KernelRegressor(mu=1e-3).left_out()

    def test_a_fit_that_failed_changes_nothing(self):
        model = KernelRegressor(RBF(0.3), mu=1e-3).fit(X, NOISY)
        before = evaluated(model).predict_interval(X_NEW)
        with pytest.raises(ValueError, match="NaN"):
            model.fit(X * np.nan, NOISY)
        assert_array_equal(evaluated(model).predict_interval(X_NEW), before)

    @pytest.mark.parametrize("targets", TARGETS)
    def test_not_in_copies_and_files(self, targets, tmp_path):
        model = KernelRegressor(RBF(0.3), mu=1e-3).fit(X, TARGETS[targets])
        model.evaluate()
        size = len(pickle.dumps(model))
        before = evaluated(model).predict_interval(X_NEW, method="scaled")
        assert len(pickle.dumps(model)) == size
        save_model(tmp_path / "model", model, {})
        copies = [
            pickle.loads(pickle.dumps(model)),
            copy.deepcopy(model),
            load_model(tmp_path / "model").model,
        ]
        for other in copies:
            made_again = {"left_out", "solved", "units_of_fit", "computed"}
            assert not made_again & vars(other.fitted_).keys()
            assert_array_equal(evaluated(other).predict_interval(X_NEW, method="scaled"), before)


class TestIntervals:
    def test_shapes(self):
        one = evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY)).predict_interval(X_NEW)
        twice = np.column_stack([NOISY, NOISY])
        both = evaluated(KernelRegressor(mu=1e-3).fit(X, twice)).predict_interval(X_NEW)
        assert one.shape == (M, 2)
        assert both.shape == (M, 2, 2)
        assert_allclose(both[:, 0], one, rtol=1e-12)

    @pytest.mark.parametrize("method", METHODS)
    def test_each_target_has_its_own(self, method):
        both = evaluated(
            KernelRegressor(RBF(0.3), mu=1e-3).fit(X, TARGETS["two"])
        ).predict_interval(X_NEW, 0.8, method)
        for k in range(2):
            alone = KernelRegressor(RBF(0.3), mu=1e-3).fit(X, TARGETS["two"][:, k])
            assert_allclose(
                both[:, k], evaluated(alone).predict_interval(X_NEW, 0.8, method), rtol=1e-9
            )

    @pytest.mark.parametrize("groups", [None, np.arange(N) // 3])
    @pytest.mark.slow
    def test_scaled_is_the_jackknife_plus_on_local_scales(self, groups):
        k = RBF(0.3)
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
        model = KernelRegressor(mu=1e-3).fit(X, NOISY)
        plain = evaluated(model).predict_interval(X_NEW)
        assert_array_equal(plain, evaluated(model).predict_interval(X_NEW, 0.9, "plus"))
        widths = [
            np.ptp(evaluated(model).predict_interval(X_NEW, c), axis=1) for c in (0.5, 0.8, 0.95)
        ]
        assert (widths[0] < widths[1]).all()
        assert (widths[1] < widths[2]).all()
        assert (
            np.ptp(evaluated(model).predict_interval(X_NEW, method="minmax"), axis=1) > widths[1]
        ).all()

    def test_frames_and_pipelines(self):
        frame, new = (pd.DataFrame(A, columns=["a", "b", "c"]) for A in (X, X_NEW))
        pipe = make_pipeline(StandardScaler(), KernelRegressor(mu=1e-3)).fit(frame, NOISY)
        ours = evaluated(pipe[-1]).predict_interval(pipe[:-1].transform(new))
        assert ours.shape == (M, 2)
        model = KernelRegressor(mu=1e-3).fit(frame, NOISY)
        with pytest.raises(ValueError, match="feature names"):
            evaluated(model).predict_interval(new[["b", "a", "c"]])


COVERAGE = 0.8


def covered(method, heteroscedastic, n_repeats=60, n=40, m=100):
    """Share of new targets inside, over training sets; kernel and μ held fixed."""
    shares = []
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(n + m, 1))
        noise = 0.05 + X[:, 0] ** 2 if heteroscedastic else 0.3
        y = np.sin(6 * X[:, 0]) + noise * rng.normal(size=n + m)
        model = KernelRegressor(RBF(8.0), mu=2e-3).fit(X[:n], y[:n])
        lower, upper = evaluated(model).predict_interval(X[n:], COVERAGE, method).T
        shares.append(np.mean((lower <= y[n:]) & (y[n:] <= upper)))
    return np.mean(shares), np.std(shares, ddof=1) / np.sqrt(n_repeats)


class TestCoverage:
    @pytest.mark.slow
    @pytest.mark.parametrize("heteroscedastic", [False, True])
    @pytest.mark.parametrize("method", METHODS)
    def test_made_data(self, method, heteroscedastic):
        share, error = covered(method, heteroscedastic)
        assert share > COVERAGE - 3 * error
        assert share < 0.93

    @pytest.mark.slow
    def test_scaled_intervals_follow_the_noise(self):
        """About the nominal coverage where noise is small and where it is large."""
        inside = {"plus": [], "scaled": []}
        width = {"plus": [], "scaled": []}
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = rng.uniform(size=(500, 1))
            y = np.sin(6 * X[:, 0]) + (0.02 + X[:, 0] ** 2) * rng.normal(size=500)
            quiet = X[200:, 0] < 0.4
            model = KernelRegressor(RBF(8.0), mu=2e-3).fit(X[:200], y[:200])
            for method in inside:
                lower, upper = evaluated(model).predict_interval(X[200:], 0.9, method).T
                held = (lower <= y[200:]) & (y[200:] <= upper)
                inside[method].append([held[quiet].mean(), held[~quiet].mean()])
                width[method].append(np.mean(upper - lower))
        plus, scaled = (np.mean(inside[method], axis=0) for method in ("plus", "scaled"))
        assert plus[0] > 0.98
        assert plus[1] < 0.86
        assert_allclose(scaled, 0.9, atol=0.03)
        assert np.mean(width["scaled"]) < 0.85 * np.mean(width["plus"])

    @pytest.mark.slow
    @pytest.mark.parametrize("method", METHODS)
    def test_yacht(self, method, data_folder):
        table = pd.read_csv(data_folder / "yacht.csv")
        y = table.pop("target").to_numpy()
        X = scale(table.to_numpy())
        shares = []
        for seed in range(12):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[:100], order[100:]
            model = KernelRegressor(RBF(0.1), mu=1e-5).fit(X[train], y[train])
            lower, upper = evaluated(model).predict_interval(X[test], 0.9, method).T
            shares.append(np.mean((lower <= y[test]) & (y[test] <= upper)))
        assert np.mean(shares) > 0.9 - 3 * np.std(shares, ddof=1) / np.sqrt(12)

    @pytest.mark.slow
    @pytest.mark.parametrize("class_conditional", [False, True])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_sets_on_made_data(self, class_conditional, n_classes):
        shares, by_class = [], []
        for seed in range(60):
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

    @pytest.mark.slow
    @pytest.mark.parametrize("class_conditional", [False, True])
    def test_sets_on_real_data(self, class_conditional, data_folder):
        table = pd.read_csv(data_folder / "liver.csv")
        y = table.pop("target").to_numpy()
        X = scale(np.log1p(table.to_numpy()))
        shares = []
        for seed in range(20):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[:150], order[150:]
            model = KernelClassifier(RBF(0.1), mu=1e-3).fit(X[train], y[train])
            sets = evaluated(model).predict_set(X[test], 0.9, class_conditional)
            shares.append(sets[np.arange(68), np.searchsorted(model.classes_, y[test])].mean())
        assert np.mean(shares) > 0.9 - 3 * np.std(shares, ddof=1) / np.sqrt(20)
        assert sets.sum(axis=1).mean() < 2.5


class TestSets:
    @pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
    @pytest.mark.parametrize("weights", WEIGHTS)
    @pytest.mark.parametrize("class_conditional", [False, True])
    def test_against_a_loop(self, labels, weights, class_conditional):
        k = RBF(0.3)
        model = KernelClassifier(k, mu=MU).fit(X, labels, WEIGHTS[weights])
        seen = np.flatnonzero(model.fit_weight_ > 0)
        codes = model.loo_.y
        at_new = refitted_outputs(model, k(X), k(X_NEW, X), codes)
        at_own = refitted_outputs(model, k(X), k(X), codes)[seen, np.arange(len(seen))]
        place = np.searchsorted(model.classes_, labels)[seen]

        def margin(outputs, y):
            if np.ndim(outputs) == 0:
                return outputs if y == 1 else -outputs
            return outputs[y] - max(np.delete(outputs, y))

        expected = np.empty((M, len(model.classes_)), dtype=bool)
        for t in range(M):
            for y in range(len(model.classes_)):
                members = np.flatnonzero(place == y) if class_conditional else range(len(seen))
                typical = sum(
                    margin(at_own[i], place[i]) <= margin(at_new[t, i], y) for i in members
                )
                expected[t, y] = (typical + 1) / (len(members) + 1) > 0.3 + 1e-9
        sets = evaluated(model).predict_set(X_NEW, 0.7, class_conditional)
        assert sets.dtype == bool
        assert_array_equal(sets, expected)
        assert 0 < sets.sum() < sets.size

    def test_the_threshold_does_not_count(self):
        plain, moved = (
            KernelClassifier(RBF(0.3), mu=1e-3, threshold=t).fit(X, LABELS["two classes"])
            for t in (0.5, 0.2)
        )
        assert_array_equal(
            evaluated(plain).predict_set(X_NEW, 0.7), evaluated(moved).predict_set(X_NEW, 0.7)
        )

    def test_pure_noise_gives_large_sets_and_separated_classes_small_ones(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        noise = KernelClassifier(RBF(0.3), mu=1e-3).fit(X, np.arange(60) % 2)
        assert evaluated(noise).predict_set(X[:20], 0.95).sum(axis=1).mean() > 1.5
        far = KernelClassifier(RBF(0.3), mu=1e-3).fit(
            X + 9 * (np.arange(60) % 2)[:, None], np.arange(60) % 2
        )
        assert (evaluated(far).predict_set(X[:20], 0.9).sum(axis=1) <= 1).all()


class TestBadInput:
    @pytest.mark.parametrize("coverage", [0.0, 1.0, -1, 90, np.nan, "0.9", None])
    def test_coverage(self, coverage):
        message = "confidence_level must be a number between 0 and 1, got"
        with pytest.raises(ValueError, match=message):
            evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY)).predict_interval(X_NEW, coverage)
        for conditional in (False, True):
            model = KernelClassifier(mu=1e-3).fit(X, LABELS["two classes"])
            with pytest.raises(ValueError, match=message):
                evaluated(model).predict_set(X_NEW, coverage, conditional)

    def test_too_few_samples(self):
        with pytest.raises(
            ValueError, match=r"confidence level of 0.99 needs 99 rows or more, got 24"
        ):
            evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY)).predict_interval(X_NEW, 0.99)
        zeros = KernelRegressor(mu=1e-3).fit(X, NOISY, WEIGHTS["zeros"])
        with pytest.raises(ValueError, match=r"needs 20 rows .* got 19: .* 0.95 at most"):
            evaluated(zeros).predict_interval(X_NEW, 0.951)
        assert evaluated(zeros).predict_interval(X_NEW, 0.95).shape == (M, 2)
        model = KernelClassifier(mu=1e-3).fit(X, LABELS["two classes"])
        with pytest.raises(ValueError, match="needs 99 rows or more, got 24"):
            evaluated(model).predict_set(X_NEW, 0.99)

    def test_a_class_with_too_few_samples_is_named(self):
        labels = np.where(np.arange(N) == 3, "rare", "common")
        model = KernelClassifier(mu=1e-3).fit(X, labels)
        message = "Class 'rare': A confidence level of 0.9 needs 9 rows or more, got 1"
        with pytest.raises(ValueError, match=message):
            evaluated(model).predict_set(X_NEW, 0.9, class_conditional=True)
        assert evaluated(model).predict_set(X_NEW, 0.9).shape == (M, 2)

    def test_two_samples_cannot_be_scaled(self):
        model = KernelRegressor(mu=1e-3).fit(X[:2], NOISY[:2])
        assert evaluated(model).predict_interval(X_NEW, 0.5).shape == (M, 2)
        with pytest.raises(ValueError, match="three samples of non-zero weight, got 2"):
            evaluated(model).predict_interval(X_NEW, 0.5, "scaled")

    @pytest.mark.parametrize("method", ["Plus", None, 3, ["plus"]])
    def test_method(self, method):
        with pytest.raises(ValueError, match=r"Unknown method .* known are plus, minmax, scaled"):
            evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY)).predict_interval(X_NEW, method=method)

    def test_class_conditional(self):
        model = KernelClassifier(mu=1e-3).fit(X, LABELS["two classes"])
        with pytest.raises(ValueError, match="class_conditional must be True or False, got 'no'"):
            evaluated(model).predict_set(X_NEW, class_conditional="no")

    def test_not_fitted_and_other_features(self):
        with pytest.raises(NotFittedError):
            KernelRegressor(mu=1e-3).predict_interval(X_NEW)
        with pytest.raises(NotFittedError):
            KernelClassifier(mu=1e-3).predict_set(X_NEW)
        with pytest.raises(ValueError, match="2 features"):
            evaluated(KernelRegressor(mu=1e-3).fit(X, NOISY)).predict_interval(X_NEW[:, :2])


PREDICTIONS = {
    KernelClassifier: ("predict", "decision_function", "predict_set", "predict_proba"),
    KernelRegressor: ("predict", "predict_interval"),
}
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
@pytest.mark.parametrize(
    ("Estimator", "prediction"), [(e, name) for e, names in PREDICTIONS.items() for name in names]
)
@pytest.mark.parametrize("mu", [None, 1e-3])
def test_parameters_set_after_the_fit_change_no_prediction(Estimator, prediction, mu, tmp_path):
    y = LABELS["two classes"] if "Classifier" in Estimator.__name__ else NOISY + 5
    X_many = np.random.default_rng(1).normal(size=(200, 3))
    model = Estimator(mu=mu).fit(X, y)
    changed = clone(model).fit(X, y)
    known = changed.get_params()
    changed.set_params(**{name: value for name, value in OTHERS.items() if name in known})
    for one in (model, changed):
        one.evaluate()
    expected = getattr(model, prediction)(X_many)
    assert_array_equal(getattr(changed, prediction)(X_many), expected)
    save_model(tmp_path / "model", changed, {})
    again = load_model(tmp_path / "model").model
    again.evaluate()
    assert_array_equal(getattr(again, prediction)(X_many), expected)
