"""A fitted model and its parts, and the rows of a file in the form that it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from looms._words import count, listed
from looms.cli._errors import InputError
from looms.cli._options import Source
from looms.cli._output import as_messages, note
from looms.cli._prepare import open_file, read, tell
from looms.datasets._table import Table, no_rows
from looms.estimators._in_pipelines import Parts, parts_of
from looms.model_files import load_model
from looms.model_files._files import SavedModel
from looms.tables import TablePreprocessor, Unlike
from looms.tables._columns import check_names

#: Metadata of a model of looms fit.
METADATA = {
    *("task", "target", "columns", "n_rows", "n_features", "options", "seconds", "date", "file"),
    *("looms_version", "sklearn_version"),
}
#: Entries in the kernel matrix of a block and the training rows, and the most rows that count.
_ENTRIES, _MOST_COLUMNS = 2**24, 2**14


class Fitted(SavedModel):
    """A fitted model with the metadata of `METADATA`, and ``by_fit``, False for those of Python.

    Attributes
    ----------
    parts : steps that prepare the rows, and what is at their end, `last`.
    own : what takes the prepared rows.
    table : first step, if it reads the columns of a table; None otherwise.
    unlike : counts of predicted rows unlike those of the fit; None without such a step.
    known : training rows as they were prepared; None if the model does not hold them.
    classes : labels; empty for a regression.
    """

    @cached_property
    def parts(self) -> Parts:
        return parts_of(self.model)

    @property
    def last(self) -> Any:
        return self.parts.last

    @property
    def own(self) -> Any:
        if getattr(self.last, "preprocessor_", None) is None:
            return self.last
        one = copy(self.last)
        one.preprocessor_ = None
        return one

    @property
    def table(self) -> Any:
        first = self.parts.steps[0][1] if self.parts.steps else None
        return first if isinstance(first, TablePreprocessor) else None

    @cached_property
    def unlike(self) -> Unlike | None:
        return None if self.table is None else Unlike(self.table)

    def remarks(self) -> tuple[str, ...]:
        """Sentences on the rows that were predicted, where they are unlike those of the fit."""
        return () if self.unlike is None else self.unlike.notes()

    @property
    def known(self) -> Any:
        return getattr(getattr(self.last, "machine_", self.last), "X_fit_", None)

    @property
    def classes(self) -> Any:
        return getattr(self.last, "classes_", ())

    @property
    def is_classifier(self) -> bool:
        return bool(self.metadata["task"] == "classification")


def load(path: Path, max_bytes: int) -> Fitted:
    """The model of a file of looms fit or `save_model`, with warnings about versions as notes.

    Of other metadata than those of a fit only ``target`` counts, the name of the column to
    predict. Refuses models that do not end in a fitted model of looms.
    """
    with as_messages():
        saved = load_model(path, max_bytes=max_bytes)
    model, metadata = saved.model, saved.metadata
    known = metadata.keys() >= METADATA and isinstance(metadata["options"], dict)
    if known and isinstance(metadata["columns"], dict | None):
        return Fitted(model, metadata | {"by_fit": True})
    last = parts_of(model).last
    try:
        check_is_fitted(last)
    except NotFittedError:
        raise InputError(f"{path}: the model is not fitted; fit it, and save it again") from None
    rows = last.loo_.y if hasattr(last, "loo_") else getattr(last, "validation_", None)
    if rows is None:
        raise InputError(
            f"{path}: the model ends in {type(last).__name__}, and the command line takes models "
            "of looms; use looms.model_files.load_model in Python"
        )
    kernel = getattr(getattr(last, "machine_", last), "kernel_", None)
    if kernel is not None and kernel.pairwise:
        raise InputError(
            f"{path}: the model takes kernel values, and the command line takes rows of features"
        )
    target = metadata.get("target")
    of_model = {
        "task": "classification" if is_classifier(last) else "regression",
        "target": target if isinstance(target, str) else None,
        "columns": {str(name): "" for name in getattr(model, "feature_names_in_", ())},
        "n_rows": len(rows),
        "n_features": model.n_features_in_,
        "options": {},
        "file": path.name,
        "by_fit": False,
        "looms_version": metadata["looms_version"],
    }
    return Fitted(model, of_model)


def rows_for(
    saved: Fitted, source: Source, kept: Sequence[str] = (), drop_missing: bool | None = None
) -> Table:
    """The rows of a file with the target; a note lists the columns that the model ignores."""
    table, path = read(source, saved.metadata["target"], kept, drop_missing), source.file
    if table.y is None and not saved.metadata["by_fit"]:
        raise InputError(
            f"{path}: the model does not name its target; save it with the metadata "
            "{'target': ...}, the name of the column"
        )
    if table.y is None:
        raise InputError(f"{path}: no labels are beside it; put them there, or use looms predict")
    note_ignored(saved, table, kept)
    return table


def blocks_for(saved: Fitted, source: Source, kept: Sequence[str]) -> Iterator[Table]:
    """Rows of a file without the target, a block at a time."""
    reader, table = open_file(source, None, kept), None
    size = min(reader.usual_size, _ENTRIES // min(saved.metadata["n_rows"], _MOST_COLUMNS))
    for following in reader.tables(size):
        if table is None:
            note_ignored(saved, following, kept)
        table = following
        tell(source, table.notes)
        yield table
    if table is None:
        raise no_rows(source.file)


def fitting(saved: Fitted, X: Any) -> Any:
    """Rows of a file in the form that the model takes; columns are found by name, if it has any."""
    columns, n = list(saved.metadata["columns"] or ()), saved.metadata["n_features"]
    if sparse.issparse(X):  # which ends at the last column that it uses
        shape = X.shape[0], max(X.shape[1], n)
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=shape)
    if saved.table is not None and columns:
        return X
    if columns:
        check_names(columns, X.columns)
        return X[columns]
    X = X.drop(columns=saved.metadata["target"] or [], errors="ignore")
    if X.shape[1] != n:
        raise ValueError(f"it was fitted to {n} columns without names, and there are {X.shape[1]}")
    return X.to_numpy(dtype=object)


def note_ignored(saved: Fitted, table: Table, kept: Sequence[str]) -> None:
    """Note columns that the model does not know, except kept ones and those of its fit."""
    metadata, options = saved.metadata, saved.metadata["options"]
    if not metadata["columns"]:  # without names all are taken
        return
    known = {*metadata["columns"], *kept, metadata["target"]}
    known |= {options.get(name) for name in ("groups", "time", "sample_weight")}
    ignored = [str(name) for name in getattr(table.X, "columns", ()) if name not in known]
    if ignored:
        note(
            f"{count(len(ignored), 'column')} ignored, because the model does not know "
            f"{'it' if len(ignored) == 1 else 'them'}: {listed(ignored, 10)}"
        )
