"""All leave-one-out solutions: the ends of the paths, checked, and solved anew where they fail."""

from __future__ import annotations

import numpy as np

from looms._typing import Array
from looms.svm._active_set import Polished, feasible, polish
from looms.svm._interior_point import interior_point
from looms.svm._margin import Indices
from looms.svm._path import follow
from looms.svm._problem import Problem, intercepts, violations


def left_out_outputs(
    problem: Problem, start: Polished, left_out: Indices
) -> tuple[Array, Array, Array]:
    """Outputs of the solutions without each of ``left_out``, and how exact they are.

    Returns
    -------
    outputs : (m, n) row ``k`` is F of the solution without sample ``left_out[k]``.
    residuals : (m,) largest violation of a KKT condition, the left-out sample's aside.
    gaps : (m,) duality gaps of those that did not converge, else nan.
    """
    gaps = np.full(len(left_out), np.nan)
    ends = follow(problem, start, left_out)
    outputs, residuals = described(problem, ends.beta, left_out)
    limits = problem.residual_limit(ends.beta)
    for k in np.flatnonzero(~(ends.finished & (residuals <= limits))):
        without = problem.without(left_out[k])
        found = solution_near(without, ends.beta[k])
        outputs[k], residuals[k] = found.outputs, found.residual
        if not found.residual <= without.residual_limit(found.beta):
            gaps[k] = without.duality_gap(found.beta, found.outputs)
    return outputs, residuals, gaps


def described(problem: Problem, beta: Array, left_out: Indices) -> tuple[Array, Array]:
    """Outputs and KKT residuals of rows of coefficients, each without one sample."""
    rows = np.arange(len(beta))
    Kbeta = beta @ problem.K
    errors = problem.y - Kbeta
    can_rise, can_fall = problem.can_rise(beta), problem.can_fall(beta)
    can_rise[rows, left_out] = can_fall[rows, left_out] = False
    b = intercepts(errors, can_rise, can_fall)
    errors -= b[:, None]
    Kbeta += b[:, None]
    return Kbeta, violations(errors, can_rise, can_fall)


def solution_near(problem: Problem, beta: Array) -> Polished:
    """The solution polished from ``beta``, or from the interior point if that fails."""
    found = None
    if np.isfinite(beta).all():
        found = polish(problem, feasible(problem, beta))
        if found.residual <= problem.residual_limit(found.beta):
            return found
    again = polish(problem, feasible(problem, interior_point(problem)))
    return again if found is None or again.residual < found.residual else found
