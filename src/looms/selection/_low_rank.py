"""Held-out criterion of a machine on landmarks, for more rows than a kernel matrix can have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks
from looms.criteria import Criterion
from looms.kernels import Kernel
from looms.kernels._landmarks import pivoted_landmarks
from looms.kernels._names import KernelLike
from looms.kernels._samples import Samples, center_of
from looms.lssvm import low_rank, low_rank_folds
from looms.lssvm._system import Fit
from looms.selection._objective import HeldOutCriterion, Objective
from looms.selection._tune import Tuning, log2_mu_shift, sampled_rows, tune

#: Rows on which a search begins, by the full kernel.
SAMPLE_ROWS = 2000
#: Rows a landmark among which the landmarks are drawn.
_ROWS_PER_LANDMARK = 10
#: Rows of a set that is held out by the closed form, and sets that are held out by sums of their
#: own, each a matrix of m × m.
_LARGEST_SET, _MOST_FOLDS = 256, 128
#: "auto": from 64 landmarks on, twice as many as long as that gains half of the standard error of
#: the criterion on 20,000 rows.
_FIRST_RANK, _LARGEST_RANK, _WORTH_IT, _ROWS_OF_RANK = 64, 2048, 0.5, 20_000


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

    Notes
    -----
    A value takes two sweeps over the blocks, with the gradient four: 3 n m² and 9 n m² flops.
    """

    least_rows = SAMPLE_ROWS

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
        self.prior = None
        self._landmarks = Samples(landmarks, center=center_of(landmarks))

    @property
    def samples(self) -> Samples:
        """Landmarks."""
        return self._landmarks

    def _hold(self, blocks: RowBlocks) -> None:
        """Set how rows are held out: each by itself, in small sets of one block, or in folds."""
        sets = [rows for part in self.parts for rows in part.sets]
        small = max(map(len, sets), default=1) <= _LARGEST_SET
        self._sets: AnyArray | None = None
        self._in_folds = bool(sets) and not (small and len(self.parts) == 1)
        n_folds = sum(len(part.single) for part in self.parts) + len(sets)
        if self._in_folds and n_folds > _MOST_FOLDS:
            raise ValueError(
                f"On landmarks rows are held out in sets of at most {_LARGEST_SET} rows, each row "
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
        system = (
            *(self.blocks, self.y, self.mu_at(theta), self.sample_weight),
            low_rank.Landmarks(self.kernel_at(theta), self._landmarks),
        )
        if self._in_folds:
            return low_rank_folds.solve(*system, self.parts, fit_intercept=self.fit_intercept)
        return low_rank.solve(*system, fit_intercept=self.fit_intercept, sets=self._sets)

    def slopes(
        self, theta: Array, solution: low_rank.Solution | low_rank_folds.Solution, slope: Array
    ) -> Array:
        slopes, slope_mu = solution.contract(slope, self.blocks)
        return np.append(slopes, slope_mu)

    def subset(self, rows: AnyArray) -> LowRankObjective:
        shift = np.log2(self.n_samples / len(rows))
        part = LowRankObjective(
            ArrayBlocks(self.blocks.rows(rows)),
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
        )
        part.prior = self.prior
        return part


def low_rank_objective(
    blocks: RowBlocks,
    y: Array,
    *,
    kernel: KernelLike,
    criterion: str | Criterion,
    rank: int | str,
    tuned: Callable[..., tuple[Tuning, Fit | None]] = tune,
    random_state: int = 0,
    sample_weight: Array | None = None,
    selection_weight: Array | None = None,
    fit_intercept: bool = True,
    cv: AnyArray | None = None,
    groups: AnyArray | None = None,
    prior: bool = False,
) -> LowRankObjective:
    """Objective on landmarks that were drawn by the kernel that is best for a sample of the rows.

    The kernel is tuned by the whole kernel matrix of the sample. Landmarks are drawn by randomly
    pivoted Cholesky with the tuned values, without a look at the targets of other rows.

    Parameters
    ----------
    blocks, y : rows and targets.
    rank : number of landmarks, or "auto" for as many as pay on the sample.
    tuned : `tune` with its options.
    random_state : seed of the sample and the landmarks.
    kernel, criterion, sample_weight, selection_weight, fit_intercept, cv, groups, prior :
        as for `Objective`.
    """
    n, rng = len(y), np.random.RandomState(random_state)
    rows = sampled_rows(y, SAMPLE_ROWS, rng)
    X = blocks.rows(rows)
    weights = [None if w is None else w[rows] for w in (sample_weight, selection_weight)]
    sample = Objective(
        X,
        y[rows],
        kernel=kernel,
        criterion=criterion,
        sample_weight=weights[0],
        selection_weight=weights[1],
        fit_intercept=fit_intercept,
        cv=None if cv is None else cv[:, rows],
        groups=None if groups is None else groups[rows],
        prior=prior,
    )
    tuning, _ = tuned(sample, random_state=rng)
    mu = sample.mu_at(tuning.theta) * 2 ** log2_mu_shift(len(rows), n)
    best = sample.kernel_at(tuning.theta)
    bounds = sample.bounds.copy()
    bounds[-1] -= np.log2(n / len(rows))
    objective_on = partial(
        LowRankObjective,
        kernel=best,
        bounds=bounds,
        mu=mu,
        criterion=criterion,
        sample_weight=sample_weight,
        selection_weight=selection_weight,
        fit_intercept=fit_intercept,
        cv=cv,
        groups=groups,
    )
    drawn = rng.permutation(n)

    def on_landmarks(m: int) -> LowRankObjective:
        X = blocks.rows(np.sort(drawn[: max(SAMPLE_ROWS, _ROWS_PER_LANDMARK * m)]))
        with blas_threads(X.shape[0]):
            places = pivoted_landmarks(best, Samples(X, center=center_of(X)), m, rng)
        objective = objective_on(blocks, y, landmarks=X[places])
        objective.prior = sample.prior
        return objective

    if rank != "auto":
        return on_landmarks(int(rank))
    objective, value = on_landmarks(_FIRST_RANK), np.inf
    rows = sampled_rows(y, _ROWS_OF_RANK, rng)
    while True:
        part = objective.subset(rows)
        point = part.evaluate(part.theta0, gradient=False)
        m = 2 * objective.samples.n_samples
        if value - point.value < _WORTH_IT * point.standard_error or m > min(n, _LARGEST_RANK):
            return objective
        value, objective = point.value, on_landmarks(m)
