"""Residuals of rows with two folds held out: the inner cross-validation of a nested one.

Without the fold G the machine has P⁽⁻ᴳ⁾ = P − P_:G (P_GG)⁻¹ P_G: and α⁽⁻ᴳ⁾ = α − P_:G e_G, and the
fold H of its rows, left out as well, the residuals

    e_H⁽ᴳᴴ⁾ = (P⁽⁻ᴳ⁾_HH)⁻¹ α⁽⁻ᴳ⁾_H.

They are the held-out residuals of the machine that is trained without G, λ as it is for all rows.

Held-out outputs lean away from their own class: leaving out a row moves the mean of the others
towards the other class, most where the ridge is large. Pooled over rows, those of pure noise can
have an AUC of 0 (Austin, Pe'er & Korem, Science Advances 2025; Airola et al. 2010). With a row of
the other class left out as well the proportions stay, and `balanced_residuals` are the means over
such rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from looms._typing import AnyArray, Array
from looms.lssvm._system import LeverageError

_NUMBERS = 1 << 21  # in a block of residuals


def residuals_without(
    P: Array, alpha: Array, folds: Sequence[AnyArray], outer: Sequence[tuple[int, ...]], mu: float
) -> Iterator[tuple[slice, Array]]:
    """Residuals of the machines without some folds: held-out ones of the rows they have seen.

    Parameters
    ----------
    P : (n, n) M⁻¹ − η ηᵀ / Ση, both triangles valid.
    alpha : (n, t) dual coefficients.
    folds : rows of each fold; each row is in one.
    outer : numbers of the folds that a machine has not seen, as many for each.
    mu : regularization, for messages.

    Yields
    ------
    part : a slice of ``outer``.
    residuals : (n, n_part, t), of a row outside the folds of the second axis without its own fold,
        too; of their rows, those of the machine itself.

    Raises
    ------
    LeverageError
        If the machine without some of these folds is singular in double precision.

    Notes
    -----
    O(n t) for single rows. For folds of s rows, of which m are left out, about
    n s² (m² + m + 1) flops.
    """
    if not len(outer):
        return
    n, t = alpha.shape
    sizes, numbers = np.array([len(G) for G in folds]), np.asarray(outer)
    m, size = numbers.shape[1], int(sizes.max())
    if size == 1:
        rows = np.concatenate(list(folds))[numbers]
        step = max(1, _NUMBERS // (n * max(t, m)))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            yield part, _without_single_rows(P, alpha, rows[part], mu)
        return
    # Folds of one size, filled up with rows that have nothing to do with the others.
    n_more = len(folds) * size - n
    padded = np.zeros((n + n_more, n + n_more))
    padded[:n, :n] = P
    more = np.arange(n, n + n_more)
    padded[more, more] = P.diagonal().mean()
    rows = np.full((len(folds), size), -1)
    for k, fold in enumerate(folds):
        rows[k, : len(fold)] = fold
    rows[rows < 0] = more
    alpha = np.vstack([alpha, np.zeros((n_more, t))])
    step = max(1, _NUMBERS // (len(padded) * max(t, m * size)))
    for start in range(0, len(numbers), step):
        part = slice(start, start + step)
        residuals = _without_folds(padded, alpha, rows, numbers[part], mu)
        yield part, residuals[:n]


def _without_single_rows(P: Array, alpha: Array, out: AnyArray, mu: float) -> Array:
    """(n, b, t) residuals, α⁽⁻ᴳ⁾_j / p⁽⁻ᴳ⁾_j, for the b sets (b, m) of rows left out."""
    p, m = P.diagonal(), out.shape[1]
    blocks = P[out[:, :, None], out[:, None, :]]
    _check_definite(blocks, out, mu)
    inverse = np.linalg.inv(blocks)
    e = inverse @ alpha[out]
    rows = [np.take(P, out[:, k], axis=0) for k in range(m)]  # each (b, n)
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


def _without_folds(P: Array, alpha: Array, rows: AnyArray, left_out: AnyArray, mu: float) -> Array:
    """(n, b, t) residuals of the b machines without the folds (b, m) ``left_out``.

    Every fold of ``rows``, (F, s), is left out as well, but for those, whose residuals are those
    of the machine itself.
    """
    s = rows.shape[1]
    G = rows[left_out].reshape(len(left_out), -1)
    blocks = P[G[:, :, None], G[:, None, :]]
    R = _check_definite(blocks, G, mu)
    e = np.linalg.solve(blocks, alpha[G])
    W = np.linalg.solve(R, P[G])[:, :, rows].transpose(0, 2, 3, 1)  # (b, F, s, m s)
    inner = P[rows[:, :, None], rows[:, None, :]] - W @ W.transpose(0, 1, 3, 2)
    one = np.arange(len(left_out))[:, None]
    inner[one, left_out] = np.eye(s)
    left = np.diagonal(inner, axis1=2, axis2=3)
    if not (left > len(P) * np.finfo(np.float64).eps * P.diagonal()[rows]).all():
        raise LeverageError(mu, int(G.flat[0]))
    rest = alpha - P[:, G].transpose(1, 0, 2) @ e
    residuals = np.empty(rest.shape)
    residuals[:, rows] = np.linalg.solve(inner, rest[:, rows])
    residuals[one, G] = e
    return residuals.transpose(1, 0, 2)


def _check_definite(blocks: Array, rows: AnyArray, mu: float) -> Array:
    """Cholesky factors of the blocks; LeverageError if there is none."""
    try:
        return np.asarray(np.linalg.cholesky(blocks), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise LeverageError(mu, int(rows.flat[0])) from None


def balanced_residuals(
    pairs: Iterable[tuple[slice, Array]], y: Array, folds: Sequence[AnyArray], weight: Array
) -> Array:
    """Held-out residuals, (n, t), of each row without its fold and a row of the other class.

    The weighted mean over the rows of the other class, each left out with its own fold.

    Parameters
    ----------
    pairs : from `residuals_without` each fold.
    y : (n, t) targets ±1; of several, each is one class against the rest.
    folds : rows of each fold.
    weight : (n,) nonnegative. Where all rows of positive weight of the other class are in
        the fold of a row, its residual is the plain one.

    Notes
    -----
    O(n F t) for F folds.
    """
    number = fold_of_rows(folds, len(y))
    mass = np.zeros((2, len(folds), y.shape[1]))  # of each class in each fold
    for k, of_class in enumerate((y <= 0, y > 0)):
        np.add.at(mass[k], number, weight[:, None] * of_class)
    other = np.where(y > 0, 0, 1)
    sums, plain = np.zeros((2, *y.shape)), np.zeros(y.shape)
    for outer, residuals in pairs:
        sums += np.einsum("nft,kft->knt", residuals, mass[:, outer])
        columns = np.arange(len(folds))[outer]
        rows = np.flatnonzero(np.isin(number, columns))
        plain[rows] = residuals[rows, number[rows] - columns[0]]
    own = np.take_along_axis(mass[:, number], other[None], axis=0)[0]
    total = np.take_along_axis(mass.sum(axis=1)[:, None], other[None], axis=0)[0] - own
    outside = np.take_along_axis(sums, other[None], axis=0)[0] - own * plain
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, outside / total, plain))


def fold_of_rows(folds: Sequence[AnyArray], n: int) -> AnyArray:
    """Number of the fold of each row, (n,)."""
    number = np.empty(n, dtype=np.intp)
    for k, rows in enumerate(folds):
        number[rows] = k
    return number
