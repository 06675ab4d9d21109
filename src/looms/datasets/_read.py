"""From a file's name to its reader."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, get_args

from looms.datasets._arff import read_arff
from looms.datasets._bytes import MAX_BYTES
from looms.datasets._challenge import read_challenge
from looms.datasets._delimited import read_delimited
from looms.datasets._parquet import read_parquet
from looms.datasets._sparse import read_npz
from looms.datasets._spreadsheet import read_spreadsheet
from looms.datasets._svmlight import read_svmlight
from looms.datasets._table import Table, TableError, refuse_target, split_target

Format = Literal["csv", "tsv", "parquet", "arff", "svmlight", "challenge", "spreadsheet", "npz"]

#: The format that each suffix stands for; ``.gz`` may follow any of them.
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".data": "challenge",
    ".xlsx": "spreadsheet",
    ".xlsm": "spreadsheet",
    ".xls": "spreadsheet",
    ".ods": "spreadsheet",
    ".npz": "npz",
}

#: The formats that each option is for.
_OPTIONS: dict[str, tuple[Format, ...]] = {
    "sep": ("csv", "tsv"),
    "decimal": ("csv", "tsv", "spreadsheet"),
    "encoding": ("csv", "tsv"),
    "sheet": ("spreadsheet",),
}


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    format: Format | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    max_bytes: int = MAX_BYTES,
) -> Table:
    """Read a file into features and target.

    Parameters
    ----------
    path : path
        A file in a format below; with ``.gz`` at its end it is unpacked.
    target : str, optional
        Name of the column to predict. Not for svmlight, challenge and npz files, which say
        themselves what their target is, or a file of labels beside them does. Without it all
        columns are features.
    format : {"csv", "tsv", "parquet", "arff", "svmlight", "challenge", "spreadsheet", "npz"}, \
            optional
        The format, when the file's name does not tell: ``.csv``; ``.tsv``, ``.tab``;
        ``.parquet``, ``.pq``; ``.arff``; ``.svm``, ``.svmlight``, ``.libsvm``; ``.data``;
        ``.xlsx``, ``.xlsm``, ``.xls``, ``.ods``; ``.npz``, a sparse matrix of
        ``scipy.sparse.save_npz``.
    sep : str, optional
        The character between the cells of a CSV or TSV file. By default the only one of comma,
        semicolon, tab and bar that gives all rows as many cells.
    decimal : {".", ","}, optional
        The decimal mark of numbers in a CSV or TSV file, or in the text cells of a spreadsheet.
        If it is given, the other mark may part thousands. By default a comma if some column can
        be read as numbers only so, and no column only with a point.
    encoding : str, optional
        The encoding of a CSV or TSV file. By default UTF-16 if the file begins with its byte
        order mark, else UTF-8, else cp1252.
    sheet : str or int, optional
        Name of a sheet of a spreadsheet, or its number from 1. By default the only one with data.
    max_bytes : int, default=2**30
        Bytes of the file, unpacked, beyond which it is refused. While it is read a table takes
        up to fourteen times as much memory.

    Returns
    -------
    table : Table
        Features, target, name, and notes on what was detected.

    Raises
    ------
    TableError
        If the file is not a whole and plain table; the message says what is wrong, and what to do.
    ValueError
        If ``sep`` is no single character, or ``decimal`` neither point nor comma.
    ImportError
        If pandas, pyarrow or python-calamine is needed and not installed.

    Notes
    -----
    In CSV, TSV and ARFF files an empty cell (not in ARFF) and ``?`` are missing values; in CSV and
    TSV files also ``NA``, ``N/A``, ``NaN`` and ``NULL``. In spreadsheets empty cells and errors
    such as ``#N/A`` are; of formulas the values are read, which the program that wrote the file
    stored; text cells are read as cells of a CSV file.
    """
    path = Path(path)
    if os.path.isdir(path):  # unlike Path.is_dir() not an error for names that cannot be
        raise TableError(path, "this is a folder", "Name one file in it.")
    format = format or _guess(path)
    options = {"sep": sep, "decimal": decimal, "encoding": encoding, "sheet": sheet}
    for name, value in options.items():
        if value is not None and format not in _OPTIONS[name]:
            raise TableError(
                path,
                f"{name} is for {' and '.join(_OPTIONS[name])} files, and this is {format}",
                "Leave it out.",
            )
    if sep is not None and (len(sep) != 1 or sep in '"\r\n'):
        raise ValueError(f"sep must be one character, and not a quotation mark: {sep!r}")
    if decimal not in (None, ".", ","):
        raise ValueError(f'decimal must be "." or ",", not {decimal!r}')
    if format == "svmlight":
        refuse_target(target, path, "an svmlight file begins every row with it")
        return read_svmlight(path, max_bytes)
    if format == "challenge":
        refuse_target(target, path, "it is in the file of the labels")
        return read_challenge(path, max_bytes)
    if format == "npz":
        refuse_target(target, path, "it is in the file of the labels")
        return read_npz(path, max_bytes)
    notes: tuple[str, ...] = ()
    if format == "parquet":
        frame = read_parquet(path, max_bytes)
    elif format == "arff":
        frame = read_arff(path, max_bytes)
    elif format == "spreadsheet":
        frame, notes = read_spreadsheet(path, sheet, decimal, max_bytes)
    else:
        usual = "\t" if format == "tsv" else ","
        frame, notes = read_delimited(path, usual, sep, decimal, encoding, max_bytes)
    return split_target(frame, target, path, notes)


def _guess(path: Path) -> Format:
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix == ".labels":
        raise TableError(
            path, "these are labels without data", "Name the file of the data, which ends in .data."
        )
    if suffix not in SUFFIXES:
        raise TableError(
            path,
            f"the suffix {suffix!r} is of no known format" if suffix else "its name has no suffix",
            f"Known are {', '.join(SUFFIXES)}; or give the format: {', '.join(get_args(Format))}.",
        )
    return SUFFIXES[suffix]
