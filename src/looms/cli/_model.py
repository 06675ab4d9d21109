"""A fitted model with what is known of its fit, and the rows of a file in the form it takes."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from looms._classes import written_labels
from looms._optional import require
from looms._scores import ValuesAndErrors
from looms._typing import AnyArray
from looms._words import count, listed
from looms.assessment._result import Assessment
from looms.cli._errors import InputError
from looms.cli._options import LISTS, REMEDIES, flag
from looms.cli._output import WIDE, console, note, print_blocks, refused, warning
from looms.cli._request import FitRequest, Prepared
from looms.cli._source import Source
from looms.datasets._table import Table, no_rows
from looms.estimators._base import checked_sample_weight
from looms.estimators._in_pipelines import parts_of
from looms.fitted._scores import NewScores, new_scores
from looms.folds import label_numbers
from looms.model_files import load_model
from looms.report._validation import NO_GROUPS, NO_WEIGHTS, known_rows
from looms.report.facts import Facts
from looms.report.overview import overview
from looms.report.text import unit_words
from looms.tables import Columns, TablePreprocessor
from looms.tables._cells import POINT, Marks, is_written, marks_of
from looms.tables._frames import check_names
from looms.tables._target import matched_classes, numbers
from looms.tables._unseen import Note, UnseenValues

#: Metadata of a model of looms fit, besides those that the model itself has.
METADATA = {"target", "file", "options", "seconds", "date", "sklearn_version"}
#: Entries in the kernel matrix of a block and the training rows, and the most rows that count.
_ENTRIES, _MOST_COLUMNS = 2**24, 2**14
#: How a person finds a row: the one convention of all commands, and what it is without a file.
IN_FILE = "number in the file, counted from 1 after any header"
IN_TRAINING_DATA = "number in the training data, counted from 1"
#: Beginning of an error of rows that the model does not take.
REFUSED = "the model cannot take these rows: "


class SavedModel:
    """A fitted model with the metadata of `METADATA`.

    Attributes
    ----------
    by_fit : True for models of looms fit, False for those of Python.
    steps : name and transformer of each step that prepares the rows.
    last : what is at their end.
    table : first step, if it reads the columns of a table; None otherwise.
    columns : their names; empty if they have none.
    n_rows : number of rows of the fit.
    rows_are : what the numbers of the rows are.
    known : training rows as they were prepared; None if the model does not hold them.
    options : of the fit.
    decimal : decimal mark of new rows, if it is not that of the fit.
    """

    decimal: str | None = None

    def __init__(self, model: Any, metadata: dict[str, Any], by_fit: bool = True) -> None:
        self.model, self.metadata, self.by_fit = model, metadata, by_fit
        self.steps, self.last = parts_of(model)
        first = self.steps[0][1] if self.steps else None
        self.table: Any = first if isinstance(first, TablePreprocessor) else None
        self.columns = [str(name) for name in getattr(model, "feature_names_in_", ())]
        self.n_rows = len(self.last.fitted_.rows.weight)
        self.rows_are = IN_FILE if by_fit else IN_TRAINING_DATA
        self.known: Any = getattr(self.last, "X_fit_", None)
        self.is_classifier: bool = is_classifier(self.last)
        self.options: dict[str, Any] = metadata["options"]

    @cached_property
    def unseen(self) -> UnseenValues | None:
        """Counts of values that no row of the fit has; None without a step that knows them."""
        return None if self.table is None else UnseenValues(self.table)

    @cached_property
    def classes(self) -> AnyArray:
        """Labels as they are written; empty for a regression."""
        return written_labels(getattr(self.last, "classes_", np.empty(0)))

    @property
    def rows(self) -> AnyArray:
        """(n_rows,) numbers of the rows of the fit, which ``rows_are`` explains."""
        n, of_file = self.n_rows, self.metadata.get("rows")
        return np.array(of_file) if of_file and len(of_file) == n else np.arange(1, n + 1)

    @property
    def marks(self) -> Marks:
        """Marks of numbers in the text of new rows."""
        if self.decimal is not None:
            return marks_of([], self.decimal)
        return POINT if self.table is None else self.table.kinds_.marks

    def own(self) -> Any:
        """What takes the prepared rows."""
        return self.last._prepared_model()

    @property
    def remarks(self) -> list[Note]:
        """Notes on the rows that were predicted, with values that no row of the fit has."""
        return [] if self.unseen is None else list(self.unseen.notes())


def tell(remarks: Sequence[Note], prefix: str = "") -> None:
    """Remarks as notes; what is serious is a warning."""
    for remark in remarks:
        (warning if remark.serious else note)(f"{prefix}{remark.text}")


def load(path: Path, max_bytes: int) -> SavedModel:
    """The model of a file of looms fit or `save_model`, with warnings about versions as notes.

    Of other metadata than those of a fit only ``target`` counts, the name of the column to
    predict. Refuses models that do not end in a fitted model of looms.
    """
    saved = load_model(path, max_bytes=max_bytes)
    model, metadata = saved.model, saved.metadata
    last = parts_of(model).last
    try:
        check_is_fitted(last)
    except NotFittedError:
        raise InputError(f"{path}: the model is not fitted; fit it, and save it again") from None
    if not hasattr(last, "held_out_"):
        ends = f"{path}: the model ends in {type(last).__name__}"
        raise InputError(f"{ends}, which has no held-out predictions of looms")
    if metadata.keys() >= METADATA and isinstance(metadata["options"], dict):
        return SavedModel(model, metadata)
    if last.fitted_.pairwise:
        raise InputError(f"{path}: the model takes kernel values, not rows of features")
    target = metadata["target"] if isinstance(metadata.get("target"), str) else None
    about: dict[str, Any] = {"target": target, "file": path.name, "options": {}}
    return SavedModel(model, metadata | about, by_fit=False)


def rows_for(
    saved: SavedModel, source: Source, kept: Sequence[str] = (), drop_missing: bool = False
) -> Table:
    """The rows of a file with the target; a note lists the columns that the model ignores."""
    table, path = source.read(saved.metadata["target"], kept, drop_missing), source.file
    saved.decimal = source.decimal
    if table.y is None and not saved.by_fit:
        raise InputError(
            "the model does not know the column of its target: fit it to a pandas Series, which "
            f"has a name, or use looms predict for {path}"
        )
    if table.y is None:
        raise InputError(f"{path}: no labels are beside it; put them there, or use looms predict")
    note_ignored(saved, table, kept)
    return table


def blocks_for(saved: SavedModel, source: Source, kept: Sequence[str]) -> Iterator[Table]:
    """Rows of a file without the target, a block at a time."""
    reader, number = source.open(None, kept), 0
    saved.decimal = source.decimal
    size = min(reader.usual_size, _ENTRIES // min(saved.n_rows, _MOST_COLUMNS))
    for number, table in enumerate(reader.tables(size), 1):
        if number == 1:
            note_ignored(saved, table, kept)
        source.tell(table.notes)
        yield table
    if not number:
        raise no_rows(source.file)


def fitting(saved: SavedModel, X: Any) -> Any:
    """Rows of a file in the form that the model takes; columns are found by name, if it has any.

    Sparse rows get the columns of the fit, with a warning if they have values in others.
    """
    columns, n = saved.columns, saved.model.n_features_in_
    if sparse.issparse(X):  # which ends at the last column that it uses
        shape = X.shape[0], max(X.shape[1], n)
        if (X.indices >= n).any():
            warnings.warn(f"columns beyond the {n} of the fit are ignored", stacklevel=2)
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=shape)[:, :n]
    if saved.table is not None and columns:
        return X if saved.decimal is None else saved.table.kinds_.typed(X, saved.decimal)
    if columns:
        check_names(columns, X.columns)
        return _typed(saved, X[columns])
    X = X.drop(columns=saved.metadata["target"] or [], errors="ignore")
    if X.shape[1] != n:
        raise ValueError(f"it was fitted to {n} columns without names, and there are {X.shape[1]}")
    return _typed(saved, X).to_numpy(dtype=object)


def _typed(saved: SavedModel, X: Any) -> Any:
    """Rows for a model that takes columns as they are: text of a file holds its numbers."""
    written = [name for name in X if is_written(X[name])]
    columns = Columns(dict.fromkeys(written, "number"), saved.marks.decimal)
    try:
        return X.assign(**columns.typed(X)) if written else X
    except ValueError as error:
        raise ValueError(
            f"{error}; a model without a looms.tables.TablePreprocessor knows no columns of text: "
            "put one before it, in a pipeline, or predict in Python"
        ) from None


def note_ignored(saved: SavedModel, table: Table, kept: Sequence[str]) -> None:
    """Note columns that the model does not know, except kept ones and those of its fit."""
    if not saved.columns:  # without names all are taken
        return
    known = {*saved.columns, *kept, saved.metadata["target"]}
    known |= {saved.options.get(name) for name in ("groups", "time", "sample_weight")}
    ignored = [str(name) for name in getattr(table.X, "columns", ()) if name not in known]
    if ignored:
        note(
            f"{count(len(ignored), 'column')} ignored, unknown to the model: {listed(ignored, 10)}"
        )


def rows_of(saved: SavedModel, X: Any) -> tuple[Any, Any]:
    """Rows of a file as the last step takes them, and as its table before they are prepared.

    Refuses rows that the model does not take. Unseen values are counted.
    """
    with refused(REFUSED, (ValueError, TypeError)):
        table = matrix = fitting(saved, X)
        for _, step in saved.steps:
            table, unseen = matrix, saved.unseen if step is saved.table else None
            matrix = step.transform(table) if unseen is None else unseen.add(table)
        return saved.own()._matrix(matrix), table


def scored(
    saved: SavedModel, source: Source, table: Table, prefix: str = ""
) -> tuple[NewScores, list[Note]]:
    """Scores of the rows of a file with a target, and notes on the rows, which are told.

    Rows are weighted by the column that weighted those of the fit, if the file has it, and those of
    one group of the fit's column of groups count as one draw in the standard errors.
    """
    n, columns = table.X.shape[0], getattr(table.X, "columns", ())
    weighs, joins = (saved.options.get(name) for name in ("sample_weight", "groups"))
    weight, groups, remarks = np.ones(n), None, list[Note]()
    if weighs in columns:
        with refused(f"{source.file}: --sample-weight {weighs}: "):
            weights = source.weights_in(table.X, weighs, saved.marks)
            weight = checked_sample_weight(weights, n)
    elif weighs is not None:
        remarks.append(Note(NO_WEIGHTS.format(f"column {weighs!r} of ")))
    if joins in columns:
        groups = label_numbers(source.labels_in(table.X, joins), n, "groups")
    elif saved.last.fitted_.rows.grouped and (joins or not saved.options.get("time")):
        column = f"column {joins!r} of " if joins else ""
        remarks.append(Note(NO_GROUPS.format(column)))
    matrix, _ = rows_of(saved, table.X)
    fitted = saved.last.fitted_
    outputs = fitted.outputs(matrix)
    with refused(f"{source.file}: "):
        if saved.is_classifier:
            values: AnyArray = np.array(matched_classes(table.y, saved.classes), dtype=object)
        else:
            values = numbers(table.y, saved.marks)
        made = new_scores(fitted, values, outputs, weight, groups)
    remarks += [*saved.remarks, *known_rows(saved.last, matrix)]
    tell(remarks, prefix)
    return made, remarks


def facts_of(
    saved: SavedModel, prepared: Prepared | None = None, assessment: Assessment | None = None
) -> Facts:
    """Facts of a model, with what is known of its rows after a fit."""
    pandas, rows = require("pandas", "A report"), saved.rows
    target, file = saved.metadata["target"], saved.metadata["file"]
    return Facts(
        saved.model,
        pandas.Series(rows, pandas.Index(rows, name=saved.rows_are)),
        groups=None if prepared is None else prepared.groups,
        notes=None if prepared is None else (*saved.table.remarks_, *prepared.target.notes),
        assessment=assessment,
        title=f"{target}, {file}" if target else file,
        command=command_of(saved.metadata) if saved.by_fit else None,
    )


def choice_of(saved: SavedModel, facts: Facts) -> str:
    """A sentence about what the selection of the model means for its scores."""
    model = facts.model
    if model.nested:
        n = model.nested.units.n_counted
        several = {"fold": f"of {n} folds", "window": f"of {n} windows of time"}
        several["forward"] = f"{several['window']} and the rows after it"
        unit = several.get(model.unit, unit_words(model.unit))
        text = f"for these scores {model.repeated_without(unit)}"
        if model.prepared_anew:
            return f"{text}: the columns were prepared and the model was tuned anew"
        more = "" if model.nested.whole else f"; by {REMEDIES['evaluate']} the whole selection is"
        return f"{text}; the preparation of the columns was not repeated{more}"
    in_time = saved.options.get("time")
    remedy = "looms assess --time gives" if in_time else model.unbiased_by
    text = f"{model.method} tuned this model, so its scores are optimistic"
    return f"{text}; {remedy} unbiased ones" if remedy else text


def plain_scores(
    scores: ValuesAndErrors, baselines: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Scores with their standard errors and baselines, for JSON."""
    return {
        name: {"value": value, "standard_error": error, "baseline": baselines.get(name, np.nan)}
        for name, (value, error) in scores.items()
    }


def command_of(metadata: Mapping[str, Any]) -> str:
    """The command that fitted a model, as a shell takes it; the file without its folders."""
    options = options_text({"target": metadata["target"]} | metadata["options"])
    return f"looms fit {shlex.quote(metadata['file'])} {options}".strip()


def options_text(options: Mapping[str, Any]) -> str:
    """Options of a fit as a shell takes them, but for those at their defaults."""
    defaults, words = {f.name: f.default for f in fields(FitRequest)}, list[str]()
    for name, value in options.items():
        if not value or value == defaults.get(name):
            continue
        values = value if isinstance(value, list) else [value]
        if name in LISTS:
            values = [",".join(values)]
        given = [""] if value is True else [f" {shlex.quote(str(each))}" for each in values]
        words += [f"{flag(name)}{each}" for each in given]
    return " ".join(words)


def show_choice(saved: SavedModel, facts: Facts) -> None:
    """Print what was tried, the hyper-parameters of the best one, and its held-out scores."""
    width = console().width
    rule = saved.options.get("threshold")
    parts = facts.model, facts.loo["confusion"], facts.importance
    print_blocks(*overview(*parts, wide=width >= WIDE, width=width, rule=rule))
