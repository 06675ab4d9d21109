"""A table by itself: what makes scores misleading, whatever the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from textwrap import indent, wrap
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_consistent_length

from looms._advice import setting
from looms._checks import check_known, gaps_in, readable_table, remark_on_order
from looms._optional import require
from looms._scores import SCORES
from looms._typing import AnyArray, Matrix
from looms._version import __version__
from looms._words import count, listed, row_name
from looms.duplicates import duplicate_groups, n_unexpected_duplicates
from looms.estimators import KernelClassifier, KernelRegressor
from looms.estimators._base import name_of
from looms.estimators._warnings import kept_warnings
from looms.fitted._fitted import Fitted
from looms.fitted._scores import held_out_scores
from looms.folds import group_numbers, is_grouped, joined_groups
from looms.report._cautions import leak_cautions, near_rows, order_of_rows
from looms.report._near_rows import FEWEST, MOST, TOGETHER, n_together, scores_held_out
from looms.report.page import write_check
from looms.report.text import (
    Caution,
    PlainValues,
    marked_title,
    note,
    percent,
    plain,
    score,
    sentence,
    serious,
)
from looms.tables import TablePreprocessor
from looms.tables._cells import Marks, missing_in
from looms.tables._columns import Decimal, marks_in
from looms.tables._frames import columns_of, names_in, places_of, rows
from looms.tables._kinds import cells_of, converted, read_column
from looms.tables._leakage import leaking_columns, reason_to_skip
from looms.tables._preprocessor import fitted_matrix, identifiers_in, places_of_gaps, remarks_in
from looms.tables._remarks import GRAVE
from looms.tables._remarks import sentence as with_advice
from looms.tables._target import Task, target_of
from looms.tables._ties import may_name_groups, tied

#: Rows that tune the kernel by which rows are compared.
_TUNED = 500
#: Rows of a class below which one error more or less is a large part of its recall.
_FEW_IN_CLASS, _FEWEST_IN_CLASS = 20, 5
#: Share of gaps from which a column has few values.
_GAPS = 0.5
_TITLES = {
    "words": "Words among numbers",
    "codes": "Codes",
    "comma": "Decimal comma",
    "marks": "Points that may separate thousands",
    "gaps": "Gaps",
    "unclear": "Dates that can be read in two ways",
    "dates": "Dates",
    "constant": "Constant columns",
    "identifiers": "Identifiers",
    "identifiers of rows": "Identifiers",
    "lists": "Lists in cells",
    "repeated": "Rows that may belong together",
    "stand-ins": "Numbers that may stand for gaps",
}
_OF = "of a plain kernel model"


class TableCheck(PlainValues):
    """Result of `looms.check`: a mapping of plain values, which JSON can hold.

    Printing it lists the findings.

    Parameters
    ----------
    values : dict
        ``date`` and ``looms_version``; the ``task`` and the name of the ``target``; ``n_rows``,
        ``n_columns`` and ``n_groups`` (the rows, if there are none); the ``classes``, with
        ``label`` and ``n``; the ``columns``, with ``name``, ``kind``, ``n_values`` and ``n_gaps``;
        the ``findings``, with ``level`` ("serious" or "note"), ``title`` and ``text``, the serious
        ones first; and ``not_searched``, sentences on what could not be looked for.

    Examples
    --------
    >>> import numpy as np
    >>> import looms
    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> found = looms.check(x, np.where(x[:, 0] > 0, "high", "low"))
    >>> [one["title"] for one in found["findings"]]
    ['A column gives the target']
    """

    def __repr__(self) -> str:
        target = "" if self["target"] is None else f" of {self['target']!r}"
        lines = [
            f"{sentence(self['task'])}{target}: {count(self['n_rows'], 'row')}, "
            f"{count(self['n_columns'], 'column')}"
        ]
        for finding in self["findings"]:
            lines.append(marked_title(finding))
            lines.append(indent("\n".join(wrap(finding["text"], 84)), "  "))
        lines += [] if self["findings"] else ["Nothing was found."]
        return "\n".join(
            [*lines, *(line for text in self["not_searched"] for line in wrap(text, 86))]
        )

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


def check(
    table: Any,
    target: Any,
    groups: Any = None,
    *,
    task: Task = "auto",
    decimal: Decimal = None,
) -> TableCheck:
    """Findings about a table that make scores misleading, whatever the model.

    They are duplicates and near repeats of rows, with what these do to cross-validation; columns
    that alone predict the target, or nearly; columns by whose values rows may belong together;
    identifiers, codes, dates, decimal marks, constant columns, words among numbers, columns of
    mostly gaps or that cannot be read; rows in an order; one class or small classes, and labels
    that differ only by case.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
        The rows: numbers, text, categories, booleans, dates; None and NaN are gaps. A pyarrow.Table
        is taken as a data frame.
    target : str or array-like of shape (n_samples,)
        Name of the column to predict, or its values. Rows without a value are left out.
    groups : str or array-like of shape (n_samples,), default=None
        Labels of the rows that belong together, such as those of a patient, or the name of their
        column. Duplicates are then those in different groups.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes text, booleans, and whole numbers of at most 20 values for classes.
    decimal : {".", ","} or pair of str, default=None
        Decimal mark of numbers in text, as in `looms.tables.Columns.of`.

    Returns
    -------
    check : TableCheck
        A mapping; ``report(path)`` writes a page.

    Raises
    ------
    ValueError
        If a column is missing, the target cannot be understood, or no column has two values.
    ImportError
        If pandas is not installed.

    Notes
    -----
    Near repeats and the order of rows are found by the held-out predictions of one kernel, tuned on
    500 rows: some seconds. Near repeats are looked for among 40 to 3000 rows: up to eight of one
    another, a twentieth of the rows if that is fewer, and of any number where all rows form
    clusters. For the other effects 3000 rows of larger tables are drawn. The other searches take
    O(n log n) for each column.

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
      'bill' (ROC AUC 1.000) alone predicts the target. Is it known before the target is?
      If not, leave it out.
    Not looked for: more than 4 near repeats of one another, unless all rows form
    clusters, since there are only 80 rows.
    """
    check_known(task, "task", ("auto", "classification", "regression"))
    found, missing = list[Caution](), list[str]()
    X, y, name = _split_column(readable_table(table), target, "target")
    if isinstance(groups, str):
        X, groups, _ = _split_column(X, groups, "groups")
    X = X.tocsr() if issparse(X) else rows(X)
    check_consistent_length(X, y, groups)
    remark = remark_on_order(table=X, target=y, groups=groups)
    if remark is not None:
        raise ValueError(remark)
    numbers = group_numbers(groups, X.shape[0])
    gaps = missing_in(y) if hasattr(y, "iloc") and np.ndim(y) == 1 else gaps_in(y)
    if gaps.any():
        present = np.flatnonzero(~gaps)
        numbered = "" if hasattr(X, "index") else "; row numbers are of the others"
        first = row_name(y, int(gaps.argmax()))
        text = f"{gaps.sum()} of {len(gaps)} rows have no target, first {first}"
        found.append(note("Rows without a target", f"{text}: left out here{numbered}."))
        X, y = _safe_indexing(X, present), _safe_indexing(y, present)
        numbers = numbers[present]
    targets = require("pandas", "looms.check").Series(np.ravel(y) if np.ndim(y) == 2 else y)
    marks = marks_in(X, targets, decimal=decimal)
    classes, codes, sizes = _coded_target(targets, task, found, marks)
    prepare = TablePreprocessor(decimal=marks)
    try:
        matrix = fitted_matrix(prepare, X)
    except ValueError:  # columns are read one by one only if some cannot be
        X = _readable(X, found)
        matrix = fitted_matrix(prepare, X)
    columns = [] if issparse(X) else _columns(X, prepare)
    found += [*_column_findings(prepare, columns, numbers), *_class_findings(sizes)]
    if len(sizes) != 1:
        if not is_grouped(numbers):
            found += _tie_findings(X, prepare, matrix, codes, classes)
        sources, places = prepare.columns_, places_of_gaps(prepare)
        leaking = leaking_columns(sources.tolist(), places, matrix, codes, classes)
        found[:0] = leak_cautions(leaking, "column")
        why = reason_to_skip(sources.tolist(), matrix, codes, classes)
        missing += [f"Not looked for: columns that give the target, since {why}."] if why else []
        leaks = [column.name for column in leaking if column.gives]
        remaining = ~np.isin(sources, leaks)  # by a leak no row needs another
        features = matrix[:, remaining] if remaining.any() else matrix
        found += _row_findings(matrix, features, codes, numbers, classes, missing)
    values_of = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "looms_version": __version__,
        "task": "classification" if classes else "regression",
        "target": name,
        "n_rows": len(codes),
        "n_columns": X.shape[1],
        "n_groups": len(np.unique(numbers)),
        "classes": [{"label": str(label), "n": size} for label, size in sizes.items()],
        "columns": columns,
        "findings": sorted(found, key=lambda finding: finding["level"] != "serious"),
        "not_searched": missing,
    }
    return TableCheck(plain(values_of))


def _split_column(table: Any, column: Any, what: str) -> tuple[Any, Any, str | None]:
    """Table without a named column, the values of that column, or those given, and their name."""
    if column is None:
        raise ValueError(f"{what} must be the name of a column, or its values, got None.")
    if not isinstance(column, str):
        return table, column, name_of(column)
    names = list(getattr(table, "columns", ()))
    if not names:
        raise ValueError(
            f"{what}={column!r} is the name of a column, but a {type(table).__name__} has no "
            "columns with names: give a data frame, or the values. For a file there is `looms "
            "check FILE`."
        )
    if names.count(column) != 1:
        columns = f"the columns are {listed(names, 20)}"
        several = "several columns are called" if column in names else "there is no column"
        raise ValueError(f"{what}: {several} {column!r}; {columns}.")
    remaining = table.drop(columns=column) if hasattr(table, "iloc") else table.drop(column)
    return remaining, table[column], column


def _coded_target(
    values: Any, task: Task, found: list[Caution], marks: Marks
) -> tuple[bool, AnyArray, dict[Any, int]]:
    """Whether the targets are classes, the targets as numbers, and the sizes of the classes."""
    if values.nunique() == 1:
        text = f"The target is {values.iloc[0]!r} in every row: there is nothing to learn."
        found.append(serious("One class", text))
        return True, np.zeros(len(values), dtype=int), {values.iloc[0]: len(values)}
    read = target_of(values, task, marks)
    found += [note("Labels", f"{sentence(text)}.") for text in read.notes]
    if read.task == "regression":
        if not np.isfinite(read.y).all():
            raise ValueError("target has infinite values: correct them, or leave their rows out.")
        return False, read.y, {}
    labels, codes, counts = np.unique(read.y, return_inverse=True, return_counts=True)
    return True, codes, dict(zip(labels.tolist(), counts.tolist(), strict=True))


def _readable(X: Any, found: list[Caution]) -> Any:
    """The table without columns that cannot be read, which are added to the findings."""
    names = names_in(X)
    if names is None:
        return X
    right = []
    for k, column in enumerate(columns_of(X, range(len(names)))):
        try:
            read_column(column, names[k])
        except ValueError as error:
            text = f"{sentence(str(error))}. The rest of this check is without it."
            found.append(serious("A column that cannot be read", text))
        else:
            right.append(k)
    return X.iloc[:, right] if hasattr(X, "iloc") else X[:, right]


def _columns(X: Any, prepare: TablePreprocessor) -> list[dict[str, Any]]:
    """Name, kind, number of different values and of gaps of each column."""
    pandas = require("pandas", "looms.check")
    place = places_of(names_in(X), X.shape[1])
    columns = [pandas.Series(column) for column in columns_of(X, [*place.values()])]
    texts = [cells_of(column, name) for name, column in zip(place, columns, strict=True)]
    return [
        {
            "name": name,
            "kind": prepare.kinds_.get(name, "not used"),
            "n_values": int(column.nunique()) if cells is None else len(cells.different),
            "n_gaps": int(missing_in(column).sum()),
        }
        for name, column, cells in zip(place, columns, texts, strict=True)
    ]


def _column_findings(
    prepare: TablePreprocessor, columns: list[dict[str, Any]], groups: AnyArray
) -> Iterator[Caution]:
    """Findings on columns by themselves.

    Rows that belong together make scores too good; identifiers of rows are left out by the model.
    """
    n_rows = len(groups)
    for remark in remarks_in(prepare, is_grouped(groups)):
        level = serious if remark.topic in GRAVE else note
        if remark.topic == "identifiers":  # prices may differ in all rows, too
            remark = identifiers_in(prepare, remark, n_rows)
        if remark.columns:
            yield level(_TITLES[remark.topic], f"{sentence(with_advice(remark))}.")
    empty = [column["name"] for column in columns if column["n_gaps"] > _GAPS * n_rows]
    if empty:
        yield note("Columns of mostly gaps", f"Most rows have no value of {listed(empty)}.")


def _tie_findings(
    X: Any, prepare: TablePreprocessor, matrix: Matrix, y: AnyArray, classes: bool
) -> Iterator[Caution]:
    """Findings on whole numbers whose rows are alike like those of groups."""
    remarked = {name for remark in remarks_in(prepare) for name in remark.columns}
    numbers = [name for name, kind in prepare.kinds_.items() if kind == "number"]
    names = [name for name in numbers if name not in remarked]
    place = places_of(names_in(X), X.shape[1])
    read = zip(names, columns_of(X, [place[name] for name in names]), strict=True)
    marks = prepare.kinds_.marks
    values = {name: converted(column, name, "number", marks) for name, column in read}
    values = {name: floats for name, floats in values.items() if may_name_groups(floats)}
    if not values:
        return
    targets = y[:, None] == np.unique(y) if classes else y[:, None]
    ranks = rankdata(np.hstack([matrix, targets]), axis=0)
    sources = np.array([*map(repr, prepare.columns_), *["the target"] * targets.shape[1]])
    explained = set[str]()
    # What is constant among the rows of each person has fewer values than there are persons.
    for name in sorted(values, key=lambda name: -len(np.unique(values[name]))):
        elsewhere = sources != repr(name)
        alike = dict.fromkeys(sources[elsewhere][tied(values[name], ranks[:, elsewhere])])
        if alike and repr(name) not in explained:
            explained.update(alike)
            yield note(
                _TITLES["repeated"],
                f"Rows that share a value of {name!r} are alike in {listed(alike, 3, str)}, beyond "
                "what the order of its values explains. If it is a name, such as the number of a "
                "patient, and only one of the rows is held out, scores are optimistic: hold them "
                f"out {setting('group rows', text='together, as groups')}.",
            )


def _class_findings(sizes: Mapping[Any, int]) -> Iterator[Caution]:
    """A finding on classes of few rows."""
    few = sorted((n, str(label)) for label, n in sizes.items() if n < _FEW_IN_CLASS)
    if few:
        n, label = few[0]
        level = serious if n < _FEWEST_IN_CLASS else note
        text = f"Class {label!r} has {count(n, 'row')}: each error changes its recall by "
        other_classes = f"{len(few) - 1} other {'class has' if len(few) == 2 else 'classes have'}"
        more = f" {other_classes} fewer than {_FEW_IN_CLASS}." if few[1:] else ""
        yield level("A small class", f"{text}{percent(1 / n, 0)}.{more}")


def _row_findings(
    matrix: Matrix,
    features: Matrix,
    y: AnyArray,
    groups: AnyArray,
    classes: bool,
    missing: list[str],
) -> Iterator[Caution]:
    """Findings on rows that repeat others, nearly so, or follow one another in some features.

    What cannot be looked for is added to ``missing``.
    """
    n, equal = len(y), duplicate_groups(matrix)
    compared = _sampled_sets(equal)
    model = _plain_model(features, y, groups, classes, compared)
    duplicates = list(_duplicate_findings(model, matrix, equal, y, groups, compared))
    yield from duplicates
    reasons = {
        "a plain kernel model cannot be fitted to these rows": model is None,
        "there are duplicates": duplicates,
        f"there are fewer than {FEWEST} rows": n < FEWEST,
        f"there are more than {MOST} rows": n > MOST,
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    if why and not is_grouped(groups):
        missing.append(f"Not looked for: near repeats of rows, since {why}.")
    if model is None:
        missing.append(f"Not looked for: rows in an order, since {why}.")
        return
    scores = partial(held_out_scores, model)
    if not (why or is_grouped(groups)):  # groups are to hold repeats
        yield from near_rows(model, scores, _OF)
        if n_together(n) < TOGETHER:
            missing.append(
                f"Not looked for: more than {n_together(n)} near repeats of one another, unless "
                f"all rows form clusters, since there are only {n} rows."
            )
    yield from order_of_rows(model, scores, _OF)


def _duplicate_findings(
    model: Fitted | None,
    matrix: Matrix,
    equal: AnyArray,
    y: AnyArray,
    groups: AnyArray,
    compared: AnyArray,
) -> Iterator[Caution]:
    """A finding on rows that are equal to others, of other groups if there are groups."""
    pairs = np.unique(np.stack([equal, groups]), axis=1)[0]
    n_equal = len(pairs) - int(equal.max()) - 1
    if not (n_equal and n_unexpected_duplicates(matrix, equal)):
        return
    of_others = ", in other groups" * is_grouped(groups)
    text = (
        f"{n_equal} of {len(y)} rows are duplicates of others{of_others}, equal in every feature."
    )
    different = np.unique(np.stack([equal, np.unique(y, return_inverse=True)[1]]), axis=1)[0]
    n_different = int((np.bincount(different)[equal] > 1).sum())
    if n_different:
        text += f" {count(n_different, 'row')} have a duplicate with another target."
    if model is not None:
        key = "accuracy" if model.outcome.decides else "rmse"
        separate = groups[compared]
        joined = joined_groups(separate, equal[compared])
        values = scores_held_out(model, separate, joined)
        alone, together = (score(value, key, 3) for value in values)
        sample = "" if len(compared) == len(y) else f", of {len(compared)} of the rows,"
        text += (
            f" The held-out {SCORES[key].name} {_OF}{sample} is {alone}, and {together} when "
            "duplicates are left out together."
        )
    together = setting("duplicate groups", text="hold them out together, as groups")
    yield serious("Duplicates", f"{text} Drop them, or {together}.")


def _sampled_sets(equal: AnyArray) -> AnyArray:
    """Rows to compare, sorted: all, or a sample of a large table with all duplicates of it."""
    if len(equal) <= MOST:
        return np.arange(len(equal))
    order = np.random.default_rng(0).permutation(int(equal.max()) + 1)
    place = np.argsort(order)[equal]
    return np.sort(np.argsort(place, kind="stable")[:MOST])


def _plain_model(
    X: Matrix, y: AnyArray, groups: AnyArray, classes: bool, compared: AnyArray
) -> Fitted | None:
    """A kernel that is tuned on some of the rows, fitted to those to compare; None if it fails."""
    model: Any = KernelClassifier("rbf", calibration=None) if classes else KernelRegressor("rbf")
    sample = np.random.default_rng(0).permutation(compared)[:_TUNED]

    def fitted(model: Any, rows: AnyArray) -> Any:
        return model.fit(X[rows], y[rows], groups=groups[rows])

    try:
        with kept_warnings():
            tuned = fitted(model, sample)
            given = clone(model).set_params(kernel=tuned.kernel_, mu=tuned.mu_)
            of_given: Fitted = fitted(given, compared).fitted_
            return of_given
    except (ValueError, MemoryError):  # such as one class, or one group, among these rows
        return None
