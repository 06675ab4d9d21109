"""The machine inside a pipeline or a search."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from looms.estimators._base import LeastSquaresMachine
from looms.estimators._svc_cv import SVCCV


def machine_of(model: Any) -> LeastSquaresMachine | SVCCV | None:
    """The machine of looms, with leave-one-out outputs, that gives a model's outputs.

    Parameters
    ----------
    model : estimator
        Of a pipeline the last step counts, of a search its ``best_estimator_``.

    Returns
    -------
    machine : estimator or None
        A least-squares machine or `SVCCV`, fitted if the model is; None if there is none.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from looms import LSSVMRegressor
    >>> machine_of(make_pipeline(StandardScaler(), LSSVMRegressor()))
    LSSVMRegressor()
    """
    if isinstance(model, Pipeline):
        return machine_of(model.steps[-1][1])
    if hasattr(model, "best_estimator_"):
        return machine_of(model.best_estimator_)
    return model if isinstance(model, LeastSquaresMachine | SVCCV) else None
