"""Solution of the dual problem to machine precision, by an active-set method.

The method is a primal one. From a feasible β it moves towards the solution of the margin
equations, F_S = y_S and Σβ = 0. If a sample meets a bound on the way, it leaves the set S. Once the
equations hold, the samples that violate their KKT conditions join S. The objective falls with
every move. Unless a start is given, LIBSVM provides it.

The equations are solved in the differences from one member p [docs/references.md, Leave-one-out
path], in which [[K_SS, 1], [1ᵀ, 0]] becomes the positive semi-definite
R_ij = K_ij − K_ip − K_pj + K_pp. A pivoted Cholesky factorization separates the dependent members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack
from sklearn.svm import SVC

from looms._recording import recorded_warnings
from looms._typing import Array
from looms.svm._problem import EPS, Problem, intercepts, violations

Indices: TypeAlias = npt.NDArray[np.intp]

#: Tolerance of LIBSVM, and its iterations per sample, beyond which the moves are faster.
_TOLERANCE = 1e-2
_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class Margin:
    """Factorized equations of the independent members of a margin set.

    Attributes
    ----------
    pivot : the member p from which differences are taken.
    others : (m,) other independent members.
    dependent : (d,) members whose outputs follow from those of the independent ones.
    L : (m, m) lower Cholesky factor of R.
    """

    pivot: int
    others: Indices
    dependent: Indices
    L: Array

    @property
    def basic(self) -> Indices:
        """Independent members, the pivot last."""
        return np.append(self.others, self.pivot)

    def changes(self, errors: Array) -> Array:
        """Changes of β on `basic`, (m + 1,), that cancel the ``errors`` of the outputs."""
        if len(self.others) == 0:
            return np.zeros(1)
        z, _ = lapack.dpotrs(self.L, errors[:-1] - errors[-1], lower=1)
        return np.append(z, -z.sum())

    def reduced(self, K: Array, columns: Indices) -> Array:
        """R between the other members and ``columns``, (m, len(columns))."""
        return reduced(K, self.pivot, self.others, columns)


def reduced(K: Array, pivot: int, rows: Indices, columns: Indices) -> Array:
    """Reduced kernel R, the inner products of differences from the pivot."""
    right = K[pivot, columns] - K[pivot, pivot]
    return np.asarray((K[np.ix_(rows, columns)] - K[rows, pivot][:, None]) - right)


def factorize(K: Array, members: Indices, pivot: int) -> Margin:
    """Margin for the independent part of ``members``, which contain ``pivot``."""
    rest = members[members != pivot]
    if len(rest) == 0:
        return Margin(pivot, rest, rest, np.zeros((0, 0)))
    R = reduced(K, pivot, rest, rest)
    tolerance = 4 * EPS * len(rest)  # |K| ≤ 1: below it a pivot is rounding
    factor, order, rank, _ = lapack.dpstrf(R, tol=tolerance, lower=1)
    order = order - 1
    if rank == 1 and R[order[0], order[0]] <= tolerance:
        rank = 0
    L = np.asfortranarray(np.tril(factor[:rank, :rank]))
    return Margin(pivot, rest[order[:rank]], rest[order[rank:]], L)


@dataclass(frozen=True, eq=False)
class Polished:
    """Solution of the active-set method.

    Attributes
    ----------
    beta : (n,) β of the scaled problem.
    intercept : b, of the shifted kernel.
    outputs : (n,) F.
    margin : factorized margin set, None if no sample is free.
    residual : largest violation of the KKT conditions.
    n_changes : moves that changed the set.
    """

    beta: Array
    intercept: float
    outputs: Array
    margin: Margin | None
    residual: float
    n_changes: int


def feasible(problem: Problem, beta: Array) -> Array:
    """β within its bounds and with sum zero: the side with the larger sum is scaled down."""
    beta = np.clip(beta, problem.lower, problem.upper)
    positive, negative = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if positive > negative:
        beta[beta > 0] *= negative / positive
    elif negative > positive:
        beta[beta < 0] *= positive / negative
    return beta


def balanced(problem: Problem, beta: Array, outputs: Array) -> Array:
    """β within its bounds and with sum zero, near that of a solution with other bounds.

    The sum is corrected on samples in the order in which a shift of the intercept would bring them
    to the margin, given the ``outputs`` of that solution.
    """
    beta = np.clip(beta, problem.lower, problem.upper)
    short = -float(beta.sum())
    sign = 1.0 if short > 0 else -1.0
    room = sign * (np.where(sign > 0, problem.upper, problem.lower) - beta)
    order = np.argsort(-sign * (problem.y - outputs), kind="stable")
    filled = np.cumsum(room[order]) - room[order]
    beta[order] += sign * np.clip(abs(short) - filled, 0.0, room[order])
    return beta


class _ActiveSet:
    """A feasible β, Kβ, and the samples that may move."""

    def __init__(self, problem: Problem, beta: Array) -> None:
        self.problem = problem
        can_rise, can_fall = problem.can_rise(beta), problem.can_fall(beta)
        self.free = can_rise & can_fall
        self.beta = np.where(can_fall, np.where(can_rise, beta, problem.upper), problem.lower)
        self.Kbeta = problem.K @ self.beta
        self.n_changes = 0
        self.batch = max(1, len(beta) // 50)

    def run(self) -> Polished:
        """The solution, with its KKT conditions met up to rounding."""
        best = None
        for _ in range(50 + 20 * len(self.beta)):
            margin = self._settled()
            self.Kbeta = self.problem.K @ self.beta
            state = self._described(margin)
            if best is None or state.residual < best.residual:
                best = state
            if not self._widened(state):
                break
        assert best is not None
        return best

    def _settled(self) -> Margin | None:
        """Move until the margin equations hold on the free samples."""
        refined = False
        while True:
            margin = self._factorized()
            if margin is None:
                return None
            basic = margin.basic
            change = margin.changes((self.problem.y - self.Kbeta)[basic])
            change[-1] -= self.beta.sum()  # rounding, but it would stay
            if self._move(basic, change, 1.0):
                continue
            if not refined:  # the second pass takes the rounding of the first away
                refined = True
                self.Kbeta = self.problem.K @ self.beta
                continue
            if not self._slide(margin):
                return None if self._all_at_bounds() else margin
            refined = False

    def _factorized(self) -> Margin | None:
        rows = np.flatnonzero(self.free)
        if not len(rows):
            return None
        room = np.minimum(self.beta - self.problem.lower, self.problem.upper - self.beta)
        return factorize(self.problem.K, rows, int(rows[np.argmax(room[rows])]))

    def _all_at_bounds(self) -> bool:
        """True if the equations hold with every free sample at a bound up to rounding.

        Then no sample is really free, and the intercept is not unique.
        """
        lower, upper = self.problem.lower, self.problem.upper
        free = np.flatnonzero(self.free)
        negligible = self.problem.negligible
        beta = self.beta[free]
        if (np.minimum(beta - lower[free], upper[free] - beta) > negligible).any():
            return False
        near_lower = beta - lower[free] < upper[free] - beta
        self.beta[free] = np.where(near_lower, lower[free], upper[free])
        self.free[free] = False
        return True

    def _move(self, indices: Indices, change: Array, length: float) -> bool:
        """Move β along ``change``, up to ``length`` times; True if it met a bound."""
        lower, upper = self.problem.lower[indices], self.problem.upper[indices]
        beta = self.beta[indices]
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = np.where(change > 0, (upper - beta) / change, (lower - beta) / change)
        limits = np.where(change == 0, np.inf, np.maximum(limits, 0.0))
        step = min(length, float(limits.min()))
        hit = limits <= step if step < length else np.zeros(len(indices), dtype=bool)
        moved = np.clip(beta + step * change, lower, upper)
        moved[hit] = np.where(change > 0, upper, lower)[hit]
        self.beta[indices] = moved
        self.Kbeta += self.problem.K[:, indices] @ (moved - beta)
        self.free[indices[hit]] = False
        self.n_changes += bool(hit.any())
        return bool(hit.any())

    def _slide(self, margin: Margin) -> bool:
        """Move a dependent sample that is off the margin, compensated by the independent ones."""
        if len(margin.dependent) == 0:
            return False
        errors = self.problem.y - self.Kbeta
        errors -= errors[margin.basic].mean()
        worst = int(margin.dependent[np.argmax(np.abs(errors[margin.dependent]))])
        if abs(errors[worst]) <= self._tolerance():
            return False
        column = -margin.reduced(self.problem.K, np.array([worst]))[:, 0]
        change = margin.changes(np.append(column, 0.0))
        change[-1] -= 1.0  # the pivot: Σβ = 0
        direction = np.append(change, 1.0) * np.sign(errors[worst])
        return self._move(np.append(margin.basic, worst), direction, np.inf)

    def _tolerance(self) -> float:
        """Error of the outputs that counts as rounding of K β, with its n products."""
        return max(1e-13, EPS * float(np.sqrt(len(self.beta)) * np.abs(self.beta).sum()))

    def _described(self, margin: Margin | None) -> Polished:
        errors = self.problem.y - self.Kbeta
        can_rise, can_fall = self.problem.can_rise(self.beta), self.problem.can_fall(self.beta)
        if margin is None:
            b = float(intercepts(errors, can_rise, can_fall))
        else:
            b = float(np.mean(errors[margin.basic]))
        violation = float(violations(errors - b, can_rise, can_fall))
        residual = max(violation, abs(float(self.beta.sum())))
        outputs = self.Kbeta + b
        return Polished(self.beta.copy(), b, outputs, margin, residual, self.n_changes)

    def _widened(self, state: Polished) -> bool:
        """Free the samples with the largest violations of their conditions; True if any."""
        errors = self.problem.y - state.outputs
        violation = np.where(self.problem.can_rise(self.beta), errors, 0.0)
        violation = np.maximum(violation, np.where(self.problem.can_fall(self.beta), -errors, 0.0))
        violation[self.free] = 0.0
        candidates = np.flatnonzero(violation > self._tolerance())
        if len(candidates) == 0:
            return False
        if state.margin is None:  # none to make up for the other: the most violating pair
            errors = self.problem.y - self.Kbeta
            up = np.where(self.problem.can_rise(self.beta), errors, -np.inf)
            down = np.where(self.problem.can_fall(self.beta), errors, np.inf)
            joining = np.array([np.argmax(up), np.argmin(down)])
        else:
            joining = candidates[np.argsort(-violation[candidates])[: self.batch]]
        self.batch = max(1, self.batch * 3 // 4)
        self.free[joining] = True
        self.n_changes += 1
        return True


def solution_near(problem: Problem, beta: Array | None = None) -> Polished:
    """Solution polished from ``beta``; from LIBSVM's, without it or if that fails."""
    first = None
    if beta is not None:
        first = _ActiveSet(problem, feasible(problem, beta)).run()
        if first.residual <= problem.residual_limit(first.beta):
            return first
    second = _ActiveSet(problem, feasible(problem, by_libsvm(problem))).run()
    return second if first is None or second.residual < first.residual else first


def by_libsvm(problem: Problem) -> Array:
    """β close to the solution, to the tolerance of LIBSVM, which keeps the kernel in float32."""
    part = np.flatnonzero(problem.lower < problem.upper)
    y, beta = problem.y[part], np.zeros(len(problem.y))
    if (y == y[0]).all():
        return beta
    svc = SVC(kernel="precomputed", tol=_TOLERANCE, max_iter=_ITERATIONS * len(y), random_state=0)
    with recorded_warnings():  # that it has not converged: it is only a start
        svc.fit(problem.K[np.ix_(part, part)], y, (problem.upper - problem.lower)[part])
    beta[part[svc.support_]] = svc.dual_coef_[0]
    return beta
