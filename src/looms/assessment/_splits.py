"""Splits into training and test rows, from a seed and an index alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from math import ceil
from numbers import Integral, Real
from typing import Self

import numpy as np
import numpy.typing as npt

from looms._advice import setting
from looms._checks import check_count, check_known
from looms._typing import AnyArray
from looms._words import count

METHODS = ("shuffle", "kfold", "bootstrap", "forward")

#: Index of the fit to all rows, from which the bootstrap takes the apparent score.
WHOLE = -1

#: Splits by default, and windows of "forward".
_SPLITS, _WINDOWS = 100, 5

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """Division of the rows, independent of other splits.

    Attributes
    ----------
    index : place in the plan; `WHOLE` trains and tests on all rows.
    method : one of `METHODS`.
    test_size : share or number of rows in the test part; the bootstrap ignores it.
    random_state : seed of the plan.
    stratified : whether classes keep their shares.
    gap : rows between the training part and the test part of "forward".
    """

    index: int
    method: str
    test_size: float
    random_state: int
    stratified: bool
    gap: int = 0

    @property
    def name(self) -> str:
        """Identity in a store, where everything else is the same for all splits."""
        index = "whole" if self.index == WHOLE else f"{self.index:06d}"
        return f"seed{self.random_state}-{index}"

    @property
    def resamples(self) -> bool:
        """True if training rows may be repeated."""
        return self.method == "bootstrap" and self.index != WHOLE

    def seed(self, purpose: int = 0) -> int:
        """Seed of the split for one purpose, below 2³²."""
        entropy = (self.random_state, self.index + 1, purpose)
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def rows(self, y: npt.ArrayLike, groups: AnyArray | None = None) -> tuple[Rows, Rows]:
        """Training rows and test rows, each sorted; with repeats for the bootstrap.

        Parameters
        ----------
        y : (n_samples,) targets.
        groups : (n_samples,) number of the group that each row belongs to. All rows of a group
            are on the same side. By default each row is by itself.
        """
        y = np.asarray(y)
        n = len(y)
        if self.index == WHOLE:
            return np.arange(n), np.arange(n)
        units = Units.of(y, groups)
        if self.method == "forward":
            n_test = _n_test(n, self.test_size)
            tests = np.arange(n - (self.index + 1) * n_test, n - self.index * n_test)
            earlier = np.arange(tests[0] - self.gap)
            return earlier[~np.isin(units.of_row[earlier], units.of_row[tests])], tests
        strata = [np.arange(units.n)]
        if self.stratified:
            strata = [np.flatnonzero(units.labels == label) for label in np.unique(units.labels)]
        if self.method == "kfold":
            return units.rows(self._fold(strata, units.sizes))
        rng = np.random.default_rng(self.seed())
        if self.method == "bootstrap":
            drawn = []
            for members in strata:  # again until one is left out
                while len(np.unique(draw := rng.choice(members, len(members)))) == len(members):
                    pass
                drawn.append(draw)
            times = np.bincount(np.concatenate(drawn), minlength=units.n)[units.of_row]
            return np.repeat(np.arange(n), times), np.flatnonzero(times == 0)
        sizes = [units.sizes[members] for members in strata]
        counts = _test_counts([int(stratum.sum()) for stratum in sizes], self.test_size)
        parts = []
        for members, n_test in zip(strata, counts, strict=True):
            order = rng.permutation(members)
            n_rows = np.cumsum(units.sizes[order])[:-1]  # one is left to train
            parts.append(order[: 1 + np.argmin(np.abs(n_rows - n_test))])
        return units.rows(np.concatenate(parts))

    def _fold(self, strata: list[Rows], sizes: AnyArray) -> Rows:
        """Test units of a fold.

        In random order, each unit goes to the fold with the fewest rows of its stratum; ties go
        to the fold with the fewest rows.
        """
        n_folds = n_folds_of(self.test_size)
        repeat, number = divmod(self.index, n_folds)
        rng = np.random.default_rng(replace(self, index=repeat).seed())
        n_rows = [0] * n_folds
        testing = []
        for members in strata:
            folds = [(0, n_rows[k], k) for k in range(n_folds)]
            heapify(folds)
            order = rng.permutation(members)
            for unit, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
                of_stratum, total, k = folds[0]
                heapreplace(folds, (of_stratum + size, total + size, k))
                n_rows[k] = total + size
                if k == number:
                    testing.append(unit)
        return np.array(testing)


@dataclass(frozen=True)
class Units:
    """Units of a division: rows, or groups of rows, numbered by their first rows.

    Attributes
    ----------
    of_row : (n_samples,) unit that each row belongs to.
    sizes : (n,) number of rows in each unit.
    labels : (n,) class of each unit: among its classes, the one found in the fewest units, so
        that both parts get members of every class. A unit that would be the only one with its
        label gets the commonest label.
    """

    of_row: AnyArray
    sizes: AnyArray
    labels: AnyArray

    @classmethod
    def of(cls, y: npt.ArrayLike, groups: AnyArray | None) -> Self:
        y = np.asarray(y)
        groups = np.arange(len(y)) if groups is None else groups
        _, first, unit, sizes = np.unique(groups, True, True, True)
        rank = np.argsort(np.argsort(first))
        of_row = rank[unit]
        classes, unit, held = _classes_held(y, of_row)
        n_units = np.bincount(held)
        order = np.lexsort((n_units[held], unit))
        rarest = held[order[np.unique(unit[order], return_index=True)[1]]]
        n_labelled = np.bincount(rarest)
        rarest[n_labelled[rarest] == 1] = np.argmax(n_labelled)
        return cls(of_row, sizes[np.argsort(rank)], classes[rarest])

    @property
    def n(self) -> int:
        return len(self.sizes)

    def rows(self, testing: AnyArray) -> tuple[Rows, Rows]:
        """Rows of all other units, and rows of the test units."""
        tests = np.isin(self.of_row, testing)
        return np.flatnonzero(~tests), np.flatnonzero(tests)


def plan(
    y: npt.ArrayLike,
    *,
    method: str,
    random_state: int,
    stratified: bool,
    n_splits: int | None = None,
    test_size: float = 0.1,
    groups: AnyArray | None = None,
    gap: int = 0,
) -> list[Split]:
    """Splits in order, after checking that there are enough rows for them.

    Each group that `Split.rows` keeps together by ``groups`` counts as one row. Without
    ``n_splits`` there are 100, in whole repeats of the folds, or as many of 5 windows as fit.

    Raises
    ------
    ValueError
        If an argument is out of range, a class has too few members for a split, or there are too
        few rows for the windows of time.
    """
    check_known(method, "method", METHODS)
    if n_splits is not None:
        check_count(n_splits, "n_splits", 2)
    check_count(gap, "gap", 0)
    if gap and method != "forward":
        raise ValueError(
            f"gap is for {setting('method', 'forward')}, where rows are in order of time, not for "
            f"{method!r}."
        )
    n = len(np.asarray(y))
    least, default = 2, _SPLITS
    if method == "kfold":
        least = n_folds_of(test_size)
        default = max(_SPLITS // least, 1) * least
        if n_splits is not None and n_splits % least:
            raise ValueError(
                f"{setting('n_splits', n_splits)} is not a multiple of the {least} folds that "
                f"{setting('test_size', test_size)} makes: k-fold is repeated whole or not at all. "
                f"Take {setting('n_splits', default)}, or {setting('test_size', 1 / n_splits)} for "
                f"{n_splits} folds."
            )
    elif method == "bootstrap":
        test_size = 1
    elif (
        not isinstance(test_size, Real)
        or isinstance(test_size, bool)
        or not (1 <= test_size < n if isinstance(test_size, Integral) else 0 < test_size < 1)
    ):
        raise ValueError(
            f"{setting('test_size')} must be a share between 0 and 1, or a whole number of rows "
            f"below {n}, got {test_size!r}."
        )
    test_size = int(test_size) if isinstance(test_size, Integral) else float(test_size)
    if method == "forward":
        n_test = _n_test(n, test_size)
        most = (n - gap - 1) // n_test
        default = min(_WINDOWS, max(most, 2))
    n_splits = default if n_splits is None else int(n_splits)
    indices = range(WHOLE if method == "bootstrap" else 0, n_splits)
    splits = [Split(i, method, test_size, random_state, stratified, int(gap)) for i in indices]
    if method != "forward":
        _check_members(y, groups, least, splits[0])
        return splits
    if len(splits) > most:
        fewer = f"n_splits={most} or " if most >= 2 else ""
        raise ValueError(
            f"{len(splits)} windows of {count(n_test, 'row')} and a gap of {gap} leave none of the "
            f"{count(n, 'row')} to train on before the first: take {fewer}a smaller "
            f"{setting('test_size')}."
        )
    for split in splits:
        if not len(split.rows(y, groups)[0]):
            raise ValueError(
                f"Split {split.index} has no row to train on: all rows before its window are held "
                "out with rows in the window. Give fewer splits or finer groups."
            )
    return splits


def n_folds_of(test_size: float) -> int:
    """Number of folds of which each tests ``test_size`` of the rows."""
    is_share = isinstance(test_size, Real) and 0 < float(test_size) <= 0.5
    if not is_share or abs(1 / float(test_size) - round(1 / float(test_size))) > 0.05:
        raise ValueError(
            f"For k-fold {setting('test_size')} must be 1/k, such as 0.1 for ten folds, at most "
            f"0.5; got {test_size!r}."
        )
    return round(1 / float(test_size))


def _check_members(y: npt.ArrayLike, groups: AnyArray | None, least: int, split: Split) -> None:
    """ValueError for fewer than ``least`` units, of each class if classes keep their shares."""
    units = Units.of(y, groups)
    grouped = units.n < len(units.of_row)
    together = " of rows held out together" if grouped else ""
    if not split.stratified:
        if units.n < (least := max(least, 3)):
            what = "groups" if grouped else "rows"
            raise ValueError(f"A split needs {least} {what}{together} or more, got {units.n}.")
        return
    classes, _, held = _classes_held(y, units.of_row)
    sizes = np.bincount(held)
    rarest = int(np.argmin(sizes))
    if sizes[rarest] < least:
        members = count(int(sizes[rarest]), "group" if grouped else "member")
        finer = ", give finer groups" if grouped else ""
        why = "so that some are in both parts" if least == 2 else "one for each fold"
        fewer = f", make fewer folds by a larger {setting('test_size')}" if least > 2 else ""
        raise ValueError(
            f"Class {classes.tolist()[rarest]!r} has {members}{together}, and a split needs "
            f"{least}, {why}. Leave the class out{finer}{fewer} or join it with another."
        )


def _classes_held(y: npt.ArrayLike, of_row: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Classes, and the unit and the class number of every class that a unit holds."""
    one_target = np.asarray(y).reshape(len(of_row), -1)[:, 0]
    classes, number = np.unique(one_target, return_inverse=True)
    unit, held = np.divmod(np.unique(of_row * len(classes) + number), len(classes))
    return classes, unit, held


def _n_test(n: int, test_size: float) -> int:
    """Number of test rows out of n."""
    whole = isinstance(test_size, Integral)
    return int(test_size) if whole else min(ceil(float(test_size) * n - 1e-9), n - 1)


def _test_counts(sizes: list[int], test_size: float) -> list[int]:
    """Number of test rows per class: its share, at least one, leaving at least one to train."""
    # Stratified splits of scikit-learn, such as those for validation in `looms.nonconformity`, may
    # leave a small class out of a part, where its error rate has no value; and groups are drawn
    # by their rows. Subsamples of `looms.selection` are the beginnings of one order, to be nested.
    n = sum(sizes)
    n_test = _n_test(n, test_size)
    shares = [size * n_test / n for size in sizes]
    most = [size - 1 for size in sizes]
    counts = [min(max(int(s), 1), m) for s, m in zip(shares, most, strict=True)]

    def excess(k: int) -> float:
        return counts[k] - shares[k]

    while sum(counts) < n_test and (below := [k for k, m in enumerate(most) if counts[k] < m]):
        counts[min(below, key=excess)] += 1
    while sum(counts) > n_test and (large := [k for k, c in enumerate(counts) if c > 1]):
        counts[max(large, key=excess)] -= 1
    return counts
