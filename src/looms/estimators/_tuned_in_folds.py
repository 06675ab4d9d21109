"""Machines that were tuned anew without each of some folds: choices among them, and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from looms._classes import class_factors, class_indices, with_ties
from looms._typing import AnyArray, Array, Matrix
from looms.calibration._calibrators import Calibrator
from looms.estimators._folds import predicted_without
from looms.estimators._rows_of_fit import RowsOfFit
from looms.held_out import HeldOut
from looms.lssvm.fit import Member
from looms.selection._decisions import Decided
from looms.selection._nested import Nested
from looms.units import Units


@dataclass(frozen=True, eq=False)
class TunedInFolds:
    """Machines that were tuned anew without each of some folds.

    Attributes
    ----------
    outer : units of the m rows, each of which is tested once.
    outputs : (m,) or (m, t) output of each row by the machine that was tuned without its fold.
    own : for each of these machines, held-out outputs of the rows outside its fold; ties are equal.
    members : for each of these machines, its members, with coefficients of all rows.
    ties : for each of these machines, the difference up to which outputs for labels are equal.
    """

    outer: Units
    outputs: Array
    own: tuple[Array, ...]
    members: tuple[tuple[Member, ...], ...]
    ties: tuple[float, ...]

    @classmethod
    def of(cls, machines: Sequence[Any], outer: Units, X: Matrix, train: AnyArray) -> TunedInFolds:
        """From machines in the order of the folds of rows ``train``."""
        outputs = predicted_without(
            machines, outer, X, train, lambda one, X: with_ties(one._outputs(X), one._tie)
        )
        members = [
            tuple(one.among(np.delete(np.arange(len(train)), rows), len(train)) for one in members)
            for rows, members in zip(outer, (machine.members_ for machine in machines), strict=True)
        ]
        own = tuple(with_ties(one.held_out_.outputs, one._tie) for one in machines)
        return cls(outer, outputs, own, tuple(members), tuple(one._tie for one in machines))

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

    def rules(self, y: Array, rows: RowsOfFit) -> list[tuple[float | Array, Calibrator | None]]:
        """Threshold and calibrator of each fold, by the machine's own held-out outputs.

        Outputs of the other folds' machines may be on another scale, a hundred times as large. The
        rules use the class proportions of all rows.
        """
        rules = []
        stays = self.outer.stays(np.arange(self.outer.n_units))
        for rest, own in zip(map(np.flatnonzero, stays), self.own, strict=True):
            factor = class_factors(class_indices(y), rows.own(rows.weight), rest)
            score = rows.score(HeldOut(y[rest], own), rest, factor)
            rules.append((score.threshold, score.calibrator))
        return rules

    def nested(
        self,
        rows: RowsOfFit,
        y: Array,
        rules: Sequence[tuple[float | Array, Calibrator | None]] | None,
        *,
        whole: bool,
    ) -> Nested:
        """Predictions, and the machines, as a value of `looms.selection`.

        Parameters
        ----------
        rows : of the fit.
        y : targets, shaped like the outputs.
        rules : threshold and calibrator of each fold; None for numbers.
        whole : as for `Nested`.
        """
        rounds = [
            Decided.of(out, self.outputs[out], *rule, tie)
            for out, rule, tie in zip(self.outer.tested_by, rules or (), self.ties, strict=False)
        ]
        held_out, tie = HeldOut(y, self.outputs, rows.own(rows.weight)), max(self.ties)
        return Nested.of_folds(
            rows.train, self.outer, held_out, rounds or None, self.members, tie, whole
        )
