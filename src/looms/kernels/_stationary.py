"""Stationary kernels, functions of a scaled distance: RBF, Matérn, power-exponential.

Each kernel has one scale, or one for each feature (ARD, automatic relevance determination).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from looms._typing import Array, Matrix
from looms.kernels._base import ParametricKernel
from looms.kernels._hyperparameters import CLOSE_TO_LINEAR, EACH_FOR_ITSELF, Bounds, Parameter
from looms.kernels._profiles import GAUSSIAN, MATERN, Profile, power_exponential
from looms.kernels._samples import (
    Pairs,
    Samples,
    column_dots,
    is_tiny,
    square_norms,
    square_sums,
    squared_distances,
    variances,
)

#: A scaled squared distance below this fraction of the squared norms is differentiated separately.
_CLOSE = 1e-10
_NUMBERS = 1 << 20  # of differences at a time


class Stationary(ParametricKernel):
    """Base class of kernels k(x, x') = φ(s) of a scaled, mostly squared, distance s.

    Subclasses define the `profile` φ. Their parameters are the scale and then, if the profile has
    one, its shape.
    """

    @property
    @abstractmethod
    def profile(self) -> Profile:
        """φ with its derivatives."""

    @abstractmethod
    def scaled(self, pairs: Pairs) -> Array:
        """Scaled distances s, as a new array."""

    @abstractmethod
    def scale_gradient(self, pairs: Pairs, s: Array, G: Array) -> Array:
        """Σ_ij G_ij ∂φ(s_ij)/∂θ for θ the scale, or each of the scales; may overwrite ``s``."""

    def started(self, samples: Samples) -> Self:
        kernel = super().started(samples)
        kernel.profile  # noqa: B018 (raises for a shape that has none)
        return kernel

    def values(self, pairs: Pairs) -> Array:
        return self.profile.value(self.scaled(pairs))

    def self_values(self, samples: Samples) -> Array:
        return np.ones(samples.n_samples)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        free, by_shape = self.free, self.profile.by_shape
        if not free:
            return np.zeros(0)
        s, scale, shape = self.scaled(pairs), np.zeros(0), np.zeros(0)
        if by_shape is not None and self._parameters[1] in free:
            shape = np.array([np.vdot(G, by_shape(s))])
        if self._parameters[0] in free:
            scale = self.scale_gradient(pairs, s, G)
        return np.append(scale, shape)

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return np.zeros(len(self.hyperparameters))


_GAMMA = Parameter("gamma", CLOSE_TO_LINEAR, EACH_FOR_ITSELF)
# At the lower bound a feature is switched off: that is what a scale for each is for.
_GAMMAS = Parameter(
    "gammas",
    at_upper="only exact matches of this feature count: look at its scale",
    per_feature="gamma",
)
_POWER = Parameter(
    "power",
    at_lower="near samples resemble each other hardly more than far ones: try another kernel",
    at_upper="the kernel is as smooth as 'rbf', or 'ard' with a scale for each feature: use that",
    bounds=(0.1, 2.0),
    tried=(1.0, 1.5, 1.9),
)


class Isotropic(Stationary):
    """Base class of kernels φ(gamma d) of a distance d, by default ‖x − x'‖²."""

    #: The quantity of `Pairs` that d is.
    distance: ClassVar[str] = "squared_distances"
    _parameters: ClassVar[tuple[Parameter, ...]] = (_GAMMA,)

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({self.distance})

    def start(self, samples: Samples) -> float:
        mean = self.mean_distance(samples)
        return 1.0 / mean if mean > 0 else 1.0

    def mean_distance(self, samples: Samples) -> float:
        """Weighted mean of d over all pairs; of squares it is twice the sum of the variances."""
        return 2.0 * float(variances(samples.X, samples.weight).sum())

    def scaled(self, pairs: Pairs) -> Array:
        return np.asarray(getattr(pairs, self.distance) * self.number("gamma"))

    def scale_gradient(self, pairs: Pairs, s: Array, G: Array) -> Array:
        W = self.profile.decay(s)
        W *= G
        W *= getattr(pairs, self.distance)
        return np.array([-W.sum()])


class PerFeature(Stationary):
    """Base class of kernels φ(Σ_k gammas_k (x_k − x'_k)²)."""

    _parameters: ClassVar[tuple[Parameter, ...]] = (_GAMMAS,)
    gammas: Sequence[float] | Array | float | None

    def start(self, samples: Samples) -> Array:
        largest = abs(samples.X).max(axis=0)
        largest = largest.toarray().ravel() if sp.issparse(largest) else largest
        tiny = np.flatnonzero(is_tiny(largest))
        if tiny.size:
            raise ValueError(
                f"{type(self).__name__}: feature {tiny[0]} goes only up to {largest[tiny[0]]:.3g} "
                "in absolute value, so its squares vanish: scale it, or leave it out."
            )
        variance = variances(samples.X, samples.weight)
        variance[variance == 0] = 1.0  # of a constant feature any gamma changes nothing
        return np.asarray(1.0 / (2.0 * samples.X.shape[1] * variance))

    def scaled(self, pairs: Pairs) -> Array:
        scale = np.sqrt(np.asarray(self.gammas))
        rows = scaled_columns(pairs.rows.centered, scale)
        cols = rows if pairs.diagonal else scaled_columns(pairs.cols.centered, scale)
        norms = square_norms(rows), square_norms(cols)
        return squared_distances(rows, cols, *norms, diagonal=pairs.diagonal)

    def scale_gradient(self, pairs: Pairs, s: Array, G: Array) -> Array:
        """−Σ_ij W_ij (x_ik − x_jk)² with W = G∘decay for all k, by one matrix product.

        For the few pairs whose distance this product would lose to rounding, and whose decay is
        large, it uses the differences.
        """
        rows, cols = pairs.rows.centered, pairs.cols.centered
        close = None
        if self.profile.steep:
            gammas = np.asarray(self.gammas)
            norm = square_norms(rows, gammas).max() + square_norms(cols, gammas).max()
            close = np.nonzero((s > 0) & (s < _CLOSE * norm))
        W = self.profile.decay(s)
        W *= G
        squares = np.zeros(rows.shape[1])
        if close is not None:
            step = max(1, _NUMBERS // rows.shape[1])
            for first in range(0, len(close[0]), step):
                p, q = (index[first : first + step] for index in close)
                squares += square_sums(rows[p] - cols[q], W[p, q])
            W[close] = 0.0
        squares += square_sums(rows, W.sum(axis=1)) + square_sums(cols, W.sum(axis=0))
        return 2.0 * column_dots(rows, W @ cols) - squares


class RBF(Isotropic):
    """Isotropic Gaussian kernel, k(x, x') = exp(−gamma ‖x − x'‖²).

    Parameters
    ----------
    gamma : positive, scikit-learn's ``gamma``. None means one over the mean squared
        distance between training samples.
    gamma_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import RBF
    >>> RBF(gamma=0.5)(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    profile = GAUSSIAN

    def __init__(self, gamma: float | None = None, gamma_bounds: Bounds = None) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds


class ARD(PerFeature):
    """Anisotropic Gaussian kernel, k(x, x') = exp(−Σ_k gammas_k (x_k − x'_k)²).

    This is automatic relevance determination: a feature whose gamma tends to zero no
    longer matters.

    Parameters
    ----------
    gammas : (n_features,) positive, one number for all features, or None for
        1 / (2 n_features variance_k), which makes the start independent of the
        units of the features.
    gammas_bounds : (low, high) for every feature, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import ARD, RBF
    >>> X = np.array([[0.0, 3.0], [1.0, 5.0], [2.0, 4.0]])
    >>> bool(np.allclose(ARD(gammas=[0.5, 0.5])(X), RBF(gamma=0.5)(X)))
    True
    """

    profile = GAUSSIAN

    def __init__(
        self, gammas: Sequence[float] | Array | float | None = None, gammas_bounds: Bounds = None
    ) -> None:
        self.gammas = gammas
        self.gammas_bounds = gammas_bounds


class Matern(Isotropic):
    """Matérn kernel, a function of s = gamma ‖x − x'‖².

    =====  =======================================
    nu     k(x, x')
    =====  =======================================
    0.5    exp(−√s)
    1.5    (1 + √(3s)) exp(−√(3s))
    2.5    (1 + √(5s) + 5s/3) exp(−√(5s))
    =====  =======================================

    s is the squared distance in units of the length scale 1/√gamma, the ``length_scale`` of
    scikit-learn's ``Matern``. The larger nu, the smoother the functions: they can be
    differentiated fewer than nu times, and `RBF` is the limit of large nu.

    Source: [RW06 eq. 4.16, 4.17].

    Parameters
    ----------
    nu : 0.5, 1.5 or 2.5, not tuned.
    gamma : positive; None means one over the mean squared distance between training samples.
    gamma_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import kernels
    >>> from looms.kernels import Matern
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> theirs = kernels.Matern(length_scale=2.0, nu=1.5)
    >>> bool(np.allclose(Matern(nu=1.5, gamma=1 / 2.0**2)(X), theirs(X)))
    True
    """

    def __init__(
        self, nu: float = 1.5, gamma: float | None = None, gamma_bounds: Bounds = None
    ) -> None:
        self.nu = nu
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    @property
    def profile(self) -> Profile:
        return _matern(self)


class MaternARD(PerFeature):
    """Matérn kernel with a scale for each feature: `Matern` with s = Σ_k gammas_k (x_k − x'_k)².

    Parameters
    ----------
    nu : 0.5, 1.5 or 2.5, not tuned.
    gammas, gammas_bounds : as for `ARD`.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Matern, MaternARD
    >>> X = np.array([[0.0, 3.0], [1.0, 5.0], [2.0, 4.0]])
    >>> bool(np.allclose(MaternARD(2.5, gammas=[0.5, 0.5])(X), Matern(2.5, gamma=0.5)(X)))
    True
    """

    def __init__(
        self,
        nu: float = 1.5,
        gammas: Sequence[float] | Array | float | None = None,
        gammas_bounds: Bounds = None,
    ) -> None:
        self.nu = nu
        self.gammas = gammas
        self.gammas_bounds = gammas_bounds

    @property
    def profile(self) -> Profile:
        return _matern(self)


class PowerExponential(Isotropic):
    """Power-exponential kernel, k(x, x') = exp(−(√gamma ‖x − x'‖)^power).

    With power 2 it is the `RBF` kernel, with power 1 the Matérn kernel with nu = 0.5; the smaller
    the power, the rougher the functions. The length scale of other texts is 1/√gamma. Also known
    as the stable kernel, and as the generalized Laplace kernel.

    Source: [RW06 eq. 4.18], γ-exponential; its γ is our power.

    Parameters
    ----------
    power : at most 2; None means that tuning starts at one.
    gamma : positive; None means one over the mean squared distance between training samples.
    power_bounds : (low, high) for tuning, "fixed", or None for (0.1, 2).
    gamma_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import RBF, PowerExponential
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> bool(np.allclose(PowerExponential(power=2, gamma=0.5)(X), RBF(gamma=0.5)(X)))
    True
    """

    _parameters = (_GAMMA, _POWER)

    def __init__(
        self,
        power: float | None = None,
        gamma: float | None = None,
        power_bounds: Bounds = None,
        gamma_bounds: Bounds = None,
    ) -> None:
        self.power = power
        self.gamma = gamma
        self.power_bounds = power_bounds
        self.gamma_bounds = gamma_bounds

    @property
    def profile(self) -> Profile:
        return power_exponential(self.number("power"))


class PowerExponentialARD(PerFeature):
    """Power-exponential kernel with a scale for each feature.

    k(x, x') = exp(−(Σ_k gammas_k (x_k − x'_k)²)^(power/2)). It is a function of one distance,
    unlike exp(−Σ_k gammas_k |x_k − x'_k|^power), which some other programs use.

    Parameters
    ----------
    power, power_bounds : as for `PowerExponential`.
    gammas, gammas_bounds : as for `ARD`.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import ARD, PowerExponentialARD
    >>> X = np.array([[0.0, 3.0], [1.0, 5.0], [2.0, 4.0]])
    >>> bool(np.allclose(PowerExponentialARD(power=2, gammas=[0.5, 2.0])(X), ARD([0.5, 2.0])(X)))
    True
    """

    _parameters = (_GAMMAS, _POWER)

    def __init__(
        self,
        power: float | None = None,
        gammas: Sequence[float] | Array | float | None = None,
        power_bounds: Bounds = None,
        gammas_bounds: Bounds = None,
    ) -> None:
        self.power = power
        self.gammas = gammas
        self.power_bounds = power_bounds
        self.gammas_bounds = gammas_bounds

    @property
    def profile(self) -> Profile:
        return power_exponential(self.number("power"))


def _matern(kernel: Matern | MaternARD) -> Profile:
    """Profile of a Matérn kernel; ValueError if ``nu`` has none."""
    if not (isinstance(kernel.nu, (int, float, np.number)) and kernel.nu in MATERN):
        raise ValueError(
            f"{type(kernel).__name__}: nu must be 0.5, 1.5 or 2.5, got {kernel.nu!r}; for the "
            "limit of large nu use RBF or ARD."
        )
    return MATERN[float(kernel.nu)]


def scaled_columns(X: Matrix, scale: Array) -> Matrix:
    return X @ sp.diags_array(scale).tocsr() if sp.issparse(X) else X * scale
