"""Kernels between a tensor of rows and constant samples, as nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from looms._typing import Array
from looms.kernels import (
    ARD,
    RBF,
    Boolean,
    Columns,
    Constant,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    MaternARD,
    Normalized,
    Polynomial,
    PowerExponential,
    PowerExponentialARD,
    Ranked,
    Tanimoto,
    Weighted,
)
from looms.kernels._base import Product, Sum
from looms.kernels._samples import Samples
from looms.onnx._graph import Graph


class Pairs:
    """Pairs of a row of a tensor and a constant sample.

    Parameters
    ----------
    graph : graph that receives the nodes.
    X : name of an (m, n_features) tensor.
    Z : (n, n_features) samples.

    Notes
    -----
    Factors of inner products are put into the constant samples, because onnxruntime fuses the
    product of matrices and a number into one node, which is then in single precision.
    """

    def __init__(self, graph: Graph, X: str, Z: Array) -> None:
        self.graph = graph
        self.X = X
        self.Z = Z

    def weighted(self, weights: Any) -> Pairs:
        """Pairs whose features count ``weights`` times in inner products and squared distances."""
        scale = np.sqrt(weights)
        return type(self)(self.graph, self.graph("Mul", self.X, scale), self.Z * scale)

    def filled(self, value: float) -> str:
        """A number for each pair, (m, n)."""
        g = self.graph
        return g("Expand", np.full((1, len(self.Z)), value), g.column_shape(self.X))

    def dot(self, factor: float = 1.0) -> str:
        """Inner products x_i·z_j times a factor, (m, n)."""
        return self.graph("MatMul", self.X, (factor * self.Z).T)

    @cached_property
    def manhattan_distances(self) -> str:
        """Σ_k |x_ik − z_jk|, (m, n)."""
        return self.graph.sum_of_differences("Abs", self.X, self.Z)

    @cached_property
    def squared_distances(self) -> str:
        """‖x_i − z_j‖², (m, n)."""
        return self.graph.sum_of_differences("Square", self.X, self.Z)


class Diagonal(Pairs):
    """Pairs of each row of a tensor with itself, (m, 1); ``Z`` is any one sample."""

    def dot(self, factor: float = 1.0) -> str:
        squares = self.graph("Mul", self.X, self.X)
        norms = self.graph("ReduceSum", squares, np.array([1]), keepdims=1)
        return self.graph("Mul", norms, factor)

    @cached_property
    def manhattan_distances(self) -> str:
        return self.filled(0.0)

    @cached_property
    def squared_distances(self) -> str:
        return self.manhattan_distances


def expansion(kernel: Kernel, pairs: Pairs, alpha: Array) -> str:
    """Σ_j k(x_i, z_j) α_j, (m, t), for (n, t) coefficients.

    For a sum of kernels it is the sum of theirs; for a linear kernel, one vector per output.
    """
    g = pairs.graph
    if isinstance(kernel, Sum):
        return g("Add", *(expansion(part, pairs, alpha) for part in kernel.parts))
    if type(kernel) is Linear:
        return g("MatMul", pairs.X, pairs.Z.T @ alpha)
    return g("MatMul", values(kernel, pairs), alpha)


def values(kernel: Kernel, pairs: Pairs) -> str:
    """k(x_i, z_j), (m, n); ValueError for a kernel that has no ONNX form."""
    formula = _FORMULAS.get(type(kernel))
    if formula is None:
        names = ", ".join(sorted(kind.__name__ for kind in _FORMULAS))
        raise ValueError(
            f"{type(kernel).__name__} has no ONNX form; kernels that have one are {names}."
        )
    return formula(kernel, pairs)


def _polynomial(kernel: Polynomial, pairs: Pairs) -> str:
    g = pairs.graph
    return g("Pow", g("Add", pairs.dot(), kernel.number("c")), float(kernel.degree))


def _tanimoto(kernel: Tanimoto, pairs: Pairs) -> str:
    if isinstance(pairs, Diagonal):
        return pairs.filled(1.0)
    g, dot = pairs.graph, pairs.dot()
    norms = g("Add", Diagonal(g, pairs.X, pairs.Z).dot(), Samples(pairs.Z).square_norms)
    either = g("Sub", norms, dot)
    zeros = g("Equal", either, 0.0)
    return g("Where", zeros, 1.0, g("Div", dot, g("Where", zeros, 1.0, either)))


def _scaled(kernel: Any, pairs: Pairs) -> str:
    """Scaled distances of a stationary kernel, (m, n)."""
    if isinstance(kernel, (ARD, MaternARD, PowerExponentialARD)):
        return pairs.weighted(kernel.gammas).squared_distances
    return pairs.graph("Mul", getattr(pairs, kernel.distance), kernel.number("gamma"))


def _gaussian(kernel: Kernel, pairs: Pairs) -> str:
    return pairs.graph("Exp", pairs.graph("Neg", _scaled(kernel, pairs)))


def _matern(kernel: Matern | MaternARD, pairs: Pairs) -> str:
    g = pairs.graph
    r = g("Sqrt", g("Mul", _scaled(kernel, pairs), 2.0 * kernel.nu))
    decay = g("Exp", g("Neg", r))
    if kernel.nu == 0.5:
        return decay
    factor = g("Add", r, 1.0)
    if kernel.nu == 2.5:
        factor = g("Add", factor, g("Div", g("Mul", r, r), 3.0))
    return g("Mul", factor, decay)


def _power_exponential(kernel: PowerExponential | PowerExponentialARD, pairs: Pairs) -> str:
    g = pairs.graph
    return g("Exp", g("Neg", g("Pow", _scaled(kernel, pairs), 0.5 * kernel.number("power"))))


def _normalized(kernel: Normalized, pairs: Pairs) -> str:
    g = pairs.graph
    squares = values(kernel.kernel, Diagonal(g, pairs.X, pairs.Z[:1]))
    positive = g("Greater", squares, 0.0)
    if isinstance(pairs, Diagonal):
        return g.cast(positive, g.dtype)
    K = g("Mul", values(kernel.kernel, pairs), kernel.inverse_norms(Samples(pairs.Z)))
    norms = g("Sqrt", g("Where", positive, squares, 1.0))
    return g("Where", positive, g("Div", K, norms), 0.0)


def _mapped(kernel: Any, pairs: Pairs) -> Pairs:
    """Pairs as a kernel of mapped features sees them."""
    if isinstance(kernel, Weighted):
        return pairs.weighted(kernel.weights)
    g = pairs.graph
    if isinstance(kernel, Columns):
        X = g("Gather", pairs.X, np.asarray(kernel.columns), axis=1)
    else:
        X = g.interpolated(pairs.X, *kernel.scores)
    return type(pairs)(g, X, kernel.seen(Samples(pairs.Z)).X)


def _both(operator: str) -> Callable[[Any, Pairs], str]:
    return lambda kernel, pairs: pairs.graph(
        operator, *(values(part, pairs) for part in kernel.parts)
    )


def _mapped_values(kernel: Any, pairs: Pairs) -> str:
    return values(kernel.kernel, _mapped(kernel, pairs))


_FORMULAS: dict[type[Kernel], Callable[[Any, Pairs], str]] = {
    Constant: lambda kernel, pairs: pairs.filled(kernel.number("value")),
    Sum: _both("Add"),
    Product: _both("Mul"),
    Normalized: _normalized,
    **dict.fromkeys((Columns, Ranked, Weighted), _mapped_values),
    Linear: lambda kernel, pairs: pairs.dot(),
    Polynomial: _polynomial,
    Boolean: lambda kernel, pairs: pairs.graph("Exp", pairs.dot(np.log1p(kernel.number("gamma")))),
    Tanimoto: _tanimoto,
    **dict.fromkeys((RBF, ARD, Laplacian), _gaussian),
    **dict.fromkeys((Matern, MaternARD), _matern),
    **dict.fromkeys((PowerExponential, PowerExponentialARD), _power_exponential),
}
