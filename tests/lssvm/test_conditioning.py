"""Digits that are left on a ladder of condition numbers, beside solutions with 60 digits."""

import numpy as np
import pytest
from conditioning import FAMILIES, LADDER, measure

from looms.lssvm.conditioning import condition_of


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.slow
def test_errors_are_below_the_bound_at_every_condition_number(family):
    steps = [measure(family(condition, 8, np.random.default_rng(4))) for condition in LADDER]
    solved = [step for step in steps if step.outputs is not None]
    assert len(solved) >= len(LADDER) - 1
    for step in solved:
        assert max(step.outputs, step.along_ridge, step.along_kernel) <= step.bound
    assert max(step.condition for step in steps) > 1e9


def test_the_condition_number_is_seldom_less_than_that_of_eigenvalues():
    rng = np.random.default_rng(0)
    for n in (2, 5, 60):
        Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        for condition in (1.0, 1e3, 1e9):
            M = (Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T
            ratio = condition_of(M) / condition
            assert 0.5 < ratio < 2 * n**0.5
    assert condition_of(-np.eye(3)) == float("inf")
