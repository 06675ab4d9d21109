"""An estimator in words."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def estimator_text(estimator: Any) -> str:
    """An estimator in a line: of a pipeline the names of the steps, and the last one whole."""
    if isinstance(estimator, Pipeline):
        *before, (_, last) = estimator.steps
        names = [name if isinstance(step, Pipeline) else _class(step) for name, step in before]
        return " → ".join([*names, estimator_text(last)])
    return " ".join(repr(estimator).split())


def _class(step: Any) -> str:
    return step if isinstance(step, str) else type(step).__name__
