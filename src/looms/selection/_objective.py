"""The selection criterion of a machine with a whole kernel matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from looms._typing import Array
from looms.kernels import Kernel
from looms.kernels._gram import GramBlocks, contract_lower, gram_into, is_finite_lower
from looms.kernels._samples import Samples
from looms.lssvm import NotPositiveDefiniteError, decompose
from looms.lssvm.cholesky import Solution, solve_in_place
from looms.selection._scanned_criterion import ScannedCriterion


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
    cv : rows that are held out together, as for `looms.folds.fold_numbers`: None for each row, or
        each group, by itself; a number of folds; "5x2"; a splitter or its splits. The criterion is
        the mean over repetitions.
    groups : (n,) labels; rows of one group are held out together.
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

    def outputs_along_mu(self, kernel_theta: Array, mus: Array) -> Iterator[Array | None]:
        K = self.gram(self.kernel.with_theta(kernel_theta))
        if not is_finite_lower(K):
            yield from [None] * len(mus)
            return
        spectrum = decompose(K, sample_weight=self.sample_weight)
        folds = np.arange(self.n_samples)[None] if self.folds is None else self.folds
        for mu in mus:
            try:
                yield spectrum.outputs(
                    self.y, float(mu), fit_intercept=self.fit_intercept, folds=folds
                )
            except NotPositiveDefiniteError:
                yield None

    def solve(self, theta: Array) -> Solution:
        """Solved system at ``theta``, in the buffer of the objective; valid until the next call."""
        return solve_in_place(
            self.gram(self.kernel_at(theta)),
            self.y,
            self.mu_at(theta),
            self.sample_weight,
            fit_intercept=self.fit_intercept,
            parts=self.parts,
        )

    def slopes(self, theta: Array, solution: Solution, slope: Array) -> Array:
        """`Solution.contract` gives G = ∂J/∂K and ∂J/∂μ, and the ``values_gradient`` of the kernel,
        block by block, Σ_ij G_ij ∂K_ij/∂θ."""
        if self._scratch is None:
            self._scratch = np.empty((self.n_samples, self.n_samples), order="F")
        G, slope_mu = solution.contract(slope, self._scratch)
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
        below = sum(float(K[j + 1 :, j].sum()) for j in range(n)) if centered else 0.0
    if not (0 < total < np.inf and np.isfinite(below)):
        return 1.0
    if centered:
        total = max(1e-8 * total, total - (2.0 * below + float(diagonal.sum())) / n**2)
    return total
