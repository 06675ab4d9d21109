"""Criterion of a model whose values are given, in the place of an objective that is searched."""

from __future__ import annotations

import numpy as np

from looms._typing import Array, Matrix
from looms.blocks import RowBlocks
from looms.criteria import Criterion, as_criterion
from looms.kernels import Kernel
from looms.kernels._samples import Samples
from looms.lssvm.fit import Fit, Member
from looms.optimize._search import Outcome, Point, Search
from looms.selection._tuning import Tuning
from looms.units import Units


class GivenCriterion:
    """Criterion of a member with given values.

    Parameters
    ----------
    X, y : rows and their targets.
    member : with its values, not fitted.
    criterion : name or object.
    sample_weight : (n,) weights of mean one in the fit.
    selection_weight : (n,) weights in the criterion.
    fit_intercept : whether the model has an intercept.
    units : rows that are held out together.
    samples : rows as the kernel takes them; None of an estimator.
    """

    def __init__(
        self,
        X: Matrix | RowBlocks,
        y: Array,
        *,
        member: Member,
        criterion: str | Criterion,
        sample_weight: Array,
        selection_weight: Array,
        fit_intercept: bool,
        units: Units,
        samples: Samples | None = None,
    ) -> None:
        self.X, self.y, self.member, self.units = X, y, member, units
        self.criterion, self.samples = as_criterion(criterion), samples
        self.sample_weight, self.selection_weight = sample_weight, selection_weight
        self.fit_intercept = fit_intercept

    def tuned(self, search: object) -> tuple[Tuning, Fit]:
        """The criterion at the given values, and the model; nothing is searched."""
        member, data = self.member, (self.X, self.y, self.sample_weight)
        fit = member.fit(member.left_out(*data, self.fit_intercept), self.units, self.y)
        with np.errstate(over="ignore", invalid="ignore"):  # squares of enormous targets
            value, error, *_ = self.criterion.evaluate(
                self.y, fit.mean_held_out.outputs, self.selection_weight, self.units.clusters
            )
        kernel, theta = member.kernel, np.empty(0)
        if isinstance(kernel, Kernel):
            theta = np.append(kernel.theta, np.log2(self.mu_at(theta)))
        point = Search(Point(theta, value, error), Outcome.GIVEN, (), 0)
        stages = ((len(self.y), point),)
        return Tuning(theta, value, error, Outcome.GIVEN, stages, 0, ()), fit

    def kernel_at(self, theta: Array) -> object:
        return self.member.kernel

    def mu_at(self, theta: Array) -> float:
        return float(getattr(self.member, "mu", np.nan))
