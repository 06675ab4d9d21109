"""Classes and probabilities of held-out outputs, each row decided once or several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from looms._typing import AnyArray, Array
from looms.calibration._calibrators import Calibrator


@dataclass(frozen=True, eq=False)
class Rule:
    """How outputs become classes and probabilities.

    Attributes
    ----------
    threshold : of the outputs; (n_classes,) for several classes with a softmax.
    calibrator : of the probabilities, or None.
    tie : difference up to which outputs for labels are equal.
    """

    threshold: float | Array
    calibrator: Calibrator | None
    tie: float


class Decided(NamedTuple):
    """Rows that were held out, some of them several times, with their classes and probabilities.

    Attributes
    ----------
    rows : (m,) a row may be there several times.
    outputs : (m,) or (m, n_classes).
    shares : (m, n_classes) share of each class in the decision; equal for classes that tie.
    probabilities : (m, n_classes), or None.
    """

    rows: AnyArray
    outputs: Array
    shares: Array
    probabilities: Array | None


@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """Decisions on every row, each by models that have not seen it.

    Attributes
    ----------
    outputs : (n,) or (n, n_classes) means over the decisions on a row.
    predicted : (n,) index of the class that most of them give, the first one if tied.
    wrong : (n,) share of them that is wrong; a tie counts by parts.
    probabilities : (n, n_classes) means over them, or None.
    losses : (n,) mean over them of −log p of the true class, or None.
    """

    outputs: Array
    predicted: AnyArray
    wrong: Array
    probabilities: Array | None
    losses: Array | None

    def __repr__(self) -> str:
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        shapes = [f"{name} {np.shape(one)}" for name, one in arrays.items() if one is not None]
        return f"Decisions with {', '.join(shapes)}"

    def among(self, rows: AnyArray) -> Self:
        """The decisions on some of the rows."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        some: dict[str, Any] = {k: None if a is None else a[rows] for k, a in arrays.items()}
        return replace(self, **some)

    @classmethod
    def of(cls, decided: Sequence[Decided], labels: AnyArray) -> Decisions:
        """Decisions on every row, each of which is decided at least once."""
        rows, n = np.concatenate([one.rows for one in decided]), len(labels)
        shares = np.concatenate([one.shares for one in decided])
        votes = np.zeros((n, shares.shape[1]))
        np.add.at(votes, rows, shares)
        outputs = means(rows, np.concatenate([one.outputs for one in decided]), n)
        wrong = 1.0 - votes[np.arange(n), labels] / np.bincount(rows, minlength=n)
        if decided[0].probabilities is None:
            return cls(outputs, votes.argmax(axis=1), wrong, None, None)
        p = np.concatenate([one.probabilities for one in decided if one.probabilities is not None])
        own = np.maximum(p[np.arange(len(rows)), labels[rows]], np.finfo(np.float64).eps)
        probabilities, losses = means(rows, p, n), means(rows, -np.log(own), n)
        return cls(outputs, votes.argmax(axis=1), wrong, probabilities, losses)


def means(rows: AnyArray, values: Array, n: int) -> Array:
    """(n, ...) means of the values of each row, of which some have several."""
    sums, count = np.zeros((n, *values.shape[1:])), np.bincount(rows, minlength=n)
    np.add.at(sums, rows, (values.T / count[rows]).T)
    return sums


#: Area under the ROC curve, and what each row adds to its deviation.
Area: TypeAlias = tuple[float, Array]
#: Decisions on held-out rows, and the area; None for an outcome without one.
Made: TypeAlias = tuple[Decisions, Area | None]
