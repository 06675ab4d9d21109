"""Problems of model selection: a model to be tuned on some rows, or with given values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from looms._typing import Array, Matrix
from looms.blocks import RowBlocks, blocks_of
from looms.criteria import Criterion, as_criterion
from looms.kernels import Kernel
from looms.kernels._samples import Samples
from looms.lssvm.fit import Fit, Member
from looms.optimize._search import Point, Search, StopReason
from looms.selection._subsamples import sampled_rows
from looms.selection._tuning import Tuning
from looms.units import Units


class Tuned(NamedTuple):
    """Values of a model that were tuned or given, and the model there.

    Attributes
    ----------
    tunings : of the kernel; before it, of the kernel that weights of features were learned from.
    fit : the model; None if it could not be evaluated anywhere.
    kernel : at these values; an estimator as it was given.
    mu : regularization; NaN for an estimator.
    samples : samples that the coefficients of the model belong to; None for an estimator.
    failure : reason why there is no model.
    parts : on the parts of the rows that the problem has.
    """

    tunings: tuple[Tuning, ...]
    fit: Fit | None
    kernel: Any
    mu: float
    samples: Samples | None
    failure: str = ""
    parts: tuple[Tuned, ...] = ()

    @classmethod
    def of(cls, objective: Any, tuning: Tuning, fit: Fit | None, failure: str = "") -> Tuned:
        """What the search of an objective has found."""
        values = objective.kernel_at(tuning.theta), objective.mu_at(tuning.theta)
        return cls((tuning,), fit, *values, objective.samples, failure)

    @property
    def tuning(self) -> Tuning:
        """Tuning that gave the model."""
        return self.tunings[-1]


@dataclass(frozen=True, eq=False)
class Problem:
    """A candidate, and the rows that it is tuned on.

    Attributes
    ----------
    candidate : the model: its ``kernel`` or estimator of scikit-learn, and ``criterion``, as they
        were passed; ``tuned`` gives its values. If weights of features may be open, it has
        ``with_kernel`` as `LeastSquares` of the estimators.
    X, y : rows, and their targets.
    sample_weight : (n,) positive weights in the fit.
    selection_weight : (n,) weights in the criterion.
    fit_intercept : whether the model has an intercept.
    units : rows that are held out together.
    seed : of subsamples and landmarks.
    parts : the same for parts of the rows, which are tuned first.
    starts : tunings at whose mean a search along gradients begins.
    """

    candidate: Any
    X: Matrix | RowBlocks
    y: Array
    sample_weight: Array
    selection_weight: Array
    fit_intercept: bool
    units: Units
    seed: int = 0
    parts: tuple[Problem, ...] = ()
    starts: tuple[Tuning, ...] = ()

    def tune(self, **callbacks: Any) -> Tuned:
        """Values of the candidate with the least criterion, and the model there.

        ``callbacks`` are ``begun``, ``evaluated`` and ``progress`` of `looms.selection._tune.tune`.
        """
        tuned: Tuned = self.candidate.tuned(self, **callbacks)
        return tuned

    def sampled(self, size: int) -> Problem:
        """The same on a random sample of so many rows, in memory; as it is if it has no more.

        Of a few groups or folds it has one row more each, so that none is missing.
        """
        if len(self.y) <= size:
            return self
        rows = sampled_rows(self.y, size, np.random.RandomState(self.seed))
        _, first = np.unique(self.units.clusters, return_index=True)
        rows = np.union1d(rows, first) if 10 * len(first) <= size else rows
        names = "y", "sample_weight", "selection_weight"
        some = {name: getattr(self, name)[rows] for name in names}
        return replace(self, X=blocks_of(self.X).rows(rows), units=self.units.among(rows), **some)

    @property
    def zeta(self) -> Array:
        """(n,) weights in the fit, of mean one."""
        weight = self.sample_weight
        return np.asarray(weight * (len(weight) / weight.sum()))

    @property
    def options(self) -> dict[str, Any]:
        """Weights, units and intercept, as an objective takes them."""
        names = "sample_weight", "selection_weight", "fit_intercept", "units"
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Given:
    """A model with given values: nothing is searched.

    Attributes
    ----------
    kernel, criterion : as they were passed.
    member : with its values, not fitted.
    samples : samples that the coefficients of the model belong to; None for an estimator.
    """

    kernel: Any
    criterion: str | Criterion
    member: Member
    samples: Samples | None = None

    def tuned(self, problem: Problem, **callbacks: Any) -> Tuned:
        """The criterion at the given values, and the model."""
        member, y, units = self.member, problem.y, problem.units
        left_out = member.left_out(problem.X, y, problem.zeta, problem.fit_intercept)
        fit = member.fit(left_out, units, y)
        with np.errstate(over="ignore", invalid="ignore"):  # squares of enormous targets
            value, error, *_ = as_criterion(self.criterion).evaluate(
                y, fit.mean_held_out.outputs, problem.selection_weight, units.clusters
            )
        kernel, theta, mu = member.kernel, np.empty(0), float(getattr(member, "mu", np.nan))
        if isinstance(kernel, Kernel):
            theta = np.append(kernel.theta, np.log2(mu))
        search = Search(Point(theta, value, error), StopReason.GIVEN, (), 0)
        tuning = Tuning(theta, value, error, StopReason.GIVEN, ((len(y), search),), 0, ())
        return Tuned((tuning,), fit, kernel, mu, self.samples)
