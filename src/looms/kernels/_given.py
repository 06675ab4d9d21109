"""Kernels that somebody else computes: a precomputed matrix, a plain function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from looms._typing import Array, Matrix
from looms.kernels._base import Kernel
from looms.kernels._samples import Pairs, Samples


class Precomputed(Kernel):
    """A kernel matrix given in place of the data.

    ``X`` is then the (n, n) kernel matrix in training and the (m, n) matrix of
    kernel values between new samples and training samples in prediction.
    """

    pairwise = True

    def values(self, pairs: Pairs) -> Array:
        block = pairs.rows.X[:, pairs.cols.start : pairs.cols.stop]
        return np.array(block.toarray() if hasattr(block, "toarray") else block, order="F")

    def self_values(self, samples: Samples) -> Array:
        rows = np.arange(samples.n_samples)
        return np.asarray(samples.X[rows, samples.start + rows], dtype=np.float64).ravel()


class Function(Kernel):
    """A plain function as a kernel.

    Parameters
    ----------
    function : called with two matrices of samples as they were given, (n, d) and
        (m, d); returns the (n, m) kernel matrix. It has no hyper-parameters here:
        to tune some, subclass `Kernel`.
    """

    def __init__(self, function: Callable[[Matrix, Matrix], Array]) -> None:
        self.function = function

    def values(self, pairs: Pairs) -> Array:
        shape = (pairs.rows.n_samples, pairs.cols.n_samples)
        K = np.array(self.function(pairs.rows.X, pairs.cols.X), dtype=np.float64, order="F")
        if K.shape != shape:
            raise ValueError(
                f"The kernel function was called with {shape[0]} and {shape[1]} samples and "
                f"returned shape {K.shape}; it must return one row and one column a sample."
            )
        return K

    def self_values(self, samples: Samples) -> Array:
        rows = (samples.X[i : i + 1] for i in range(samples.n_samples))
        return np.array([np.asarray(self.function(row, row)).item() for row in rows])
