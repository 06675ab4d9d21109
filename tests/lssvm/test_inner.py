"""Residuals with two units held out, against refits, and at the edges."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looms.kernels import RBF
from looms.lssvm import NotPositiveDefiniteError, inner, solve
from looms.lssvm.inner import InnerUnits
from looms.lssvm.refit import refit_loo
from looms.units import Units, of_one_size

N, MU = 14, 0.03
RNG = np.random.default_rng(3)
K = RBF(0.5)(RNG.standard_normal((N, 3)))
Y = RNG.standard_normal((N, 2))
WEIGHT = RNG.uniform(0.3, 3.0, N)
UNITS = {
    "rows": Units.rows(N),
    "uneven": Units.of_numbers([0, 1, 1, 2, 0, 3, 3, 3, 3, 4, 5, 1, 6, 0]),
    "quarters": Units.of_numbers(np.arange(N) % 4),
}


@pytest.mark.parametrize("few", [16, 1])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("units", UNITS)
def test_they_are_the_held_out_residuals_of_machines_without_one_unit_or_two(
    monkeypatch, units, fit_intercept, few
):
    monkeypatch.setattr(inner, "_FEW", few)
    monkeypatch.setattr(inner, "_NUMBERS", 3 * N)  # some machines at a time
    units, members = UNITS[units], list(UNITS[units])
    solved = solve(K, Y, MU, sample_weight=WEIGHT, fit_intercept=fit_intercept)
    of_units = InnerUnits(units, solved.matrix(), solved.alpha, MU)
    left_out = [np.array(G) for G in members]
    left_out += [np.append(G, H) for G, H in list(combinations(members, 2))[:30]]
    for which, rows in of_one_size(left_out, 100):
        for k, e in zip(which, of_units.residuals(rows), strict=True):
            rest = np.setdiff1d(np.arange(N), left_out[k])
            options = {"sample_weight": WEIGHT[rest], "fit_intercept": fit_intercept}
            problem = K[np.ix_(rest, rest)], Y[rest], MU * N / len(rest)  # λ is held
            number = units.number[0, rest]
            if len(np.unique(number)) > 1:
                theirs = refit_loo(*problem, folds=number, **options).residuals
                assert_allclose(e[rest], theirs, rtol=1e-7, atol=1e-9)
            machine, out = solve(*problem, **options).expansion, left_out[k]
            f = K[np.ix_(out, rest)] @ machine.coefficients + machine.intercept
            assert_allclose(e[out], Y[out] - f, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("few", [16, 1])
@pytest.mark.parametrize("numbers", [[0, 1], [0, 1, 1]])
def test_two_units_that_leave_no_row_for_the_intercept_are_refused(monkeypatch, numbers, few):
    monkeypatch.setattr(inner, "_FEW", few)
    n, units = len(numbers), Units.of_numbers(numbers)
    solved = solve(np.eye(n), np.arange(n, dtype=float), 0.1)
    of_units = InnerUnits(units, solved.matrix(), solved.alpha, 0.1)
    with pytest.raises(NotPositiveDefiniteError, match="leverage"):
        of_units.residuals(np.array([[0]]))
