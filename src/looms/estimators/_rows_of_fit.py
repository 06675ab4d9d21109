"""Rows that a machine is chosen on: targets, weights, what is held out together, their score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from looms._typing import AnyArray, Array, Matrix
from looms.estimators._folds import (
    LEAST_OUTER_FOLDS,
    OUTER_FOLDS,
    is_number_of_folds,
    outer_folds,
    units_of_fit,
)
from looms.held_out import HeldOut
from looms.selection._candidates import Score
from looms.units import Units


@dataclass(frozen=True, eq=False)
class RowsOfFit:
    """Rows that a machine is chosen on.

    Attributes
    ----------
    X, y : all rows, of which those of positive weight take part; classes or numbers.
    targets : (n,) or (n, t) numbers, ±1 for classes.
    weight, fit_weight, selection_weight : (n,) as given, in the fit, and in the criterion.
    groups : (n,) numbers, equal for rows of one group.
    classes : whether ``y`` holds classes.
    scorer : score of held-out outputs and the weights of the fit; needed to compare candidates.
    weighs : whether the score takes the factors of classes that some rows lack.
    seed : of folds, subsamples and landmarks.
    """

    X: Matrix
    y: AnyArray
    targets: Array
    weight: Array
    fit_weight: Array
    selection_weight: Array
    groups: Any
    classes: bool
    scorer: Callable[[HeldOut, Array], Score] = lambda *_: Score(0.0)
    weighs: bool = True
    seed: int = 0

    @cached_property
    def train(self) -> AnyArray:
        """Numbers of the rows that take part."""
        return np.flatnonzero(self.weight)

    def own(self, values: AnyArray) -> AnyArray:
        """Values of the rows that take part."""
        return values[self.train]

    @property
    def data(self) -> tuple[Matrix, AnyArray, Array, AnyArray]:
        """X, y, weights and groups, as `fit` takes them."""
        return self.X, self.y, self.weight, self.groups

    def units(self, cv: Any) -> Units:
        """Those of the rows that take part, which ``cv`` holds out together."""
        return units_of_fit(cv, self.y, self.groups, self.classes, self.train, self.seed)

    def outer_units(self, cv: Any, most: int = OUTER_FOLDS) -> Units:
        """Outer folds of the rows that take part; those of ``cv`` if it is made for these rows.

        ValueError if there are fewer than three, or more than ten of ``cv``, or too few rows
        outside some fold.
        """
        if is_number_of_folds(cv):
            groups = self.own(self.groups)
            folds = outer_folds(cv, self.own(self.y), groups, self.classes, self.seed, most)
            return Units.partition(folds, groups)
        units = self.units(cv).once
        if not LEAST_OUTER_FOLDS <= units.n_units <= OUTER_FOLDS:
            raise ValueError(
                f"cv has {units.n_units} folds, and choices are made anew without each of "
                f"{LEAST_OUTER_FOLDS} to {OUTER_FOLDS}."
            )
        return units

    def inner_units(self, cv: Any) -> Units | None:
        """What ``cv`` holds out of the rows that take part, if it is made for these rows."""
        return None if is_number_of_folds(cv) else self.units(cv)

    def score(
        self, held_out: HeldOut, rows: AnyArray | slice = slice(None), factor: Any = 1.0
    ) -> Score:
        """Score of held-out outputs of some of the rows that take part."""
        places, factor = self.train[rows], factor if self.weighs else 1.0
        own = HeldOut(held_out.y, held_out.outputs, factor * self.weight[places])
        return self.scorer(own, factor * self.fit_weight[places])
