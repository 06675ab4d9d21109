"""Kernel of weighted features, with weights learned from the gradients of a machine."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp

from looms._typing import Array
from looms.kernels._base import Kernel
from looms.kernels._columns import Mapped
from looms.kernels._samples import SQUARED, Pairs, Samples
from looms.kernels._stationary import Isotropic, scaled_columns

#: Scaled squared distance below which samples count as copies, which give no direction: the
#: gradients of kernels with a cusp would outweigh all others there.
_COPIES = 1e-6
_ROWS = 256  # of gradients at a time


class Weighted(Mapped):
    """Kernel of weighted features, k(√w ∘ x, √w ∘ x').

    If the weights are None, machines with ``search="gradient"`` learn them, for kernels of
    distances: they tune ``kernel`` by itself, take the gradients of that machine f,

        w_k = c (Σ_i ζ_i (∂f(x_i)/∂x_k)²)^½, with c such that their mean is one,

    and tune ``kernel`` again on the weighted features. Only few numbers are searched, so the
    criterion is overfitted less than with a scale for each feature.

    Source: [RBPB24], whose matrix is the average outer product of the gradients; this is the
    square root of its diagonal, in one round.

    Parameters
    ----------
    kernel : kernel of features; `RBF`, `Matern` or `PowerExponential` if weights are learned.
    weights : (n_features,) nonnegative, not all zero. None learns them; this kernel must then
        not be part of another.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import LSSVMRegressorCV
    >>> from looms.kernels import ARD, RBF, Weighted
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> bool(np.allclose(Weighted(RBF(0.5), [0.4, 1.6])(X), ARD([0.2, 0.8])(X)))
    True

    The second feature does not matter here:

    >>> machine = LSSVMRegressorCV(Weighted(RBF())).fit(X, np.sin(2 * X[:, 0]))
    >>> bool(machine.kernel_.weights[0] > 10 * machine.kernel_.weights[1])
    True
    """

    def __init__(self, kernel: Kernel, weights: Array | None = None) -> None:
        self.kernel = kernel
        self.weights = weights

    def started(self, samples: Samples) -> Self:
        if self.weights is None:
            raise ValueError(
                "Weighted: weights are None. LSSVMClassifierCV and LSSVMRegressorCV with "
                "search='gradient' learn them, unless this kernel is part of another; elsewhere "
                "pass a number for each feature."
            )
        n_features = samples.X.shape[1]
        try:
            weights = np.array(self.weights, dtype=np.float64)
            proper = weights.shape == (n_features,) and 0 < weights.sum() < np.inf
        except (TypeError, ValueError):
            proper = False
        if not (proper and weights.min() >= 0):
            raise ValueError(
                f"Weighted: weights must be nonnegative numbers, one for each of the {n_features} "
                f"features, and not all zero, got {self.weights!r}."
            )
        return super(Weighted, self._with_arguments(weights=weights)).started(samples)

    def learned(self, tuned: Kernel, samples: Samples, alpha: Array) -> Self:
        """This kernel with weights from the gradients of the machine f(x) = Σ_j α_j k(x_j, x).

        ∂f(x)/∂x = 2 gamma Σ_j α_j d(s_j) (x_j − x) with the decay d of the profile and the scaled
        squared distances s. Gradients of several outputs are pooled. If all gradients vanish,
        every weight is one.

        Parameters
        ----------
        tuned : k, which is ``kernel`` with other values.
        samples : (n, n_features) samples of the machine, with weights ζ.
        alpha : (n,) or (n, t) dual coefficients.

        Raises
        ------
        ValueError
            If k is not a function of ‖x − x'‖.
        """
        if not (isinstance(tuned, Isotropic) and tuned.distance is SQUARED):
            raise ValueError(
                "Weighted: weights are learned for RBF, Matern and PowerExponential only; with "
                f"{tuned!r}, pass a number for each feature."
            )
        squares = np.zeros(samples.X.shape[1])
        for start in range(0, samples.n_samples, _ROWS):
            rows = samples.rows(start, min(start + _ROWS, samples.n_samples))
            s = tuned.scaled(Pairs(rows, samples))
            near = s < _COPIES
            decay = tuned.profile.decay(s)
            decay[near] = 0.0
            x = rows.centered.toarray() if sp.issparse(rows.centered) else rows.centered
            for a in alpha.reshape(samples.n_samples, -1).T:
                W = decay * a
                slopes = W @ samples.centered - W.sum(axis=1)[:, None] * x
                squares += samples.weight[rows.start : rows.stop] @ np.square(slopes)
        weights = np.sqrt(squares)
        total = weights.sum()
        return self._with_arguments(
            weights=weights * (len(weights) / total) if total > 0 else np.ones(len(weights))
        )

    def _seen(self, samples: Samples) -> Samples:
        scale = np.sqrt(np.asarray(self.weights))
        center = None if samples.center is None else samples.center * scale
        X = scaled_columns(samples.X, scale)
        return Samples(X, start=samples.start, center=center, weight=samples.weight)
