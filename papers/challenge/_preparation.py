"""Preprocessing of each data set in the papers, fitted to the training part of every split.

[C06 III] takes the logarithm of features 1 and 3 of ADA, makes 4 and 5 binary at two thresholds
(one is not printed), and standardizes continuous features; divides GINA by 255; leaves HIVA
and NOVA unchanged; standardizes the continuous features of SYLVA and trains on fewer rows (see
`ReducedClassifier`). Columns of the public sets are permuted, so those of ADA are identified by
their values.
"""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._checks import check_known
from looms._typing import Array
from looms.tables import TablePreprocessor

Preparation = Literal["ada", "gina", "hiva", "nova", "sylva", "standardize", "table"]
PREPARATIONS: tuple[Preparation, ...] = get_args(Preparation)
#: Preparations that change every entry of a column, so that zeros do not stay zeros.
DENSE: tuple[Preparation, ...] = ("ada", "sylva", "standardize")

#: Thresholds of capital gain and loss in ADA, on its scale from 0 to 999. The first is printed;
#: the second lies between the losses that go with a low and with a high income.
GAIN_THRESHOLD, LOSS_THRESHOLD = 44, 410


def preparation(kind: Preparation, X: Any) -> Any:
    """Unfitted transformer of a data set.

    Parameters
    ----------
    kind : {"ada", "gina", "hiva", "nova", "sylva", "standardize", "table"}
        The name of a set of the papers, as they prepare it; "standardize", which scales continuous
        columns to mean zero and variance one; or "table", as for `looms fit`.
    X : samples; used only for "table", whose columns may have any kind.

    Raises
    ------
    ValueError
        If the kind is none of these.
    """
    check_known(kind, "preparation", PREPARATIONS)
    if kind == "ada":
        return Pipeline([("columns", ADAColumns()), ("standardize", ContinuousScaler())])
    if kind == "gina":
        return FunctionTransformer(over_255, feature_names_out="one-to-one")
    if kind in ("sylva", "standardize"):
        return ContinuousScaler()
    return TablePreprocessor() if kind == "table" else "passthrough"


def over_255(X: Any) -> Any:
    """Grey levels divided by 255."""
    return X / 255.0


class ContinuousScaler(StandardScaler):  # type: ignore[misc]
    """Standardizes the columns with more than two values; others are unchanged."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and standard deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : ignored
            For the interface.
        """
        super().fit(X)
        binary = np.array([len(np.unique(column)) <= 2 for column in np.asarray(X).T])
        self.mean_[binary], self.scale_[binary] = 0.0, 1.0
        return self


class ADAColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Takes logarithms of age and education, and makes capital gain and loss binary [C06 III].

    Parameters
    ----------
    age, education, gain, loss : int, default=None
        Columns, from 0. None finds them among the columns with more than two values: gain and
        loss are mostly zero, and nonzero losses are larger; of the others education has the
        fewest values, and of the rest age has the largest minimum.
    gain_threshold, loss_threshold : float
        Larger values become 1, others 0.

    Attributes
    ----------
    columns_ : dict of str to int
        Column of each of the four.
    """

    def __init__(
        self,
        age: int | None = None,
        education: int | None = None,
        gain: int | None = None,
        loss: int | None = None,
        gain_threshold: float = GAIN_THRESHOLD,
        loss_threshold: float = LOSS_THRESHOLD,
    ) -> None:
        self.age = age
        self.education = education
        self.gain = gain
        self.loss = loss
        self.gain_threshold = gain_threshold
        self.loss_threshold = loss_threshold

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : ignored
            For the interface.
        """
        X = validate_data(self, X, dtype=np.float64)
        columns = {name: getattr(self, name) for name in ("age", "education", "gain", "loss")}
        if None in columns.values():
            given = {name: column for name, column in columns.items() if column is not None}
            columns = columns_of_ada(X) | given
        self._check_positive(X, columns)
        self.columns_ = columns
        return self

    def transform(self, X: Any) -> Any:
        """Samples with the four columns changed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False, copy=True)
        self._check_positive(X, self.columns_)
        at = self.columns_
        for name in ("age", "education"):
            X[:, at[name]] = np.log(X[:, at[name]])
        X[:, at["gain"]] = X[:, at["gain"]] > self.gain_threshold
        X[:, at["loss"]] = X[:, at["loss"]] > self.loss_threshold
        return X

    def _check_positive(self, X: Array, columns: dict[str, int]) -> None:
        for name in ("age", "education"):
            if not (X[:, columns[name]] > 0).all():
                raise ValueError(
                    f"Column {columns[name]}, taken for {name}, has values that are not positive, "
                    "so it has no logarithm: state the columns, or use another preparation."
                )


def columns_of_ada(X: Array) -> dict[str, int]:
    """Columns of age, education, gain and loss of ADA, in any order."""
    continuous = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) > 2]
    capital = [j for j in continuous if np.mean(X[:, j] == 0) > 0.5]
    others = [j for j in continuous if j not in capital]
    if len(capital) != 2 or len(others) != 4:
        raise ValueError(
            "The columns are not those of ADA, which has six of more than two values, two of them "
            f"mostly zero; here are {len(continuous)}, of them {len(capital)} mostly zero. State "
            "the columns, or use another preparation."
        )
    gain, loss = sorted(capital, key=lambda j: np.median(X[X[:, j] > 0, j]))
    education = min(others, key=lambda j: len(np.unique(X[:, j])))
    age = max((j for j in others if j != education), key=lambda j: X[:, j].min())
    return {"age": age, "education": education, "gain": gain, "loss": loss}
