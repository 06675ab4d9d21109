"""Texts that are numbers, and texts that a person may read as one."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from looms._typing import AnyArray

#: A number with a point, without its sign.
UNSIGNED = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?|nan)"
#: By decimal mark, numbers whose thousands may be separated by the other mark: for ``re`` and RE2.
NUMBER = {
    mark: rf"^[ \t]*[+-]?(?:[1-9][0-9]{{0,2}}(?:[{other}][0-9]{{3}})+(?:[{mark}][0-9]*)?|"
    rf"{UNSIGNED.replace(chr(92) + '.', f'[{mark}]')})[ \t]*$"
    for mark, other in ((".", ","), (",", "."))
}
_BLANKS = "[ \t\u00a0\u202f]"
_MINUS = "\u2212"
#: What people in some country, or some program, would read as a number.
_LIKE_A_NUMBER = re.compile(
    rf"^{_BLANKS}*[-+{_MINUS}]?{_BLANKS}*[$€£¥]?{_BLANKS}*"
    rf"(?:0[xX][0-9a-fA-F.pP]+|\d+(?:_\d+)*|\d{{1,3}}(?:[.,'’ {_BLANKS[3:-1]}]\d{{3}})+)"
    rf"(?:[.,]\d*)?(?:[eE][-+]?\d+)?{_BLANKS}*[%‰$€£¥]?{_BLANKS}*$"
    rf"|{'|'.join(NUMBER.values())}"
)


def number_like(values: Iterable[object]) -> AnyArray:
    """True for texts that a person may read as a number."""
    like = (isinstance(v, str) and _LIKE_A_NUMBER.fullmatch(v) is not None for v in values)
    return np.fromiter(like, dtype=bool)
