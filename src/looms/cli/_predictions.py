"""Predictions of a saved model, and notes on the rows, a block at a time."""

from __future__ import annotations

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
from looms._words import count
from looms.cli._errors import InputError
from looms.cli._figures import class_figures
from looms.cli._model import before_of, keeps_rows, last_of, of_prepared
from looms.cli._options import IntervalMethod
from looms.cli._output import refused
from looms.cli._target import Column, Features, numbers, text
from looms.duplicates import duplicate_groups
from looms.estimators._scored import ScoredMachine
from looms.estimators._tabular import Tabular
from looms.model_files._files import SavedModel
from looms.tables import TablePreprocessor
from looms.tables._unlike import Unlike

#: What decides, and the method of a machine that gives it.
_DECIDING = {"decision": "decision_function", "p_value": "p_values"}
#: Separator of the labels of a set.
SEPARATOR = "|"


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
        if self.confidence_level is not None:
            with refused():
                check_share(self.confidence_level, "confidence_level")
            return
        for name in (name for name, value in given.items() if value):
            raise InputError(f"{name} goes with --confidence-level, such as --confidence-level 0.9")

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
    `as_messages`. ``machine``, if given, replaces that of the model; ``unlike`` counts the rows.

    Attributes
    ----------
    matrix : what the machine takes.
    predicted, decision : the decision values of a regression are the predictions, those of
        nonconformity the p-values.
    probabilities : None if the machine has none.
    """

    def __init__(
        self,
        saved: SavedModel,
        X: Features,
        machine: Any = None,
        unlike: Unlike | None = None,
    ) -> None:
        self.saved, self.rows, before = saved, X, before_of(saved.model)
        self.own = of_prepared(saved.model)
        machine = self.own if machine is None else machine
        with refused("the model cannot take these rows: ", (ValueError, TypeError)):
            self.matrix: Matrix = before.transform(X) if unlike is None else unlike.add(X)
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
            machine = self.own
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
        """Columns ``lower`` and ``upper``, or ``set``; none if not asked for."""
        if request.confidence_level is None:
            return {}
        machine, rows = self.own, self.matrix
        whole = last_of(self.saved.model)
        if isinstance(whole, Tabular) and keeps_rows(whole) and whole._nested_scores is not None:
            machine, rows = whole, self.rows  # models without each fold prepare the rows anew
        if isinstance(machine, ScoredMachine):
            make_models(machine, request.method)
        # ValueError: a higher level than the rows of the model can give.
        with refused(f"--confidence-level {request.confidence_level:g}: "):
            if self.saved.metadata["task"] == "regression":
                method = request.method or "plus"
                lower, upper = machine.predict_interval(rows, request.confidence_level, method).T
                return {"lower": lower, "upper": upper}
            sets = machine.predict_set(rows, request.confidence_level, request.class_conditional)
        return {"set": joined(sets, [str(label) for label in machine.classes_])}

    def figures(self, y: Column) -> dict[str, float]:
        """Figures against the target of the rows, as it was read."""
        if self.saved.metadata["task"] == "regression":
            scores = number_scores(numbers(y), self.predicted[None], np.ones(len(self.predicted)))
            return {key: value for key, (value, _) in scores.items()}
        classes, truth, predicted = map(text, (self.own.classes_, y, self.predicted))
        decision = self.decision
        if decision.ndim == 2 and len(classes) == 2:
            decision = decision[:, 1] - decision[:, 0]
        return class_figures(truth, predicted, decision, classes, self.probabilities)

    def trained_on(self) -> Iterator[str]:
        """A note on rows equal to training rows."""
        if not keeps_rows(self.saved.model):  # of a table in blocks
            return
        known, new = getattr(self.own, "machine_", self.own).X_fit_, self.matrix
        if sparse.issparse(new):
            groups = duplicate_groups(sparse.csr_array(sparse.vstack([known, new])))
        else:
            groups = duplicate_groups(np.vstack([known, new]))
        n = int(np.isin(groups[known.shape[0] :], groups[: known.shape[0]]).sum())
        if n:
            yield (
                f"in {count(n, 'row')} of {new.shape[0]} all features equal those of a training "
                "row: if they are the same rows, the figures flatter the model; looms assess gives "
                "honest ones"
            )


def unlike_of(saved: SavedModel) -> Unlike | None:
    """Counts of rows unlike those of the fit; None for a model without a table's preprocessor."""
    before = before_of(saved.model)
    return Unlike(before) if isinstance(before, TablePreprocessor) else None


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


def make_models(machine: ScoredMachine, method: str | None) -> None:
    """Make the models of intervals and sets that the file of a machine does not hold.

    Nothing is tuned: they are the closed forms of the machine that there is.
    """
    repeated = bool(machine._nested_scores)
    if repeated and not isinstance(machine, Tabular):
        machine.evaluate()  # kept, but for numbers that follow from it
    if not repeated or method == "scaled" or (method == "minmax" and hasattr(machine, "machine_")):
        machine.evaluate(nested=False)
