"""Folds: rows that are held out together, from a splitter or from groups.

scikit-learn splits the rows; a closed form holds them out [docs/references.md, Folds]. It needs
machines that train on all rows but those held out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from looms._typing import AnyArray, Array

__all__ = ["fold_numbers", "group_numbers"]


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
        or its splits. Splits whose test parts overlap are different repetitions.
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
    else:
        splits = _splits(cv, y if labels is None else labels, groups, labels is not None)
        folds = _repetitions(splits(random_state), n)
        if groups is not None:
            _check_groups_stay_together(folds, groups)
    for row in folds:
        _check_rest(row, labels, "group" if cv is None else "fold")
    return folds


def group_numbers(groups: Any, n: int) -> AnyArray:
    """Number of the group of every row, (n,) from 0, in the order of the sorted labels.

    Raises
    ------
    ValueError
        If there is not one label per row, some label is missing, or all rows are one group.
    """
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups must hold one label per row, {n} of them, but has shape {labels.shape}."
        )
    missing = np.array([label is None or label != label for label in labels.tolist()])
    if missing.any():
        raise ValueError(
            f"groups has no label for {int(missing.sum())} of {n} rows, the first is row "
            f"{int(np.argmax(missing))}: give every row its group, one of its own if it belongs to "
            "no other."
        )
    if labels.dtype == object:
        labels = labels.astype(str)
    names, numbers = np.unique(labels, return_inverse=True)
    if len(names) == 1:
        raise ValueError(
            f"All rows are in one group, {names[0]!s}: holding it out leaves none to train on. "
            "Leave groups out, or give a finer one."
        )
    return np.asarray(numbers)


def _splits(cv: Any, y: Array, groups: AnyArray | None, classes: bool) -> Any:
    """Function of a seed that gives the (train, test) rows of every split."""
    n_repeats = None
    if isinstance(cv, str):
        parts = cv.lower().split("x")
        if not (len(parts) in (1, 2) and all(part.isdecimal() for part in parts)):
            raise ValueError(f"cv must be a number of folds or repeats x folds as '5x2', got {cv!r}.")
        n_repeats = int(parts[0]) if len(parts) == 2 else None
        cv = int(parts[-1])
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if cv < 2 or (n_repeats is not None and n_repeats < 1):
            raise ValueError(f"cv must be 2 folds or more, got {cv}.")
        return _folds_of(int(cv), n_repeats, y, groups, classes)
    if hasattr(cv, "split"):
        return lambda seed: cv.split(np.zeros((len(y), 1)), y, groups)
    if hasattr(cv, "__iter__") and not isinstance(cv, str):
        return lambda seed: cv
    raise ValueError(
        "cv must be None, a number of folds, repeats x folds as '5x2', a splitter of scikit-learn "
        f"or splits, got {cv!r}."
    )


def _folds_of(k: int, n_repeats: int | None, y: Array, groups: Any, classes: bool) -> Any:
    X = np.zeros((len(y), 1))
    count = len(y) if groups is None else len(np.unique(groups))
    if k > count:
        unit = "rows" if groups is None else "groups"
        raise ValueError(f"cv={k} folds need as many {unit}, got {count}.")
    if groups is not None and n_repeats is None:
        splitter = StratifiedGroupKFold(k) if classes else GroupKFold(k)
        return lambda seed: splitter.split(X, y, groups)
    if groups is not None:
        return lambda seed: (
            split
            for r in range(n_repeats)
            for split in (StratifiedGroupKFold if classes else GroupKFold)(
                k, shuffle=True, random_state=seed + r
            ).split(X, y, groups)
        )
    if n_repeats is None:
        return lambda seed: (StratifiedKFold(k) if classes else KFold(k)).split(X, y)
    repeated = RepeatedStratifiedKFold if classes else RepeatedKFold
    return lambda seed: repeated(n_splits=k, n_repeats=n_repeats, random_state=seed).split(X, y)


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
                f"Split {number} of cv trains on {len(train)} and tests on {len(test)} of {n} rows. "
                "A machine is held out in closed form if it trains on all rows that it does not "
                "test: give a splitter that does, as KFold, and use looms.assess for others, as "
                "TimeSeriesSplit."
            )
        if not len(test):
            raise ValueError(f"Split {number} of cv tests no row.")
        if not rows or (rows[-1][test] >= 0).any():
            rows.append(np.full(n, -1))
        rows[-1][test] = number
    if not rows:
        raise ValueError("cv gives no split.")
    folds = np.stack(rows)
    never = (folds < 0).all(axis=0)
    if never.any():
        raise ValueError(
            f"cv tests {n - int(never.sum())} of {n} rows, and never row {int(np.argmax(never))}: "
            "each row must be held out at least once; give more splits, or a splitter as KFold."
        )
    return folds


def _check_groups_stay_together(folds: AnyArray, groups: AnyArray) -> None:
    order = np.argsort(groups, kind="stable")
    same = np.diff(np.asarray(groups)[order]) == 0
    if (np.diff(folds[:, order], axis=1)[:, same] != 0).any():
        raise ValueError(
            "cv separates rows of a group: give a number of folds, or a splitter that keeps groups "
            "together, as GroupKFold."
        )


def _check_rest(folds: AnyArray, labels: AnyArray | None, unit: str) -> None:
    """ValueError if the rows outside some fold are none, or lack a class."""
    numbers = np.unique(folds[folds >= 0])
    if len(numbers) == 1 and (folds >= 0).all():
        raise ValueError(f"All rows are in one {unit}: holding it out leaves none to train on.")
    if labels is None:
        return
    classes, codes = np.unique(labels, return_inverse=True)
    for k, name in enumerate(classes.tolist()):
        held = np.unique(folds[codes == k])
        if len(held) == 1 and held[0] >= 0:
            raise ValueError(
                f"All rows of class {name!r} are in one {unit}: holding it out leaves none of them "
                "to train on. Give finer groups or more folds, or leave the class out."
            )
