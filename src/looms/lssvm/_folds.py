"""Residuals of any rows held out together, in closed form.

Without the rows G, the machine trained on the others has residuals

    e_G = (P_GG)⁻¹ α_G,    P = M⁻¹ − η ηᵀ / Ση,

of which leave-one-out, e_i = α_i / p_i, is the case of one row. λ_i = n μ / ζ_i stays as
it is while rows are out. The folds of a cross-validation hold out each row once; repeated
cross-validation does so several times. G may have a gap, rows that are left out and not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack

from looms._typing import AnyArray, Array
from looms.folds import left_out_with
from looms.lssvm._system import LeverageError

_COLUMNS = 512  # of P, taken at a time


class Repetition(NamedTuple):
    """Rows that are held out in one pass over the data.

    Attributes
    ----------
    single : rows that are held out each by itself.
    sets : rows that are left out together, of each fold of two or more, in increasing order, as
        their first rows are.
    tested : (n,) true for single rows, and for those of the sets that are in no gap.
    """

    single: AnyArray
    sets: tuple[AnyArray, ...]
    tested: AnyArray

    @property
    def folds(self) -> tuple[AnyArray, ...]:
        """Rows that each fold tests: of the single rows first."""
        return (*self.single[:, None], *(G[self.tested[G]] for G in self.sets))


def repetitions(folds: npt.ArrayLike | None, n: int) -> tuple[Repetition, ...]:
    """Rows of every fold.

    Parameters
    ----------
    folds : (n,) or (n_repetitions, n) integers, as `looms.folds.fold_numbers` gives them; None for
        each row by itself.
    n : number of rows.

    Raises
    ------
    ValueError
        For another shape, for numbers that are no integers, if a fold has all rows, or if a
        row is held out in no repetition.
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
        raise ValueError(f"Row {int(np.argmax(never))} is held out in no fold.")
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
    """Repetition and number of the rows tested, where those that test no row twice count as one.

    Folds whose gaps meet are in different repetitions; one criterion is of all of them.
    """
    once: list[AnyArray] = []
    for r, part in enumerate(parts):
        if not once or (part.tested & (once[-1] >= 0)).any():
            once.append(np.full(len(part.tested), -1))
        once[-1][part.tested] = r
    return [(places[places >= 0], np.flatnonzero(places >= 0)) for places in once]


class HeldOutBlocks:
    """Factorized diagonal blocks of P that belong to rows held out together.

    Parameters
    ----------
    p : (n,) diagonal of P, positive: the blocks of the rows that are held out by themselves.
    parts : rows held out in every repetition.
    block : P_GG for the rows G that are left out together.
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
        block: Callable[[AnyArray], Array],
        mu: float,
    ) -> None:
        self.p = p
        self.parts = parts
        self._factors: list[list[Array]] = []
        for part in parts:
            self._factors.append([])
            for G in part.sets:
                P_GG = block(G)
                smallest = len(p) * np.finfo(np.float64).eps * P_GG.diagonal()
                R, failed = lapack.dpotrf(np.asfortranarray(P_GG.T), lower=1, overwrite_a=1)
                safe = R.diagonal() ** 2 > smallest
                if failed or not safe.all():
                    raise LeverageError(mu, int(G[failed - 1 if failed else np.argmin(safe)]))
                self._factors[-1].append(R)

    def solve(self, columns: Array) -> Array:
        """Blocks⁻¹ times columns: residuals from α, and V from ∂J/∂e.

        Parameters
        ----------
        columns : (n, t), the same in every repetition, or (n_repetitions, n, t).

        Returns
        -------
        solved : (n_repetitions, n, t); zero for rows that are not left out.
        """
        columns = np.broadcast_to(columns, (len(self.parts), *columns.shape[-2:]))
        solved = np.zeros(columns.shape)
        for r, (part, factors) in enumerate(zip(self.parts, self._factors, strict=True)):
            solved[r, part.single] = columns[r, part.single] / self.p[part.single, None]
            for G, R in zip(part.sets, factors, strict=True):
                solved[r, G], _ = lapack.dpotrs(R, np.asfortranarray(columns[r, G]), lower=1)
        return solved

    def outputs(self, Y: Array, residuals: Array) -> Array:
        """Held-out outputs Y − e, (n_repetitions, n, t); NaN for rows that are not tested."""
        outputs = np.full(residuals.shape, np.nan)
        for r, part in enumerate(self.parts):
            outputs[r, part.tested] = Y[part.tested] - residuals[r, part.tested]
        return outputs

    def add_square(self, P: Array, e: Array, v: Array, C: Array) -> Array:
        """C + P H P in the lower triangle of ``C``, H = ½ Σ (e vᵀ + v eᵀ) within each fold.

        Parameters
        ----------
        P : (n, n), valid in both triangles.
        e, v : (n_repetitions, n, t) columns; the sum is over repetitions and targets.
        C : (n, n) Fortran-ordered, overwritten.

        Notes
        -----
        H has as eigenvalues and eigenvectors those of its blocks, at most 2t of a fold: n² flops
        for each, and so n³ for rows that are held out by themselves.
        """
        h = np.zeros(len(P))
        eigen = []
        for r, part in enumerate(self.parts):
            h[part.single] += np.einsum("nt,nt->n", e[r, part.single], v[r, part.single])
            eigen += [(G, *_eigen(e[r, G], v[r, G])) for G in part.sets]
        for sign in (1.0, -1.0):
            for Z in _blocks_of_columns(P, sign * h, [(G, sign * w, V) for G, w, V in eigen]):
                C = blas.dsyrk(sign, Z, beta=1.0, c=C, lower=1, overwrite_c=1)
        return C


def _eigen(e: Array, v: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of ½ (e vᵀ + v eᵀ) that belong to its range."""
    Q, R = np.linalg.qr(np.hstack([e, v]))
    half = R[:, : e.shape[1]] @ R[:, e.shape[1] :].T
    values, V = np.linalg.eigh(0.5 * (half + half.T))
    return values, Q @ V


def _blocks_of_columns(
    P: Array, h: Array, eigen: Sequence[tuple[AnyArray, Array, Array]]
) -> Iterator[Array]:
    """Columns P x √h for the positive eigenvalues h of H and their eigenvectors x.

    Fortran-ordered, at most `_COLUMNS` at a time, in the same memory.
    """
    n = len(P)
    rows = np.flatnonzero(h > 0)
    n_columns = len(rows) + sum(int((values > 0).sum()) for _, values, _ in eigen)
    Z = np.empty((min(_COLUMNS, n_columns), n))
    for start in range(0, len(rows), _COLUMNS):
        some = rows[start : start + _COLUMNS]
        np.take(P.T, some, axis=0, out=Z[: len(some)])  # of symmetric P, as it lies in memory
        Z[: len(some)] *= np.sqrt(h[some, None])
        if len(some) == _COLUMNS:
            yield Z.T
    filled = len(rows) % _COLUMNS
    for G, values, V in eigen:
        scaled = (V[:, values > 0] * np.sqrt(values[values > 0])).T
        for start in range(0, len(scaled), _COLUMNS):
            vectors = scaled[start : start + _COLUMNS]
            if filled + len(vectors) > _COLUMNS:
                yield Z[:filled].T
                filled = 0
            Z[filled : filled + len(vectors)] = vectors @ P.T[G]
            filled += len(vectors)
    if filled:
        yield Z[:filled].T
