"""Kernels of inner products: linear, polynomial, Boolean, Tanimoto."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
import scipy.sparse as sp

from looms._advice import setting
from looms._typing import Array
from looms.kernels._base import Kernel, ParametricKernel
from looms.kernels._hyperparameters import (
    CLOSE_TO_LINEAR,
    EACH_FOR_ITSELF,
    Bounds,
    Parameter,
)
from looms.kernels._samples import Pairs, Samples, largest_value

_LEAST_POWER = -300.0  # log₁₀
_ROUNDING = 1e-12  # below zero, of the largest value


class Linear(Kernel):
    """Linear kernel, k(x, x') = x·x'.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Linear
    >>> Linear()(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5., 11.],
           [11., 25.]])
    """

    uses = frozenset({"dot"})

    def values(self, pairs: Pairs) -> Array:
        return pairs.dot.copy(order="K")

    def self_values(self, samples: Samples) -> Array:
        return samples.square_norms.copy()

    def feature_weights(self, samples: Samples, alpha: Array) -> Array | None:
        return np.asarray(samples.X.T @ alpha) if type(self) is Linear else None


class DotProduct(ParametricKernel):
    """Base class of kernels k(x, x') = f(x·x') with one hyper-parameter."""

    uses = frozenset({"dot"})

    @abstractmethod
    def value(self, dot: Array) -> Array:
        """f, as a new array."""

    @abstractmethod
    def slope(self, dot: Array, G: Array) -> float:
        """Σ G ∂f, the derivative in the hyper-parameter."""

    def values(self, pairs: Pairs) -> Array:
        return self.value(pairs.dot)

    def self_values(self, samples: Samples) -> Array:
        return self.value(samples.square_norms)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        return np.array([self.slope(pairs.dot, G)] if self.free else [])

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return np.array([self.slope(samples.square_norms, v)] if self.free else [])


class Polynomial(DotProduct):
    """Polynomial kernel, k(x, x') = (x·x' + c)^degree.

    Parameters
    ----------
    degree : positive integer: 2 for the quadratic kernel, 3 for the cubic. It is not tuned; to
        choose it, pass several kernels as candidates, such as "polynomial4" by name.
    c : positive offset; a small one gives more weight to the highest powers. None means
        the mean of x·x over the training samples.
    c_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Polynomial
    >>> Polynomial(degree=2, c=1.0)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 36., 144.],
           [144., 676.]])
    """

    _parameters = (
        Parameter(
            "c",
            at_lower="the kernel is close to homogeneous: only the highest powers of the "
            "features count",
            at_upper=CLOSE_TO_LINEAR,
        ),
    )

    def __init__(self, degree: int = 2, c: float | None = None, c_bounds: Bounds = None) -> None:
        self.degree = degree
        self.c = c
        self.c_bounds = c_bounds

    def start(self, samples: Samples) -> float:
        start = mean_square_norm(samples)
        if self.degree * np.log10(start) < _LEAST_POWER:
            raise ValueError(
                f"Polynomial: x·x is {start:.3g} on average, so its power {self.degree} vanishes: "
                "scale the features."
            )
        return start

    def started(self, samples: Samples) -> Polynomial:
        if not (isinstance(self.degree, (int, np.integer)) and self.degree >= 1):
            raise ValueError(f"Polynomial: degree must be a positive integer, got {self.degree!r}.")
        return super().started(samples)

    def value(self, dot: Array) -> Array:
        return _power(dot + self.number("c"), self.degree)

    def slope(self, dot: Array, G: Array) -> float:
        return self.degree * float(np.vdot(G, _power(dot + self.number("c"), self.degree - 1)))


class Boolean(DotProduct):
    """Boolean kernel, k(x, x') = (1 + gamma)^(x·x').

    On binary features it is the inner product over all conjunctions of features, where a
    conjunction of k literals has weight gamma^k. Normalized, it is an RBF kernel.

    Parameters
    ----------
    gamma : positive; None means one over the mean of x·x over the training samples.
    gamma_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Boolean
    >>> Boolean(gamma=1.0)(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    array([[4., 2.],
           [2., 4.]])
    """

    _parameters = (Parameter("gamma", CLOSE_TO_LINEAR, EACH_FOR_ITSELF),)

    def __init__(self, gamma: float | None = None, gamma_bounds: Bounds = None) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    def start(self, samples: Samples) -> float:
        return 1.0 / mean_square_norm(samples)

    def value(self, dot: Array) -> Array:
        K: Array = dot * np.log1p(self.number("gamma"))
        return np.exp(K, out=K)

    def slope(self, dot: Array, G: Array) -> float:
        K = self.value(dot)
        K *= dot
        return float(np.vdot(G, K)) / (1.0 + self.number("gamma"))


class Tanimoto(Kernel):
    """Kernel of fingerprints, k(x, x') = x·x' / (x·x + x'·x' − x·x').

    Of zeros and ones it is the number of ones that two samples share over the number that either
    has, the similarity of Jaccard and Tanimoto; of counts and other nonnegative numbers the same
    formula holds. k(x, x) = 1, also of samples of zeros, as in SciPy and GAUCHE;
    these resemble only each other. It has nothing to tune.

    Source: [RSSB05]; for any real numbers it is positive semi-definite [TBSH23]. Negative ones are
    refused all the same: they tell that fingerprints were centered, which changes what is compared.

    Raises
    ------
    ValueError
        In a fit, if some feature is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Tanimoto
    >>> Tanimoto()(np.array([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    uses = frozenset({"dot"})

    def started(self, samples: Samples) -> Self:
        least = (samples.X.data if sp.issparse(samples.X) else samples.X).min(initial=0.0)
        if least < -_ROUNDING * largest_value(samples.X):
            unscaled = setting("no scales", text="preprocess=None and no StandardScaler")
            raise ValueError(
                "Tanimoto compares fingerprints, zeros and ones or counts, but a feature goes down "
                f"to {least:.3g}. If they were scaled, give them as they are, by {unscaled}."
            )
        return self

    def values(self, pairs: Pairs) -> Array:
        either = np.add.outer(pairs.cols.square_norms, pairs.rows.square_norms).T
        either -= pairs.dot
        return np.divide(pairs.dot, either, out=np.ones_like(either), where=either != 0)

    def self_values(self, samples: Samples) -> Array:
        return np.ones(samples.n_samples)


def mean_square_norm(samples: Samples) -> float:
    """Weighted mean of x·x, or one if all samples are zero."""
    mean = float(np.average(samples.square_norms, weights=samples.weight))
    return mean if mean > 0 else 1.0


def _power(base: Array, exponent: int) -> Array:
    """base^exponent for a small nonnegative integer exponent; overwrites ``base``.

    It multiplies repeatedly, as NumPy's power takes 20 times as long.
    """
    if exponent == 0:
        base.fill(1.0)
        return base
    if exponent == 1:
        return base
    factor = base.copy(order="K")
    for _ in range(exponent - 1):
        base *= factor
    return base
