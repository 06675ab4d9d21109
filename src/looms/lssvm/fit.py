"""Fitted machine of a solved linear system, with its held-out outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from looms._classes import with_ties
from looms._typing import Array, Matrix
from looms.held_out import HeldOut
from looms.lssvm.conditioning import tie_of
from looms.lssvm.projection import Projection


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted least-squares SVM, f(x) = Σ_i α_i k(x_i, x) + b.

    Attributes
    ----------
    alpha : (n,) or (n, t) dual coefficients, shaped like the targets.
    intercept : float or (t,) b; zero without an intercept.
    y, outputs : targets, and the exact leave-one-out output of each row.
    sample_weight : (n,) ζ.
    held_out : (n_repetitions, n) or (n_repetitions, n, t) outputs of machines trained without
        the fold of the row; NaN if the row is in no fold.
    landmarks : (m, n_features) landmarks, if the coefficients, (m,) or (m, t), belong to these;
        None if they belong to the n rows.
    coef : (n_features,) or (n_features, t) weights w of a linear machine f(x) = w·x + b, if the
        system was solved for w; None if it was solved for α.
    tie : difference up to which outputs for labels are equal up to rounding.
    """

    alpha: Array
    intercept: Any
    y: Array
    outputs: Array
    sample_weight: Array
    held_out: Array
    landmarks: Matrix | None = None
    coef: Array | None = None
    tie: float = 0.0

    @classmethod
    def of(cls, projection: Projection, held_out: Array, y: Array, tie: float | None = None) -> Fit:
        """Fit of a solved system.

        Parameters
        ----------
        projection : P of the system.
        held_out : (n_repetitions, n, t) outputs without the unit of each row.
        y : (n,) or (n, t) targets, whose shape the outputs and coefficients take.
        tie : as for the class; by default that of the system.
        """
        machine, t = projection.machine, y.shape[1:]
        b, w = machine.intercept, machine.weights
        return cls(
            np.ascontiguousarray(machine.coefficients).reshape(-1, *t),
            b if t else float(b[0]),
            y,
            (projection.y - projection.loo_residuals).reshape(y.shape),
            projection.zeta,
            held_out.reshape(-1, *y.shape),
            machine.landmarks,
            None if w is None else w.reshape(-1, *t),
            tie_of(y, projection.size, projection.alpha) if tie is None else tie,
        )

    @property
    def loo(self) -> HeldOut:
        """Targets, leave-one-out outputs and weights as one object."""
        return HeldOut(self.y, self.outputs, self.sample_weight)

    @property
    def mean_held_out(self) -> HeldOut:
        """Targets, held-out outputs averaged over repetitions, and weights."""
        return HeldOut(self.y, np.nanmean(self.held_out, axis=0), self.sample_weight)

    @property
    def decided(self) -> HeldOut:
        """`mean_held_out`, for thresholds and calibration: outputs that tie are equal."""
        y, outputs, weight = self.mean_held_out
        return HeldOut(y, with_ties(outputs, self.tie), weight)
