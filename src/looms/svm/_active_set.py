"""Active-set method for the dual problem, to machine precision.

A primal active-set method. From a feasible β it moves towards the solution of the margin
equations, up to the first bound; there the set loses that sample. Once the equations hold, the
samples that violate their KKT conditions join it. The objective falls with every move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from looms._typing import Array
from looms.svm._margin import Indices, Margin, factorize
from looms.svm._problem import Problem, intercepts, violations


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
    """β within its bounds and of sum zero: the side of the larger sum is scaled down."""
    beta = np.clip(beta, problem.lower, problem.upper)
    positive, negative = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if positive > negative:
        beta[beta > 0] *= negative / positive
    elif negative > positive:
        beta[beta < 0] *= positive / negative
    return beta


def polish(problem: Problem, beta: Array) -> Polished:
    """Solution from a feasible ``beta``, its KKT conditions met up to rounding."""
    return _ActiveSet(problem, beta).run()


class _ActiveSet:
    """β, Kβ and the samples that may move."""

    def __init__(self, problem: Problem, beta: Array) -> None:
        self.problem = problem
        can_rise, can_fall = problem.can_rise(beta), problem.can_fall(beta)
        self.free = can_rise & can_fall
        self.beta = np.where(can_fall, np.where(can_rise, beta, problem.upper), problem.lower)
        self.Kbeta = problem.K @ self.beta
        self.n_changes = 0
        self.batch = max(1, len(beta) // 50)

    def run(self) -> Polished:
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
        members = np.flatnonzero(self.free)
        if len(members) == 0:
            return None
        room = np.minimum(self.beta - self.problem.lower, self.problem.upper - self.beta)
        return factorize(self.problem.K, members, int(members[np.argmax(room[members])]))

    def _all_at_bounds(self) -> bool:
        """True if the equations hold with every free sample at a bound up to rounding.

        Then the sample is not free, and the intercept not unique.
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
        return max(1e-13, self.problem.rounding * float(np.abs(self.beta).sum()))

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

    def _widened(self, found: Polished) -> bool:
        """Free the samples that violate their conditions most; True if there are any."""
        errors = self.problem.y - found.outputs
        violation = np.where(self.problem.can_rise(self.beta), errors, 0.0)
        violation = np.maximum(violation, np.where(self.problem.can_fall(self.beta), -errors, 0.0))
        violation[self.free] = 0.0
        candidates = np.flatnonzero(violation > self._tolerance())
        if len(candidates) == 0:
            return False
        if found.margin is None:  # none to make up for the other: the most violating pair
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
