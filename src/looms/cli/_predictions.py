"""Predictions of a fitted model, and notes on the rows, a block at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from looms import predict_interval, predict_set
from looms._checks import check_share
from looms._scores import number_scores
from looms._typing import AnyArray
from looms._words import count
from looms.cli._errors import InputError
from looms.cli._model import Fitted, fitting
from looms.cli._options import IntervalMethod
from looms.cli._output import as_messages, note, refused
from looms.cli._scores import class_scores
from looms.cli._target import Column, numbers, text
from looms.datasets._table import Table
from looms.duplicates import duplicate_groups

#: What decides, and the method of a model that gives it.
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

    def prepare(self, saved: Fitted, path: Path) -> None:
        """Refuse options of the other task, and make the models that the file does not hold.

        Nothing is tuned: they are the closed forms of the model that there is.
        """
        name, other = "--class-conditional", "classification"
        if saved.is_classifier:
            name, other = "--method", "regression"
        if self.method if saved.is_classifier else self.class_conditional:
            raise InputError(f"{name} is for {other}, but {path} is for {saved.metadata['task']}")
        if self.confidence_level is None or not hasattr(saved.last, "held_out_"):
            return
        nested = saved.last._nested_scores is not None
        saved.last.evaluate(nested=nested)
        if nested and self.method in ("minmax", "scaled"):
            saved.last.evaluate(nested=False)

    def columns(self, of: Predictions) -> dict[str, AnyArray]:
        """Columns ``lower`` and ``upper``, or ``set``; none if not asked for."""
        if self.confidence_level is None:
            return {}
        saved, level = of.saved, self.confidence_level
        data: tuple[Any, Any] = (saved.own, of.matrix)
        if getattr(saved.last, "_nested_scores", None) is not None:
            data = saved.model, of.rows  # models without each fold may prepare the rows anew
        # ValueError: a higher level than the rows of the model can give.
        with refused(f"--confidence-level {level:g}: "):
            if not saved.is_classifier:
                lower, upper = predict_interval(*data, level, method=self.method or "plus").T
                return {"lower": lower, "upper": upper}
            sets = predict_set(*data, level, class_conditional=self.class_conditional)
        return {"set": joined(sets, [str(label) for label in saved.classes])}


class Predictions:
    """Outputs of a model for some rows, from one pass of the steps that prepare them.

    Rows that the model cannot take are refused. Warnings of the model are left to the caller: see
    `as_messages`. ``machine``, if given, replaces the model of prepared rows.

    Attributes
    ----------
    matrix : prepared rows.
    predicted, decision : the decision values of a regression are the predictions, those of
        nonconformity the p-values.
    probabilities : None if the model has none.
    """

    def __init__(self, saved: Fitted, X: Any, machine: Any = None) -> None:
        machine, steps = machine or saved.own, saved.parts.steps
        with refused("the model cannot take these rows: ", (ValueError, TypeError)):
            self.saved, self.rows = saved, fitting(saved, X)
            self.matrix = self.rows
            if saved.unlike is not None:
                self.matrix, steps = saved.unlike.add(self.rows), steps[1:]
            for _, step in steps:
                self.matrix = step.transform(self.matrix)
            self.predicted: AnyArray = machine.predict(self.matrix)
            self.decision: AnyArray = self.predicted
            self.probabilities: AnyArray | None = None
            for self.kind, method in _DECIDING.items():
                if hasattr(machine, method):
                    self.decision = getattr(machine, method)(self.matrix)
                    break
            if hasattr(machine, "predict_proba"):
                self.probabilities = machine.predict_proba(self.matrix)

    def outputs(self) -> dict[str, AnyArray]:
        """Columns of predictions, decision values and probabilities, if the model has them."""
        columns = {"prediction": self.predicted}
        if not self.saved.is_classifier:
            return columns
        classes = self.saved.classes
        decided = classes[1:] if self.decision.ndim == 1 else classes
        values = self.decision.reshape(len(self.predicted), -1)
        columns |= {f"{self.kind}_{c}": values[:, k] for k, c in enumerate(decided)}
        if self.probabilities is not None:
            columns |= {f"probability_{c}": self.probabilities[:, k] for k, c in enumerate(classes)}
        return columns

    def scores(self, y: Column) -> dict[str, float]:
        """Scores against the target of the rows, as it was read."""
        if not self.saved.is_classifier:
            scores = number_scores(numbers(y), self.predicted[None], np.ones(len(self.predicted)))
            return {key: value for key, (value, _) in scores.items()}
        classes, truth, predicted = map(text, (self.saved.classes, y, self.predicted))
        decision = self.decision
        if decision.ndim == 2 and len(classes) == 2:
            decision = decision[:, 1] - decision[:, 0]
        return class_scores(truth, predicted, decision, classes, self.probabilities)

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
                "row: if they are the same rows, the scores are optimistic; looms assess gives "
                "unbiased ones"
            )


def scored(saved: Fitted, table: Table, prefix: str = "") -> tuple[Predictions, dict[str, Any]]:
    """Predictions of rows with a target, their number and scores; notes are on the rows."""
    with as_messages():
        predictions = Predictions(saved, table.X)
    scores = predictions.scores(table.y)
    for remark in (*saved.remarks(), *predictions.trained_on()):
        note(f"{prefix}{remark}")
    return predictions, {"n_rows": len(predictions.predicted), "figures": scores}


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
