"""Held-out criterion of a model on landmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from looms._checks import take_rows
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks
from looms.kernels import Kernel
from looms.kernels._landmarks import pivoted_landmarks
from looms.kernels._names import KernelLike
from looms.kernels._samples import Samples, center_of
from looms.lssvm._system import targets_as_columns
from looms.lssvm.fit import Fit
from looms.lssvm.landmarks import Landmarks, Placed, Streamed
from looms.optimize._curvature import secant_inverse_hessian
from looms.optimize._minimize import minimize
from looms.optimize._search import Point, free_gradient
from looms.selection._objective import HeldOutCriterion, HyperPrior, Objective, objective_of
from looms.selection._subsamples import log2_mu_shift, sampled_rows, samples_of_search
from looms.selection._tuning import Tuning
from looms.units import Units

#: Rows on which a search begins, by the full kernel.
SAMPLE_ROWS = 2000
#: Rows a landmark among which the landmarks are drawn.
_POOL_PER_LANDMARK = 5
#: "auto": from 64 landmarks on, twice as many as long as that, or up to 512 twice as many again,
#: lowers the criterion on 20,000 rows by a hundredth, by two and four for 1024 and 2048, and by the
#: standard error of the difference. Up to 256 the hyper-parameters are tuned for each number by a
#: few steps on 5000 rows, for at those of half as many, more landmarks may seem worse. Beyond, they
#: follow those of fewer; up to 1024 with a step if it promises what is missing.
_FIRST_RANK, LARGEST_RANK, _ROWS_PER_LANDMARK, _ROWS_OF_RANK = 64, 2048, 4, 20_000
_WORTH_IT, _DOUBLINGS, _FEW, _STEPS, _ROWS_OF_STEPS = 0.01, 2, 512, 2, 5000
_MOST_TUNED, _MOST_STEPPED = 256, 1024


class LowRankObjective(HeldOutCriterion):
    """Held-out criterion of a model on landmarks in the log₂ of its hyper-parameters.

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
    goes_on_if_sure = False
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
        prior: HyperPrior | None = None,
        **options: Any,
    ) -> None:
        super().__init__(blocks.shape[0], y, **options)
        self.blocks, self._placed = blocks, Placed.of(self.units, blocks)
        self._keeps = isinstance(blocks, ArrayBlocks) and not isinstance(blocks.X, np.memmap)
        self.kernel = kernel
        self.bounds = bounds
        self.theta0 = np.clip(np.append(kernel.theta, np.log2(mu)), *bounds.T)
        self.prior = prior
        self.samples = Samples(landmarks, center=center_of(landmarks))

    def rows_of_search(self, max_samples: float | None = None) -> int:
        most = max(_ROWS_OF_STEPS, self.n_samples // 4)
        return min(samples_of_search(max_samples, self.n_samples), most)

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
            Landmarks(self.kernel_at(theta), self.samples),
            fit_intercept=self.fit_intercept,
            placed=self._placed,
            keeps=self._keeps,
        )

    def slopes(self, theta: Array, projection: Streamed, slope: Array) -> Array:
        return np.append(*projection.slopes(self.units, slope))

    def subset(self, rows: AnyArray) -> LowRankObjective:
        shift = np.log2(self.n_samples / len(rows))
        return LowRankObjective(
            self.blocks[rows],
            self.y[rows],
            landmarks=self.samples.X,
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
    """The same criterion for models on the first landmarks, as many as each of ``sizes``.

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


def low_rank_objective(
    blocks: RowBlocks,
    y: Array,
    *,
    kernel: KernelLike,
    rank: int | str,
    largest_rank: int = LARGEST_RANK,
    tuned: Callable[..., tuple[Tuning, Fit | None]],
    n_sample: int = SAMPLE_ROWS,
    random_state: int = 0,
    sample_weight: Array | None = None,
    selection_weight: Array | None = None,
    units: Units,
    prior: bool = False,
    **options: Any,
) -> LowRankObjective:
    """Objective on landmarks that were drawn by the kernel that is best for a sample of the rows.

    The kernel is tuned by the whole kernel matrix of the sample. Landmarks are drawn by randomly
    pivoted Cholesky with the tuned values, without a look at the targets of other rows.

    Parameters
    ----------
    blocks, y : rows and targets.
    rank : number of landmarks, or "auto" for as many as pay on the sample, and at most
        ``largest_rank``.
    tuned : `tune` with its options, for all rows of the sample.
    n_sample : number of rows of the sample.
    random_state : seed of the sample and the landmarks.
    kernel, sample_weight, selection_weight, units, prior, options : as for `Objective`.
    """
    n, rng = len(y), np.random.RandomState(random_state)
    rows = sampled_rows(y, n_sample, rng)
    sample = objective_of(
        blocks.rows(rows),
        y[rows],
        kernel=kernel,
        sample_weight=take_rows(sample_weight, rows),
        selection_weight=take_rows(selection_weight, rows),
        units=units.among(rows),
        prior=prior,
        **options,
    )
    tuning, _ = tuned(sample, random_state=rng)
    mu = sample.mu_at(tuning.theta) * 2 ** log2_mu_shift(len(rows), n)
    best = sample.kernel_at(tuning.theta)
    bounds = sample.bounds.copy()
    bounds[-1] -= np.log2(n / len(rows))
    drawn = rng.permutation(n)

    def on_landmarks(m: int) -> LowRankObjective:
        return LowRankObjective(
            blocks,
            y,
            landmarks=_landmarks(best, blocks, m, drawn, rng),
            kernel=best,
            bounds=bounds,
            mu=mu,
            sample_weight=sample_weight,
            selection_weight=selection_weight,
            units=units,
            prior=sample.prior,
            **options,
        )

    if rank == "auto":
        whole = _doubled(on_landmarks, y, most_landmarks(n, largest_rank), rng)
    else:
        whole = on_landmarks(int(rank))
    whole.known = tuning
    return whole


def most_landmarks(n: int, largest_rank: int) -> int:
    """Largest number of landmarks that "auto" tries on n rows."""
    most = max(_FIRST_RANK, min(n // _ROWS_PER_LANDMARK, largest_rank))
    return int(_FIRST_RANK * 2 ** np.floor(np.log2(most / _FIRST_RANK)))


def drawn_landmarks(
    kernel: Kernel, blocks: RowBlocks, m: int, rng: np.random.RandomState
) -> tuple[Kernel, Matrix]:
    """A kernel, its open values set from a sample of the rows, and landmarks drawn with it."""
    drawn = rng.permutation(blocks.shape[0])
    sample = blocks.rows(np.sort(drawn[:SAMPLE_ROWS]))
    kernel = kernel.started(Samples(sample, center=center_of(sample)))
    return kernel, _landmarks(kernel, blocks, m, drawn, rng)


def _landmarks(
    kernel: Kernel, blocks: RowBlocks, m: int, drawn: AnyArray, rng: np.random.RandomState
) -> Matrix:
    """At most m landmarks among the first of the rows ``drawn``."""
    X = blocks.rows(np.sort(drawn[: max(SAMPLE_ROWS, _POOL_PER_LANDMARK * m)]))
    with blas_threads(X.shape[0]):
        places = pivoted_landmarks(kernel, Samples(X, center=center_of(X)), m, rng)
    return X[places]


def _doubled(
    on_landmarks: Callable[[int], LowRankObjective],
    y: Array,
    most: int,
    rng: np.random.RandomState,
) -> LowRankObjective:
    """Objective on as many landmarks as pay, at hyper-parameters that were tuned for them.

    ``on_landmarks`` makes one from a number of landmarks, ``most`` at most.
    """
    n = len(y)
    rows, of_steps = (sampled_rows(y, size, rng) for size in (_ROWS_OF_RANK, _ROWS_OF_STEPS))
    curvature: Array | None = None
    shift = np.log2(n / len(of_steps))

    def value(objective: LowRankObjective) -> Point:
        part = objective.subset(rows)
        return part.evaluate(part.theta0, gradient=False)

    def tuned(objective: LowRankObjective) -> Point:
        """Point of the sample at hyper-parameters that become those of the objective's start."""
        nonlocal curvature
        part = objective.subset(of_steps)
        data = part.evaluate, part.theta0, part.bounds
        search = minimize(*data, max_iter=_STEPS, inverse_hessian=curvature)
        known = secant_inverse_hessian(search.accepted)
        curvature = curvature if known is None else known
        objective.start_at(np.append(search.best.theta[:-1], search.best.theta[-1] - shift))
        return value(objective)

    def stepped(objective: LowRankObjective, more: Point, missing: float) -> Point:
        """The same after a step by the curvature of fewer landmarks, if it promises enough."""
        part = objective.subset(of_steps)
        start = part.evaluate(part.theta0)
        if curvature is None or start.gradient is None:
            return more
        slope = free_gradient(start.theta, start.gradient, *part.bounds.T)
        step = -curvature @ slope
        if -0.5 * float(slope @ step) < missing:
            return more
        known = objective.theta0
        theta = start.theta + step / max(1.0, float(np.linalg.norm(step)))
        objective.start_at(np.append(theta[:-1], theta[-1] - shift))
        after = value(objective)
        if after.value < more.value:
            return after
        objective.start_at(known)
        return more

    objective = last = on_landmarks(_FIRST_RANK)
    point, doublings, m, before = tuned(objective), 0, objective.samples.n_samples, last.theta0
    while 2 * m <= most and doublings < (_DOUBLINGS if m <= _FEW else 1):
        known, last = last.theta0, on_landmarks(2 * m)
        m, doublings = last.samples.n_samples, doublings + 1
        enough = point.value - _WORTH_IT * max(1, m / _FEW) * abs(point.value)
        if m <= _MOST_TUNED:
            last.start_at(known)  # where half the landmarks ended
            more = tuned(last)
        else:
            last.start_at(2.0 * known - before)
            more = value(last)
            if more.value >= enough and m <= _MOST_STEPPED:
                more = stepped(last, more, more.value - enough)
        before = known
        if more.sure_gain_over(point) and more.value < enough:
            objective, doublings = last, 0
            objective.gain_of_landmarks = (point.value - more.value) / abs(point.value)
            point = more
    if doublings:
        objective.gain_of_landmarks = 0.0
    objective.curvature = curvature
    return objective
