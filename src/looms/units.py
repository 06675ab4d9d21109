"""Units: the rows that are held out together, in one repetition or several.

A unit is a row, a group, a fold of a cross-validation, or a window of time with the gap around it.
Everything that holds rows out takes a `Units`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from looms._checks import take_rows
from looms._typing import AnyArray, Array
from looms.folds import (
    GapKFold,
    check_rest,
    fold_numbers,
    is_forward,
    is_number_of_folds,
    left_out_with,
)

__all__ = ["Units"]


class Batch(NamedTuple):
    """Units of one size.

    Attributes
    ----------
    ids : (k,) numbers of the units.
    repetition : (k,) repetition of each.
    rows : (k, s) rows that each holds out, in increasing order.
    """

    ids: AnyArray
    repetition: AnyArray
    rows: AnyArray

    @property
    def places(self) -> tuple[AnyArray, AnyArray]:
        """Index of the rows of the units, (k, s), in an array (n_repetitions, n, ...)."""
        return self.repetition[:, None], self.rows

    def some(self, which: Any) -> Batch:
        """Some of the units."""
        return Batch(*(each[which] for each in self))


@dataclass(frozen=True, eq=False)
class Units:
    """Rows that are held out together, and those of them that are tested.

    Attributes
    ----------
    number : (n_repetitions, n) unit that each row leaves with in each repetition, counted over the
        repetitions; -1 for a row that stays.
    tested : (n_repetitions, n) true for rows that the model without their unit is tested on;
        false for rows that stay, and for those in a gap.
    clusters : (n,) integers from 0, equal for rows that count as one draw.
    windows : true for windows of time, of `looms.folds.GapKFold` or `looms.folds.ForwardSplit`.
    uncounted : numbers of the rows that are held out, but do not count: those before the first of
        windows that earlier rows test.

    Examples
    --------
    >>> units = Units.of_numbers([[0, 0, 1], [-1, 0, 0]])
    >>> units.n_units, [rows.tolist() for rows in units]
    (3, [[2], [0, 1], [1, 2]])
    """

    number: AnyArray
    tested: AnyArray
    clusters: AnyArray
    windows: bool = False
    uncounted: AnyArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @classmethod
    def rows(cls, n: int) -> Self:
        """Each of n rows by itself."""
        return cls(np.arange(n)[None], np.ones((1, n), dtype=bool), np.arange(n))

    @classmethod
    def of_numbers(cls, numbers: npt.ArrayLike, clusters: AnyArray | None = None) -> Self:
        """Units from fold numbers.

        Parameters
        ----------
        numbers : (n,) or (n_repetitions, n) integers: equal for rows that are held out together; -1
            for a row that stays; -2 - k for a row that is left out with unit k, but not tested.
            Whatever their numbers, single rows are counted first, then other units by their first
            rows; a unit that tests no row stays.
        clusters : (n,) numbers, equal for rows that count as one draw; by default each is its own.

        Raises
        ------
        ValueError
            If the shape is wrong, numbers are not integers, or a unit has all rows.
        """
        labels = np.atleast_2d(np.asarray(numbers))
        if labels.ndim != 2 or not labels.size or labels.dtype.kind not in "iu":
            raise ValueError(
                "folds must be integers of shape (n,) or (n_repetitions, n), one per row, but they "
                f"are {labels.dtype} of shape {np.shape(numbers)}."
            )
        check_rest(labels, labels[0], False, "fold")
        together, tested = left_out_with(labels), labels >= 0
        number, n_units = np.full(labels.shape, -1), 0
        for r, row in enumerate(together):
            known, first, counted, sizes = np.unique(
                row, return_index=True, return_inverse=True, return_counts=True
            )
            leaves = (known >= 0) & (np.bincount(counted, weights=tested[r]) > 0)
            order = np.lexsort((first, sizes > 1, ~leaves))[: int(leaves.sum())]
            place = np.full(len(known), -1)
            place[order] = np.arange(n_units, n_units + len(order))
            number[r], n_units = place[counted], n_units + len(order)
        if clusters is None:
            return cls(number, tested, np.arange(labels.shape[1]))
        return cls(number, tested, np.unique(clusters, return_inverse=True)[1])

    @classmethod
    def partition(cls, number: AnyArray, clusters: AnyArray) -> Self:
        """Units by their numbers, (n,), which are kept; every row is in one."""
        clusters = np.unique(clusters, return_inverse=True)[1]
        return cls(number[None], np.ones((1, len(number)), dtype=bool), clusters)

    @classmethod
    def of(
        cls,
        cv: Any,
        y: AnyArray,
        groups: AnyArray | None = None,
        *,
        classes: bool = False,
        random_state: int = 0,
        rows: AnyArray | None = None,
    ) -> Self:
        """Units of a cross-validation, of all rows, or of some.

        Parameters
        ----------
        cv : None to hold out each group, or without `groups` each row, by itself; a number of
            folds, stratified for classes; "5x2" for five repetitions of two shuffled folds; a
            scikit-learn splitter, or its splits; or an array as `of_numbers` takes it. Splits that
            leave out the same row are put in different repetitions.
        y : (n,) classes, or (n,) or (n, t) numbers, for splitters that use them.
        groups : (n,) numbers; rows of one group are held out together.
        classes : whether ``y`` holds classes, so that folds are stratified.
        random_state : seed for the repetitions of "5x2".
        rows : rows that take part. A number of folds divides these; splits refer to all rows.

        Raises
        ------
        ValueError
            If `cv` is none of these, a row is never tested, or a fold trains on rows of a group
            that it tests, leaves out all rows, or leaves out all rows of some class.
        """
        some = slice(None) if rows is None else rows
        own = take_rows(groups, some)
        if is_number_of_folds(cv):
            options: dict[str, Any] = {"classes": classes, "random_state": random_state}
            return cls.of_numbers(fold_numbers(cv, y[some], own, **options), own)
        numbers = fold_numbers(cv, y, groups, classes=classes)
        last, numbers = numbers.max(), numbers[:, some]
        check_rest(numbers, y[some], classes, "window" if is_forward(cv) else "fold")
        first = np.flatnonzero((numbers == last).any(axis=0) & is_forward(cv))
        windows = is_forward(cv) or isinstance(cv, GapKFold)
        return replace(cls.of_numbers(numbers, own), windows=windows, uncounted=first)

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __iter__(self) -> Iterator[AnyArray]:
        """Rows that each unit leaves out, in increasing order."""
        return iter(self._members)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of repetitions and of rows."""
        n_repetitions, n = self.number.shape
        return n_repetitions, n

    @cached_property
    def n_units(self) -> int:
        """Number of units in all repetitions."""
        return int(self.number.max()) + 1

    @property
    def forward(self) -> bool:
        """True for windows of time that models of earlier rows test."""
        return len(self.uncounted) > 0

    @property
    def n_counted(self) -> int:
        """Number of units whose rows count."""
        return self.n_units - self.forward

    @property
    def counts(self) -> AnyArray:
        """(n,) true for rows that count in criteria and scores."""
        return ~np.isin(np.arange(self.shape[1]), self.uncounted)

    @property
    def alone(self) -> bool:
        """True if each row is a unit of its own, once."""
        return self.n_units == self.shape[1] and self.shape[0] == 1

    @cached_property
    def scored_together(self) -> AnyArray:
        """(n,) integers, equal for rows that count as one draw in the standard error of a score:
        the clusters, or of windows of time the rows that a window tests.
        """
        return np.unique(self.own, return_inverse=True)[1] if self.windows else self.clusters

    @property
    def grouped(self) -> bool:
        """True if several rows count as one draw."""
        return bool(self.clusters.max() + 1 < len(self.clusters))

    @property
    def together(self) -> str:
        """What rows that count as one draw have in common: "groups", in order of time "times";
        empty if each is its own.
        """
        n_runs = 1 + np.count_nonzero(np.diff(self.clusters))
        in_time = self.windows and n_runs == len(np.unique(self.clusters))
        return ("times" if in_time else "groups") * self.grouped

    @property
    def in_folds(self) -> bool:
        """True if folds, or windows, are held out, not single rows or groups."""
        n_draws = np.count_nonzero(np.bincount(self.clusters[self.number[0] >= 0]))
        return bool(self.shape[0] > 1 or n_draws != self.n_units)

    @property
    def unit(self) -> str:
        """Word for what is held out at a time: "sample", "group", "fold", "window", or "forward", a
        window and all later rows."""
        if self.in_folds:
            return "forward" if self.forward else "window" if self.windows else "fold"
        return "group" if self.grouped else "sample"

    @cached_property
    def draws(self) -> Units:
        """The rows, or groups, that count as one draw, each held out by itself."""
        return Units.of_numbers(self.clusters, self.clusters)

    @cached_property
    def own(self) -> AnyArray:
        """(n,) number of the unit that tests each row, of the first repetition that does, or -1."""
        number = self.number[self.tested.argmax(axis=0), np.arange(self.shape[1])]
        return np.where(self.tested.any(axis=0), number, -1)

    @property
    def once(self) -> Units:
        """The units of the first pass over the rows; ValueError if it does not test every row."""
        repetitions, rows = self.passes[0]
        if len(rows) < self.shape[1]:
            raise ValueError("The first repetition of cv does not test every row.")
        return self.only(np.unique(self.number[repetitions, rows]))

    @property
    def tested_by(self) -> list[AnyArray]:
        """Rows that each unit tests, if each row is tested once."""
        return [np.flatnonzero(self.own == k) for k in range(self.n_units)]

    @property
    def codes(self) -> AnyArray:
        """Numbers as `of_numbers` takes them: -2 - k for a row that leaves with unit k untested."""
        return np.where(self.tested | (self.number < 0), self.number, -2 - self.number)

    @cached_property
    def repetition(self) -> AnyArray:
        """(n_units,) repetition of each unit."""
        of_unit = np.zeros(self.n_units, dtype=np.intp)
        repetition, row = np.nonzero(self.number >= 0)
        of_unit[self.number[repetition, row]] = repetition
        return of_unit

    @cached_property
    def _members(self) -> list[AnyArray]:
        places = np.flatnonzero(self.number.ravel() >= 0)
        numbers = self.number.ravel()[places]
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=self.n_units))
        return np.split(places[order] % self.shape[1], ends[:-1])

    @cached_property
    def batches(self) -> Sequence[Batch]:
        """The units by their size, smallest first."""
        sets = of_one_size(self._members, self.n_units)
        return [Batch(ids, self.repetition[ids], rows) for ids, rows in sets]

    def parts(self, most: int) -> Iterator[Batch]:
        """The units by their size, at most so many at a time, or one."""
        for batch in self.batches:
            for start in range(0, len(batch.ids), max(1, most)):
                yield batch.some(slice(start, start + max(1, most)))

    def stays(self, ids: AnyArray) -> AnyArray:
        """Rows that each of some units does not hold out, (k, n) true."""
        return np.asarray(self.number[self.repetition[ids]] != ids[:, None])

    @cached_property
    def passes(self) -> list[tuple[AnyArray, AnyArray]]:
        """Repetition and row number of the tested rows; repetitions without a row in common are
        joined.

        Folds whose gaps overlap are in different repetitions, but belong to one pass over the rows.
        """
        once: list[AnyArray] = []
        for r, tested in enumerate(self.tested):
            if not once or (tested & (once[-1] >= 0)).any():
                once.append(np.full(len(tested), -1))
            once[-1][tested] = r
        return [(places[places >= 0], np.flatnonzero(places >= 0)) for places in once]

    def among(self, rows: AnyArray) -> Units:
        """The units of some rows, numbered anew; repetitions that hold none out are dropped."""
        codes = self.codes[:, rows]
        leaves = (codes >= 0).any(axis=1)
        some = Units.of_numbers(codes[leaves] if leaves.any() else codes, self.clusters[rows])
        uncounted = np.flatnonzero(np.isin(rows, self.uncounted))
        return replace(some, windows=self.windows, uncounted=uncounted)

    def spread(self, rows: AnyArray, clusters: AnyArray) -> Units:
        """The same units among more rows, (n,) in ``clusters``, of which these are ``rows``; the
        others stay."""
        number = np.full((len(self.number), len(clusters)), -1)
        tested = np.zeros(number.shape, dtype=bool)
        number[:, rows], tested[:, rows] = self.number, self.tested
        clusters = np.unique(clusters, return_inverse=True)[1]
        return Units(number, tested, clusters, self.windows, rows[self.uncounted])

    def only(self, ids: AnyArray) -> Units:
        """Some of the units, numbered in their order; rows of the others stay."""
        place = np.full(self.n_units + 1, -1)
        place[ids] = np.arange(len(ids))
        number = place[self.number]
        return replace(self, number=number, tested=self.tested & (number >= 0))

    def only_tested(self, values: Array) -> Array:
        """``values``, (n_repetitions, n, ...), with NaN for rows that are not tested."""
        mask = self.tested.reshape(*self.shape, *(1 for _ in values.shape[2:]))
        return np.where(mask, values, np.nan)


def of_one_size(sets: Sequence[AnyArray], most: int) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Numbers of some sets of equal size, and their rows, (k, size), at most so many at a time."""
    sizes = np.array([len(rows) for rows in sets])
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        for start in range(0, len(same), max(1, most)):
            some = same[start : start + max(1, most)]
            yield some, np.stack([sets[k] for k in some])
