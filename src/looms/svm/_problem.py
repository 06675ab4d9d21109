"""Dual problem of a C-SVC in the coordinates β_i = y_i α_i.

With β_i = y_i α_i the dual is

    min ½ βᵀKβ − yᵀβ   subject to   Σβ = 0,   l ≤ β ≤ u,

[l_i, u_i] = [0, C_i] for y_i = 1 and [−C_i, 0] for y_i = −1, and the outputs are F = Kβ + b.
At the solution F_i ≥ y_i for β_i = l_i, F_i ≤ y_i for β_i = u_i, and F_i = y_i in between.

The squared hinge, Σ C max(0, 1 − y f)² in place of Σ C max(0, 1 − y f), is the same problem with
the kernel matrix K + diag(1/2C) and no upper bound on α; a bound that no α reaches takes its place.
F is then f + β/2C, which is f for a sample left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from looms._advice import setting
from looms._kernel_matrix import check_symmetric, largest_entry, negative_eigenvalue
from looms._typing import AnyArray, Array

EPS = float(np.finfo(np.float64).eps)
#: Fraction of the largest C below which a distance from a bound is rounding.
NEGLIGIBLE = 1e-12
#: Violation of a KKT condition, in units of the outputs, that a solution may have.
KKT_TOLERANCE = 1e-9
#: The same if rounding allows no smaller one; beyond it there is no solution.
_LARGEST_RESIDUAL = 1e-5
#: C times the largest |K| above which its products overflow.
_LARGEST_BOUND = 1e100
#: Smallest number whose inverse and products with rounding stay in range.
_LEAST = 1e-280

#: Loss of a sample with margin y f: C max(0, 1 − y f), or C max(0, 1 − y f)².
Loss: TypeAlias = Literal["hinge", "squared_hinge"]


class IndefiniteKernelError(ValueError):
    """Error for a kernel matrix that is not positive semi-definite.

    Attributes
    ----------
    smallest : its smallest eigenvalue among coefficients with sum zero.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.svm import IndefiniteKernelError
    >>> from looms.svm.dual import solve
    >>> K = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> try:
    ...     solve(K, np.array([-1, 1]), 1.0)
    ... except IndefiniteKernelError as error:
    ...     print(error.smallest < 0)
    True
    """

    def __init__(self, smallest: float) -> None:
        super().__init__(smallest)
        self.smallest = smallest

    def __str__(self) -> str:
        return (
            "The kernel matrix is not positive semi-definite, so the model has no unique "
            f"solution: among coefficients with sum zero its smallest eigenvalue is "
            f"{self.smallest:.3g}. Clip or flip its negative eigenvalues, or use another kernel."
        )


class NotConvergedError(ArithmeticError):
    """Error for a support vector machine whose KKT conditions could not be met.

    Attributes
    ----------
    kkt_residual : largest violation, in units of the outputs; inf without a solution.
    duality_gap : primal minus dual objective where the solver stopped.

    Examples
    --------
    >>> from looms.svm import NotConvergedError
    >>> error = NotConvergedError(2e-5, 0.1)
    >>> error.kkt_residual, error.duality_gap
    (2e-05, 0.1)
    """

    def __init__(self, kkt_residual: float, duality_gap: float, which: str = "") -> None:
        super().__init__(kkt_residual, duality_gap, which)
        self.kkt_residual = kkt_residual
        self.duality_gap = duality_gap
        self.which = which

    def __str__(self) -> str:
        how = (
            f"a KKT condition is violated by {self.kkt_residual:.2g} and the duality gap is "
            f"{self.duality_gap:.2g}"
            if np.isfinite(self.kkt_residual)
            else "it is beyond the range of numbers"
        )
        return (
            f"The support vector machine{self.which} did not converge: {how}. Kernel values times "
            "C are too large for double precision: scale the features or lower C."
        )


class RoundingWarning(UserWarning):
    """Warning that leave-one-out outputs of a support vector machine are less exact than 1e-9.

    Attributes
    ----------
    n_samples : number of samples with such an output.
    exactness : largest violation of a KKT condition in the models without one of them, or the
        rounding that may hide it, in units of the outputs.

    Examples
    --------
    >>> import warnings
    >>> from looms.svm import RoundingWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RoundingWarning)  # inexact outputs are then errors
    """

    def __init__(self, n_samples: int, of: int, exactness: float) -> None:
        super().__init__(n_samples, of, exactness)
        self.n_samples = n_samples
        self.of = of
        self.exactness = exactness

    def __str__(self) -> str:
        return (
            f"The KKT conditions of the models without one sample hold to {KKT_TOLERANCE:g}, but "
            f"for {self.n_samples} of {self.of} only to {self.exactness:.2g}: kernel values times "
            "C are so large that rounding allows no better. Scale the features or lower C."
        )


@dataclass(frozen=True, eq=False)
class Problem:
    """Dual problem with its kernel scaled to at most one.

    Attributes
    ----------
    K : (n, n) kernel matrix, shifted by a constant, with the ridge on its diagonal, divided by
        ``scale``. As Σβ = 0, a constant changes only the intercept; subtracting it, where that
        is exact, removes most of the rounding of a wide kernel.
    y : (n,) labels, ±1.
    lower, upper : (n,) bounds of β, times ``scale``; both zero for a sample of weight zero.
    ridge : (n,) addition to the diagonal for the squared hinge, over ``scale``; zeros for the
        hinge.
    scale : divisor of K.
    """

    K: Array
    y: Array
    lower: Array
    upper: Array
    ridge: Array
    scale: float

    @property
    def negligible(self) -> float:
        """Distance from a bound that counts as rounding."""
        return NEGLIGIBLE * float((self.upper - self.lower).max())

    def can_rise(self, beta: Array) -> AnyArray:
        """True where β is below its upper bound by more than rounding."""
        return self.upper - beta > self.negligible

    def can_fall(self, beta: Array) -> AnyArray:
        """True where β is above its lower bound by more than rounding."""
        return beta - self.lower > self.negligible

    def residual_limit(self, beta: Array) -> Array:
        """Largest KKT residual that a solution may have, for rows of coefficients.

        It is `KKT_TOLERANCE`, or the resolution of float64 if that is larger, up to 1e-5.
        """
        rounding = 4 * EPS * np.abs(beta).sum(axis=-1)
        return np.asarray(np.clip(rounding, KKT_TOLERANCE, _LARGEST_RESIDUAL))

    def exactness(self, residual: Array | float, beta: Array) -> Array:
        """KKT residuals of rows of coefficients, or the rounding of the outputs if larger."""
        return np.asarray(np.maximum(residual, EPS * np.abs(beta).sum(axis=-1)))

    def duality_gap(self, beta: Array, outputs: Array) -> float:
        """Primal minus dual objective, Σ C [1 − yF]₊ − α (1 − yF), unscaled."""
        bound, alpha = self.upper - self.lower, np.abs(beta)
        short = 1.0 - self.y * outputs
        return float(np.sum(bound * np.maximum(short, 0.0) - alpha * short)) / self.scale

    def without(self, left_out: AnyArray) -> Problem:
        """Problem with the bounds of some samples set to zero."""
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[left_out] = upper[left_out] = 0.0
        return replace(self, lower=lower, upper=upper)


def problem_of(K: Array, y: Array, C: Array, loss: Loss = "hinge") -> Problem:
    """Scaled problem from checked arrays; ``K`` is not copied if it stays the same.

    Raises NotConvergedError if the bounds are too large for double precision.
    """
    ridge, bound, part = np.zeros(len(y)), C, C > 0
    if loss == "squared_hinge":
        # At the solution Σα ≥ Σα²/2C; so Σα ≤ 2ΣC, and α² < 2C Σα for each of several samples.
        ridge[part], bound = 0.5 / C[part], 2.0 * np.sqrt(C * C.sum())
    smallest, largest = float(K.min()), float(K.max())
    middle = 0.5 * (smallest + largest)
    # Sterbenz: the difference of numbers within a factor of two is exact.
    shift = middle if smallest > 0 and largest <= 1.5 * smallest else 0.0
    if shift != 0.0:
        K = K - shift
    if ridge.any():
        K = K + np.diag(ridge)
    scale = max(float(K.max()), -float(K.min())) or 1.0
    if scale != 1.0:
        K = K / scale
    with np.errstate(over="ignore"):
        bound = bound * scale
    if not bound.max() <= _LARGEST_BOUND:
        raise NotConvergedError(np.inf, np.inf)
    lower, upper = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    return Problem(K, y, lower, upper, ridge / scale, scale)


def checked(
    K: npt.ArrayLike, y: npt.ArrayLike, C: npt.ArrayLike, loss: str
) -> tuple[Array, Array, Array]:
    """Arguments as arrays with consistent shapes and valid values."""
    check_loss(loss)
    K, y = np.asarray(K, dtype=np.float64), np.array(y, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0:
        raise ValueError(f"K must be a square matrix with entries, but has shape {K.shape}.")
    if y.shape != K.shape[:1]:
        raise ValueError(
            f"y must have one label per row of K, but y has shape {y.shape} and K has shape "
            f"{K.shape}."
        )
    largest = largest_entry(K)
    if not np.isfinite(largest):
        raise ValueError("K must be finite, but has NaN or infinite entries.")
    if not (largest == 0 or _LEAST <= largest <= 1 / _LEAST):
        raise ValueError(
            f"The largest value of K must be zero or between {_LEAST:g} and {1 / _LEAST:g}, but "
            f"is {largest:.3g}: multiply K by a number, and divide C by it."
        )
    check_symmetric(K)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and 1 only.")
    bounds = np.array(C, dtype=np.float64)
    if bounds.ndim == 0:
        bounds = np.full(len(y), bounds)
    if bounds.shape != y.shape:
        raise ValueError(
            f"C must be a number or one for each of the {len(y)} samples, but has shape "
            f"{bounds.shape}."
        )
    if not (np.isfinite(bounds).all() and (bounds >= 0).all()):
        raise ValueError("C must be finite and not negative.")
    if len(np.unique(y[bounds > 0])) < 2:
        raise ValueError("Both classes need a sample with positive C, but at most one has it.")
    positive = bounds[bounds > 0]
    if (positive < _LEAST / min(1.0, largest or 1.0)).any():
        raise ValueError(
            f"C must be zero or, itself and times the largest value of K, at least {_LEAST:g}, "
            f"but its smallest positive value is {positive.min():.3g}."
        )
    return K, y, bounds


def check_loss(loss: str) -> None:
    """ValueError for an unknown loss."""
    if loss not in get_args(Loss):
        raise ValueError(f"{setting('loss')} must be 'hinge' or 'squared_hinge', got {loss!r}.")


def check_convex(problem: Problem) -> None:
    """Raise IndefiniteKernelError unless βᵀKβ ≥ 0, up to rounding, for all β with sum zero.

    Only then is a point that meets the KKT conditions a solution: neither the conditions nor the
    duality gap can tell a minimum from a saddle. Costs one Cholesky factorization.
    """
    part = np.flatnonzero(problem.lower < problem.upper)
    centered = problem.K[np.ix_(part, part)]
    means = centered.mean(axis=0)
    centered += means.mean() - means - means[:, None]
    smallest = negative_eigenvalue(centered, 1.0)
    if smallest is not None:
        raise IndefiniteKernelError(smallest * problem.scale)


def intercepts(errors: Array, can_rise: AnyArray, can_fall: AnyArray) -> Array:
    """Intercepts for rows of ``errors`` y − Kβ.

    Samples strictly within their bounds determine the intercept. If there are none, it is the
    middle of the interval of possible values, as in LIBSVM, or its finite end if one end is
    infinite: then all coefficients are zero, and all outputs are the label of the only class.
    """
    free = can_rise & can_fall
    n_free = free.sum(axis=-1)
    low = np.where(can_rise, errors, -np.inf).max(axis=-1)
    high = np.where(can_fall, errors, np.inf).min(axis=-1)
    low, high = np.where(np.isinf(low), high, low), np.where(np.isinf(high), low, high)
    middle = np.where(np.isinf(low), 0.0, 0.5 * (low + high))
    fixed = np.where(free, errors, 0.0).sum(axis=-1) / np.maximum(n_free, 1)
    return np.asarray(np.where(n_free > 0, fixed, middle))


def violations(errors: Array, can_rise: AnyArray, can_fall: AnyArray) -> Array:
    """Largest violation of a KKT condition in each row of ``errors`` y − F."""
    too_low = np.where(can_rise, errors, 0.0).max(axis=-1)
    too_high = np.where(can_fall, errors, 0.0).min(axis=-1)
    return np.asarray(np.maximum(np.maximum(too_low, -too_high), 0.0))
