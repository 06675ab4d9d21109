"""Landmarks: samples, chosen without targets, whose kernel functions represent all samples."""

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
    kernel: Kernel, samples: Samples, m: int, rng: np.random.RandomState
) -> AnyArray:
    """Indices of landmarks from randomly pivoted Cholesky, the most informative first.

    Each is drawn with probability proportional to its residual: k(x, x) less the part that
    earlier landmarks explain. Landmarks are proposed in blocks; a proposal is rejected to the
    extent that those accepted earlier in its block explain it. This gives the same distribution
    by matrix products.

    Source: Chen, Epperly, Tropp & Webber (2025), Comm. Pure Appl. Math. 78, 995, Algorithm 1; with
    rejection: Epperly, Tropp & Webber (2024), arXiv:2410.03969.

    Parameters
    ----------
    kernel : kernel whose values are set.
    samples : n samples to draw from.
    m : number of landmarks, at most n.
    rng : random number generator.

    Returns
    -------
    landmarks : (m,) distinct indices, or fewer if these span all samples up to rounding.

    Notes
    -----
    O(n m²) flops, n m numbers in memory.
    """
    residual = kernel.self_values(samples).copy()
    least = _EXHAUSTED * residual.max()
    F = np.empty((m, samples.n_samples))
    chosen: list[int] = []
    while len(chosen) < m and residual.max() > least:
        k = len(chosen)
        residual[residual <= least] = 0.0
        drawn = rng.choice(len(residual), _PROPOSALS, p=residual / residual.sum())
        proposals = Samples(samples.X[drawn], center=samples.center)
        known = F[:k, drawn]
        H = kernel.values(Pairs(proposals, proposals)) - known.T @ known
        left, accepted = H.copy(), list[int]()
        thresholds = rng.random_sample(_PROPOSALS) * residual[drawn]
        for j in range(_PROPOSALS):
            if left[j, j] > max(thresholds[j], least) and k + len(accepted) < m:
                accepted.append(j)
                left -= np.outer(left[:, j], left[:, j]) / left[j, j]
        L, failed = lapack.dpotrf(H[np.ix_(accepted, accepted)], lower=1, clean=1)
        if failed:  # those before the one that rounding leaves no pivot
            accepted = accepted[: failed - 1]
            L = L[: failed - 1, : failed - 1]
        if not accepted:
            break
        pivots = drawn[accepted]
        new = F[k : k + len(pivots)]
        rows = kernel.values(Pairs(Samples(samples.X[pivots], center=samples.center), samples))
        rows -= F[:k, pivots].T @ F[:k]
        np.matmul(lapack.dtrtri(L, lower=1)[0], rows, out=new)
        residual = np.maximum(residual - np.einsum("ij,ij->j", new, new), 0.0)
        residual[pivots] = 0.0
        chosen += pivots.tolist()
    return np.array(chosen, dtype=np.intp)
