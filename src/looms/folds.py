"""Folds of rows that are held out together, from a splitter or from groups.

scikit-learn splits the rows, and a closed form holds them out [docs/references.md, Folds]. The gap
of a split, rows that it neither trains on nor tests, is left out with the rows that it tests.
"""

from __future__ import annotations

import re
import warnings
from abc import ABC
from collections.abc import Iterable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from looms._advice import setting
from looms._checks import gaps_in, label_array, remark_on_order, value_numbers
from looms._times import Timeline, exact_times, plain_times
from looms._typing import AnyArray
from looms._words import one_line

__all__ = ["ForwardSplit", "GapKFold", "joined_groups"]

#: Rows before the first window that a model is tuned on.
LEAST_BEFORE = 6
#: If no row of a class is left to train on, by what is held out.
_REMEDIES = {
    "group": "finer groups",
    "fold": "more folds",
    "window": "fewer windows, so that rows of it are before the first and after it",
}
#: "10", or "5x2" with the number of repetitions first.
NUMBER_OF_FOLDS = re.compile(r"(?:(\d+)x)?(\d+)")


def fold_numbers(
    cv: Any,
    y: AnyArray,
    groups: AnyArray | None = None,
    *,
    classes: bool = False,
    random_state: int = 0,
) -> AnyArray:
    """Fold number of every row, in one repetition or several.

    Parameters
    ----------
    cv : None to hold out each group, or without `groups` each row, by itself; a number of folds,
        stratified for classes; "5x2" for five repetitions of two shuffled folds; a scikit-learn
        splitter, or its splits; or an array of fold numbers, as returned. Splits that leave out
        the same row are put in different repetitions.
    y : (n,) classes, or (n,) or (n, t) numbers, for splitters that use them.
    groups : (n,) numbers; rows of one group are held out together. Groups of one row each are as
        no groups.
    classes : whether ``y`` holds classes, so that folds are stratified.
    random_state : seed for the repetitions of "5x2".

    Returns
    -------
    folds : (n_repetitions, n) integers: k for a row that fold k tests, -1 for a row that is not
        held out, -2 - k for a row that fold k leaves out without testing it.

    Raises
    ------
    ValueError
        If `cv` is none of these, a row is never tested, or a fold trains on rows of a group that
        it tests, leaves out all rows, or leaves out all rows of some class.

    Examples
    --------
    >>> import numpy as np
    >>> fold_numbers(3, np.arange(6.0))
    array([[0, 0, 1, 1, 2, 2]])
    >>> fold_numbers("2x3", np.arange(6.0)).shape
    (2, 6)
    >>> fold_numbers(GapKFold(3, gap=1), np.arange(6.0))  # the second fold leaves out rows 1 to 4
    array([[ 0,  0, -2, -4,  2,  2],
           [-1, -3,  1,  1, -3, -1]])
    """
    n, unit = len(y), "fold"
    groups = group_numbers(None, n, cv) if groups is None else np.asarray(groups)
    if cv is None:
        folds, unit = groups[None], "group"
        if not is_grouped(groups):
            return folds
    elif isinstance(cv, np.ndarray):
        folds = np.atleast_2d(cv)
        if folds.shape[1:] != (n,) or folds.dtype.kind not in "iu":
            raise ValueError(
                f"An array for cv must hold a fold number for each of {n} rows, got "
                f"{cv.dtype} of shape {cv.shape}."
            )
    else:
        splits: Iterable[Any] = _splits(cv, y, groups, classes, random_state)
        if is_forward(cv):
            splits, unit = _with_first_rows(splits, groups), "window"
        folds = _repetitions(splits, n)
    never = (folds < 0).all(axis=0)
    if never.any():
        raise ValueError(
            f"cv tests {n - int(never.sum())} of {n} rows, and never row {int(np.argmax(never))}: "
            "each row must be held out at least once; give more splits, or a splitter such as "
            "KFold, or for rows in order of time looms.folds.GapKFold or ForwardSplit."
        )
    _check_groups_stay_together(folds, groups)
    check_rest(folds, y, classes, unit)
    return folds


def group_numbers(groups: Any, n: int, cv: Any = None) -> AnyArray:
    """Group number of every row, (n,) from 0, in the order of the sorted labels, whatever holds
    them. Labels that cannot be sorted, such as numbers and text, are in the order of appearance.
    If ``groups`` is None, each row is one.

    Raises
    ------
    ValueError
        If there is not one label per row, a label is missing, all rows are in one group, or there
        are no groups for a splitter `cv` of groups.
    TypeError
        If a label is no plain value, but a list or the like.

    Examples
    --------
    >>> group_numbers(["Ann", "Bo", "Ann"], 3)
    array([0, 1, 0])
    """
    if groups is None:
        if splits_groups(cv):
            raise ValueError(
                f"{setting('cv', cv)} splits groups: give groups, or a splitter of rows."
            )
        return np.arange(n)
    numbers = label_numbers(groups, n, "groups")
    if numbers.max() == 0:
        raise ValueError(
            f"All rows are in one group, {label_array(groups)[0]!s}: holding it out leaves none to "
            "train on. Drop groups, or give a finer one."
        )
    return numbers


def label_numbers(given: Any, n: int, name: str) -> AnyArray:
    """`group_numbers` of the labels that the argument of a name holds, also of a single group."""
    if isinstance(given, str):
        raise ValueError(
            f"{name} takes the labels of the rows, not the name of a column: "
            f"{name}=table[{given!r}]."
        )
    labels = label_array(given)
    if labels.shape != (n,):
        raise ValueError(
            f"{name} must hold one label per row, {n} of them, but has shape {labels.shape}."
        )
    missing = gaps_in(labels)
    if missing.any():
        raise ValueError(
            f"{name} has no label for {int(missing.sum())} of {n} rows, the first is row "
            f"{int(np.argmax(missing))}: give every row a group, its own if it belongs to no other."
        )
    try:
        return value_numbers(labels)
    except TypeError as error:
        raise TypeError(f"{name} must hold labels such as text or numbers: {error}.") from None


def is_number_of_folds(cv: Any) -> bool:
    """True unless ``cv`` is made for certain rows, as splits and splitters are."""
    return cv is None or isinstance(cv, (Integral, str))


def number_of_folds(cv: Any) -> int:
    """Number of folds that ``cv`` names, 0 if rows or groups are held out by themselves."""
    match = NUMBER_OF_FOLDS.fullmatch(str(cv))
    return 0 if match is None else int(match[2])


def is_grouped(numbers: AnyArray) -> bool:
    """True if some row shares the number of its group with another."""
    return bool(np.bincount(numbers).max() > 1)


def joined_groups(a: Any, b: Any) -> AnyArray:
    """Group number of every row, (n,), where rows that share ``a`` or ``b`` are in one group.

    Parameters
    ----------
    a, b : array-like of shape (n,)
        Labels of the rows.

    Returns
    -------
    groups : (n,) integers from 0, equal for rows of one group.

    Raises
    ------
    ValueError
        If there is not one label of either per row, or one is missing.

    Examples
    --------
    >>> import numpy as np
    >>> joined_groups(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))
    array([0, 0, 0, 1])
    """
    _warn_of_order(a=a, b=b)
    n = np.atleast_1d(label_array(a)).shape[0]
    a, b = (label_numbers(labels, n, name) for name, labels in (("a", a), ("b", b)))
    size = int(a.max()) + int(b.max()) + 2
    links = coo_array((np.ones(len(a)), (a, a.max() + 1 + b)), shape=(size, size))
    return np.asarray(np.unique(connected_components(links)[1][a], return_inverse=True)[1])


def _warn_of_order(**arguments: Any) -> None:
    """UserWarning with `remark_on_order`, at the line that calls the caller."""
    remark = remark_on_order(**arguments)
    if remark is not None:
        warnings.warn(remark, UserWarning, stacklevel=3)


def is_forward(cv: Any) -> bool:
    """True for windows of time that are tested by models of earlier rows alone."""
    return isinstance(cv, ForwardSplit | TimeSeriesSplit)


def windows_among(cv: Any, rows: AnyArray, y: AnyArray, groups: AnyArray, classes: bool) -> Any:
    """Windows that earlier rows test, of some of the rows, with enough rows before the first.

    As many as can be made, up to those of ``cv``. None if no two can: rows or groups are then held
    out by themselves.

    Parameters
    ----------
    cv : of all rows.
    rows : numbers of those that take part.
    y, groups, classes : as of `fold_numbers`, of all rows.
    """
    windows, time = None, getattr(cv, "time", None)
    own = {} if time is None else {"time": label_array(time)[rows]}
    for n_splits in range(cv.n_splits, 1, -1):
        fewer = copy(cv)
        vars(fewer).update(own, n_splits=n_splits)
        with suppress(ValueError):
            folds = fold_numbers(fewer, y[rows], groups[rows], classes=classes)
            windows = fewer
            if n_left(folds)[:-1].min() >= LEAST_BEFORE:
                break
    return windows


def n_left(folds: AnyArray) -> AnyArray:
    """Number of rows that are left to train on without each fold."""
    together = left_out_with(folds)  # each fold is in one repetition
    return np.asarray(folds.shape[1] - np.bincount(together[together >= 0]))


def splits_groups(cv: Any) -> bool:
    """True for a splitter of scikit-learn that takes groups."""
    routing = getattr(cv, "get_metadata_routing", None)
    return routing is not None and bool(routing().consumes("split", ["groups"]))


def _splits(
    cv: Any, y: AnyArray, groups: AnyArray, classes: bool, random_state: int
) -> Iterable[Any]:
    """Training and test rows of every split."""
    X, grouped = np.zeros((len(y), 1)), is_grouped(groups)
    if hasattr(cv, "split") and not isinstance(cv, str):
        wanted = grouped or splits_groups(cv)
        splits: Iterable[Any] = cv.split(X, y, groups if wanted else None)
        return splits
    if isinstance(cv, Iterable) and not isinstance(cv, str):
        return cv
    match = NUMBER_OF_FOLDS.fullmatch(str(cv))
    if match is None or isinstance(cv, float):
        others = ", a splitter of scikit-learn or its splits, and None"
        raise ValueError(
            f"Unknown {setting('cv')} {one_line(cv)}; known are a number of folds, repetitions and "
            f"folds such as '5x2'{setting('splitters', text=others)}."
        )
    n_folds, n_units = int(match[2]), len(np.unique(groups))
    if not 2 <= n_folds <= n_units or match[1] == "0":
        unit = "groups" if grouped else "rows"
        raise ValueError(
            f"{setting('cv')} must be from 2 folds to the number of {unit}, {n_units}, got {cv}."
        )
    if grouped:
        splitter = StratifiedGroupKFold if classes else GroupKFold
    else:
        splitter = StratifiedKFold if classes else KFold
    together = groups if grouped else None
    if match[1] is None:
        return list(splitter(n_folds).split(X, y, together))
    seeds = range(random_state, random_state + int(match[1]))
    shuffled = (splitter(n_folds, shuffle=True, random_state=seed) for seed in seeds)
    return chain.from_iterable(folds.split(X, y, together) for folds in shuffled)


def _with_first_rows(splits: Iterable[Any], groups: AnyArray) -> list[Any]:
    """Windows, and at last the rows that none of them tests: those before the first window.

    These are held out together, from later rows, so that each row is held out once; they do not
    count.
    """
    windows, every = list(splits), np.arange(len(groups))
    first = np.setdiff1d(every, np.concatenate([test for _, test in windows]))
    return [*windows, (every[~np.isin(groups, groups[first])], first)]


def _repetitions(splits: Any, n: int) -> AnyArray:
    """`fold_numbers` of splits, each in the first repetition that leaves none of its rows out."""
    repetitions: list[AnyArray] = []
    for number, split in enumerate(splits):
        try:
            train, test = (np.asarray(part) for part in split)
        except (TypeError, ValueError):
            raise ValueError(
                f"{setting('cv')} must give pairs of training and test rows."
            ) from None
        train, test = (
            np.flatnonzero(part) if part.dtype == bool and part.shape == (n,) else part
            for part in (train, test)
        )
        together = np.sort(np.concatenate([train, test]))
        if len(together) and not (
            np.isin(together, np.arange(n)).all() and np.diff(together).all()
        ):
            raise ValueError(
                f"Split {number} of cv trains on {len(train)} and tests on {len(test)} of {n} "
                f"rows, but these are not distinct numbers from 0 to {n - 1}: each row must be in "
                "one of the two, once, or in neither."
            )
        if not len(test):
            raise ValueError(f"Split {number} of cv tests no row.")
        codes = np.full(n, -2 - number)
        codes[train.astype(np.intp)] = -1
        codes[test] = number
        out = codes != -1
        for repetition in repetitions:
            if (repetition[out] == -1).all():
                repetition[out] = codes[out]
                break
        else:
            repetitions.append(codes)
    if not repetitions:
        raise ValueError("cv gives no split.")
    return np.stack(repetitions)


def left_out_with(folds: AnyArray) -> AnyArray:
    """Number of the fold with which each row is held out, tested or not; -1 for none."""
    return np.where(folds < -1, -2 - folds, folds)


def _check_groups_stay_together(folds: AnyArray, groups: AnyArray) -> None:
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    for row, out in zip(folds, left_out_with(folds), strict=True):
        apart = groups[out != out[first[number]]]  # from the first row of their group
        if np.isin(apart, groups[row >= 0]).any():
            raise ValueError(
                "cv separates rows of a group: give a number of folds, or a splitter that keeps "
                "groups together, such as GroupKFold."
            )


def check_rest(folds: AnyArray, y: AnyArray, classes: bool, unit: str) -> None:
    """ValueError if some fold, (n_repetitions, n), leaves no rows, or none of some class of y."""
    folds = left_out_with(folds)
    if any(len(np.unique(row)) == 1 and row[0] >= 0 for row in folds):
        raise ValueError(f"All rows are in one {unit}: holding it out leaves none to train on.")
    names, codes = np.unique(y, return_inverse=True)
    for k, name in enumerate(names.tolist() if classes else ()):
        held = [np.unique(row[codes == k]) for row in folds]
        if any(len(numbers) == 1 and numbers[0] >= 0 for numbers in held):
            raise ValueError(
                f"All rows of class {name!r} are in one {unit}: holding it out leaves none of them "
                f"to train on. Give {_REMEDIES[unit]}, or leave the class out."
            )


@dataclass(frozen=True, eq=False, repr=False)
class TimeWindows(ABC):
    """Base class of splitters into windows of consecutive rows in order of time."""

    n_splits: int
    gap: Any = 0
    time: Any = None
    #: Whether later rows are left out, too, and the first window is not tested.
    _forward: ClassVar[bool] = False

    def __repr__(self) -> str:
        time = "" if self.time is None else f", time=<{len(self.time)} times>"
        return f"{type(self).__name__}(n_splits={self.n_splits!r}, gap={self.gap!r}{time})"

    def __deepcopy__(self, memo: object) -> Self:
        """These very windows, which nothing changes."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """State with times and gap as numbers or dates of numpy, which model files can hold."""
        given = None if self.time is None else label_array(self.time)
        time, gap = plain_times(given, self.gap)
        return {"n_splits": self.n_splits, "gap": gap, "time": self.time if time is None else time}

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Number of windows."""
        return self.n_splits

    def split(
        self, X: Any, y: object = None, groups: Any = None
    ) -> Iterator[tuple[AnyArray, AnyArray]]:
        """Rows to train on and rows to test, in increasing order, of each window.

        Parameters
        ----------
        X : (n_samples, n_features); only the number of rows is used.
        y : ignored.
        groups : (n_samples,) labels of rows that belong together.

        Raises
        ------
        ValueError
            If there are fewer rows than windows, there is not one time for each row, times are
            missing or neither numbers nor dates, or the gap is negative or in the wrong unit; or
            if no rows are left to train on.
        """
        _warn_of_order(X=X, y=y, groups=groups, time=self.time)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if not (isinstance(self.n_splits, Integral) and 2 <= self.n_splits <= n - self._forward):
            raise ValueError(
                f"n_splits, the number of windows, must be from 2 to {n - self._forward}, got "
                f"{self.n_splits!r}: there are {n} rows."
            )
        given = np.arange(n) if self.time is None else label_array(self.time)
        if given.shape == (n,) and (missing := gaps_in(given)).any():
            raise ValueError(f"time is missing in row {int(np.argmax(missing))}.")
        time = exact_times(given)
        if time is None or time.shape != (n,):
            raise ValueError(
                f"{setting('time')} must hold a number or a date for each of {n} rows, got "
                f"{given.dtype} of shape {given.shape}. If parts of the rows are fitted, sort the "
                "rows by time and omit the argument time."
            )
        if time.dtype.kind == "f" and not np.isfinite(time).all():
            raise ValueError(f"time is infinite in row {int(np.argmin(np.isfinite(time)))}.")
        numbers = np.arange(n) if groups is None else label_numbers(groups, n, "groups")
        order = np.argsort(time, kind="stable")
        timeline = Timeline.of(time[order], self.gap)
        windows = np.array_split(np.arange(n), self.n_splits + self._forward)
        for places in windows[self._forward :]:
            window, out = order[places], np.zeros(n, dtype=bool)
            around = timeline.around(places[0], places[-1])
            out[order[around.start : None if self._forward else around.stop]] = True
            out |= np.isin(numbers, numbers[window])
            if out.all():
                first, last = (str(time[row]) for row in window[[0, -1]])
                where, number = ("before", "fewer") if self._forward else ("around", "more")
                raise ValueError(
                    f"The window from {first} to {last}, its groups and a gap of {self.gap} "
                    f"{where} it leave no rows to train on: give a smaller gap, smaller groups, "
                    f"or {number} windows."
                )
            yield np.flatnonzero(~out), np.sort(window)


@dataclass(frozen=True, eq=False, repr=False)
class GapKFold(TimeWindows):
    """Windows of rows in order of time, with gaps on either side.

    Each window of consecutive rows is tested by the model of all rows before and after it,
    except for those in a gap on either side. Neighbors in time resemble each other; with a gap as
    long as this resemblance lasts, they reveal nothing about the window.

    Parameters
    ----------
    n_splits : int, default=10
        Number of windows, each with about the same number of rows.
    gap : number or duration, default=0
        Length of the gap on either side, in units of ``time``, or in rows without ``time``; a
        timedelta between dates. A row at just this distance is in the gap. Rows with the same time
        as a row in the window are never trained on.
    time : array-like of shape (n_samples,) of numbers or dates, default=None
        Time of each row; by default, the rows are in order of time. Whole numbers, fractions and
        dates are compared exactly. Of floats, such as 0.1, 0.2, ..., distances that are the gap up
        to their rounding count as it.

    See Also
    --------
    ForwardSplit : Windows that are tested by models of earlier rows alone.

    Notes
    -----
    With groups, rows of a group in the window are not trained on either. The first windows are
    tested by models of later rows, so that tuning uses all rows.

    References
    ----------
    Racine (2000), Consistent cross-validatory model-selection for dependent data, Journal of
    Econometrics [docs/references.md, R00].

    Examples
    --------
    >>> import numpy as np
    >>> for train, test in GapKFold(3, gap=1).split(np.zeros((9, 1))):
    ...     print(train, test)
    [4 5 6 7 8] [0 1 2]
    [0 1 7 8] [3 4 5]
    [0 1 2 3 4] [6 7 8]
    """

    n_splits: int = 10


@dataclass(frozen=True, eq=False, repr=False)
class ForwardSplit(TimeWindows):
    """Windows of rows in order of time, each tested by the model of earlier rows.

    The rows are divided into ``n_splits + 1`` windows. Those in the first one are only trained on;
    each other window is tested by the model of all rows before it, less a gap. So later rows
    never tell of earlier ones, as when a model predicts rows that are still to come. Scores are
    means over all windows but the first.

    Parameters
    ----------
    n_splits : int, default=5
        Number of windows that are tested, each with about the same number of rows.
    gap : number or duration, default=0
        Length of the gap before a window, as of `GapKFold`: the time between the last row known and
        the first one predicted.
    time : array-like of shape (n_samples,) of numbers or dates, default=None
        Time of each row, as of `GapKFold`.

    See Also
    --------
    GapKFold : Windows that are tested by models of rows before and after.
    sklearn.model_selection.TimeSeriesSplit : The same for rows in order, with a gap of rows; models
        take it as ``cv``, too.

    Notes
    -----
    With groups, rows of a group in the window are not trained on. For a kernel all windows come
    from one factorization, as any folds do; an estimator is fitted for each. Models
    that test early windows have few rows, the first by default a sixth of all: scores are rather
    too bad than too good. With a given ``mu`` they have the ridge n ``mu`` of all rows, up to six
    times that of their own fit; in the `evaluate` of a tuned model each has its own. Baselines are
    of the rows before each window, too. A model also holds out the rows of the first window, by
    those after them, with weight zero in criteria and scores.

    Examples
    --------
    >>> import numpy as np
    >>> for train, test in ForwardSplit(2, gap=1).split(np.zeros((9, 1))):
    ...     print(train, test)
    [0 1] [3 4 5]
    [0 1 2 3 4] [6 7 8]
    """

    n_splits: int = 5
    _forward: ClassVar[bool] = True
