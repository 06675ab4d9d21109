"""Base classes of kernels, and their sums and products.

To add a kernel, subclass `Kernel` and write its formula (`values`,
`self_values`) and, if it has hyper-parameters, their contraction
(`values_gradient`, `self_values_gradient`) and the starting values for tuning (`start`).
Gram matrices, sums, products, normalization, sparse input, blocks and nested
parameters follow from these. `ParametricKernel` keeps track of hyper-parameters.
For a kernel of a scaled distance, subclass `looms.kernels._stationary.Stationary`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from looms._typing import Array, Matrix
from looms.kernels._hyperparameters import Bounds, Hyperparameter, Parameter, concrete
from looms.kernels._samples import Pairs, Samples, samples_of


class Kernel(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of kernels, positive semi-definite functions of two samples.

    ``kernel(X)`` is the Gram matrix and ``kernel(X, Y)`` a cross-Gram matrix.
    Kernels can be added and multiplied, with each other and with positive
    numbers. Only ``set_params`` changes an instance in place.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> kernel = RBF(gamma=1.0)
    >>> kernel(X, X[:2]).shape, kernel.diag(X)
    ((3, 2), array([1., 1., 1.]))
    >>> kernel.contract(X, np.ones((3, 3))).round(4)  # ∂/∂gamma of the sum of all entries
    array([-1.618])
    """

    #: NumPy leaves the operators to us: ``np.float64(2.0) * kernel`` is a kernel.
    __array_ufunc__ = None

    #: Quantities of `Pairs` that the kernel depends on; they are computed
    #: once and kept while hyper-parameters are tuned.
    uses: ClassVar[frozenset[str]] = frozenset()

    #: Whether the samples are rows of a kernel matrix, with a column for each training sample.
    pairwise: ClassVar[bool] = False

    # The formula ---------------------------------------------------------

    @abstractmethod
    def values(self, pairs: Pairs) -> Array:
        """k(x_i, x_j) for a block of pairs, as a new array."""

    @abstractmethod
    def self_values(self, samples: Samples) -> Array:
        """k(x_i, x_i), (n_samples,)."""

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        """Σ_ij G_ij ∂k(x_i, x_j)/∂θ for every free hyper-parameter θ, (p,)."""
        return np.zeros(0)

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        """Σ_i v_i ∂k(x_i, x_i)/∂θ for every free hyper-parameter θ, (p,)."""
        return np.zeros(0)

    def feature_weights(self, samples: Samples, alpha: Array) -> Array | None:
        """w, (n_features,) or (n_features, t), with Σ_j α_j k(x_j, x) = w·x; None if not linear."""
        return None

    # Hyper-parameters ----------------------------------------------------

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Free hyper-parameters, in the order of `theta`."""
        return []

    def started(self, samples: Samples) -> Self:
        """This kernel with every value that is None set from the samples."""
        return self

    def with_values(self, values: Sequence[float] | Array) -> Self:
        """This kernel with new values of its free hyper-parameters, in natural units."""
        return self

    @property
    def theta(self) -> Array:
        """log₂ of the free hyper-parameters, (p,)."""
        return np.array([h.log2 for h in self.hyperparameters], dtype=np.float64)

    def with_theta(self, theta: Array) -> Self:
        """This kernel with ``theta`` as log₂ of its free hyper-parameters."""
        return self.with_values(np.exp2(np.asarray(theta, dtype=np.float64)))

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the constructor's arguments, read once: a search makes many copies."""
        return list(super()._get_param_names())

    def _with_arguments(self, **changes: Any) -> Self:
        """Copy with other constructor arguments."""
        return type(self)(**{**self.get_params(deep=False), **changes})

    # The friendly face ---------------------------------------------------

    def __call__(self, X: Matrix, Y: Matrix | None = None) -> Array:
        """Kernel matrix k(x_i, y_j), (n_samples, m_samples); ``Y`` defaults to ``X``.

        Parameters
        ----------
        X, Y : (n_samples, n_features), (m_samples, n_features) dense or sparse.
        """
        rows, cols = samples_of(X, Y)
        kernel = self.started(cols)
        return kernel.values(Pairs(rows, cols))

    def diag(self, X: Matrix) -> Array:
        """Diagonal of ``kernel(X)``, (n_samples,), without computing the other entries."""
        samples, _ = samples_of(X, None)
        return self.started(samples).self_values(samples)

    def contract(self, X: Matrix, G: Array) -> Array:
        """Σ_ij G_ij ∂k(x_i, x_j)/∂θ, computed without an (n, n, p) tensor.

        Parameters
        ----------
        X : (n_samples, n_features) dense or sparse.
        G : (n_samples, n_samples), any matrix.

        Returns
        -------
        gradient : (p,) in natural units, in the order of `hyperparameters`.

        Examples
        --------
        >>> import numpy as np
        >>> from looms.kernels import RBF
        >>> X = np.array([[0.0], [1.0]])
        >>> RBF(gamma=2.0).contract(X, np.ones((2, 2))) / np.exp(-2.0)
        array([-2.])
        """
        samples, _ = samples_of(X, None)
        return self.started(samples).values_gradient(
            Pairs(samples, samples), np.asarray(G, dtype=np.float64)
        )

    def __add__(self, other: Kernel | float) -> Kernel:
        return Sum(self, as_term(other))

    def __radd__(self, other: float) -> Kernel:
        return Sum(as_term(other), self)

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, as_term(other))

    def __rmul__(self, other: float) -> Kernel:
        return Product(as_term(other), self)


class ParametricKernel(Kernel):
    """Base class of kernels with their own hyper-parameters.

    Subclasses list them in ``_parameters``; their ``__init__`` takes each one and its bounds.
    At most one of them may take its starting value from the samples.

    Examples
    --------
    >>> from looms.kernels import RBF, ParametricKernel
    >>> issubclass(RBF, ParametricKernel), [parameter.name for parameter in RBF().free]
    (True, ['gamma'])
    """

    _parameters: ClassVar[tuple[Parameter, ...]]

    @abstractmethod
    def start(self, samples: Samples) -> float | Array:
        """Starting value, from the samples alone, of the parameter that has no default one."""

    def number(self, name: str) -> float:
        """Value of a scalar parameter in natural units; ValueError if it is None."""
        return concrete(getattr(self, name), name)

    @property
    def free(self) -> list[Parameter]:
        """Parameters that are tuned."""
        return [parameter for parameter in self._parameters if not parameter.is_fixed(self)]

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        return [h for parameter in self.free for h in parameter.hyperparameters(self)]

    def started(self, samples: Samples) -> Self:
        open_values = {
            parameter.name: parameter.tried[0] if parameter.tried else self.start(samples)
            for parameter in self._parameters
            if getattr(self, parameter.name) is None
        }
        kernel = self._with_arguments(**open_values)
        n_features = samples.X.shape[1]
        return kernel._with_arguments(
            **{p.name: p.checked(kernel, n_features) for p in self._parameters}
        )

    def with_values(self, values: Sequence[float] | Array) -> Self:
        free, numbers = self.free, iter(np.asarray(values, dtype=np.float64))
        n_features = len(values) - len(free) + 1  # of the parameter that has one for each
        return self._with_arguments(
            **{
                p.name: np.array(list(islice(numbers, n_features)))
                if p.per_feature
                else float(next(numbers))
                for p in free
            }
        )


class Constant(ParametricKernel):
    """Constant kernel, k(x, x') = value, which gives a kernel its weight in a sum.

    ``0.5 * RBF() + Linear()`` is ``Constant(0.5) * RBF() + Linear()``.

    Parameters
    ----------
    value : positive number; None means one.
    value_bounds : (low, high) for tuning, "fixed", or None for wide bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Constant, Linear
    >>> X = np.array([[1.0], [2.0]])
    >>> bool(np.all((0.5 * Linear())(X) == (Constant(0.5) * Linear())(X)))
    True
    """

    _parameters = (
        Parameter(
            "value",
            at_lower="this term hardly counts: leave it out",
            at_upper="the other terms hardly count: leave them out",
        ),
    )

    def __init__(self, value: float | None = 1.0, value_bounds: Bounds = None) -> None:
        self.value = value
        self.value_bounds = value_bounds

    def start(self, samples: Samples) -> float:
        return 1.0

    def values(self, pairs: Pairs) -> Array:
        return np.full(
            (pairs.rows.n_samples, pairs.cols.n_samples), self.number("value"), order="F"
        )

    def self_values(self, samples: Samples) -> Array:
        return np.full(samples.n_samples, self.number("value"))

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        return np.array([G.sum()] if self.free else [])

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return np.array([v.sum()] if self.free else [])


class Composite(Kernel):
    """Hyper-parameters of a kernel made of the kernels named in ``_parts``."""

    _parts: ClassVar[tuple[str, ...]]

    @property
    def parts(self) -> list[Kernel]:
        return [getattr(self, name) for name in self._parts]

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset().union(*(part.uses for part in self.parts))

    @property
    def pairwise(self) -> bool:  # type: ignore[override]
        return any(part.pairwise for part in self.parts)

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        return [
            replace(h, name=f"{name}__{h.name}")
            for name, part in zip(self._parts, self.parts, strict=True)
            for h in part.hyperparameters
        ]

    def started(self, samples: Samples) -> Self:
        if len(_kinds(self)) > 1:
            raise ValueError(
                f"{type(self).__name__}: a precomputed kernel and a kernel of features do not "
                "combine, as one takes rows of a kernel matrix and the other takes features; "
                "compute both matrices and combine those."
            )
        return self._with_parts([part.started(samples) for part in self.parts])

    def with_values(self, values: Sequence[float] | Array) -> Self:
        parts, first = [], 0
        for part in self.parts:
            size = len(part.hyperparameters)
            parts.append(part.with_values(values[first : first + size]))
            first += size
        return self._with_parts(parts)

    def _with_parts(self, parts: list[Kernel]) -> Self:
        return self._with_arguments(**dict(zip(self._parts, parts, strict=True)))


class Sum(Composite):
    """Sum of two kernels, k(x, x') = k1(x, x') + k2(x, x').

    Parameters
    ----------
    k1, k2 : kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import RBF, Linear
    >>> X = np.array([[1.0], [2.0]])
    >>> bool(np.allclose((RBF(1.0) + Linear())(X), RBF(1.0)(X) + Linear()(X)))
    True
    """

    _parts = ("k1", "k2")

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1 = k1
        self.k2 = k2

    def values(self, pairs: Pairs) -> Array:
        K = self.k1.values(pairs)
        K += self.k2.values(pairs)
        return K

    def self_values(self, samples: Samples) -> Array:
        return self.k1.self_values(samples) + self.k2.self_values(samples)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        return np.concatenate([part.values_gradient(pairs, G) for part in self.parts])

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return np.concatenate([part.self_values_gradient(samples, v) for part in self.parts])


class Product(Composite):
    """Product of two kernels, k(x, x') = k1(x, x') k2(x, x').

    Parameters
    ----------
    k1, k2 : kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import RBF, Linear
    >>> X = np.array([[1.0], [2.0]])
    >>> bool(np.allclose((RBF(1.0) * Linear())(X), RBF(1.0)(X) * Linear()(X)))
    True
    """

    _parts = ("k1", "k2")

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1 = k1
        self.k2 = k2

    def values(self, pairs: Pairs) -> Array:
        K = self.k1.values(pairs)
        K *= self.k2.values(pairs)
        return K

    def self_values(self, samples: Samples) -> Array:
        return self.k1.self_values(samples) * self.k2.self_values(samples)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        G1, G2 = G * self.k2.values(pairs), G * self.k1.values(pairs)
        return np.concatenate(
            [self.k1.values_gradient(pairs, G1), self.k2.values_gradient(pairs, G2)]
        )

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        v1, v2 = v * self.k2.self_values(samples), v * self.k1.self_values(samples)
        return np.concatenate(
            [self.k1.self_values_gradient(samples, v1), self.k2.self_values_gradient(samples, v2)]
        )


def _kinds(kernel: Kernel) -> set[bool]:
    """Values of `pairwise` of the kernels in ``kernel``, without constants."""
    if isinstance(kernel, Composite):
        return set().union(*map(_kinds, kernel.parts))
    return set() if isinstance(kernel, Constant) else {kernel.pairwise}


def as_term(term: Kernel | float) -> Kernel:
    """A kernel unchanged, or a positive number as a constant kernel."""
    if isinstance(term, Kernel):
        return term
    if isinstance(term, (int, float, np.number)) and term > 0:
        return Constant(float(term))
    raise TypeError(f"Kernels combine with kernels and positive numbers only, got {term!r}.")
