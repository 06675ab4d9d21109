"""Residuals of any rows held out together, in closed form.

Without the rows G, the machine trained on the others has residuals

    e_G = (P_GG)⁻¹ α_G,    P = M⁻¹ − η ηᵀ / Ση,

and leave-one-out, e_i = α_i / p_i, is the case of one row. λ_i = n μ / ζ_i stays the same while
rows are left out. The folds of a cross-validation hold out each row once; repeated
cross-validation does so several times. G may include a gap: rows left out but not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from looms._typing import AnyArray, Array
from looms.folds import left_out_with
from looms.lssvm._system import LeverageError

#: Inverse of a block times columns (|G|, t).
Inverse: TypeAlias = Callable[[Array], Array]

_COLUMNS = 512  # of P, taken at a time
_DENSE = 1 / 16  # of a sparse matrix is not zero: times P it takes as long as a full one


class Repetition(NamedTuple):
    """Rows that are held out in one pass over the data.

    Attributes
    ----------
    single : rows that are held out each by itself.
    sets : rows that each fold of two or more leaves out together, in increasing order; folds are
        in the order of their first rows.
    tested : (n,) true for single rows, and for rows of the sets that are not in a gap.
    """

    single: AnyArray
    sets: tuple[AnyArray, ...]
    tested: AnyArray

    @property
    def folds(self) -> tuple[AnyArray, ...]:
        """Rows that each fold tests, with single rows first."""
        return (*self.single[:, None], *(G[self.tested[G]] for G in self.sets))


def repetitions(folds: npt.ArrayLike | None, n: int) -> tuple[Repetition, ...]:
    """Rows of every fold.

    Parameters
    ----------
    folds : (n,) or (n_repetitions, n) integers, as from `looms.folds.fold_numbers`; None holds out
        each row by itself.
    n : number of rows.

    Raises
    ------
    ValueError
        If the shape is wrong, numbers are not integers, a fold has all rows, or a row is never
        held out.
    """
    if folds is None:
        return (Repetition(np.arange(n), (), np.ones(n, dtype=bool)),)
    labels = np.atleast_2d(np.asarray(folds))
    if labels.ndim != 2 or labels.shape[1] != n or not len(labels) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"folds must be integers of shape ({n},) or (n_repetitions, {n}), one per row, but "
            f"they are {labels.dtype} of shape {np.shape(folds)}."
        )
    never = (labels < 0).all(axis=0)
    if never.any():
        raise ValueError(f"Row {int(np.argmax(never))} is never held out.")
    return tuple(_repetition(row) for row in labels)


def _repetition(labels: AnyArray) -> Repetition:
    together, tested = left_out_with(labels), labels >= 0
    _, number, sizes = np.unique(together, return_inverse=True, return_counts=True)
    if len(sizes) == 1:
        raise ValueError("All rows are in one fold: holding it out leaves none to train on.")
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(sizes)
    tests = np.bincount(number, weights=tested) > 0
    sets = [order[ends[k] - sizes[k] : ends[k]] for k in np.flatnonzero((sizes > 1) & tests)]
    sets.sort(key=lambda rows: int(rows[0]))  # whatever the numbers
    return Repetition(np.flatnonzero((sizes[number] == 1) & tested), tuple(sets), tested)


def whole_repetitions(parts: Sequence[Repetition]) -> list[tuple[AnyArray, AnyArray]]:
    """Repetition and row number of the tested rows; repetitions with no row in common are joined.

    Folds whose gaps overlap are in different repetitions, but belong to one criterion.
    """
    once: list[AnyArray] = []
    for r, part in enumerate(parts):
        if not once or (part.tested & (once[-1] >= 0)).any():
            once.append(np.full(len(part.tested), -1))
        once[-1][part.tested] = r
    return [(places[places >= 0], np.flatnonzero(places >= 0)) for places in once]


def held_out_outputs(parts: Sequence[Repetition], Y: Array, residuals: Array) -> Array:
    """Held-out outputs Y − e, (n_repetitions, n, t); NaN for rows that are not tested."""
    outputs = np.full(residuals.shape, np.nan)
    for r, part in enumerate(parts):
        outputs[r, part.tested] = Y[part.tested] - residuals[r, part.tested]
    return outputs


def factorized(block: Array, smallest: Array | float, rows: AnyArray, mu: float) -> Inverse:
    """Inverse of a symmetric block, by its Cholesky factor.

    Raises LeverageError, which names one of the ``rows``, if a pivot is not above ``smallest``.
    """
    R, failed = lapack.dpotrf(np.asfortranarray(block.T), lower=1, overwrite_a=1)
    safe = R.diagonal() ** 2 > smallest
    if failed or not safe.all():
        raise LeverageError(mu, int(rows[failed - 1 if failed else np.argmin(safe)]))
    return lambda columns: np.asarray(lapack.dpotrs(R, np.asfortranarray(columns), lower=1)[0])


class HeldOutBlocks:
    """Factorized diagonal blocks of P for rows held out together.

    Parameters
    ----------
    p : (n,) diagonal of P, positive: the blocks of rows that are held out by themselves.
    parts : rows held out in every repetition.
    block : P_GG for the rows G that are left out together, or a function that multiplies columns
        by (P_GG)⁻¹.
    mu : regularization, for messages.

    Raises
    ------
    LeverageError
        If the machine without some fold is singular in double precision.

    Notes
    -----
    Σ |G|³ / 3 flops.
    """

    def __init__(
        self,
        p: Array,
        parts: Sequence[Repetition],
        block: Callable[[AnyArray], Array | Inverse],
        mu: float,
    ) -> None:
        self.p = p
        self.parts = parts
        self._inverses: list[list[Inverse]] = []
        for part in parts:
            self._inverses.append([])
            for G in part.sets:
                inverse = block(G)
                if not callable(inverse):
                    smallest = len(p) * np.finfo(np.float64).eps * inverse.diagonal()
                    inverse = factorized(inverse, smallest, G, mu)
                self._inverses[-1].append(inverse)

    def solve(self, columns: Array) -> Array:
        """Blocks⁻¹ times columns: residuals from α, or V from ∂J/∂e.

        Parameters
        ----------
        columns : (n, t), the same in every repetition, or (n_repetitions, n, t).

        Returns
        -------
        solved : (n_repetitions, n, t); zero for rows that are not left out.
        """
        columns = np.broadcast_to(columns, (len(self.parts), *columns.shape[-2:]))
        solved = np.zeros(columns.shape)
        for r, (part, inverses) in enumerate(zip(self.parts, self._inverses, strict=True)):
            solved[r, part.single] = columns[r, part.single] / self.p[part.single, None]
            for G, inverse in zip(part.sets, inverses, strict=True):
                solved[r, G] = inverse(columns[r, G])
        return solved

    def outputs(self, Y: Array, residuals: Array) -> Array:
        """`held_out_outputs` of these parts."""
        return held_out_outputs(self.parts, Y, residuals)

    def add_square(self, P: Array, e: Array, v: Array, C: Array) -> Array:
        """C + P H P in the lower triangle of ``C``, H = ½ Σ (e vᵀ + v eᵀ) within each fold.

        Parameters
        ----------
        P : (n, n), valid in both triangles.
        e, v : (n_repetitions, n, t) columns; the sum is over repetitions and targets.
        C : (n, n) Fortran-ordered, overwritten.

        Notes
        -----
        H is a sum of ± x xᵀ, at most 2t for each fold. Each takes n² flops, so rows held out by
        themselves take n³.
        """
        vectors = []
        for r, part in enumerate(self.parts):
            sets = (*part.single[:, None], *part.sets)
            sizes = np.array([len(G) for G in sets])
            for size in np.unique(sizes):
                G = np.stack([sets[k] for k in np.flatnonzero(sizes == size)])
                vectors.append((G, *_squares(e[r, G], v[r, G])))
        for sign in (1.0, -1.0):
            X = _sparse_rows(len(P), [(G, x, signs == sign) for G, x, signs in vectors])
            for start in range(0, X.shape[0], _COLUMNS):
                some = X[start : start + _COLUMNS]
                full = some.nnz > some.shape[0] * len(P) * _DENSE
                Z = (some.toarray() if full else some) @ P.T  # as P, symmetric, lies in memory
                C = blas.dsyrk(sign, Z.T, beta=1.0, c=C, lower=1, overwrite_c=1)
        return C


def _squares(e: Array, v: Array) -> tuple[Array, Array]:
    """Vectors x, (F, k, s), and signs, (F, k), of ½ (e vᵀ + v eᵀ) = Σ ± x xᵀ for (F, s, t) e and v.

    These are sums and differences of columns scaled to one length, or eigenvectors if these are
    no more.
    """
    if e.shape[1] <= 2 * e.shape[2]:
        half = 0.5 * e @ v.swapaxes(1, 2)
        values, Q = np.linalg.eigh(half + half.swapaxes(1, 2))
        return (Q * np.sqrt(np.abs(values))[:, None]).swapaxes(1, 2), np.sign(values)
    lengths = [np.linalg.norm(columns, axis=1, keepdims=True) for columns in (e, v)]
    mean = 0.5 * np.sqrt(lengths[0]) * np.sqrt(lengths[1])
    e, v = (
        columns * (mean / np.where(length > 0, length, 1.0))
        for columns, length in zip((e, v), lengths, strict=True)
    )
    x = np.concatenate([e + v, e - v], axis=2).swapaxes(1, 2)
    return x, np.broadcast_to(np.repeat([1.0, -1.0], e.shape[2]), x.shape[:2])


def _sparse_rows(n: int, vectors: Sequence[tuple[AnyArray, Array, AnyArray]]) -> sp.csr_array:
    """Rows of n numbers: the vectors x, (F, k, s), on sets (F, s), that a mask (F, k) selects."""
    values = [x[mask] for _, x, mask in vectors]
    places = [G[np.nonzero(mask)[0]] for G, _, mask in vectors]
    lengths = np.concatenate([np.full(len(x), x.shape[1]) for x in values])
    return sp.csr_array(
        (
            np.concatenate([x.ravel() for x in values]),
            np.concatenate([G.ravel() for G in places]),
            np.append(0, np.cumsum(lengths)),
        ),
        shape=(len(lengths), n),
    )
