"""Least-squares SVM of a kernel matrix, with its models without any rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms.lssvm._system import checked_system, targets_as_columns
from looms.lssvm.dense import Dense


def solve(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: float,
    *,
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
) -> Dense:
    """Least-squares SVM and all its held-out outputs from one factorization.

    It minimizes ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (y_i − w·φ(x_i) − b)² [C06 II-A to II-F]. With
    M = K + diag(λ), λ_i = n mu / ζ_i,

        M η = 1,  M ν = y,  b = Σν / Ση,  α = ν − η b,  r_i = α_i / p_i.

    λ stays the same while rows are held out.

    Parameters
    ----------
    K : (n, n) symmetric kernel matrix.
    y : (n,) or (n, t) targets, ±1 for classes. One factorization serves all.
    mu : regularization, positive, in units of ``K`` over n.
    sample_weight : (n,) ζ, positive; ones by default.
    fit_intercept : False for kernel ridge regression, η = 0 and b = 0.

    Returns
    -------
    model : its ``loo`` has the leave-one-out outputs, and ``outputs(units)`` those without any
        `looms.units.Units`, such as groups or folds.

    Raises
    ------
    ValueError
        If shapes do not agree, μ or weights are not positive, or values are not finite.
    NotPositiveDefiniteError
        If M is not numerically positive definite, or no longer is once a row of overwhelming
        weight is left out.

    Notes
    -----
    2n³/3 flops, one n×n buffer; units add Σ |G|³ / 3 and the smaller of n³/3 and 2 n Σ |G|².
    If μ is much smaller than the largest eigenvalue of K / n, digits are lost, about as many as
    the ratio of the two has.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.units import Units
    >>> y = np.array([1.0, 2.0, 6.0])         # K = 0 predicts the mean of the others
    >>> model = solve(np.zeros((3, 3)), y, mu=1.0)
    >>> model.loo.outputs.round(12)
    array([4. , 3.5, 1.5])
    >>> model.outputs(Units.of_numbers([0, 0, 1])).ravel()
    array([6. , 6. , 1.5])
    """
    K, y, zeta = checked_system(K, y, mu, sample_weight)
    buffer = np.array(K, order="F")
    model = Dense(buffer, targets_as_columns(y), mu, zeta, fit_intercept=fit_intercept)
    model.shape = y.shape
    return model
