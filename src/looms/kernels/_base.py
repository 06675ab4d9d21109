"""What every kernel offers: values, a contraction with its derivatives, hyper-parameters.

To add a kernel, subclass `Kernel` and write its formula (`values`,
`self_values`) and, if it has hyper-parameters, their contraction
(`values_gradient`, `self_values_gradient`) and where tuning starts (`start`).
Gram matrices, sums, products, normalisation, sparse input, blocks and nesting of
parameters follow from these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from looms._typing import Array, Matrix
from looms.kernels._samples import Pairs, Samples

Bounds: TypeAlias = tuple[float, float] | Literal["fixed"] | None


@dataclass(frozen=True)
class Hyperparameter:
    """One positive number that tuning may change.

    Attributes
    ----------
    name : as in ``get_params``, with an index where the parameter is a vector.
    value : in natural units; None while it waits for the data.
    bounds : natural units; None means wide bounds around the start.
    at_lower, at_upper : what a value on that bound means and what to do about it;
        empty where it is nothing to worry about.
    """

    name: str
    value: float | None
    bounds: tuple[float, float] | None
    at_lower: str = ""
    at_upper: str = ""


class Kernel(BaseEstimator, ABC):  # type: ignore[misc]
    """A positive semi-definite function of two samples.

    Call it for a Gram matrix, ``kernel(X)``, or a cross-Gram matrix,
    ``kernel(X, Y)``. Kernels add and multiply, with each other and with positive
    numbers. Instances are values: nothing here changes one in place but
    ``set_params``.
    """

    #: Quantities of `Pairs` that the kernel is a function of; they are computed
    #: once and kept while hyper-parameters are tuned.
    uses: ClassVar[frozenset[str]] = frozenset()

    #: Whether the samples are rows of a kernel matrix, one column a training sample.
    pairwise: ClassVar[bool] = False

    # The formula ---------------------------------------------------------

    @abstractmethod
    def values(self, pairs: Pairs) -> Array:
        """k(x_i, x_j) for a block of pairs, in an array of its own."""

    @abstractmethod
    def self_values(self, samples: Samples) -> Array:
        """k(x_i, x_i), (n_samples,)."""

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        """Σ_ij G_ij ∂k(x_i, x_j)/∂θ for every free hyper-parameter θ, (p,)."""
        return np.zeros(0)

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        """Σ_i v_i ∂k(x_i, x_i)/∂θ for every free hyper-parameter θ, (p,)."""
        return np.zeros(0)

    # Hyper-parameters ----------------------------------------------------

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The free ones, in the order of `theta`."""
        return []

    def started(self, samples: Samples) -> Self:
        """This kernel with every value that waits for the data taken from the data."""
        return self

    def with_values(self, values: Sequence[float] | Array) -> Self:
        """This kernel with other values of its free hyper-parameters, natural units."""
        return self

    @property
    def theta(self) -> Array:
        """log₂ of the free hyper-parameters, (p,)."""
        return np.log2([_concrete(h) for h in self.hyperparameters], dtype=np.float64)

    def with_theta(self, theta: Array) -> Self:
        """This kernel at ``theta``, log₂ of its free hyper-parameters."""
        return self.with_values(np.exp2(np.asarray(theta, dtype=np.float64)))

    # The friendly face ---------------------------------------------------

    def __call__(self, X: Matrix, Y: Matrix | None = None) -> Array:
        """Kernel matrix k(x_i, y_j), (n_samples, m_samples); ``Y`` is ``X`` unless given.

        Parameters
        ----------
        X, Y : (n_samples, n_features), (m_samples, n_features) dense or sparse.
        """
        rows, cols = samples_of(X, Y)
        kernel = self.started(cols)
        return kernel.values(Pairs(rows, cols))

    def diag(self, X: Matrix) -> Array:
        """Diagonal of ``kernel(X)`` without the rest, (n_samples,)."""
        samples, _ = samples_of(X, None)
        return self.started(samples).self_values(samples)

    def contract(self, X: Matrix, G: Array) -> Array:
        """Σ_ij G_ij ∂k(x_i, x_j)/∂θ, never an (n, n, p) tensor.

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
        >>> RBF(eta=2.0).contract(X, np.ones((2, 2))) / np.exp(-2.0)
        array([-2.])
        """
        samples, _ = samples_of(X, None)
        return self.started(samples).values_gradient(
            Pairs(samples, samples), np.asarray(G, dtype=np.float64)
        )

    def __add__(self, other: Kernel | float) -> Kernel:
        from looms.kernels._composite import Sum, as_term

        return Sum(self, as_term(other))

    def __radd__(self, other: float) -> Kernel:
        from looms.kernels._composite import Sum, as_term

        return Sum(as_term(other), self)

    def __mul__(self, other: Kernel | float) -> Kernel:
        from looms.kernels._composite import Product, as_term

        return Product(self, as_term(other))

    def __rmul__(self, other: float) -> Kernel:
        from looms.kernels._composite import Product, as_term

        return Product(as_term(other), self)


class ScalarKernel(Kernel):
    """A kernel with at most one free hyper-parameter, a positive number.

    Subclasses name it in ``_parameter``, take it and ``<parameter>_bounds`` in
    their ``__init__`` and give its `start`.
    """

    _parameter: ClassVar[str]
    _at_lower: ClassVar[str] = ""
    _at_upper: ClassVar[str] = ""

    def start(self, samples: Samples) -> float:
        """A sensible value for this data, found without looking at any target."""
        raise NotImplementedError

    @property
    def fixed(self) -> bool:
        return is_fixed(getattr(self, f"{self._parameter}_bounds"))

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        if self.fixed:
            return []
        value = getattr(self, self._parameter)
        bounds = checked_bounds(self, f"{self._parameter}_bounds")
        return [Hyperparameter(self._parameter, value, bounds, self._at_lower, self._at_upper)]

    def started(self, samples: Samples) -> Self:
        value = getattr(self, self._parameter)
        if value is None:
            return self._replaced(self.start(samples))
        if not (np.isscalar(value) and np.isfinite(value) and value > 0):
            raise ValueError(
                f"{type(self).__name__}: {self._parameter} must be a positive number, "
                f"got {value!r}."
            )
        return self

    def with_values(self, values: Sequence[float] | Array) -> Self:
        return self if self.fixed else self._replaced(float(values[0]))

    def _replaced(self, value: float) -> Self:
        return replaced(self, {self._parameter: value})


def replaced(kernel: Any, changes: dict[str, Any]) -> Any:
    """A copy of ``kernel`` with other constructor arguments."""
    return type(kernel)(**{**kernel.get_params(deep=False), **changes})


def is_fixed(bounds: Any) -> bool:
    return isinstance(bounds, str) and bounds == "fixed"


def checked_bounds(kernel: Kernel, name: str) -> tuple[float, float] | None:
    """The bounds of a free hyper-parameter, or an error that names kernel and argument."""
    bounds = getattr(kernel, name)
    if bounds is None:
        return None
    try:
        low, high = (float(b) for b in bounds)
        valid = 0 < low <= high < np.inf
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            f"{type(kernel).__name__}: {name} must be None, 'fixed' or a pair of positive "
            f"numbers (low, high), got {bounds!r}."
        )
    return low, high


def samples_of(X: Matrix, Y: Matrix | None) -> tuple[Samples, Samples]:
    """Row and column samples for matrices as a user gives them; the same object if ``Y`` is None."""
    X = as_matrix(X)
    if Y is None:
        samples = Samples(X, centre=centre_of(X))
        return samples, samples
    Y = as_matrix(Y)
    centre = centre_of(Y)
    return Samples(X, centre=centre), Samples(Y, centre=centre)


def centre_of(X: Matrix) -> Array | None:
    """Mean of the rows, or None where ``X`` is sparse."""
    return np.asarray(X.mean(axis=0)) if isinstance(X, np.ndarray) else None


def as_matrix(X: Matrix) -> Matrix:
    """``X`` as a two-dimensional float64 array or CSR matrix."""
    if hasattr(X, "tocsr"):
        return X.tocsr().astype(np.float64)
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"Samples must be rows of a matrix, got an array of {X.ndim} dimensions.")
    return X


def _concrete(hyperparameter: Hyperparameter) -> float:
    if hyperparameter.value is None:
        raise ValueError(
            f"Hyper-parameter {hyperparameter.name!r} waits for the data: give it a value, or "
            "call started() with samples first."
        )
    return float(hyperparameter.value)
