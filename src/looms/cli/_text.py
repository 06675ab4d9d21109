"""Text of other people's on its way out: to a terminal, and to a table that a spreadsheet opens."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: Format characters that join letters and change nothing else.
_JOINERS = "\u200c\u200d"
#: What a spreadsheet takes for a formula; a sign alone is a label.
_FORMULA = re.compile(r"'*(?:[=@\t\r\n]|[+-](?=.)).*", re.DOTALL)


def visible(text: str, keep: str = "") -> str:
    """Text with what a terminal obeys instead of showing it as escapes, such as ``\\x1b``.

    Control characters, line separators, marks that turn the direction of writing and other
    format characters, and halves of characters.

    Parameters
    ----------
    text : what names, labels and messages hold.
    keep : characters to leave as they are.
    """
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in _JOINERS + keep
        else c
        for c in text
    )


def without_formula(value: Any) -> Any:
    """A cell, with an apostrophe in front if a spreadsheet would run it; numbers stay as they are.

    Text that begins with apostrophes before such a sign gets another one, so that taking away one
    apostrophe from every cell of that kind gives back what was written.
    """
    if not isinstance(value, str) or not _FORMULA.fullmatch(value):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def csv_of(table: pd.DataFrame, **options: Any) -> tuple[str, int]:
    """A table as CSV without formulas, and how many of its cells and names have an apostrophe.

    Parameters
    ----------
    table : what to write.
    options : of ``DataFrame.to_csv``.
    """
    safe = table.copy()
    n_changed = 0

    def guarded(values: Any) -> list[Any]:
        nonlocal n_changed
        after = [without_formula(value) for value in values]
        n_changed += sum(a is not b for a, b in zip(after, values, strict=True))
        return after

    for k, kind in enumerate(table.dtypes):
        if kind.kind not in "biufcmM":
            safe.isetitem(k, guarded(table.iloc[:, k].astype(object).tolist()))
    safe.columns = guarded(table.columns.tolist())
    name = table.index.name
    if table.index.dtype.kind not in "iu":
        safe.index = guarded(table.index.tolist())
    safe.index.name = name
    return str(safe.to_csv(lineterminator="\n", **options)), n_changed
