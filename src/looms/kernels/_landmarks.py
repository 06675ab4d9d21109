"""Landmarks: samples whose kernel functions stand for those of all, without targets."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from looms._typing import AnyArray
from looms.kernels._base import Kernel
from looms.kernels._samples import Pairs, Samples

_PROPOSALS = 64  # samples proposed at a time
#: A residual variance below this part of the largest variance is rounding.
_EXHAUSTED = 1e-12


def pivoted_landmarks(
    kernel: Kernel, samples: Samples, n_landmarks: int, rng: np.random.RandomState
) -> AnyArray:
    """Indices of landmarks by randomly pivoted Cholesky, the most telling first.

    Each is drawn with a probability in proportion to k(x, x) less its part in the span of those
    before it. Proposals come in blocks and are rejected as far as those accepted before them in the
    block explain them, which gives the same distribution from products of matrices.

    Source: Chen, Epperly, Tropp & Webber (2025), Comm. Pure Appl. Math. 78, 995, Algorithm 1; with
    rejection: Epperly, Tropp & Webber (2024), arXiv:2410.03969.

    Parameters
    ----------
    kernel : with its values.
    samples : n samples to draw from.
    n_landmarks : m, at most n.
    rng : random numbers.

    Returns
    -------
    landmarks : (m,), or fewer where these span all samples up to rounding; each once.

    Notes
    -----
    O(n m²) flops, n m numbers in memory.
    """
    residual = kernel.self_values(samples).copy()
    least = _EXHAUSTED * residual.max()
    F = np.empty((samples.n_samples, n_landmarks))
    chosen: list[int] = []
    while len(chosen) < n_landmarks and residual.max() > least:
        k = len(chosen)
        residual[residual <= least] = 0.0
        drawn = rng.choice(len(residual), _PROPOSALS, p=residual / residual.sum())
        proposals = Samples(samples.X[drawn], center=samples.center)
        H = kernel.values(Pairs(proposals, proposals)) - F[drawn, :k] @ F[drawn, :k].T
        left, accepted = H.copy(), list[int]()
        thresholds = rng.random_sample(_PROPOSALS) * residual[drawn]
        for j in range(_PROPOSALS):
            if left[j, j] > max(thresholds[j], least) and k + len(accepted) < n_landmarks:
                accepted.append(j)
                left -= np.outer(left[:, j], left[:, j]) / left[j, j]
        L, failed = lapack.dpotrf(H[np.ix_(accepted, accepted)], lower=1, clean=1)
        if failed:  # those before the one that rounding leaves no pivot
            accepted = accepted[: failed - 1]
            L = L[: failed - 1, : failed - 1]
        if not accepted:
            break
        pivots = drawn[accepted]
        new = slice(k, k + len(pivots))
        columns = kernel.values(Pairs(samples, Samples(samples.X[pivots], center=samples.center)))
        columns -= F[:, :k] @ F[pivots, :k].T
        F[:, new] = lapack.dtrtrs(L, columns.T, lower=1)[0].T
        residual = np.maximum(residual - np.square(F[:, new]).sum(axis=1), 0.0)
        residual[pivots] = 0.0
        chosen += pivots.tolist()
    return np.array(chosen, dtype=np.intp)
