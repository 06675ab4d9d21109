"""Leave-one-out solutions: ends of the paths, checked, and solved anew where they fail."""

from __future__ import annotations

import numpy as np

from looms._typing import Array
from looms.svm._active_set import Polished, feasible, polish
from looms.svm._interior_point import interior_point
from looms.svm._margin import Indices
from looms.svm._path import follow
from looms.svm._problem import Problem, intercepts, violations
from looms.svm._tableau import tableau

#: Numbers in each of the dozen arrays that paths and their ends take at a time.
_BLOCK = 1 << 20
_ROWS = 64  # described at a time: a dozen passes over them stay in the cache


def left_out_outputs(
    problem: Problem, start: Polished, left_out: Indices
) -> tuple[Array, Array, Array]:
    """Outputs of the solutions without each of ``left_out``, and their exactness.

    Returns
    -------
    outputs : (m, n) row ``k`` is F of the solution without sample ``left_out[k]``.
    exactness : (m,) largest violation of a KKT condition, without that of the left-out sample,
        or the rounding of the outputs if that is more.
    gaps : (m,) duality gaps of those that did not converge, else nan.
    """
    m, n = len(left_out), len(problem.y)
    gaps, exactness, outputs = np.full(m, np.nan), np.empty(m), np.empty((m, n))
    stays = start.beta[left_out] == 0
    for rows in _blocks(np.flatnonzero(stays), n):
        beta = np.tile(start.beta, (len(rows), 1))
        outputs[rows], residuals = described(problem, start, beta, left_out[rows])
        exactness[rows] = problem.exactness(residuals, beta)
    open_ = np.flatnonzero(~stays)
    reached: dict[int, Array] = {}
    for near in _watched(problem, start):
        if len(open_) == 0:
            break
        table, failed = tableau(problem, start.margin, near, left_out[open_]), []
        for rows in _blocks(open_, n):
            ends = follow(problem, start, left_out[rows], table)
            outputs[rows], residuals = described(problem, start, ends.beta, left_out[rows])
            exactness[rows] = problem.exactness(residuals, ends.beta)
            short = ~(ends.finished & (residuals <= problem.residual_limit(ends.beta)))
            failed.append(rows[short])
            reached.update(zip(rows[short].tolist(), ends.beta[short], strict=True))
        open_ = np.concatenate(failed)
    for k in open_.tolist():
        without = problem.without(left_out[k])
        machine = solution_near(without, reached[k])
        outputs[k] = machine.outputs
        exactness[k] = without.exactness(machine.residual, machine.beta)
        if not machine.residual <= without.residual_limit(machine.beta):
            gaps[k] = without.duality_gap(machine.beta, machine.outputs)
    return outputs, exactness, gaps


def _blocks(rows: Indices, n: int) -> list[Indices]:
    """Blocks of rows of n numbers, of at most `_BLOCK` numbers each."""
    n_blocks = -(-len(rows) * n // _BLOCK)
    return np.array_split(rows, n_blocks) if n_blocks else []


def _watched(problem: Problem, start: Polished) -> list[Indices]:
    """Samples to watch on the paths: those near the margin, then all."""
    part = np.flatnonzero(problem.lower < problem.upper)
    distance = np.abs(problem.y - start.outputs)[part]
    n_margin = 0 if start.margin is None else len(start.margin.basic)
    n_near = n_margin + 32 + (len(part) - n_margin) * 2 // 5
    if 2 * n_near > len(part):
        return [part]
    return [part[np.argpartition(distance, n_near)[:n_near]], part]


def described(
    problem: Problem, start: Polished, beta: Array, left_out: Indices
) -> tuple[Array, Array]:
    """Outputs and KKT residuals for rows of coefficients, each without one sample."""
    outputs, residuals = np.empty(beta.shape), np.empty(len(beta))
    for first in range(0, len(beta), _ROWS):
        rows = slice(first, first + _ROWS)
        outputs[rows], residuals[rows] = _described(problem, start, beta[rows], left_out[rows])
    return outputs, residuals


def _described(
    problem: Problem, start: Polished, beta: Array, left_out: Indices
) -> tuple[Array, Array]:
    rows = np.arange(len(beta))
    change = beta - start.beta
    part = np.flatnonzero(change.any(axis=0))  # most coefficients are unchanged
    Kbeta = change[:, part] @ problem.K[part]
    Kbeta += start.outputs - start.intercept
    errors = problem.y - Kbeta
    can_rise, can_fall = problem.can_rise(beta), problem.can_fall(beta)
    can_rise[rows, left_out] = can_fall[rows, left_out] = False
    b = intercepts(errors, can_rise, can_fall)
    errors -= b[:, None]
    Kbeta += b[:, None]
    residuals = violations(errors, can_rise, can_fall)
    return Kbeta, np.maximum(residuals, np.abs(beta.sum(axis=1)))


def solution_near(problem: Problem, beta: Array) -> Polished:
    """Solution polished from ``beta``, or from the interior point if that fails."""
    first = polish(problem, feasible(problem, beta))
    if first.residual <= problem.residual_limit(first.beta):
        return first
    second = polish(problem, feasible(problem, interior_point(problem)))
    return second if second.residual < first.residual else first
