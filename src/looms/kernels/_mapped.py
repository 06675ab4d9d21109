"""Kernels around another one: normalized, of some columns, of ranks, of weighted features."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from looms._typing import Array
from looms.kernels._base import Composite, Kernel
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._samples import Pairs, Samples, dense
from looms.kernels._stationary import Isotropic, scaled_columns

#: Quantiles of a feature between which its scores are interpolated.
_KNOTS = 256
#: Scaled squared distance below which samples count as copies, which give no direction: the
#: gradients of kernels with a cusp would outweigh all others there.
_COPIES = 1e-6
_ROWS = 256  # of gradients at a time


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
        K *= self.inverse_norms(pairs.rows)[:, None]
        K *= self.inverse_norms(pairs.cols)
        return K

    def self_values(self, samples: Samples) -> Array:
        return (self.kernel.self_values(samples) > 0).astype(np.float64)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        """Contracted gradient by the quotient rule.

        ∂k̂_ij = ∂k_ij/√(k_ii k_jj) − ½ k̂_ij (∂k_ii/k_ii + ∂k_jj/k_jj).
        """
        rows, cols = self.inverse_norms(pairs.rows), self.inverse_norms(pairs.cols)
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

    def inverse_norms(self, samples: Samples) -> Array:
        """1 / √k(x, x) of the kernel inside, (n_samples,); zero where that is zero."""
        squares = self.kernel.self_values(samples)
        positive = squares > 0
        return np.where(positive, 1.0 / np.sqrt(np.where(positive, squares, 1.0)), 0.0)


class Mapped(Composite):
    """Base class of kernels of mapped features, k(φ(x), φ(x')).

    Subclasses define the map φ of samples as ``seen``.
    """

    _parts = ("kernel",)
    kernel: Kernel

    @abstractmethod
    def seen(self, samples: Samples) -> Samples:
        """Mapped samples."""

    def _seen(self, samples: Samples) -> Samples:
        """Mapped samples, which these keep for kernels with the same map: those of a search, and of
        predictions with the rows of the fit."""
        arguments = self.get_params(deep=False)
        known = type(self), *(arguments[name] for name in arguments if name not in self._parts)
        kept = samples.mapped  # once: another thread may replace it
        if kept is None or any(map(operator.is_not, kept[0], known)):
            kept = samples.mapped = known, self.seen(samples)
        return kept[1]

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset()  # inner products and distances of the features are others

    def started(self, samples: Samples) -> Self:
        if self.pairwise:
            raise ValueError(
                f"{type(self).__name__}: the columns of a precomputed kernel matrix are samples, "
                "not features; compute the matrix from the features that it should see."
            )
        return super().started(self.seen(samples))

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

    def seen(self, samples: Samples) -> Samples:
        columns = np.asarray(self.columns)
        center = None if samples.center is None else samples.center[columns]
        return Samples(
            samples.X[:, columns], start=samples.start, center=center, weight=samples.weight
        )


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

    def seen(self, samples: Samples) -> Samples:
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


class Weighted(Mapped):
    """Kernel of weighted features, k(√w ∘ x, √w ∘ x').

    If the weights are None, a gradient search learns them, for kernels of distances: it tunes
    ``kernel`` by itself, takes the gradients of that model f,

        w_k = c (Σ_i ζ_i (∂f(x_i)/∂x_k)²)^½, with c such that their mean is one,

    and tunes ``kernel`` again on the weighted features. The search has only few numbers, so it
    overfits the criterion less than a scale for each feature.

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
    >>> from looms import KernelRegressor
    >>> from looms.kernels import ARD, RBF, Weighted
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> bool(np.allclose(Weighted(RBF(0.5), [0.4, 1.6])(X), ARD([0.2, 0.8])(X)))
    True

    The second feature does not matter here:

    >>> model = KernelRegressor(Weighted(RBF())).fit(X, np.sin(2 * X[:, 0]))
    >>> bool(model.kernel_.weights[0] > 10 * model.kernel_.weights[1])
    True
    """

    def __init__(self, kernel: Kernel, weights: Array | None = None) -> None:
        self.kernel = kernel
        self.weights = weights

    def started(self, samples: Samples) -> Self:
        if self.weights is None:
            raise ValueError(
                "Weighted: weights are None. KernelClassifier and KernelRegressor learn them by "
                "gradient search, unless this kernel is part of another; elsewhere pass a number "
                "for each feature."
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
        """This kernel with weights from the gradients of the model f(x) = Σ_j α_j k(x_j, x).

        ∂f(x)/∂x = 2 gamma Σ_j α_j d(s_j) (x_j − x) with the decay d of the profile and the scaled
        squared distances s. Gradients of several outputs are pooled. If all gradients vanish,
        every weight is one.

        Parameters
        ----------
        tuned : k, which is ``kernel`` with other values.
        samples : (n, n_features) samples of the model, with weights ζ.
        alpha : (n,) or (n, t) dual coefficients.

        Raises
        ------
        ValueError
            If k is not a function of ‖x − x'‖.
        """
        if not (isinstance(tuned, Isotropic) and tuned.distance == "squared_distances"):
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

    def seen(self, samples: Samples) -> Samples:
        scale = np.sqrt(np.asarray(self.weights))
        center = None if samples.center is None else samples.center * scale
        X = scaled_columns(samples.X, scale)
        return Samples(X, start=samples.start, center=center, weight=samples.weight)
