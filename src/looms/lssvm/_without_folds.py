"""Residuals of rows with several folds held out: the inner cross-validation of a nested one.

Without the fold G the machine has P⁽⁻ᴳ⁾ = P − P_:G (P_GG)⁻¹ P_G: and α⁽⁻ᴳ⁾ = α − P_:G e_G, and the
fold H of its rows, left out as well, the residuals

    e_H⁽ᴳᴴ⁾ = (P⁽⁻ᴳ⁾_HH)⁻¹ α⁽⁻ᴳ⁾_H.

They are the held-out residuals of the machine that is trained without G, λ as it is for all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from looms._typing import AnyArray, Array
from looms.lssvm._system import LeverageError

_NUMBERS = 1 << 18  # in a block of residuals, as many as stay near the processor


def residuals_without(
    P: Array, alpha: Array, folds: Sequence[AnyArray], outer: Sequence[tuple[int, ...]], mu: float
) -> Iterator[tuple[AnyArray, Array]]:
    """Residuals of the machines without some folds: held-out ones of the rows they have seen.

    Parameters
    ----------
    P : (n, n) M⁻¹ − η ηᵀ / Ση, both triangles valid.
    alpha : (n, t) dual coefficients.
    folds : rows of each fold; each row is in one.
    outer : numbers of the folds that a machine has not seen, as many for each, fewer than all.
    mu : regularization, for messages.

    Yields
    ------
    part : numbers of some of ``outer``.
    residuals : (n, n_part, t), of a row outside the folds of the second axis without its own fold,
        too; of their rows, those of the machine itself.

    Raises
    ------
    LeverageError
        If the machine without some of these folds is singular in double precision.

    Notes
    -----
    O(n t) for single rows. For folds of s rows, of which m are left out, about
    n s² (m² + m + 1) flops. Folds are filled up to powers of two at most: 4n² numbers.
    """
    if not len(outer):
        return
    n, t = alpha.shape
    sizes, numbers = np.array([len(G) for G in folds]), np.asarray(outer)
    m = numbers.shape[1]
    if sizes.max() == 1:
        rows = np.concatenate(list(folds))[numbers]
        step = max(1, _NUMBERS // (n * max(t, m)))
        for start in range(0, len(rows), step):
            part = np.arange(start, min(start + step, len(rows)))
            yield part, _without_single_rows(P, alpha, rows[part], mu)
        return
    # Folds of few sizes, filled up with rows that have nothing to do with the others.
    level = np.ceil(np.log2(sizes)).astype(int)
    filled = np.array([sizes[level == one].max() for one in level])
    n_more = int((filled - sizes).sum())
    whole = np.zeros((n + n_more, n + n_more))
    whole[:n, :n] = P
    more = np.arange(n, n + n_more)
    whole[more, more] = P.diagonal().mean()
    ends = np.cumsum(filled - sizes)
    rows_of = [
        np.append(fold, more[end - size + len(fold) : end])
        for fold, end, size in zip(folds, ends, filled, strict=True)
    ]
    alike = [np.flatnonzero(level == one) for one in np.unique(level)]
    alpha = np.vstack([alpha, np.zeros((n_more, t))])
    left_out_size = filled[numbers].sum(axis=1)
    for size in np.unique(left_out_size):
        same = np.flatnonzero(left_out_size == size)
        step = max(1, _NUMBERS // (len(whole) * max(t, int(size))))
        for start in range(0, len(same), step):
            part = same[start : start + step]
            G = np.stack([np.concatenate([rows_of[g] for g in numbers[k]]) for k in part])
            rest = [(one, np.stack([rows_of[h] for h in one])) for one in alike]
            yield part, _without_folds(whole, alpha, G, numbers[part], rest, mu)[:n]


def _without_single_rows(P: Array, alpha: Array, out: AnyArray, mu: float) -> Array:
    """(n, b, t) residuals, α⁽⁻ᴳ⁾_j / p⁽⁻ᴳ⁾_j, for the b sets (b, m) of rows left out."""
    p, m = P.diagonal(), out.shape[1]
    blocks = P[out[:, :, None], out[:, None, :]]
    _factors(blocks, out, mu)
    inverse = np.linalg.inv(blocks)
    e = inverse @ alpha[out]
    rows = [np.take(P.T, out[:, k], axis=0) for k in range(m)]  # each (b, n)
    left = np.tile(p, (len(out), 1))
    for k in range(m):
        for j in range(k + 1):
            share = inverse[:, j, k, None] * (1.0 if j == k else 2.0)
            left -= rows[j] * rows[k] * share
    own = (np.arange(len(out))[:, None], out)
    left[own] = p[out]
    safe = left > len(p) * np.finfo(np.float64).eps * p
    if not safe.all():
        raise LeverageError(mu, int(np.unravel_index(np.argmin(safe), left.shape)[1]))
    residuals = np.tile(alpha, (len(out), 1, 1))
    for k in range(m):
        residuals -= rows[k][:, :, None] * e[:, None, k]
    residuals /= left[:, :, None]
    residuals[own] = e
    return residuals.transpose(1, 0, 2)


def _without_folds(
    P: Array,
    alpha: Array,
    G: AnyArray,
    left_out: AnyArray,
    rest: Sequence[tuple[AnyArray, AnyArray]],
    mu: float,
) -> Array:
    """(n, b, t) residuals of the b machines without the rows G, (b, r), of the folds ``left_out``.

    ``rest`` are numbers and rows of all folds, those of one size together: each is left out as
    well. The residuals of G are those of the machine itself.
    """
    blocks = P[G[:, :, None], G[:, None, :]]
    R = _factors(blocks, G, mu)
    e = np.linalg.solve(blocks, alpha[G])
    W = np.linalg.solve(R, P[G])
    left = alpha - P[:, G].transpose(1, 0, 2) @ e
    residuals = np.empty(left.shape)
    for numbers, rows in rest:
        V = W[:, :, rows].transpose(0, 2, 3, 1)  # (b, F, s, r)
        inner = P[rows[:, :, None], rows[:, None, :]] - V @ V.transpose(0, 1, 3, 2)
        out = (left_out[:, :, None] == numbers).any(axis=1)
        inner[out] = P.diagonal().mean() * np.eye(rows.shape[1])
        _factors(inner, G, mu)
        residuals[:, rows] = np.linalg.solve(inner, left[:, rows])
    residuals[np.arange(len(G))[:, None], G] = e
    return residuals.transpose(1, 0, 2)


def _factors(blocks: Array, rows: AnyArray, mu: float) -> Array:
    """Cholesky factors of the blocks; LeverageError if one is singular in double precision."""
    try:
        R = np.linalg.cholesky(blocks)
    except np.linalg.LinAlgError:
        raise LeverageError(mu, int(rows.flat[0])) from None
    pivots = np.diagonal(R, axis1=-2, axis2=-1) ** 2
    least = len(rows) * np.finfo(np.float64).eps * np.diagonal(blocks, axis1=-2, axis2=-1)
    if not (pivots > least).all():
        raise LeverageError(mu, int(rows.flat[0]))
    return np.asarray(R, dtype=np.float64)


def fold_of_rows(folds: Sequence[AnyArray], n: int) -> AnyArray:
    """Number of the fold of each row, (n,); 0 for a row in none."""
    number = np.zeros(n, dtype=np.intp)
    for k, rows in enumerate(folds):
        number[rows] = k
    return number
