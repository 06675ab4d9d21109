"""Warnings during a fit, which point at the user's line."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from looms._advice import setting
from looms._checks import label_array, remark_on_order
from looms._memory import bytes_needed, gigabytes
from looms._speed import operations_per_second
from looms._typing import AnyArray, Array, Matrix
from looms._words import listed
from looms.duplicates import duplicate_groups, n_unexpected_duplicates
from looms.fitted._fitted import Selected
from looms.fitted._ordered import OrderedClasses
from looms.fitted._outcome import Classes
from looms.held_out import HeldOut
from looms.kernels import Kernel, Normalized, Ranked, Weighted
from looms.kernels._stationary import Isotropic
from looms.optimize._search import StopReason
from looms.selection._candidates import bounds_to_tell
from looms.selection._decisions import Rule
from looms.tables._leakage import LeakingColumn, leakage_remarks
from looms.tables._unseen import UnseenValues
from looms.threshold import AtLeast, threshold_rule

#: Ratio of standard deviations, and of ranges, of two columns, above which one hardly counts.
_SCALES = 100.0
#: Operations that take less than a minute anywhere.
_LEAST_OPERATIONS = 1e11
_MOST_SECONDS = 60.0  # of an evaluation without a warning
_ROUNDING = 1e-10  # of targets; a criterion below its square has nothing left to fall
_PACKAGES = tuple(
    f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], Path(sklearn.__path__[0]))
)


class BoundWarning(UserWarning):
    """A hyper-parameter of the selected candidate ended at the edge of the range searched.

    Set wider bounds in a kernel object, such as ``RBF(gamma_bounds=(1e-6, 1e6))``.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from looms import BoundWarning, KernelRegressor
    >>> from looms.kernels import RBF
    >>> x = np.linspace(0, 1, 60)
    >>> narrow = RBF(gamma_bounds=(1e-3, 1e-2))  # for a wave that needs more
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     model = KernelRegressor(narrow).fit(x[:, None], np.sin(20 * x))
    >>> {warning.category.__name__ for warning in caught}
    {'BoundWarning'}
    """


class ColumnsWarning(UserWarning):
    """Columns of a table may be other than they look, or have values that the model cannot know.

    In a fit: text in a few cells among numbers, dates whose order of day and month is not clear,
    identifiers of rows, columns that alone predict the target, and those that move with windows of
    time, as dates do. In predictions: values that no row of the fit has. The attribute
    ``remarks_`` of `looms.tables.TablePreprocessor` has the remarks on columns by themselves, and
    harmless ones.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import pandas as pd
    >>> from looms import ColumnsWarning, TabularRegressor
    >>> x = np.random.default_rng(0).normal(size=40)
    >>> table = pd.DataFrame({"x": x, "patient": [f"P{k}" for k in range(40)]})
    >>> with warnings.catch_warnings(action="error", category=ColumnsWarning):
    ...     TabularRegressor(["rbf"]).fit(table, np.sin(x))
    Traceback (most recent call last):
    looms.estimators._warnings.ColumnsWarning: Dropped, because (nearly) every row has its own...
    """


class DuplicatesWarning(UserWarning):
    """Many rows are duplicates of others, so held-out scores are optimistic.

    The duplicates of a held-out row stay in the training set. Drop them, or hold equal rows out
    together with ``groups=looms.duplicates.duplicate_groups(X)``. If a model of tables leaves out
    columns, such as identifiers, rows may be equal in the others: then ``X`` is
    ``model.preprocessor_.transform(table)``.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import make_classification
    >>> from looms import DuplicatesWarning, KernelClassifier
    >>> from looms.duplicates import duplicate_groups
    >>> X, y = make_classification(120, random_state=0)
    >>> X[60:], y[60:] = X[:60], y[:60]  # every row entered twice
    >>> with warnings.catch_warnings(action="error", category=DuplicatesWarning):
    ...     KernelClassifier().fit(X, y)
    Traceback (most recent call last):
    looms.estimators._warnings.DuplicatesWarning: 60 of 120 rows are duplicates of other...
    >>> from looms.duplicates import duplicate_groups
    >>> with warnings.catch_warnings(action="error", category=DuplicatesWarning):
    ...     model = KernelClassifier().fit(X, y, groups=duplicate_groups(X))
    """


class OneClassWarning(UserWarning):
    """A tuned model predicts the same class for every held-out row.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from looms import KernelClassifier, OneClassWarning
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(100, 2)), np.arange(100) < 5  # a rare class, and noise
    >>> with warnings.catch_warnings(action="error", category=OneClassWarning):
    ...     KernelClassifier().fit(X, y)
    Traceback (most recent call last):
    looms.estimators._warnings.OneClassWarning: The model predicts class False for every...
    """


class ScalesWarning(UserWarning):
    """Columns differ so much in scale that a few of them determine the distances between rows.

    Standard deviations and ranges differ a hundredfold. ``StandardScaler`` before the model
    makes them equal; kernels with a width for each column, such as "ard", do not need it.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from looms import KernelRegressor, ScalesWarning
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 1000.0]  # m and mm
    >>> with warnings.catch_warnings(action="error", category=ScalesWarning):
    ...     KernelRegressor().fit(X, X[:, 0])
    Traceback (most recent call last):
    looms.estimators._warnings.ScalesWarning: Column 1 has a standard deviation of ...
    """


#: Text, category, file and line of the warnings so far.
_TOLD: set[tuple[str, type[Warning], str, int]] = set()
#: Warnings of a fit that are kept back, in this thread: the filters of `warnings` belong to the
#: process, and threads that set them for a while undo each other's.
_KEPT: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("kept", default=None)
_TIME_IS_TOLD = ContextVar("time is told", default=False)


@contextmanager
def kept_warnings() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Context in which fits give no warnings; the list gets message and category of each."""
    kept: list[tuple[str, type[Warning]]] = []
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


def warnings_are_kept() -> bool:
    """True inside `kept_warnings`."""
    return _KEPT.get() is not None


def warn(message: str | None, category: type[Warning]) -> None:
    """Warn at the user's line, or keep the warning inside `kept_warnings`; None is no warning."""
    kept = _KEPT.get()
    if message is not None and kept is not None:
        kept.append((message, category))
    elif message is not None and not _told_here(message, category):
        warnings.warn(message, category, stacklevel=level_of_user())


def _told_here(message: str, category: type[Warning]) -> bool:
    """True if the user's line has had this warning, and the filters want it once for each line.

    `warnings` would see to that, but forgets all lines whenever any code changes its filters for a
    while, as the validation of scikit-learn does in every fit.
    """
    frame = sys._getframe(level_of_user() - 1)
    module, line = frame.f_globals.get("__name__", ""), frame.f_lineno
    filters: Sequence[Any] = warnings.filters
    action = next(
        (
            action
            for action, text, kind, where, at in filters
            if issubclass(category, kind)
            and (text is None or re.match(text, message))
            and (where is None or re.match(where, module))
            and at in (0, line)
        ),
        "default",
    )
    place = message, category, frame.f_code.co_filename, line
    repeated = action == "default" and place in _TOLD
    _TOLD.add(place)
    return repeated


def warn_of_search(selection: Selected | None, targets: Array) -> None:
    """Warn of a search that stopped early, and of hyper-parameters at its edge."""
    if selection is None:  # all values were given
        return
    chosen = selection.best
    worrying = chosen.stop_reason is StopReason.MAX_ITER
    if chosen.stop_reason is StopReason.NO_PROGRESS:  # unless all that is left is rounding
        worrying = chosen.value > _ROUNDING**2 * float(np.mean(targets**2))
    if worrying:
        warn(f"Search for hyper-parameters: {chosen.stop_reason}.", ConvergenceWarning)
    for met in bounds_to_tell(chosen, selection.candidates):
        warn(f"{met}.", BoundWarning)


def remark_on_duplicates(X: Matrix) -> str | None:
    """Sentences on rows that repeat others, if not by coincidence."""
    groups = duplicate_groups(X)
    n = n_unexpected_duplicates(X, groups)
    if not n:
        return None
    together = setting(
        "duplicate groups",
        text="hold them out together: groups=looms.duplicates.duplicate_groups(X). If the model "
        "leaves out columns of a table, X is model.preprocessor_.transform(table)",
    )
    return (
        f"{n} of {len(groups)} rows are duplicates of other rows, equal in every feature. A "
        "held-out row still has its duplicates in the training set, so held-out scores are "
        f"optimistic and tuning overfits. Drop them, or {together}."
    )


def warn_of_duplicates(X: Matrix) -> None:
    """DuplicatesWarning with `remark_on_duplicates`, if there is one."""
    warn(remark_on_duplicates(X), DuplicatesWarning)


def remark_on_scales(X: Any, kernels: Sequence[Kernel], names: Sequence[str] | None) -> str | None:
    """Sentences on two columns, if all kernels are of distances that hardly see one of them.

    Columns of two values do not count, nor do rows that are sparse or in blocks. ``names`` are
    those of all columns, as they are shown, or None.
    """
    if not (isinstance(X, np.ndarray) and all(map(_is_of_plain_distances, kernels))):
        return None
    low, high = X.min(axis=0), X.max(axis=0)
    columns = np.flatnonzero(((low < X) & (high > X)).any(axis=0))
    if len(columns) < 2:
        return None
    with np.errstate(all="ignore"):  # of squares beyond the range of numbers, which a fit refuses
        spread, width = X[:, columns].std(axis=0), (high - low)[columns]
        least, most = int(spread.argmin()), int(spread.argmax())
        ratio = min(spread[most] / spread[least], width[most] / width[least])
    if not _SCALES < ratio < np.inf:
        return None
    wide, narrow = (str(k) if names is None else names[k] for k in columns[[most, least]])
    return (
        f"Column {wide} has a standard deviation of {spread[most]:.3g}, and column {narrow} of "
        f"{spread[least]:.3g}: distances between rows hardly count the latter. Put StandardScaler "
        "before the model, or use a kernel with a width for each column, such as 'ard'."
    )


def _is_of_plain_distances(kernel: Kernel) -> bool:
    """True if the scales of the columns count: ranks, too, have the spread of their column."""
    while isinstance(kernel, Normalized | Ranked | Weighted):
        if isinstance(kernel, Weighted) and kernel.weights is not None:
            return False
        kernel = kernel.kernel
    return isinstance(kernel, Isotropic)


def warn_of_scales(X: Any, kernels: Sequence[Kernel], names: AnyArray | None) -> None:
    """ScalesWarning with `remark_on_scales`, if there is one."""
    shown = None if names is None else [*map(repr, names.tolist())]
    warn(remark_on_scales(X, kernels, shown), ScalesWarning)


def warn_of_columns(remarks: Sequence[str]) -> None:
    """ColumnsWarning with remarks on columns that may be other than they look, if there are any."""
    if remarks:
        sentences = ". ".join(remark[0].upper() + remark[1:] for remark in remarks)
        warn(
            f"{sentences}. If the columns are as they should be, say so by the kind of each: "
            "preprocess=TablePreprocessor(kinds={**model.preprocessor_.kinds_, NAME: KIND}).",
            ColumnsWarning,
        )


def warn_of_order(cv: Any = None, **arguments: Any) -> None:
    """UserWarning with `remark_on_order` of arguments and the times of a splitter, if any."""
    warn(remark_on_order(**arguments, time=getattr(cv, "time", None)), UserWarning)


def warn_of_groups(X: Any, groups: Any) -> None:
    """ColumnsWarning of a column that holds the groups."""
    labels = label_array(groups).astype(object)
    for name, column in X.items() if hasattr(X, "iloc") else ():
        if str(column.iloc[0]) != str(labels[0]) or column.isna().any():
            continue
        if np.array_equal(np.asarray(column, dtype=object), labels):
            warn(
                f"Column {name!r} holds the groups, and is a feature, too: it says nothing of new "
                f"groups. Leave it out: X.drop(columns={name!r}).",
                ColumnsWarning,
            )


def warn_of_leakage(columns: Sequence[LeakingColumn]) -> None:
    """ColumnsWarning of columns that alone predict the target, if there are any.

    A column may nearly do so by right: that is for `looms.check` and cautions to ask.
    """
    for gives, text in leakage_remarks(columns):
        if gives:
            warn(text, ColumnsWarning)


def warn_of_unseen_values(unseen: UnseenValues) -> None:
    """ColumnsWarning of values that no row of the fit has, and of another decimal mark."""
    if unseen.mark_note:
        warn(
            f"{unseen.mark_note}: model.predict(model.preprocessor_.kinds_.typed(rows, decimal)).",
            ColumnsWarning,
        )
    if firsts := unseen.new_values:
        named = listed([f"{name!r} ({first!r})" for name, first in firsts.items()], quoted=str)
        warn(
            f"Values that no training row has count as rare, or as none: {named}. Correct them if "
            "they are misspelled, or fit anew with rows that have them.",
            ColumnsWarning,
        )


def warn_of_no_stack(reason: str) -> None:
    """UserWarning that the best candidate is taken instead of a stack."""
    warn(
        f"The candidates are not stacked, since {reason[:1].lower()}{reason[1:]}. "
        "The best candidate on the held-out outputs of its tuning is used instead.",
        UserWarning,
    )


def warn_of_time(seconds: float, n_jobs: int | None = None) -> None:
    """UserWarning of an evaluation whose fits, one after the other, take longer than a minute."""
    seconds /= effective_n_jobs(n_jobs)
    if seconds > _MOST_SECONDS:
        warn(
            "Nested evaluation repeats tuning in every fold, which will take about "
            f"{_duration(seconds)}. {setting('not nested', text='evaluate(nested=False)')} "
            f"repeats nothing, and {setting('jobs', text='joblib.parallel_config(n_jobs=...)')} "
            "runs several fits at a time.",
            UserWarning,
        )


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def warn_of_long_fit(
    operations: float, n_rows: int, n_arrays: float, remedies: Sequence[str] = ()
) -> None:
    """UserWarning of a fit that will take longer than a minute, with its time and memory.

    Parameters
    ----------
    operations : of the fit, very roughly.
    n_rows : rows that take part.
    n_arrays : arrays of the size of the kernel matrix in memory at once.
    remedies : what makes it faster, besides fewer rows.
    """
    if operations < _LEAST_OPERATIONS or _TIME_IS_TOLD.get():
        return
    seconds = operations / operations_per_second()
    if seconds > _MOST_SECONDS:
        memory = f" and {gigabytes(bytes_needed(n_rows, n_arrays))}" if n_arrays else ""
        faster = f"{', '.join(remedies)} or " if remedies else ""
        warn(
            f"A fit to {n_rows:,} rows will take some {_duration(seconds)}{memory}. It is faster "
            f"with {faster}a sample of the rows"
            f"{setting('verbose', text='; verbose=1 shows the progress')}.",
            UserWarning,
        )


@contextmanager
def told_of_time(
    operations: float, n_rows: int, n_arrays: float, remedies: Sequence[str] = ()
) -> Iterator[None]:
    """Context of several fits, after one warning of the time of all, as `warn_of_long_fit`."""
    warn_of_long_fit(operations, n_rows, n_arrays, remedies)
    token = _TIME_IS_TOLD.set(True)
    try:
        yield
    finally:
        _TIME_IS_TOLD.reset(token)


def another_kernel() -> str:
    """Advice to take another kernel."""
    return setting("other kernels", text="another kernel")


def settings_for_rare_classes(outcome: Classes | OrderedClasses, n_classes: int) -> list[str]:
    """Settings that allow for classes of unequal size; none if the model has one of them."""
    if outcome.weighted or outcome.threshold != 0.5:
        return []
    return [
        *[setting("threshold", "balanced")] * (n_classes == 2),
        setting("class_weight", "balanced"),
    ]


def remedies_for_rare_classes(outcome: Classes | OrderedClasses, n_classes: int) -> list[str]:
    """Settings to try when a class is seldom predicted: another threshold if one was set."""
    if outcome.threshold != 0.5:
        return ["another threshold"]
    return settings_for_rare_classes(outcome, n_classes)


def warn_of_one_class(outcome: Classes | OrderedClasses, held_out: HeldOut, rule: Rule) -> None:
    """OneClassWarning if one class is predicted for all samples when they are held out."""
    classes = outcome.classes
    taken = np.unique(outcome.indices(held_out.outputs, rule)[held_out.sample_weight > 0])
    if len(taken) == 1:
        settings = [*remedies_for_rare_classes(outcome, len(classes)), another_kernel()]
        remedy = ", ".join(settings[:-1]) + " or " * (len(settings) > 1) + settings[-1]
        warn(
            f"The model predicts class {classes[taken].tolist()[0]!r} for every held-out row. "
            f"Try {remedy}.",
            OneClassWarning,
        )


def warn_of_missed_precision(threshold: Any, loss: float) -> None:
    """Warn if no threshold reaches the required precision."""
    rule = None if isinstance(threshold, Real) else threshold_rule(threshold)
    if isinstance(rule, AtLeast) and rule.rate == "precision" and loss >= 1.0:
        warn(
            f"No threshold reaches a leave-one-out precision of {rule.least:g}; the "
            f"highest is {rule.least + 1.0 - loss:.3g}, and its threshold was taken. "
            "Require less, or find more informative features.",
            UserWarning,
        )


def level_of_user() -> int:
    """``stacklevel`` of a warning at the line that called looms or scikit-learn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame, level = frame.f_back, level + 1
    return level
