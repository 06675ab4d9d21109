"""Choices made anew without the rows that they are scored on, and the predictions of these rows.

The residuals of rows with two units left out are the inner held-out residuals of the outer fold
that is one of the units. So candidates that were fixed beforehand can be chosen anew without
each fold, from one factorization each. Whatever is not fixed beforehand is tuned anew by refits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.held_out import HeldOut
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._system import targets_as_columns
from looms.lssvm.conditioning import tie_of
from looms.lssvm.fit import KernelMember
from looms.lssvm.projection import Projection
from looms.optimize._search import Point
from looms.selection._candidates import HeldOutLoss
from looms.selection._decisions import Area, Decided, Decisions, Made, Rule
from looms.selection._objective import HeldOutCriterion
from looms.selection._scan import grid_points
from looms.units import Batch, Units, of_one_size

#: Threshold and calibrator by held-out outputs of some rows.
RuleOf: TypeAlias = Callable[[Array, AnyArray], HeldOutLoss]

_NUMBERS = 1 << 17  # in the outputs of some folds, as many as stay near the processor


@dataclass(frozen=True, eq=False, repr=False)
class Nested:
    """Held-out predictions by models that were selected without the rows they predict.

    Attributes
    ----------
    units : folds of the m rows of positive weight, each of which is held out.
    held_out : output of each row by the model that was selected without its fold; of a transformed
        target, its prediction.
    decisions : classes and probabilities by the threshold and the calibrator that were set without
        the row; None for numbers. A grid also holds out a fold of another class, if there are
        enough.
    auc : area under the ROC curve over pairs of rows that one model was neither tuned nor trained
        on, and what each row adds to it. A grid compares rows of two held-out folds; models that
        were tuned anew compare rows of one fold. None if the outcome has none.
    models : models that were selected without some fold: for each point of a grid that was
        selected, a member with its values, not fitted; otherwise the model that was tuned anew
        without each fold: its members, or as a fitted value if it takes tables.
    model_of_fold : (n_folds,) number of the model of each fold.
    whole : False if only the last step was repeated without the row: candidates, each tuned without
        it, were compared or stacked by the rows of the other folds.
    tie : the largest of the models, as of `looms.lssvm.fit.Fit`.
    own_residuals : (m,) or (m, t) residual of each row on the scale of the model without its fold,
        if that may be another than that of the targets.

    Notes
    -----
    The repeated selection covers the kernel, its width, regularization, landmarks, threshold and
    calibration. It does not cover earlier steps on the features, such as scaling; steps that ignore
    the targets bias scores little.
    """

    units: Units
    held_out: HeldOut
    decisions: Decisions | None
    auc: Area | None
    models: tuple[Any, ...]
    model_of_fold: AnyArray
    whole: bool = True
    tie: float = 0.0
    own_residuals: Array | None = None

    @classmethod
    def of_folds(
        cls,
        units: Units,
        held_out: HeldOut,
        outcome: Any,
        rules: Sequence[Rule] | None,
        models: Sequence[Any],
        tie: float,
        whole: bool = True,
        own_residuals: Array | None = None,
    ) -> Self:
        """Of a model for each fold.

        Parameters
        ----------
        units, held_out, models, whole, tie, own_residuals : as for the class.
        outcome : of the targets, as of `looms.fitted`.
        rules : of the decisions on each fold; None for numbers.
        """
        decisions = auc = None
        if rules is not None:
            decided = [
                outcome.decided(out, held_out.outputs[out], rule)
                for out, rule in zip(units.tested_by, rules, strict=True)
            ]
            decisions = outcome.decisions(decided, held_out.y)
            Y, f, weight = (targets_as_columns(each) for each in held_out)
            tested, together = units.tested_by, units.scored_together
            auc = outcome.area(Y, f, tested, [], [], weight[:, 0], tie, together)
        numbers = np.arange(len(models))
        made = decisions, auc, tuple(models), numbers
        return cls(units, held_out, *made, whole, tie, own_residuals)

    @property
    def made(self) -> Made | None:
        """Decisions and area; None for numbers."""
        return None if self.decisions is None else (self.decisions, self.auc)

    @property
    def residuals(self) -> Array:
        """Residual of each row on the scale of the model without its fold."""
        return self.held_out.residuals if self.own_residuals is None else self.own_residuals

    @property
    def in_closed_form(self) -> bool:
        """True if the models are points of a grid, whose systems are not kept here."""
        return isinstance(self.models[0], KernelMember)


class InnerFolds:
    """Selection among fixed candidates on the rows outside some units: every unit, and pairs.

    A candidate competes everywhere when it is evaluated, and the next may follow.

    Parameters
    ----------
    y : (n,) or (n, t) targets.
    units : three or more, in which every row is once.
    outcome : of the targets, as of `looms.fitted`; for an area under the ROC curve pairs of units
        are held out, too.

    Attributes
    ----------
    left_out : numbers of the units that are held out together: every unit, then the pairs.
    settings : candidates so far.
    chosen : (n_folds,) candidate of the least criterion on the rows outside, the first of equal
        ones; -1 if none could be evaluated.
    outputs : (n_folds, n, t) by that candidate: of rows outside, held out as well; of the units
        left out, by the model that is trained without them.
    ties : (n_folds,) of that candidate, as of `looms.lssvm.fit.Fit`.

    Notes
    -----
    n³ flops for a candidate, of few features n² p, and O(n² (s + t)) for units of s rows; n t
    numbers are kept for each unit and pair, of which single rows have three each.

    Examples
    --------
    >>> from looms.fitted._outcome import Numbers
    >>> from looms.selection._objective import Objective
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 3)), rng.normal(size=40)      # nothing to be learned
    >>> objective = Objective(X, y)
    >>> choice = InnerFolds(y, objective.units, Numbers())
    >>> thetas = [objective.theta0 + [0.0, shift] for shift in range(-6, 8)]
    >>> points = [choice.evaluate(objective, theta) for theta in thetas]
    >>> held_out = choice.outputs[range(40), range(40), 0]
    >>> bool(np.mean((y - held_out) ** 2) > min(point.value for point in points))
    True
    """

    def __init__(self, y: Array, units: Units, outcome: Any) -> None:
        self.y, self.units, self.outcome, self.settings = y, units, outcome, list[KernelMember]()
        Y, self._members = targets_as_columns(y), tuple(units)
        pairs = outcome.pairs(Y, units.number[0])
        self.left_out: list[tuple[int, ...]] = [(g,) for g in range(units.n_units)] + [*pairs]
        self._rows = [np.concatenate([self._members[g] for g in gone]) for gone in self.left_out]
        self._outside = np.ones((len(self._rows), len(y)), dtype=bool)
        for outside, rows in zip(self._outside, self._rows, strict=True):
            outside[rows] = False
        self._least = np.full(len(self._rows), np.inf)
        self.chosen = np.full(len(self._rows), -1)
        self.outputs, self.ties = np.empty((len(self._rows), *Y.shape)), np.zeros(len(self._rows))

    @staticmethod
    def can_take(units: Units) -> bool:
        """True for three units or more in which every row is once."""
        return units.shape[0] == 1 and bool((units.number >= 0).all()) and units.n_units > 2

    def scan(self, objective: HeldOutCriterion) -> list[Point]:
        """Points of the grid of an objective, all of which compete; a factorization each."""
        return [self.evaluate(objective, theta) for theta in grid_points(objective)]

    def evaluate(self, objective: HeldOutCriterion, theta: Array) -> Point:
        """Criterion of a candidate, which competes everywhere; infinite if it cannot.

        Objectives differ in their kernels only.
        """
        values = objective.kernel_at(theta), objective.mu_at(theta)
        self.settings.append(KernelMember(1.0, *values))
        try:
            with blas_threads(objective.n_samples):
                projection = objective.solve(theta)
                point, _ = objective.judged(theta, projection)
                finite = np.isfinite(point.value)
                better = list(self._better(objective, projection)) if finite else []
        except NotPositiveDefiniteError:
            return Point(theta, np.inf, np.inf)
        for folds, inner, f in better:
            self._least[folds], self.chosen[folds] = inner, len(self.settings) - 1
            self.ties[folds] = tie_of(self.y, projection.size, projection.alpha)
            self.outputs[folds] = f
        return point

    def _better(
        self, objective: HeldOutCriterion, projection: Projection
    ) -> Iterator[tuple[AnyArray, Array, Array]]:
        """Folds in which a candidate has the least criterion so far, with that and its outputs."""
        Y, none = projection.y, np.empty(0, dtype=np.intp)
        for part, rows in of_one_size(self._rows, max(1, _NUMBERS // len(Y))):
            f = projection.of_rows(Batch(part, none, rows), self.units, inner=self.units)
            weight = objective.selection_weight[:, None] * self._outside[part].T
            inner = objective.criterion.values(Y, f.swapaxes(0, 1), weight)
            less = np.flatnonzero(np.where(np.isfinite(inner), inner, np.inf) < self._least[part])
            yield part[less], inner[less], f[less]

    def nested(self, weight: Array, rule_of: RuleOf) -> Nested:
        """Predictions of every row, threshold and calibration set without its unit.

        Parameters
        ----------
        weight : (n,) for the area under the curve.
        rule_of : threshold and calibrator of held-out outputs of some of the n rows.

        Raises
        ------
        ValueError
            If no candidate could be evaluated without some unit or pair.
        """
        if (self.chosen < 0).any():
            raise ValueError(
                "No candidate could be evaluated without some rows: scale the features, or use "
                "larger mu."
            )
        number, n = self.units.number[0], len(self.y)
        used, model = np.unique(self.chosen[: self.units.n_units], return_inverse=True)
        outputs = self.outputs[number, np.arange(n)]
        decisions, auc, tie = None, None, float(self.ties.max())
        if self.outcome.decides:
            first = self.units.n_units
            in_pairs = {g for pair in self.left_out[first:] for g in pair}
            pairs = range(first, len(self.left_out))
            alone = (g for g in range(first) if g not in in_pairs)
            decided = [self._decided(k, rule_of) for k in [*pairs, *alone]]
            decisions = self.outcome.decisions(decided, self.y)
            auc = self.outcome.area(
                targets_as_columns(self.y),
                outputs,
                self._members,
                [(g, h) for g, h in self.left_out[first:]],
                [self.outputs[k][self._rows[k]] for k in pairs],
                weight,
                tie,
                self.units.scored_together,
            )
        held_out = HeldOut(self.y, outputs.reshape(self.y.shape), weight)
        models = tuple(self.settings[k] for k in used)
        return Nested(self.units, held_out, decisions, auc, models, model, tie=tie)

    def _decided(self, k: int, rule_of: RuleOf) -> Decided:
        """Decisions on a unit or a pair."""
        out, rest = self._rows[k], np.flatnonzero(self._outside[k])
        f, tie = self.outputs[k].reshape(self.y.shape), self.ties[k]
        loss = rule_of(self.outcome.tied(f[rest], tie), rest)
        decided: Decided = self.outcome.decided(out, f[out], loss.rule(tie))
        return decided
