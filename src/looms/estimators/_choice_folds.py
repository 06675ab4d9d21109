"""Candidates without each of the folds that they are compared in, and the searches for these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np

from looms._typing import AnyArray, Array
from looms.blocks import rows_in_memory
from looms.estimators._encoding import class_weights
from looms.estimators._estimator_member import EstimatorMember
from looms.estimators._folds import cv_without, weight_without
from looms.estimators._one_kernel import candidate_of, model_of_folds, model_of_part, problem_of
from looms.fitted._rows import Rows, rows_at, units_of_classes
from looms.folds import is_number_of_folds, number_of_folds
from looms.kernels._samples import training_rows
from looms.lssvm.fit import Fit, Member
from looms.selection._problem import Problem, Tuned
from looms.selection._subsamples import log2_mu_shift
from looms.units import Units

#: Rows, or groups, from which two searches serve all folds. On 23 tables a stack then has 0.997,
#: 1.000, 1.002, 1.001 and 0.994 × the error with 200, 240, 300, 500 and 1000 rows; with 160 it has
#: 1.004 ×.
LEAST_SHARED = 200


@dataclass(frozen=True, eq=False)
class WithoutFold:
    """A model that was tuned without a fold. Ties of outputs for labels are equal.

    Attributes
    ----------
    members : with coefficients of all m rows that take part.
    outputs : (s,) or (s, t) of the rows of the fold.
    others : held-out outputs of the other rows, which set its rule: those of the other folds'
        models may be on another scale, a hundred times as large. Of an estimator they are those of
        the models without the other folds.
    tie : as of `Fit`.
    """

    members: tuple[Member, ...]
    outputs: Array
    others: Array
    tie: float

    @classmethod
    def of_estimator(cls, fit: Fit, outer: Units) -> list[Self]:
        """From the fit of an estimator in these folds, without each of which it was refitted.

        Held-out outputs of the rows outside a fold are taken from the models without the other
        folds, which were fitted to the rows of that fold; refits without every two folds would be
        three times as many.
        """
        assert isinstance(fit.member, EstimatorMember)
        f, stays = fit.mean_held_out.outputs, outer.stays(np.arange(outer.n_units))
        folds = zip(fit.member.without, outer.tested_by, stays, strict=True)
        return [
            cls((replace(one, held_out=f[stay]),), f[tested], f[stay], fit.tie)
            for one, tested, stay in folds
        ]

    @classmethod
    def stacked(cls, models: Sequence[WithoutFold], weights: Array) -> Self:
        """A stack of models without the same fold."""
        pairs = list(zip(weights, models, strict=True))
        return cls(
            tuple(each.weighing(w * each.weight) for w, one in pairs if w for each in one.members),
            reduce(np.add, (w * one.outputs for w, one in pairs)),
            reduce(np.add, (w * one.others for w, one in pairs)),
            max(one.tie for one in models),
        )

    @staticmethod
    def outputs_of(models: Sequence[WithoutFold], outer: Units) -> Array:
        """Output of each row by the model without its fold, (m,) or (m, t)."""
        outputs = np.concatenate([one.outputs for one in models])
        return np.asarray(outputs[np.argsort(np.concatenate(outer.tested_by))])


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the rows of a fit, of which classes keep their proportions in all rows.

    Attributes
    ----------
    places : of these rows among those that take part in the fit.
    folds : numbers of the folds that models of these rows are without.
    rows : of the fit, but that the other rows have no weight.
    units : of these rows.
    X : these rows, of a kernel matrix with their columns.
    """

    places: AnyArray
    folds: tuple[int, ...]
    rows: Rows
    units: Units
    X: Any

    @classmethod
    def of(
        cls,
        model: Any,
        rows: Rows,
        places: AnyArray,
        folds: Iterable[int],
        units: Units,
        pairwise: bool,
    ) -> Self:
        """Rows in some places of those of a model; ``units`` are those of its fit."""
        some = rows.train[places]
        factor = np.zeros(len(rows.weight))
        factor[some] = weight_without(rows, some) / rows.weight[some]
        names = "weight", "fit_weight", "selection_weight", "score_weight"
        part = replace(rows, **{name: getattr(rows, name) * factor for name in names})
        class_weight = getattr(model, "class_weight", None)
        if not rows.weighs and class_weight is not None:  # of classes as these rows have them
            labels, classes = rows.outcome.codes(rows.targets), rows.outcome.classes
            weight = part.weight * class_weights(class_weight, labels, classes, part.weight)
            part = replace(part, fit_weight=weight, selection_weight=weight)
        own = Units.of(
            cv_without(model.cv, units, rows, places),
            rows.y[some],
            rows.groups[some],
            classes=rows.outcome.stratified,
            random_state=rows.seed,
        )
        X = training_rows(rows.X, some, pairwise)
        return cls(places, tuple(folds), part.counting_in(own), own, X)


@dataclass(frozen=True, eq=False)
class ChoiceFolds:
    """Folds without each of which candidates are tuned anew.

    Attributes
    ----------
    rows : of the fit.
    units : the folds.
    rests : of each fold all other rows.
    searched : parts of the rows on which candidates are tuned, each for the models without its
        folds: ``rests``, or of many rows or groups two parts.
    fit_intercept : of the models.
    pairwise : True if they take kernel values.
    """

    rows: Rows
    units: Units
    rests: list[Part]
    searched: list[Part]
    fit_intercept: bool
    pairwise: bool

    @classmethod
    def of(cls, model: Any, rows: Rows, outer: Units, units: Units, pairwise: bool) -> Self:
        """Of the folds ``outer`` of the rows of a model; ``units`` are those of its fit.

        Two parts, each of two folds of five, or of one of three, serve the folds that they have no
        rows of.
        """
        stays = outer.stays(np.arange(outer.n_units))
        rests = [
            Part.of(model, rows, np.flatnonzero(stay), [k], units, pairwise)
            for k, stay in enumerate(stays)
        ]
        n, half = outer.n_units, outer.n_units // 2
        served = {range(half): range(half, n), range(half, 2 * half): range(half)}
        parts = [
            (np.flatnonzero(np.isin(outer.own, own) & stays[folds].all(axis=0)), folds)
            for own, folds in served.items()
        ]
        many, searched = len(np.unique(rows.own(rows.groups))) >= LEAST_SHARED, rests
        if (
            many
            and is_number_of_folds(model.cv)
            and all(_can_be_tuned_on(places, rows, model.cv) for places, _ in parts)
        ):
            searched = [Part.of(model, rows, *part, units, pairwise) for part in parts]
        return cls(rows, outer, rests, searched, model.fit_intercept, pairwise)

    def problems(self, model: Any) -> tuple[Problem, ...]:
        """A candidate on the parts that are searched."""
        parts = self._parts_of(model)
        alone = parts is self.rests
        one = model_of_folds(model) if alone else model_of_part(model, len(self.rows.train))
        return tuple(self._problem(one, part) for part in parts)

    def models(self, model: Any, tuned: Sequence[Tuned]) -> list[WithoutFold]:
        """A candidate without each fold, at the values that it was ``tuned`` to on the parts.

        Raises
        ------
        ValueError
            If it could not be evaluated on some part.
        """
        without = dict[int, WithoutFold]()
        for part, one in zip(self._parts_of(model), tuned, strict=True):
            if one.fit is None:
                raise ValueError(f"A candidate cannot be evaluated on some rows. {one.failure}")
            for k in part.folds:
                rest = self.rests[k]
                fit = one.fit if rest is part else self._fit(model, one, part, rest)
                without[k] = self._without(fit, rest, self.units.tested_by[k])
        return [without[k] for k in range(self.units.n_units)]

    def _parts_of(self, model: Any) -> list[Part]:
        """Parts that a candidate is tuned on; if all values are given, it is fitted as it is."""
        return self.searched if candidate_of(model).mu is None else self.rests

    def _problem(self, model: Any, part: Part) -> Problem:
        return problem_of(model, part.rows, part.X, part.units, self.fit_intercept)

    def _fit(self, model: Any, tuned: Tuned, part: Part, rest: Part) -> Fit:
        """Fit to the rows ``rest`` at values that were tuned on another part."""
        mu = tuned.mu * 2.0 ** log2_mu_shift(len(part.places), len(rest.places))
        problem = self._problem(model, rest)
        given = replace(problem.candidate, kernel=tuned.kernel, mu=mu)
        again = replace(problem, candidate=given).tune()
        if again.fit is None:
            raise ValueError(f"A candidate cannot be evaluated on some rows. {again.failure}")
        return again.fit

    def _without(self, fit: Fit, rest: Part, tested: AnyArray) -> WithoutFold:
        """The model of a fit to the rows ``rest``, with its outputs of the rows tested."""
        train, tied = self.rows.train, self.rows.outcome.tied
        X = rows_in_memory(rows_at(self.rows.X, train[tested]))
        outputs = fit.member.outputs(X[:, rest.rows.train] if self.pairwise else X, rest.X)
        members = (fit.member.among(rest.places, len(train)),)
        others = fit.mean_held_out.outputs
        return WithoutFold(members, tied(outputs, fit.tie), tied(others, fit.tie), fit.tie)


def _can_be_tuned_on(places: AnyArray, rows: Rows, cv: Any) -> bool:
    """True if some rows have two groups of each class, and enough for the units of ``cv``."""
    every, groups = rows.outcome.codes(rows.own(rows.targets)), rows.own(rows.groups)[places]
    of_classes = units_of_classes(every[places], groups)
    least = max(number_of_folds(cv), 3)
    return (
        len(of_classes) == every.max() + 1
        and min(of_classes) > 1
        and len(np.unique(groups)) >= least
    )
