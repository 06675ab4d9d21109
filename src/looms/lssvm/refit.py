"""Held-out outputs of the least-squares SVM by refits: the oracle for every other route."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms.folds import left_out_with
from looms.held_out import HeldOut
from looms.lssvm._system import checked_system, ridge, targets_as_columns


def refit_loo(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: float,
    *,
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
    folds: npt.ArrayLike | None = None,
) -> HeldOut:
    """Held-out outputs by solving the system anew without each sample, or fold of them.

    Arguments as for `looms.lssvm.solve`, but ``folds`` of one repetition; ``K`` is read as a
    whole. λ_i = n mu / ζ_i keeps the full n. O(n⁴): for checking, not for use.

    Raises
    ------
    ValueError
        For shapes that do not agree, an asymmetric kernel matrix, weights or μ that are
        not positive, values that are not finite, fewer than two samples.
    numpy.linalg.LinAlgError
        If a system without one sample is singular.

    Examples
    --------
    >>> import numpy as np
    >>> refit_loo(np.zeros((3, 3)), [1.0, 2.0, 6.0], mu=1.0).outputs
    array([4. , 3.5, 1.5])
    """
    K, y, zeta = checked_system(K, y, mu, sample_weight)
    n = len(y)
    Y = targets_as_columns(y)
    C = np.zeros((n + 1, n + 1))
    C[:n, :n] = K + np.diag(ridge(mu, zeta))
    C[n, :n] = C[:n, n] = 1.0
    size = n + 1 if fit_intercept else n
    right_hand_side = np.vstack([Y, np.zeros((1, Y.shape[1]))])[:size]
    outputs = np.full_like(Y, np.nan)
    labels = np.arange(n) if folds is None else np.asarray(folds)
    for label in np.unique(labels[labels >= 0]):
        out = np.flatnonzero(left_out_with(labels) == label)
        others = np.delete(np.arange(size), out)
        parameters = np.linalg.solve(C[np.ix_(others, others)], right_hand_side[others])
        # Row i of C holds k(x_i, x_j) and the 1 that multiplies the intercept.
        tested = np.flatnonzero(labels == label)
        outputs[tested] = C[np.ix_(tested, others)] @ parameters
    return HeldOut(y, outputs.reshape(y.shape), zeta)
