"""Transformers of the columns of a table to floats and text, and to a dense, scaled matrix."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._optional import require
from looms._typing import AnyArray, Array, Matrix
from looms.tables._kinds import Kind, as_floats, as_text, column_kinds

if TYPE_CHECKING:
    import pandas as pd


class TableColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns of a data frame, found by name and converted to floats and text.

    Parameters
    ----------
    kinds : dict of str to str
        Kind of each column, one of `KINDS`. Dates become days since 1970, categories become text.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        The names of the columns.
    """

    def __init__(self, kinds: dict[str, Kind]) -> None:
        self.kinds = kinds

    def fit(self, X: pd.DataFrame, y: object = None) -> TableColumns:
        """Check that the columns are there; nothing is learned.

        Parameters
        ----------
        X : pandas.DataFrame
            The table.
        y : ignored
            For the interface.

        Returns
        -------
        self : TableColumns
            The transformer.
        """
        self._check(X)
        self.feature_names_in_ = np.array(list(self.kinds), dtype=object)
        self.n_features_in_ = len(self.kinds)
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Columns in the order of ``kinds``, with NaN for gaps.

        Parameters
        ----------
        X : pandas.DataFrame
            A table with all the columns, in any order; other columns are ignored.

        Returns
        -------
        X : pandas.DataFrame
            Columns of floats and of text.
        """
        self._check(X)
        pandas = require("pandas", "A table of mixed columns")
        return pandas.DataFrame(
            {
                name: as_text(X[name]) if kind == "category" else as_floats(X[name], name, kind)
                for name, kind in self.kinds.items()
            },
            index=X.index,
        )

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Names of the columns.

        Parameters
        ----------
        input_features : ignored
            For the interface.

        Returns
        -------
        names : ndarray of str
            The names of the input columns.
        """
        return np.array(list(self.kinds), dtype=object)

    def _check(self, X: object) -> None:
        if not hasattr(X, "columns"):
            raise TypeError(f"X must be a pandas data frame, not {type(X).__name__}")
        absent = [name for name in self.kinds if name not in X.columns]
        if absent:
            columns = [str(name) for name in X.columns]
            alike = difflib.get_close_matches(absent[0], columns, 1)
            hint = f" ({alike[0]!r} is there)" if alike else ""
            shown = ", ".join(map(repr, absent[:10])) + (", ..." if len(absent) > 10 else "")
            raise ValueError(
                f"{len(absent)} of the model's {len(self.kinds)} columns are missing: {shown}{hint}"
                "; add them, empty where not known, or fit without them"
            )


class SparseColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns of a sparse matrix that are nonzero in some row of the training data.

    The others are left out at prediction too, like constant columns of a data frame. Time and
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


#: Number of categories of one column that get their own column; the rarest beyond share one.
MAX_CATEGORIES = 40


def table_preprocessor(
    X: pd.DataFrame | sparse.sparray | sparse.spmatrix,
    kinds: Mapping[str, tuple[Kind, ...]] | None = None,
) -> TransformerMixin:
    """Unfitted transformer that turns a table like this into a dense and scaled matrix.

    Parameters
    ----------
    X : pandas.DataFrame or sparse matrix of shape (n_samples, n_features)
        The table to fit it to later. Its types decide what kind each column is.
    kinds : mapping, default=None
        `column_kinds` of the table, if known; sparse matrices have none.

    Returns
    -------
    transformer : Pipeline
        `TableColumns` and a ``ColumnTransformer``. For sparse input `SparseColumns` and a
        ``MaxAbsScaler``, which keep it sparse.

    Raises
    ------
    ValueError
        As in `column_kinds`, or if no column has two different values.

    Notes
    -----
    Columns without two different values are left out. At prediction, columns are found by name, in
    any order, and others are ignored. A category that was not seen in `fit` counts as a rare one if
    its column had more than ``MAX_CATEGORIES``; else all columns of its feature are zero.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1, 2, None], "color": ["red", "blue", "red"]})
    >>> table_preprocessor(table).fit_transform(table).shape
    (3, 4)
    """
    if sparse.issparse(X):
        return Pipeline([("columns", SparseColumns()), ("scale", MaxAbsScaler())])
    known = column_kinds(X) if kinds is None else kinds
    kept: dict[str, Kind] = {
        name: each[0] if len(each) == 1 else "category" for name, each in known.items() if each
    }
    if not kept:
        raise ValueError(
            "no column of the table has two different values: there is nothing to learn from"
        )
    numbers = [name for name, kind in kept.items() if kind != "category"]
    categories = [name for name, kind in kept.items() if kind == "category"]
    impute = SimpleImputer(strategy="median", keep_empty_features=True)
    scale = Pipeline([("impute", impute), ("scale", PairScaler())])
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False
    )
    gaps = MissingIndicator(features="missing-only", error_on_new=False)
    matrix = ColumnTransformer(
        [("numbers", scale, numbers), ("gaps", gaps, numbers), ("categories", encode, categories)]
    )
    return Pipeline([("columns", TableColumns(kept)), ("matrix", matrix)])
