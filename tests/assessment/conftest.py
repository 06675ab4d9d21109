"""Small data, and splits by hand."""

import numpy as np
import pytest

from looms.assessment._splits import plan


@pytest.fixture(scope="session")
def two_classes():
    """60 samples, a third of them of the second class, of three features."""
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], [40, 20])
    X = rng.normal(size=(60, 3)) + 1.2 * (y == "yes")[:, None]
    order = rng.permutation(60)
    return X[order], y[order]


@pytest.fixture(scope="session")
def a_line():
    """50 samples of a noisy straight line."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    return X, X @ [1.0, -2.0] + 0.5 * rng.normal(size=50)


@pytest.fixture(scope="session")
def folds():
    """Training and test rows of the splits of an assessment."""

    def rows(y, n=4, method="shuffle", stratified=True):
        options = {"n_splits": n, "random_state": 0, "stratified": stratified}
        splits = plan(y, method=method, **options)
        return [split.rows(y) for split in splits if split.index >= 0]

    return rows
