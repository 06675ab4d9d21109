"""Selection criteria of machines of all rows: by the kernel matrix, or by few features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from looms._typing import Array, Matrix
from looms.kernels import Kernel
from looms.kernels._gram import GramBlocks, contract_lower, gram_into, is_finite_lower
from looms.kernels._names import KernelLike, as_kernel
from looms.kernels._samples import Samples, as_matrix, variances
from looms.lssvm import NotPositiveDefiniteError, decompose
from looms.lssvm._system import targets_as_columns
from looms.lssvm.dense import Dense
from looms.lssvm.features import Features, decompose_features, has_few_features
from looms.lssvm.projection import Projection
from looms.selection._held_out_criterion import ScannedCriterion

_COLUMNS = 16  # of a kernel matrix, summed at a time
# Eigenvalues below this share of the largest are rounding; and log₂ of the least n μ over the least
# of the others, of the box and of the scan.
_ROUNDING, _BOX_BELOW, _SCAN_BELOW = 1e-24, -10.0, -8.0


class Objective(ScannedCriterion):
    """Held-out criterion of a machine with a whole kernel matrix.

    Calling it returns the value and the gradient in all hyper-parameters at once
    [docs/references.md, Gradient], for about twice the flops of a factorization with inverse,
    however many hyper-parameters the kernel has.

    Parameters
    ----------
    X : (n, n_features) dense or sparse samples, or the matrix of a precomputed kernel.
    y : (n,) or (n, t) targets; ±1 for criteria of classification.
    kernel : name, `looms.kernels.Kernel` or function; values that are None are set
        from the data.
    criterion : name or `looms.criteria.Criterion`.
    sample_weight : (n,) positive weights ζ of the fit, default ones. They are rescaled
        to mean one, so that λ_i = μ Σζ / ζ_i.
    selection_weight : (n,) nonnegative weights of the criterion; default ``sample_weight``.
    fit_intercept : whether the machine has an intercept.
    units : rows that are held out together; by default each by itself. The criterion is the mean
        over passes over the rows.
    prior : whether to regularize the kernel's hyper-parameters: the value is then
        that of `HyperPrior`, centered at the start.

    Attributes
    ----------
    theta0 : (p + 1,) start: the kernel's free hyper-parameters, then μ; log₂.
    bounds : (p + 1, 2) the box to search, log₂.
    names : names of the hyper-parameters, in the order of ``theta0``.

    Raises
    ------
    ValueError
        For shapes that do not agree, labels other than ±1 under a criterion that
        needs them, weights that are not positive, targets or features so large or small that
        squares overflow or vanish.

    Notes
    -----
    A value takes one n×n array, and a gradient one more. From the third kernel matrix on, one more
    is kept for each kind of inner products and distances that the kernel uses.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> objective = Objective(X, np.sign(X[:, 0]), kernel="ard", criterion="press")
    >>> objective.names
    ['gammas[0]', 'gammas[1]', 'gammas[2]', 'mu']
    >>> value, gradient = objective(objective.theta0)
    >>> gradient.shape
    (4,)
    """

    def _started(self, kernel: Kernel) -> Kernel:
        self._work: Array | None = None
        self._scratch: Array | None = None
        self._blocks = GramBlocks(self.X, kernel.uses, self.sample_weight)
        return kernel.started(self._blocks.samples)

    @property
    def samples(self) -> Samples:
        """Samples with their weights in the fit."""
        return self._blocks.samples

    def spread(self, kernel_theta: Array) -> float:
        K = self.gram(self.kernel.with_theta(kernel_theta))
        self._work = None  # not kept while subsamples are searched
        return feature_space_variance(K, self.fit_intercept)

    def solver_along_mu(self, kernel_theta: Array) -> Callable[[float], Projection]:
        K = self.gram(self.kernel.with_theta(kernel_theta))
        if not is_finite_lower(K):
            raise NotPositiveDefiniteError(np.nan)
        spectrum = decompose(K, sample_weight=self.sample_weight)
        Y = targets_as_columns(self.y)
        return partial(spectrum.solve, Y, fit_intercept=self.fit_intercept)

    def solve(self, theta: Array) -> Dense:
        """Solved system at ``theta``, in the buffer of the objective; valid until the next call."""
        return Dense(
            self.gram(self.kernel_at(theta)),
            targets_as_columns(self.y),
            self.mu_at(theta),
            self.sample_weight,
            fit_intercept=self.fit_intercept,
        )

    def slopes(self, theta: Array, projection: Dense, slope: Array) -> Array:
        """`Dense.contract` gives G = ∂J/∂K and ∂J/∂μ, and the ``values_gradient`` of the kernel,
        block by block, Σ_ij G_ij ∂K_ij/∂θ."""
        if self._scratch is None:
            self._scratch = np.empty((self.n_samples, self.n_samples), order="F")
        G, slope_mu = projection.contract(self.units, slope, self._scratch)
        return np.append(contract_lower(G, self.kernel_at(theta), self._blocks), slope_mu)

    def gram(self, kernel: Kernel) -> Array:
        """Lower triangle of the Gram matrix of ``kernel``, in the buffer of the objective."""
        if self._work is None:
            self._work = np.empty((self.n_samples, self.n_samples), order="F")
        with np.errstate(over="ignore", invalid="ignore"):  # a point that cannot be evaluated
            gram_into(self._work, kernel, self._blocks)
        return self._work


def feature_space_variance(K: Array, centered: bool) -> float:
    """Mean of k(x, x), less the mean of k(x, x') if ``centered``; from the lower triangle."""
    n = len(K)
    diagonal = K.diagonal()
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(diagonal.mean())
        starts = range(0, n, _COLUMNS) if centered else ()
        below = sum(float(np.tril(K[j:, j : j + _COLUMNS], -1).sum()) for j in starts)
    if not (0 < total < np.inf and np.isfinite(below)):
        return 1.0
    if centered:
        total = max(1e-8 * total, total - (2.0 * below + float(diagonal.sum())) / n**2)
    return total


class FeaturesObjective(ScannedCriterion):
    """Held-out criterion of a linear machine with fewer features than rows.

    Parameters
    ----------
    As for `Objective`; the kernel is linear, and μ the only hyper-parameter.

    Notes
    -----
    One eigendecomposition of p features, 4 n p² flops; then 6 n p for value and gradient.
    """

    def _started(self, kernel: Kernel) -> Kernel:
        self.least_rows = self.n_samples  # all rows cost hardly more than some
        self._samples = Samples(self.X, weight=self.sample_weight)
        self._spectrum = decompose_features(
            self.X, self.sample_weight, fit_intercept=self.fit_intercept
        )
        return kernel.started(self._samples)

    @property
    def samples(self) -> Samples:
        """Samples with their weights in the fit."""
        return self._samples

    def _place(self, spread: float) -> None:
        """Places the box as for a kernel matrix; deeper if some features have other units.

        The scan goes down to the smallest eigenvalue, and the box far below it.
        """
        super()._place(spread)
        eigenvalues = self._spectrum.eigenvalues
        positive = eigenvalues[eigenvalues > _ROUNDING * eigenvalues.max(initial=0.0)]
        if len(positive):
            least, unit = np.log2(positive.min()), np.log2(self.n_samples)
            self.bounds[-1, 0] = min(self.bounds[-1, 0], least - unit + _BOX_BELOW)
            usual, deepest = ScannedCriterion.ridges, least - np.log2(spread) + _SCAN_BELOW
            self.ridges = np.append(np.arange(usual[0] - 2.0, deepest, -2.0)[::-1], usual)

    def spread(self, kernel_theta: Array) -> float:
        mean_square = float(self._samples.square_norms.mean())
        if not 0 < mean_square < np.inf:
            return 1.0
        if self.fit_intercept:
            return max(1e-8 * mean_square, float(variances(self.X).sum()))
        return mean_square

    def solver_along_mu(self, kernel_theta: Array) -> Callable[[float], Projection]:
        return partial(self._spectrum.solve, targets_as_columns(self.y))

    def solve(self, theta: Array) -> Features:
        return self._spectrum.solve(targets_as_columns(self.y), self.mu_at(theta))

    def slopes(self, theta: Array, projection: Features, slope: Array) -> Array:
        return np.array([projection.slope_mu(self.units, slope)])


def objective_of(
    X: Matrix, y: npt.ArrayLike, *, kernel: KernelLike, **options: Any
) -> Objective | FeaturesObjective:
    """The criterion of the whole kernel matrix, computed by the features if these are few.

    Parameters
    ----------
    X, y, kernel, options : as for `Objective`.
    """
    by_features = has_few_features(as_kernel(kernel), as_matrix(X))
    return (FeaturesObjective if by_features else Objective)(X, y, kernel=kernel, **options)
