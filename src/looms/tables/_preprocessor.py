"""The preprocessor of a table, made of parts of scikit-learn and looms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

from looms.tables._kinds import Kind, column_kinds
from looms.tables._transformers import PairScaler, SparseColumns, TableColumns

if TYPE_CHECKING:
    import pandas as pd

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
