"""Coupling against constrained minimizers that are not the linear system it solves."""

import numpy as np
import pytest
from scipy.optimize import minimize

from looms.calibration._coupling import couple


def random_pairwise(seed, k, m=6):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((m, k, k)), 1)
    return upper + np.tril(1 - upper.transpose(0, 2, 1), -1)


def objective(p, r):
    k = len(p)
    return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(k) for j in range(k) if i != j)


def by_quadratic_programming(r):
    k = len(r)
    found = minimize(
        lambda p: 1e3 * objective(p, r),
        np.full(k, 1 / k),
        method="SLSQP",
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return found.x


def by_null_space(r):
    """Least squares on the plane of sum one: no Lagrange multiplier."""
    k = len(r)
    rows = []
    for i in range(k):
        for j in range(k):
            if i != j:
                row = np.zeros(k)
                row[i], row[j] = r[j, i], -r[i, j]
                rows.append(row)
    A = np.array(rows)
    basis = np.linalg.svd(np.ones((1, k)))[2][1:].T
    start = np.full(k, 1 / k)
    return start + basis @ np.linalg.lstsq(A @ basis, -A @ start, rcond=None)[0]


@pytest.mark.parametrize("k", [2, 3, 4, 7])
@pytest.mark.parametrize("seed", range(5))
def test_minimizes_under_the_constraint(k, seed):
    pairwise = random_pairwise(seed, k)
    p = couple(pairwise)
    assert p.shape == (6, k)
    assert p.sum(axis=1) == pytest.approx(np.ones(6))
    assert (p >= 0).all()
    for r, coupled in zip(pairwise, p, strict=True):
        assert coupled == pytest.approx(by_null_space(r), abs=1e-10)
        assert coupled == pytest.approx(by_quadratic_programming(r), abs=1e-4)


def test_two_classes_are_the_pair():
    r = np.array([0.0, 1e-6, 0.3, 0.5, 1.0])
    pairwise = np.zeros((5, 2, 2))
    pairwise[:, 0, 1], pairwise[:, 1, 0] = r, 1 - r
    assert couple(pairwise)[:, 0] == pytest.approx(r, abs=1.1e-10)


@pytest.mark.parametrize("k", [3, 5, 12])
def test_consistent_pairs_are_reproduced(k):
    p = np.random.default_rng(k).dirichlet(np.ones(k), size=20)
    pairwise = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    assert couple(pairwise) == pytest.approx(p, abs=1e-10)


def test_certainties():
    order = np.triu(np.ones((4, 4)), 1)  # 0 beats all, 1 beats 2 and 3, ...
    assert couple(order[None])[0] == pytest.approx([1, 0, 0, 0], abs=1e-9)
    circle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=float)
    assert couple(circle[None])[0] == pytest.approx([1 / 3] * 3)


def test_the_diagonal_is_not_read():
    pairwise = random_pairwise(0, 3)
    other = pairwise.copy()
    other[:, range(3), range(3)] = np.nan
    assert np.array_equal(couple(other), couple(pairwise))


@pytest.mark.parametrize(
    ("pairwise", "message"),
    [
        (np.array([[[0, 1.5], [-0.5, 0]]]), "from 0 to 1"),
        (np.array([[[0, np.nan], [0.5, 0]]]), "from 0 to 1"),
    ],
)
def test_bad_arguments(pairwise, message):
    with pytest.raises(ValueError, match=message):
        couple(pairwise)
