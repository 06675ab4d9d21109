"""Outcome of a search among candidates, as the fitted attributes of a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from looms._classes import class_indices
from looms._typing import Array
from looms.blocks import RowBlocks
from looms.estimators._cv_results import candidates_table
from looms.estimators._fits import fitted_machine
from looms.estimators._folds import folds_of_area
from looms.estimators._rows_of_fit import RowsOfFit
from looms.estimators._tuned_in_folds import TunedInFolds
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.lssvm import NotPositiveDefiniteError
from looms.selection._candidates import Candidates, Choice
from looms.selection._nested import Nested
from looms.units import Units


@dataclass(frozen=True, eq=False)
class Selection:
    """A candidate, or a stack of several, and the predictions that tell how good it is.

    Attributes
    ----------
    rows : of the fit.
    units : rows that the criterion held out together, of those that take part.
    choice : candidates and their machines.
    fit_intercept : of the machines.
    nested : predictions by choices that were made without the row, as far as the search had them.
    tuned : machines that were tuned without each fold, if these compared the candidates; held-out
        outputs are theirs.
    unfitted : machine to be tuned in outer folds, when its scores are asked for; None for none.
    """

    rows: RowsOfFit
    units: Units
    choice: Choice
    fit_intercept: bool
    nested: Nested | None = None
    tuned: TunedInFolds | None = None
    unfitted: Any = None

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the machine on the samples of positive weight."""
        rows, choice, tuned = self.rows, self.choice, self.tuned
        train, compared = rows.train, None
        shares = {choice.candidates.index(choice.best): 1.0}
        if choice.weights is not None:
            shares = {k: share for k, share in enumerate(choice.weights.tolist()) if share}
        fits = [fit for _, fit in (choice.machines[k] for k in shares) if fit is not None]
        fitted = fitted_machine(rows.X, rows.weight, rows.targets, [*shares.values()], fits)
        if tuned is not None:
            outputs = fitted["loo_"].outputs.copy()
            outputs[train] = tuned.outputs
            fitted["held_out_"] = HeldOut(rows.targets, outputs, rows.weight)
            compared = tuned.outer.spread(train, rows.groups)
        return fitted | {
            "candidates_": Candidates(choice.candidates),
            "best_index_": choice.candidates.index(choice.best),
            "cv_results_": candidates_table(choice.candidates),
            "selection_": choice.tuning,
            "n_iter_": max(1, choice.tuning.n_iterations),
            "units_": self.units.spread(train, rows.groups),
            "candidate_weights_": choice.weights,
            "choice_units_": compared,
            "selection_weight_": rows.selection_weight,
            "_nested": self.nested,
            "_unfitted": self.unfitted,
            "_outer_seed": rows.seed,
            "_scored_in": self._scored_in() if rows.classes else None,
        }

    def _scored_in(self) -> tuple[Units, Array] | None:
        """Units, and outputs without them, that decisions are scored by; None if by `units`.

        Rows in blocks are scored while they are at hand, by the folds of the criterion. If it held
        out rows or groups, which cannot be compared under one machine, these are ten folds, unless
        a class has too few rows for that, or the machine without some fold cannot be fitted.
        """
        fit = self.choice.fit
        if self.tuned is not None:
            return self.tuned.outer, self.tuned.outputs
        if fit.units is not self.units:
            return fit.units, fit.mean_held_out.outputs
        if not isinstance(self.rows.X, RowBlocks):
            return None
        known, tens = (self.units, fit.mean_held_out.outputs), self.units
        if self.units.unit != "fold":
            tens = folds_of_area(class_indices(fit.y), self.units)
        if tens is self.units:
            return known
        X = training_rows(self.rows.X, self.rows.train, pairwise=False)
        left_out = fit.member.left_out(X, fit.y, fit.sample_weight, self.fit_intercept)
        try:
            return tens, left_out.outputs(tens)[0].reshape(fit.y.shape)
        except NotPositiveDefiniteError:
            return known
