"""Coupling against a constrained minimizer that is not the linear system it solves."""

import numpy as np
import pytest

from looms.calibration._coupling import couple


def random_pairwise(seed, k, m=6):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((m, k, k)), 1)
    return upper + np.tril(1 - upper.transpose(0, 2, 1), -1)


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
@pytest.mark.parametrize("seed", range(2))
def test_minimizes_under_the_constraint(k, seed):
    pairwise = random_pairwise(seed, k)
    p = couple(pairwise)
    assert p.shape == (6, k)
    assert p.sum(axis=1) == pytest.approx(np.ones(6))
    assert (p >= 0).all()
    for r, coupled in zip(pairwise, p, strict=True):
        assert coupled == pytest.approx(by_null_space(r), abs=1e-10)


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


@pytest.mark.parametrize("wrong", [1.5, np.nan])
def test_bad_arguments(wrong):
    with pytest.raises(ValueError, match="from 0 to 1"):
        couple(np.array([[[0, wrong], [0.5, 0]]]))
