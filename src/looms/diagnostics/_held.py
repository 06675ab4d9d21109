"""Hyper-parameters held: from an estimator to the machine that refits leave as it is.

Refits at fixed hyper-parameters are what every statistic here is made of, so whatever an
estimator takes from the data to set a hyper-parameter is taken once, from the whole sample.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from looms._classes import class_indices
from looms._typing import AnyArray
from looms.estimators import SVCCV, LSSVMClassifier, LSSVMClassifierCV
from looms.estimators._weights import class_weights

#: Of LIBSVM, where it refits a machine that was solved to machine precision.
_TOLERANCE = 1e-6


def fitted_on(estimator: Any, X: Any, y: AnyArray) -> Any:
    """The estimator if it is fitted, else a clone fitted to the sample.

    A search is replaced by the best one that it found, also at the end of a pipeline.

    Raises
    ------
    ValueError
        If a search was told not to refit.
    """
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        estimator = clone(estimator).fit(X, y)
    return _without_search(estimator)


def _without_search(estimator: Any) -> Any:
    """A fitted estimator, or what it chose if it is a search."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return Pipeline([*estimator.steps[:-1], (name, _without_search(last))])
    if not isinstance(estimator, BaseSearchCV):
        return estimator
    if not hasattr(estimator, "best_estimator_"):
        raise ValueError(
            f"{type(estimator).__name__} has no best_estimator_: use refit=True, or pass the "
            "estimator with the parameters that it chose."
        )
    return _without_search(estimator.best_estimator_)


@singledispatch
def held(fitted: Any, X: Any) -> Any:
    """The estimator with everything that it chose written into its parameters, not fitted.

    Parameters
    ----------
    fitted : what chose. Other types than these are cloned as they are, so that others that choose
        while they are fitted, such as `LogisticRegressionCV`, choose again in every refit.
    X : what it was fitted to, or what its refits start from.
    """
    return clone(fitted)


@held.register
def _(fitted: SVC | NuSVC, X: Any) -> Any:
    machine = clone(fitted)
    if fitted.probability is True:  # these would be of other machines, and not asked for
        machine.set_params(probability=type(fitted)().probability)
    if fitted.kernel in ("rbf", "poly", "sigmoid") and isinstance(fitted.gamma, str):
        machine.set_params(gamma=_gamma(fitted.gamma, X))
    if isinstance(fitted.class_weight, str):
        weights = zip(fitted.classes_.tolist(), fitted.class_weight_.tolist(), strict=True)
        machine.set_params(class_weight=dict(weights))
    return machine


@held.register
def _(fitted: LSSVMClassifier, X: Any) -> Any:
    machine = clone(fitted).set_params(kernel=fitted.kernel_, threshold=fitted.threshold_)
    return machine.set_params(calibration=_calibration(fitted))


@held.register
def _(fitted: LSSVMClassifierCV, X: Any) -> Any:
    return LSSVMClassifier(
        kernel=clone(fitted.kernel_, safe=False),
        mu=fitted.mu_,
        fit_intercept=fitted.fit_intercept,
        class_weight=fitted.class_weight,
        threshold=fitted.threshold_,
        calibration=_calibration(fitted),
    )


@held.register
def _(fitted: SVCCV, X: Any) -> Any:
    """The SVC that it chose, without its threshold, which `threshold_of` gives.

    Of several classes the votes of the SVC decide, not coupled probabilities.
    """
    kernel = "precomputed" if fitted.kernel_.pairwise else clone(fitted.kernel_, safe=False)
    weights = None
    if fitted.class_weight is not None:
        labels = _labels(fitted)
        sample_weight = fitted.loo_.sample_weight
        each = class_weights(fitted.class_weight, labels, fitted.classes_, sample_weight)
        _, first = np.unique(labels, return_index=True)
        weights = dict(zip(fitted.classes_.tolist(), each[first].tolist(), strict=True))
    return SVC(C=fitted.C_, kernel=kernel, class_weight=weights, tol=_TOLERANCE)


def threshold_of(fitted: Any) -> float:
    """The threshold of a fitted `SVCCV`, which an SVC cannot hold; zero for other machines."""
    return float(fitted.threshold_) if isinstance(fitted, SVCCV) else 0.0


def _labels(fitted: SVCCV) -> AnyArray:
    """Index of the class of every sample that it was fitted to."""
    return class_indices(fitted.loo_.y)


def _calibration(fitted: LSSVMClassifier | LSSVMClassifierCV) -> str | None:
    """None for two classes: then the sigmoid of T11 serves, as for support vector machines.

    The machine's own probabilities are for new samples: calibrated on outputs for samples left
    out, they are no likelihood of its own sample.
    """
    return fitted.calibration if len(fitted.classes_) > 2 else None


def _gamma(rule: str, X: Any) -> float:
    """The number that scikit-learn's "scale" and "auto" stand for."""
    n_features = int(X.shape[1])
    if rule == "auto":
        return 1.0 / n_features
    if sparse.issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = np.asarray(X, dtype=np.float64).var()
    return 1.0 / (n_features * float(variance)) if float(variance) > 0 else 1.0
