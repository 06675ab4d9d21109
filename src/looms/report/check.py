"""A table by itself: what makes scores misleading, whatever the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from textwrap import indent, wrap
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_consistent_length

from looms._checks import check_known, gaps_in, some_of
from looms._optional import require
from looms._scores import SCORES
from looms._typing import AnyArray, Matrix
from looms._version import __version__
from looms._words import count, listed, row_name
from looms.duplicates import duplicate_groups
from looms.estimators import KernelClassifier, KernelRegressor
from looms.estimators._scored import name_of
from looms.estimators._warnings import kept_warnings, remark_on_duplicates
from looms.folds import group_numbers, is_grouped
from looms.report._cautions import near_rows, order_of_rows
from looms.report._near_rows import scores_together
from looms.report.model import Model, model_of
from looms.report.page import write_check
from looms.report.text import Caution, note, plain, score, sentence, serious
from looms.tables import TablePreprocessor
from looms.tables._columns import columns_of, names_in, rows
from looms.tables._preprocessor import places_of_gaps, remarks_in
from looms.tables._remarks import CHANGED
from looms.tables._remarks import sentence as with_advice
from looms.tables._target import Task, target_of
from looms.tables._telltales import remark_on_telltales, telltales

#: Rows that are compared with one another, and of these those that tune the kernel for it.
_MOST, _TUNED = 2000, 500
#: Rows of a class below which one error more or less is a large part of its recall.
_FEW_IN_CLASS, _FEWEST_IN_CLASS = 20, 5
#: Share of gaps from which a column has few values.
_GAPS = 0.5
_TITLES = {
    "words": "Words among numbers",
    "unclear": "Dates that can be read in two ways",
    "dates": "Dates",
    "constant": "Constant columns",
    "identifiers": "Identifiers",
    "identifiers of rows": "Identifiers",
    "repeated": "Rows that may belong together",
}


class TableCheck(Mapping[str, Any]):
    """Result of `looms.check`: a mapping of plain values, which JSON can hold.

    Printing it lists the findings; a notebook shows the columns, too.

    Parameters
    ----------
    values : dict
        ``date`` and ``looms_version``; the ``task`` and the name of the ``target``; ``n_rows``,
        ``n_columns`` and ``n_groups``; the ``classes``, with ``label`` and ``n``; the ``columns``,
        with ``name``, ``kind``, ``n_values`` and ``n_gaps``; the ``findings``, with ``level``
        ("serious" or "note"), ``title`` and ``text``, the serious ones first.

    Examples
    --------
    >>> import numpy as np
    >>> import looms
    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> found = looms.check(x, np.where(x[:, 0] > 0, "high", "low"))
    >>> [one["title"] for one in found["findings"]]
    ['A column gives the target']
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        of = "" if self["target"] is None else f" of {self['target']!r}"
        lines = [
            f"{sentence(self['task'])}{of}: {count(self['n_rows'], 'row')}, "
            f"{count(self['n_columns'], 'column')}"
        ]
        for finding in self["findings"]:
            mark = "!" if finding["level"] == "serious" else "-"
            text = finding["text"].replace("\u2068", "'").replace("\u2069", "'")
            lines += [f"{mark} {finding['title']}", indent("\n".join(wrap(text, 96)), "  ")]
        return "\n".join(lines if self["findings"] else [*lines, "Nothing was found."])

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the findings as one HTML page that loads nothing else.

        Parameters
        ----------
        path : path
            The file to write; an existing one is replaced.

        Raises
        ------
        ImportError
            If jinja2 is not installed.
        """
        write_check(self._values, path)


def check(table: Any, target: Any, groups: Any = None, *, task: Task = "auto") -> TableCheck:
    """Findings about a table that make scores misleading, whatever the model.

    They are duplicates and near repeats of rows, with what these do to cross-validation; columns
    that alone predict the target; identifiers, dates, constant columns, words among numbers, and
    columns of mostly gaps; rows in an order; small classes, and labels that differ only by case.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
        The rows: numbers, text, categories, booleans, dates; None and NaN are gaps.
    target : str or array-like of shape (n_samples,)
        Name of the column to predict, or its values. Rows without a value are left out.
    groups : str or array-like of shape (n_samples,), default=None
        Labels of the rows that belong together, such as those of a patient, or the name of their
        column. Duplicates are then those in different groups.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes text, booleans, and whole numbers of at most 20 values for classes.

    Returns
    -------
    check : TableCheck
        A mapping; ``report(path)`` writes a page.

    Raises
    ------
    ValueError
        If a column is missing or cannot be understood, or the target has one value.
    ImportError
        If pandas is not installed.

    Notes
    -----
    Near repeats and the order of rows are found by the held-out predictions of one kernel, tuned on
    500 rows and fitted to 2000 at most: some seconds. The other searches take O(n log n)
    for each column.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import looms
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"dose": rng.normal(size=80), "ward": rng.choice(["A", "B"], 80)})
    >>> ill = table["dose"] + rng.normal(size=80) > 0
    >>> table["bill"] = np.where(ill, 100, 0) + rng.integers(0, 9, 80)  # known afterwards
    >>> print(looms.check(table.assign(ill=ill), "ill"))
    Classification of 'ill': 80 rows, 3 columns
    ! A column gives the target
      'bill' (ROC AUC 1.000) alone predicts the target. Is it known before the target is? If not,
      leave it out.
    """
    check_known(task, "task", ("auto", "classification", "regression"))
    X, y, name = _separated(table, target, "target")
    if groups is not None:
        X, groups, _ = _separated(X, groups, "groups")
    check_consistent_length(X, y, groups)
    gaps, found = gaps_in(y), list[Caution]()
    if gaps.any():
        kept = np.flatnonzero(~gaps)
        where = row_name(y, int(gaps.argmax()))
        X, y = _safe_indexing(X, kept), _safe_indexing(y, kept)
        groups = None if groups is None else _safe_indexing(groups, kept)
        text = f"{gaps.sum()} of {len(gaps)} rows have no target, first {where}: left out here."
        found.append(note("Rows without a target", text))
    read = target_of(require("pandas", "looms.check").Series(y), task)
    classes = read.task == "classification"
    found += [note("Labels", f"{sentence(text)}.") for text in read.notes]
    prepare = TablePreprocessor()
    matrix = prepare.fit_transform(X)
    numbers = group_numbers(groups, len(read.y))
    codes = np.unique(read.y, return_inverse=True)[1] if classes else read.y
    for remark in remarks_in(prepare):
        level = serious if remark.topic in CHANGED else note
        found.append(level(_TITLES[remark.topic], f"{sentence(with_advice(remark))}."))
    columns = [] if issparse(X) else _columns(X, prepare)
    empty = [one["name"] for one in columns if one["n_gaps"] > _GAPS * len(codes)]
    if empty:
        text = f"Most rows have no value of {listed(empty)}."
        found.append(note("Columns of mostly gaps", text))
    sources = prepare.columns_
    telling = telltales(sources.tolist(), places_of_gaps(prepare), matrix, codes, classes)
    if telling:
        found.append(serious("A column gives the target", remark_on_telltales(telling)))
    labels, counts = np.unique(read.y, return_counts=True)
    sizes = dict(zip(labels.tolist(), counts.tolist(), strict=True)) if classes else {}
    for label, size in sizes.items():
        if size < _FEW_IN_CLASS:
            level = serious if size < _FEWEST_IN_CLASS else note
            text = f"Class {str(label)!r} has {count(size, 'row')}: its recall changes by "
            found.append(level("A small class", f"{text}{1 / size:.0%} with each error."))
    others = ~np.isin(sources, [name for name, _ in telling])  # with those no row needs another
    features = matrix[:, others] if others.any() else matrix
    found += _repeats(matrix, features, codes, numbers, classes)
    return TableCheck(
        plain(
            {
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "looms_version": __version__,
                "task": str(read.task),
                "target": name,
                "n_rows": len(codes),
                "n_columns": prepare.n_features_in_,
                "n_groups": None if groups is None else int(numbers.max()) + 1,
                "classes": [{"label": str(label), "n": size} for label, size in sizes.items()],
                "columns": columns,
                "findings": sorted(found, key=lambda one: one["level"] != "serious"),
            }
        )
    )


def _separated(table: Any, column: Any, what: str) -> tuple[Any, Any, str | None]:
    """A table without a column that is named, the values, and their name if they have one."""
    if not isinstance(column, str):
        return table, column, name_of(column)
    names = [str(name) for name in getattr(table, "columns", ())]
    if column not in names:
        of = f"the columns are {listed(names, 20)}" if names else "the columns have no names"
        raise ValueError(f"{what}: there is no column {column!r}; {of}.")
    rest = table.drop(columns=column) if hasattr(table, "iloc") else table.drop(column)
    return rest, table[column], column


def _columns(X: Any, prepare: TablePreprocessor) -> list[dict[str, Any]]:
    """Name, kind, number of different values and of gaps of each column."""
    X = rows(X)
    pandas, names = require("pandas", "looms.check"), names_in(X)
    places = list(range(X.shape[1]))
    called = [f"x{k}" for k in places] if names is None else names
    given = columns_of(X, places if names is None else names)
    cells = {name: pandas.Series(column) for name, column in zip(called, given, strict=True)}
    return [
        {
            "name": name,
            "kind": prepare.kinds_.get(name, "not used"),
            "n_values": int(column.nunique()),
            "n_gaps": int(column.isna().sum()),
        }
        for name, column in cells.items()
    ]


def _repeats(
    matrix: Matrix, features: Matrix, y: AnyArray, groups: AnyArray, classes: bool
) -> Iterator[Caution]:
    """Findings on rows that repeat others, nearly so, or follow one another in some features."""
    n, equal, grouped = len(y), duplicate_groups(matrix), is_grouped(groups)
    compared = np.arange(n)
    if n > _MOST:
        compared = np.sort(np.random.default_rng(0).choice(n, _MOST, replace=False))
    model = _plain_model(features, y, groups if grouped else None, classes, compared)
    of = "of a plain kernel model"
    if grouped:
        pairs = np.unique(np.stack([equal, groups]), axis=1)
        n_equal = int((np.bincount(pairs[0])[equal] > 1).sum())
        if n_equal:
            text = f"{n_equal} of {n} rows are equal in every feature to rows of other groups."
            yield serious("Duplicates in other groups", text)
    elif (remark := remark_on_duplicates(matrix)) is not None:
        effect = ""
        if model is not None:
            key = "accuracy" if classes else "rmse"
            alone, together = (score(v, key, 3) for v in scores_together(model, equal[compared]))
            effect = (
                f" The leave-one-out {SCORES[key].name} {of} is {alone}; when duplicates are left "
                f"out together, it is {together}."
            )
        yield serious("Duplicates", f"{remark}{effect}")
    elif model is not None:
        yield from near_rows(model, of)
    if model is not None:
        yield from order_of_rows(model, of)


def _plain_model(
    X: Matrix,
    y: AnyArray,
    groups: AnyArray | None,
    classes: bool,
    compared: AnyArray,
) -> Model | None:
    """A kernel that is tuned on some of the rows, fitted to those to compare; None if it fails."""
    one: Any = KernelClassifier("rbf", calibration=None) if classes else KernelRegressor("rbf")
    some = np.random.default_rng(0).permutation(compared)[:_TUNED]

    def fitted(model: Any, to: AnyArray) -> Any:
        return model.fit(X[to], y[to], groups=some_of(groups, to))

    try:
        with kept_warnings():
            tuned = fitted(one, some)
            given = clone(one).set_params(kernel=tuned.kernel_, mu=tuned.mu_)
            return model_of(fitted(given, compared))
    except (ValueError, MemoryError):  # such as one class among these rows
        return None
