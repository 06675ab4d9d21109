"""Texts that are numbers, and texts that a person may read as one.

The patterns are for Python's ``re`` and for RE2, in which only ``\\d`` differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from looms._typing import AnyArray

#: A number with a point, without its sign.
UNSIGNED = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?|nan)"
#: By decimal mark, numbers whose thousands may be separated by the other mark.
NUMBER = {
    mark: rf"^[ \t]*[+-]?(?:[1-9][0-9]{{0,2}}(?:[{other}][0-9]{{3}})+(?:[{mark}][0-9]*)?|"
    rf"{UNSIGNED.replace(chr(92) + '.', f'[{mark}]')})[ \t]*$"
    for mark, other in ((".", ","), (",", "."))
}
ANY_NUMBER = "|".join(NUMBER.values())
_BLANKS = "[ \t\u00a0\u202f]"
_MINUS = "\u2212"


def like_a_number(digit: str) -> str:
    """Pattern of what people in some country, or some program, would read as a number.

    ``digit`` is the pattern of a digit of any alphabet.
    """
    return (
        rf"^{_BLANKS}*[-+{_MINUS}]?{_BLANKS}*[$€£¥]?{_BLANKS}*"
        rf"(?:0[xX][0-9a-fA-F.pP]+|{digit}+(?:_{digit}+)*|{digit}{{1,3}}"
        rf"(?:[.,'’ {_BLANKS[3:-1]}]{digit}{{3}})+)"
        rf"(?:[.,]{digit}*)?(?:[eE][-+]?{digit}+)?{_BLANKS}*[%‰$€£¥]?{_BLANKS}*$"
        rf"|{ANY_NUMBER}"
    )


_LIKE_A_NUMBER = re.compile(like_a_number(r"\d"))


def number_like(values: Iterable[object]) -> AnyArray:
    """True for texts that a person may read as a number."""
    like = (isinstance(v, str) and _LIKE_A_NUMBER.fullmatch(v) is not None for v in values)
    return np.fromiter(like, dtype=bool)
