"""Held-out criterion of a machine on landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks
from looms.criteria import Criterion
from looms.kernels import Kernel
from looms.kernels._landmarks import pivoted_landmarks
from looms.kernels._samples import Samples, center_of
from looms.lssvm import low_rank, low_rank_folds
from looms.lssvm._folds import whole_repetitions
from looms.selection._held_out_criterion import HeldOutCriterion
from looms.selection._objective import Objective
from looms.selection._prior import HyperPrior

#: Rows on which a search begins, by the full kernel.
SAMPLE_ROWS = 2000
#: Rows of a set that is held out by the closed form, and sets that are held out by sums of their
#: own, each a matrix of m × m.
LARGEST_SET, _MOST_FOLDS = 256, 128


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
    criterion, sample_weight, selection_weight, fit_intercept, cv, groups : as for `Objective`.
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
        cv: Any = None,
        groups: npt.ArrayLike | None = None,
        prior: HyperPrior | None = None,
    ) -> None:
        super().__init__(
            blocks.shape[0],
            y,
            criterion,
            sample_weight,
            selection_weight,
            fit_intercept,
            cv,
            groups,
        )
        self._hold(blocks)
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

    def _hold(self, blocks: RowBlocks) -> None:
        """Set how rows are held out: each by itself, in small sets of one block, or in folds."""
        sets = [rows for part in self.parts for rows in part.sets]
        small = max(map(len, sets), default=1) <= LARGEST_SET
        self._sets: AnyArray | None = None
        self._in_folds = bool(sets) and not (small and len(self.parts) == 1)
        n_folds = sum(len(part.single) for part in self.parts) + len(sets)
        if len(whole_repetitions(self.parts)) > 1:
            raise ValueError(
                "On landmarks each row is held out once: give cv a number of folds, without "
                "repetitions."
            )
        if self._in_folds and n_folds > _MOST_FOLDS:
            raise ValueError(
                f"On landmarks rows are held out in sets of at most {LARGEST_SET} rows, each row "
                f"once, or in at most {_MOST_FOLDS} larger ones: here there are {n_folds}, the "
                f"largest of {max(map(len, sets))} rows."
            )
        if sets and not self._in_folds:
            (part,) = self.parts
            self._sets = np.arange(self.n_samples) + len(sets)
            for k, rows in enumerate(part.sets):
                self._sets[rows] = k
            blocks = blocks.holding(self._sets)
        self.blocks = blocks

    def solve(self, theta: Array) -> low_rank.Solution | low_rank_folds.Solution:
        blocks, y, mu, zeta = self.blocks, self.y, self.mu_at(theta), self.sample_weight
        landmarks = low_rank.Landmarks(self.kernel_at(theta), self._landmarks, blocks.dtype)
        intercept = self.fit_intercept
        if self._in_folds:
            return low_rank_folds.solve(
                blocks, y, mu, zeta, landmarks, self.parts, fit_intercept=intercept
            )
        return low_rank.solve(
            blocks, y, mu, zeta, landmarks, fit_intercept=intercept, sets=self._sets
        )

    def slopes(
        self, theta: Array, solution: low_rank.Solution | low_rank_folds.Solution, slope: Array
    ) -> Array:
        slopes, slope_mu = solution.contract(slope, self.blocks)
        return np.append(slopes, slope_mu)

    def subset(self, rows: AnyArray) -> LowRankObjective:
        shift = np.log2(self.n_samples / len(rows))
        return LowRankObjective(
            self.blocks.part(rows),
            self.y[rows],
            landmarks=self._landmarks.X,
            kernel=self.kernel,
            bounds=self.bounds + np.append(np.zeros(len(self.bounds) - 1), shift)[:, None],
            mu=self.mu_at(self.theta0) * 2**shift,
            criterion=self.criterion,
            sample_weight=self.sample_weight[rows],
            selection_weight=self.selection_weight[rows],
            fit_intercept=self.fit_intercept,
            cv=None if self.folds is None else self.folds[:, rows],
            groups=None if self.groups is None else self.groups[rows],
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
