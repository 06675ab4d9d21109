"""Syntax of numbers, the same in every format.

Python's ``float`` and NumPy also read ``1_000``, digits of other alphabets, ``1e400`` as infinite
and 9007199254740993 as the even number next to it. Here the first two are not numbers. In formats
that declare numbers (ARFF, svmlight), a token that is not a number is an error with its
place; in others (CSV, spreadsheets, labels) it makes the column text.

A whole number that floats round is more likely an identifier than a measurement, and two of them
might become one. A column with such a number is therefore text, with a note; formats without text
refuse it.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from looms._number_text import UNSIGNED
from looms.datasets._table import TableError

_NUMBER = re.compile(rf"[+-]?(?:{UNSIGNED})", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d++", re.ASCII)
_INDEX = re.compile(r"\d{1,10}", re.ASCII)

#: Whole numbers up to this one are exact as floats.
EXACT = 2**53


class RoundedError(ValueError):
    """Error for a whole number that floats round."""


def number(token: str) -> float:
    """Value of a token; ValueError with the reason if it is not a number.

    Exponents and decimals may round; a whole number that floats round is a `RoundedError`.
    """
    if not _NUMBER.fullmatch(token):
        raise ValueError("is not a number")
    value = float(token)
    if math.isinf(value) and token.lstrip("+-")[0] in ".0123456789":
        raise ValueError("is too large a number")
    if abs(value) >= EXACT and _WHOLE.fullmatch(token) and int(token) != value:
        raise RoundedError("has more digits than a float holds")
    return value


#: In notes on columns that do not become numbers.
AS_TEXT = "read as text"


def left_as_text(name: str, row: int, cell: str, reason: object) -> str:
    """Note on a column that is text because of one cell, in a data row counted from zero."""
    shown = cell if len(cell) <= 40 else f"{cell[:37]}..."
    return f"column {name!r} is {AS_TEXT}, because {shown!r} (data row {row + 1}) {reason}"


def text_of(cell: object) -> str:
    """A cell as text, a whole number without a decimal point."""
    return str(cell).removesuffix(".0")


def index(token: str) -> int:
    """Index of a sparse row; ValueError with the reason if it is not valid."""
    if not _INDEX.fullmatch(token) or int(token) >= 2**31 - 1:
        raise ValueError("is not an index below 2147483647")
    return int(token)


def pair(token: str) -> tuple[int, float]:
    """Index and value of ``index:value``; ValueError with the reason if it is not valid."""
    left, colon, right = token.partition(":")
    if not colon:
        raise ValueError("is not a pair index:value")
    return index(left), number(right)


def bad_token(path: Path, line: int, column: int, token: str, reason: str) -> TableError:
    """Error for a token, with its place counted from one."""
    shown = token if len(token) <= 40 else f"{token[:37]}..."
    return TableError(
        path,
        f"line {line}, column {column}: {shown!r} {reason}",
        "Correct the line, or get the file again.",
    )
