"""Residuals of rows with several folds held out: the inner loop of nested cross-validation.

Without the fold G the machine has P⁽⁻ᴳ⁾ = P − P_:G (P_GG)⁻¹ P_G: and α⁽⁻ᴳ⁾ = α − P_:G e_G. If the
fold H of its rows is left out as well, its residuals are

    e_H⁽ᴳᴴ⁾ = (P⁽⁻ᴳ⁾_HH)⁻¹ α⁽⁻ᴳ⁾_H.

These are the held-out residuals of the machine trained without G, with λ as for all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from looms._typing import AnyArray, Array
from looms.lssvm._system import LeverageError

_NUMBERS = 1 << 17  # in a block of residuals, as many as stay near the processor
_FEW = 16  # rows of a fold, up to which Python walks over them and NumPy over the folds


class _Alike(NamedTuple):
    """F folds, each padded to s rows, as columns of P; with few rows, row by row."""

    columns: slice
    size: int

    def of(self, values: AnyArray) -> AnyArray:
        """View of these columns of the last axis of ``values``, as (..., s, F)."""
        values = values[..., self.columns]
        if self.size > _FEW:
            return values.reshape(*values.shape[:-1], -1, self.size).swapaxes(-2, -1)
        return values.reshape(*values.shape[:-1], self.size, -1)


class InnerFolds:
    """Every fold held out by machines that have not seen some other folds.

    Parameters
    ----------
    folds : rows of each fold; each row is in one fold.
    outer : numbers of the folds that each machine has not seen; never all of them.
    """

    def __init__(self, folds: Sequence[AnyArray], outer: Sequence[tuple[int, ...]]) -> None:
        # Folds of few sizes, filled up with rows that have nothing to do with the others.
        sizes = np.array([len(rows) for rows in folds])
        level = np.ceil(np.log2(sizes)).astype(int)
        levels = [np.flatnonzero(level == one) for one in np.unique(level)]
        filled = [int(sizes[numbers].max()) for numbers in levels]
        n_columns = sum(s * len(numbers) for s, numbers in zip(filled, levels, strict=True))
        self._row = np.full(n_columns, -1)  # of each column, -1 for none
        self._place = np.empty(n_columns, dtype=np.intp)  # of its fold among those alike
        self._alike: list[_Alike] = []
        columns: dict[int, AnyArray] = {}  # of each fold
        start = 0
        for s, numbers in zip(filled, levels, strict=True):
            alike = _Alike(slice(start, start + s * len(numbers)), s)
            rows, places = alike.of(self._row), alike.of(np.arange(n_columns))
            alike.of(self._place)[...] = np.arange(len(numbers))
            for f, number in enumerate(numbers.tolist()):
                rows[: sizes[number], f] = folds[number]
                columns[number] = places[:, f]
            self._alike.append(alike)
            start = alike.columns.stop
        self._column = np.argsort(self._row, kind="stable")[-int(sizes.sum()) :]  # of each row
        left_out = [np.concatenate([columns[g] for g in numbers]) for numbers in outer]
        n_left_out = np.array([len(G) for G in left_out], dtype=int)
        self._parts: list[tuple[AnyArray, AnyArray]] = []
        for r in np.unique(n_left_out):
            same = np.flatnonzero(n_left_out == r)
            step = max(1, _NUMBERS // (n_columns * max(int(r), max(filled))))
            for first in range(0, len(same), step):
                part = same[first : first + step]
                self._parts.append((part, np.stack([left_out[k] for k in part])))

    def residuals(self, P: Array, alpha: Array, mu: float) -> Iterator[tuple[AnyArray, Array]]:
        """Held-out residuals of the rows that each machine has seen.

        Parameters
        ----------
        P : (n, n) M⁻¹ − η ηᵀ / Ση, both triangles valid.
        alpha : (n, t) dual coefficients.
        mu : regularization, for messages.

        Yields
        ------
        part : numbers of some of the machines.
        residuals : (n, n_part, t); a row that the machine has seen gets the residual of the machine
            that has not seen its own fold either; other rows get that of the machine itself.

        Raises
        ------
        LeverageError
            If the machine without some of these folds is singular in double precision.

        Notes
        -----
        For folds of s rows, a machine without r rows takes about n (2 r² + r s + s²) flops. Folds
        are padded to powers of two at most: 4n² numbers.
        """
        none = self._row < 0
        whole = np.take(np.take(P.T, self._row, axis=0), self._row, axis=1)
        whole[none], whole[:, none] = 0.0, 0.0
        whole[none, none] = P.diagonal().mean()
        a = np.where(none, 0.0, alpha.T[:, self._row])
        for part, G in self._parts:
            yield part, self._without(whole, a, G, mu)

    def _without(self, whole: Array, a: Array, G: AnyArray, mu: float) -> Array:
        """(n, b, t) residuals of the b machines that have not seen the columns G, (b, r)."""
        machines = np.arange(len(G))[:, None]
        R = _factors(whole[G[:, :, None], G[:, None, :]])
        self._check(_pivots(R), whole, G, mu)
        S = np.linalg.inv(R)  # (P_GG)⁻¹ = SᵀS
        W, z = S @ whole[G], S @ a.T[G]
        e = a - np.einsum("brt,brn->btn", z, W)
        for alike in self._alike:
            V, x, columns = alike.of(W), alike.of(e), alike.of(np.arange(len(whole)))
            blocks = whole[columns[:, None], columns]  # (s, s, F)
            s, n_folds = columns.shape
            diagonal = np.eye(s)[:, :, None] * blocks
            b, k = np.nonzero((alike.columns.start <= G) & (alike.columns.stop > G))
            own = self._place[G[b, k]]
            if s > _FEW:
                V = V.transpose(0, 3, 2, 1)
                inner = blocks.transpose(2, 0, 1) - V @ V.swapaxes(2, 3)
                inner[b, own] = diagonal.transpose(2, 0, 1)[own]
                self._check(_pivots(_factors(inner)), whole, columns.T, mu)
                x[...] = np.linalg.solve(inner, x.transpose(0, 3, 2, 1)).transpose(0, 3, 2, 1)
            else:
                inner = np.empty((s, s, len(G), n_folds))
                for i in range(s):
                    square = np.einsum("brf,brjf->jbf", V[:, :, i], V[:, :, : i + 1])
                    np.subtract(blocks[i, : i + 1, None], square, out=inner[i, : i + 1])
                inner[:, :, b, own] = diagonal[:, :, own]
                with np.errstate(all="ignore"):  # pivots are checked
                    _eliminate(inner, x.transpose(1, 2, 0, 3))
                self._check(np.diagonal(inner), whole, columns.T, mu)
        e[machines, :, G] = S.swapaxes(1, 2) @ z
        return np.asarray(e[:, :, self._column].transpose(2, 0, 1))

    def _check(self, pivots: Array, whole: Array, columns: AnyArray, mu: float) -> None:
        """LeverageError if only rounding is left of some diagonal entries of P."""
        least = len(self._column) * np.finfo(np.float64).eps * whole.diagonal()[columns]
        safe = pivots > least
        if not safe.all():
            rows = np.broadcast_to(self._row[columns], safe.shape)
            raise LeverageError(mu, int(rows.flat[np.argmin(safe)]))


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


def fold_of_rows(folds: Sequence[AnyArray], n: int) -> AnyArray:
    """Number of the fold of each row, (n,); 0 for a row in no fold."""
    number = np.zeros(n, dtype=np.intp)
    for k, rows in enumerate(folds):
        number[rows] = k
    return number
