"""A fitted model, the rows of a file in the form that it takes, and its predictions for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from looms._classes import written_labels
from looms._typing import AnyArray
from looms._words import count, listed
from looms.cli._errors import InputError
from looms.cli._names import REMEDIES
from looms.cli._options import IntervalMethod, Source
from looms.cli._output import catch_messages, note, refused, warning
from looms.cli._prepare import labels_of_groups, open_file, read, tell, weights_of_rows
from looms.datasets._table import Table, no_rows
from looms.duplicates import duplicate_groups
from looms.estimators._base import checked_sample_weight
from looms.estimators._in_pipelines import parts_of
from looms.fitted._scores import NewScores, new_scores
from looms.folds import label_numbers
from looms.model_files import load_model
from looms.report.model import model_of
from looms.tables import Columns, TablePreprocessor
from looms.tables._cells import POINT, Marks, is_written, marks_of
from looms.tables._frames import Column, check_names
from looms.tables._target import matched_classes, numbers
from looms.tables._unseen import UnseenValues

#: Metadata of a model of looms fit, besides "rows": numbers in the file, None for all in order.
METADATA = {
    *("task", "target", "columns", "n_rows", "n_features", "options", "seconds", "date", "file"),
    *("looms_version", "sklearn_version"),
}
#: Entries in the kernel matrix of a block and the training rows, and the most rows that count.
_ENTRIES, _MOST_COLUMNS = 2**24, 2**14
#: How a person finds a row: the one convention of all commands, and what it is without a file.
IN_FILE = "number in the file, counted from 1 after any header"
IN_TRAINING_DATA = "number in the training data, counted from 1"
#: Beginning of an error of rows that the model does not take.
REFUSED = "the model cannot take these rows: "


class SavedModel:
    """A fitted model with the metadata of `METADATA`, and ``by_fit``, False for those of Python.

    Attributes
    ----------
    steps : name and transformer of each step that prepares the rows.
    last : what is at their end.
    table : first step, if it reads the columns of a table; None otherwise.
    unseen : counts of values that no row of the fit has; None without such a step.
    known : training rows as they were prepared; None if the model does not hold them.
    classes : labels as they are written; empty for a regression.
    decimal : decimal mark of new rows, if it is not that of the fit.
    """

    decimal: str | None = None

    def __init__(self, model: Any, metadata: dict[str, Any]) -> None:
        self.model, self.metadata = model, metadata
        self.steps, self.last = parts_of(model)
        first = self.steps[0][1] if self.steps else None
        self.table: Any = first if isinstance(first, TablePreprocessor) else None
        self.unseen = None if self.table is None else UnseenValues(self.table)
        self.known: Any = getattr(self.last, "X_fit_", None)
        self.classes = written_labels(getattr(self.last, "classes_", np.empty(0)))
        self.is_classifier = metadata["task"] == "classification"

    @property
    def rows(self) -> AnyArray:
        """(n_rows,) numbers of the rows of the fit, which ``rows_are`` explains."""
        n, of_file = self.metadata["n_rows"], self.metadata.get("rows")
        return np.array(of_file) if of_file and len(of_file) == n else np.arange(1, n + 1)

    @property
    def rows_are(self) -> str:
        """What the numbers of the rows are."""
        return IN_FILE if self.metadata.get("by_fit", True) else IN_TRAINING_DATA

    @property
    def marks(self) -> Marks:
        """Marks of numbers in the text of new rows."""
        if self.decimal is not None:
            return marks_of([], self.decimal)
        return POINT if self.table is None else self.table.kinds_.marks

    def own(self) -> Any:
        """What takes the prepared rows."""
        return self.last._prepared_model()

    def tell_remarks(self, prefix: str = "") -> None:
        """Notes on the rows that were predicted, where they have values that no row of the fit has.

        What is serious is a warning.
        """
        for remark in () if self.unseen is None else self.unseen.notes():
            (warning if remark.serious else note)(f"{prefix}{remark.text}")


def load(path: Path, max_bytes: int) -> SavedModel:
    """The model of a file of looms fit or `save_model`, with warnings about versions as notes.

    Of other metadata than those of a fit only ``target`` counts, the name of the column to
    predict. Refuses models that do not end in a fitted model of looms.
    """
    with catch_messages():
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
    known = metadata.keys() >= METADATA and isinstance(metadata["options"], dict)
    if known and isinstance(metadata["columns"], dict | None):
        return SavedModel(model, metadata | {"by_fit": True})
    if last.fitted_.pairwise:
        raise InputError(f"{path}: the model takes kernel values, not rows of features")
    target = metadata.get("target")
    of_model = {
        "task": "classification" if is_classifier(last) else "regression",
        "target": target if isinstance(target, str) else None,
        "columns": {str(name): "" for name in getattr(model, "feature_names_in_", ())},
        "n_rows": last.held_out_.n_samples,
        "n_features": model.n_features_in_,
        "options": {},
        "file": path.name,
        "by_fit": False,
        "looms_version": metadata["looms_version"],
    }
    return SavedModel(model, of_model)


def rows_for(
    saved: SavedModel, source: Source, kept: Sequence[str] = (), drop_missing: bool = False
) -> Table:
    """The rows of a file with the target; a note lists the columns that the model ignores."""
    table, path = read(source, saved.metadata["target"], kept, drop_missing), source.file
    saved.decimal = source.decimal
    if table.y is None and not saved.metadata["by_fit"]:
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
    reader, number = open_file(source, None, kept), 0
    saved.decimal = source.decimal
    size = min(reader.usual_size, _ENTRIES // min(saved.metadata["n_rows"], _MOST_COLUMNS))
    for number, table in enumerate(reader.tables(size), 1):
        if number == 1:
            note_ignored(saved, table, kept)
        tell(source, table.notes)
        yield table
    if not number:
        raise no_rows(source.file)


def fitting(saved: SavedModel, X: Any) -> Any:
    """Rows of a file in the form that the model takes; columns are found by name, if it has any.

    Sparse rows get the columns of the fit, with a warning if they have values in others.
    """
    columns, n = list(saved.metadata["columns"] or ()), saved.metadata["n_features"]
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
    metadata, options = saved.metadata, saved.metadata["options"]
    if not metadata["columns"]:  # without names all are taken
        return
    known = {*metadata["columns"], *kept, metadata["target"]}
    known |= {options.get(name) for name in ("groups", "time", "sample_weight")}
    ignored = [str(name) for name in getattr(table.X, "columns", ()) if name not in known]
    if ignored:
        note(
            f"{count(len(ignored), 'column')} ignored, unknown to the model: {listed(ignored, 10)}"
        )


@dataclass(frozen=True)
class CoverageRequest:
    """Intervals or sets to predict; without a confidence level, neither.

    Parameters
    ----------
    confidence_level
        Share of rows to cover, such as 0.9: adds lower and upper, or a set of labels.
    method
        Intervals: jackknife+ (default), minmax, or scaled.
    class_conditional
        Sets that cover this share of every class.
    """

    confidence_level: float | None = None
    method: IntervalMethod | None = None
    class_conditional: bool = False

    def __post_init__(self) -> None:
        """Refuse impossible options."""
        given = {"--method": self.method, "--class-conditional": self.class_conditional}
        for name, value in given.items():
            if value and self.confidence_level is None:
                raise InputError(f"{name} goes with --confidence-level, such as 0.9")

    def for_model(self, saved: SavedModel) -> dict[str, Any]:
        """The options that the predictions of a model take."""
        if saved.is_classifier:
            how: dict[str, Any] = {"class_conditional": self.class_conditional}
        else:
            how = {"method": self.method or "plus"}
        return {"confidence_level": self.confidence_level, **how}

    def prepare(self, saved: SavedModel, path: Path) -> None:
        """Refuse options of the other task, and make the models that the file does not hold.

        Nothing is tuned: they are the closed forms of the model that there is.
        """
        name, other = "--class-conditional", "classification"
        if saved.is_classifier:
            name, other = "--method", "regression"
        if self.method if saved.is_classifier else self.class_conditional:
            raise InputError(f"{name} is for {other}, but {path} is for {saved.metadata['task']}")
        if self.confidence_level is None:
            return
        if not saved.last.fitted_.has_rows:
            why = "the file holds no training rows, since these were in blocks"
            raise InputError(f"{path}: {why}, and --confidence-level needs them")
        scores = saved.last._scores
        nested = "nested" in scores
        if not nested and saved.last.fitted_.tuned:
            if not scores:
                tuned = "the model was tuned but not evaluated"
                raise InputError(
                    f"{path}: {tuned}, and --confidence-level needs {REMEDIES['evaluate']}"
                )
            what = "sets" if saved.is_classifier else "intervals"
            tuned = "the model was tuned on the rows that they come from"
            mends, remedy = model_of(saved.model).can_evaluate, REMEDIES["evaluate"]
            note(
                f"{what} cover a little less than the level, because {tuned}"
                f"{f'; {remedy} mends that' * mends}"
            )
        saved.last.evaluate(nested=nested)
        if nested and self.method == "scaled":
            saved.last.evaluate(nested=False)


class Rows(NamedTuple):
    """Rows of a file for the last step of a model.

    Attributes
    ----------
    matrix : prepared.
    table : before their columns are prepared.
    """

    matrix: Any
    table: Any


def rows_of(saved: SavedModel, X: Any) -> Rows:
    """Rows of a file as the model takes them; refuses others. Their unseen values are counted."""
    with refused(REFUSED, (ValueError, TypeError)):
        table = matrix = fitting(saved, X)
        for _, step in saved.steps:
            table, unseen = matrix, saved.unseen if step is saved.table else None
            matrix = step.transform(table) if unseen is None else unseen.add(table)
        return Rows(saved.own()._matrix(matrix), table)


def scored(saved: SavedModel, table: Table, file: Path, prefix: str = "") -> NewScores:
    """Scores of the rows of a file with a target; notes on the rows.

    Rows are weighted by the column that weighted those of the fit, if the file has it, and those of
    one group of the fit's column of groups count as one draw in the standard errors.
    """
    n = table.X.shape[0]
    weight, groups = np.ones(n), None
    given = {name: saved.metadata["options"].get(name) for name in ("sample_weight", "groups")}
    has = {name: one in getattr(table.X, "columns", ()) for name, one in given.items()}
    if has["sample_weight"]:
        values = weights_of_rows(file, table.X, given["sample_weight"], saved.marks)
        with refused(f"{file}: --sample-weight {given['sample_weight']}: "):
            weight = checked_sample_weight(values, n)
    elif given["sample_weight"] is not None:
        missing = f"no column {given['sample_weight']!r} of weights as in the fit"
        note(f"{prefix}{missing}, so all rows count the same")
    if has["groups"]:
        groups = label_numbers(labels_of_groups(file, table.X, given["groups"]), n, "groups")
    elif saved.last.fitted_.units_of_fit.grouped:
        column = f"column {given['groups']!r} of " if given["groups"] else ""
        note(
            f"{prefix}no {column}groups as in the fit, so each row counts as one draw: standard "
            "errors are too small if some belong together"
        )
    with catch_messages():
        matrix = rows_of(saved, table.X).matrix
        values, fitted = target_values(saved, table.y), saved.last.fitted_
        outputs = fitted.outputs(matrix)
        with refused(f"{file}: "):
            made = new_scores(fitted, values, outputs, weight, groups)
    saved.tell_remarks(prefix)
    if (n_known := n_training_rows(saved, matrix)) > 0:
        note(
            f"{prefix}in {count(n_known, 'row')} of {n} all features equal those of a training "
            "row: if they are the same rows, scores are optimistic; see looms assess"
        )
    return made


def target_values(saved: SavedModel, column: Column) -> AnyArray:
    """(n,) numbers of a target of a file, or its labels, in the spelling of the classes."""
    if not saved.is_classifier:
        return numbers(column, saved.marks)
    return np.array(matched_classes(column, saved.classes), dtype=object)


def n_training_rows(saved: SavedModel, matrix: Any) -> int:
    """Number of prepared rows that equal a row of the fit, if the model holds those."""
    known = saved.known
    if known is None:  # of a table in blocks
        return 0
    of_both = sparse.vstack if sparse.issparse(matrix) else np.vstack
    groups = duplicate_groups(of_both([known, matrix]))
    return int(np.isin(groups[known.shape[0] :], groups[: known.shape[0]]).sum())
