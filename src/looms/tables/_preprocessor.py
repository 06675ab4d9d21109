"""The transformer of a table of mixed columns to a matrix."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils.validation import (
    _check_n_features,
    check_array,
    check_is_fitted,
    validate_data,
)

from looms._checks import check_count
from looms._optional import require
from looms._typing import AnyArray, Array, Matrix
from looms.tables._cells import spelling_in
from looms.tables._columns import Columns, Decimal, read_columns
from looms.tables._dates import times_of
from looms.tables._frames import (
    check_names,
    columns_of,
    names_in,
    places_of,
    rows,
)
from looms.tables._kinds import CATEGORIES, DATES, Kind
from looms.tables._remarks import (
    SERIOUS,
    Remark,
    column_remarks,
    is_called_identifier,
    remark_on_identifiers,
    sentence,
    tells_rows_apart,
)

_NUMBERS = 1 << 20  # in the rows that are prepared at once


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

    Numbers and dates (as days) are centered, and scaled so that their variance is the share of row
    pairs that differ; a gap becomes the median, and is marked in a feature of its own. Text,
    categories and booleans become one feature of zeros and ones per value. Columns without two
    different values are dropped, and so are texts of which nearly every row has its own, such as
    identifiers: they say nothing about new rows. A sparse matrix stays sparse: columns of zeros are
    dropped, and the others divided by their largest absolute value.

    `fit` decides the kind of each column, as `Columns.of` does. Cells of new rows are read by
    these, each by itself.

    Parameters
    ----------
    max_categories : int, default=40
        Largest number of features for one column of categories. If a column has more values, the
        rarest share one feature, and values that `fit` did not meet belong to it too. Otherwise
        such a value is zero in all features of its column.
    kinds : mapping of str to str or Columns, default=None
        The columns to use, each with its kind, as in ``kinds_``; by default all are used, and
        their kinds are decided by `fit`. For refits to some rows of a table, pass ``kinds_`` of the
        whole table. Otherwise a column with one cell that is no date becomes a column of dates if
        that row is missing, and `transform` refuses the cell.
    decimal : {".", ","} or pair of str, default=None
        Decimal mark of numbers in text, as in `Columns.of`, unless ``kinds`` are `Columns`.

    Attributes
    ----------
    kinds_ : Columns
        Kind of each column that is kept, and how numbers are written in text; empty for a sparse
        matrix.
    ranges_ : dict of str to list of two floats
        Least and largest value of each column of numbers or dates, dates as days since 1970.
    medians_, means_, scales_ : ndarray of shape (n_numbers,)
        Of the columns of numbers and dates: value for gaps, mean, and divisor.
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
    Columns({'size': 'number', 'color': 'category'})
    >>> prepare.get_feature_names_out().tolist()
    ['size', 'size is missing', 'color = blue', 'color = red']
    >>> prepare.transform(pd.DataFrame({"color": ["green"], "size": [1.5]})).round(3).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    """

    kinds_: Columns
    ranges_: dict[str, list[float]]
    medians_: AnyArray
    means_: AnyArray
    scales_: AnyArray
    #: Places of the columns of numbers that have gaps.
    _marked: AnyArray
    #: Of each category, the values with a feature, None for gaps, and those that share one.
    _values: dict[str, list[str | None]]
    _rare: dict[str, list[str | None]]
    #: Columns of a sparse matrix that are kept.
    _kept: AnyArray
    _found: list[Any]
    #: In a state, those of `_HELD`.
    _columns: AnyArray

    def __init__(
        self,
        max_categories: int = 40,
        kinds: Mapping[str, Kind] | None = None,
        decimal: Decimal = None,
    ) -> None:
        self.max_categories, self.kinds, self.decimal = max_categories, kinds, decimal

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

    def inverse_transform(self, X: Any) -> Any:
        """Table of the columns that were kept, from their features.

        It is what the features tell of the cells: numbers up to rounding; dates as days since
        1970; text, categories and booleans as categories, of which the rarest may share the value
        "rare". Values that `fit` did not meet are gaps, and gaps in a column of numbers that had
        none in `fit` are its median.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Features, as `transform` gives them.

        Returns
        -------
        table : pandas.DataFrame or sparse matrix
            The columns of ``kinds_``; of a sparse matrix all columns, zero where they were dropped.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"size": [1, 2, None], "color": ["red", "blue", "red"]})
        >>> prepare = TablePreprocessor()
        >>> prepare.inverse_transform(prepare.fit_transform(table))
           size color
        0   1.0   red
        1   2.0  blue
        2   NaN   red
        """
        names = self.get_feature_names_out()
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        if X.shape[1] != len(names):
            raise ValueError(f"X has {X.shape[1]} features, but {len(names)} were made in fit.")
        if not self.kinds_:
            X = sparse.csr_array(X) @ sparse.diags_array(self.scales_, format="csr")
            shape = X.shape[0], self.n_features_in_
            return sparse.csr_array((X.data, self._kept[X.indices], X.indptr), shape=shape)
        pandas, columns = require("pandas", "A table of columns"), self.columns_
        cells = {name: _cells(self, name, X[:, columns == name], pandas) for name in self.kinds_}
        return pandas.DataFrame(cells)

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
        return np.array([name for name, _ in features_made(self)], dtype=object)

    @property
    def columns_(self) -> AnyArray:
        """For each feature, the name of the column that it was made from."""
        return np.array([column for _, column in features_made(self)], dtype=object)

    @property
    def remarks_(self) -> tuple[str, ...]:
        """Sentences on columns that may be other than they look."""
        return tuple(sentence(remark) for remark in remarks_in(self))

    def _fit(self, X: Any, ranges: Mapping[str, list[float]]) -> Parts | Matrix:
        """Converted columns of a table, to which the features are fitted."""
        check_count(self.max_categories, "max_categories")
        if sparse.issparse(X):
            return self._fit_sparse(X)
        X = rows(X)
        names = names_in(X)
        place = places_of(names, X.shape[1])
        given: Any = self.kinds
        if given is not None and not isinstance(given, Columns):
            given = dict(Columns(given))
        check_names(list(given or ()), place)
        chosen = list(given or place)
        columns = dict(zip(chosen, columns_of(X, [place[name] for name in chosen]), strict=True))
        decided, read = read_columns(columns, given or None, self.decimal)
        identifiers: list[str] = []
        if not given:
            identifiers = [name for name, column in read.items() if tells_rows_apart(column)]
        varying = [name for name, column in read.items() if column.varies]
        kept = [name for name in varying if name not in identifiers]
        if not kept:
            which = " in its one sample" if X.shape[0] == 1 else ""
            which += " that several rows share" if identifiers else ""
            raise ValueError(
                f"no column of the table has two different values{which}: there is nothing to "
                "learn from"
            )
        self._set_columns(X.shape[1], names)
        self.kinds_ = decided.only(kept)
        self._found = [*map(tuple, column_remarks(columns, read, identifiers, decided))]
        parts = self._joined({name: read[name].values for name in kept}, X.shape[0])
        self._fit_numbers(parts.numbers)
        self._fit_categories(parts.texts)
        found = {
            name: (float(np.nanmin(values)), float(np.nanmax(values)))
            for name, values in zip(self.kinds_.numbers, parts.numbers.T, strict=True)
        }
        self.ranges_ = {name: list(ranges.get(name, limits)) for name, limits in found.items()}
        return parts

    def _set_columns(self, n: int, names: list[str] | None) -> None:
        self.n_features_in_ = n
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _fit_sparse(self, X: Matrix) -> Matrix:
        X = self._checked_sparse(X)
        self._kept = np.unique(X.indices[X.data != 0])
        if not len(self._kept):
            raise ValueError("every value of the table is zero: there is nothing to learn from")
        self._set_columns(X.shape[1], None)
        self.kinds_, self.ranges_, self._found = Columns({}), {}, []
        matrix = self._columns_kept(X)
        self.scales_ = np.maximum.reduceat(abs(matrix.tocsc()).data, matrix.tocsc().indptr[:-1])
        return matrix

    def _fit_numbers(self, numbers: Array) -> None:
        gaps = np.isnan(numbers)
        self._marked = np.flatnonzero(gaps.any(axis=0))
        self.medians_ = np.array([np.nanmedian(column) for column in numbers.T])
        filled = np.where(gaps, self.medians_, numbers) if len(self._marked) else numbers
        self.means_, self.scales_ = pair_scales(filled)

    def _fit_categories(self, texts: AnyArray) -> None:
        """Values of the categories, in order; the rarest of very many share a feature."""
        self._values, self._rare = {}, {}
        for name, column in zip(self.kinds_.categories, texts.T, strict=True):
            counts = Counter(text if isinstance(text, str) else None for text in column)
            values: list[str | None] = [*sorted(text for text in counts if text is not None)]
            values += [None] * (None in counts)
            n_rare = len(values) - self.max_categories + 1
            rarest = np.argsort([counts[value] for value in values], kind="stable")[:n_rare]
            rare = {values[k] for k in rarest} if n_rare > 1 else set()
            self._values[name] = [value for value in values if value not in rare]
            self._rare[name] = [value for value in values if value in rare]

    def _parts(self, X: Any) -> Parts | Matrix:
        """Converted columns of any rows."""
        check_is_fitted(self)
        if not self.kinds_:
            X = X if sparse.issparse(X) else sparse.csr_array(check_array(X, dtype=np.float64))
            _check_n_features(self, X, reset=False)
            return self._columns_kept(self._checked_sparse(X))
        if sparse.issparse(X):
            raise TypeError(
                "the preprocessor was fitted to a table that is not sparse: give such a table, or "
                "fit it to a sparse matrix"
            )
        X = rows(X)
        names, given = getattr(self, "feature_names_in_", None), names_in(X)
        if names is not None and given is not None:
            names = given
        elif names is not None and [*names] == [*map(str, range(len(names)))]:
            _check_n_features(self, X, reset=False)  # pandas' names of columns without any
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
        values = self.kinds_.read_at(X, names)
        for name in self.kinds_.categories:
            seen: set[Any] = {*self._values[name], *self._rare[name]} - {None}
            unseen = {text for text in values[name] if isinstance(text, str)} - seen
            spelled = {text: spelling_in(text, seen) for text in unseen}
            if any(text != spelling for text, spelling in spelled.items()):
                values[name] = np.array([spelled.get(t, t) for t in values[name]], dtype=object)
        return self._joined(values, X.shape[0])

    def _checked_sparse(self, X: Any) -> Matrix:
        return check_array(X, accept_sparse="csr", ensure_all_finite=False, dtype=np.float64)

    def _columns_kept(self, X: Matrix) -> Matrix:
        """Columns of a sparse matrix that are kept; in the time of the stored values."""
        places = np.searchsorted(self._kept, X.indices)
        places[places == len(self._kept)] = 0
        is_kept = self._kept[places] == X.indices
        pointers = np.concatenate([[0], np.cumsum(is_kept)])[X.indptr]
        parts = X.data[is_kept], places[is_kept].astype(np.int32), pointers.astype(np.int32)
        return type(X)(parts, shape=(X.shape[0], len(self._kept)))

    def _joined(self, values: Mapping[str, AnyArray], n_rows: int) -> Parts:
        """Columns of floats and of texts, each column contiguous."""
        numbers, categories = self.kinds_.numbers, self.kinds_.categories
        floats = np.empty((len(numbers), n_rows))
        texts = np.empty((len(categories), n_rows), object)
        for k, name in enumerate(numbers):
            floats[k] = values[name]
        for k, name in enumerate(categories):
            texts[k] = values[name]
        return Parts(floats.T, texts.T)

    def _matrix(self, parts: Parts | Matrix) -> Matrix:
        """Features of converted columns, filled, scaled and coded."""
        if not isinstance(parts, Parts):
            scaled: Matrix = parts @ sparse.diags_array(1.0 / self.scales_, format="csr")
            return scaled
        n, width = len(parts.numbers), sum(part.shape[1] for part in parts)
        matrix = np.empty((n, len(self.columns_)))
        for rows_ in gen_batches(n, max(1, _NUMBERS // width)) if n else ():
            self._write(Parts(*(part[rows_] for part in parts)), matrix[rows_])
        return matrix

    def _write(self, parts: Parts, matrix: Array) -> None:
        """Features of some rows, written to their matrix."""
        gaps = np.isnan(parts.numbers)
        filled = np.where(gaps, self.medians_, parts.numbers)
        n, n_marked = filled.shape[1], len(self._marked)
        matrix[:, :n] = (filled - self.means_) / self.scales_
        matrix[:, n : n + n_marked] = gaps[:, self._marked]
        start, rows_ = n + n_marked, np.arange(len(matrix))
        matrix[:, start:] = 0.0
        for name, texts in zip(self.kinds_.categories, parts.texts.T, strict=True):
            values, rare = self._values[name], self._rare[name]
            place = {value: k for k, value in enumerate(values)}
            rare_place = len(values) if rare else -1
            found = [
                place.get(text if isinstance(text, str) else None, rare_place) for text in texts
            ]
            features = np.array(found, dtype=np.intp)
            has_feature = features >= 0
            matrix[rows_[has_feature], start + features[has_feature]] = 1.0
            start += len(values) + bool(rare)

    def __getstate__(self) -> dict[str, Any]:
        """State with the columns as one text, whatever their number.

        A model file has a node of some hundred bytes for each object, and an evaluated model holds
        a preprocessor for every fold.
        """
        state = dict(super().__getstate__())
        held = {name: state.pop(name) for name in _HELD & state.keys()}
        text = json.dumps(held, default=_json_encoded)
        return state | {"_columns": np.frombuffer(text.encode(), np.uint8)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        held = json.loads(state["_columns"].tobytes())
        state = {name: value for name, value in state.items() if name != "_columns"}
        super().__setstate__(
            state | {name: _json_decoded(name, value) for name, value in held.items()}
        )

    def __sklearn_tags__(self) -> Any:
        """Tags of a transformer of tables with text and gaps, or of sparse matrices."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


#: Attributes that a state holds as text.
_HELD = {"decimal", "kinds", "kinds_", "ranges_", "feature_names_in_", "_found", "_values", "_rare"}


def _json_encoded(value: Any) -> Any:
    """An attribute in the form that JSON has."""
    if isinstance(value, Columns):
        return [dict(value), value.decimal, value.thousands]
    return dict(value) if isinstance(value, Mapping) else value.tolist()


def _json_decoded(name: str, value: Any) -> Any:
    """An attribute from its form in JSON."""
    if name == "feature_names_in_":
        return np.array(value, dtype=object)
    if name == "decimal":
        return tuple(value) if isinstance(value, list) else value
    if name == "_found":
        return [tuple(fields) for fields in value]
    return Columns(*value) if isinstance(value, list) else value


def pair_scales(numbers: Array) -> tuple[Array, Array]:
    """Mean and scale of columns without gaps.

    Divided by its scale, the variance of a column is the share of row pairs that differ. Numbers
    without ties get unit variance. A column in which most rows agree, such as a count that is
    mostly zero, gets less, like the zeros and ones of a rare category. With unit variance its few
    other values would be farther from all rows than any value of other columns.

    Parameters
    ----------
    numbers : (n_samples, n_columns) numbers.

    Examples
    --------
    >>> X = np.column_stack([[3.0, 4.0, 5.0, 6.0], [0.0, 0.0, 0.0, 1.0]])
    >>> means, scales = pair_scales(X)
    >>> ((X - means) / scales).var(axis=0).round(12)  # in 3 of 6 pairs, the second differs
    array([1. , 0.5])
    """
    if not numbers.shape[1]:
        return np.empty(0), np.empty(0)
    standard = StandardScaler().fit(numbers)
    n_pairs = max(len(numbers) * (len(numbers) - 1), 1)
    counts = [np.unique(column, return_counts=True)[1] for column in numbers.T]
    share = 1.0 - np.array([sizes @ (sizes - 1) for sizes in counts]) / n_pairs
    return standard.mean_, standard.scale_ / np.sqrt(np.where(share > 0, share, 1.0))


def fitted_matrix(preprocessor: TablePreprocessor, X: Any) -> Matrix:
    """`TablePreprocessor.fit_transform` as a matrix, whatever the setting of outputs is."""
    return preprocessor._matrix(preprocessor._fit(X, {}))


def matrix_of(preprocessor: TablePreprocessor, X: Any) -> Matrix:
    """`TablePreprocessor.transform` as a matrix, whatever the setting of outputs is."""
    return preprocessor._matrix(preprocessor._parts(X))


def features_of_cells(
    preprocessor: TablePreprocessor, name: str, cells: Sequence[Any] | AnyArray
) -> tuple[AnyArray, Array]:
    """Values of cells of one column, (n,), and the features that are made of them, (n, k).

    ValueError for a cell of another kind, or a category that no row of the fit has.
    """
    kinds, n = preprocessor.kinds_, len(cells)
    values = kinds.only([name]).read_at(rows([[cell] for cell in cells]), [name])[name]
    if kinds[name] in CATEGORIES:
        known = {*preprocessor._values[name], *preprocessor._rare[name]}
        for text in values:
            if isinstance(text, str) and text not in known:
                raise ValueError(f"No row of the fit has {text!r} in column {name!r}.")
    gaps = {other: np.full(n, np.nan) for other in kinds}
    matrix = preprocessor._matrix(preprocessor._joined(gaps | {name: values}, n))
    return times_of(values) if kinds[name] in DATES else values, matrix[
        :, preprocessor.columns_ == name
    ]


def _cells(preprocessor: TablePreprocessor, name: str, features: Array, pandas: Any) -> Any:
    """Cells of one column, by the features that were made of it: floats, or categories."""
    if name in preprocessor.ranges_:
        return _numbers(preprocessor, name, features)
    values, rare = [*preprocessor._values[name]], "rare"
    if preprocessor._rare[name]:
        while rare in values:
            rare += " values"
        values.append(rare)
    codes = np.where(features.any(axis=1), features.argmax(axis=1), -1)
    if None in values:
        codes = np.where(codes == values.index(None), -1, codes - (codes > values.index(None)))
    return pandas.Categorical.from_codes(codes, [text for text in values if text is not None])


def _numbers(preprocessor: TablePreprocessor, name: str, features: Array) -> Array:
    """Numbers of one column by its features, with as many decimals as these tell; NaN for gaps."""
    k = preprocessor.kinds_.numbers.index(name)
    mean, scale = float(preprocessor.means_[k]), float(preprocessor.scales_[k])
    digits = min(14 - math.ceil(math.log10(max(abs(mean), scale))), 300)
    numbers = np.round(features[:, 0] * scale + mean, digits)
    return np.where(features[:, 1:].any(axis=1), np.nan, numbers)


def cells_of_features(preprocessor: TablePreprocessor, name: str, features: Array) -> AnyArray:
    """Cells of one column, by the features that were made of it; without gaps and rare values."""
    if name not in preprocessor.ranges_:
        values = np.array([*preprocessor._values[name], None], dtype=object)
        texts = values[np.where(features.any(axis=1), features.argmax(axis=1), len(values) - 1)]
        return texts[[isinstance(text, str) for text in texts]]
    numbers = _numbers(preprocessor, name, features)
    numbers = numbers[~np.isnan(numbers)]
    return times_of(numbers) if preprocessor.kinds_[name] in DATES else numbers


def remarks_in(preprocessor: TablePreprocessor, grouped: bool = False) -> list[Remark]:
    """Remarks on the columns that a preprocessor was fitted to, without advice; where rows are
    ``grouped`` none on columns that may name groups."""
    check_is_fitted(preprocessor)
    found = [Remark(*fields) for fields in preprocessor._found]
    return [remark for remark in found if not (grouped and remark.topic == "repeated")]


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
    numbered = enumerate(features_made(preprocessor))
    return {column: k for k, (name, column) in numbered if name == f"{column} is missing"}


def features_made(preprocessor: TablePreprocessor) -> Iterator[tuple[str, str]]:
    """Name and column of every feature that a preprocessor makes."""
    check_is_fitted(preprocessor)
    columns = preprocessor.kinds_
    if not columns:
        yield from ((f"x{k}", f"x{k}") for k in preprocessor._kept)
        return
    numbers = columns.numbers
    yield from ((name, name) for name in numbers)
    yield from ((f"{numbers[k]} is missing", numbers[k]) for k in preprocessor._marked)
    for name, values in preprocessor._values.items():
        for value in values:
            yield f"{name} is missing" if value is None else f"{name} = {value}", name
        if preprocessor._rare[name]:
            yield f"{name} is rare", name
