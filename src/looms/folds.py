"""Folds: rows that are held out together, from a splitter or from groups.

scikit-learn splits the rows; a closed form holds them out [docs/references.md, Folds]. It needs
machines that train on all rows but those held out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from looms._typing import AnyArray, Array

__all__ = ["fold_numbers", "group_numbers", "joined_groups"]

#: 10, or 5x2 with its repetitions first.
NUMBER_OF_FOLDS = re.compile(r"(?:(\d+)x)?(\d+)")


def fold_numbers(
    cv: Any,
    y: Array,
    groups: AnyArray | None = None,
    *,
    labels: AnyArray | None = None,
    random_state: int = 0,
) -> AnyArray | None:
    """Number of the fold of every row, in one repetition or several.

    Parameters
    ----------
    cv : None for each group by itself, or each row without `groups`; a number of folds, stratified
        for classes; "5x2" for five repetitions of two shuffled folds; a splitter of scikit-learn,
        or its splits; an array of fold numbers, as returned. Splits whose test parts overlap are
        different repetitions.
    y : (n,) or (n, t) targets, for splitters that look at them.
    groups : (n,) numbers; rows of one group are held out together.
    labels : (n,) class of every row; without them there are no classes.
    random_state : seed of the repetitions of "5x2".

    Returns
    -------
    folds : (n_repetitions, n) integers, -1 where a row is not held out; None if each row is held
        out by itself.

    Raises
    ------
    ValueError
        If `cv` is none of these, if a split trains on fewer rows than all that it does not test,
        if a row is never held out, if a fold separates rows of a group, has all rows, or leaves no
        row of some class.

    Examples
    --------
    >>> import numpy as np
    >>> fold_numbers(3, np.arange(6.0))
    array([[0, 0, 1, 1, 2, 2]])
    >>> fold_numbers("2x3", np.arange(6.0)).shape
    (2, 6)
    """
    n = len(y)
    if cv is None:
        if groups is None:
            return None
        folds = np.asarray(groups)[None, :]
    elif isinstance(cv, np.ndarray):
        folds = np.atleast_2d(cv)
        if folds.shape[1:] != (n,) or folds.dtype.kind not in "iu":
            raise ValueError(
                f"An array for cv holds the number of the fold of each of {n} rows, got "
                f"{cv.dtype} of shape {cv.shape}."
            )
    else:
        targets = y if labels is None else labels
        folds = _repetitions(_splits(cv, targets, groups, labels is not None, random_state), n)
    never = (folds < 0).all(axis=0)
    if never.any():
        raise ValueError(
            f"cv tests {n - int(never.sum())} of {n} rows, and never row {int(np.argmax(never))}: "
            "each row must be held out at least once; give more splits, or a splitter as KFold."
        )
    if groups is not None:
        _check_groups_stay_together(folds, groups)
    check_rest(folds, labels, "group" if cv is None else "fold")
    return folds


def group_numbers(groups: Any, n: int) -> AnyArray:
    """Number of the group of every row, (n,) from 0, in the order of the sorted labels, or of
    their appearance if they are objects.

    Raises
    ------
    ValueError
        If there is not one label per row, some label is missing, or all rows are one group.

    Examples
    --------
    >>> group_numbers(["Ann", "Bo", "Ann"], 3)
    array([0, 1, 0])
    """
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups must hold one label per row, {n} of them, but has shape {labels.shape}."
        )
    # Among text, an array of other than objects has a NaN as text.
    each = np.asarray(groups, dtype=object) if labels.dtype.kind in "OUS" else labels
    missing = np.array(
        [
            label is None or type(label).__name__ == "NAType" or label != label
            for label in each.tolist()
        ]
    )
    if missing.any():
        raise ValueError(
            f"groups has no label for {int(missing.sum())} of {n} rows, the first is row "
            f"{int(np.argmax(missing))}: give every row its group, one of its own if it belongs to "
            "no other."
        )
    if labels.dtype == object:  # 1 and "1" are two, and neither is less
        known: dict[Any, int] = {}
        numbers = np.array([known.setdefault(label, len(known)) for label in labels.tolist()])
    else:
        numbers = np.unique(labels, return_inverse=True)[1]
    if numbers.max() == 0:
        raise ValueError(
            f"All rows are in one group, {labels[0]!s}: holding it out leaves none to train on. "
            "Leave groups out, or give a finer one."
        )
    return np.asarray(numbers)


def joined_groups(a: AnyArray, b: AnyArray) -> AnyArray:
    """Number of the group of every row, (n,), where rows that share ``a`` or ``b`` are together.

    Examples
    --------
    >>> import numpy as np
    >>> joined_groups(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))
    array([0, 0, 0, 1])
    """
    a, b = (np.unique(labels, return_inverse=True)[1] for labels in (a, b))
    size = int(a.max()) + int(b.max()) + 2
    links = coo_array((np.ones(len(a)), (a, a.max() + 1 + b)), shape=(size, size))
    return np.asarray(np.unique(connected_components(links)[1][a], return_inverse=True)[1])


def _splits(
    cv: Any, y: Array, groups: AnyArray | None, classes: bool, random_state: int
) -> Iterable[Any]:
    """Training and test rows of every split."""
    X = np.zeros((len(y), 1))
    if hasattr(cv, "split") and not isinstance(cv, str):
        splits: Iterable[Any] = cv.split(X, y, groups)
        return splits
    if isinstance(cv, Iterable) and not isinstance(cv, str):
        return cv
    match = NUMBER_OF_FOLDS.fullmatch(str(cv))
    if match is None or isinstance(cv, float):
        raise ValueError(
            "cv must be None, a number of folds, repetitions and folds as '5x2', a splitter of "
            f"scikit-learn or its splits, got {cv!r}."
        )
    n_folds, n_units = int(match[2]), len(y) if groups is None else len(np.unique(groups))
    if not 2 <= n_folds <= n_units or match[1] == "0":
        unit = "rows" if groups is None else "groups"
        raise ValueError(f"cv must be of 2 folds to as many as {unit}, {n_units}, got {cv}.")
    if groups is None:
        splitter = StratifiedKFold if classes else KFold
    else:
        splitter = StratifiedGroupKFold if classes else GroupKFold
    if match[1] is None:
        return list(splitter(n_folds).split(X, y, groups))
    seeds = range(random_state, random_state + int(match[1]))
    shuffled = (splitter(n_folds, shuffle=True, random_state=seed) for seed in seeds)
    return chain.from_iterable(each.split(X, y, groups) for each in shuffled)


def _repetitions(splits: Any, n: int) -> AnyArray:
    """(n_repetitions, n) number of the split that tests a row in each repetition, else -1."""
    rows: list[AnyArray] = []
    for number, split in enumerate(splits):
        try:
            train, test = (np.asarray(part) for part in split)
        except (TypeError, ValueError):
            raise ValueError("cv must give pairs of training and test rows.") from None
        train, test = (
            np.flatnonzero(part) if part.dtype == bool and part.shape == (n,) else part
            for part in (train, test)
        )
        together = np.concatenate([train, test])
        if not np.array_equal(np.sort(together), np.arange(n)):
            raise ValueError(
                f"Split {number} of cv trains on {len(train)} and tests on {len(test)} of {n} "
                "rows. The closed form is of machines that train on all rows that they do not "
                "test: give a splitter that does, as KFold; looms.assess takes others, as "
                "TimeSeriesSplit."
            )
        if not len(test):
            raise ValueError(f"Split {number} of cv tests no row.")
        if not rows or (rows[-1][test] >= 0).any():
            rows.append(np.full(n, -1))
        rows[-1][test] = number
    if not rows:
        raise ValueError("cv gives no split.")
    return np.stack(rows)


def _check_groups_stay_together(folds: AnyArray, groups: AnyArray) -> None:
    order = np.argsort(groups, kind="stable")
    same = np.diff(np.asarray(groups)[order]) == 0
    if (np.diff(folds[:, order], axis=1)[:, same] != 0).any():
        raise ValueError(
            "cv separates rows of a group: give a number of folds, or a splitter that keeps groups "
            "together, as GroupKFold."
        )


def check_rest(folds: AnyArray, labels: AnyArray | None, unit: str) -> None:
    """ValueError if the rows outside some fold, (n_repetitions, n), are none, or lack a class."""
    if any(len(np.unique(row)) == 1 for row in folds):
        raise ValueError(f"All rows are in one {unit}: holding it out leaves none to train on.")
    if labels is None:
        return
    classes, codes = np.unique(labels, return_inverse=True)
    for k, name in enumerate(classes.tolist()):
        held = [np.unique(row[codes == k]) for row in folds]
        if any(len(numbers) == 1 and numbers[0] >= 0 for numbers in held):
            raise ValueError(
                f"All rows of class {name!r} are in one {unit}: holding it out leaves none of them "
                "to train on. Give finer groups or more folds, or leave the class out."
            )
