"""Standard deviations of predictions: against refits, and Gaussian processes of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as Squared
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_regressor

from looms import KernelRegressor, TabularRegressor
from looms.blocks import ArrayBlocks
from looms.kernels import RBF, Linear

N, M = 24, 6
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(N, 3)), 2 * RNG.normal(size=(M, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
NOISY = np.sin(X[:, 0]) + 0.4 * RNG.normal(size=N)
TARGETS = {"one": NOISY, "two": np.column_stack([NOISY, 30 * RNG.normal(size=N)])}
WEIGHTS = {
    "unweighted": None,
    "weighted": RNG.uniform(0.2, 3.0, N),
    "zeros": np.where(np.arange(N) % 5 == 0, 0.0, RNG.uniform(0.2, 3.0, N)),
}
GROUPS = np.repeat(np.arange(7), [1, 2, 3, 3, 4, 5, 6])
MODELS = {
    "whole": {"kernel": RBF(0.3)},
    "few features": {"kernel": "linear"},
    "landmarks": {"kernel": RBF(0.3), "n_landmarks": 9},
    "large units": {"kernel": RBF(0.3), "n_landmarks": 3},  # more rows than landmarks
}


def covariance(member, A, B):
    """That of outputs, on landmarks only as far as these have it."""
    Z = member.landmarks
    if Z is None:
        return member.kernel(A, B)
    return member.kernel(A, Z) @ np.linalg.solve(member.kernel(Z, Z), member.kernel(Z, B))


def refitted(model, member, y, rows, new):
    """Outputs (b, t) and v(x), (b,), of new rows, by the bordered matrix of some rows alone."""
    one = np.ones((len(rows), int(model.fit_intercept_)))
    C = np.block([[covariance(member, X[rows], X[rows]), one], [one.T, 0.0 * one.T @ one]])
    C[: len(rows), : len(rows)] += np.diag(ridges(model, member)[rows])
    k = np.vstack([covariance(member, X[rows], new), np.ones((one.shape[1], len(new)))])
    right = np.column_stack([k, np.vstack([y[rows], np.zeros((one.shape[1], y.shape[1]))])])
    solved = np.linalg.solve(C, right)
    v = member.kernel.diag(new) - np.einsum("ib,ib->b", k, solved[:, : len(new)])
    return k.T @ solved[:, len(new) :], v


def ridges(model, member):
    weight = model.fit_weight_
    with np.errstate(divide="ignore"):
        return np.count_nonzero(weight) * member.mu / weight


def deviations(model, group, new):
    """Standard deviations of new rows, (b, t), by refits without each group."""
    y, train = model.loo_.y.reshape(N, -1), np.flatnonzero(model.fit_weight_)
    of_members = []
    for member in model.members_:
        e, own, ridge = np.zeros(y.shape), np.ones(N), ridges(model, member)
        for g in np.unique(group[train]):
            G, rest = train[group[train] == g], train[group[train] != g]
            f, v = refitted(model, member, y, rest, X[G])
            e[G], own[G] = y[G] - f, v + ridge[G]
        _, v = refitted(model, member, y, train, new)
        s = np.sqrt((e[train] ** 2 / own[train, None]).mean(axis=0))
        at = s * np.sqrt(v + len(train) * member.mu)[:, None]
        of_members.append([member.weight * z for z in (e, s * np.sqrt(own)[:, None], at)])
    e, own, at = (sum(each) for each in zip(*of_members, strict=True))
    return at * np.sqrt(((e[train] / own[train]) ** 2).mean(axis=0))


class TestValues:
    @pytest.mark.parametrize(
        ("kind", "weights", "targets", "groups", "fit_intercept"),
        pairwise(MODELS, WEIGHTS, TARGETS, [None, GROUPS], [True, False]),
    )
    def test_are_of_refits(self, kind, weights, targets, groups, fit_intercept):
        model = KernelRegressor(**MODELS[kind], mu=0.03, fit_intercept=fit_intercept)
        model.fit(X, TARGETS[targets], WEIGHTS[weights], groups)
        mean, std = model.predict(X_NEW, return_std=True)
        expected = deviations(model, np.arange(N) if groups is None else groups, X_NEW)
        assert_array_equal(mean, model.predict(X_NEW))
        assert_allclose(std, expected.reshape(mean.shape), rtol=1e-7)

    @pytest.mark.parametrize("groups", [None, GROUPS])
    def test_stack(self, groups):
        y = TARGETS["two"]
        model = stacked_regressor([KernelRegressor(k, mu=0.03) for k in ("linear", RBF(1.0))])
        model.fit(X, y, WEIGHTS["zeros"], groups)
        assert len(model.members_) == 2
        expected = deviations(model, np.arange(N) if groups is None else groups, X_NEW)
        assert_allclose(model.predict(X_NEW, return_std=True)[1], expected, rtol=1e-7)

    def test_gaussian_process(self):
        """Of observations, with their noise: that of a white kernel."""
        model = KernelRegressor(RBF(0.3), mu=0.03, fit_intercept=False).fit(X, NOISY)
        mean, std = model.predict(X_NEW, return_std=True)
        p = model.left_out().diagonal()
        s2 = float((model.loo_.residuals**2 * p).mean())
        process = s2 * Squared(1 / np.sqrt(0.6)) + WhiteKernel(s2 * N * 0.03)
        process = GaussianProcessRegressor(process, alpha=0.0, optimizer=None).fit(X, NOISY)
        assert_allclose((mean, std), process.predict(X_NEW, return_std=True), rtol=1e-9)

    def test_landmarks_at_all_rows(self):
        whole, on = (KernelRegressor(RBF(0.3), mu=0.03, n_landmarks=m) for m in (None, N))
        expected = whole.fit(X, NOISY).predict(X_NEW, return_std=True)[1]
        assert_allclose(on.fit(X, NOISY).predict(X_NEW, return_std=True)[1], expected, rtol=1e-9)

    def test_small_ridge(self):
        """Few features have no difference that cancels; and P, which has lost all digits, is not
        taken where intervals have made it."""
        models = [KernelRegressor(k, mu=1e-13) for k in (Linear(), Linear() * 1.0)]
        few, whole = (evaluated(model.fit(X, NOISY)) for model in models)
        expected = few.predict(X_NEW, return_std=True)[1]
        whole.predict_interval(X_NEW, 0.8)
        assert_allclose(whole.predict(X_NEW, return_std=True)[1], expected, rtol=1e-2)

    def test_targets_without_errors(self):
        std = KernelRegressor(RBF(0.3), mu=0.03).fit(X, np.ones(N)).predict(X_NEW, return_std=True)
        assert_allclose(std, [np.ones(M), np.zeros(M)], atol=1e-12)


class TestModels:
    def test_rows_removed_and_added(self):
        model = KernelRegressor(RBF(0.3), mu=0.03).fit(X, NOISY)
        model.predict(X_NEW, return_std=True)
        model = model.without([0, 7]).with_rows(X_NEW, np.arange(float(M)))
        again = KernelRegressor(RBF(0.3), mu=model.mu_).fit(model.X_fit_, model.loo_.y)
        expected = again.predict(X, return_std=True)
        assert_allclose(model.predict(X, return_std=True), expected, rtol=1e-9)

    def test_pipelines_blocks_and_pickles(self):
        model = KernelRegressor(RBF(0.3), mu=0.03).fit(StandardScaler().fit_transform(X), NOISY)
        pipeline = make_pipeline(StandardScaler(), KernelRegressor(RBF(0.3), mu=0.03))
        pipeline.fit(X, NOISY)
        expected = pipeline.predict(X_NEW, return_std=True)
        new = pipeline[0].transform(X_NEW)
        for one in (model, pickle.loads(pickle.dumps(model))):
            for rows in (new, ArrayBlocks(new, size=4)):
                assert_array_equal(one.predict(rows, return_std=True), expected)

    def test_dask(self):
        array = pytest.importorskip("dask.array")
        model = KernelRegressor(RBF(0.3), mu=0.03, n_landmarks=9).fit(X, NOISY)
        lazy = model.predict(array.from_array(X_NEW, chunks=(4, 3)), return_std=True)
        expected = model.predict(X_NEW, return_std=True)
        assert_allclose([each.compute() for each in lazy], expected, rtol=1e-12)

        table = pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=2)
        two = TabularRegressor(["rbf"], target="none").fit(FRAME, TARGETS["two"])
        lazy = two.predict(table, return_std=True)
        expected = two.predict(FRAME, return_std=True)
        assert_allclose([each.compute() for each in lazy], expected, rtol=1e-12)

    def test_the_table_is_prepared_once(self):
        table = FRAME.assign(site=["u", "v"] * 12)
        model = TabularRegressor(["rbf"], target="none").fit(table, NOISY)
        with pytest.warns(UserWarning, match="no training row has") as told:
            model.predict(table.assign(site="w"), return_std=True)
        assert len(told) == 1

    def test_nonnegative_targets_that_are_not_transformed(self):
        y = NOISY - NOISY.min() + 1.0
        model = TabularRegressor(["rbf"], target=["none", "sqrt"], preprocess=None).fit(X, y)
        plain = stacked_regressor(["rbf"]).fit(X, y)
        assert model.transform_ == "none"
        assert_allclose(*(one.predict(X_NEW, return_std=True)[1] for one in (model, plain)))


class TestRefusals:
    def refused(self, model, words, new=X_NEW):
        assert np.isfinite(model.predict(new)).all()
        with pytest.raises(ValueError, match=words):
            model.predict(new, return_std=True)

    def test_estimators_of_scikit_learn(self):
        model = stacked_regressor(["rbf", LinearRegression()]).fit(X, NOISY)
        self.refused(model, "LinearRegression is a member: use predict_interval, or kernels")

    def test_transformed_targets(self):
        model = TabularRegressor(["rbf"], target="log", preprocess=None).fit(X, np.exp(NOISY))
        self.refused(model, "the log of the target.*: use predict_interval, or target='none'")

    def test_kernel_matrices(self):
        k = RBF(0.3)
        model = KernelRegressor("precomputed", mu=0.03).fit(k(X), NOISY)
        self.refused(model, "kernel='precomputed' has no value k", k(X_NEW, X))

    def test_words_are_no_flag(self):
        with pytest.raises(ValueError, match="return_std must be True or False, got 'no'"):
            KernelRegressor(RBF(0.3), mu=0.03).fit(X, NOISY).predict(X, return_std="no")
