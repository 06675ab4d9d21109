"""Chooses the reader by the name of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import pandas

from looms._advice import setting
from looms._checks import check_known
from looms.datasets._arff import read_arff
from looms.datasets._arrow import arrow_source, object_source
from looms.datasets._bytes import MAX_BYTES, STDIN, is_pipe
from looms.datasets._delimited import delimited_source
from looms.datasets._rows import RowReader, reader_of
from looms.datasets._sparse import read_npz, svmlight_reader
from looms.datasets._spreadsheet import read_spreadsheet
from looms.datasets._table import Table, TableError, checked, no_rows, split_target

Format = Literal["csv", "tsv", "parquet", "arrow", "arff", "svmlight", "spreadsheet", "npz"]

_SUFFIXES_OF: dict[Format, str] = {
    "csv": ".csv",
    "tsv": ".tsv .tab",
    "parquet": ".parquet .pq",
    "arrow": ".arrow .feather .arrows",
    "arff": ".arff",
    "svmlight": ".svm .svmlight .libsvm",
    "spreadsheet": ".xlsx .xlsm .xls .ods",
    "npz": ".npz",
}
#: The format that each suffix stands for; ``.gz`` may follow any of them.
SUFFIXES = {suffix: format for format, all in _SUFFIXES_OF.items() for suffix in all.split()}

#: Usual separator of cells.
_USUAL = {"csv": ",", "tsv": "\t"}

#: Formats that each option applies to.
_OPTIONS = {"sep": ("csv", "tsv"), "encoding": ("csv", "tsv"), "sheet": ("spreadsheet",)}


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    format: Format | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    keep: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
    drop_missing_targets: bool = False,
) -> Table:
    """Read a file into features and target.

    Parameters
    ----------
    path : path
        File in one of the formats below, or a pipe; unpacked if its name ends in ``.gz``. ``-`` is
        standard input.
    target : str, optional
        Name of the column to predict; without it all columns are features. Not for svmlight
        and npz files, whose target is in the file itself or in a file of labels in the same folder.
    format : {"csv", "tsv", "parquet", "arrow", "arff", "svmlight", "spreadsheet", "npz"}, optional
        Format, by default from the file's name: ``.csv``; ``.tsv``, ``.tab``;
        ``.parquet``, ``.pq``; ``.arrow``, ``.feather``, ``.arrows``; ``.arff``; ``.svm``,
        ``.svmlight``, ``.libsvm``;
        ``.xlsx``, ``.xlsm``, ``.xls``, ``.ods``; ``.npz``, a sparse matrix written by
        ``scipy.sparse.save_npz``; CSV for standard input.
    sep : str, optional
        Character between the cells of a CSV or TSV file. By default the one among comma,
        semicolon, tab and bar that alone gives all rows the same number of cells, or the one in a
        first line such as ``sep=;``.
    encoding : str, optional
        Encoding of a CSV or TSV file. By default UTF-16 if the file begins with its byte
        order mark, else UTF-8, else cp1252.
    sheet : str or int, optional
        Name of a spreadsheet's sheet, or its number from 1. By default the only sheet with data.
    keep : sequence of str, default=()
        Columns whose cells are also kept in ``table.kept``, as the text in the file; those of
        numbers and dates as text.
    max_bytes : int, default=2**30
        Largest unpacked size of the file in bytes; larger files are refused. Reading a table
        takes several times as much memory.
    drop_missing_targets : bool, default=False
        Whether rows whose target, a named column, is missing are left out, with a note. The index
        of ``table.X`` has the places of the others in the file, from 0. By default they are an
        error.

    Returns
    -------
    table : Table
        Features, target, name, and notes on the detected dialect.

    Raises
    ------
    TableError
        If the file is not a complete and plain table; the message has the problem and advice.
    ValueError
        If ``format`` is not known, or ``sep`` is not a single ASCII character.
    ImportError
        If pandas, pyarrow or python-calamine is needed and not installed.

    Notes
    -----
    Cells are as they are in the file; what they mean is decided by the rows of a fit, in
    `looms.tables.Columns`. Those of CSV and TSV files, nominal values and text of ARFF files,
    columns of a sheet that hold only text, and labels beside npz files are columns of the type
    ``pandas.ArrowDtype(pyarrow.large_string())``: text as it is written, with its blanks. Other
    columns have the types of the file. A column of a sheet of several types has each cell by its
    own.

    Rows are counted by their place in the file. A blank line is a row if the file has one column,
    and a blank row between others is one in a sheet; those at the end are none. The index that
    pandas stores in Parquet and Feather files is a column if it has a name, else nothing.

    In formats that declare numbers (ARFF, svmlight), a cell that is no number, such as ``1_000``,
    or is too large for one (``1e400``), is an error with its row. Whole numbers that floats round
    stay integers in ARFF and Parquet files, and are refused in svmlight and npz files. For formulas
    in a spreadsheet, the values that the program stored in the file are read; errors are gaps. A
    target that is missing, however text spells that, or infinite is an error.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "iris.csv")
    ...     _ = path.write_text("width;height;kind\\n3,5;1,4;setosa\\n3,0;4,7;versicolor\\n")
    ...     table = read_table(path, target="kind")
    >>> table.X.to_numpy().tolist(), table.y.tolist()
    ([['3,5', '1,4'], ['3,0', '4,7']], ['setosa', 'versicolor'])
    >>> from looms.tables import Columns
    >>> Columns.of(table.X).typed(table.X)
       width  height
    0    3.5     1.4
    1    3.0     4.7
    """
    path = Path(path)
    options = {"sep": sep, "encoding": encoding, "sheet": sheet}
    reader = _reader(path, target, keep, format, options, max_bytes, at_once=True)
    table = next(reader.tables(sys.maxsize), None)
    if table is None:
        raise no_rows(path)
    if not isinstance(table.X, pandas.DataFrame) and not table.X.nnz and table.y is not None:
        advice = "Every row must be a target and index:value pairs."
        raise TableError(path, "no row has a feature", advice)
    return checked(replace(table, notes=reader.notes), path, drop_missing_targets)


def open_table(
    source: Any,
    target: str | None = None,
    *,
    format: Format | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    keep: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
) -> RowReader:
    """Open a table that may be larger than memory, to read it in blocks.

    Parameters
    ----------
    source : path or object
        A file as in `read_table`; a pandas.DataFrame; an object with ``__arrow_c_stream__``; or a
        function that returns pyarrow record batches, from the start at each call.
    target, format, sep, encoding, sheet, keep
        As in `read_table`.
    max_bytes : int, default=2**30
        As in `read_table`, for what is read at once: ARFF, spreadsheets and npz files, compressed
        (``.gz``) Parquet and Arrow files, and pipes. Other formats have no limit, because only one
        block is in memory.

    Returns
    -------
    reader : RowReader
        Its ``tables()`` yields each `Table` of consecutive rows, with cells as `read_table` gives
        them.

    Raises
    ------
    TableError, ValueError, ImportError
        As in `read_table`; also while rows are read, with the row or batch.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]})
    >>> for table in open_table(frame, target="kind").tables(2):
    ...     print(table.X["size"].tolist(), table.y.tolist())
    [1.0, 2.0] ['a', 'b']
    [3.0] ['a']
    """
    if isinstance(source, pandas.DataFrame):
        path = Path("the DataFrame")
        return reader_of(split_target(source.reset_index(drop=True), target, path, keep), path)
    if not isinstance(source, str | os.PathLike):
        return object_source(source).reader(target, keep)
    options = {"sep": sep, "encoding": encoding, "sheet": sheet}
    return _reader(Path(source), target, keep, format, options, max_bytes)


def _reader(
    path: Path,
    target: str | None,
    keep: Sequence[str],
    format: Format | None,
    options: dict[str, Any],
    max_bytes: int,
    at_once: bool = False,
) -> RowReader:
    """Reader of a file; in memory if it is to be read at once, or can be read only once."""
    if os.path.isdir(path):  # unlike Path.is_dir() not an error for names that cannot be
        raise TableError(path, "this is a folder", "Name one file in it.")
    format = format or _guess(path)
    check_known(format, "format", get_args(Format))
    given = {name: value for name, value in options.items() if value is not None}
    _check_options(path, target, keep, format, given)
    if format == "npz":
        return reader_of(read_npz(path, max_bytes), path)
    if format in ("arff", "spreadsheet"):
        read = read_arff if format == "arff" else read_spreadsheet
        return reader_of(split_target(read(path, max_bytes, **given), target, path, keep), path)
    packed = path.suffix == ".gz" and format in ("parquet", "arrow")
    limit = max_bytes if at_once or packed or is_pipe(path) else None
    if format == "svmlight":
        return svmlight_reader(path, limit)
    if format in ("parquet", "arrow"):
        return arrow_source(path, format, limit).reader(target, keep)
    return delimited_source(path, _USUAL[format], limit, **given).reader(target, keep)


def _check_options(
    path: Path, target: str | None, keep: Sequence[str], format: Format, given: dict[str, Any]
) -> None:
    """Refuses options that are not for a format."""
    for name, value in given.items():
        if format not in _OPTIONS[name]:
            files = " and ".join(_OPTIONS[name])
            problem = f"{name}={value!r} is for {files} files, and this is {format}"
            raise TableError(path, problem, "Leave it out.")
    sep = given.get("sep", ",")
    if len(sep) != 1 or not sep.isascii() or sep in '"\r\n':
        raise ValueError(
            f"{setting('sep', sep)} is not one character of ASCII other than a quotation mark"
        )
    if format in ("svmlight", "npz"):
        if keep:
            raise TableError(path, f"there is no column {keep[0]!r}", "Its columns have no names.")
        if target is not None:
            problem = "the target cannot be chosen: it is in the file itself or in one of labels"
            raise TableError(path, problem, f"Leave out the target {target!r}.")


def _guess(path: Path) -> Format:
    if path == STDIN:
        return "csv"
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if suffix == ".labels":
        advice = "Name the file of the data, which ends in .npz."
        raise TableError(path, "these are labels without data", advice)
    problem = f"the suffix {suffix!r} is of no known format" if suffix else "its name has no suffix"
    formats = f"{setting('format', ...)}: {', '.join(get_args(Format))}"
    advice = f"Known are {', '.join(SUFFIXES)}; or give {formats}."
    raise TableError(path, problem, advice)
