"""A small set in the challenge's format, and what the tests of looms share."""

import numpy as np
import pytest
from conftest import data_folder  # noqa: F401


def _draw(n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.35, 1, -1)
    y[:2] = -1, 1
    X = np.round(rng.normal(size=(n, 4)) + 0.7 * y[:, None], 3)
    return X, y


@pytest.fixture(scope="session")
def draw():
    """Draw samples and labels ±1."""
    return _draw


@pytest.fixture
def folder(tmp_path):
    """A folder with the training and validation parts of a set called hiva."""
    place = tmp_path / "sets"
    place.mkdir()
    for part, n, seed in (("train", 60, 0), ("valid", 20, 1)):
        X, y = _draw(n, seed)
        np.savetxt(place / f"hiva_{part}.data", X, fmt="%.3f")
        np.savetxt(place / f"hiva_{part}.labels", y, fmt="%d")
    return place
