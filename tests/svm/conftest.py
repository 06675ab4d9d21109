"""Support vector machines for the tests, and what tells that one is solved."""

import numpy as np
import pytest


def _kernel(X, gamma):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=-1))


def _random_problem(seed, largest=60):
    """Kernel matrix, labels and bounds: every third with duplicates, every second weighted."""
    rng = np.random.default_rng(seed)
    n, n_features = int(rng.integers(10, largest + 1)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, n_features))
    if seed % 3 == 0:
        X[n // 2 :] = X[: n - n // 2]
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    C = np.full(n, 2.0 ** rng.integers(-5, 16))
    if seed % 2 == 0:
        C *= rng.uniform(0.1, 2.0, n)
    return _kernel(X, 2.0 ** rng.integers(-15, 4)), y, C


def _kkt_residual(K, y, C, alpha, outputs):
    """From the definition, on the kernel as it is."""
    assert (alpha >= 0).all()
    assert (alpha <= C).all()
    expanded = K @ (y * alpha)
    intercept = outputs - expanded
    margin = y * outputs - 1
    negligible = 1e-12 * C.max()
    short = np.where(alpha < C - negligible, -margin, 0).max()
    beyond = np.where(alpha > negligible, margin, 0).max()
    return max(short, beyond, np.ptp(intercept), abs(y @ alpha) * np.abs(K).max())


@pytest.fixture(scope="session")
def random_problem():
    return _random_problem


@pytest.fixture(scope="session")
def kkt_residual():
    return _kkt_residual
