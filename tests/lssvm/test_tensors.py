"""Machines on landmarks of rows in tensors against those of the same rows in arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looms.blocks import ArrayBlocks
from looms.kernels import ARD, RBF, Constant, Laplacian, Linear, Matern, MaternARD, Polynomial
from looms.kernels._samples import Samples, center_of
from looms.lssvm import low_rank

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


def problem(kernel, seed, n=300, mu=1e-3):
    """Rows with copies and near copies of the landmarks, weighted and of two targets for odd seeds."""
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
    X, *data = problem(kernel, seed)
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
