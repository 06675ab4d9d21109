"""Choices among candidates by rows that they were tuned without, and the model that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

from looms._classes import class_factors, class_indices, merge_ties
from looms._scores import class_baselines
from looms._typing import AnyArray, Array
from looms.blocks import RowBlocks
from looms.calibration._calibrators import Calibrator, class_probabilities
from looms.estimators._estimator_member import EstimatorMember
from looms.estimators._folds import (
    OUTER_FOLDS,
    RowsOfFit,
    folds_or_units,
    predicted_without,
    tuned_without,
    unfitted,
)
from looms.estimators._kernel_model import fitted_model, sum_of
from looms.estimators._warnings import warn_of_no_stack
from looms.folds import is_number_of_folds
from looms.held_out import HeldOut
from looms.kernels._names import is_estimator
from looms.kernels._samples import training_rows
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm.fit import Fit, Member
from looms.selection._candidates import Candidate, Candidates, Choice, HeldOutLoss
from looms.selection._decisions import Rule
from looms.selection._nested import Nested
from looms.selection._stack import stacking_weights, weight_of_best
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
    def of(cls, models: Sequence[Any], outer: Units, rows: RowsOfFit) -> TunedInFolds:
        """From models in the order of the folds."""

        def tied(f: Array, tie: float) -> Array:
            return merge_ties(f, tie) if rows.classes else f

        outputs = predicted_without(
            models, outer, rows, lambda one, X: tied(one._outputs(X), one._tie)
        )
        m = len(rows.train)
        members = [
            tuple(member.among(np.delete(np.arange(m), left), m) for member in model.members_)
            for left, model in zip(outer, models, strict=True)
        ]
        own = tuple(tied(one.held_out_.outputs, one._tie) for one in models)
        return cls(outer, outputs, own, tuple(members), tuple(one._tie for one in models))

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

    def rules(self, y: Array, rows: RowsOfFit) -> list[Rule]:
        """Threshold and calibrator of each fold, by the model's own held-out outputs, and its tie.

        Outputs of the other folds' models may be on another scale, a hundred times as large. The
        rules use the class proportions of all rows.
        """
        rules = []
        stays = self.outer.stays(np.arange(self.outer.n_units))
        for rest, own, tie in zip(map(np.flatnonzero, stays), self.own, self.ties, strict=True):
            factor = class_factors(class_indices(y), rows.own(rows.weight), rest)
            loss = rows.loss(HeldOut(y[rest], own), rest, factor)
            rules.append(Rule(loss.threshold, loss.calibrator, tie))
        return rules

    def nested(
        self,
        rows: RowsOfFit,
        y: Array,
        rules: Sequence[Rule] | None,
        *,
        whole: bool,
    ) -> Nested:
        """Predictions of the targets ``y``, and the models; `Nested.of_folds`."""
        held_out = HeldOut(y, self.outputs, rows.own(rows.weight))
        more = rules, self.members, max(self.ties), whole
        return Nested.of_folds(rows.train, self.outer, held_out, *more)


@dataclass(frozen=True, eq=False)
class Selection:
    """A candidate, or a stack of several, and the predictions that tell how good it is.

    Attributes
    ----------
    rows : of the fit.
    units : rows that the criterion held out together, of those that take part.
    choice : candidates and their models.
    fit_intercept : of the models.
    searched : whether something was tuned or selected; all values were given if not.
    in_folds : predictions by candidates that were tuned without the row, compared or stacked by
        the others; held-out outputs are theirs. None if no folds compared them.
    for_folds : the candidates as they are fitted without a fold of an evaluation.
    seconds : that model selection took.
    """

    rows: RowsOfFit
    units: Units
    choice: Choice
    fit_intercept: bool
    searched: bool
    in_folds: Nested | None = None
    for_folds: Sequence[Any] = ()
    seconds: float = 0.0

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the model on the samples of positive weight."""
        rows, choice, nested = self.rows, self.choice, self.in_folds
        train, by_folds = rows.train, None
        shares, fits = zip(*self._summed, strict=True)
        fitted = fitted_model(rows.X, rows.weight, rows.targets, shares, fits)
        if nested is not None:
            outputs = fitted["loo_"].outputs.copy()
            outputs[train] = nested.held_out.outputs
            fitted["held_out_"] = HeldOut(rows.targets, outputs, rows.weight)
            by_folds = nested.units.spread(train, rows.groups)
        if self.searched:
            fitted |= {
                "candidates_": Candidates(choice.candidates),
                "best_index_": choice.index,
                "cv_results_": candidates_table(choice.candidates),
                "selection_": choice.tuning,
                "n_iter_": max(1, choice.tuning.n_iterations),
            }
        return fitted | {
            "units_": self.units.spread(train, rows.groups),
            "candidate_weights_": choice.weights,
            "choice_units_": by_folds,
            "selection_weight_": rows.selection_weight,
            "_in_folds": nested,
            "_fit_seconds": self.seconds,
            "_outer_seed": rows.seed,
            "_grouped": rows.grouped,
            "_scored_in": self._scored_in() if rows.classes else None,
            "_best_closed": self._best_closed,
        }

    @property
    def _best_closed(self) -> Member | None:
        """The best candidate in closed form, if no member of the model is."""
        if any(fit.member.closed for _, fit in self._summed):
            return None
        of_all = zip(self.choice.candidates, self.choice.models, strict=True)
        closed = [
            (one.loss, k) for k, (one, (_, fit)) in enumerate(of_all) if fit and fit.member.closed
        ]
        if not closed:
            return None
        train, n = self.rows.train, len(self.rows.weight)
        return self.choice.fits[min(closed)[1]].member.among(train, n)

    @property
    def _summed(self) -> list[tuple[float, Fit]]:
        """Weights of the models that are summed, and their fits."""
        choice = self.choice
        if choice.weights is None:
            return [(1.0, choice.fit)]
        pairs = zip(choice.weights.tolist(), choice.models, strict=True)
        return [(share, fit) for share, (_, fit) in pairs if share and fit is not None]

    def _scored_in(self) -> tuple[Units, Array] | None:
        """Units, and outputs without them, that decisions are scored by; None if by `units`.

        Rows in blocks are scored while they are at hand, by the folds of the criterion. If it held
        out rows or groups, which cannot be compared under one model, these are ten folds, unless
        a class has too few rows for that, or the model without some fold cannot be fitted.
        """
        fit, summed = self.choice.fit, self._summed
        if self.in_folds is not None:
            return self.in_folds.units, self.in_folds.held_out.outputs
        outputs = np.sum([w * one.mean_held_out.outputs for w, one in summed], axis=0)
        opened = next((one for _, one in summed if not one.member.closed), None)
        if opened is not None:
            return opened.units, outputs
        if not isinstance(self.rows.X, RowBlocks):
            return None
        known, tens = (self.units, outputs), self.units
        if not self.units.in_folds:
            tens = folds_or_units(class_indices(fit.loo.y), self.units, True, OUTER_FOLDS)
        if tens is self.units:
            return known
        X = training_rows(self.rows.X, self.rows.train, pairwise=False)
        y, zeta = fit.loo.y, fit.loo.sample_weight
        each = [one.member.left_out(X, y, zeta, self.fit_intercept) for _, one in summed]
        left_out = sum_of([w for w, _ in summed], each)
        try:
            return tens, left_out.outputs(tens)[0].reshape(fit.loo.y.shape)
        except NotPositiveDefiniteError:
            return known


def choice_folds(model: Any, rows: RowsOfFit, units: Units) -> Units | None:
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
    alone = [unfitted(model, candidates=[candidates[k]], combine="best", cv=cv) for k in closed]
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
    rules = stack.rules(y, rows) if rows.classes else None
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
    if rows.classes and rows.weighs:
        factor = class_factors(class_indices(y), rows.own(rows.weight), some)
    y, outputs = y[some], outputs[:, some]
    of_some = np.array([rows.loss(HeldOut(y, f), some, factor).value for f in outputs])
    weights, losses = np.zeros(len(choice.models)), np.full(len(choice.models), np.inf)
    losses[evaluated] = of_some
    if model._stacks:
        probable = getattr(model, "calibration", None) is not None
        weight = factor * rows.fit_weight[rows.train[some]]
        weights[evaluated] = stacking_weights(y, outputs, weight, labeled=probable)
    else:
        tried = [choice.candidates[k] for k in evaluated]
        sizes = [np.inf if is_estimator(one.kernel) else len(one.params) for one in tried]
        weights[evaluated] = weight_of_best(of_some, np.array(sizes))
    return weights, losses


def _loss_with_rule_for(of_fit: HeldOut, in_folds: HeldOut, rows: RowsOfFit) -> HeldOutLoss:
    """Loss of outputs in folds, with their threshold and calibrator if these suit the fit.

    Models without a fold may be tuned to hardly any output, above all of noise: a calibrator of
    such outputs is steep, and the model of all rows would be too sure. Then it is one of the
    held-out outputs of the fit.
    """
    loss = rows.loss(in_folds)
    if loss.calibrator is None or not _worse_than_shares(
        loss.calibrator, of_fit, rows.own(rows.weight)
    ):
        return loss
    return rows.loss(of_fit)._replace(value=loss.value)


def _worse_than_shares(calibrator: Calibrator, held_out: HeldOut, weight: Array) -> bool:
    """True if the probabilities of held-out outputs have a larger log loss than class shares."""
    labels = class_indices(held_out.y)
    p = class_probabilities(calibrator, held_out.outputs)[np.arange(len(labels)), labels]
    with np.errstate(divide="ignore"):
        loss = -np.average(np.log(p), weights=weight)
    return bool(loss > class_baselines(labels, weight)["log_loss"])


def candidates_table(candidates: list[Candidate]) -> dict[str, Any]:
    """``cv_results_``: a row for each candidate, a column for each hyper-parameter."""
    losses = np.array([candidate.loss for candidate in candidates])
    params = [candidate.params for candidate in candidates]
    kernels = [one.kernel for one in candidates if not is_estimator(one.kernel)]
    of_features = {h.name for k in kernels for h in k.hyperparameters if h.feature is not None}
    names = dict.fromkeys(name for row in params for name in row if name not in of_features)
    return {
        "kernel": [candidate.kernel_name for candidate in candidates],
        "criterion": [str(candidate.criterion) for candidate in candidates],
        **{f"param_{name}": np.array([row.get(name, np.nan) for row in params]) for name in names},
        "params": params,
        "held_out_loss": losses,
        "rank_held_out_loss": rankdata(losses, method="min").astype(int),
        "seconds": np.array([candidate.seconds for candidate in candidates]),
    }
