"""Machines on landmarks of rows in tensors against those of the same rows in arrays."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.blocks import ArrayBlocks
from looms.kernels import ARD, RBF, Constant, Linear, Matern, MaternARD, Polynomial
from looms.kernels._samples import Samples, center_of
from looms.lssvm import low_rank, low_rank_folds
from looms.lssvm._folds import repetitions

torch = pytest.importorskip("torch")
tensors = pytest.importorskip("looms.tensors")

KERNELS = {
    "rbf": RBF(gamma=0.1),
    "ard": ARD(gammas=[0.1, 0.2, 0.3, 0.05]),
    "matern12": Matern(nu=0.5, gamma=0.2),
    "matern_ard": MaternARD(nu=1.5, gammas=[0.1, 0.2, 0.3, 0.05]),
    "matern52": Matern(nu=2.5, gamma=0.2),
    "sum": 2.0 * RBF(gamma=0.1) + Linear(),
    "product": Matern(nu=0.5, gamma=0.2, gamma_bounds="fixed") * (Linear() + Constant(3.0)),
    "polynomial": Polynomial(degree=3, c=1.0),
}


def problem(seed, n=300, mu=1e-3):
    """Rows near each other, weighted and of two targets for odd seeds."""
    rng = np.random.default_rng(seed)
    X = 1.0 * seed + rng.normal(size=(n, 4))
    X[:30] = X[-30:] + 1e-7 * rng.normal(size=(30, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    zeta = np.ones(n)
    if seed % 2:
        y, zeta = np.column_stack([y, X[:, 1] ** 2]), rng.uniform(0.3, 3.0, n)
    Z = X[np.sort(rng.choice(n, 30, replace=False))]
    return X, y, mu, zeta * (n / zeta.sum()), Samples(Z, center=center_of(Z))


def solved(blocks, y, mu, zeta, samples, kernel, **options):
    landmarks = low_rank.Landmarks(kernel, samples, blocks.dtype)
    return low_rank.solve(blocks, y, mu, zeta, landmarks, **options)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", [0, 1])
def test_outputs_and_gradients_are_those_of_arrays(kernel, seed):
    X, *data = problem(seed)
    solutions, gradients = [], []
    for blocks in (ArrayBlocks(X, 64), tensors.TensorBlocks(torch.tensor(X), size=64)):
        solution = solved(blocks, *data, KERNELS[kernel], fit_intercept=not seed)
        slopes, slope_mu = solution.contract(np.cos(solution.fit.outputs), blocks)
        solutions.append(solution)
        gradients.append(np.append(slopes, slope_mu))
    ours, theirs = solutions
    scale = np.abs(data[0]).max()
    assert_allclose(theirs.fit.outputs, ours.fit.outputs, rtol=0, atol=1e-10 * scale)
    assert_allclose(gradients[1], gradients[0], rtol=1e-9, atol=1e-10 * np.abs(gradients[0]).max())


@pytest.mark.parametrize("kernel", ["rbf", "ard", "matern12", "sum"])
@pytest.mark.parametrize("mu", [1e-2, 1e-4])
def test_blocks_of_float32_are_off_by_root_m_epsilon_over_mu(kernel, mu):
    X, y, _, zeta, samples = problem(1, mu=mu)
    fits = [
        solved(tensors.TensorBlocks(torch.tensor(X), dtype), y, mu, zeta, samples, KERNELS[kernel])
        for dtype in ("float64", "float32")
    ]
    error = np.sqrt(np.mean((fits[1].fit.outputs - fits[0].fit.outputs) ** 2, axis=0))
    size = np.diag(KERNELS[kernel](samples.X)).mean()
    bound = np.sqrt(samples.n_samples) * np.finfo(np.float32).eps * size / mu
    assert (error > 0).all()
    assert (error < bound * y.std(axis=0)).all()


def test_sets_that_are_held_out_together_and_folds():
    X, y, mu, zeta, samples = problem(1)
    sets = np.arange(300) % 70
    results = []
    for blocks in (ArrayBlocks(X, 64), tensors.TensorBlocks(torch.tensor(X), size=64)):
        held = blocks.holding(sets)
        solution = solved(held, y, mu, zeta, samples, KERNELS["ard"], sets=sets)
        f = solution.fit.held_out
        results.append([f, *solution.contract(np.cos(f), held)])
        landmarks = low_rank.Landmarks(KERNELS["ard"], samples, blocks.dtype)
        parts = repetitions(np.array([np.arange(300) % 3, np.arange(300) % 4]), 300)
        solution = low_rank_folds.solve(blocks, y, mu, zeta, landmarks, parts)
        f = solution.fit.held_out
        results[-1] += [f, *solution.contract(np.cos(f), blocks)]
    for ours, theirs in zip(*results, strict=True):
        assert_allclose(theirs, ours, rtol=1e-9, atol=1e-9 * np.abs(ours).max())


@dataclass(frozen=True)
class Singular:
    """A solve that fails."""

    def __call__(self, X):
        return (torch.linalg.solve(torch.zeros(2, 2), torch.ones(2)),), ()


def test_singular_systems_are_errors_of_numpy():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        tensors.TensorBlocks(torch.ones(3, 2)).sweep(Singular())
