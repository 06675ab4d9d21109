"""Intervals and sets of predictions that cover a share of new rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from looms._typing import AnyArray
from looms.cli._errors import InputError
from looms.cli._options import IntervalMethod
from looms.cli._say import count, note, warnings_as_notes
from looms.model_files._files import SavedModel

#: Between the labels of a set.
SEPARATOR = "|"


@dataclass(frozen=True)
class CoverageRequest:
    """What was asked for.

    Attributes
    ----------
    coverage : nominal share of rows whose target is in their interval or set; None for neither.
    method : of intervals, or None for that of the estimator.
    class_conditional : whether sets have the share in every class.
    """

    coverage: float | None
    method: IntervalMethod | None
    class_conditional: bool

    def check(self) -> None:
        """Refuse what cannot be, before any work."""
        if self.coverage is None:
            for name in self._given():
                raise InputError(f"{name} goes with --coverage, such as --coverage 0.9")
        elif not 0 < self.coverage < 1:
            raise InputError(
                f"--coverage must be between 0 and 1, both excluded, not {self.coverage:g}"
            )

    def check_model(self, saved: SavedModel, path: Path) -> None:
        """Refuse models without intervals or sets, and options of the other task."""
        if self.coverage is None:
            return
        regression = saved.metadata["task"] == "regression"
        what = "intervals" if regression else "sets"
        machine = saved.model[-1]
        if not hasattr(machine, "predict_interval" if regression else "predict_set"):
            raise InputError(
                f"--coverage: {path} is of {type(machine).__name__}, which has no prediction "
                f"{what}; fit one with --machine lssvm"
            )
        other = {"--class-conditional"} if regression else {"--method"}
        for name in self._given():
            if name in other:
                task = "classification" if regression else "regression"
                raise InputError(f"{name} is for {task}, and {path} is of {saved.metadata['task']}")

    def columns(self, saved: SavedModel, X: Any) -> dict[str, AnyArray]:
        """``lower`` and ``upper``, or ``set``; no column if none was asked for.

        The rows must be such that the model takes them.
        """
        if self.coverage is None:
            return {}
        machine, matrix = saved.model[-1], saved.model[:-1].transform(X)
        try:
            with warnings_as_notes():
                if saved.metadata["task"] == "regression":
                    method = self.method or IntervalMethod.PLUS
                    found = machine.predict_interval(matrix, self.coverage, str(method))
                    return {"lower": found[:, 0], "upper": found[:, 1]}
                found = machine.predict_set(matrix, self.coverage, self.class_conditional)
        except np.linalg.LinAlgError:  # a ValueError too, and not the fault of the option
            raise
        except ValueError as error:  # more coverage than the rows of the model can give
            raise InputError(f"--coverage {self.coverage:g}: {error}") from error
        n_empty = int((~found.any(axis=1)).sum())
        if n_empty:
            note(
                f"{count(n_empty, 'set')} of {len(found)} {'is' if n_empty == 1 else 'are'} empty: "
                f"at coverage {self.coverage:g} such a row is typical of no class of the training "
                "rows"
            )
        return {"set": joined(found, [str(label) for label in machine.classes_])}

    def _given(self) -> list[str]:
        given = {"--method": self.method, "--class-conditional": self.class_conditional}
        return [name for name, value in given.items() if value]


def joined(members: AnyArray, labels: list[str]) -> AnyArray:
    """(m,) labels of every row of (m, n_classes) memberships, with bars between them."""
    if any(SEPARATOR in label for label in labels):
        note(f"labels hold {SEPARATOR!r}, which is between the labels of a set, too")
    sets = [
        SEPARATOR.join(label for label, isin in zip(labels, row, strict=True) if isin)
        for row in members
    ]
    return np.array(sets, dtype=object)
