"""Class probabilities from those of every pair of classes, and at other prevalences."""

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
        If values are not in [0, 1].

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
    k = r.shape[1]
    diagonal = np.arange(k)
    r[:, diagonal, diagonal] = 0.5
    if not ((r >= 0) & (r <= 1)).all():
        raise ValueError("pairwise must hold probabilities: numbers from 0 to 1.")
    r = np.clip(r, LEAST, 1.0 - LEAST)
    system = np.ones((len(r), k + 1, k + 1))
    system[:, k, k] = 0.0
    system[:, :k, :k] = -r * r.transpose(0, 2, 1)
    system[:, diagonal, diagonal] = (r**2).sum(axis=1) - r[:, diagonal, diagonal] ** 2
    right = np.zeros((len(r), k + 1, 1))
    right[:, k] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :k, 0], 0.0)  # negative by rounding only
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def adjust_prevalence(
    probabilities: npt.ArrayLike, training: npt.ArrayLike, stated: npt.ArrayLike
) -> Array:
    r"""Class probabilities at stated prevalences, by Bayes' rule.

    .. math:: p'_{ik} = \frac{p_{ik} \pi'_k / \pi_k}{\sum_l p_{il} \pi'_l / \pi_l}

    This assumes that samples within each class are like the training samples of that class
    [SLD02 eq. 2.4]. For two classes it adds log(π'₁ π₀ / (π₁ π'₀)) to all log-odds, which moves
    the threshold of the output: the analytic correction of [G06].

    Parameters
    ----------
    probabilities : (n, k) probabilities at the training prevalences.
    training, stated : (k,) prevalences π and π', positive; only ratios count.

    Returns
    -------
    probabilities : (n, k), with rows that sum to one. A probability of zero stays zero.

    Examples
    --------
    >>> adjust_prevalence([[0.2, 0.8]], training=[0.5, 0.5], stated=[0.9, 0.1]).round(3)
    array([[0.692, 0.308]])
    """
    factors = np.asarray(stated, dtype=np.float64) / np.asarray(training, dtype=np.float64)
    likely = np.asarray(probabilities, dtype=np.float64) * (factors / factors.max())
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))
