"""Models of files that `looms.model_files.save_model` wrote, in the form of those of looms fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from looms import (
    SVCCV,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    NonconformityClassifier,
)
from looms._typing import Matrix
from looms.cli._errors import InputError
from looms.cli._target import Features
from looms.model_files._files import SavedModel
from looms.tables._transformers import TableColumns

if TYPE_CHECKING:
    import pandas as pd

#: Value of --machine by estimator.
_KINDS = {SVCCV: "svm", NonconformityClassifier: "nonconformity"} | dict.fromkeys(
    (LSSVMClassifier, LSSVMClassifierCV, LSSVMRegressor, LSSVMRegressorCV), "lssvm"
)


class _Fitted(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer that learns nothing."""

    def fit(self, X: Any, y: object = None) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _Columns(_Fitted):
    """Columns of a table by the names that a model was fitted to, or all if there were none."""

    #: Kinds of columns that are known; a saved pipeline does not tell them.
    kinds: Mapping[str, str] = {}

    def __init__(self, names: list[str] | None) -> None:
        self.names = names

    def transform(self, X: Features) -> Features:
        if self.names is None or issparse(X):
            return X
        absent = [name for name in self.names if name not in X.columns]
        if absent:
            raise ValueError(
                f"{len(absent)} of the model's {len(self.names)} columns are missing: "
                f"{', '.join(map(repr, absent[:10]))}"
            )
        return X[self.names]


class _Steps(_Fitted):
    """Fitted steps before a machine, or none; without names they take an array."""

    def __init__(self, steps: Pipeline | None, named: bool) -> None:
        self.steps, self.named = steps, named

    def transform(self, X: pd.DataFrame | Matrix) -> Any:
        if not self.named and not issparse(X):
            X = X.to_numpy(dtype=float)
        return X if self.steps is None else self.steps.transform(X)


def completed(saved: SavedModel, path: Path) -> SavedModel:
    """A model of `save_model` as two steps, preparation and machine, with the metadata of a fit.

    Of its own metadata only ``target`` counts, the name of the column to predict. Refuses models
    that do not end in a fitted machine of looms.
    """
    model = saved.model
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    machine = steps[-1]
    kind = _KINDS.get(type(machine))
    if kind is None:
        raise InputError(
            f"{path}: the model ends in {type(machine).__name__}, and the command line takes "
            "machines of looms fit; use looms.model_files.load_model in Python"
        )
    try:
        check_is_fitted(machine)
    except NotFittedError:
        raise InputError(f"{path}: the model is not fitted; fit it, and save it again") from None
    if getattr(machine, "kernel_", None) is not None and machine.kernel_.pairwise:
        raise InputError(
            f"{path}: the model takes kernel values, and the command line takes rows of features"
        )
    before, columns = _preparation(steps)
    held_out = getattr(machine, "loo_", None)
    target = saved.metadata.get("target")
    metadata = {
        "task": "classification" if is_classifier(machine) else "regression",
        "target": target if isinstance(target, str) else None,
        "columns": columns,
        "ranges": {},
        "n_rows": len(machine.validation_) if held_out is None else held_out.n_samples,
        "n_features": model.n_features_in_,
        "options": {"machine": kind},
        "file": path.name,
        "looms_version": saved.metadata["looms_version"],
    }
    return SavedModel(Pipeline([("table", before), ("machine", machine)]), metadata)


def _preparation(steps: list[Any]) -> tuple[Pipeline, dict[str, str]]:
    """What comes before the machine, as two steps, and types of columns by name; empty if none.

    The preprocessor of `looms.tables` is such steps itself.
    """
    first = steps[0]
    if len(steps) == 2 and isinstance(first, Pipeline) and isinstance(first[0], TableColumns):
        return first, dict.fromkeys(first[0].kinds, "")
    names = getattr(first, "feature_names_in_", None)
    own = None if names is None else [str(name) for name in names]
    rest = Pipeline([(f"step{k}", step) for k, step in enumerate(steps[:-1])])
    prepared = _Steps(rest if len(steps) > 1 else None, own is not None)
    return Pipeline([("columns", _Columns(own)), ("matrix", prepared)]), dict.fromkeys(
        own or (), ""
    )
