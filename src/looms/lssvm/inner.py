"""Residuals of rows by models that are without two units: the inner loop of nested selection.

Without the rows G the model has P⁽⁻ᴳ⁾ = P − P_:G (P_GG)⁻¹ P_G: and α⁽⁻ᴳ⁾ = α − P_:G e_G. If the
inner unit H of a row is left out as well, its residuals are

    e_H⁽ᴳᴴ⁾ = (P⁽⁻ᴳ⁾_HH)⁻¹ α⁽⁻ᴳ⁾_H.

These are the held-out residuals of the model trained without G, with the ridge of all rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from looms._typing import AnyArray, Array
from looms.lssvm._system import LeverageError
from looms.units import Units

_NUMBERS = 1 << 17  # in a block of residuals, as many as stay near the processor
_FEW = 16  # rows of a unit, up to which Python walks over them and NumPy over the units


class _Alike(NamedTuple):
    """F inner units, each padded to s rows, as columns of P; with few rows, row by row."""

    columns: slice
    size: int

    def of(self, values: AnyArray) -> AnyArray:
        """View of these columns of the last axis of ``values``, as (..., s, F)."""
        values = values[..., self.columns]
        if self.size > _FEW:
            return values.reshape(*values.shape[:-1], -1, self.size).swapaxes(-2, -1)
        return values.reshape(*values.shape[:-1], self.size, -1)


class InnerUnits:
    """Every inner unit held out by models that are without other rows.

    Parameters
    ----------
    inner : units of one repetition, in which every row is.
    P : (n, n) projection, both triangles valid.
    alpha : (n, t) dual coefficients.
    mu : regularization, for messages.
    """

    def __init__(self, inner: Units, P: Array, alpha: Array, mu: float) -> None:
        # Units of few sizes, filled up with rows that have nothing to do with the others.
        self._mu = mu
        members = list(inner)
        sizes = np.array([len(rows) for rows in members])
        level = np.ceil(np.log2(sizes)).astype(int)
        levels = [np.flatnonzero(level == one) for one in np.unique(level)]
        filled = [int(sizes[numbers].max()) for numbers in levels]
        n_columns = sum(s * len(numbers) for s, numbers in zip(filled, levels, strict=True))
        self._row = np.full(n_columns, -1)  # of each column, -1 for none
        self._place = np.empty((2, n_columns), dtype=np.intp)  # in its unit, and of that
        self._alike: list[_Alike] = []
        start = 0
        for s, numbers in zip(filled, levels, strict=True):
            alike = _Alike(slice(start, start + s * len(numbers)), s)
            rows = alike.of(self._row)
            alike.of(self._place)[...] = np.indices(rows.shape)
            for f, number in enumerate(numbers.tolist()):
                rows[: sizes[number], f] = members[number]
            self._alike.append(alike)
            start = alike.columns.stop
        self._column = np.argsort(self._row, kind="stable")[-int(sizes.sum()) :]  # of each row
        none = self._row < 0
        self._P = np.take(np.take(P.T, self._row, axis=0), self._row, axis=1)
        self._P[none], self._P[:, none] = 0.0, 0.0
        self._P[none, none] = P.diagonal().mean()
        self._alpha = np.where(none, 0.0, alpha.T[:, self._row])

    def residuals(self, rows: AnyArray) -> Array:
        """Held-out residuals of all rows by models that are without some.

        Parameters
        ----------
        rows : (k, r) rows that each model is without; never all.

        Returns
        -------
        residuals : (k, n, t); a row that the model has seen gets the residual of the model
            that is without its inner unit as well; other rows get that of the model itself.

        Raises
        ------
        LeverageError
            If the model without some of these rows is singular in double precision.

        Notes
        -----
        For inner units of s rows, a model takes about n (2 r² + r s + s²) flops. Units are
        padded to powers of two at most: 4n² numbers.
        """
        widest = max(rows.shape[1], *(alike.size for alike in self._alike))
        step = max(1, _NUMBERS // (len(self._row) * widest))
        G = self._column[rows]
        some = (G[start : start + step] for start in range(0, len(G), step))
        return np.concatenate([self._without(each) for each in some])

    def _without(self, G: AnyArray) -> Array:
        """(b, n, t) residuals of the b models that are without the columns G, (b, r)."""
        models = np.arange(len(G))[:, None]
        R = _factors(self._P[G[:, :, None], G[:, None, :]])
        self._check(_pivots(R), G)
        S = np.linalg.inv(R)  # (P_GG)⁻¹ = SᵀS
        W, z = S @ self._P[G], S @ self._alpha.T[G]
        e = self._alpha - np.einsum("brt,brn->btn", z, W)
        for alike in self._alike:
            V, x, columns = alike.of(W), alike.of(e), alike.of(np.arange(len(self._P)))
            blocks = self._P[columns[:, None], columns]  # (s, s, F)
            b, r = np.nonzero((alike.columns.start <= G) & (alike.columns.stop > G))
            i, f = self._place[:, G[b, r]]
            if len(columns) > _FEW:
                V = V.transpose(0, 3, 2, 1)
                inner = blocks.transpose(2, 0, 1) - V @ V.swapaxes(2, 3)
                inner[b, f, i], inner[b, f, :, i] = 0.0, 0.0
                inner[b, f, i, i] = blocks[i, i, f]
                self._check(_pivots(_factors(inner)), columns.T)
                x[...] = np.linalg.solve(inner, x.transpose(0, 3, 2, 1)).transpose(0, 3, 2, 1)
            else:
                inner = np.empty((*blocks.shape[:2], len(G), blocks.shape[2]))
                for k in range(len(columns)):
                    square = np.einsum("brf,brjf->jbf", V[:, :, k], V[:, :, : k + 1])
                    np.subtract(blocks[k, : k + 1, None], square, out=inner[k, : k + 1])
                inner[i, :, b, f], inner[:, i, b, f] = 0.0, 0.0
                inner[i, i, b, f] = blocks[i, i, f]
                with np.errstate(all="ignore"):  # pivots are checked
                    _eliminate(inner, x.transpose(1, 2, 0, 3))
                self._check(np.diagonal(inner), columns.T)
        e[models, :, G] = S.swapaxes(1, 2) @ z
        return np.asarray(e[:, :, self._column].transpose(0, 2, 1))

    def _check(self, pivots: Array, columns: AnyArray) -> None:
        """LeverageError if only rounding is left of some diagonal entries of P."""
        least = len(self._column) * np.finfo(np.float64).eps * self._P.diagonal()[columns]
        safe = pivots > least
        if not safe.all():
            rows = np.broadcast_to(self._row[columns], safe.shape)
            raise LeverageError(self._mu, int(rows.flat[np.argmin(safe)]))


def _eliminate(A: Array, x: Array) -> None:
    """x ← A⁻¹ x for blocks A, (s, s, ...), by A = L D Lᵀ in the memory of their lower triangles.

    ``x`` is (t, s, ...).
    """
    s = len(A)
    for j in range(s):
        column = A[j + 1 :, j].copy()
        A[j + 1 :, j] /= A[j, j]
        for i in range(j + 1, s):
            A[i, j + 1 : i + 1] -= A[i, j] * column[: i - j]
        x[:, j + 1 :] -= x[:, j, None] * A[j + 1 :, j]
    for j in reversed(range(s)):
        x[:, j] /= A[j, j]
        x[:, j] -= (A[j + 1 :, j] * x[:, j + 1 :]).sum(axis=1)


def _factors(blocks: Array) -> Array:
    """Cholesky factors of the blocks; zero if one of them is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(blocks), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.zeros(blocks.shape)


def _pivots(R: Array) -> Array:
    return np.asarray(np.diagonal(R, axis1=-2, axis2=-1) ** 2)
