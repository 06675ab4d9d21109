"""What every route to the least-squares SVM shares: its ridge, its shapes, its failure."""

from __future__ import annotations

import numpy as np

from looms._typing import Array


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """K + diag(λ) is not numerically positive definite."""

    def __init__(self, mu: float) -> None:
        super().__init__(
            f"The kernel matrix plus ridge is not positive definite at mu = {mu:.3g}. Use a larger "
            "mu; if that does not help, the kernel matrix itself is not positive semi-definite."
        )
        self.mu = mu


def ridge(mu: float, sample_weight: Array) -> Array:
    """λ_i = n mu / ζ_i, (n,): what is added to the diagonal of K [C06 eq. 17]."""
    return len(sample_weight) * mu / sample_weight


def targets_as_columns(y: Array) -> Array:
    """A view of (n,) or (n, t) targets as (n, t)."""
    return y.reshape(len(y), -1)
