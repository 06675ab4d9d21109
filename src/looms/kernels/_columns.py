"""Kernels of mapped features and of selected columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from looms._typing import Array
from looms.kernels._base import Composite, Kernel
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._samples import Pairs, Samples


class Mapped(Composite):
    """Base class of kernels of mapped features, k(φ(x), φ(x')).

    Subclasses define the map φ of samples as ``_seen``.
    """

    _parts = ("kernel",)
    kernel: Kernel

    @abstractmethod
    def _seen(self, samples: Samples) -> Samples:
        """Mapped samples."""

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset()  # inner products and distances of the features are others

    def started(self, samples: Samples) -> Self:
        if self.pairwise:
            raise ValueError(
                f"{type(self).__name__}: the columns of a precomputed kernel matrix are samples, "
                "not features; compute the matrix from the features that it should see."
            )
        return super().started(self._seen(samples))

    def values(self, pairs: Pairs) -> Array:
        return self.kernel.values(self._seen_pairs(pairs))

    def self_values(self, samples: Samples) -> Array:
        return self.kernel.self_values(self._seen(samples))

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        return self.kernel.values_gradient(self._seen_pairs(pairs), G)

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return self.kernel.self_values_gradient(self._seen(samples), v)

    def _seen_pairs(self, pairs: Pairs) -> Pairs:
        rows = self._seen(pairs.rows)
        return Pairs(rows, rows if pairs.diagonal else self._seen(pairs.cols))


class Columns(Mapped):
    """Kernel of some of the features, k(x[columns], x'[columns]).

    Products and sums of such kernels suit tables with columns of several kinds.

    Parameters
    ----------
    kernel : kernel of these columns; not a precomputed one.
    columns : list of column numbers, each once.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import RBF, Columns, Hamming
    >>> X = np.array([[0.3, 0.0], [0.5, 1.0], [0.3, 1.0]])  # a number and a category code
    >>> kernel = Columns(RBF(1.0), [0]) * Columns(Hamming(1.0), [1])
    >>> bool(np.allclose(kernel(X), RBF(1.0)(X[:, :1]) * Hamming(1.0)(X[:, 1:])))
    True
    """

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel = kernel
        self.columns = columns

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Free hyper-parameters of the kernel, with column numbers in place of feature indices."""
        own = super().hyperparameters
        return [h if h.feature is None else h.of_feature(self.columns[h.feature]) for h in own]

    def started(self, samples: Samples) -> Self:
        n_features, columns = samples.X.shape[1], np.asarray(self.columns)
        proper = columns.ndim == 1 and columns.dtype.kind in "iu" and columns.size > 0
        if not (proper and columns.min() >= 0 and columns.max() < n_features):
            raise ValueError(
                f"Columns: columns must be column numbers, from 0 to {n_features - 1} here, "
                f"got {self.columns!r}."
            )
        if len(np.unique(columns)) < len(columns):
            raise ValueError(f"Columns: columns must not repeat a number, got {self.columns!r}.")
        return super().started(samples)

    def _seen(self, samples: Samples) -> Samples:
        columns = np.asarray(self.columns)
        center = None if samples.center is None else samples.center[columns]
        return Samples(
            samples.X[:, columns], start=samples.start, center=center, weight=samples.weight
        )
