"""A model of a table, or a machine of matrices after a preprocessor, as the commands take them."""

from __future__ import annotations

from copy import copy
from typing import Any

from sklearn.pipeline import Pipeline

from looms.estimators._tabular import Tabular


def last_of(model: Any) -> Any:
    """A model of tables itself; of a pipeline the machine at its end."""
    return model if isinstance(model, Tabular) else model[-1]


def before_of(model: Any) -> Any:
    """Fitted transformer of the columns."""
    return model.preprocessor_ if isinstance(model, Tabular) else model[0]


def of_prepared(model: Any) -> Any:
    """The same model for columns that `before_of` has prepared."""
    if not isinstance(model, Tabular):
        return model[-1]
    one = copy(model)
    one.preprocessor_ = None
    return one


def keeps_rows(model: Any) -> bool:
    """False for a model, or the machine at its end, that was fitted to rows in blocks."""
    machine = model[-1] if isinstance(model, Pipeline) else model
    return getattr(getattr(machine, "machine_", machine), "X_fit_", None) is not None
