"""Least-squares SVM on landmarks and its exact leave-one-out, from sums over blocks of rows.

The machine is f(x) = Σ_j c_j k(x, z_j) + b for m landmarks z, with the penalty n μ cᵀ K_ZZ c of
Nyström features; landmarks at every row give the machine of the full kernel. With
K_ZZ + δ = RᵀR the features are φ = [k(x, Z) R⁻¹, 1], and

    A = Σ_i ζ_i φ_i φ_iᵀ + n μ diag(1, …, 1, 0) = L Lᵀ,   t_i = L⁻¹ φ_i,   h_i = ζ_i ‖t_i‖²,
    e_i = (y_i − f(x_i)) / (1 − h_i).

Rows G that are held out together have e_G = (1 − T_G T_Gᵀ ζ_G)⁻¹ (y − f)_G, with their rows t in
T_G.

No features are kept between sweeps over the blocks. One sweep gives A, one all held-out outputs,
and two more the gradient of a criterion of these in every hyper-parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.kernels import Kernel
from looms.kernels._samples import Pairs, Samples
from looms.lssvm._sets import leverages_left, sets_of, times_C
from looms.lssvm._system import Fit, LeverageError, NotPositiveDefiniteError, targets_as_columns
from looms.lssvm.leave_one_out_models import outputs_without

_PANEL = 64  # columns of a triangular matrix, taken as a full one
_NUMBERS = 1 << 25  # in an array of new points and rows of the fit


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Landmarks, and kernel values with them.

    Attributes
    ----------
    kernel : kernel with all its values set.
    samples : the m landmarks, with the center that distances are computed around.
    """

    kernel: Kernel
    samples: Samples

    def __len__(self) -> int:
        return self.samples.n_samples

    def pairs(self, X: Matrix) -> Pairs:
        return Pairs(Samples(X, center=self.samples.center), self.samples)

    def cross(self, X: Matrix) -> Array:
        """k(z_j, x_i), (m, n_rows), as a new array."""
        return self.values(self.pairs(X))

    def values(self, pairs: Pairs) -> Array:
        """k(z_j, x_i), (m, n_rows), as a new array."""
        return np.ascontiguousarray(self.kernel.values(pairs).T)

    def gram(self) -> Array:
        """K_ZZ + δ, (m, m); δ, about m ε of the trace, keeps it positive definite."""
        K = self.kernel.values(Pairs(self.samples, self.samples))
        K[np.diag_indices(len(K))] += self.jitter * K.trace()
        return np.asfortranarray(K)

    def whitening(self, mu: float) -> Array:
        """R⁻¹, upper triangular, with K_ZZ + δ = Rᵀ R; may raise NotPositiveDefiniteError."""
        R, failed = lapack.dpotrf(self.gram(), lower=0, clean=1)
        if failed:
            raise NotPositiveDefiniteError(mu)
        return np.asarray(lapack.dtrtri(R, lower=0)[0])

    def gram_slopes(self, G: Array) -> tuple[Array, float]:
        """Σ_ij G_ij ∂(K_ZZ + δ)_ij/∂θ, (p,), and Σ_ij G_ij (K_ZZ + δ)_ij."""
        value = float(np.vdot(G, self.gram()))
        of_trace = self.jitter * G.trace() * np.eye(len(G))
        return self.kernel.values_gradient(Pairs(self.samples, self.samples), G + of_trace), value

    @property
    def jitter(self) -> float:
        """δ / trace K_ZZ."""
        return len(self) * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums Σ ζ φ φᵀ and Σ ζ φ yᵀ over a block, or some of its rows."""

    landmarks: Landmarks
    R_inverse: Array
    fit_intercept: bool

    def __call__(
        self, X: Matrix, y: Array, zeta: Array, *some: AnyArray
    ) -> tuple[tuple[Array, ...], tuple[()]]:
        for rows in some:
            X, y, zeta = X[rows], y[rows], zeta[rows]
        root = np.sqrt(zeta)
        K = self.landmarks.cross(X)
        K *= root
        phi = triangular_product(self.R_inverse, K, root if self.fit_intercept else None)
        return (phi @ phi.T, phi @ (root[:, None] * y)), ()


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Leverages h and residuals y − f of a block."""

    landmarks: Landmarks
    V: Array
    coef: Array
    intercept: Array

    def __call__(
        self, X: Matrix, y: Array, zeta: Array, *labels: AnyArray
    ) -> tuple[tuple[()], tuple[Array, Array, Array]]:
        K = self.landmarks.cross(X)
        T = triangular_product(self.V, K)
        h = zeta * np.einsum("ij,ij->j", T, T)
        residuals = y - (K.T @ self.coef + self.intercept)
        e = residuals / (1.0 - h)[:, None]
        for G in sets_of(*labels):
            root = np.sqrt(zeta[G])[:, :, None]
            e[G] = np.linalg.solve(leverages_left(T, G, root), root * residuals[G]) / root
        return (), (h, residuals, e)


@dataclass(frozen=True, eq=False)
class _SlopeMoments:
    """Sums Σ t_i C_ij t_jᵀ and Σ t uᵀ over a block, and the column u."""

    landmarks: Landmarks
    V: Array

    def __call__(
        self, X: Matrix, g: Array, e: Array, zeta: Array, h: Array, *labels: AnyArray
    ) -> tuple[tuple[Array, Array], tuple[Array]]:
        T = triangular_product(self.V, self.landmarks.cross(X))
        u = g / (1.0 - h)[:, None]
        sets = sets_of(*labels)
        for G in sets:
            root = np.sqrt(zeta[G])[:, :, None]
            u[G] = np.linalg.solve(leverages_left(T, G, root), g[G] / root) * root
        of_u = T @ u
        if sets:
            return (T @ times_C(T, e, u, zeta, sets).T, of_u), (u,)
        d = zeta * (e * u).sum(axis=1)
        T *= np.sqrt(np.abs(d))
        square = T @ T.T
        if (d < 0).any():
            below = np.compress(d < 0, T, axis=1)  # four times as fast as an index
            square -= 2.0 * (below @ below.T)
        return (square, of_u), (u,)


@dataclass(frozen=True, eq=False)
class _Contraction:
    """Sum over a block of Σ_ij G_ij ∂k(x_i, z_j)/∂θ, where G = ∂J/∂k(x_i, z_j)."""

    landmarks: Landmarks
    W: Array
    values: Array
    coef: Array
    p: Array

    def __call__(
        self, X: Matrix, u: Array, e: Array, residuals: Array, zeta: Array, *labels: AnyArray
    ) -> tuple[tuple[Array], tuple[()]]:
        pairs, m = self.landmarks.pairs(X), len(self.landmarks)
        K = self.landmarks.values(pairs)
        T = self.W[:m].T @ K
        if len(self.W) > m:
            T += self.W[m][:, None]
        square = times_C(T, e, u, zeta, sets_of(*labels))
        T *= self.values[:, None]
        T *= zeta
        square -= T
        square *= 2.0
        zeta = zeta[:, None]
        left = zeta * (K.T @ self.p[:m] + self.p[m:].sum(axis=0)) - u
        G = np.matmul(self.W[:m], square, out=K)  # new arrays of this size take long
        G += np.hstack([self.coef, -self.p[:m]]) @ np.hstack([left, zeta * residuals]).T
        return (self.landmarks.kernel.values_gradient(pairs, G.T),), ()


@dataclass(frozen=True, eq=False)
class _Products:
    """Products of [k(x_i, Z), 1] with some columns, for the rows of a block."""

    landmarks: Landmarks
    columns: Array

    def __call__(self, X: Matrix) -> tuple[tuple[()], tuple[Array]]:
        m = len(self.landmarks)
        return (), (self.landmarks.cross(X).T @ self.columns[:m] + self.columns[m:].sum(axis=0),)


@dataclass(frozen=True, eq=False)
class Solution:
    """Solved system: the fit, and the small matrices that gradients need.

    Attributes
    ----------
    fit : the machine, with coefficients of the landmarks, and its leave-one-out outputs.
    mu : regularization.
    landmarks : landmarks with the kernel.
    V : (q, q) upper triangular, t = [k(x, Z), 1] V; q is m, or m + 1 with an intercept.
    h : (n,) leverages.
    residuals, held_out_residuals : (n, t) y − f(x) and e of each row.
    labels : (n,) numbers of the sets of rows that are held out together, or empty.
    """

    fit: Fit
    mu: float
    landmarks: Landmarks
    V: Array
    h: Array
    residuals: Array
    held_out_residuals: Array
    labels: tuple[AnyArray, ...]

    def contract(self, slope: Array, blocks: RowBlocks) -> tuple[Array, float]:
        """Derivative of a criterion with respect to the kernel's hyper-parameters and μ.

        With g = ∂J/∂e, u_G = (1 − ζ_G T_G T_Gᵀ)⁻¹ g_G (g / (1 − h) for a single row),
        C = ½ (ζ e uᵀ + u eᵀ ζ) within each set and zero elsewhere, summed over targets,
        w = V Σ t uᵀ and M = V Tᵀ C T Vᵀ,

            ∂J/∂k(x_i, Z) = (ζ_i (k(x_i, Z) w + w_b) − u_i) cᵀ − ζ_i (y_i − f_i) wᵀ
                            + 2 Σ_j C_ij φ_j A⁻¹ − 2 ζ_i φ_i M,
            ∂J/∂K_ZZ = n μ (½ (w cᵀ + c wᵀ) − M)

        for φ = [k(x, Z), 1], restricted to the columns of the landmarks.

        Parameters
        ----------
        slope : ∂J/∂f, derivative with respect to the held-out outputs, shaped like the targets, or
            (1, n) and (1, n, t).
        blocks : rows of the fit.

        Returns
        -------
        slopes : (p,) ∂J/∂θ for the free hyper-parameters of the kernel, in natural units.
        slope_mu : ∂J/∂μ.

        Notes
        -----
        6 n m² flops and two kernel values for every row and landmark, in two sweeps.
        """
        m, n, zeta = len(self.landmarks), len(self.h), self.fit.sample_weight
        coef = targets_as_columns(self.fit.alpha)
        e = self.held_out_residuals
        g = -slope.reshape(e.shape)
        work = _SlopeMoments(self.landmarks, self.V)
        (M, of_u), (u,) = blocks.sweep(work, g, e, zeta, self.h, *self.labels)
        values, Q = np.linalg.eigh(M)
        p = self.V @ of_u
        W = self.V @ Q
        contraction = _Contraction(self.landmarks, W, values, coef, p)
        (slopes,), _ = blocks.sweep(contraction, u, e, self.residuals, zeta, *self.labels)
        of_gram = 0.5 * (p[:m] @ coef.T + coef @ p[:m].T) - (W[:m] * values) @ W[:m].T
        of_penalty, value = self.landmarks.gram_slopes(of_gram)
        return slopes + n * self.mu * of_penalty, n * value

    def outputs_without_rows(self, X: Matrix, blocks: RowBlocks) -> Iterator[tuple[slice, Array]]:
        """Outputs of the models without each row, or its set, for blocks of new points.

        F_ji = f⁽⁻ⁱ⁾(x_j) = f(x_j) − ζ_i e_i φ(x_j)ᵀ A⁻¹ φ(x_i), or with the sum of these products
        over the set of i.

        Parameters
        ----------
        X : (n_new, n_features) new points.
        blocks : rows of the fit.

        Yields
        ------
        rows : positions of some of the new points, so many that outputs have 2²⁵ numbers.
        outputs : (n_rows, n) or (n_rows, n, t).

        Notes
        -----
        Each block takes a sweep over the rows of the fit, with 2 n m n_rows flops.
        """
        m, coef = len(self.landmarks), targets_as_columns(self.fit.alpha)
        factors = -self.fit.sample_weight[:, None] * self.held_out_residuals
        sets = [G for labels in self.labels for each in sets_of(labels) for G in each]
        step = max(1, _NUMBERS // factors.size)
        for start in range(0, X.shape[0], step):
            rows = slice(start, min(start + step, X.shape[0]))
            K = self.landmarks.cross(X[rows])
            T = self.V[:m].T @ K
            if len(self.V) > m:
                T += self.V[m][:, None]
            _, (products,) = blocks.sweep(_Products(self.landmarks, self.V @ T))
            F = outputs_without(K.T @ coef + self.fit.intercept, products.T, factors, sets)
            yield rows, F.reshape(len(F), *self.fit.y.shape)


def solve(
    blocks: RowBlocks,
    y: Array,
    mu: float,
    zeta: Array,
    landmarks: Landmarks,
    *,
    fit_intercept: bool = True,
    sets: AnyArray | None = None,
    moments: tuple[Array, ...] | None = None,
) -> Solution:
    """Least-squares SVM on landmarks and all its held-out outputs, in two sweeps.

    It minimizes ½ n μ cᵀ (K_ZZ + δ) c + ½ Σ_i ζ_i (y_i − k(x_i, Z) c − b)²; landmarks and n μ stay
    the same while a row is left out.

    Parameters
    ----------
    blocks : the n rows.
    y : (n,) or (n, t) targets.
    mu : regularization, positive.
    zeta : (n,) positive weights.
    landmarks : landmarks with the kernel.
    fit_intercept : False for f without b.
    sets : (n,) integers, equal for rows that are held out together, which must be in one block:
        e_G = (1 − T_G T_Gᵀ ζ_G)⁻¹ (y − f)_G. By default, each row is held out by itself.
    moments : Σ ζ φ φᵀ and Σ ζ φ yᵀ, if they are known.

    Raises
    ------
    NotPositiveDefiniteError
        If A is not numerically positive definite, or no longer is without some row.

    Notes
    -----
    3 n m² flops and two kernel values for every row and landmark; (m + 1)² matrices, blocks and
    (n, t) columns in memory.
    """
    n, m, Y = len(y), len(landmarks), targets_as_columns(y)
    R_inverse = landmarks.whitening(mu)
    if moments is None:
        moments, _ = blocks.sweep(Moments(landmarks, R_inverse, fit_intercept), Y, zeta)
    V, theta = factorized(moments, n, mu, R_inverse)
    coef, intercept = theta[:m], theta[m:].sum(axis=0)
    work = _HeldOut(landmarks, V, coef, intercept)
    labels = () if sets is None else (sets,)
    try:
        _, (h, residuals, e) = blocks.sweep(work, Y, zeta, *labels)
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(mu) from None
    if not (1.0 - h).min() > n * np.finfo(np.float64).eps:
        raise LeverageError(mu, int(np.argmax(h)))
    loo = (Y - residuals / (1.0 - h)[:, None]).reshape(y.shape)
    fit = Fit(
        coef[:, 0] if y.ndim == 1 else coef,
        float(intercept[0]) if y.ndim == 1 else intercept,
        y,
        loo,
        zeta,
        (Y - e).reshape(1, *y.shape),
        landmarks.samples.X,
    )
    return Solution(fit, mu, landmarks, V, h, residuals, e, labels)


def factorized(
    moments: tuple[Array, ...], n: int, mu: float, R_inverse: Array
) -> tuple[Array, Array]:
    """V and the coefficients θ = [c; b] for [k(x, Z), 1], with A⁻¹ = V Vᵀ in these terms.

    Parameters
    ----------
    moments : Σ ζ φ φᵀ and Σ ζ φ yᵀ.
    n, mu : the ridge is n mu.
    R_inverse : (m, m) R⁻¹ of φ = k(x, Z) R⁻¹, to which an intercept adds 1.

    Raises
    ------
    NotPositiveDefiniteError
        If Σ ζ φ φᵀ plus ridge is not numerically positive definite.
    """
    (A, b), m = moments, len(R_inverse)
    A = np.array(A, order="F")
    A[np.arange(m), np.arange(m)] += n * mu
    L, failed = lapack.dpotrf(A, lower=1, clean=1)
    if failed or not np.isfinite(b).all():
        raise NotPositiveDefiniteError(mu)
    V, _ = lapack.dtrtri(np.asfortranarray(L.T), lower=0)  # L⁻ᵀ
    theta = V @ (V.T @ b)
    theta[:m] = R_inverse @ theta[:m]
    V[:m] = blas.dtrmm(1.0, R_inverse, V[:m])
    return V, theta


def outputs(blocks: RowBlocks, landmarks: Landmarks, coef: Array, intercept: Any) -> Array:
    """f(x) = Σ_j c_j k(x, z_j) + b for rows in blocks: (n,), or (n, t) if ``coef`` is (m, t)."""
    theta = np.vstack([targets_as_columns(coef), np.atleast_1d(intercept)])
    _, (f,) = blocks.sweep(_Products(landmarks, theta))
    return f.reshape(len(f), *coef.shape[1:])


def triangular_product(V: Array, K: Array, last: Array | None = None) -> Array:
    """Vᵀ K, or Vᵀ [K; 1], for upper triangular ``V``, by panels; ``last`` is appended as a row.

    SciPy calls the BLAS routine for this with Python's lock held, so threads would wait.
    """
    m = len(K)
    product = np.empty((len(V) + (last is not None), K.shape[1]))
    for start in range(0, m, _PANEL):
        stop = min(start + _PANEL, m)
        np.matmul(V[:stop, start:stop].T, K[:stop], out=product[start:stop])
    if len(V) > m:
        product[m] = V[:m, m] @ K + V[m, m]
    if last is not None:
        product[-1] = last
    return product
