"""Normalized kernel, with k(x, x) = 1."""

from __future__ import annotations

from typing import Self

import numpy as np

from looms._typing import Array
from looms.kernels._base import Composite, Kernel
from looms.kernels._samples import Pairs, Samples


class Normalized(Composite):
    """Cosine in feature space, k̂(x, x') = k(x, x') / √(k(x, x) k(x', x')).

    A sample that the kernel maps to zero stays zero.

    Parameters
    ----------
    kernel : the kernel to normalize. It must not be precomputed, since k(x, x) of new samples
        is then unknown: normalize the matrices themselves instead.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Linear, Normalized
    >>> Normalized(Linear())(np.array([[3.0, 0.0], [3.0, 3.0]])).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    _parts = ("kernel",)

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def started(self, samples: Samples) -> Self:
        if self.pairwise:
            raise ValueError(
                "Normalized: a precomputed kernel matrix does not contain k(x, x) of new samples; "
                "normalize the matrices before you pass them."
            )
        return super().started(samples)

    def values(self, pairs: Pairs) -> Array:
        K = self.kernel.values(pairs)
        K *= self._inverse_norms(pairs.rows)[:, None]
        K *= self._inverse_norms(pairs.cols)
        return K

    def self_values(self, samples: Samples) -> Array:
        return (self.kernel.self_values(samples) > 0).astype(np.float64)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        """Contracted gradient by the quotient rule.

        ∂k̂_ij = ∂k_ij/√(k_ii k_jj) − ½ k̂_ij (∂k_ii/k_ii + ∂k_jj/k_jj).
        """
        rows, cols = self._inverse_norms(pairs.rows), self._inverse_norms(pairs.cols)
        scaled = G * rows[:, None]
        scaled *= cols
        W = scaled * self.kernel.values(pairs)
        return (
            self.kernel.values_gradient(pairs, scaled)
            - 0.5 * self.kernel.self_values_gradient(pairs.rows, W.sum(axis=1) * rows**2)
            - 0.5 * self.kernel.self_values_gradient(pairs.cols, W.sum(axis=0) * cols**2)
        )

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return np.zeros(len(self.hyperparameters))

    def _inverse_norms(self, samples: Samples) -> Array:
        squares = self.kernel.self_values(samples)
        positive = squares > 0
        return np.where(positive, 1.0 / np.sqrt(np.where(positive, squares, 1.0)), 0.0)
