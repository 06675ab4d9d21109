"""Base class and members of the classifiers that choose a member of a pool for every sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.svm import SVC
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
    get_tags,
)
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from looms._threads import openmp_threads
from looms._typing import AnyArray, Array
from looms.conformal._sets import class_margins
from looms.estimators._encoding import encoded
from looms.estimators._estimator_member import fitted, one_against_one
from looms.estimators._known_targets import KnownTargets
from looms.estimators._targets import plain_targets
from looms.estimators._warnings import warn_of_order
from looms.nonconformity._choice import pairwise_margins
from looms.nonconformity._svm_grid import PAPER_GRID, SVMGrid, SVMGridPlan, grid_plan
from looms.svm import leave_one_out

_ROWS = 1024  # of new samples at a time: every member has outputs for each of them


def is_grid(pool: Any) -> bool:
    """True if the parameter ``pool`` names a grid of support vector machines."""
    return pool is None or isinstance(pool, Mapping)


def is_list_of_estimators(pool: Any) -> bool:
    """True if the parameter ``pool`` is a list of estimators with tags."""
    return (
        isinstance(pool, Sequence)
        and len(pool) > 0
        and all(hasattr(member, "__sklearn_tags__") and hasattr(member, "fit") for member in pool)
        and not any(isinstance(member, type) for member in pool)
    )


def pool_plan(pool: Any, classes: AnyArray, tol: Any) -> Plan:
    """Training plan for the parameter ``pool``; ValueError or TypeError if it is invalid."""
    if is_grid(pool):
        return grid_plan(PAPER_GRID if pool is None else pool, tol, len(classes))
    if isinstance(pool, str | Iterator) or not hasattr(pool, "__iter__"):
        raise TypeError(
            "pool must be None for the default grid of SVMs, a dict with the values of 'C' and "
            f"'gamma', or a list of classifiers, got {pool!r}."
        )
    return EstimatorPlan(_checked_classifiers(list(pool)), classes)


def _checked_classifiers(classifiers: list[Any]) -> list[Any]:
    if not classifiers:
        raise ValueError("pool is empty: give at least one classifier.")
    for index, member in enumerate(classifiers):
        if not (hasattr(member, "fit") and is_classifier(member)):
            raise TypeError(f"Member {index} of the pool is not a classifier: {member!r}.")
        if not hasattr(member, "decision_function"):
            raise ValueError(
                f"Member {index} of the pool, {member!r}, has no decision_function: leave it out, "
                "or use a classifier that has one."
            )
    if len(set(map(_pairwise, classifiers))) > 1:
        raise ValueError(
            "Some members of the pool take a kernel matrix and others take features: X cannot be "
            "both."
        )
    return classifiers


@dataclass(frozen=True)
class EstimatorPlan:
    """Any classifiers with a decision function."""

    estimators: list[Any]
    classes: AnyArray

    def fit(self, X: Any, labels: AnyArray, rows: AnyArray, n_jobs: int | None) -> EstimatorPool:
        """The pool trained on some rows of samples with labels 0 to n_classes - 1."""
        y, columns = self.classes[labels[rows]], None
        self._check_square(X)
        X = _safe_indexing(X, rows)
        if _pairwise(self.estimators[0]):
            X, columns = _safe_indexing(X, rows, axis=1), rows
        fits = (delayed(fitted)(estimator, X, y) for estimator in self.estimators)
        return EstimatorPool(list(Parallel(n_jobs=n_jobs)(fits)), len(self.classes), columns)

    def _check_square(self, X: Any) -> None:
        if _pairwise(self.estimators[0]) and X.shape[0] != X.shape[-1]:
            raise ValueError(f"X must be a square kernel matrix, but has shape {X.shape}.")

    def fit_loo(
        self, X: Any, labels: AnyArray, n_jobs: int | None
    ) -> tuple[EstimatorPool, list[Array]]:
        """The pool trained on all rows, and the leave-one-out outputs of every member."""
        y = self.classes[labels]
        self._check_square(X)
        fits = (delayed(_fitted_loo)(estimator, X, y) for estimator in self.estimators)
        members, outputs = zip(*Parallel(n_jobs=n_jobs)(fits), strict=True)
        pool = EstimatorPool(list(members), len(self.classes))
        return pool, [pool.checked(*pair) for pair in zip(members, outputs, strict=True)]


@dataclass(frozen=True)
class EstimatorPool:
    """Fitted classifiers with a decision function.

    Attributes
    ----------
    members : the classifiers.
    n_classes : number of classes.
    columns : columns of a kernel matrix for the training samples; None for all.
    """

    members: list[Any]
    n_classes: int
    columns: AnyArray | None = None

    def only(self, k: int) -> EstimatorPool:
        """The pool of member ``k`` alone."""
        return replace(self, members=self.members[k : k + 1])

    def outputs(self, X: Any) -> list[Array]:
        """For every member (n_samples,) for two classes, otherwise (n_samples, n_outputs)."""
        if self.columns is not None:
            X = _safe_indexing(X, self.columns, axis=1)
        with openmp_threads(_num_samples(X)):
            return [self.checked(member, member.decision_function(X)) for member in self.members]

    def margins(self, outputs: list[Array]) -> Array:
        """(n_members, n_samples, n_classes) margins of every label."""
        return np.stack(
            [
                pairwise_margins(values, self.n_classes)
                if values.ndim == 2 and one_against_one(member)
                else class_margins(values.reshape(len(values), -1))
                for member, values in zip(self.members, outputs, strict=True)
            ]
        )

    def checked(self, member: Any, outputs: Any) -> Array:
        """Decision values, checked to be finite and to have a shape that suits the classes."""
        values: Array = np.asarray(outputs, dtype=np.float64)
        n_columns = self.n_classes
        if one_against_one(member):
            n_columns = self.n_classes * (self.n_classes - 1) // 2
        if values.shape[1:] != (() if self.n_classes == 2 else (n_columns,)):
            raise ValueError(
                f"The decision values of {member!r} have shape {values.shape}; for "
                f"{self.n_classes} classes one value per sample, if 2, or one per class is needed."
            )
        if not np.isfinite(values).all():
            raise ValueError(f"The decision values of {member!r} contain NaN or infinity.")
        return values


#: Fitted classifiers, and those to be fitted, already checked.
Pool: TypeAlias = SVMGrid | EstimatorPool
Plan: TypeAlias = SVMGridPlan | EstimatorPlan


def _pairwise(member: Any) -> bool:
    """True if a classifier takes a kernel matrix."""
    return bool(get_tags(member).input_tags.pairwise)


def _fitted_loo(estimator: Any, X: Any, y: AnyArray) -> tuple[Any, Any]:
    member = fitted(estimator, X, y)
    loo = getattr(member, "loo_", None)
    if loo is not None:  # a model of looms has its own, exact and free
        return member, loo.outputs - member.threshold_
    if type(member) is SVC and len(member.classes_) == 2:
        return member, leave_one_out(member, X, y).outputs
    with openmp_threads(len(y)):
        outputs = cross_val_predict(estimator, X, y, cv=LeaveOneOut(), method="decision_function")
    return member, outputs


class PooledClassifier(KnownTargets, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the classifiers that select a member of a pool for every sample."""

    pool: Any
    classes_: Any
    pool_: list[Any]
    _pool: Pool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if is_list_of_estimators(self.pool):
            members = [get_tags(member).input_tags for member in self.pool]
            for name in ("sparse", "pairwise", "allow_nan", "string", "categorical"):
                setattr(tags.input_tags, name, all(getattr(member, name) for member in members))
        return tags

    @abstractmethod
    def _chosen(self, X: Any) -> tuple[AnyArray, AnyArray]:
        """(n_samples,) indices of the member chosen for each sample, and the class it predicts."""

    def predict(self, X: Any) -> AnyArray:
        """Class of each sample, predicted by the member selected for it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        _, labels = self._chosen(X)
        return np.asarray(self.classes_[labels])

    def chosen_model(self, X: Any) -> AnyArray:
        """Member that decides on each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        model : ndarray of shape (n_samples,)
            Index into ``pool_``. If several models of `NonconformityClassifier` are equally sure
            of the label, as is often so, one is drawn by the seed of the fit and the counts of the
            sample: the same one at every call, whatever the order of samples.
        """
        models, _ = self._chosen(X)
        return models

    def _checked_training_data(self, X: Any, y: Any) -> tuple[Any, AnyArray, AnyArray]:
        """Samples, the classes, and the index of each sample's class.

        A grid gets the samples as an array; other members get them as they are given, and check
        them themselves.
        """
        y = plain_targets(y, classes=True)
        warn_of_order(X=X, y=y)
        if is_grid(self.pool):
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        else:
            X, y = validate_data(self, _indexable(X), y, skip_check_array=True)
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
            if y.dtype.kind == "f":
                assert_all_finite(y, input_name="y")
        classes, labels = encoded(y, np.ones(len(y)))
        return X, classes, labels

    def _blocks(self, X: Any, pool: Pool | None = None) -> Iterator[list[Array]]:
        """Outputs of all members for new samples, in blocks of rows."""
        check_is_fitted(self, "pool_")
        pool = self._pool if pool is None else pool
        if isinstance(pool, SVMGrid):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        else:
            X = _indexable(X)
            if len(X.shape) < 2 and hasattr(self, "n_features_in_"):
                raise ValueError(
                    f"X must have a row for each sample, but has shape {X.shape}. Reshape your "
                    "data: for a single sample, use X.reshape(1, -1)."
                )
            X = validate_data(self, X, reset=False, skip_check_array=True)
        n_samples = _num_samples(X)
        for start in range(0, max(n_samples, 1), _ROWS):  # of no samples members complain
            rows = slice(start, start + _ROWS)
            yield pool.outputs(X if n_samples <= _ROWS else _safe_indexing(X, rows))


def _indexable(X: Any) -> Any:
    """Samples in a form whose rows can be selected."""
    if sp.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)
