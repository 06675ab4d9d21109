"""Machines that were tuned anew without each of some folds: choices among them, and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from looms._classes import class_factors, class_indices, with_ties
from looms._typing import AnyArray, Array, Matrix
from looms.calibration._calibrators import Calibrator
from looms.estimators._fits import fitted_machine
from looms.estimators._least_squares import Member, members_of
from looms.held_out import HeldOut
from looms.lssvm._system import targets_as_columns
from looms.selection._candidates import Choice, Score
from looms.selection._decisions import Decided, Decisions
from looms.selection._fold_pairs import pair_auc
from looms.selection._nested import Nested


@dataclass(frozen=True, eq=False)
class TunedInFolds:
    """Machines that were tuned anew without each of some folds.

    Attributes
    ----------
    folds : (m,) number of the fold of each row.
    outputs : (m,) or (m, t) output of each row by the machine that was tuned without its fold.
    own : for each of these machines, held-out outputs of the rows outside its fold; ties are equal.
    members : for each of these machines, its members, with coefficients of those rows.
    ties : for each of these machines, the difference up to which outputs for labels are equal.
    """

    folds: AnyArray
    outputs: Array
    own: tuple[Array, ...]
    members: tuple[tuple[Member, ...], ...]
    ties: tuple[float, ...]

    @classmethod
    def of(
        cls, machines: Sequence[Any], folds: AnyArray, X: Matrix, train: AnyArray
    ) -> TunedInFolds:
        """From machines in the order of the folds of rows ``train``."""
        outputs: Array | None = None
        for k, machine in enumerate(machines):
            out, rest = np.flatnonzero(folds == k), train[folds != k]
            rows = X[train[out]]
            f = machine._outputs(rows[:, rest] if machine.kernel_.pairwise else rows)
            outputs = np.empty((len(folds), *f.shape[1:])) if outputs is None else outputs
            outputs[out] = with_ties(f, machine._tie)
        assert outputs is not None
        own = tuple(with_ties(one.held_out_.outputs, one._tie) for one in machines)
        members = tuple(members_of(machine) for machine in machines)
        return cls(folds, outputs, own, members, tuple(machine._tie for machine in machines))

    @classmethod
    def stacked(cls, candidates: Sequence[TunedInFolds], weights: Array) -> TunedInFolds:
        """Stacks of some candidates; ``weights``, (n_folds, n_candidates), are of each fold."""
        folds = candidates[0].folds
        outputs = np.array([candidate.outputs for candidate in candidates])
        of_rows = weights[folds].T.reshape(outputs.shape[:2] + (1,) * (outputs.ndim - 2))
        members = (
            tuple(
                replace(member, weight=w * member.weight)
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
        return cls(folds, (of_rows * outputs).sum(axis=0), tuple(own), tuple(members), ties)

    def rules(
        self, y: Array, weight: Array, scorer: Callable[..., Score]
    ) -> list[tuple[float | Array, Calibrator | None]]:
        """Threshold and calibrator of each fold, by the machine's own held-out outputs.

        Outputs of the other folds' machines may be on another scale, a hundred times as large. The
        rules use the class proportions of all rows.
        """
        rules = []
        for k, own in enumerate(self.own):
            rest = np.flatnonzero(self.folds != k)
            factor = class_factors(class_indices(y), weight, rest)
            score = scorer(HeldOut(y[rest], own), rest, factor)
            rules.append((score.threshold, score.calibrator))
        return rules

    def nested(
        self,
        rows: AnyArray,
        y: Array,
        weight: Array,
        rules: Sequence[tuple[float | Array, Calibrator | None]] | None,
    ) -> Nested:
        """Predictions, and the machines, as a value of `looms.selection`.

        Parameters
        ----------
        rows : (m,) numbers of the rows.
        y : targets, shaped like the outputs.
        weight : (m,)
        rules : threshold and calibrator of each fold; None for numbers.
        """
        sets = [np.flatnonzero(self.folds == k) for k in range(len(self.members))]
        decisions = auc = None
        if rules is not None:
            rounds = [
                Decided.of(out, self.outputs[out], *rule, tie)
                for out, rule, tie in zip(sets, rules, self.ties, strict=True)
            ]
            decisions = Decisions.of(rounds, class_indices(y))
            Y, f = targets_as_columns(y), targets_as_columns(self.outputs)
            auc = pair_auc(Y, f, sets, [], [], weight, max(self.ties))
        all_members = [(k, one) for k, each in enumerate(self.members) for one in each]
        t = targets_as_columns(y).shape[1]
        alphas = np.zeros((len(all_members), len(y), t))
        intercepts = np.empty((len(all_members), t))
        for place, (k, one) in enumerate(all_members):
            alphas[place, self.folds != k] = one.weight * targets_as_columns(one.dual_coef)
            intercepts[place] = one.weight * one.intercept
        return Nested(
            rows=rows,
            folds=self.folds,
            held_out=HeldOut(y, self.outputs, weight),
            decisions=decisions,
            auc=auc,
            kernels=tuple(one.kernel for _, one in all_members),
            mus=np.array([one.mu for _, one in all_members]),
            chosen=np.array([self.folds == k for k, _ in all_members]),
            alphas=alphas,
            intercepts=intercepts,
            coefs=tuple(
                None if one.coef is None else one.weight * targets_as_columns(one.coef)
                for _, one in all_members
            ),
        )


def stack_of(
    X: Matrix, weight: Array, targets: Array, choice: Choice, tuned: TunedInFolds | None
) -> dict[str, Any]:
    """Fitted attributes of the chosen machine, or of a stack, on the samples of positive weight.

    A stack has kernel, coefficients and intercept of its largest member. With ``tuned`` the
    held-out outputs come from machines that were tuned without the fold of the row.
    """
    best = choice.best
    fitted = fitted_machine(X, weight, targets, best.kernel, best.mu, choice.fit)
    if choice.weights is not None:
        members, outputs, ties = [], np.zeros(targets.shape), []
        for k in np.flatnonzero(choice.weights):
            share, candidate = float(choice.weights[k]), choice.candidates[k]
            one, (_, fit) = fitted, choice.machines[k]
            if candidate is not best:
                assert fit is not None
                one = fitted_machine(X, weight, targets, candidate.kernel, candidate.mu, fit)
            members.append(
                Member(
                    share,
                    one["kernel_"],
                    one["mu_"],
                    one["dual_coef_"],
                    one["intercept_"],
                    one.get("coef_"),
                )
            )
            outputs += share * one["loo_"].outputs
            ties.append(one["_tie"])
        fitted["loo_"], fitted["members_"] = HeldOut(targets, outputs, weight), tuple(members)
        fitted["_tie"] = max(ties)
    if tuned is not None:
        outputs = fitted["loo_"].outputs.copy()
        outputs[np.flatnonzero(weight)] = tuned.outputs
        fitted["held_out_"] = HeldOut(targets, outputs, weight)
    return fitted
