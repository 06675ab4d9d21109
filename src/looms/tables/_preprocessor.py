"""The transformer of a table of mixed columns to a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder
from sklearn.utils import gen_batches
from sklearn.utils.validation import (
    _check_n_features,
    check_array,
    check_is_fitted,
    validate_data,
)

from looms._checks import check_count, check_known
from looms._typing import AnyArray, Array, Matrix
from looms.tables._columns import (
    Column,
    check_names,
    columns_of,
    name_as_text,
    names_in,
    places_of,
    rows,
)
from looms.tables._kinds import KINDS, Kind, converted, read_column
from looms.tables._remarks import (
    SERIOUS,
    Remark,
    is_called_identifier,
    remark_on_identifiers,
    remarks_on,
    sentence,
    tells_rows_apart,
)
from looms.tables._state import packed_state, unpacked_state
from looms.tables._transformers import PairScaler, SparseColumns

_F = TypeVar("_F", bound=Callable[..., Any])
#: For functions whose steps make arrays, whatever scikit-learn's ``transform_output`` is.
_as_arrays: Callable[[_F], _F] = config_context(transform_output="default")
_NUMBERS = 1 << 20  # in the rows that are prepared at once
#: Numbers by which booleans are also written.
_BOOLEANS = {"0": "False", "1": "True"}


class Parts(NamedTuple):
    """Columns of a table that are kept, converted.

    Attributes
    ----------
    numbers : (n_samples, n_numbers) numbers, and dates as days, NaN for gaps.
    texts : (n_samples, n_categories) texts, NaN for gaps.
    """

    numbers: Array
    texts: AnyArray


class TablePreprocessor(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Matrix of scaled numbers, for a kernel, from a table of mixed columns with gaps.

    Numbers and dates (as days) are scaled by `PairScaler`; a gap becomes the median, and is marked
    in a feature of its own. Text, categories and booleans become one feature of zeros and ones per
    value. Columns without two different values are dropped, and so are texts of which nearly every
    row has its own, such as identifiers: they say nothing about new rows. A sparse matrix stays
    sparse: columns of zeros are dropped, and the others divided by their largest absolute value.

    `fit` detects the kind of each column. A column of text holds dates if every cell is a date and
    only one order of day and month is possible.

    Parameters
    ----------
    max_categories : int, default=40
        Largest number of features for one column of categories. If a column has more values, the
        rarest share one feature, and values that `fit` did not meet belong to it too. Otherwise
        such a value is zero in all features of its column.
    kinds : dict of str to str, default=None
        The columns to use, each with its kind, as in ``kinds_``; by default all are used, and
        their kinds are detected. For refits to some rows of a table, pass ``kinds_`` of the whole
        table. Otherwise a column with one cell that is no date becomes a column of dates if that
        row is missing, and `transform` refuses the cell.

    Attributes
    ----------
    kinds_ : dict of str to str
        "number", "date", "day-first date", "month-first date" or "category" for each column that
        is kept; empty for a sparse matrix.
    ranges_ : dict of str to list of two floats
        Least and largest value of each column of numbers or dates, dates as days since 1970.
    columns_ : ndarray of str
        For each feature, the name of the column that it was made from.
    remarks_ : tuple of str
        Sentences on columns that may need attention: dropped, with words among numbers,
        dates, identifiers.
    feature_names_in_ : ndarray of str
        Names of all columns of the table, as text; absent if they have no names.
    n_features_in_ : int
        Number of all columns of the table.

    Notes
    -----
    Columns without names, such as those of an array, are called x0, x1, and so on, and are found by
    their place. A fit sorts each column: O(n log n). `transform` raises a ValueError that names
    the row if a cell is of another kind than its column in `fit`, such as a word among numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1, 2, None], "color": ["red", "blue", "red"]})
    >>> prepare = TablePreprocessor().fit(table)
    >>> prepare.kinds_
    {'size': 'number', 'color': 'category'}
    >>> prepare.get_feature_names_out().tolist()
    ['size', 'size is missing', 'color = blue', 'color = red']
    >>> prepare.transform(pd.DataFrame({"color": ["green"], "size": [1.5]})).round(3).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    """

    kinds_: dict[str, Kind]
    ranges_: dict[str, list[float]]
    _found: list[Any]
    _steps: dict[str, Any]

    def __init__(self, max_categories: int = 40, kinds: Mapping[str, Kind] | None = None) -> None:
        self.max_categories, self.kinds = max_categories, kinds

    def fit(
        self, X: Any, y: object = None, ranges: Mapping[str, list[float]] | None = None
    ) -> TablePreprocessor:
        """Find what each column is, and its median, scale or values.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
            The training rows. None, NaN and NaT are gaps.
        y : ignored
            For the interface.
        ranges : mapping, default=None
            ``ranges_`` of the columns among more rows than these, if these are a sample of a
            table.

        Returns
        -------
        self : TablePreprocessor
            The transformer.

        Raises
        ------
        ValueError
            If no column has two different values, or a column holds infinite numbers, or neither
            numbers, dates, text nor booleans, or two columns have the same name.
        """
        self._fit(X, ranges or {})
        return self

    def fit_transform(
        self, X: Any, y: object = None, ranges: Mapping[str, list[float]] | None = None
    ) -> Matrix:
        """Matrix of the rows that it is fitted to, with each cell converted once.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
            The training rows.
        y : ignored
            For the interface.
        ranges : mapping, default=None
            As in `fit`.

        Returns
        -------
        matrix : ndarray or sparse matrix of shape (n_samples, n_features)
            Floats without gaps.
        """
        return self._matrix(self._fit(X, ranges or {}))

    def transform(self, X: Any) -> Matrix:
        """Matrix of any rows.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
            A table with the columns that were kept, in any order; others are ignored. Without
            names, as many columns as in `fit`, in the same order.

        Returns
        -------
        matrix : ndarray or sparse matrix of shape (n_samples, n_features)
            Floats without gaps.

        Raises
        ------
        ValueError
            If columns are missing, or a cell is of another kind than its column.
        """
        return self._matrix(self._parts(X))

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Names of the features: ``size``, ``size is missing``, ``color = red``, ``color is rare``.

        Parameters
        ----------
        input_features : ignored
            For the interface.

        Returns
        -------
        names : ndarray of str
            One name for each column of the matrix.
        """
        return np.array([name for _, name, _ in features_made(self)], dtype=object)

    @property
    def columns_(self) -> AnyArray:
        """For each feature, the name of the column that it was made from."""
        return np.array([column for *_, column in features_made(self)], dtype=object)

    @property
    def remarks_(self) -> tuple[str, ...]:
        """Sentences on columns that may be other than they look."""
        return tuple(sentence(remark) for remark in remarks_in(self))

    def _named(self) -> tuple[list[str], list[str]]:
        """Names of the columns of numbers and dates, and of the categories."""
        categories = [name for name, kind in self.kinds_.items() if kind == "category"]
        return [name for name in self.kinds_ if name not in categories], categories

    @_as_arrays
    def _fit(self, X: Any, ranges: Mapping[str, list[float]]) -> Parts | Matrix:
        """Parts of a table, to which the steps are fitted."""
        check_count(self.max_categories, "max_categories")
        if sparse.issparse(X):
            return self._fit_sparse(X)
        X = rows(X)
        names = names_in(X)
        place = places_of(names, X.shape[1])
        given = self._given(list(place))
        chosen = list(given or place)
        columns = dict(zip(chosen, columns_of(X, [place[name] for name in chosen]), strict=True))
        read = {name: read_column(of, name, given.get(name)) for name, of in columns.items()}
        unlike = [name for name, of in read.items() if name not in given and tells_rows_apart(of)]
        kinds = {name: of.kind for name, of in read.items() if of.kinds and name not in unlike}
        if not kinds:
            which = " in its one sample" if X.shape[0] == 1 else ""
            which += " that several rows share" if unlike else ""
            raise ValueError(
                f"no column of the table has two different values{which}: there is nothing to "
                "learn from"
            )
        self._set_columns(X.shape[1], names)
        self.kinds_ = kinds
        self._found = [tuple(remark) for remark in remarks_on(columns, read, unlike)]
        parts = self._joined({name: read[name].values for name in self.kinds_}, X.shape[0])
        self._fit_steps(parts)
        own = zip(self._named()[0], parts.numbers.T, strict=True)
        self.ranges_ = {
            name: list(ranges.get(name, (float(np.nanmin(of)), float(np.nanmax(of)))))
            for name, of in own
        }
        return parts

    def _set_columns(self, n: int, names: list[str] | None) -> None:
        self.n_features_in_ = n
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _given(self, names: Sequence[str]) -> Mapping[str, Kind]:
        """``kinds``, checked against the names of the columns."""
        given = {name_as_text(name): kind for name, kind in (self.kinds or {}).items()}
        for name, kind in given.items():
            check_known(kind, f"kind of {name!r}", KINDS)
        check_names(list(given), names)
        return given

    def _fit_sparse(self, X: Matrix) -> Matrix:
        columns = SparseColumns()
        kept = columns.fit_transform(X)
        self._set_columns(columns.n_features_in_, None)
        self.kinds_, self.ranges_, self._found = {}, {}, []
        self._steps = {"columns": columns, "scale": MaxAbsScaler().fit(kept)}
        return kept

    def _fit_steps(self, parts: Parts) -> None:
        self._steps = {}
        if parts.numbers.shape[1]:
            impute = SimpleImputer(strategy="median")
            filled = impute.fit_transform(parts.numbers)
            gaps = MissingIndicator(features="missing-only", error_on_new=False)
            self._steps |= {
                "impute": impute,
                "scale": PairScaler().fit(filled),
                "gaps": gaps.fit(parts.numbers),
            }
        if parts.texts.shape[1]:
            encode = OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                max_categories=self.max_categories,
                sparse_output=False,
            )
            self._steps["encode"] = encode.fit(parts.texts)

    @_as_arrays
    def _parts(self, X: Any) -> Parts | Matrix:
        """Parts of any rows."""
        check_is_fitted(self)
        if "columns" in self._steps:
            X = X if sparse.issparse(X) else sparse.csr_array(check_array(X, dtype=np.float64))
            kept: Matrix = self._steps["columns"].transform(X)
            return kept
        if sparse.issparse(X):
            raise TypeError(
                "the preprocessor was fitted to a table that is not sparse: give such a table, or "
                "fit it to a sparse matrix"
            )
        X = rows(X)
        named, given_names = getattr(self, "feature_names_in_", None), names_in(X)
        if named is not None and given_names is not None:
            check_names(list(self.kinds_), given_names)
            named = given_names
        elif named is not None and [*named] == [*map(str, range(len(named)))]:
            _check_n_features(self, X, reset=False)  # pandas' names of columns without any
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
        place = places_of(named, X.shape[1])
        columns: list[Column] = columns_of(X, [place[name] for name in self.kinds_])
        given = zip(self.kinds_.items(), columns, strict=True)
        values = {name: converted(column, name, kind) for (name, kind), column in given}
        for name in self._booleans():
            values[name] = np.array([_BOOLEANS.get(text, text) for text in values[name]], object)
        return self._joined(values, X.shape[0])

    def _booleans(self) -> Iterator[str]:
        """Names of the columns whose values were all True or False."""
        categories = self._named()[1]
        known = self._steps["encode"].categories_ if categories else []
        for name, texts in zip(categories, known, strict=True):
            if {text for text in texts if isinstance(text, str)} <= set(_BOOLEANS.values()):
                yield name

    def _joined(self, values: Mapping[str, AnyArray], n_rows: int) -> Parts:
        """Columns of floats and of texts, each column contiguous."""
        numbers, categories = self._named()
        floats, texts = (
            np.empty((len(numbers), n_rows)),
            np.empty((len(categories), n_rows), object),
        )
        for k, name in enumerate(numbers):
            floats[k] = values[name]
        for k, name in enumerate(categories):
            texts[k] = values[name]
        return Parts(floats.T, texts.T)

    @_as_arrays
    def _matrix(self, parts: Parts | Matrix) -> Matrix:
        """Matrix of parts."""
        steps = self._steps
        if not isinstance(parts, Parts):
            scaled: Matrix = steps["scale"].transform(parts)
            return scaled

        def some(places: slice) -> Array:
            blocks = []
            if "scale" in steps:
                numbers = parts.numbers[places]
                blocks.append(steps["scale"].transform(steps["impute"].transform(numbers)))
                blocks.append(steps["gaps"].transform(numbers))
            if "encode" in steps:
                blocks.append(steps["encode"].transform(parts.texts[places]))
            return np.hstack(blocks, dtype=float)

        n, width = len(parts.numbers), sum(part.shape[1] for part in parts)
        first, *others = gen_batches(n, max(1, _NUMBERS // width)) if n else [slice(None)]
        block = some(first)
        if not others:
            return block
        matrix = np.empty((n, block.shape[1]))
        matrix[first] = block
        for each in others:
            matrix[each] = some(each)
        return matrix

    def __getstate__(self) -> dict[str, Any]:
        return packed_state(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(unpacked_state(state))

    def __sklearn_tags__(self) -> Any:
        """Tags of a transformer of tables with text and gaps, or of sparse matrices."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def fitted_matrix(preprocessor: TablePreprocessor, X: Any) -> Matrix:
    """`TablePreprocessor.fit_transform` as a matrix, whatever the setting of outputs is."""
    return preprocessor._matrix(preprocessor._fit(X, {}))


def matrix_of(preprocessor: TablePreprocessor, X: Any) -> Matrix:
    """`TablePreprocessor.transform` as a matrix, whatever the setting of outputs is."""
    return preprocessor._matrix(preprocessor._parts(X))


def remarks_in(preprocessor: TablePreprocessor) -> list[Remark]:
    """Remarks on the columns that a preprocessor was fitted to, without advice."""
    check_is_fitted(preprocessor)
    return [Remark(*each) for each in preprocessor._found]


def serious_remarks(preprocessor: TablePreprocessor, n_rows: int) -> Iterator[str]:
    """Sentences on columns that ask for a change; none if the kinds were given."""
    for remark in [] if preprocessor.kinds else remarks_in(preprocessor):
        if remark.topic == "identifiers":
            remark = identifiers_in(preprocessor, remark, n_rows)
        if remark.topic in SERIOUS and remark.columns:
            yield sentence(remark)


def identifiers_in(preprocessor: TablePreprocessor, remark: Remark, n_rows: int) -> Remark:
    """A remark on those columns with a different value in every row that seem identifiers.

    Whole numbers need not be. They seem so if they are called so, or number the rows from 0 or 1.
    """

    def is_identifier(name: str) -> bool:
        least, most = preprocessor.ranges_.get(name, (1, n_rows))  # of text all
        return is_called_identifier(name) or (least in (0, 1) and most - least + 1 == n_rows)

    return remark_on_identifiers([*filter(is_identifier, remark.columns)])


def places_of_gaps(preprocessor: TablePreprocessor) -> dict[str, int]:
    """Place of the feature that marks the gaps of a column, by column."""
    made = enumerate(features_made(preprocessor))
    return {column: k for k, (_, name, column) in made if name == f"{column} is missing"}


def features_made(preprocessor: TablePreprocessor) -> Iterator[tuple[str, str, str]]:
    """Step, name and column of every feature that a preprocessor makes."""
    check_is_fitted(preprocessor)
    steps = preprocessor._steps
    if "columns" in steps:
        yield from (("scale", name, name) for name in steps["columns"].get_feature_names_out())
        return
    numbers, categories = preprocessor._named()
    yield from (("scale", name, name) for name in numbers)
    marked = steps["gaps"].features_ if numbers else ()
    yield from (("gaps", f"{numbers[k]} is missing", numbers[k]) for k in marked)
    if not categories:
        return
    rare = getattr(steps["encode"], "infrequent_categories_", [None] * len(categories))
    for column, values, few in zip(categories, steps["encode"].categories_, rare, strict=True):
        for value in values:
            if few is None or value not in few:
                missing = not isinstance(value, str)
                yield "encode", f"{column} is missing" if missing else f"{column} = {value}", column
        if few is not None:
            yield "encode", f"{column} is rare", column
