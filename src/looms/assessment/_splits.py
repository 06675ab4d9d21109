"""Plans of splits: which rows train and which test, from a seed and an index alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, StratifiedKFold

METHODS = ("shuffle", "kfold", "bootstrap")

#: Index of the fit to all rows, from which the bootstrap takes the apparent score.
WHOLE = -1

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """One division of the rows; the same whatever other splits are made.

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
        """Whether rows that train may come several times."""
        return self.method == "bootstrap" and self.index != WHOLE

    def seed(self, purpose: int = 0) -> int:
        """A seed of its own, below 2³², for each split and purpose."""
        entropy = (self.random_state, self.index + 1, purpose)
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def rows(self, y: Any) -> tuple[Rows, Rows]:
        """Rows that train and rows that test, each sorted; repeated ones for the bootstrap."""
        everything = np.arange(len(y))
        if self.index == WHOLE:
            return everything, everything
        if self.method == "kfold":
            return self._fold(y)
        labels = np.unique(np.asarray(y), return_inverse=True)[1] if self.stratified else None
        groups = [everything] if labels is None else _groups(labels)
        rng = np.random.default_rng(self.seed())
        if self.method == "bootstrap":
            train = np.sort(np.concatenate([_resampled(group, rng) for group in groups]))
            return train, np.setdiff1d(everything, train)
        counts = _test_counts([len(group) for group in groups], self.test_size)
        parts = [rng.permutation(g)[:k] for g, k in zip(groups, counts, strict=True)]
        test = np.sort(np.concatenate(parts))
        return np.setdiff1d(everything, test), test

    def _fold(self, y: Any) -> tuple[Rows, Rows]:
        n_folds = n_folds_of(self.test_size)
        repeat, fold = divmod(self.index, n_folds)
        seed = Split(repeat, "kfold", self.test_size, self.random_state, self.stratified).seed()
        folds = (StratifiedKFold if self.stratified else KFold)(
            n_folds, shuffle=True, random_state=seed
        )
        return list(folds.split(np.zeros(len(y)), np.asarray(y)))[fold]  # type: ignore[no-any-return]


def plan(
    y: Any, *, method: str, n_splits: int, test_size: float, random_state: int, stratified: bool
) -> list[Split]:
    """The splits in their order, after checking that the rows suffice for them.

    Raises
    ------
    ValueError
        If an argument is out of range, or a class has too few members for a split.
    """
    if method not in METHODS:
        raise ValueError(f"Unknown method {method!r}; known are {', '.join(METHODS)}.")
    if not (isinstance(n_splits, Integral) and n_splits >= 2):
        raise ValueError(f"n_splits must be an integer of at least 2, got {n_splits!r}.")
    n_splits, n = int(n_splits), len(y)
    if method == "bootstrap":
        least = 2
    elif method == "kfold":
        least = n_folds_of(test_size)
        if n_splits % least:
            raise ValueError(
                f"n_splits={n_splits} is not a multiple of the {least} folds that "
                f"test_size={test_size} makes: k-fold is repeated whole or not at all."
            )
    else:
        least = 2
        _check_share(test_size, n)
    _check_members(y, least, stratified, method, test_size)
    indices = range(WHOLE if method == "bootstrap" else 0, n_splits)
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


def _check_share(test_size: Any, n: int) -> None:
    whole = isinstance(test_size, Integral) and not isinstance(test_size, bool)
    size = float(test_size) if isinstance(test_size, Real) else float("nan")
    if not (1 <= size < n if whole else 0 < size < 1):
        raise ValueError(
            f"test_size must be a share between 0 and 1, or a number of rows below the {n} there "
            f"are; got {test_size!r}."
        )


def _check_members(y: Any, least: int, stratified: bool, method: str, test_size: float) -> None:
    needs = {
        "shuffle": "one to train and one to test",
        "bootstrap": "one to train and one out of the bag",
        "kfold": f"one for each of the {least} folds of test_size={test_size}",
    }[method]
    if not stratified:
        if len(y) < max(least, 3):
            raise ValueError(f"A split needs {max(least, 3)} rows or more, got {len(y)}.")
        return
    classes, counts = np.unique(np.asarray(y), return_counts=True)
    for label, count in zip(classes.tolist(), counts.tolist(), strict=True):
        if count < least:
            advice = "; a larger test_size makes fewer folds" if method == "kfold" else ""
            raise ValueError(
                f"Class {label!r} has {count} member{'s' * (count != 1)}, and a split needs "
                f"{least}: {needs}. Leave the class out or join it with another{advice}."
            )


def _groups(labels: Any) -> list[Rows]:
    return [np.flatnonzero(labels == k) for k in range(labels.max() + 1)]


def _test_counts(sizes: list[int], test_size: float) -> list[int]:
    """How many of each class test: its share, at least one, and one left to train."""
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
    """As many members as there are, with replacement; drawn again if that takes all of them."""
    while True:
        drawn = rng.choice(group, len(group))
        if len(np.unique(drawn)) < len(group):
            return drawn
