"""Kernel of the ranks of the features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from looms._typing import Array
from looms.kernels._base import Kernel
from looms.kernels._columns import Mapped
from looms.kernels._samples import Samples, dense

#: Quantiles of a feature between which its scores are interpolated.
_KNOTS = 256


class Ranked(Mapped):
    """Kernel of the normal scores of the features, k(φ(x), φ(x')).

    φ maps each feature to quantiles of a normal distribution with the mean and variance of the
    feature, by a monotone piecewise linear function; equal values share the mean of their
    ranks. So outliers and long tails lose their influence, and features with two values, such as
    0/1 codes of a category, stay as they are. Outside the range of the training samples φ is
    constant.

    With ``kernel=["rbf", "ranked_rbf"]`` as candidates, leave-one-out decides whether distances
    or ranks matter.

    Parameters
    ----------
    kernel : kernel of the scores; not a precomputed one.
    scores : (2, n_knots, n_features) knots of each feature in increasing order, and the values
        of φ there; None means up to 256 quantiles of the training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import ARD, Ranked
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [1000.0, 0.0]])
    >>> bool(np.allclose(Ranked(ARD())(X), Ranked(ARD())(np.log(X + 1.0))))
    True
    """

    def __init__(self, kernel: Kernel, scores: Any = None) -> None:
        self.kernel = kernel
        self.scores = scores

    def started(self, samples: Samples) -> Self:
        n_features = samples.X.shape[1]
        scores = _normal_scores(samples) if self.scores is None else np.asarray(self.scores, float)
        if not (scores.ndim == 3 and scores.shape[::2] == (2, n_features) and scores.size):
            raise ValueError(
                f"Ranked: scores must have shape (2, n_knots, {n_features}), got {scores.shape}."
            )
        if not (np.isfinite(scores).all() and (np.diff(scores, axis=1) >= 0).all()):
            raise ValueError("Ranked: scores must be finite numbers that do not decrease.")
        return super(Ranked, self._with_arguments(scores=scores)).started(samples)

    def _seen(self, samples: Samples) -> Samples:
        center = None if samples.center is None else self._scores_of(samples.center[None])[0]
        X = self._scores_of(dense(samples.X))
        return Samples(X, start=samples.start, center=center, weight=samples.weight)

    def _scores_of(self, X: Array) -> Array:
        columns = zip(X.T, np.moveaxis(self.scores, 2, 0), strict=True)
        return np.column_stack([np.interp(column, *knots) for column, knots in columns])


def _normal_scores(samples: Samples) -> Array:
    """Knots of each feature and their normal scores, with the feature's mean and variance."""
    X, share = dense(samples.X), samples.weight / samples.weight.sum()
    scores = np.empty((2, min(_KNOTS, len(X)), X.shape[1]))
    for k, column in enumerate(X.T):
        values, place = np.unique(column, return_inverse=True)
        mass = np.asarray(np.bincount(place, weights=share), dtype=np.float64)
        knots = np.linspace(0, len(values) - 1, scores.shape[1]).round().astype(int)
        normal = ndtri((np.cumsum(mass) - mass / 2.0)[knots])
        mean, deviation = _moments(values, mass)
        of_normal = _moments(np.interp(values, values[knots], normal), mass)
        if len(values) > 1:
            normal = (normal - of_normal[0]) * (deviation / of_normal[1])
        scores[:, :, k] = values[knots], mean + normal
    return scores


def _moments(values: Array, mass: Array) -> tuple[float, float]:
    """Mean and standard deviation of values with probabilities ``mass``."""
    mean = float(mass @ values)
    return mean, float(np.sqrt(mass @ np.square(values - mean)))
