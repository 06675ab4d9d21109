"""The selection criterion of a linear machine with few features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from looms._typing import Array, Matrix
from looms.kernels import Kernel
from looms.kernels._names import KernelLike, as_kernel
from looms.kernels._samples import Samples, as_matrix, variances
from looms.lssvm._system import targets_as_columns
from looms.lssvm.features import Features, decompose_features, has_few_features
from looms.lssvm.projection import Projection
from looms.selection._objective import Objective
from looms.selection._scanned_criterion import ScannedCriterion

# Eigenvalues below this share of the largest are rounding; and log₂ of the least n μ over the least
# of the others, of the box and of the scan.
_ROUNDING, _BOX_BELOW, _SCAN_BELOW = 1e-24, -10.0, -8.0


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
