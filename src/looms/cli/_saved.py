"""Models of files that `looms.model_files.save_model` wrote, in the form of those of looms fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from looms.cli._errors import InputError
from looms.cli._target import Features
from looms.model_files._files import SavedModel
from looms.tables._transformers import TableColumns


def completed(saved: SavedModel, path: Path) -> SavedModel:
    """A model of `save_model` as two steps, preparation and machine, with the metadata of a fit.

    Of its own metadata only ``target`` counts, the name of the column to predict. Refuses models
    that do not end in a fitted machine of looms.
    """
    model = saved.model
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    machine = steps[-1]
    try:
        check_is_fitted(machine)
    except NotFittedError:
        raise InputError(f"{path}: the model is not fitted; fit it, and save it again") from None
    known = [getattr(machine, name) for name in ("loo_", "validation_") if hasattr(machine, name)]
    if not known:
        raise InputError(
            f"{path}: the model ends in {type(machine).__name__}, and the command line takes "
            "machines of looms fit; use looms.model_files.load_model in Python"
        )
    kernel = getattr(getattr(machine, "machine_", machine), "kernel_", None)
    if kernel is not None and kernel.pairwise:
        raise InputError(
            f"{path}: the model takes kernel values, and the command line takes rows of features"
        )
    before, columns = _preparation(steps)
    target = saved.metadata.get("target")
    metadata = {
        "task": "classification" if is_classifier(machine) else "regression",
        "target": target if isinstance(target, str) else None,
        "columns": columns,
        "ranges": {},
        "n_rows": known[0].n_samples if hasattr(known[0], "n_samples") else len(known[0]),
        "n_features": model.n_features_in_,
        "options": {},
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
    named = getattr(first, "feature_names_in_", None)
    names = None if named is None else [str(name) for name in named]
    rest = Pipeline([(f"step{k}", step) for k, step in enumerate(steps[:-1])])

    def columns(X: Features) -> Features:
        """Columns by the names that the model was fitted to, or all if there were none."""
        if names is None or issparse(X):
            return X
        absent = [name for name in names if name not in X.columns]
        if absent:
            raise ValueError(
                f"{len(absent)} of the model's {len(names)} columns are missing: "
                f"{', '.join(map(repr, absent[:10]))}"
            )
        return X[names]

    def matrix(X: Features) -> Any:
        """What the machine takes; without names the steps before it take an array."""
        if names is None and not issparse(X):
            X = X.to_numpy(dtype=float)
        return rest.transform(X) if rest.steps else X

    both = [("columns", FunctionTransformer(columns)), ("matrix", FunctionTransformer(matrix))]
    return Pipeline(both), dict.fromkeys(names or (), "")
