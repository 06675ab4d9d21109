"""Laplacian kernel, a function of the Manhattan distance Σ_k |x_k − x'_k|."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from looms.kernels._hyperparameters import Bounds
from looms.kernels._profiles import GAUSSIAN
from looms.kernels._samples import Samples
from looms.kernels._stationary import Isotropic


class Laplacian(Isotropic):
    """Laplacian kernel, k(x, x') = exp(−gamma Σ_k |x_k − x'_k|).

    Its functions have kinks along the axes only, so it suits tables whose features act one by
    one. For the distance ‖x − x'‖ in its place, use ``Matern(nu=0.5)``.

    Parameters
    ----------
    gamma : positive, as in scikit-learn's ``laplacian_kernel``. None means one over the mean of
        Σ_k |x_k − x'_k| between training samples.
    gamma_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Laplacian
    >>> Laplacian(gamma=0.5)(np.array([[0.0, 0.0], [1.0, 2.0]])).round(4)
    array([[1.    , 0.2231],
           [0.2231, 1.    ]])
    """

    profile = GAUSSIAN
    distance = "manhattan_distances"

    def __init__(self, gamma: float | None = None, gamma_bounds: Bounds = None) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    def mean_distance(self, samples: Samples) -> float:
        """2 Σ F (1 − F) (gap to the next value), over the sorted values of every column.

        F is the share of samples up to that value; the zeros of a column that are not stored count
        as one value.
        """
        X = sp.csc_array(samples.X)
        n, d = X.shape
        share = samples.weight / samples.weight.sum()
        stored, shares = np.diff(X.indptr), share[X.indices]
        columns, gaping = np.repeat(np.arange(d), stored), np.flatnonzero(stored < n)
        zeros = 1.0 - np.bincount(columns, weights=shares, minlength=d)[gaping]
        columns, values = np.append(columns, gaping), np.append(X.data, np.zeros(len(gaping)))
        order = np.lexsort((values, columns))
        columns, values, shares = columns[order], values[order], np.append(shares, zeros)[order]
        F = np.cumsum(shares) - columns  # those of every column add up to one
        gaps = np.where(np.diff(columns) == 0, np.diff(values), 0.0)
        return 2.0 * float(np.sum(F[:-1] * (1.0 - F[:-1]) * gaps))
