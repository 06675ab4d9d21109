"""Local scale of the noise under the leave-one-out models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from looms._classes import rounding
from looms._typing import AnyArray, Array

_AVERAGE = 0.1  # of a neighbor
_NUMBERS = 2**17  # in an array of a block of rows
_TINY = float(np.finfo(np.float64).tiny)


class LocalScale:
    r"""Scale of the noise around a point under each leave-one-out model, a mean over neighbors.

    s_ti = (Σ_j |R_ji| + c mean_j |R_ji|) / (k + c),    c = 0.1

    The sum is over the k samples j outside of unit i nearest to point t, with k = ⌈2 √n⌉ but at
    most n − 1 − s for units of up to s samples. Samples that are as far as the k-th, up to
    rounding, share the places that are left. A unit is a sample, or a group of them.
    The second term is a fraction of a neighbor with average residual, so no scale is zero
    among samples that the models fit exactly. Fewer neighbors would follow the noise more
    closely, but make all intervals wider, as their scale is noisy itself. R_ji is the
    held-out residual of sample j under model i, so no sample influences the scale of its own
    model. Hence the guarantee of the jackknife+ holds for the scaled intervals; with
    scales fitted to the ordinary leave-one-out residuals it would not.

    The distance is that of the kernel, K_tt + K_jj − 2 K_tj.

    Parameters
    ----------
    pair_residuals : (n, n_units) R; those of unit i are without a part in scale i.
    K : (n, n) kernel matrix of the samples.
    number : (n,) unit of each sample; by default each is its own.

    Attributes
    ----------
    loo : (n,) scale at each sample under the model trained without its unit.

    Raises
    ------
    ValueError
        If there are fewer than three units.

    Notes
    -----
    O(n² log n) at most. Keeps one array shaped like R, and works in blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.lssvm import solve
    >>> from looms.units import Units
    >>> x = np.linspace(-1.0, 1.0, 40)
    >>> y = x + (0.01 + (x > 0)) * np.sin(40.0 * x)  # hardly any noise on the left
    >>> K = np.outer(x, x)
    >>> model, rows = solve(K, y, mu=0.1), Units.rows(40)
    >>> F = np.vstack([F for _, F in model.everywhere(rows, inner=rows)])
    >>> scale = LocalScale(y[:, None] - F[:, :, 0].T, K)
    >>> left, right = scale.at(np.outer([-0.6, 0.6], x)).mean(axis=1)
    >>> bool(left < 0.5 * right)
    True
    """

    def __init__(self, pair_residuals: Array, K: Array, number: AnyArray | None = None) -> None:
        n, n_units = pair_residuals.shape
        if n_units < 3:
            raise ValueError(
                f"Locally scaled intervals need three samples or groups, or more, got {n_units}."
            )
        self._number = np.arange(n) if number is None else number
        sizes = np.bincount(self._number)
        self._most = int(sizes.max())
        self._k = max(1, min(int(np.ceil(2.0 * np.sqrt(n))), n - 1 - self._most))
        self._diagonal = K.diagonal().copy()
        self._membership = sparse.csr_array(
            (np.ones(n, dtype=np.intp), (np.arange(n), self._number)), shape=(n, n_units)
        )
        self._residuals = np.abs(pair_residuals)
        self._residuals[np.arange(n), self._number] = 0.0
        self._means = self._residuals.sum(axis=0) / (n - sizes)
        total = np.empty(n)
        for rows in self._blocks(n):
            own = self._number[rows, None]
            order, level = self._levels(K[rows], self._k, own == self._number)
            last = level[:, [self._k - 1]]
            nearer, tied = level < last, level == last
            left = self._k - nearer.sum(axis=1, keepdims=True)
            part = nearer + tied * (left / tied.sum(axis=1, keepdims=True))
            total[rows] = (part * self._residuals[order, own]).sum(axis=1)
        self.loo = self._scale(total, self._number)

    def at(self, K_new: Array) -> Array:
        """Scales at m new points under every model, (m, n_units).

        Parameters
        ----------
        K_new : (m, n) kernel values between new points and samples.

        Notes
        -----
        O(m n (k + t + s)) for t samples as far as the k-th and units of up to s samples, in blocks
        of rows.
        """
        total = np.empty((len(K_new), len(self._means)))
        for rows in self._blocks(len(K_new)):
            total[rows] = self._totals(K_new[rows])
        return self._scale(total)

    def _blocks(self, m: int) -> Iterator[slice]:
        step = max(1, _NUMBERS // len(self._number))
        return (slice(start, start + step) for start in range(0, m, step))

    def _totals(self, K: Array) -> Array:
        """Sums over the k samples nearest to each point, for every model, (m, n_units)."""
        order, level = self._levels(K, self._k + self._most)
        level -= level[:, [self._k - 1]]
        total, places = np.zeros((2, len(K), len(self._means)))
        places += self._k
        some, following = level < 0, 0
        # A model that has not seen some of the k takes as many of the next in their place.
        while True:
            ends = np.append(0, some.sum(axis=1).cumsum())
            near = sparse.csr_array((np.ones(ends[-1]), order[some], ends), shape=K.shape)
            n_seen = some.sum(axis=1, keepdims=True) - (near @ self._membership).toarray()
            taken = np.minimum(places, n_seen)
            total += taken / np.maximum(n_seen, 1.0) * (near @ self._residuals)
            places -= taken
            if not places.any():
                return total
            some, following = level == following, following + 1

    def _levels(
        self, K: Array, k: int, apart: AnyArray | bool = False
    ) -> tuple[AnyArray, AnyArray]:
        """Samples nearest to each point, k and those as far as the k-th, and levels of distance.

        Both are (m, k or more), the nearest first; those ``apart`` are the last. Levels that go
        beyond the k-th may be without some of their samples.
        """
        # K_tt is the same for all samples j, so that it does not change which are near.
        distance, count = np.where(apart, np.inf, self._diagonal - 2.0 * K), k
        size = np.abs(self._diagonal).max() + np.maximum(K.max(axis=1), -K.min(axis=1))
        width = rounding(len(self._diagonal)) * size[:, None]
        while True:
            count = min(2 * count, len(self._diagonal))
            order = np.argpartition(distance, count - 1, axis=1)[:, :count]
            near = np.take_along_axis(distance, order, axis=1)
            ranks = np.argsort(near, axis=1)
            near = np.take_along_axis(near, ranks, axis=1)
            farther = near[:, 1:] > near[:, :-1] + width
            level = np.pad(np.cumsum(farther, axis=1), ((0, 0), (1, 0)))
            sizes = (level <= level[:, [k - 1]]).sum(axis=1)
            if count == len(self._diagonal) or sizes.max() < count:
                order = np.take_along_axis(order, ranks, axis=1)
                return order[:, : sizes.max()], level[:, : sizes.max()]

    def _scale(self, total: Array, units: Any = slice(None)) -> Array:
        mean = self._means[units]
        return np.asarray(np.maximum((total + _AVERAGE * mean) / (self._k + _AVERAGE), _TINY))
