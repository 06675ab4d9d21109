"""Steps of the preprocessor of tables: columns of a sparse matrix, and the scale of numbers."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._typing import AnyArray, Array, Matrix


class SparseColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns of a sparse matrix that are nonzero in some row of the training data.

    The others are dropped at prediction too, like constant columns of a data frame. Time and
    memory grow with the stored values and the rows, not with the largest index.

    Attributes
    ----------
    columns_ : ndarray of int of shape (n_columns,)
        Indices of the columns that are kept, in increasing order.

    Examples
    --------
    >>> from scipy import sparse
    >>> X = sparse.csr_array(([3.0, 4.0], ([0, 1], [2, 10**9])), shape=(2, 10**9 + 1))
    >>> SparseColumns().fit_transform(X).toarray()
    array([[3., 0.],
           [0., 4.]])
    """

    columns_: AnyArray

    def fit(self, X: Matrix, y: object = None) -> SparseColumns:
        """Keep the columns with a nonzero value.

        Parameters
        ----------
        X : sparse matrix of shape (n_samples, n_features)
            The training data.
        y : ignored
            For the interface.

        Returns
        -------
        self : SparseColumns
            The transformer.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        X = self._checked(X, reset=True)
        self.columns_ = np.unique(X.indices[X.data != 0])
        if not len(self.columns_):
            raise ValueError("every value of the table is zero: there is nothing to learn from")
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Kept columns, as a matrix in CSR format.

        Parameters
        ----------
        X : sparse matrix of shape (n_samples, n_features)
            Any rows.

        Returns
        -------
        X : sparse matrix of shape (n_samples, n_columns)
            The columns ``columns_``.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        places = np.searchsorted(self.columns_, X.indices)
        places[places == len(self.columns_)] = 0
        kept = self.columns_[places] == X.indices
        pointers = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
        parts = X.data[kept], places[kept].astype(np.int32), pointers.astype(np.int32)
        return type(X)(parts, shape=(X.shape[0], len(self.columns_)))

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Names of the kept columns, as scikit-learn makes them: ``x`` and the input index.

        Parameters
        ----------
        input_features : ignored
            For the interface.

        Returns
        -------
        names : ndarray of str
            One name for each column that is kept.
        """
        return np.array([f"x{column}" for column in self.columns_], dtype=object)

    def _checked(self, X: Matrix, *, reset: bool) -> Matrix:
        return validate_data(
            self, X, accept_sparse="csr", ensure_all_finite=False, dtype=np.float64, reset=reset
        )


class PairScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Centers columns, and scales each so that its variance is the share of row pairs that differ.

    Numbers without ties get unit variance. A column in which most rows agree, such as a count that
    is mostly zero, gets less variance, like the zeros and ones of a rare category. With unit
    variance its few other values would be farther from all rows than any value of other columns.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of each column, which is subtracted.
    scale_ : ndarray of shape (n_features,)
        Divisor of each column: its standard deviation over the square root of that share; 1 for
        constants.

    Examples
    --------
    >>> X = np.column_stack([[3.0, 4.0, 5.0, 6.0], [0.0, 0.0, 0.0, 1.0]])
    >>> PairScaler().fit_transform(X).var(axis=0).round(12)  # in 3 of 6 pairs, the second differs
    array([1. , 0.5])
    """

    mean_: Array
    scale_: Array

    def fit(self, X: Matrix, y: object = None) -> PairScaler:
        """Compute means and scales.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Floats without gaps.
        y : ignored
            For the interface.

        Returns
        -------
        self : PairScaler
            The transformer.
        """
        X = validate_data(self, X, dtype=np.float64)
        standard, n_pairs = StandardScaler().fit(X), max(len(X) * (len(X) - 1), 1)
        counts = [np.unique(column, return_counts=True)[1] for column in X.T]
        share = 1.0 - np.array([each @ (each - 1) for each in counts]) / n_pairs
        self.mean_ = standard.mean_
        self.scale_ = standard.scale_ / np.sqrt(np.where(share > 0, share, 1.0))
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Scaled columns.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Any rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The columns minus ``mean_``, divided by ``scale_``.
        """
        check_is_fitted(self)
        return (validate_data(self, X, dtype=np.float64, reset=False) - self.mean_) / self.scale_
