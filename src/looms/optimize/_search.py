"""Points, record and stopping rules of a search for a minimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol, TypeAlias

import numpy as np

from looms._advice import setting
from looms._typing import Array


class StopReason(Enum):
    """Reason why a search stopped; the value explains it and gives advice.

    Examples
    --------
    >>> from looms.optimize._search import StopReason
    >>> StopReason.CONVERGED.name
    'CONVERGED'
    """

    WITHIN_NOISE = "within noise"
    CONVERGED = "converged"
    MAX_ITER = "max iter"
    NO_PROGRESS = "no progress"
    CALLBACK = "callback"
    GRID = "grid"
    GIVEN = "given"
    NEVER_EVALUATED = "never evaluated"

    def __str__(self) -> str:
        """The reason as a sentence, with what to do about it."""
        if self is StopReason.MAX_ITER:
            stopped = "stopped at the largest number of iterations: the criterion was still falling"
            return f"{stopped}, raise {setting('max_iter')}"
        return _SENTENCES[self.value]

    def __reduce__(self) -> tuple[type[StopReason], tuple[str]]:
        # skops stores what is rebuilt by a call of its own type, and no other enum.
        return StopReason, (self.value,)


_SENTENCES = {
    "within noise": (
        "the last step gained, or the slope promises, less than the tolerated fraction of the "
        "criterion's standard error; a smaller tolerance continues the search"
    ),
    "converged": "no direction leads downhill",
    "no progress": (
        "no lower value was found along the search direction: look for hyper-parameters at their "
        "bounds"
    ),
    "callback": "a callback asked to stop",
    "grid": "all points of the grid were evaluated",
    "given": "nothing was searched: an estimator is fitted as it is",
    "never evaluated": (
        "no point could be evaluated, not even the start: the kernel matrix plus ridge was never "
        "positive definite; check that the kernel is positive semi-definite, or scale the features"
    ),
}


@dataclass(frozen=True, eq=False)
class Point:
    """Value of a criterion at one vector of hyper-parameters.

    Attributes
    ----------
    theta : (p,) log₂ of the hyper-parameters.
    value, standard_error : those of the criterion; infinite if it cannot be evaluated.
    gradient : (p,) gradient of the value in ``theta``, or None if not computed.
    model : fitted model, if the function returns one.
    deviations : (n,) independent contributions to the deviation of the value from its mean, whose
        differences tell how sure a difference of values is; None if unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.optimize._search import Point
    >>> point = Point(np.array([3.0]), 9.0, 1e-6, np.array([6.0]))  # of θ²
    >>> point.value
    9.0
    """

    theta: Array
    value: float
    standard_error: float
    gradient: Array | None = None
    model: Any = None
    deviations: Array | None = None

    def error_of_gain(self, other: Point) -> float:
        """Standard error of the difference to another value; infinite if it is unknown."""
        if self.deviations is None or other.deviations is None:
            return np.inf
        return float(np.linalg.norm(self.deviations - other.deviations))

    def sure_gain_over(self, other: Point) -> bool:
        """True if the value is less than another by a standard error of the difference."""
        return other.value - self.value > self.error_of_gain(other)


@dataclass(frozen=True, eq=False)
class Search:
    """Record of a search.

    Attributes
    ----------
    best : the point with the smallest value.
    stop_reason : reason why the search stopped.
    history : every point in the order of evaluation, without gradients and models.
    n_iterations : number of accepted steps.
    accepted : the start and the best point after every iteration, with gradients if
        they were computed, without models.
    """

    best: Point
    stop_reason: StopReason
    history: tuple[Point, ...]
    n_iterations: int
    accepted: tuple[Point, ...] = ()

    @property
    def n_evaluations(self) -> int:
        return len(self.history)

    @property
    def n_failures(self) -> int:
        """Number of points that could not be evaluated and were skipped."""
        return sum(not np.isfinite(point.value) for point in self.history)


#: Whether a point gets its gradient, or a function that tells by the point without it.
WantsGradient: TypeAlias = bool | Callable[[Point], bool]


class Evaluate(Protocol):
    """Function to minimize: value, standard error and, on request, gradient."""

    def __call__(self, theta: Array, *, gradient: WantsGradient = True) -> Point: ...


#: Called after every iteration with its number and the best point so far; True stops the search.
Callback: TypeAlias = Callable[[int, Point], bool | None]


# How far a gradient is assumed to reach to the optimum, in log₂ units of every hyper-parameter:
# far if the curvature is unknown; if it is measured, still far enough that a curvature measured
# too large does not end a search on a slope.
_REACH_BLIND, _REACH_INFORMED = 1.0, 0.2


class SearchStopped(Exception):
    """Exception raised inside a search to stop it."""

    def __init__(self, stop_reason: StopReason) -> None:
        super().__init__(str(stop_reason))
        self.stop_reason = stop_reason


class Recorder:
    """Function that records its evaluations and applies the stopping rules.

    Parameters
    ----------
    evaluate : the function.
    bounds : (p, 2) lower and upper bounds.
    tolerance : gain, as a fraction of the standard error of the value, that is not worth an
        iteration. The search ends after an iteration that gained less, and at a point whose
        expected gain is smaller: for a quasi-Newton step, if ``inverse_hessian`` is known,
        and for a small move in every hyper-parameter. It goes on after an iteration with a sure
        gain, more than the standard error of this difference (`Point.sure_gain_over`).
    max_iter : largest number of iterations.
    callback : see `Callback`.
    last_gradient : if False, an iteration ends the search without a gradient where the inverse
        Hessian promised what it gained.

    Attributes
    ----------
    inverse_hessian : (p, p) inverse Hessian that the search steps by, or None; set when it begins.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        bounds: Array,
        tolerance: float,
        max_iter: int,
        callback: Callback | None,
        last_gradient: bool = True,
    ) -> None:
        self._evaluate = evaluate
        self._low, self._high = bounds.T
        self.tolerance = tolerance
        self._max_iter = max_iter
        self._callback = callback
        self._last_gradient = last_gradient
        self.inverse_hessian: Array | None = None
        self._accepted: list[Point] = []
        self._before: Point | None = None
        self.history: list[Point] = []
        self.n_iterations = 0
        self.best: Point | None = None

    def __call__(self, theta: Array, *, gradient: WantsGradient = True) -> Point:
        may_end = bool(gradient) and not self._last_gradient and self.inverse_hessian is not None
        point = self._evaluate(np.array(theta), gradient=self._goes_on if may_end else gradient)
        self.history.append(Point(point.theta, point.value, point.standard_error))
        if self.best is None or point.value < self.best.value:
            self.best = point
        if may_end and point.gradient is None and np.isfinite(point.value):
            self.iteration_done(is_last=True)
        return point

    def start(self, theta: Array, *, gradient: bool = True) -> Point:
        """Evaluate the start; raise `SearchStopped` if that fails."""
        point = self(theta, gradient=gradient)
        if not np.isfinite(point.value):
            raise SearchStopped(StopReason.NEVER_EVALUATED)
        self._before = point
        self._accepted.append(point)
        if self._max_iter == 0:
            raise SearchStopped(StopReason.MAX_ITER)
        return point

    def iteration_done(self, *, is_last: bool = False) -> None:
        """Record an accepted step; raise `SearchStopped` if it was the last."""
        assert self.best is not None
        assert self._before is not None
        self.n_iterations += 1
        gain, sure = self._before.value - self.best.value, self.best.sure_gain_over(self._before)
        self._before = self.best
        if gain > 0:
            self._accepted.append(self.best)
        if self._callback is not None and self._callback(self.n_iterations, self.best):
            raise SearchStopped(StopReason.CALLBACK)
        # A first step that knows no curvature may be short for want of it.
        informed = self.n_iterations > 1 or self.inverse_hessian is not None
        small = gain <= self.tolerance * self.best.standard_error
        if is_last or (informed and small and not sure):
            raise SearchStopped(StopReason.WITHIN_NOISE)
        if self.n_iterations >= self._max_iter:
            raise SearchStopped(StopReason.MAX_ITER)
        if not sure:
            self.stop_if_flat(self.best)

    def result(self, stop_reason: StopReason) -> Search:
        assert self.best is not None
        accepted = tuple(replace(point, model=None, deviations=None) for point in self._accepted)
        return Search(self.best, stop_reason, tuple(self.history), self.n_iterations, accepted)

    def stop_if_flat(self, point: Point) -> None:
        """Raise `SearchStopped` if the gain expected at a point is not worth an iteration."""
        if point.gradient is None:
            return
        free = free_gradient(point.theta, point.gradient, self._low, self._high)
        slope = float(np.abs(free).sum())
        if self.inverse_hessian is None:
            expected = _REACH_BLIND * slope
        else:
            newton = 0.5 * float(free @ self.inverse_hessian @ free)
            expected = max(newton, _REACH_INFORMED * slope)
        if expected <= self.tolerance * point.standard_error:
            raise SearchStopped(StopReason.WITHIN_NOISE)

    def _goes_on(self, point: Point) -> bool:
        """True if what is left to gain at a point, which has no gradient yet, may be worth more.

        Left is what the step was not to gain by the curvature, and as much as that was wrong by.
        """
        before, inverse_hessian = self._before, self.inverse_hessian
        assert self.best is not None
        assert before is not None
        assert before.gradient is not None
        assert inverse_hessian is not None
        if not point.value < self.best.value:
            return True
        free = free_gradient(before.theta, before.gradient, self._low, self._high)
        step = point.theta - before.theta
        promised = -float(free @ step) - 0.5 * float(step @ np.linalg.solve(inverse_hessian, step))
        wrong = abs(before.value - point.value - promised)
        left = 0.5 * float(free @ inverse_hessian @ free) - promised + wrong
        enough = min(self.tolerance * point.standard_error, point.error_of_gain(before))
        return left > enough


def free_gradient(theta: Array, gradient: Array, low: Array, high: Array) -> Array:
    """Gradient without the components that push against a bound."""
    blocked = ((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0))
    return np.where(blocked, 0.0, gradient)
