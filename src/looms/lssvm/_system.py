"""Linear system of the least-squares SVM: ridge, argument checks and errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms._advice import setting
from looms._kernel_matrix import check_symmetric
from looms._typing import Array
from looms._words import row_name


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """K + diag(λ) is not numerically positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.lssvm import NotPositiveDefiniteError, solve
    >>> try:
    ...     solve(-np.eye(3), np.array([1.0, 2.0, 3.0]), mu=0.1)
    ... except NotPositiveDefiniteError:
    ...     print("a larger mu makes K + diag(λ) positive definite")
    a larger mu makes K + diag(λ) positive definite
    """

    def __init__(self, mu: float, *details: float) -> None:
        super().__init__(mu, *details)
        self.mu = mu

    def __str__(self) -> str:
        return (
            f"The kernel matrix plus ridge is not positive definite at mu = {self.mu:.3g}. Use a "
            "larger mu; if that does not help, the kernel matrix itself is not positive "
            "semi-definite."
        )


class RangeError(NotPositiveDefiniteError):
    """Error if the diagonal of K + diag(λ) is out of the range in which it can be factorized."""

    def __init__(self, mu: float, value: float) -> None:
        super().__init__(mu, value)
        self.value = value

    def __str__(self) -> str:
        return (
            f"The kernel matrix plus ridge has {self.value:.3g} on its diagonal at "
            f"mu = {self.mu:.3g}, and squares of such a value, or of its inverse, overflow. Scale "
            f"the features, or use a {'smaller' if self.value > 1 else 'larger'} mu."
        )


class LeverageError(NotPositiveDefiniteError):
    """K + diag(λ) is positive definite, but not the system without some sample."""

    def __init__(self, mu: float, sample: int) -> None:
        super().__init__(mu, sample)
        self.sample = sample

    def __str__(self) -> str:
        return (
            f"The weight or leverage of sample {self.sample} is so large at mu = {self.mu:.3g} "
            "that the system without it is singular in double precision, so it has no "
            "leave-one-out output. Use weights that differ less, or a larger mu."
        )


def ridge(mu: float, sample_weight: Array) -> Array:
    """Ridge λ_i = n mu / ζ_i, (n,), added to the diagonal of K [C06 eq. 17]."""
    return len(sample_weight) * mu / sample_weight


def targets_as_columns(y: Array) -> Array:
    """View of (n,) or (n, t) targets as (n, t)."""
    return y.reshape(len(y), -1)


def checked_system(
    K: npt.ArrayLike, y: npt.ArrayLike, mu: float, sample_weight: npt.ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Kernel matrix, targets and weights as checked arrays.

    The factorization checks that K is positive semi-definite.
    """
    K = checked_square(K)
    check_finite("K", K)
    y = checked_targets(y, len(K))
    zeta = checked_weights(sample_weight, len(K))
    check_mu(mu)
    check_symmetric(K)
    return K, y, zeta


def checked_square(K: npt.ArrayLike) -> Array:
    """Square float64 matrix of at least two samples."""
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square matrix, but has shape {K.shape}.")
    if len(K) == 1:
        raise ValueError("Leave-one-out needs two samples or more, but there is one.")
    return K


def checked_targets(y: npt.ArrayLike, n: int) -> Array:
    """Finite targets with a row for each of the ``n`` samples of K."""
    y = np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2) or y.shape[0] != n or y.size == 0:
        raise ValueError(
            "y must have shape (n_samples,) or (n_samples, n_targets), one row per row of K, "
            f"but y has shape {y.shape} and K has shape {(n, n)}."
        )
    check_finite("y", y)
    return y


def checked_weights(
    weight: npt.ArrayLike | None, n: int, name: str = "sample_weight", *, zeros: bool = False
) -> Array:
    """Finite weights of ``n`` samples, ones by default; positive, or zero if ``zeros``."""
    if weight is None:
        return np.ones(n)
    try:
        weights = np.asarray(weight, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} has numbers out of range, above 1.8e308.") from None
    except (TypeError, ValueError):
        values = np.asarray(weight, dtype=object).ravel()
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise ValueError(f"{name} must be numbers, got {' and '.join(kinds)}.") from None
    if weights.shape != (n,):
        raise ValueError(
            f"{name} must have one entry per row of y, but {name} has shape {weights.shape} and y "
            f"has {n} rows."
        )
    wrong = ~np.isfinite(weights) | (weights < 0) | ((weights == 0) & (not zeros))
    if wrong.any():
        row, sign = int(wrong.argmax()), "zero or positive" if zeros else "positive"
        raise ValueError(
            f"{setting(name)} must be finite and {sign}, but {row_name(weight, row)} has "
            f"{weights[row]:g}."
        )
    return weights


def check_mu(mu: float) -> None:
    if not (np.isfinite(mu) and mu > 0):
        raise ValueError(f"mu must be positive and finite, but is {mu}.")


def check_finite(name: str, values: Array) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, but contains NaN or infinity.")
