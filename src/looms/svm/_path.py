"""The decremental paths of all left-out samples, in lockstep.

As β_c is driven to zero the others answer linearly (`_tableau`) until one of them comes to the
end of its range: a coefficient to a bound, or an output to the margin. There the set changes by
that sample, and the path goes on in another direction. With no sample left on the margin the
intercept moves alone until a sample comes to the margin.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from looms._typing import Array
from looms.svm._active_set import Polished
from looms.svm._margin import Indices
from looms.svm._problem import Problem
from looms.svm._tableau import tableau

_FLAT = 1e-12  # rates below are rounding: |K| ≤ 1, and rates are per unit of β_c
_MOST_STEPS = 1000


@dataclass(eq=False)
class _Paths:
    """One row a path: u is β of the basic and F of the others, between low and high.

    ``held`` is β of those that are not basic, P the samples (n for b, n + 1 for none) in which
    the set differs from the one at the start, n_basic the size of the margin set, left what
    remains of β_c, running whether the path goes on.
    """

    left_out: Indices
    u: Array
    low: Array
    high: Array
    basic: np.ndarray
    held: Array
    P: Indices
    n_basic: Indices
    left: Array
    running: np.ndarray
    n_steps: Indices

    def rows(self, keep: np.ndarray) -> _Paths:
        return _Paths(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})

    def coefficients(self) -> Array:
        n = self.held.shape[1]
        beta = np.where(self.basic, self.u[:, :n], self.held)
        beta[np.arange(len(beta)), self.left_out] = 0.0
        return beta


@dataclass(frozen=True, eq=False)
class PathEnds:
    """Where the paths ended.

    Attributes
    ----------
    beta : (m, n) coefficients without each of the ``left_out`` samples.
    finished : (m,) whether the path got there.
    n_steps : (m,) changes of the margin set on the way.
    """

    beta: Array
    finished: np.ndarray
    n_steps: Indices


def follow(problem: Problem, start: Polished, left_out: Indices) -> PathEnds:
    """Drive β_c to zero for every c of ``left_out``, each from the same start."""
    AT = tableau(problem, start.margin)
    n, m = len(problem.y), len(left_out)
    ends = PathEnds(np.empty((m, n)), np.zeros(m, dtype=bool), np.zeros(m, dtype=np.intp))
    paths, places = _started(problem, start, left_out), np.arange(m)
    for _ in range(_MOST_STEPS):
        if len(places) == 0:
            break
        _step(problem, AT, paths)
        stopped = ~paths.running
        if 8 * stopped.sum() >= len(places):
            _collect(ends, places[stopped], paths.rows(stopped))
            paths, places = paths.rows(paths.running), places[paths.running]
    _collect(ends, places, paths)
    return ends


def _collect(ends: PathEnds, places: Indices, paths: _Paths) -> None:
    ends.beta[places] = paths.coefficients()
    ends.finished[places] = paths.left == 0.0
    ends.n_steps[places] = paths.n_steps


def _started(problem: Problem, start: Polished, left_out: Indices) -> _Paths:
    n, m = len(problem.y), len(left_out)
    beta, basic = start.beta, np.zeros(n, dtype=bool)
    if start.margin is not None:
        basic[start.margin.basic] = True
    u = np.append(np.where(basic, beta, start.outputs), 0.0)
    low, high = (
        np.append(end, end_of_b)
        for end, end_of_b in zip(_ranges(problem, beta, basic), (-np.inf, np.inf), strict=True)
    )
    rows = np.arange(m)
    paths = _Paths(
        left_out=left_out,
        u=np.tile(u, (m, 1)),
        low=np.tile(low, (m, 1)),
        high=np.tile(high, (m, 1)),
        basic=np.tile(basic, (m, 1)),
        held=np.tile(beta, (m, 1)),
        P=np.full((m, 1), n + 1),
        n_basic=np.full(m, basic.sum()),
        left=beta[left_out].copy(),
        running=np.ones(m, dtype=bool),
        n_steps=np.zeros(m, dtype=np.intp),
    )
    paths.low[rows, left_out], paths.high[rows, left_out] = -np.inf, np.inf
    on_margin = np.flatnonzero(basic[left_out])
    _leave(paths, on_margin, left_out[on_margin])
    return paths


def _ranges(problem: Problem, beta: Array, basic: np.ndarray) -> tuple[Array, Array]:
    """Where u may be: β in its bounds; F at or beyond y on the side that β allows."""
    y, lower, upper = problem.y, problem.lower, problem.upper
    low = np.where(basic, lower, np.where(beta < upper, y, -np.inf))
    high = np.where(basic, upper, np.where(beta > lower, y, np.inf))
    return low, high


def _step(problem: Problem, AT: Array, paths: _Paths) -> None:
    """Follow every path to its next change of the set, or to its end."""
    m, n = paths.held.shape
    rows = np.arange(m)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rate = _rates(problem, AT, paths)
        slack = np.where(rate > 0, paths.high, paths.low)
        slack -= paths.u
        slack /= rate
        flat = np.abs(rate) < _FLAT
    slack[flat] = np.inf
    np.maximum(slack, 0.0, out=slack)
    who = slack.argmin(axis=1)
    length = slack[rows, who]
    moving = paths.n_basic > 0
    to_end = moving & (length >= np.abs(paths.left))
    lost = ~np.isfinite(rate).all(axis=1) | (np.isinf(length) & ~to_end)
    length = np.where(to_end, np.abs(paths.left), length)
    length[lost | ~paths.running] = 0.0
    rate *= length[:, None]
    np.add(paths.u, rate, out=paths.u, where=np.isfinite(rate))
    paths.left -= np.where(moving, np.sign(paths.left) * length, 0.0)
    paths.left[to_end & paths.running] = 0.0
    paths.running &= ~(to_end | lost)
    _change(problem, paths, who, rate)


def _rates(problem: Problem, AT: Array, paths: _Paths) -> Array:
    """(m, n + 1) change of u for each unit that β_c comes closer to zero; of b, with no margin."""
    m, n = paths.held.shape
    rows, P, c = np.arange(m), paths.P, paths.left_out
    k = P.shape[1]
    system = AT[P[:, None, :], P[:, :, None]]
    padded = P == n + 1
    system[:, np.arange(k), np.arange(k)] += padded
    at_c = P == c[:, None]
    outside = ~at_c.any(axis=1)  # c itself drives, else its coefficient is prescribed
    right = np.where(outside[:, None], -AT[c[:, None], P], at_c)
    x = _solved(system, right)
    rate = np.matmul(x[:, None, :], AT[P])[:, 0, : n + 1]
    rate[outside] += AT[c[outside], : n + 1]
    row, column = np.nonzero(~padded)
    rate[row, P[row, column]] = x[row, column]
    rate *= -np.sign(paths.left)[:, None]
    none = paths.n_basic == 0
    rate[none] = -problem.y[c[none], None]
    rate[:, n] = 0.0
    rate[~paths.running] = 0.0
    return rate


def _solved(systems: Array, right: Array) -> Array:
    """Solutions of many small systems; nan where one is singular."""
    try:
        return np.linalg.solve(systems, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        if len(systems) == 1:
            return np.full(right.shape, np.nan)
        half = len(systems) // 2
        return np.concatenate(
            [_solved(systems[:half], right[:half]), _solved(systems[half:], right[half:])]
        )


def _change(problem: Problem, paths: _Paths, who: Indices, rate: Array) -> None:
    """The sample at the end of its range leaves the margin, or joins it."""
    rows = np.flatnonzero(paths.running)
    who = who[rows]
    paths.n_steps[rows] += 1
    leaving = paths.basic[rows, who]
    out, i = rows[leaving], who[leaving]
    rising = paths.u[out, i] > 0.5 * (problem.lower + problem.upper)[i]
    paths.held[out, i] = np.where(rising, problem.upper[i], problem.lower[i])
    paths.low[out, i] = np.where(rising, -np.inf, problem.y[i])
    paths.high[out, i] = np.where(rising, problem.y[i], np.inf)
    paths.u[out, i] = problem.y[i]
    _leave(paths, out, i)
    joining, j = rows[~leaving], who[~leaving]
    paths.u[joining, j] = paths.held[joining, j]
    paths.low[joining, j], paths.high[joining, j] = problem.lower[j], problem.upper[j]
    paths.basic[joining, j] = True
    first = joining[paths.n_basic[joining] == 0]
    paths.n_basic[joining] += 1
    _toggle(paths, first, np.full(len(first), paths.held.shape[1]))
    _toggle(paths, joining, j)


def _leave(paths: _Paths, rows: Indices, i: Indices) -> None:
    """Take sample i off the margin, and the intercept with the last one."""
    n = paths.held.shape[1]
    paths.basic[rows, i] = False
    paths.n_basic[rows] -= 1
    last = rows[paths.n_basic[rows] == 0]
    _toggle(paths, last, np.full(len(last), n))
    _toggle(paths, rows, i)


def _toggle(paths: _Paths, rows: Indices, i: Indices) -> None:
    """P without i where it has it, with i where it has not."""
    none = paths.held.shape[1] + 1
    P = paths.P[rows]
    same = P == i[:, None]
    had = same.any(axis=1)
    place = np.where(had, same.argmax(axis=1), (P == none).argmax(axis=1))
    full = ~had & ~(P == none).any(axis=1)
    if full.any():
        width = paths.P.shape[1]
        paths.P = np.pad(paths.P, ((0, 0), (0, 2)), constant_values=none)
        place[full] = width
    paths.P[rows, place] = np.where(had, none, i)
