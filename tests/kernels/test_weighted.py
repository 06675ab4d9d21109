"""Weighted features, and weights by the gradients of a machine."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search
from looms.kernels import ARD, RBF, Linear, Matern, PowerExponential, Weighted
from looms.kernels._samples import Samples
from looms.model_files import load_model, save_model
from looms.report import RelevanceDisplay

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.sin(2 * X[:, 0]) + 0.2 * X[:, 1] + 0.1 * RNG.standard_normal(60)
EVEN = np.arange(0, 60, 2)
TUNED = [RBF(0.3), Matern(1.5, 0.3), Matern(2.5, 0.3), PowerExponential(1.4, 0.3)]


@pytest.mark.parametrize("kernel", TUNED)
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_weights_are_root_mean_squared_gradients(kernel, convert):
    targets, zeta = np.column_stack([Y, np.cos(X[:, 2])]), RNG.uniform(0.5, 2.0, 60)
    machine = KernelRegressor(kernel, mu=1e-3).fit(X, targets, sample_weight=zeta)
    slopes = [machine.predict(X + e) - machine.predict(X - e) for e in 1e-5 * np.eye(3)]
    expected = np.sqrt([(zeta @ slope**2).sum() for slope in slopes])
    samples = Samples(convert(X), weight=zeta)
    weights = Weighted(kernel).learned(kernel, samples, machine.dual_coef_).weights
    assert_allclose(weights, 3 * expected / expected.sum(), rtol=1e-6)


def test_samples_that_are_nearly_copies_tell_nothing():
    kernel = PowerExponential(0.5, 0.3)
    both, alpha = np.vstack([X, X]), RNG.standard_normal(120)
    copies = Weighted(kernel).learned(kernel, Samples(both), alpha).weights
    moved = both + 1e-9 * RNG.standard_normal(both.shape) * [0, 0, 1]
    near = Weighted(kernel).learned(kernel, Samples(moved), alpha).weights
    assert_allclose(near, copies, rtol=1e-5)


def test_weights_are_one_where_the_targets_are_constant():
    samples = Samples(X)
    assert_array_equal(Weighted(RBF()).learned(RBF(1.0), samples, np.zeros(60)).weights, np.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weighted_rbf", "weighted_matern32"])
def test_a_machine_learns_weights_in_two_rounds(name):
    plain, machine = (KernelRegressor(k).fit(X, Y) for k in (name[9:], name))
    first = plain.candidates_[0]
    samples = Samples(plain.X_fit_)
    expected = Weighted(RBF()).learned(first.kernel, samples, plain.dual_coef_).weights
    assert_allclose(machine.kernel_.weights, expected, rtol=1e-10)
    assert machine.candidates_[0].value < first.value
    assert machine.candidates_[0].n_evaluations > machine.selection_.n_evaluations
    gammas = machine.kernel_.weights * machine.kernel_.kernel.gamma
    if name == "weighted_rbf":
        assert_allclose(machine.kernel_(X), ARD(gammas)(X), rtol=1e-10)
    relevance = RelevanceDisplay.from_estimator(machine).relevance
    assert_allclose(relevance, gammas * X.var(axis=0) / (gammas @ X.var(axis=0)))


@pytest.mark.slow
def test_each_criterion_has_its_own_weights_and_so_has_each_outer_fold():
    model = stacked_classifier(
        [
            KernelClassifier(k, search=Search(c, max_iter=5))
            for k in ["weighted_rbf", "linear"]
            for c in ["press", "wmw"]
        ],
        combine="best",
    ).fit(X, Y > 0)
    weights = [c.kernel.weights for c in model.candidates_[:2]]
    assert np.abs(weights[0] - weights[1]).max() > 1e-6
    kernels = [m.kernel for machine in model.evaluate()._nested.models for m in machine]
    kernels = [k for k in kernels if isinstance(k, Weighted)]
    assert len({tuple(k.weights) for k in kernels}) == len(kernels) > 1


@pytest.mark.slow
def test_a_model_file_holds_the_weights(tmp_path):
    machine = KernelRegressor("weighted_matern52").fit(X, Y)
    save_model(tmp_path / "m.skops", machine, {})
    loaded = load_model(tmp_path / "m.skops").model
    assert_array_equal(loaded.predict(X), machine.predict(X))


@pytest.mark.parametrize("m", [None, 20])
def test_a_machine_of_given_mu_learns_weights_by_its_gradients(m):
    """Of all rows, and in the place of landmarks of at most a sample of these."""
    plain = KernelRegressor("rbf", mu=1e-3).fit(X, Y)
    machine = KernelRegressor("weighted_rbf", mu=1e-3, n_landmarks=m).fit(X, Y)
    expected = Weighted(RBF()).learned(plain.kernel_, Samples(X), plain.dual_coef_).weights
    assert_allclose(machine.kernel_.weights, expected, rtol=1e-10)


def test_beside_landmarks_weights_are_those_of_a_sample(monkeypatch):
    monkeypatch.setattr("looms.selection._candidates.SAMPLE_ROWS", len(X) // 2)
    monkeypatch.setattr("looms.selection._problem.sampled_rows", lambda y, size, rng: EVEN)
    plain = KernelRegressor("rbf", mu=1e-3).fit(X[EVEN], Y[EVEN])
    machine = KernelRegressor("weighted_rbf", mu=1e-3, n_landmarks=20).fit(X, Y)
    expected = Weighted(RBF()).learned(plain.kernel_, Samples(X[EVEN]), plain.dual_coef_).weights
    assert_allclose(machine.kernel_.weights, expected, rtol=1e-10)


def test_a_sample_for_weights_has_every_group(monkeypatch):
    monkeypatch.setattr("looms.selection._candidates.SAMPLE_ROWS", len(X) // 2)
    groups = np.arange(len(X)) > 0
    for seed in range(5):  # the group of one row is not always drawn
        machine = KernelRegressor("weighted_rbf", mu=1e-3, random_state=seed)
        assert machine.fit(X, Y, groups=groups).kernel_.weights is not None


@pytest.mark.parametrize(
    "machine",
    [
        KernelRegressor("weighted_rbf", search=Search(method="grid")),
        KernelRegressor(Weighted(RBF()) + Linear()),
    ],
)
def test_weights_that_nothing_learns(machine):
    with pytest.raises(ValueError, match=r"weights are None\. KernelClass"):
        machine.fit(X, Y)


def test_weights_of_a_kernel_without_distances():
    with pytest.raises(ValueError, match="weights are learned for RBF, Matern and Power"):
        KernelRegressor(Weighted(Linear())).fit(X, Y)


@pytest.mark.parametrize("weights", [[1.0, 2.0], [-1.0, 1, 1], np.zeros(3), [np.nan, 1, 1], "abc"])
def test_weights_that_are_none(weights):
    with pytest.raises(ValueError, match="one for each of the 3 features, and not all zero"):
        Weighted(RBF(), weights)(X)
