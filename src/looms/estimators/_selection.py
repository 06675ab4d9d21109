"""Choices among candidates by rows that they were tuned without, and the model that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from looms._typing import AnyArray, Array
from looms.blocks import RowBlocks
from looms.estimators._estimator_member import EstimatorMember
from looms.estimators._folds import predicted_without, tuned_without, unfitted
from looms.estimators._warnings import warn_of_no_stack
from looms.fitted._fitted import Fitted, Selected, sum_of
from looms.fitted._rows import OUTER_FOLDS, Rows, folds_or_units
from looms.folds import is_number_of_folds
from looms.held_out import HeldOut
from looms.kernels._names import is_estimator
from looms.kernels._samples import training_rows
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm.fit import Fit, Member
from looms.selection._candidates import Candidates, Choice, HeldOutLoss
from looms.selection._decisions import Rule
from looms.selection._nested import Nested
from looms.selection._stack import weight_of_best
from looms.units import Units

#: Rows up to which candidates are compared, or weighted, in folds that each was tuned without.
MOST_IN_FOLDS = 2000


@dataclass(frozen=True, eq=False)
class TunedInFolds:
    """Models that were tuned anew without each of some folds.

    Attributes
    ----------
    outer : units of the m rows, each of which is tested once.
    outputs : (m,) or (m, t) output of each row by the model that was tuned without its fold.
    own : for each of these models, held-out outputs of the rows outside its fold. Of an estimator
        they are those of the models without the other folds. Ties of outputs for labels are equal.
    members : for each of these models, its members, with coefficients of all rows.
    ties : for each of these models, as of `Fit`.
    """

    outer: Units
    outputs: Array
    own: tuple[Array, ...]
    members: tuple[tuple[Member, ...], ...]
    ties: tuple[float, ...]

    @classmethod
    def of(cls, models: Sequence[Fitted], outer: Units, rows: Rows) -> TunedInFolds:
        """From models in the order of the folds."""

        tied, m = rows.outcome.tied, len(rows.train)
        outputs = predicted_without(
            models, outer, rows, lambda model, X: tied(model.outputs(X), model.tie)
        )
        members = [
            tuple(member.among(np.delete(np.arange(m), left), m) for member in model.members)
            for left, model in zip(outer, models, strict=True)
        ]
        own = tuple(tied(model.held_out.outputs, model.tie) for model in models)
        return cls(outer, outputs, own, tuple(members), tuple(model.tie for model in models))

    @classmethod
    def of_estimator(cls, fit: Fit, outer: Units) -> TunedInFolds:
        """From the fit of an estimator in these folds, without each of which it was refitted.

        Held-out outputs of the rows outside a fold are taken from the models without the other
        folds, which were fitted to the rows of that fold; refits without every two folds would be
        three times as many.
        """
        outputs = fit.mean_held_out.outputs
        own = tuple(outputs[stay] for stay in outer.stays(np.arange(outer.n_units)))
        assert isinstance(fit.member, EstimatorMember)
        pairs = zip(fit.member.without, own, strict=True)
        members = tuple((replace(one, held_out=f),) for one, f in pairs)
        return cls(outer, outputs, own, members, (fit.tie,) * outer.n_units)

    @classmethod
    def stacked(cls, candidates: Sequence[TunedInFolds], weights: Array) -> TunedInFolds:
        """Stacks of some candidates; ``weights``, (n_folds, n_candidates), are of each fold."""
        outer = candidates[0].outer
        outputs = np.array([candidate.outputs for candidate in candidates])
        of_rows = weights[outer.own].T.reshape(outputs.shape[:2] + (1,) * (outputs.ndim - 2))
        members = (
            tuple(
                member.weighing(w * member.weight)
                for w, candidate in zip(weights[k], candidates, strict=True)
                for member in candidate.members[k]
                if w > 0
            )
            for k in range(len(weights))
        )
        own = (
            sum(w * candidate.own[k] for w, candidate in zip(weights[k], candidates, strict=True))
            for k in range(len(weights))
        )
        ties = tuple(map(max, zip(*(candidate.ties for candidate in candidates), strict=True)))
        return cls(outer, (of_rows * outputs).sum(axis=0), tuple(own), tuple(members), ties)

    def rules(self, y: Array, rows: Rows) -> list[Rule]:
        """Threshold and calibrator of each fold, by the model's own held-out outputs, and its tie.

        Outputs of the other folds' models may be on another scale, a hundred times as large. The
        rules use the class proportions of all rows.
        """
        rules = []
        stays = self.outer.stays(np.arange(self.outer.n_units))
        for rest, own, tie in zip(map(np.flatnonzero, stays), self.own, self.ties, strict=True):
            factor = rows.outcome.factors(y, rows.own(rows.weight), rest)
            loss = rows.loss(HeldOut(y[rest], own), rest, factor)
            rules.append(Rule(loss.threshold, loss.calibrator, tie))
        return rules

    def nested(
        self,
        rows: Rows,
        y: Array,
        rules: Sequence[Rule] | None,
        *,
        whole: bool,
    ) -> Nested:
        """Predictions of the targets ``y``, and the models; `Nested.of_folds`."""
        held_out = HeldOut(y, self.outputs, rows.own(rows.weight))
        more = rows.outcome, rules, self.members, max(self.ties), whole
        return Nested.of_folds(rows.train, self.outer, held_out, *more)


@dataclass(frozen=True, eq=False)
class Selection:
    """A candidate, or a stack of several, and the predictions that tell how good it is.

    Attributes
    ----------
    rows : of the fit.
    units : rows that the criterion held out together, of those that take part.
    choice : candidates and their models.
    in_folds : predictions by candidates that were tuned without the row, compared or stacked by
        the others; held-out outputs are theirs. None if no folds compared them.
    """

    rows: Rows
    units: Units
    choice: Choice
    in_folds: Nested | None = None

    def fitted(self, fit_intercept: bool, searched: bool, **others: Any) -> Fitted:
        """The fitted model; ``searched`` is false if all values were given."""
        choice, summed = self.choice, self._summed
        selection = None
        if searched:
            record = Candidates(choice.candidates), choice.index, choice.tuning
            selection = Selected(*record, self._best_closed)
        return Fitted.of(
            self.rows,
            self.units,
            summed,
            fit_intercept,
            Rule(choice.loss.threshold, choice.loss.calibrator, 0.0),
            selection=selection,
            candidate_weights=choice.weights,
            in_folds=self.in_folds,
            loss=choice.loss.value,
            blocks_scored_in=self._blocks_scored_in(fit_intercept),
            **others,
        )

    @property
    def _best_closed(self) -> Member | None:
        """The best candidate in closed form, if no member of the model is."""
        if any(fit.member.closed for _, fit in self._summed):
            return None
        fits = self.choice.fits
        losses = {k: self.choice.candidates[k].loss for k, fit in fits.items() if fit.member.closed}
        if not losses:
            return None
        best = min(losses, key=losses.__getitem__)
        return fits[best].member.among(self.rows.train, len(self.rows.weight))

    @property
    def _summed(self) -> list[tuple[float, Fit]]:
        """Weights of the models that are summed, and their fits."""
        choice = self.choice
        if choice.weights is None:
            return [(1.0, choice.fit)]
        return [(w, choice.fits[k]) for k, w in enumerate(choice.weights.tolist()) if w]

    def _blocks_scored_in(self, fit_intercept: bool) -> tuple[Units, Array] | None:
        """Units, and outputs without them, that decisions on rows in blocks are scored by.

        They are scored while they are at hand, by the folds of the criterion. If it held out rows
        or groups, which cannot be compared under one model, these are ten folds, unless a class has
        too few rows for that, or the model without some fold cannot be fitted.
        """
        rows, fit, summed, units = self.rows, self.choice.fit, self._summed, self.units
        stratified = rows.outcome.stratified
        if not (stratified and isinstance(rows.X, RowBlocks)) or self.in_folds is not None:
            return None
        if not all(fit.member.closed for _, fit in summed):
            return None
        known = units, np.sum([w * one.mean_held_out.outputs for w, one in summed], axis=0)
        if units.in_folds:
            return known
        tens = folds_or_units(rows.outcome.codes(fit.loo.y), units, stratified, OUTER_FOLDS)
        if tens is units:
            return known
        X = training_rows(rows.X, rows.train, pairwise=False)
        data = X, fit.loo.y, fit.loo.sample_weight, fit_intercept
        left_out = sum_of([w for w, _ in summed], [one.member.left_out(*data) for _, one in summed])
        try:
            return tens, left_out.outputs(tens)[0].reshape(fit.loo.y.shape)
        except NotPositiveDefiniteError:
            return known


def choice_folds(model: Any, rows: Rows, units: Units) -> Units | None:
    """Folds that several candidates are compared in; None of many rows, or if they cannot be made.

    On many rows tuning hardly leaves a trace.
    """
    if len(rows.train) > MOST_IN_FOLDS:
        return None
    try:
        return rows.choice_units(model.cv, units)
    except ValueError as error:
        if model._stacks:
            warn_of_no_stack(str(error).rstrip("."))
        return None


def combined_in_folds(
    model: Any, selection: Selection, candidates: Sequence[Any], outer: Units
) -> Selection:
    """The best candidate, or a stack, by rows of folds that each candidate was tuned without.

    Models without a fold are combined in the same way, by the rows of the other folds. The
    selection stays as it is if there is one candidate.
    """
    choice, rows = selection.choice, selection.rows
    fits = choice.fits
    if len(fits) < 2:
        return selection
    cv = model.cv if is_number_of_folds(model.cv) else None  # units take its place
    closed = [k for k, fit in fits.items() if fit.member.closed]
    alone = [
        unfitted(model, candidates=[candidates[k]], combine="best", cv=cv, **model._as_given)
        for k in closed
    ]
    tuned = tuned_without(model, alone, outer, rows, model.cv, selection.units)
    models = dict(zip(closed, tuned, strict=True))
    in_folds = [
        TunedInFolds.of(models[k], outer, rows)
        if k in models
        else TunedInFolds.of_estimator(fit, outer)
        for k, fit in fits.items()
    ]
    y, outputs = choice.fit.loo.y, np.array([one.outputs for one in in_folds])
    weights, losses = _compared(model, selection, outputs, np.arange(len(y)))
    stays = map(np.flatnonzero, outer.stays(np.arange(outer.n_units)))
    of_folds = [_compared(model, selection, outputs, stay)[0] for stay in stays]
    stack = TunedInFolds.stacked(in_folds, np.array(of_folds)[:, [*fits]])
    of_fit = sum(weights[k] * fit.decided.outputs for k, fit in fits.items())
    loss = _loss_with_rule_for(HeldOut(y, of_fit), HeldOut(y, stack.outputs), rows)
    rules = stack.rules(y, rows) if rows.outcome.decides else None
    nested = stack.nested(rows, y, rules, whole=False)
    combined = choice.combined(weights, losses, loss, stacked=model._stacks)
    return replace(selection, choice=combined, in_folds=nested)


def stacked_by_fit(model: Any, selection: Selection) -> Selection:
    """A stack by the held-out outputs of the fit, of many rows on which tuning leaves no trace.

    The selection stays as it is if there is one candidate, or few rows.
    """
    choice, fits = selection.choice, selection.choice.fits
    if len(fits) < 2 or len(selection.rows.train) <= MOST_IN_FOLDS:
        return selection
    y, outputs = choice.fit.loo.y, np.array([fit.decided.outputs for fit in fits.values()])
    weights, losses = _compared(model, selection, outputs, np.arange(len(y)))
    summed = np.tensordot(weights[[*fits]], outputs, axes=1)
    loss = selection.rows.loss(HeldOut(y, summed))
    return replace(selection, choice=choice.combined(weights, losses, loss, stacked=True))


def _compared(
    model: Any, selection: Selection, outputs: Array, some: AnyArray
) -> tuple[Array, Array]:
    """Weights of all candidates by some rows, and their losses on these.

    ``outputs``, (k, n) or (k, n, t), are of the candidates that could be evaluated; others have the
    weight 0 and an infinite loss.
    """
    choice, rows = selection.choice, selection.rows
    evaluated = [*choice.fits]
    y, factor = choice.fit.loo.y, np.ones(len(some))
    if rows.weighs:
        factor = rows.outcome.factors(y, rows.own(rows.weight), some)
    y, outputs = y[some], outputs[:, some]
    of_some = np.array([rows.loss(HeldOut(y, f), some, factor).value for f in outputs])
    weights, losses = np.zeros(len(choice.models)), np.full(len(choice.models), np.inf)
    losses[evaluated] = of_some
    if model._stacks:
        weight = factor * rows.fit_weight[rows.train[some]]
        weights[evaluated] = rows.outcome.stacking_weights(y, outputs, weight)
    else:
        tried = [choice.candidates[k] for k in evaluated]
        sizes = [np.inf if is_estimator(one.kernel) else len(one.params) for one in tried]
        weights[evaluated] = weight_of_best(of_some, np.array(sizes))
    return weights, losses


def _loss_with_rule_for(of_fit: HeldOut, in_folds: HeldOut, rows: Rows) -> HeldOutLoss:
    """Loss of outputs in folds, with their threshold and calibrator if these suit the fit.

    Models without a fold may be tuned to hardly any output, above all of noise: a calibrator of
    such outputs is steep, and the model of all rows would be too sure. Then it is one of the
    held-out outputs of the fit.
    """
    loss = rows.loss(in_folds)
    if loss.calibrator is None or not _worse_than_shares(loss, of_fit, rows):
        return loss
    return rows.loss(of_fit)._replace(value=loss.value)


def _worse_than_shares(loss: HeldOutLoss, held_out: HeldOut, rows: Rows) -> bool:
    """True if the probabilities of held-out outputs have a larger log loss than class shares."""
    outcome, weight = rows.outcome, rows.own(rows.weight)
    labels, rule = outcome.codes(held_out.y), Rule(loss.threshold, loss.calibrator, 0.0)
    p = outcome.probabilities(held_out.outputs, rule)[np.arange(len(labels)), labels]
    with np.errstate(divide="ignore"):
        of_labels = -np.average(np.log(p), weights=weight)
    return bool(of_labels > outcome.baselines(held_out.y, weight)["log_loss"])
