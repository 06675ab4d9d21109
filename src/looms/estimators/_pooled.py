"""What classifiers made of a pool share: validation, blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
    get_tags,
)
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from looms._typing import AnyArray, Array
from looms.estimators._classes import encoded
from looms.estimators._pool import Pool, is_grid, is_list_of_estimators

_ROWS = 1024  # of new samples at a time: every member has outputs for each of them


class PooledClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers that keep a whole pool and choose a member for every sample."""

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

    def _checked_training_data(self, X: Any, y: Any) -> tuple[Any, AnyArray, AnyArray]:
        """Samples, the classes, and the index of each sample's class.

        A grid has the samples as an array; other members have them as they are given, and check
        them by themselves.
        """
        if is_grid(self.pool):
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        else:
            X, y = validate_data(self, _indexable(X), y, skip_check_array=True)
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
            if y.dtype.kind == "f":
                assert_all_finite(y, input_name="y")
        classes, labels, _ = encoded(y, np.ones(len(y)))
        return X, classes, labels

    def _blocks(self, X: Any, pool: Pool | None = None) -> Iterator[list[Array]]:
        """Outputs of all members for new samples, so many rows at a time."""
        check_is_fitted(self, "pool_")
        pool = self._pool if pool is None else pool
        if is_grid(self.pool):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        else:
            X = _indexable(X)
            if len(X.shape) < 2 and hasattr(self, "n_features_in_"):
                raise ValueError(
                    f"X must have a row for each sample, but has shape {X.shape}. Reshape your "
                    "data: of one sample by X.reshape(1, -1)."
                )
            X = validate_data(self, X, reset=False, skip_check_array=True)
        n_samples = _num_samples(X)
        for start in range(0, max(n_samples, 1), _ROWS):  # of no samples members complain
            rows = slice(start, start + _ROWS)
            yield pool.outputs(X if n_samples <= _ROWS else _safe_indexing(X, rows))


def _indexable(X: Any) -> Any:
    """Samples whose rows can be taken."""
    if sp.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)
