"""Kernels made of kernels: sums, products, normalisation, and the constants that weight them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from looms._typing import Array
from looms.kernels._base import Bounds, Hyperparameter, Kernel, ScalarKernel, replaced
from looms.kernels._samples import Pairs, Samples


class Constant(ScalarKernel):
    """Constant kernel, k(x, x') = value: the weight of a kernel in a sum.

    ``0.5 * RBF() + Linear()`` is ``Constant(0.5) * RBF() + Linear()``.

    Parameters
    ----------
    value : positive.
    value_bounds : (low, high) for tuning, "fixed", or None for wide bounds.
    """

    _parameter = "value"
    _at_lower = "this term hardly counts: leave it out"
    _at_upper = "the other terms hardly count: leave them out"

    def __init__(self, value: float = 1.0, value_bounds: Bounds = None) -> None:
        self.value = value
        self.value_bounds = value_bounds

    def values(self, pairs: Pairs) -> Array:
        return np.full((pairs.rows.n_samples, pairs.cols.n_samples), float(self.value), order="F")

    def self_values(self, samples: Samples) -> Array:
        return np.full(samples.n_samples, float(self.value))

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        return np.zeros(0) if self.fixed else np.array([G.sum()])

    def self_values_gradient(self, samples: Samples, v: Array) -> Array:
        return np.zeros(0) if self.fixed else np.array([v.sum()])


class _Composite(Kernel):
    """Bookkeeping of hyper-parameters for kernels made of the kernels named in ``_parts``."""

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
        return self._with_parts([part.started(samples) for part in self.parts])

    def with_values(self, values: Sequence[float] | Array) -> Self:
        parts, first = [], 0
        for part in self.parts:
            size = len(part.hyperparameters)
            parts.append(part.with_values(values[first : first + size]))
            first += size
        return self._with_parts(parts)

    def _with_parts(self, parts: list[Kernel]) -> Self:
        kernel: Self = replaced(self, dict(zip(self._parts, parts, strict=True)))
        return kernel


class Sum(_Composite):
    """Sum of two kernels, k(x, x') = k1(x, x') + k2(x, x').

    Parameters
    ----------
    k1, k2 : kernels.
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


class Product(_Composite):
    """Product of two kernels, k(x, x') = k1(x, x') k2(x, x').

    Parameters
    ----------
    k1, k2 : kernels.
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


class Normalized(_Composite):
    """Cosine in feature space, k̂(x, x') = k(x, x') / √(k(x, x) k(x', x')).

    A sample that the kernel maps to zero stays zero.

    Parameters
    ----------
    kernel : the kernel to normalise.
    """

    _parts = ("kernel",)

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def values(self, pairs: Pairs) -> Array:
        K = self.kernel.values(pairs)
        K *= self._inverse_norms(pairs.rows)[:, None]
        K *= self._inverse_norms(pairs.cols)
        return K

    def self_values(self, samples: Samples) -> Array:
        return (self.kernel.self_values(samples) > 0).astype(np.float64)

    def values_gradient(self, pairs: Pairs, G: Array) -> Array:
        """By the quotient rule ∂k̂_ij = ∂k_ij/√(k_ii k_jj) − ½ k̂_ij (∂k_ii/k_ii + ∂k_jj/k_jj)."""
        rows, cols = self._inverse_norms(pairs.rows), self._inverse_norms(pairs.cols)
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

    def _inverse_norms(self, samples: Samples) -> Array:
        squares = self.kernel.self_values(samples)
        positive = squares > 0
        return np.where(positive, 1.0 / np.sqrt(np.where(positive, squares, 1.0)), 0.0)


def as_term(term: Kernel | float) -> Kernel:
    """A kernel as it is, a positive number as the constant kernel."""
    if isinstance(term, Kernel):
        return term
    if isinstance(term, (int, float, np.number)) and term > 0:
        return Constant(float(term))
    raise TypeError(f"Kernels combine with kernels and positive numbers, not with {term!r}.")
