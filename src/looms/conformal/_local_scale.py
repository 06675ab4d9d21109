"""Local scale of the noise under the leave-one-out models."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from looms._typing import AnyArray, Array

_AVERAGE = 0.1  # of a neighbor
_TINY = float(np.finfo(np.float64).tiny)


class LocalScale:
    r"""Scale of the noise around a point under each leave-one-out model, a mean over neighbors.

    s_ti = (Σ_j |R_ji| + c mean_j |R_ji|) / (k + c),    c = 0.1

    The sum is over the k samples j ≠ i nearest to point t, with k = ⌈2 √n⌉ but at most n − 2.
    The second term is a fraction of a neighbor with average residual, so no scale is zero
    among samples that the models fit exactly. Fewer neighbors would follow the noise more
    closely, but make all intervals wider, as their scale is noisy itself. R_ji is the
    leave-one-out residual of sample j under model i, so sample i does not influence the scale
    of its own model. Hence the guarantee of the jackknife+ holds for the scaled intervals; with
    scales fitted to the ordinary leave-one-out residuals it would not.

    The distance is that of the kernel, K_tt + K_jj − 2 K_tj.

    Parameters
    ----------
    pair_residuals : (n, n) R; R_ii is the leave-one-out residual.
    K : (n, n) kernel matrix of the samples.

    Attributes
    ----------
    loo : (n,) scale at each sample under the model trained without it.

    Raises
    ------
    ValueError
        If there are fewer than three samples.

    Notes
    -----
    O(n² log n); keeps one n×n array.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.lssvm import solve
    >>> from looms.units import Units
    >>> x = np.linspace(-1.0, 1.0, 40)
    >>> y = x + (0.01 + (x > 0)) * np.sin(40.0 * x)  # hardly any noise on the left
    >>> K = np.outer(x, x)
    >>> machine, rows = solve(K, y, mu=0.1), Units.rows(40)
    >>> F = np.vstack([F for _, F in machine.everywhere(rows, inner=rows)])
    >>> scale = LocalScale(y[:, None] - F[:, :, 0].T, K)
    >>> left, right = scale.at(np.outer([-0.6, 0.6], x)).mean(axis=1)
    >>> bool(left < 0.5 * right)
    True
    """

    def __init__(self, pair_residuals: Array, K: Array) -> None:
        n = len(K)
        if n < 3:
            raise ValueError(f"Locally scaled intervals need three samples or more, got {n}.")
        self._k = min(int(np.ceil(2.0 * np.sqrt(n))), n - 2)
        self._diagonal = K.diagonal().copy()
        self._residuals = np.abs(pair_residuals)
        np.fill_diagonal(self._residuals, 0.0)
        self._means = self._residuals.sum(axis=0) / (n - 1)
        distance = self._distance(K)
        np.fill_diagonal(distance, np.inf)
        others = _smallest(distance, self._k)
        self.loo = self._scale(self._residuals[others, np.arange(n)[:, None]].sum(axis=1))

    def at(self, K_new: Array) -> Array:
        """Scales at m new points under every model, (m, n).

        Parameters
        ----------
        K_new : (m, n) kernel values between new points and samples.

        Notes
        -----
        O(m n (k + log n)).
        """
        m, n = K_new.shape
        nearest = _smallest(self._distance(K_new), self._k + 1)
        near, reserve = nearest[:, :-1].ravel(), np.repeat(nearest[:, -1], self._k)
        rows = np.repeat(np.arange(m), self._k)
        W = sparse.csr_array((np.ones(m * self._k), (rows, near)), shape=(m, n))
        total = np.asarray(W @ self._residuals)
        # A model that has not seen one of the k takes the next in its place.
        total[rows, near] += self._residuals[reserve, near]
        return self._scale(total)

    def _distance(self, K: Array) -> Array:
        # K_tt is the same for all samples j, so that it does not change which are near.
        return np.asarray(self._diagonal - 2.0 * K)

    def _scale(self, total: Array) -> Array:
        return np.asarray(
            np.maximum((total + _AVERAGE * self._means) / (self._k + _AVERAGE), _TINY)
        )


def _smallest(values: Array, k: int) -> AnyArray:
    """Columns of the k smallest values of each row, smallest first; ties go to the first."""
    return np.argsort(values, axis=1, kind="stable")[:, :k]
