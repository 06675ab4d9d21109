"""Kernels of categories: functions of the columns in which two samples differ."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from looms._typing import AnyArray, Array
from looms.kernels._hyperparameters import EACH_FOR_ITSELF, Bounds, Parameter
from looms.kernels._profiles import GAUSSIAN
from looms.kernels._samples import Pairs, Samples, dense
from looms.kernels._stationary import Stationary


class Categorical(Stationary):
    """Base class of the kernels exp(−Σ_k w_k [x_k ≠ x'_k])."""

    profile = GAUSSIAN

    @abstractmethod
    def weight_of(self, column: int) -> float:
        """w_k of a column."""

    def scaled(self, pairs: Pairs) -> Array:
        s = np.zeros((pairs.rows.n_samples, pairs.cols.n_samples), order="F")
        for k, differ in enumerate(_differences(pairs)):
            s += self.weight_of(k) * differ
        return s

    def scale_gradient(self, pairs: Pairs, s: Array, G: Array) -> Array:
        W = self.profile.decay(s)
        W *= G
        sums = [-np.vdot(W.T, differ.T) for differ in _differences(pairs)]  # in order of memory
        return np.array(sums if self._parameters[0].per_feature else [np.sum(sums)])


class Hamming(Categorical):
    """Kernel of categories, k(x, x') = exp(−weight Σ_k [x_k ≠ x'_k]).

    The features are codes of categories, as scikit-learn's ``OrdinalEncoder`` produces them; all
    that counts is whether two codes are equal. Give missing values a code of their own
    (``encoded_missing_value``), and likewise categories that did not occur in training. If the
    categories are one-hot encoded instead, the `RBF` kernel with half the weight is the same
    kernel.

    Source: a diffusion kernel [KL02].

    Parameters
    ----------
    weight : positive; None means one over the mean number of columns in which training samples
        differ.
    weight_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Hamming
    >>> Hamming(weight=1.0)(np.array([[0, 2, 1], [0, 1, 1], [1, 1, 0]])).round(4)
    array([[1.    , 0.3679, 0.0498],
           [0.3679, 1.    , 0.1353],
           [0.0498, 0.1353, 1.    ]])
    """

    _parameters = (
        Parameter(
            "weight",
            at_lower="the categories hardly count: leave these columns out",
            at_upper=EACH_FOR_ITSELF,
        ),
    )

    def __init__(self, weight: float | None = None, weight_bounds: Bounds = None) -> None:
        self.weight = weight
        self.weight_bounds = weight_bounds

    def start(self, samples: Samples) -> float:
        mean = float(_mean_differences(samples).sum())
        return 1.0 / mean if mean > 0 else 1.0

    def weight_of(self, column: int) -> float:
        return self.number("weight")


class HammingARD(Categorical):
    """Kernel of categories with a weight for each column, exp(−Σ_k weights_k [x_k ≠ x'_k]).

    Parameters
    ----------
    weights : (n_features,) positive, one number for all columns, or None for one over
        n_features times the share of pairs of training samples that differ in the column.
    weights_bounds : (low, high) for every column, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Hamming, HammingARD
    >>> X = np.array([[0, 2], [0, 1], [1, 1]])
    >>> bool(np.allclose(HammingARD(weights=[0.5, 0.5])(X), Hamming(weight=0.5)(X)))
    True
    """

    _parameters = (
        Parameter(
            "weights",
            at_upper="only samples of one category resemble each other: is the column an ID?",
            per_feature="weight",
        ),
    )

    def __init__(
        self, weights: Sequence[float] | Array | float | None = None, weights_bounds: Bounds = None
    ) -> None:
        self.weights = weights
        self.weights_bounds = weights_bounds

    def start(self, samples: Samples) -> Array:
        means = _mean_differences(samples)
        return np.asarray(1.0 / (len(means) * np.where(means > 0, means, 1.0)))

    def weight_of(self, column: int) -> float:
        return float(np.asarray(self.weights)[column])


def _differences(pairs: Pairs) -> Iterator[AnyArray]:
    """Where row and column samples differ in each column."""
    rows, cols = dense(pairs.rows.X), dense(pairs.cols.X)
    for k in range(rows.shape[1]):
        yield (cols[:, k, None] != rows[:, k]).T


def _mean_differences(samples: Samples) -> Array:
    """Share of pairs of samples that differ in each column, self-pairs included."""
    share = samples.weight / samples.weight.sum()
    codes = (np.unique(column, return_inverse=True)[1] for column in dense(samples.X).T)
    equal = [np.square(np.bincount(code, weights=share)).sum() for code in codes]
    return np.where(np.array(equal) < 1.0 - 1e-12, 1.0 - np.array(equal), 0.0)
