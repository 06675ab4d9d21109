"""Splits into training and test rows, from a seed and an index alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from numbers import Integral, Real
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, StratifiedKFold

from looms._checks import check_known
from looms._typing import AnyArray
from looms._words import count

METHODS = ("shuffle", "kfold", "bootstrap")

#: Index of the fit to all rows, from which the bootstrap takes the apparent score.
WHOLE = -1

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """Division of the rows, independent of other splits.

    Attributes
    ----------
    index : place in the plan; `WHOLE` trains and tests on all rows.
    method : "shuffle", "kfold" or "bootstrap".
    test_size : share or number of the rows that test; the bootstrap ignores it.
    random_state : seed of the plan.
    stratified : whether classes keep their shares.
    """

    index: int
    method: str
    test_size: float
    random_state: int
    stratified: bool

    @property
    def name(self) -> str:
        """Identity in a store; the rest of it is the same for all splits there."""
        index = "whole" if self.index == WHOLE else f"{self.index:06d}"
        return f"seed{self.random_state}-{index}"

    @property
    def resamples(self) -> bool:
        """True if training rows may be repeated."""
        return self.method == "bootstrap" and self.index != WHOLE

    def seed(self, purpose: int = 0) -> int:
        """Seed below 2³² of a split, for each purpose."""
        entropy = (self.random_state, self.index + 1, purpose)
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def rows(self, y: npt.ArrayLike, groups: AnyArray | None = None) -> tuple[Rows, Rows]:
        """Rows that train and rows that test, each sorted; repeated ones for the bootstrap.

        Parameters
        ----------
        y : (n_samples,) targets.
        groups : (n_samples,) number of the group that each row belongs to. All rows of a group
            are on the same side. None takes every row by itself.
        """
        y = np.asarray(y)
        n = len(y)
        if self.index == WHOLE:
            return np.arange(n), np.arange(n)
        units = Units.of(y, groups)
        labels = units.labels if self.stratified else None
        if self.method == "kfold":
            return units.rows(self._fold(labels, units.n))
        everything = np.arange(units.n)
        classes = [everything]
        if labels is not None:
            classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        rng = np.random.default_rng(self.seed())
        if self.method == "bootstrap":
            drawn = np.concatenate([_resampled(members, rng) for members in classes])
            times = np.bincount(drawn, minlength=units.n)[units.of_row]
            return np.repeat(np.arange(n), times), np.flatnonzero(times == 0)
        sizes = [units.sizes[members] for members in classes]
        counts = _test_counts([int(each.sum()) for each in sizes], self.test_size)
        parts = []
        for members, n_test in zip(classes, counts, strict=True):
            order = rng.permutation(members)
            n_rows = np.cumsum(units.sizes[order])[:-1]  # one is left to train
            parts.append(order[: 1 + np.argmin(np.abs(n_rows - n_test))])
        return units.rows(np.concatenate(parts))

    def _fold(self, labels: AnyArray | None, n: int) -> Rows:
        """Test units of a fold."""
        n_folds = n_folds_of(self.test_size)
        repeat, fold = divmod(self.index, n_folds)
        seed = replace(self, index=repeat).seed()
        folds = (KFold if labels is None else StratifiedKFold)(
            n_folds, shuffle=True, random_state=seed
        )
        return list(folds.split(np.zeros(n), labels))[fold][1]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Units:
    """Units of a division: rows, or groups of rows, numbered by their first rows.

    Attributes
    ----------
    of_row : (n_samples,) unit that each row belongs to.
    sizes : (n,) rows of each unit.
    labels : (n,) targets; of a unit with several the one that is rarest in all rows, so that
        both parts get members of every class.
    """

    of_row: AnyArray
    sizes: AnyArray
    labels: AnyArray

    @classmethod
    def of(cls, y: npt.ArrayLike, groups: AnyArray | None) -> Self:
        y = np.asarray(y)
        if groups is None:
            return cls(np.arange(len(y)), np.ones(len(y), dtype=np.intp), y)
        _, first, unit, sizes = np.unique(groups, True, True, True)
        rank = np.argsort(np.argsort(first))
        of_row = rank[unit]
        one_target = y.reshape(len(y), -1)[:, 0]
        _, label, counts = np.unique(one_target, return_inverse=True, return_counts=True)
        by_rarity = np.argsort(counts[label], kind="stable")
        rarest = by_rarity[np.unique(of_row[by_rarity], return_index=True)[1]]
        return cls(of_row, sizes[np.argsort(rank)], y[rarest])

    @property
    def n(self) -> int:
        return len(self.sizes)

    def rows(self, testing: AnyArray) -> tuple[Rows, Rows]:
        """Rows of all other units, and of those that test."""
        tests = np.isin(self.of_row, testing)
        return np.flatnonzero(~tests), np.flatnonzero(tests)


def plan(
    y: npt.ArrayLike,
    *,
    method: str,
    n_splits: int,
    test_size: float,
    random_state: int,
    stratified: bool,
    groups: AnyArray | None = None,
) -> list[Split]:
    """Splits in their order, after checking that the rows suffice for them.

    Of rows that `Split.rows` keeps together by ``groups`` each group counts as one.

    Raises
    ------
    ValueError
        If an argument is out of range, or a class has too few members for a split.
    """
    check_known(method, "method", METHODS)
    if not (isinstance(n_splits, Integral) and n_splits >= 2):
        raise ValueError(f"n_splits must be an integer of at least 2, got {n_splits!r}.")
    n, least = len(np.asarray(y)), 2
    if method == "kfold":
        least = n_folds_of(test_size)
        if n_splits % least:
            raise ValueError(
                f"n_splits={n_splits} is not a multiple of the {least} folds that "
                f"test_size={test_size} makes: k-fold is repeated whole or not at all."
            )
    elif method == "shuffle":
        whole = isinstance(test_size, Integral) and not isinstance(test_size, bool)
        size = float(test_size) if isinstance(test_size, Real) else float("nan")
        if not (1 <= size < n if whole else 0 < size < 1):
            raise ValueError(
                f"test_size must be a share between 0 and 1, or a number of rows below {n}, got "
                f"{test_size!r}."
            )
    _check_members(Units.of(y, groups).labels, least, stratified, method, test_size)
    indices = range(WHOLE if method == "bootstrap" else 0, int(n_splits))
    return [Split(i, method, test_size, random_state, stratified) for i in indices]


def n_folds_of(test_size: float) -> int:
    """Number of folds of which each tests ``test_size`` of the rows."""
    is_share = isinstance(test_size, Real) and 0 < float(test_size) <= 0.5
    if not is_share or abs(1 / float(test_size) - round(1 / float(test_size))) > 0.05:
        raise ValueError(
            "For k-fold test_size must be 1/k, such as 0.1 for ten folds, at most 0.5; got "
            f"{test_size!r}."
        )
    return round(1 / float(test_size))


def _check_members(
    labels: AnyArray, least: int, stratified: bool, method: str, test_size: float
) -> None:
    if not stratified:
        if len(labels) < max(least, 3):
            raise ValueError(f"A split needs {max(least, 3)} rows or more, got {len(labels)}.")
        return
    needs = {
        "shuffle": "one to train and one to test",
        "bootstrap": "one to train and one out of the bag",
        "kfold": f"one for each of the {least} folds of test_size={test_size}",
    }[method]
    classes, counts = np.unique(labels, return_counts=True)
    for label, n in zip(classes.tolist(), counts.tolist(), strict=True):
        if n < least:
            advice = "; a larger test_size makes fewer folds" if method == "kfold" else ""
            raise ValueError(
                f"Class {label!r} has {count(n, 'member')}, and a split needs {least}: {needs}. "
                f"Leave the class out or join it with another{advice}."
            )


def _test_counts(sizes: list[int], test_size: float) -> list[int]:
    """Number of test rows of each class: its share, at least one, and one left to train."""
    # Stratified splits of scikit-learn, such as those for validation in `looms.estimators`, may
    # leave a small class out of a part, where its error rate has no value; and groups are drawn
    # by their rows. Subsamples of `looms.selection` are the beginnings of one order, to be nested.
    n = sum(sizes)
    whole = isinstance(test_size, Integral)
    n_test = int(test_size) if whole else min(ceil(float(test_size) * n - 1e-9), n - 1)
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


def _resampled(group: Rows, rng: np.random.Generator) -> Rows:
    """Members drawn with replacement, as many as there are, at least one left out."""
    while True:
        drawn = rng.choice(group, len(group))
        if len(np.unique(drawn)) < len(group):
            return drawn
