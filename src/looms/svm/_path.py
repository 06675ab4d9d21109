"""Paths for all left-out samples, or folds, followed in lockstep.

With the margin equations solved, the coefficients of the margin set B and b (basic) and the
outputs of the others N (nonbasic) are linear in the coefficients of N and the outputs of B
[docs/references.md, Leave-one-out path]:
    [dβ_B; db; dF_N] = A [dF_B; dΣβ; dβ_N].

With R the reduced kernel and V = L⁻¹ R_BN, the part of A on N is the Schur complement
R_NN − VᵀV. A set that differs from B in k samples P takes a k×k system in A, not a new inverse.

As the β_c of the left-out samples are driven to zero, the state of the others changes along A
until one of them reaches the end of its range: a coefficient reaches a bound, or an output the
margin. There the margin set changes by that sample, and so does the direction. If no sample is on
the margin, only the intercept moves.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, solve_triangular

from looms._typing import AnyArray, Array
from looms.svm._active_set import Indices, Margin, Polished
from looms.svm._problem import Problem

_FLAT = 1e-12  # rates below are rounding: |K| ≤ 1, and rates are per unit of β_c
_MOST_STEPS = 1000
_MOST_IDLE = 100  # steps of no length in a row: at a point where many samples are on the margin
_FEW = 256  # rows times columns


@dataclass(frozen=True, eq=False)
class Tableau:
    """Rows and columns of A for the samples of the paths, transposed.

    Attributes
    ----------
    samples : (c,) samples that may change, those of B first.
    n_basic : size of B.
    responses : (r, c + 2) row j is the change of u, which is β of B and F of the others, per unit
        of z_j: column j of A. Row and column c belong to the intercept; c + 1 is zero and pads
        index sets of different sizes; further rows belong to samples that are only held out.
    place : (n,) row of each sample, -1 for none.
    """

    samples: Indices
    n_basic: int
    responses: Array
    place: Indices

    @property
    def intercept(self) -> int:
        return len(self.samples)

    @property
    def padding(self) -> int:
        return len(self.samples) + 1


def tableau(problem: Problem, margin: Margin | None, near: Indices, left_out: Indices) -> Tableau:
    """Tableau at a solution for changes of ``near`` and the margin, with ``left_out`` driven."""
    n = len(problem.y)
    B = np.empty(0, dtype=np.intp) if margin is None else margin.basic
    N = np.setdiff1d(near, B)
    driven = np.setdiff1d(left_out, np.concatenate([B, N]))
    samples = np.concatenate([B, N])
    c = len(samples)
    place = np.full(n, -1)
    place[samples] = np.arange(c)
    place[driven] = np.arange(c + 2, c + 2 + len(driven))
    responses = np.zeros((c + 2 + len(driven), c + 2))
    J = np.concatenate([N, driven])
    rows_J = np.concatenate([np.arange(len(B), c), np.arange(c + 2, len(responses))])
    if margin is None:
        responses[rows_J, :c] = problem.K[np.ix_(J, N)]
        responses[rows_J, c] = responses[c, :c] = 1.0
    else:
        _fill(responses, rows_J, problem.K, margin, N, J)
    return Tableau(samples, len(B), responses, place)


def _fill(
    responses: Array, rows_J: Indices, K: Array, margin: Margin, N: Indices, J: Indices
) -> None:
    """Write the responses to the margin, to b and to the samples J, which begin with N."""
    B, p, q, c = margin.basic, margin.pivot, len(margin.others), len(margin.others) + 1 + len(N)
    inverse = solve_triangular(margin.L, np.eye(q), lower=True) if q else np.zeros((0, 0))
    V = inverse @ margin.reduced(K, J)
    T = K[np.ix_(J, N)]
    T -= (K[p, J] - K[p, p])[:, None]
    T -= K[p, N]
    if V.size and len(N):
        T = blas.dgemm(-1.0, V[:, : len(N)], V, beta=1.0, c=T.T, trans_a=1, overwrite_c=1).T
    D = np.empty((len(J), q + 1))  # of β_B to β_J
    D[:, :q] = -V.T @ inverse
    D[:, q] = -1.0 - D[:, :q].sum(axis=1)
    M = np.empty((q + 1, q + 1))  # of β_B to F_B
    M[:q, :q] = inverse.T @ inverse
    M[:q, q] = M[q, :q] = -M[:q, :q].sum(axis=0)
    M[q, q] = -M[q, :q].sum()
    to_sum = -M @ K[B, p]  # of β_B to Σβ, and of b to F_B
    to_sum[q] += 1.0
    to_J = -K[p, J] - D @ K[B, p]  # of b to β_J
    responses[: q + 1, : q + 1] = M
    responses[: q + 1, q + 1 : c] = -D[: len(N)].T
    responses[: q + 1, c] = responses[c, : q + 1] = to_sum
    responses[c, c] = -K[p, B] @ to_sum
    responses[c, q + 1 : c] = -to_J[: len(N)]
    responses[rows_J, : q + 1] = D
    responses[rows_J, q + 1 : c] = T
    responses[rows_J, c] = to_J


@dataclass(eq=False)
class _Paths:
    """State of the paths.

    Arrays have a row for each of m paths. The c + 2 columns are the samples of the tableau, the
    intercept, and padding.

    Attributes
    ----------
    drivers : (m, s) rows in the tableau of the left-out samples, then padding.
    pace : (m, s) change of their β per unit of length; absolute values add up to one.
    u : (m, c + 2) β of basic samples and F of the others.
    low, high : (m, c + 2) range of u.
    basic : (m, c) whether the sample is on the margin.
    held : (m, c) β of the samples that are not basic, which are at a bound.
    P : (m, k) columns in which the margin set differs from that of the tableau, then padding.
    n_basic : (m,) size of the margin set.
    left : (m,) remaining length, Σ|β_c|.
    idle : (m,) number of steps of length zero since the last longer one.
    joined : (m,) sample that came onto the margin in the last step, -1 for none.
    barred : (m, c + 2) samples that joined in one step and left in the next, of length zero. By
        the equations, β of such a sample moves into its range, so it depends on the others up to
        rounding. It stays off until the path moves; otherwise it would join and leave forever.
    running : (m,) whether the path is still running.
    """

    drivers: Indices
    pace: Array
    u: Array
    low: Array
    high: Array
    basic: AnyArray
    held: Array
    P: Indices
    n_basic: Indices
    left: Array
    idle: Indices
    joined: Indices
    barred: AnyArray
    running: AnyArray

    def rows(self, keep: AnyArray) -> _Paths:
        return _Paths(**{field.name: getattr(self, field.name)[keep] for field in fields(self)})


@dataclass(frozen=True, eq=False)
class PathEnds:
    """Ends of the paths.

    Attributes
    ----------
    beta : (m, n) coefficients without the samples of each row of ``left_out``.
    finished : (m,) whether the path reached its end.
    """

    beta: Array
    finished: AnyArray


def rows_of_folds(folds: Indices, numbers: Indices) -> Indices:
    """Samples of each fold, (m, largest), padded by -1."""
    order = np.argsort(folds, kind="stable")
    first, end = (np.searchsorted(folds[order], numbers, side) for side in ("left", "right"))
    place = first[:, None] + np.arange((end - first).max(initial=0))
    own = place < end[:, None]
    return np.where(own, order[np.where(own, place, 0)], -1)


def follow(problem: Problem, start: Polished, left_out: Indices, table: Tableau) -> PathEnds:
    """Drive β_c to zero for every c in a row of ``left_out``, each row from the same start.

    ``left_out`` is (m, s), padded by -1. The β of a row shrink together, in proportion.
    Only the samples of the tableau are watched; check the conditions of the others at the ends.
    """
    m = len(left_out)
    beta = np.tile(start.beta, (m, 1))
    ends = PathEnds(beta, np.zeros(m, dtype=bool))
    paths, places = _started(problem, start, table, left_out), np.arange(m)
    limits = _Limits(*(v[table.samples] for v in (problem.y, problem.lower, problem.upper)))
    work = np.empty_like(paths.u)
    for _ in range(_MOST_STEPS):
        if len(places) == 0:
            break
        _step(limits, table, paths, work)
        stopped = ~paths.running
        if 8 * stopped.sum() >= len(places):
            _collect(ends, places[stopped], paths.rows(stopped), table)
            paths, places = paths.rows(paths.running), places[paths.running]
    _collect(ends, places, paths, table)
    row, slot = np.nonzero(left_out >= 0)
    beta[row, left_out[row, slot]] = 0.0
    return ends


@dataclass(frozen=True, eq=False)
class _Limits:
    """Labels and bounds of β of the samples of the tableau."""

    y: Array
    lower: Array
    upper: Array


def _collect(ends: PathEnds, places: Indices, paths: _Paths, table: Tableau) -> None:
    c = len(table.samples)
    ends.beta[places[:, None], table.samples] = np.where(paths.basic, paths.u[:, :c], paths.held)
    ends.finished[places] = paths.left == 0.0


def _started(problem: Problem, start: Polished, table: Tableau, left_out: Indices) -> _Paths:
    m, samples = len(left_out), table.samples
    beta, y = start.beta[samples], problem.y[samples]
    lower, upper = problem.lower[samples], problem.upper[samples]
    basic = np.arange(len(samples)) < table.n_basic
    u = np.where(basic, beta, start.outputs[samples])
    can_rise, can_fall = problem.can_rise(start.beta), problem.can_fall(start.beta)
    low = np.where(basic, lower, np.where(can_rise[samples], y, -np.inf))
    high = np.where(basic, upper, np.where(can_fall[samples], y, np.inf))
    sizes = np.where(left_out >= 0, np.abs(start.beta[left_out]), 0.0)
    left = sizes.sum(axis=1)
    drivers = np.where(left_out >= 0, table.place[left_out], -1)
    drivers[drivers < 0] = table.padding  # of those outside the tableau β is zero
    paths = _Paths(
        drivers=drivers,
        pace=-np.sign(start.beta[left_out]) * sizes / left[:, None],
        u=np.tile(np.append(u, (0.0, 0.0)), (m, 1)),
        low=np.tile(np.append(low, (-np.inf, -np.inf)), (m, 1)),
        high=np.tile(np.append(high, (np.inf, np.inf)), (m, 1)),
        basic=np.tile(basic, (m, 1)),
        held=np.tile(beta, (m, 1)),
        P=np.full((m, 1), table.padding),
        n_basic=np.full(m, table.n_basic),
        left=left,
        idle=np.zeros(m, dtype=np.intp),
        joined=np.full(m, -1),
        barred=np.zeros((m, len(samples) + 2), dtype=bool),
        running=np.ones(m, dtype=bool),
    )
    row, slot = np.nonzero(drivers < len(samples))
    own = drivers[row, slot]
    paths.low[row, own], paths.high[row, own] = -np.inf, np.inf
    for column in drivers.T:
        on_margin = np.flatnonzero(column < table.n_basic)
        _leave(paths, on_margin, column[on_margin])
    return paths


def _step(limits: _Limits, table: Tableau, paths: _Paths, work: Array) -> None:
    """Follow every path to its next change of the margin set, or to its end."""
    m = len(paths.left)
    rate, lost = _rates(table, paths)
    length, who = _longest(paths, rate, work[:m])
    moving = paths.n_basic > 0
    to_end = moving & (length >= paths.left)
    lost |= np.isinf(length) & ~to_end
    length = np.where(to_end, paths.left, length)
    paths.idle = np.where(length > _FLAT, 0, paths.idle + 1)
    paths.barred[paths.idle == 0] = False
    lost |= ~to_end & (paths.idle > _MOST_IDLE)
    length[lost | ~paths.running] = 0.0
    rate *= length[:, None]
    paths.u += rate
    paths.left -= np.where(moving, length, 0.0)
    paths.left[to_end & paths.running & ~lost] = 0.0
    paths.running &= ~(to_end | lost)
    _change(limits, paths, who)


def _longest(paths: _Paths, rate: Array, room: Array) -> tuple[Array, Indices]:
    """Length of each path until some u reaches the end of its range, and the column of that u."""
    rows = np.arange(len(rate))
    np.copyto(room, paths.low)
    np.copyto(room, paths.high, where=rate > 0)
    room -= paths.u
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room /= rate
    room[:, -2:] = np.inf  # the intercept and padding are not bounded
    room[paths.barred] = np.inf
    who = room.argmin(axis=1)  # nan counts as the smallest
    flat = np.flatnonzero(np.abs(rate[rows, who]) < _FLAT)
    if len(flat):  # a u that does not move meets no end, even if it is at one
        room[flat] = np.where(np.abs(rate[flat]) < _FLAT, np.inf, room[flat])
        who[flat] = room[flat].argmin(axis=1)
    return np.maximum(room[rows, who], 0.0), who


def _rates(table: Tableau, paths: _Paths) -> tuple[Array, AnyArray]:
    """Changes of u per unit of Σ|β_c|, and the paths for which they cannot be computed.

    Paths without margin samples have changes per unit of the intercept.
    """
    A, P, c = table.responses, paths.P, paths.drivers
    k = P.shape[1]
    system = A[P[:, None, :], P[:, :, None]]
    padded = np.equal(P, table.padding)
    system[:, np.arange(k), np.arange(k)] += padded
    pace = np.where((paths.running & (paths.n_basic > 0))[:, None], paths.pace, 0.0)
    at_c = c[:, :, None] == P[:, None, :]
    outside = pace * ~at_c.any(axis=2)  # these drive, of the others the coefficient is prescribed
    right = np.einsum("ms,msk->mk", pace, at_c)
    right -= np.einsum("ms,msk->mk", outside, A[c[:, :, None], P[:, None, :]])
    weights = np.concatenate([_solved(system, right), outside], axis=1)
    lost = np.asarray(~np.isfinite(weights).all(axis=1))
    weights[lost] = 0.0
    rate = _combined(A, np.concatenate([P, c], axis=1), weights)
    row, column = np.nonzero(~padded)
    rate[row, P[row, column]] = weights[row, column]
    none = np.flatnonzero((paths.n_basic == 0) & paths.running)
    rate[none] = np.sign(paths.pace[none].sum(axis=1))[:, None]
    rate[:, table.intercept :] = 0.0
    return rate, lost


def _combined(A: Array, columns: Indices, weights: Array) -> Array:
    """Σ_j weights_ij A[columns_ij] for every row i."""
    m, k = columns.shape
    if m * k <= _FEW:  # what a sparse matrix costs to make is more than what it saves
        return np.asarray(np.matmul(weights[:, None, :], A[columns])[:, 0])
    starts = np.arange(0, m * k + 1, k)
    combination = sp.csr_array((weights.ravel(), columns.ravel(), starts), shape=(m, len(A)))
    return np.asarray(combination @ A)


def _solved(systems: Array, right: Array) -> Array:
    """Solutions of many small systems; NaN where one is singular."""
    try:
        return np.asarray(np.linalg.solve(systems, right[:, :, None])[:, :, 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        if len(systems) == 1:
            return np.full(right.shape, np.nan)
        half = len(systems) // 2
        return np.concatenate(
            [_solved(systems[:half], right[:half]), _solved(systems[half:], right[half:])]
        )


def _change(limits: _Limits, paths: _Paths, who: Indices) -> None:
    """Move the sample at the end of its range off the margin, or onto it."""
    rows = np.flatnonzero(paths.running)
    who = who[rows]
    leaving = paths.basic[rows, who]
    out, i = rows[leaving], who[leaving]
    paths.barred[out, i] = (paths.idle[out] > 0) & (paths.joined[out] == i)
    rising = paths.u[out, i] > 0.5 * (limits.lower + limits.upper)[i]
    paths.held[out, i] = np.where(rising, limits.upper[i], limits.lower[i])
    paths.low[out, i] = np.where(rising, -np.inf, limits.y[i])
    paths.high[out, i] = np.where(rising, limits.y[i], np.inf)
    paths.u[out, i] = limits.y[i]
    _leave(paths, out, i)
    joining, j = rows[~leaving], who[~leaving]
    paths.joined[rows] = np.where(leaving, -1, who)
    paths.u[joining, j] = paths.held[joining, j]
    paths.low[joining, j], paths.high[joining, j] = limits.lower[j], limits.upper[j]
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
    """Replace P by its symmetric difference with {i}."""
    if len(rows) == 0:
        return
    none = paths.held.shape[1] + 1
    P = paths.P[rows]
    same = i[:, None] == P
    member = same.any(axis=1)
    place = np.where(member, same.argmax(axis=1), (none == P).argmax(axis=1))
    full = ~member & ~(none == P).any(axis=1)
    if full.any():
        width = paths.P.shape[1]
        paths.P = np.pad(paths.P, ((0, 0), (0, 2)), constant_values=none)
        place[full] = width
    paths.P[rows, place] = np.where(member, none, i)
