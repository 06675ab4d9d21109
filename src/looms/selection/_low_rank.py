"""Held-out criterion of a machine on landmarks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks
from looms.criteria import Criterion
from looms.kernels import Kernel
from looms.kernels._landmarks import pivoted_landmarks
from looms.kernels._samples import Samples, center_of
from looms.lssvm._system import targets_as_columns
from looms.lssvm.landmarks import Landmarks, Placed, Streamed
from looms.selection._held_out_criterion import HeldOutCriterion, HyperPrior
from looms.selection._objective import Objective
from looms.units import Units

#: Rows on which a search begins, by the full kernel.
SAMPLE_ROWS = 2000


class LowRankObjective(HeldOutCriterion):
    """Held-out criterion of a machine on landmarks in the log₂ of its hyper-parameters.

    Parameters
    ----------
    blocks : the n rows.
    y : (n,) or (n, t) targets.
    landmarks : (m, n_features) samples.
    kernel : with the values of the start.
    bounds : (p + 1, 2) the box to search, log₂.
    mu : regularization of the start.
    criterion, sample_weight, selection_weight, fit_intercept, units : as for `Objective`.
    prior : of the kernel's hyper-parameters, with its center; none unless given.

    Notes
    -----
    A value takes two sweeps over the blocks, with the gradient four: 3 n m² and 9 n m² flops.
    """

    least_rows = SAMPLE_ROWS
    #: Share of the criterion that the landmarks added last have gained, if their number ended at
    #: its limit; 0 if more would not gain.
    gain_of_landmarks: float = 0.0

    def __init__(
        self,
        blocks: RowBlocks,
        y: npt.ArrayLike,
        *,
        landmarks: Matrix,
        kernel: Kernel,
        bounds: Array,
        mu: float,
        criterion: str | Criterion = "press",
        sample_weight: npt.ArrayLike | None = None,
        selection_weight: npt.ArrayLike | None = None,
        fit_intercept: bool = True,
        units: Units | None = None,
        prior: HyperPrior | None = None,
    ) -> None:
        super().__init__(
            blocks.shape[0],
            y,
            criterion,
            sample_weight,
            selection_weight,
            fit_intercept,
            units,
        )
        self.blocks, self._placed = blocks, Placed.of(self.units, blocks)
        self.kernel = kernel
        self.bounds = bounds
        self.theta0 = np.clip(np.append(kernel.theta, np.log2(mu)), *bounds.T)
        self.prior = prior
        self._landmarks = Samples(landmarks, center=center_of(landmarks))

    @property
    def samples(self) -> Samples:
        """Landmarks."""
        return self._landmarks

    def start_at(self, theta: Array) -> None:
        """Set the start of a search."""
        self.theta0 = np.clip(theta, *self.bounds.T)
        self.kernel = self.kernel_at(self.theta0)

    def solve(self, theta: Array) -> Streamed:
        return Streamed(
            self.blocks,
            targets_as_columns(self.y),
            self.mu_at(theta),
            self.sample_weight,
            Landmarks(self.kernel_at(theta), self._landmarks),
            fit_intercept=self.fit_intercept,
            placed=self._placed,
        )

    def slopes(self, theta: Array, projection: Streamed, slope: Array) -> Array:
        return np.append(*projection.slopes(self.units, slope))

    def subset(self, rows: AnyArray) -> LowRankObjective:
        shift = np.log2(self.n_samples / len(rows))
        return LowRankObjective(
            self.blocks[rows],
            self.y[rows],
            landmarks=self._landmarks.X,
            kernel=self.kernel,
            bounds=self.bounds + np.append(np.zeros(len(self.bounds) - 1), shift)[:, None],
            mu=self.mu_at(self.theta0) * 2**shift,
            criterion=self.criterion,
            sample_weight=self.sample_weight[rows],
            selection_weight=self.selection_weight[rows],
            fit_intercept=self.fit_intercept,
            units=self.units.among(rows),
            prior=self.prior,
        )


def on_landmarks(
    objective: Objective, theta: Array, sizes: Sequence[int], rng: np.random.RandomState
) -> list[LowRankObjective]:
    """The same criterion for machines on the first landmarks, as many as each of ``sizes``.

    Landmarks are drawn from all samples for the kernel at ``theta``, the most informative first;
    there are fewer if these span all samples.
    """
    with blas_threads(objective.n_samples):
        places = pivoted_landmarks(objective.kernel_at(theta), objective.samples, max(sizes), rng)
    return [
        LowRankObjective(
            ArrayBlocks(objective.X),
            objective.y,
            landmarks=objective.X[places[:size]],
            kernel=objective.kernel,
            bounds=objective.bounds,
            mu=objective.mu_at(theta),
            criterion=objective.criterion,
            sample_weight=objective.sample_weight,
            selection_weight=objective.selection_weight,
            fit_intercept=objective.fit_intercept,
            prior=objective.prior,
        )
        for size in sizes
    ]
