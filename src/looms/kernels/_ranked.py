"""Kernel of the ranks of the features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from looms._typing import Array
from looms.kernels._base import Composite, Kernel
from looms.kernels._samples import Pairs, Samples, dense

#: Quantiles of a feature between which its scores are interpolated.
_KNOTS = 256


class Ranked(Composite):
    """Kernel of the normal scores of the features, k(φ(x), φ(x')).

    φ brings each feature, by a monotone piecewise linear function, to the quantiles of a normal
    distribution of the mean and variance of the feature; equal values share the mean of their
    ranks. So outliers and long tails no longer count, and features of two values, such as zeros
    and ones for a category, stay as they are. Beyond the training samples φ is constant.

    Among the candidates of a machine, beside the kernel itself, it leaves to leave-one-out
    whether distances or ranks matter: ``kernel=["rbf", "ranked_rbf"]``.

    Parameters
    ----------
    kernel : kernel of the scores; not a precomputed one.
    scores : (2, n_knots, n_features) knots of each feature in increasing order, and their values
        of φ; None takes up to 256 quantiles of the training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import ARD, Ranked
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [1000.0, 0.0]])
    >>> bool(np.allclose(Ranked(ARD())(X), Ranked(ARD())(np.log(X + 1.0))))
    True
    """

    _parts = ("kernel",)

    def __init__(self, kernel: Kernel, scores: Any = None) -> None:
        self.kernel = kernel
        self.scores = scores

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset()  # inner products and distances of the scores are others

    def started(self, samples: Samples) -> Self:
        if self.pairwise:
            raise ValueError(
                "Ranked: a precomputed kernel matrix has no features; compute it from the ranks."
            )
        n_features = samples.X.shape[1]
        scores = _normal_scores(samples) if self.scores is None else np.asarray(self.scores, float)
        if not (scores.ndim == 3 and scores.shape[::2] == (2, n_features) and scores.size):
            raise ValueError(
                f"Ranked: scores must have the shape (2, n_knots, {n_features}), got "
                f"{scores.shape}."
            )
        if not (np.isfinite(scores).all() and (np.diff(scores, axis=1) >= 0).all()):
            raise ValueError("Ranked: scores must be finite numbers that do not decrease.")
        ranked = self._with_arguments(scores=scores)
        return super(Ranked, ranked).started(ranked._ranked(samples))

    def values(self, pairs: Pairs) -> Array:
        return self.kernel.values(self._ranked_pairs(pairs))

    def self_values(self, samples: Samples) -> Array:
        return self.kernel.self_values(self._ranked(samples))

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        return self.kernel.values_gradient(self._ranked_pairs(pairs), G)

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return self.kernel.self_values_gradient(self._ranked(samples), v)

    def _ranked(self, samples: Samples) -> Samples:
        center = None if samples.center is None else self._scores_of(samples.center[None])[0]
        X = self._scores_of(dense(samples.X))
        return Samples(X, start=samples.start, center=center, weight=samples.weight)

    def _ranked_pairs(self, pairs: Pairs) -> Pairs:
        rows = self._ranked(pairs.rows)
        return Pairs(rows, rows if pairs.diagonal else self._ranked(pairs.cols))

    def _scores_of(self, X: Array) -> Array:
        columns = zip(X.T, np.moveaxis(self.scores, 2, 0), strict=True)
        return np.column_stack([np.interp(column, *knots) for column, knots in columns])


def _normal_scores(samples: Samples) -> Array:
    """Knots of each feature and their normal scores, of its own mean and variance."""
    X, share = dense(samples.X), samples.weight / samples.weight.sum()
    scores = np.empty((2, min(_KNOTS, len(X)), X.shape[1]))
    for k, column in enumerate(X.T):
        values, place = np.unique(column, return_inverse=True)
        mass = np.bincount(place, weights=share)
        knots = np.linspace(0, len(values) - 1, scores.shape[1]).round().astype(int)
        normal = ndtri((np.cumsum(mass) - mass / 2.0)[knots])
        mean, deviation = _moments(values, mass)
        of_normal = _moments(np.interp(values, values[knots], normal), mass)
        if len(values) > 1:
            normal = (normal - of_normal[0]) * (deviation / of_normal[1])
        scores[:, :, k] = values[knots], mean + normal
    return scores


def _moments(values: Array, mass: Array) -> tuple[float, float]:
    """Mean and standard deviation of values of a probability."""
    mean = float(mass @ values)
    return mean, float(np.sqrt(mass @ np.square(values - mean)))
