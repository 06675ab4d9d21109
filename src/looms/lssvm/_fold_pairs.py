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


def pair_residuals(
    P: Array, alpha: Array, folds: Sequence[AnyArray], mu: float
) -> Iterator[tuple[slice, Array]]:
    """Residuals of all rows, each with its own fold and another one left out.

    Parameters
    ----------
    P : (n, n) M⁻¹ − η ηᵀ / Ση, both triangles valid.
    alpha : (n, t) dual coefficients.
    folds : rows of each fold; each row is in one.
    mu : regularization, for messages.

    Yields
    ------
    outer : a slice of the folds.
    residuals : (n, len(outer), t), of row j without its fold and without the fold of the
        second axis; the same fold twice is that fold.

    Raises
    ------
    LeverageError
        If the machine without some pair of folds is singular in double precision.

    Notes
    -----
    O(n² t) for single rows; for F folds about 2 n³ / F + n³ / F² flops for each pair of sizes.
    """
    n, t = alpha.shape
    sizes = np.array([len(G) for G in folds])
    if sizes.max() == 1:
        order = np.concatenate(list(folds))
        step = max(1, _NUMBERS // (n * t))
        for start in range(0, n, step):
            outer = slice(start, start + step)
            yield outer, _of_single_rows(P, alpha, order[outer], mu)
        return
    classes = [(np.stack([folds[k] for k in np.flatnonzero(sizes == s)])) for s in np.unique(sizes)]
    for g, G in enumerate(folds):
        yield slice(g, g + 1), _without(P, alpha, G, classes, mu)[:, None]


def _of_single_rows(P: Array, alpha: Array, out: AnyArray, mu: float) -> Array:
    """(n, len(out), t) (α_j − P_ji r_i) / (p_j − P_ji² / p_i), and r_i for i itself."""
    p, columns = P.diagonal(), P[:, out]
    r = alpha[out] / p[out, None]
    left = p[:, None] - columns**2 / p[out]
    own = (out, np.arange(len(out)))
    left[own] = p[out]
    safe = left > len(p) * np.finfo(np.float64).eps * p[:, None]
    if not safe.all():
        raise LeverageError(mu, int(np.unravel_index(np.argmin(safe), left.shape)[0]))
    residuals = (alpha[:, None, :] - columns[:, :, None] * r) / left[:, :, None]
    residuals[own] = r
    return np.asarray(residuals)


def _without(
    P: Array, alpha: Array, G: AnyArray, classes: Sequence[AnyArray], mu: float
) -> Array:
    """(n, t) residuals of the machine without G, each fold of its rows left out; own ones of G.

    ``classes`` are (m, s) the rows of the m folds of s rows.
    """
    try:
        R = scipy.linalg.cholesky(P[np.ix_(G, G)], lower=True)
    except np.linalg.LinAlgError:
        raise LeverageError(mu, int(G[0])) from None
    W = scipy.linalg.solve_triangular(R, P[G], lower=True)
    e = scipy.linalg.cho_solve((R, True), alpha[G])
    rest = alpha - P[:, G] @ e
    residuals = np.empty_like(alpha)
    for rows in classes:
        rows = rows[rows[:, 0] != G[0]]
        if not len(rows):
            continue
        within = W[:, rows].transpose(1, 2, 0)  # (m, s, |G|)
        blocks = P[rows[:, :, None], rows[:, None, :]] - within @ within.transpose(0, 2, 1)
        try:
            np.linalg.cholesky(blocks)
        except np.linalg.LinAlgError:
            raise LeverageError(mu, int(G[0])) from None
        residuals[rows] = np.linalg.solve(blocks, rest[rows])
    residuals[G] = e
    return residuals


def balanced_residuals(
    pairs: Iterable[tuple[slice, Array]], y: Array, folds: Sequence[AnyArray], weight: Array
) -> Array:
    """Held-out residuals, (n, t), of each row without its fold and a row of the other class.

    The weighted mean over the rows of the other class, each left out with its own fold.

    Parameters
    ----------
    pairs : from `pair_residuals`.
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
