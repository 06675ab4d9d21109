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
import scipy.linalg

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
    n, t = alpha.shape
    sizes = np.array([len(G) for G in folds])
    if not len(outer):
        return
    numbers = np.asarray(outer)
    if sizes.max() == 1:
        rows = np.concatenate(list(folds))[numbers]
        step = max(1, _NUMBERS // (n * max(t, numbers.shape[1])))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            yield part, _without_single_rows(P, alpha, rows[part], mu)
        return
    alike = [np.flatnonzero(sizes == s) for s in np.unique(sizes)]
    for k, left_out in enumerate(numbers):
        G = np.concatenate([folds[g] for g in left_out])
        others = [np.setdiff1d(same, left_out) for same in alike]
        rest = [np.stack([folds[h] for h in same]) for same in others if len(same)]
        yield slice(k, k + 1), _without_folds(P, alpha, G, rest, mu)[:, None]


def _without_single_rows(P: Array, alpha: Array, out: AnyArray, mu: float) -> Array:
    """(n, b, t) residuals, α⁽⁻ᴳ⁾_j / p⁽⁻ᴳ⁾_j, for the b sets (b, m) of rows left out."""
    p, columns = P.diagonal(), P[:, out]
    blocks = P[out[:, :, None], out[:, None, :]]
    _check_definite(blocks, out, mu)
    e = np.linalg.solve(blocks, alpha[out])
    taken = np.linalg.solve(blocks, columns.transpose(1, 2, 0)).transpose(2, 0, 1)
    left = p[:, None] - (columns * taken).sum(axis=2)
    own = (out, np.arange(len(out))[:, None])
    left[own] = p[out]
    safe = left > len(p) * np.finfo(np.float64).eps * p[:, None]
    if not safe.all():
        raise LeverageError(mu, int(np.unravel_index(np.argmin(safe), left.shape)[0]))
    residuals = (alpha[:, None] - (columns[:, :, None] @ e[None])[:, :, 0]) / left[:, :, None]
    residuals[own] = e
    return np.asarray(residuals)


def _without_folds(
    P: Array, alpha: Array, G: AnyArray, rest: Sequence[AnyArray], mu: float
) -> Array:
    """(n, t) residuals of the machine without G, each fold (m, s) of ``rest`` left out as well."""
    _check_definite(P[np.ix_(G, G)], G, mu)
    R = scipy.linalg.cholesky(P[np.ix_(G, G)], lower=True)
    W = scipy.linalg.solve_triangular(R, P[G], lower=True)
    e = scipy.linalg.cho_solve((R, True), alpha[G])
    left = alpha - P[:, G] @ e
    residuals = np.empty_like(alpha)
    for rows in rest:
        within = W[:, rows].transpose(1, 2, 0)  # (m, s, |G|)
        blocks = P[rows[:, :, None], rows[:, None, :]] - within @ within.transpose(0, 2, 1)
        _check_definite(blocks, G, mu)
        residuals[rows] = np.linalg.solve(blocks, left[rows])
    residuals[G] = e
    return residuals


def _check_definite(blocks: Array, rows: AnyArray, mu: float) -> None:
    try:
        np.linalg.cholesky(blocks)
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
