"""A fitted model, the rows of a file in the form that it takes, and its predictions for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from looms import predict_interval, predict_set
from looms._classes import written_labels
from looms._scores import (
    ValuesAndErrors,
    class_baselines,
    class_scores,
    number_baselines,
    number_scores,
)
from looms._typing import AnyArray
from looms._words import count, listed
from looms.cli._errors import InputError
from looms.cli._options import IntervalMethod, Source
from looms.cli._output import catch_messages, note, refused, warning
from looms.cli._prepare import labels_of_groups, open_file, read, tell, weights_of_rows
from looms.datasets._table import Table, no_rows
from looms.duplicates import duplicate_groups
from looms.estimators._base import checked_sample_weight
from looms.estimators._encoding import is_positive_first
from looms.estimators._in_pipelines import parts_of
from looms.folds import group_numbers
from looms.model_files import load_model
from looms.report.model import model_of
from looms.selection._decisions import Decided
from looms.selection._fold_pairs import pair_auc
from looms.tables import Columns, TablePreprocessor
from looms.tables._cells import POINT, Marks, is_written, marks_of
from looms.tables._frames import Column, check_names
from looms.tables._target import matched_labels, numbers, text
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
#: Separator of the labels of a set.
SEPARATOR = "|"


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
    saved: SavedModel, source: Source, kept: Sequence[str] = (), drop_missing: bool | None = None
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
        scores = saved.last._scores
        nested = "nested" in scores
        if not nested and saved.last.fitted_.tuned:
            if not scores:
                tuned = "the model was tuned but not evaluated"
                raise InputError(f"{path}: {tuned}, and --confidence-level needs evaluate()")
            what = "sets" if saved.is_classifier else "intervals"
            tuned = "the model was tuned on the rows that they come from"
            mends = "evaluate" in model_of(saved.model).unbiased_by
            note(
                f"{what} cover a little less than the level, because {tuned}"
                f"{'; evaluate() mends that' * mends}"
            )
        saved.last.evaluate(nested=nested)
        if nested and self.method == "scaled":
            saved.last.evaluate(nested=False)

    def columns(self, of: Predictions) -> dict[str, AnyArray]:
        """Columns ``lower`` and ``upper``, or ``set``; none if not asked for."""
        if self.confidence_level is None:
            return {}
        saved, level = of.saved, self.confidence_level
        data: tuple[Any, Any] = (saved.own(), of.matrix)
        if "nested" in saved.last._scores:
            data = saved.model, of.rows  # models without each fold may prepare the rows anew
        # ValueError: a higher level than the rows of the model can give.
        with refused():
            if not saved.is_classifier:
                lower, upper = predict_interval(*data, level, method=self.method or "plus").T
                return {"lower": lower, "upper": upper}
            sets = predict_set(*data, level, class_conditional=self.class_conditional)
        return {"set": joined(sets, [str(label) for label in saved.classes])}


class Predictions:
    """Outputs of a model for some rows, from one pass of the steps that prepare them.

    Rows that the model cannot take are refused. Warnings of the model are left to the caller: see
    `catch_messages`. ``model``, if given, replaces the model of prepared rows.

    Attributes
    ----------
    matrix : prepared rows.
    predicted, decision : the decision values of a regression are the predictions.
    probabilities : None if the model has none.
    """

    def __init__(self, saved: SavedModel, X: Any, model: Any = None) -> None:
        model, steps = model or saved.own(), saved.steps
        with refused(REFUSED, (ValueError, TypeError)):
            self.saved, self.rows = saved, fitting(saved, X)
            self.matrix = self.rows
            if saved.unseen is not None:
                self.matrix, steps = saved.unseen.add(self.rows), steps[1:]
            for _, step in steps:
                self.matrix = step.transform(self.matrix)
            self.predicted: AnyArray = model.predict(self.matrix)
            self.decision: AnyArray = self.predicted
            self.probabilities: AnyArray | None = None
            if saved.is_classifier:
                self.predicted = written_labels(self.predicted)
                self.decision = model.decision_function(self.matrix)
            if hasattr(model, "predict_proba"):
                self.probabilities = model.predict_proba(self.matrix)

    def outputs(self) -> dict[str, AnyArray]:
        """Columns of predictions, decision values and probabilities, if the model has them.

        Of two classes there is one column of decision values, that of the positive class.
        """
        columns = {"prediction": self.predicted}
        if not self.saved.is_classifier:
            return columns
        classes = self.saved.classes
        values, decided = self.decision.reshape(len(self.predicted), -1), classes
        if self.decision.ndim == 1:
            first = is_positive_first(getattr(self.saved.last, "pos_label", None), classes)
            values, decided = (-values, classes[:1]) if first else (values, classes[1:])
        columns |= {f"decision_{c}": values[:, k] for k, c in enumerate(decided)}
        if self.probabilities is not None:
            columns |= {f"probability_{c}": self.probabilities[:, k] for k, c in enumerate(classes)}
        return columns

    def scores(
        self, y: Column, sample_weight: AnyArray | None = None, groups: AnyArray | None = None
    ) -> tuple[ValuesAndErrors, dict[str, float]]:
        """Scores against the target of the rows, as it was read, and baselines, as of `Scores`.

        For two classes the second one is positive; for more, the area is a mean over classes
        against the rest. It is NaN without rows of both kinds, and so is the log loss if a label is
        none of the classes, because it has no probability.
        """
        n = len(self.predicted)
        weight = np.ones(n) if sample_weight is None else sample_weight
        if not self.saved.is_classifier:
            with refused():
                given = numbers(y, self.saved.marks)
            scores = number_scores(given, self.predicted[None], weight, groups)
            return scores, number_baselines(given, weight)
        classes, predicted = text(self.saved.classes), text(self.predicted)
        truth = matched_labels(y, classes)
        outcome = self.saved.last.fitted_.outcome
        if not outcome.labeled:
            return self._ordered_scores(outcome, truth, weight, groups)
        decision, losses = self.decision, None
        if decision.ndim == 2 and len(classes) == 2:
            decision = decision[:, 1] - decision[:, 0]
        own = truth[:, None] == classes
        targets = np.where(own[:, 1:] if len(classes) == 2 else own, 1.0, -1.0)
        outputs, all_rows = decision.reshape(n, -1), [np.arange(n)]
        area = pair_auc(targets, outputs, all_rows, [], [], weight, groups=groups)
        if self.probabilities is not None:
            p = np.where(own.any(axis=1), (own * self.probabilities).sum(axis=1), np.nan)
            losses = -np.log(np.maximum(p, np.finfo(float).eps))
        labels, wrong = np.unique(truth, return_inverse=True)[1], (truth != predicted).astype(float)
        scores, of_all = (
            class_scores(labels, wrong, area, weight, groups, losses),
            class_baselines(labels, weight),
        )
        return scores, {name: of_all[name] for name in scores}

    def _ordered_scores(
        self, outcome: Any, truth: AnyArray, weight: AnyArray, groups: AnyArray | None
    ) -> tuple[ValuesAndErrors, dict[str, float]]:
        """The same for ordered classes, all of which the model has to know."""
        classes = text(self.saved.classes)
        code = {label: k for k, label in enumerate(classes.tolist())}
        if unknown := sorted(set(truth.tolist()) - set(code)):
            raise InputError(f"the target has {unknown}, which have no place in {[*code]}")
        codes, predicted = (
            np.array([code[label] for label in labels.tolist()])
            for labels in (truth, text(self.predicted))
        )
        targets, shares = outcome.coded(codes), np.eye(len(classes))[predicted]
        made = Decided(np.arange(len(codes)), targets, shares, self.probabilities)
        decisions = outcome.decisions([made], targets)
        scores = outcome.scores(targets, targets[None], weight, groups, (decisions, None))
        of_all = outcome.baselines(targets, weight)
        return scores, {name: of_all[name] for name in scores}

    def trained_on(self) -> Iterator[str]:
        """A note on rows equal to training rows."""
        known, new = self.saved.known, self.matrix
        if known is None:  # of a table in blocks
            return
        of_both = sparse.vstack if sparse.issparse(new) else np.vstack
        groups = duplicate_groups(of_both([known, new]))
        n = int(np.isin(groups[known.shape[0] :], groups[: known.shape[0]]).sum())
        if n:
            yield (
                f"in {count(n, 'row')} of {new.shape[0]} all features equal those of a training "
                "row: if they are the same rows, scores are optimistic; see looms assess"
            )


def scored(
    saved: SavedModel, table: Table, file: Path, prefix: str = ""
) -> tuple[Predictions, ValuesAndErrors, dict[str, float]]:
    """Predictions of rows of a file with a target, their scores, and baselines; notes on the rows.

    Rows are weighted by the column that weighted those of the fit, if the file has it, and those of
    one group of the fit's column of groups count as one draw in the standard errors.
    """
    weight = groups = None
    given = {name: saved.metadata["options"].get(name) for name in ("sample_weight", "groups")}
    has = {name: one in getattr(table.X, "columns", ()) for name, one in given.items()}
    if has["sample_weight"]:
        values = weights_of_rows(file, table.X, given["sample_weight"], saved.marks)
        with refused(f"{file}: --sample-weight {given['sample_weight']}: "):
            weight = checked_sample_weight(values, table.X.shape[0])
    elif given["sample_weight"] is not None:
        missing = f"no column {given['sample_weight']!r} of weights as in the fit"
        note(f"{prefix}{missing}, so all rows count the same")
    if has["groups"]:
        labels = labels_of_groups(file, table.X, given["groups"])
        groups = group_numbers(labels, table.X.shape[0])
    elif saved.last.fitted_.units_of_fit.grouped:
        column = f"column {given['groups']!r} of " if given["groups"] else ""
        note(
            f"{prefix}no {column}groups as in the fit, so each row counts as one draw: standard "
            "errors are too small if some belong together"
        )
    with catch_messages():
        predictions = Predictions(saved, table.X)
    scores, baselines = predictions.scores(table.y, weight, groups)
    saved.tell_remarks(prefix)
    for remark in predictions.trained_on():
        note(f"{prefix}{remark}")
    return predictions, scores, baselines


def joined(members: AnyArray, labels: list[str]) -> AnyArray:
    """(m,) labels of each row of (m, n_classes) memberships, with bars between them."""
    if any(SEPARATOR in label for label in labels):
        message = f"labels hold {SEPARATOR!r}, which also separates the labels of a set"
        warnings.warn(message, stacklevel=2)
    sets = [
        SEPARATOR.join(label for label, member in zip(labels, row, strict=True) if member)
        for row in members
    ]
    return np.array(sets, dtype=object)
