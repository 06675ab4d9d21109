"""What classifiers made of a pool share: validation, blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._typing import AnyArray, Array
from looms.estimators._classes import encoded
from looms.estimators._pool import Pool

_ROWS = 1024  # of new samples at a time: every member has outputs for each of them


class PooledClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers that keep a whole pool and choose a member for every sample."""

    classes_: Any
    pool_: list[Any]
    _pool: Pool

    def _checked_training_data(self, X: Any, y: Any) -> tuple[Array, AnyArray, AnyArray]:
        """Validated samples, the classes, and the index of each sample's class."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        classes, labels, _ = encoded(y, np.ones(len(X)))
        return X, classes, labels

    def _blocks(self, X: Any) -> Iterator[list[Array]]:
        """Outputs of all members for validated new samples, so many rows at a time."""
        check_is_fitted(self, "pool_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        for start in range(0, len(X), _ROWS):
            yield self._pool.outputs(X[start : start + _ROWS])
