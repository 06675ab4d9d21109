"""A saved model and new rows brought together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import sparse

from looms._typing import AnyArray
from looms.cli._columns import listed
from looms.cli._errors import InputError
from looms.cli._figures import (
    classification_figures,
    confusion,
    probability_figures,
    regression_figures,
)
from looms.cli._options import Reading
from looms.cli._say import count, note, warnings_as_notes
from looms.cli._task import numbers, text
from looms.datasets import read_table
from looms.datasets._read import Format
from looms.datasets._table import Table
from looms.model_files import load_model
from looms.model_files._files import SavedModel, is_model_file

#: What looms fit says about a model.
METADATA = {
    "task",
    "target",
    "columns",
    "ranges",
    "n_rows",
    "n_features",
    "asked",
    "seconds",
    "date",
    "file",
    "looms_version",
    "sklearn_version",
}


@dataclass(frozen=True)
class Scored:
    """Figures by name; labels and counts of a confusion matrix for a classification."""

    figures: dict[str, float]
    confusion: tuple[list[Any], list[list[int]]] | None


def read(path: Path, target: str | None, reading: Reading, keep: Sequence[str] = ()) -> Table:
    """The table of a file, read as options say, with what was detected as notes."""
    sep = "\t" if reading.sep in ("tab", r"\t") else reading.sep
    if sep is not None and (len(sep) != 1 or not sep.isascii() or sep in '"\r\n'):
        raise InputError(f'--sep {sep!r} is not one character of ASCII; give one, or "tab"')
    table = read_table(
        path,
        target,
        format=cast("Format | None", reading.format),
        sep=sep,
        decimal=reading.decimal,
        encoding=reading.encoding,
        sheet=reading.sheet,
        keep=keep,
        max_bytes=reading.max_bytes,
    )
    for remark in table.notes:
        note(f"{path.name}: {remark}")
    return table


def load(path: Path, max_bytes: int) -> SavedModel:
    """The model of a file of looms fit, with warnings about versions as notes."""
    with warnings_as_notes():
        saved = load_model(path, max_bytes=max_bytes)
    metadata = saved.metadata
    complete = metadata.keys() >= METADATA and isinstance(metadata["asked"], dict)
    if not complete or not isinstance(metadata["columns"], dict | None):
        raise InputError(f"{path}: the model was not saved by looms fit; fit it again")
    return saved


def rows_for(
    saved: SavedModel,
    path: Path,
    reading: Reading,
    *,
    with_target: bool,
    kept: Sequence[str] = (),
) -> Table:
    """The rows of a file in the form that the model takes, with the target if it is asked for.

    Columns that the model does not know are said to be ignored, but for those ``kept``.
    """
    columns, target = saved.metadata["columns"], saved.metadata["target"]
    table = read(path, target if with_target else None, reading, kept)
    if (columns is None) != sparse.issparse(table.X):
        made_for = "sparse files" if columns is None else "tables with named columns"
        raise InputError(f"{path}: the model was fitted to {made_for}, and this is no such file")
    if with_target and table.y is None:
        raise InputError(f"{path}: no labels are beside it; put them there, or use looms predict")
    if columns is None:
        return Table(_widened(table.X, saved.metadata["n_features"], path), table.y, table.name)
    ignored = [str(name) for name in table.X.columns if name not in {*columns, *kept, target}]
    if ignored:
        note(
            f"{count(len(ignored), 'column')} ignored, for the model does not know "
            f"{'it' if len(ignored) == 1 else 'them'}: {listed(ignored, 10)}"
        )
    return table


def outputs(saved: SavedModel, X: Any) -> tuple[AnyArray, AnyArray]:
    """Predictions and decision values of some rows; the same twice for a regression."""
    with _rows_at_fault():
        matrix = saved.model[:-1].transform(X)
        predicted = saved.model[-1].predict(matrix)
        if saved.metadata["task"] == "regression":
            return predicted, predicted
        return predicted, saved.model[-1].decision_function(matrix)


def probabilities(saved: SavedModel, X: Any) -> AnyArray | None:
    """Probabilities of the classes for some rows; None for a model that has none.

    Models of looms before it had them are such, too.
    """
    if not hasattr(saved.model[-1], "predict_proba"):
        return None
    with _rows_at_fault():
        return cast("AnyArray", saved.model.predict_proba(X))


@contextmanager
def _rows_at_fault() -> Iterator[None]:
    """Errors of a model that takes rows as errors of the rows, warnings as notes."""
    try:
        with warnings_as_notes():
            yield
    except np.linalg.LinAlgError:  # a ValueError too, and not the fault of the rows
        raise
    except (ValueError, TypeError) as error:
        raise InputError(f"the model cannot take these rows: {error}") from error


def scored(saved: SavedModel, table: Table) -> Scored:
    """Figures of the predictions of rows whose target is known."""
    predicted, decision = outputs(saved, table.X)
    if saved.metadata["task"] == "regression":
        return Scored(regression_figures(numbers(table.y), predicted), None)
    classes, y, predicted = map(text, (saved.model[-1].classes_, table.y, predicted))
    unknown = sorted(set(y) - set(classes))
    if unknown:
        note(f"labels that the model does not know count as errors: {', '.join(unknown)}")
    figures = classification_figures(y, predicted, decision, classes)
    likely = probabilities(saved, table.X)
    if likely is not None:
        figures |= probability_figures(y, likely, classes)
    return Scored(
        figures,
        confusion(y, predicted, [*classes, *unknown]),
    )


def check_can_write(
    path: Path, force: bool, *inputs: Path, option: str = "--output", holds: str = ""
) -> None:
    """Refuse, before any work, to overwrite unless told to, or to write where no folder is.

    Whatever was told, no input is overwritten, and nothing that this command does not write.

    Parameters
    ----------
    path : where to.
    force : whether it may be overwritten.
    inputs : what the command reads.
    option : what the path is given by.
    holds : regular expression of the beginning of what the command writes, or "model".
    """
    try:
        exists = path.exists()
        lost = exists and any(source.exists() and path.samefile(source) for source in inputs)
    except OSError as error:
        raise InputError(
            f"no file can be called so ({error.strerror}): {error.filename}; check the name"
        ) from None
    if lost:
        raise InputError(f"{path} is an input and would be lost; name another {option}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if exists and not path.is_file():  # a device or a pipe, at the end of links too
        raise InputError(f"{path} is no regular file; name another {option}")
    if exists and not force:
        raise InputError(f"{path} exists; use --force to overwrite it, or {option} for another")
    if exists and not _is_ours(path, holds):
        raise InputError(
            f"{path} is not a file that this command writes, and --force is for those; remove it, "
            f"or name another {option}"
        )
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it, or name another")


def _is_ours(path: Path, holds: str) -> bool:
    """Whether a file is what this command writes, or empty."""
    if path.stat().st_size == 0:
        return True
    if holds == "model":
        return is_model_file(path)
    with path.open("rb") as file:
        begins = file.read(100_000).decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    return re.match(holds, begins, re.IGNORECASE | re.MULTILINE) is not None


def without(table: Table, columns: list[str], path: Path) -> Table:
    """The table without some columns."""
    if not columns:
        return table
    absent = [name for name in columns if name not in getattr(table.X, "columns", [])]
    if absent:
        raise InputError(f"{path}: there is no column {absent[0]!r} to leave out")
    return replace(table, X=table.X.drop(columns=columns))


def check_target(table: Table, path: Path) -> None:
    """Refuse a table without a target, or with more rows than a kernel matrix can have here."""
    if table.y is None:
        columns = listed(getattr(table.X, "columns", []), 20)
        raise InputError(
            f"{path}: there is no target; name the column to predict with --target"
            f"{f' ({columns})' if columns else ''}; for challenge and npz data put their "
            ".labels file beside them"
        )
    n_rows = table.X.shape[0]
    if hasattr(os, "sysconf"):  # not on Windows
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if 8 * n_rows**2 > memory:
            raise InputError(
                f"{path}: the kernel matrix of {n_rows:,} rows takes "
                f"{8e-9 * n_rows**2:,.0f} GB, and this machine has {1e-9 * memory:,.0f}; give a "
                "sample of the rows"
            )


def _widened(X: Any, n_features: int, path: Path) -> Any:
    """Sparse rows with as many columns as the model has: a file ends at the last one it uses."""
    if X.shape[1] > n_features:
        raise InputError(
            f"{path}: a row has feature {X.shape[1]}, and the model was fitted to {n_features}"
        )
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
