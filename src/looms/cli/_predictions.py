"""Predictions of a saved model, and notes on the rows, a block at a time."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from looms._checks import check_share
from looms._scores import number_scores
from looms._typing import AnyArray, Matrix
from looms._words import count, listed
from looms.cli._errors import InputError
from looms.cli._figures import class_figures
from looms.cli._options import IntervalMethod
from looms.cli._output import refused
from looms.cli._target import DATES, Column, Features, date_notes, numbers, text
from looms.copies import copy_groups
from looms.estimators._scored import ScoredMachine
from looms.model_files._files import SavedModel

#: What decides, and the method of a machine that gives it.
_DECIDING = {"decision": "decision_function", "p_value": "p_values"}
#: Separator of the labels of a set.
SEPARATOR = "|"
#: A value is far outside if it exceeds the training range by this share of its width.
FAR = 0.25
#: Largest number of notes on columns, and of columns in a note.
MOST_NOTES = MOST_COLUMNS = 5


@dataclass(frozen=True)
class CoverageRequest:
    """Intervals or sets to predict; without a coverage, neither.

    Parameters
    ----------
    coverage
        Share of rows to cover, such as 0.9: adds lower and upper, or a set of labels.
    method
        Intervals: jackknife+ (default), minmax, or scaled.
    class_conditional
        Sets that cover this share of every class.
    """

    coverage: float | None = None
    method: IntervalMethod | None = None
    class_conditional: bool = False

    def __post_init__(self) -> None:
        """Refuse impossible options."""
        given = {"--method": self.method, "--class-conditional": self.class_conditional}
        if self.coverage is not None:
            with refused():
                check_share(self.coverage, "coverage")
            return
        for name in (name for name, value in given.items() if value):
            raise InputError(f"{name} goes with --coverage, such as --coverage 0.9")

    def check_model(self, saved: SavedModel, path: Path) -> None:
        """Refuse options of the other task."""
        task = saved.metadata["task"]
        name, other = "--class-conditional", "classification"
        if task == "classification":
            name, other = "--method", "regression"
        if self.class_conditional if task == "regression" else self.method:
            raise InputError(f"{name} is for {other}, but {path} is for {task}")


class Predictions:
    """Outputs of a saved model for some rows, from one pass of its preprocessor.

    Rows that the model cannot take are refused. Warnings of the machine are left to the caller: see
    `as_messages`. ``machine``, if given, replaces that of the model.

    Attributes
    ----------
    columns : rows as floats and text, or a sparse matrix.
    matrix : what the machine takes.
    predicted, decision : the decision values of a regression are the predictions, those of
        nonconformity the p-values.
    probabilities : None if the machine has none.
    """

    def __init__(self, saved: SavedModel, X: Features, machine: Any = None) -> None:
        self.saved, (before, own) = saved, saved.model
        machine = own if machine is None else machine
        with refused("the model cannot take these rows: ", (ValueError, TypeError)):
            self.columns: Features = before[:-1].transform(X)
            self.matrix: Matrix = before[-1].transform(self.columns)
            self.predicted: AnyArray = machine.predict(self.matrix)
            self.decision: AnyArray = self.predicted
            self.probabilities: AnyArray | None = None
            for method in _DECIDING.values():
                if hasattr(machine, method):
                    self.decision = getattr(machine, method)(self.matrix)
            if hasattr(machine, "predict_proba"):
                self.probabilities = machine.predict_proba(self.matrix)

    def outputs(self) -> dict[str, AnyArray]:
        """Columns of predictions, decision values and probabilities, if the model has them."""
        columns = {"prediction": self.predicted}
        if self.saved.metadata["task"] == "classification":
            machine = self.saved.model[-1]
            classes = machine.classes_
            decided = classes[1:] if self.decision.ndim == 1 else classes
            values = self.decision.reshape(len(self.predicted), -1)
            (kind,) = (kind for kind, method in _DECIDING.items() if hasattr(machine, method))
            columns |= {f"{kind}_{c}": values[:, k] for k, c in enumerate(decided)}
            if self.probabilities is not None:
                columns |= {
                    f"probability_{c}": self.probabilities[:, k] for k, c in enumerate(classes)
                }
        return columns

    def covering(self, request: CoverageRequest) -> dict[str, AnyArray]:
        """Columns ``lower`` and ``upper``, or ``set``; none if no coverage was asked for."""
        if request.coverage is None:
            return {}
        machine = self.saved.model[-1]
        if isinstance(machine, ScoredMachine):
            make_models(machine, request.method)
        # ValueError: more coverage than the rows of the model can give.
        with refused(f"--coverage {request.coverage:g}: "):
            if self.saved.metadata["task"] == "regression":
                method = request.method or "plus"
                lower, upper = machine.predict_interval(self.matrix, request.coverage, method).T
                return {"lower": lower, "upper": upper}
            sets = machine.predict_set(self.matrix, request.coverage, request.class_conditional)
        return {"set": joined(sets, [str(label) for label in machine.classes_])}

    def figures(self, y: Column) -> dict[str, float]:
        """Figures against the target of the rows, as it was read."""
        if self.saved.metadata["task"] == "regression":
            scores = number_scores(numbers(y), self.predicted[None], np.ones(len(self.predicted)))
            return {key: value for key, (value, _) in scores.items()}
        classes, truth, predicted = map(text, (self.saved.model[-1].classes_, y, self.predicted))
        decision = self.decision
        if decision.ndim == 2 and len(classes) == 2:
            decision = decision[:, 1] - decision[:, 0]
        return class_figures(truth, predicted, decision, classes, self.probabilities)

    def trained_on(self) -> Iterator[str]:
        """A note on rows equal to training rows."""
        machine = self.saved.model[-1]
        known, new = getattr(machine, "machine_", machine).X_fit_, self.matrix
        if known is None:  # of a table in blocks, which is not kept
            return
        if sparse.issparse(new):
            groups = copy_groups(sparse.csr_array(sparse.vstack([known, new])))
        else:
            groups = copy_groups(np.vstack([known, new]))
        n = int(np.isin(groups[known.shape[0] :], groups[: known.shape[0]]).sum())
        if n:
            yield (
                f"in {count(n, 'row')} of {new.shape[0]} all features equal those of a training "
                "row: if they are the same rows, the figures flatter the model; looms assess gives "
                "honest ones"
            )


@dataclass
class _Far:
    """Values of a column far outside its range: in how many and which rows, and the furthest."""

    rows: Any
    n: int = 0
    beyond: float = 0.0
    furthest: float = 0.0


class Unlike:
    """Rows unlike those that a model was fitted to, counted block by block.

    Attributes
    ----------
    n_rows : number of rows so far.
    """

    def __init__(self, saved: SavedModel) -> None:
        self.n_rows, self._saved = 0, saved
        self._kinds: dict[str, str] = {}
        self._valued: dict[str, bool] = {}
        self._far: dict[str, _Far] = {}
        self._foreign: dict[str, tuple[int, object]] = {}
        self._known: dict[str, AnyArray] = {}
        if saved.metadata["columns"] is not None:
            before = saved.model[0]
            self._kinds = getattr(before["columns"], "kinds", {})
            names = [name for name, kind in self._kinds.items() if kind == "category"]
            if names:
                encoder = before["matrix"].named_transformers_["categories"]
                self._known = dict(zip(names, encoder.categories_, strict=True))

    def add(self, columns: Features) -> None:
        """Count some rows, given as floats and text."""
        self.n_rows += columns.shape[0]
        if sparse.issparse(columns):
            return
        for name in columns:
            self._valued[name] = self._valued.get(name, False) or columns[name].notna().any()
        for name, (low, high) in self._saved.metadata["ranges"].items():
            values = columns[name].to_numpy()
            beyond = np.fmax(low - values, values - high)
            far = beyond > FAR * (high - low)
            of = self._far.setdefault(name, _Far(hashlib.sha256()))
            of.rows.update(far.tobytes())
            of.n += int(far.sum())
            if far.any() and np.nanmax(beyond) > of.beyond:
                of.beyond, of.furthest = np.nanmax(beyond), values[np.nanargmax(beyond)]
        for name, known in self._known.items():
            column = columns[name]
            foreign = ~column.isin(known) & ~column.isna()
            if foreign.any():
                n, first = self._foreign.get(name, (0, column[foreign].iloc[0]))
                self._foreign[name] = n + int(foreign.sum()), first

    def notes(self) -> Iterator[str]:
        """Notes on dates, values far outside their range, and categories not seen in training."""
        yield from date_notes(self._kinds)
        empty = [name for name, valued in self._valued.items() if not valued]
        if empty:
            yield f"no row has a value of {listed(empty)}: typical values are used instead"
        of_all = f"of {count(self.n_rows, 'row')}"
        far: dict[bytes, tuple[int, list[str]]] = {}  # by the rows, which several columns may share
        for name, of in self._far.items():
            if of.n:
                limits = (*self._saved.metadata["ranges"][name], of.furthest)
                least, most, furthest = (_shown(value, self._kinds[name]) for value in limits)
                far.setdefault(of.rows.digest(), (of.n, []))[1].append(
                    f"{name!r} is far outside its training range, {least} to {most}, furthest "
                    f"{furthest}"
                )
        remarks = []
        for n, each in far.values():
            more = len(each) - MOST_COLUMNS
            named = " and ".join(each[:MOST_COLUMNS]) + f" and {more} more" * (more > 0)
            remarks.append((n, f"in {n} {of_all} {named}; predictions there are extrapolated"))
        for name in self._known:
            if name not in self._foreign:
                continue
            n, first = self._foreign[name]
            what = "has a value that no training row has"
            remarks.append(
                (n, f"in {n} {of_all} {name!r} {what}, first {first!r}: it tells the model nothing")
            )
        remarks.sort(key=lambda each: -each[0])
        for _, remark in remarks[:MOST_NOTES]:
            yield remark
        if len(remarks) > MOST_NOTES:
            yield f"{len(remarks) - MOST_NOTES} more such notes are left out"


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


def _shown(value: float, kind: str) -> str:
    if kind in DATES:
        return str(np.datetime64("1970-01-01") + np.timedelta64(round(value), "D"))
    return f"{value:.6g}"


def make_models(machine: ScoredMachine, method: str | None) -> None:
    """Make the models of intervals and sets that the file of a machine does not hold."""
    closed = method == "scaled" or (method == "minmax" and hasattr(machine, "machine_"))
    if machine._nested_scores is not None:
        machine.evaluate()
    elif machine._in_folds is None:
        closed = True
    if closed:
        machine.evaluate(nested=False)
