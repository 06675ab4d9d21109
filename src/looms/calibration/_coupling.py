"""Class probabilities from the probabilities of every pair of classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms._typing import Array

#: Smallest probability of a class in a pair.
LEAST = 1e-10


def couple(pairwise: npt.ArrayLike) -> Array:
    r"""Class probabilities that fit pairwise ones best.

    For each sample, with r_ij the probability of class i given that it is i or j,

    .. math:: \min_p \sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2, \qquad \sum_i p_i = 1

    Source: the second method of Wu, Lin & Weng [WLW04 eq. 19 and 21].

    Parameters
    ----------
    pairwise : (m, k, k) for m samples and k classes, with ``pairwise[:, j, i]`` equal to
        ``1 - pairwise[:, i, j]``; diagonals are not read. Values are clipped to
        [1e-10, 1 - 1e-10], because certainties may contradict each other.

    Returns
    -------
    probabilities : (m, k) nonnegative, with rows that sum to one. For two classes they equal
        the pairwise ones.

    Raises
    ------
    ValueError
        If the shape is wrong, values are not in [0, 1], or the two values of a pair do not sum
        to one.

    Notes
    -----
    The minimum solves a linear system of order k + 1 for each sample, whose solution is
    nonnegative without further constraints [WLW04 Theorem 2]. O(m k³).

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> couple((p[:, None] / (p[:, None] + p))[None]).round(12)
    array([[0.5, 0.3, 0.2]])
    """
    r = np.array(pairwise, dtype=np.float64)
    if r.ndim != 3 or r.shape[1] != r.shape[2] or r.shape[1] < 2:
        raise ValueError(
            "pairwise must have shape (n_samples, n_classes, n_classes), two classes or more, "
            f"but has shape {r.shape}."
        )
    k = r.shape[1]
    diagonal = np.arange(k)
    r[:, diagonal, diagonal] = 0.5
    if not ((r >= 0) & (r <= 1)).all():
        raise ValueError("pairwise must hold probabilities: numbers from 0 to 1.")
    if not np.allclose(r + r.transpose(0, 2, 1), 1.0, rtol=0.0, atol=1e-8):
        raise ValueError("pairwise[:, i, j] and pairwise[:, j, i] must sum to one.")
    r = np.clip(r, LEAST, 1.0 - LEAST)
    system = np.ones((len(r), k + 1, k + 1))
    system[:, k, k] = 0.0
    system[:, :k, :k] = -r * r.transpose(0, 2, 1)
    system[:, diagonal, diagonal] = (r**2).sum(axis=1) - r[:, diagonal, diagonal] ** 2
    right = np.zeros((len(r), k + 1, 1))
    right[:, k] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :k, 0], 0.0)  # negative by rounding only
    return np.asarray(p / p.sum(axis=1, keepdims=True))
