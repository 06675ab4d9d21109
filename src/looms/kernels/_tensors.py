"""Kernels on torch tensors: values, and gradients by reverse-mode differentiation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from looms._arrays import Tensor, torch
from looms.kernels._base import Constant, Kernel, ParametricKernel, Product, Sum
from looms.kernels._dot_product import Linear, Polynomial
from looms.kernels._samples import Samples
from looms.kernels._stationary import ARD, RBF, Matern, MaternARD

#: A squared distance below this fraction of the squared norms is computed from the difference.
_CLOSE = 1e-4
_NUMBERS = 1 << 22  # of differences at a time


class TensorPairs:
    """Block of pairs of a landmark and a row, with inner products and distances in float64.

    Parameters
    ----------
    landmarks : m samples on the host, with the center that distances are computed around.
    X : (b, n_features) float64 tensor.
    dtype : type of kernel values, "float64" or "float32".
    """

    def __init__(self, landmarks: Samples, X: Tensor, dtype: str) -> None:
        self.landmarks = landmarks
        self.X = X
        self.dtype = getattr(torch(), dtype)

    def values(self, kernel: Kernel) -> Tensor:
        """k(z_j, x_i), (m, b), as a new tensor."""
        check_on_tensors(kernel)
        return _values(kernel, self, _theta(kernel, self.X))

    def values_gradient(self, kernel: Kernel, G: Tensor) -> Tensor:
        """Σ_ji G_ji ∂k(z_j, x_i)/∂θ for every free hyper-parameter θ, (p,), natural units."""
        theta = _theta(kernel, self.X)
        if not len(theta):
            return theta
        with torch().enable_grad():
            K = _values(kernel, self, theta.requires_grad_())
            return torch().autograd.grad(K, theta, G)[0]

    @cached_property
    def dot(self) -> Tensor:
        """Inner products z_j·x_i, (m, b)."""
        return (self.X.new_tensor(self.landmarks.X) @ self.X.T).to(self.dtype)

    @cached_property
    def _centered(self) -> tuple[Tensor, Tensor]:
        Z, center = self.landmarks.centered, self.landmarks.center
        return self.X.new_tensor(Z), self.X if center is None else self.X - self.X.new_tensor(
            center
        )

    @cached_property
    def _squared_distances(self) -> Tensor:
        return _squared_distances(*self._centered).to(self.dtype)

    def scaled(self, gamma: Tensor) -> Tensor:
        """gamma ‖z_j − x_i‖², (m, b)."""
        return self._squared_distances * gamma.to(self.dtype)

    def scaled_by_feature(self, gammas: Tensor) -> Tensor:
        """Σ_k gammas_k (z_jk − x_ik)², (m, b)."""
        Z, X = self._centered
        root = gammas.sqrt()
        return _squared_distances(Z * root, X * root).to(self.dtype)

    def filled(self, value: Tensor) -> Tensor:
        """The same number for every pair, (m, b)."""
        return value.to(self.dtype).repeat(self.landmarks.n_samples, len(self.X))


def _squared_distances(A: Tensor, B: Tensor) -> Tensor:
    """‖a_i − b_j‖² from inner products; from differences for close samples, as digits cancel."""
    norms = A.square().sum(1)[:, None] + B.square().sum(1)
    D = norms.addmm(A, B.T, alpha=-2.0)
    p, q = torch().nonzero(D.detach() < norms.detach().mul_(_CLOSE), as_tuple=True)
    step = max(1, _NUMBERS // A.shape[1])
    for start in range(0, len(p), step):
        i, j = p[start : start + step], q[start : start + step]
        D[i, j] = (A[i] - B[j]).square().sum(1)
    return D


def _exponential(s: Tensor) -> Tensor:
    """exp(−s); overwrites ``s``."""
    return s.neg_().exp_()


#: By ν, of r = √(2 ν s).
_MATERN: dict[float, Callable[[Tensor], Tensor]] = {
    0.5: lambda r: (-r).exp_(),
    1.5: lambda r: (1.0 + r) * (-r).exp_(),
    2.5: lambda r: (1.0 + r * (1.0 + r / 3.0)) * (-r).exp_(),
}


def _matern(kernel: Matern | MaternARD, s: Tensor) -> Tensor:
    """Matérn kernel of s = (r/ℓ)². The slope of √s at s = 0, which is infinite, counts as zero."""
    nu = float(kernel.nu)
    return _MATERN[nu]((2.0 * nu * s).clamp_min(torch().finfo(s.dtype).tiny).sqrt())


#: Values of a kernel from its pairs and its parameter, which is (1,) or (n_features,).
_FORMULAS: dict[type[Kernel], Callable[[Any, TensorPairs, Tensor], Tensor]] = {
    Constant: lambda kernel, pairs, value: pairs.filled(value),
    RBF: lambda kernel, pairs, gamma: _exponential(pairs.scaled(gamma)),
    ARD: lambda kernel, pairs, gammas: _exponential(pairs.scaled_by_feature(gammas)),
    Matern: lambda kernel, pairs, gamma: _matern(kernel, pairs.scaled(gamma)),
    MaternARD: lambda kernel, pairs, gammas: _matern(kernel, pairs.scaled_by_feature(gammas)),
    Polynomial: lambda kernel, pairs, c: (pairs.dot + c.to(pairs.dtype)) ** int(kernel.degree),
}


def check_on_tensors(kernel: Kernel) -> None:
    """ValueError for a kernel, or a part of one, that does not support tensors."""
    if isinstance(kernel, (Sum, Product)):
        for part in kernel.parts:
            check_on_tensors(part)
    elif type(kernel) not in {Linear, *_FORMULAS}:
        known: list[type[Kernel]] = [Linear, *_FORMULAS]
        names = ", ".join(sorted(one.__name__ for one in known))
        raise ValueError(
            f"{type(kernel).__name__} takes NumPy arrays only; tensors work with {names}, and "
            "their sums and products."
        )


def _theta(kernel: Kernel, X: Tensor) -> Tensor:
    return X.new_tensor([h.value for h in kernel.hyperparameters])


def _values(kernel: Kernel, pairs: TensorPairs, theta: Tensor) -> Tensor:
    if isinstance(kernel, (Sum, Product)):
        parts = kernel.parts
        own = theta.split([len(part.hyperparameters) for part in parts])
        k1, k2 = (_values(part, pairs, numbers) for part, numbers in zip(parts, own, strict=True))
        return k1 + k2 if isinstance(kernel, Sum) else k1 * k2
    if not isinstance(kernel, ParametricKernel):
        return pairs.dot.clone()
    if not kernel.free:
        (parameter,) = kernel._parameters
        theta = pairs.X.new_tensor(np.atleast_1d(getattr(kernel, parameter.name)))
    return _FORMULAS[type(kernel)](kernel, pairs, theta)
