"""Rows of a fit, and the folds of an evaluation or a choice among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from looms._typing import AnyArray, Array
from looms._words import count
from looms.blocks import RowBlocks
from looms.fitted._outcome import Outcome
from looms.folds import (
    LEAST_BEFORE,
    fold_numbers,
    is_grouped,
    is_number_of_folds,
    n_left,
    number_of_folds,
)
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.selection._candidates import HeldOutLoss
from looms.units import Units

#: Outer folds of an evaluation, and of one of several candidates.
OUTER_FOLDS, OUTER_FOLDS_OF_SEVERAL = 10, 5
#: Folds without which several candidates are tuned anew, to choose among them or to stack them; and
#: of fits that are without a fold themselves, at two thirds of the time: with 500 rows such stacks
#: have 1.006 × the error, on 19 tables.
CHOICE_FOLDS, FEWER_CHOICE_FOLDS = 5, 3
_choice_folds = ContextVar("choice_folds", default=CHOICE_FOLDS)
#: With fewer, models are tuned on too few rows to stand for that of all.
LEAST_OUTER_FOLDS = 3


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows that a model is fitted to, of which those of positive weight take part.

    Attributes
    ----------
    X : samples as the kernels take them; None of a saved model of rows in blocks.
    targets : (n,) or (n, t) coded targets: ±1 for classes, and numbers as they are fitted.
    weight, fit_weight, selection_weight : (n,) as given, in the fit, and in the criterion.
    score_weight : (n,) in losses and scores, where rows before the first window do not count.
    groups : (n,) numbers, equal for rows of one group.
    outcome : of the targets.
    numbers : targets as they were given, if a transform of them is fitted.
    weighs : whether fits and losses take the factors of classes that some rows lack.
    grouped : whether groups were given, though each may be one row.
    seed : of folds, subsamples and landmarks.
    """

    X: Any
    targets: Array
    weight: Array
    fit_weight: Array
    selection_weight: Array
    score_weight: Array
    groups: Any
    outcome: Outcome
    numbers: Array | None = None
    weighs: bool = True
    grouped: bool = False
    seed: int = 0

    @classmethod
    def of(
        cls,
        X: Any,
        targets: Array,
        weight: Array,
        groups: Any,
        outcome: Outcome,
        factors: Array | float = 1.0,
        numbers: Array | None = None,
    ) -> Self:
        """Rows whose weights in the fit are those given times some factors.

        Targets and weights are copied: they stay when those of the caller change.
        """
        fit_weight = weight * factors
        weight = weight.copy()
        data = X, targets.copy(), weight, fit_weight, fit_weight, weight
        return cls(*data, groups, outcome, numbers)

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it, and without rows in blocks."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return state | {"X": None} if isinstance(self.X, RowBlocks) else state

    @property
    def y(self) -> AnyArray:
        """Values of the target, as they were given."""
        return self.outcome.values(self.targets) if self.numbers is None else self.numbers

    @cached_property
    def train(self) -> AnyArray:
        """Numbers of the rows that take part."""
        return np.flatnonzero(self.weight)

    @cached_property
    def scored(self) -> AnyArray:
        """Numbers of the rows that count in scores."""
        return np.flatnonzero(self.score_weight)

    def own(self, values: AnyArray) -> AnyArray:
        """Values of the rows that take part."""
        return values[self.train]

    def counting_in(self, units: Units) -> Rows:
        """The same rows, of which those count that do so in ``units``.

        Before windows of time, shares of classes are those of the rows before.
        """
        if not units.forward:
            return self
        counts = ~np.isin(np.arange(len(self.weight)), self.train[units.uncounted])
        scores, selects = self.weight * counts, self.selection_weight * counts
        return replace(self, score_weight=scores, selection_weight=selects, weighs=False)

    def units(self, cv: Any) -> Units:
        """Those of the rows that take part, which ``cv`` holds out together."""
        options: dict[str, Any] = {"classes": self.outcome.stratified, "random_state": self.seed}
        return Units.of(cv, self.y, self.groups, rows=self.train, **options)

    def outer_units(self, cv: Any, units: Units, most: int = OUTER_FOLDS) -> Units:
        """Outer folds of the rows that take part; the ``units`` of ``cv`` if made for these rows.

        ValueError if there are fewer than three, or more than ten of ``cv``, or too few rows
        outside some fold.
        """
        if is_number_of_folds(cv):
            groups = self.own(self.groups)
            stratified = self.outcome.stratified
            return outer_folds(cv, self.own(self.y), groups, stratified, self.seed, most)
        n_folds, counted = units.once.n_counted, np.unique(units.own[units.counts])
        if units.once.n_units < LEAST_OUTER_FOLDS or n_folds > OUTER_FOLDS:
            raise ValueError(
                f"cv has {n_folds} folds, but {LEAST_OUTER_FOLDS} to {OUTER_FOLDS} are needed."
            )
        if units.forward and (least := int(n_left(units.codes)[counted].min())) < LEAST_BEFORE:
            raise ValueError(
                f"There are {count(least, 'row')} to train on before some window, and a model is "
                f"tuned on {LEAST_BEFORE} or more: give fewer windows."
            )
        return units.once

    def choice_units(self, cv: Any, units: Units) -> Units:
        """`outer_units` that candidates are compared in; others where a fold has left too few."""
        most = _choice_folds.get()
        try:
            return self.outer_units(cv, units, most)
        except ValueError:  # three folds leave fewer rows than five; two of cv are too few
            if most == CHOICE_FOLDS or units.forward:
                raise
            return self.outer_units(cv if is_number_of_folds(cv) else None, units, CHOICE_FOLDS)

    def factors(self, some: AnyArray | None) -> Any:
        """Factors for the weights of some of the rows that keep the proportions of all; None for
        all rows."""
        if some is None or not self.weighs:
            return 1.0
        return self.outcome.factors(self.own(self.targets), self.own(self.weight), some)

    def loss(self, outputs: Array, some: AnyArray | None = None) -> HeldOutLoss:
        """Loss of held-out outputs of the rows that take part, or of some of them."""
        rows = self.train if some is None else self.train[some]
        factor = self.factors(some) * self.counting(rows)
        held_out = HeldOut(self.targets[rows], outputs, factor * self.weight[rows])
        return self.outcome.loss(held_out, factor * self.fit_weight[rows])

    def counting(self, rows: AnyArray) -> Array:
        """Zero for those of some rows that do not count, and else one.

        One for all if those that count have not all classes.
        """
        counts = self.score_weight[rows] > 0
        enough = counts.any() and not self.outcome.missing(self.targets[rows[counts]])
        return np.where(enough, counts, 1.0)


def outer_folds(
    cv: Any, y: AnyArray, groups: AnyArray, classes: bool, seed: int, most: int = OUTER_FOLDS
) -> Units:
    """Outer folds of rows, at most ``most``, stratified by class.

    ValueError if there are fewer than three folds, or too few rows outside some fold for ``cv``.
    """
    grouped = is_grouped(groups)
    unit = "group" if grouped else "row"
    codes = np.unique(y, return_inverse=True)[1] if classes else np.zeros(len(y), dtype=int)
    sizes = units_of_classes(codes, groups)
    n_folds = min(sizes)
    if n_folds < LEAST_OUTER_FOLDS:
        name = np.unique(y).tolist()[sizes.index(n_folds)] if classes else None
        what = f"Class {name!r} has" if classes else "There are"
        raise ValueError(
            f"{what} fewer than {LEAST_OUTER_FOLDS} {unit}s, but folds need as many: give more"
            f"{', join it with another class, or leave the class out' * classes}."
        )
    n_folds = min(most, n_folds)
    (numbers,) = fold_numbers(f"1x{n_folds}", y, groups, classes=classes, random_state=seed)
    inner = number_of_folds(cv) or 2
    for number in np.unique(numbers):
        rest = numbers != number
        n_units = len(np.unique(groups[rest]))
        of_classes = units_of_classes(codes, groups, rest)
        least = 2 if grouped or cv is not None else 1
        if classes and min(of_classes) < least:
            name, n = np.unique(y).tolist()[np.argmin(of_classes)], count(min(of_classes), unit)
            raise ValueError(
                f"Class {name!r} has {n} left without an outer fold, too few to tune on: give "
                "more, join it with another class, or leave the class out."
            )
        if rest.sum() < 3 or n_units < max(inner, least):
            left = f"{n_units} {unit}s are left"
            raise ValueError(f"Without an outer fold {left}: too few to tune on.")
    return Units.partition(numbers, groups)


def units_of_classes(codes: AnyArray, groups: AnyArray, rows: AnyArray | bool = True) -> list[int]:
    """Number of groups in each class; of some of the rows, a mask."""
    return [len(np.unique(groups[rows & (codes == c)])) for c in range(codes.max() + 1)]


@contextmanager
def few_choice_folds() -> Iterator[None]:
    """Context of fits that are without a fold themselves: fewer folds compare their candidates."""
    token = _choice_folds.set(FEWER_CHOICE_FOLDS)
    try:
        yield
    finally:
        _choice_folds.reset(token)


def rows_at(X: Any, rows: AnyArray, pairwise: bool = False) -> Any:
    """Some rows of a matrix, of rows in blocks, or of a table; of a kernel matrix columns too."""
    if isinstance(X, np.ndarray | RowBlocks) or issparse(X):
        return training_rows(X, rows, pairwise)
    return _safe_indexing(X, rows)
