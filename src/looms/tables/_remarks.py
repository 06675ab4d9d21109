"""Remarks on columns that may be other than they look: left out, dates, identifiers, groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from looms._advice import UNSET, setting
from looms._number_text import UNSIGNED, number_like
from looms._optional import require
from looms._typing import AnyArray, Array
from looms._words import count, listed, row_name
from looms.tables._cells import Marks, is_code, number_of
from looms.tables._columns import Columns
from looms.tables._frames import Column
from looms.tables._kinds import CATEGORIES, Read, date_like

#: With fewer rows, different values are not a sign of an identifier.
_FEWEST_ROWS = 20
#: A text has as good as a different value in every row if there are so many to a row.
_NEARLY_ALL = 0.9
#: With so many different values or fewer, rows that share one are not a sign of a group; of persons
#: there may be fewer.
_FEW_VALUES, _FEW_PERSONS = 20, 5
#: Name of a column of whole numbers that may be identifiers.
_IDENTIFIER = re.compile(
    r"(?i:(?:^|[^a-z])(?:id|no|nr|number))$|[a-z](?:I[Dd]|No|N[Rr]|Number)$"
    r"|(?i:^(?:patient|person|subject|participant|customer|user)s?$)"
)
#: Name of a column of persons.
_PERSON = re.compile(
    r"(?i)(?:patient|person|subject|participant|customer|user)[ _.-]?(?:id|no|nr|number)?"
)
#: Values up to which decimals in text, such as numbers of versions, may be codes.
_MOST_CODES = 10
#: A number as programs read it.
_PLAIN = re.compile(rf"[+-]?(?:{UNSIGNED})")
#: A day and a month, in either order, and a year of two digits.
_SHORT_YEAR = re.compile(r"(0?[1-9]|[12]\d|3[01])([./-])(0?[1-9]|[12]\d|3[01])\2\d\d")
#: Kinds of date, and the order of their numbers.
DATES = {
    "date": "",
    "day-first date": ", the day before the month,",
    "month-first date": ", the month before the day,",
}
#: Topics of remarks on columns that may not become the numbers that they hold, or are dropped.
CHANGED = {"words", "unclear", "identifiers of rows", "marks"}
#: Topics of remarks that ask for a change of the table.
SERIOUS = CHANGED | {"identifiers", "stand-ins"}
#: Topics of remarks on what misleads models or their scores, in checks and reports.
GRAVE = CHANGED - {"identifiers of rows"} | {"stand-ins", "repeated"}
#: A number may stand for a gap if so many rows, and this share of all, have it, and it is farther
#: from the nearest of this many other values than these are from one another.
_ROWS_OF_STAND_IN, _SHARE_OF_STAND_IN, _OTHER_VALUES = 3, 0.01, 10


class Remark(NamedTuple):
    """What was found of some columns.

    Attributes
    ----------
    topic : "words", "codes", "comma", "marks", "gaps", "constant", "identifiers of rows",
        "unclear", "dates", "identifiers", "lists", "repeated", "stand-ins" or "time".
    columns : names of the columns.
    text : the sentence, without the advice for its topic.
    """

    topic: str
    columns: list[str]
    text: str


def sentence(remark: Remark) -> str:
    """A remark with the advice for its topic, if there is one."""
    only = remark.columns[0] if len(remark.columns) == 1 else UNSET
    left_out = f"leave it out{setting('drop', text='')}"
    unless = f"; {left_out} unless new rows have the same"
    windows = setting("windows", text="windows of time, as GapKFold does")
    advice = {
        "dates": f"{unless} dates, and if rows resemble the next ones, hold out {windows}",
        "time": f"{unless} values",
        "identifiers": f"; if this is an identifier, which says nothing about new rows, {left_out}",
        "repeated": f"hold them out {setting('group rows', only, 'together, as groups')}",
    }
    return remark.text + advice.get(remark.topic, "")


def column_remarks(
    columns: Mapping[str, Column],
    read: Mapping[str, Read],
    identifiers: list[str],
    decided: Columns,
) -> Iterator[Remark]:
    """Remarks on the columns of a table, as they were given, read and decided.

    The ``identifiers``, of which nearly every row has its own text, are dropped.
    """
    signs = [*_sign_remarks(columns, read)]
    yield from signs
    yield from _mark_remarks(columns, read, decided)
    gaps = {spelled: None for column in read.values() for spelled in column.gaps}
    if gaps:
        names = [name for name, column in read.items() if column.gaps]
        are = "is read as a gap" if len(gaps) == 1 else "are read as gaps"
        yield Remark("gaps", names, f"{listed(gaps)} {are}, in {listed(names)}")
    used = {name: column for name, column in read.items() if name not in identifiers}
    kept = {name: column for name, column in used.items() if column.varies}
    plain = {name: column for name, column in kept.items() if column.sign is None}
    broken = [*_word_remarks(columns, plain, "number", partial(_number_like, decided.marks))]
    broken_names = {name for remark in broken for name in remark.columns}
    unbroken = {name: column for name, column in plain.items() if name not in broken_names}
    broken += [
        *_written_number_remarks(unbroken),
        *_word_remarks(columns, unbroken, "date", date_like),
    ]
    yield from broken
    constant = [name for name, column in used.items() if not column.varies]
    if constant:
        text = "dropped, because they have the same value in every row: "
        yield Remark("constant", constant, text + listed(constant))
    if identifiers:
        text = "dropped, because (nearly) every row has its own value: "
        yield Remark("identifiers of rows", identifiers, text + listed(identifiers))
    unclear = [name for name, column in read.items() if len(column.kinds) > 1]
    short = [name for name, column in read.items() if _is_of_short_years(column)]
    whys = {"either number may be the day": unclear, "the year has two digits": short}
    for why, names in whys.items():
        if names:
            cell = next(text for text in read[names[0]].values if isinstance(text, str))
            yield Remark(
                "unclear",
                names,
                f"{listed(names)}: treated as text, because in dates such as {cell!r} {why}; write "
                "them as 2021-12-31 to have them read as dates",
            )
    certain = {name: column for name, column in kept.items() if len(column.kinds) == 1}
    yield from date_remarks({name: column.kind for name, column in certain.items()})
    told = [*broken, *(remark for remark in signs if remark.topic == "words")]
    explained = {*short, *(name for remark in told for name in remark.columns)}
    rest = {name: column for name, column in certain.items() if name not in explained}
    lists = [*_list_remarks(rest | {name: read[name] for name in identifiers})]
    yield from lists
    lists_in = {name for remark in lists for name in remark.columns}
    yield from _repeat_remarks({name: rest[name] for name in rest if name not in lists_in})
    yield from _stand_in_remarks(rest)


def _stand_in_remarks(read: Mapping[str, Read]) -> Iterator[Remark]:
    """Columns in which a number far from all others, such as 999, may stand for a gap."""
    found = dict[str, str]()
    for name, column in read.items():
        if column.kinds != ("number",):
            continue
        values, counts = np.unique(column.values[~np.isnan(column.values)], return_counts=True)
        least = max(_ROWS_OF_STAND_IN, _SHARE_OF_STAND_IN * counts.sum())
        for place, others in ((0, values[1:]), (-1, values[:-1])):
            value, n = float(values[place]), int(counts[place])
            if value == 0 or n < least or len(others) < _OTHER_VALUES:
                continue
            low, high = others[0], others[-1]
            if min(abs(value - low), abs(value - high)) > high - low:
                is_far = f"{value:g} in {count(n, 'row')}, and from {low:g} to {high:g} elsewhere"
                found.setdefault(name, is_far)
    if found:
        (name, is_far), *rest = found.items()
        so_are = f"; so it is in {listed(each for each, _ in rest)}" if rest else ""
        yield Remark(
            "stand-ins",
            [*found],
            f"column {name!r} is {is_far}: if such a number stands for a gap, leave the cells "
            f"empty{so_are}",
        )


def _list_remarks(read: Mapping[str, Read]) -> Iterator[Remark]:
    """Columns of text whose cells hold lists."""
    texts = {name: column.values for name, column in read.items() if column.kinds == ("category",)}
    for mark in ";,":
        names = [name for name, values in texts.items() if _are_lists(values, mark)]
        if names:
            text = f"cells hold lists separated by {mark!r}; a column for each part is better"
            yield Remark("lists", names, f"{listed(names)}: {text}")


def _are_lists(values: AnyArray, mark: str) -> bool:
    """True if half of the texts or more have a separator, and the parts are fewer than texts."""
    cells = [text for text in values if isinstance(text, str)]
    parts = {part.strip() for text in set(cells) for part in text.split(mark)}
    return len(parts) < len(set(cells)) and 2 * sum(mark in text for text in cells) >= len(cells)


def _sign_remarks(columns: Mapping[str, Column], read: Mapping[str, Read]) -> Iterator[Remark]:
    """Columns that look like numbers and are none: codes, identifiers, unclear marks."""
    whys = {
        "code": "is a code",
        "rounded": "has more digits than a float holds",
        "mark": "may have a decimal mark or a separator of thousands; choose by "
        f"{setting('decimal', ...)}, a comma or a point",
        "other mark": f"has another decimal mark than the {setting('decimal', ...)} of the table; "
        "write all columns with one of the two",
    }
    for topic, why in whys.items():
        signs = {
            name: column.sign
            for name, column in read.items()
            if column.sign and column.sign[0] == topic
        }
        if signs:
            name, (_, row, cell) = next(iter(signs.items()))
            where = row_name(columns[name], row)
            text = f"{listed(signs)}: treated as text, because {cell!r} in {where} {why}"
            yield Remark("codes" if topic == "code" else "words", [*signs], text)


def _mark_remarks(
    columns: Mapping[str, Column], read: Mapping[str, Read], decided: Columns
) -> Iterator[Remark]:
    """The decimal comma, and columns of numbers all of whose points may be something else."""
    if decided.decimal == ",":
        yield Remark("comma", [], "numbers are read with a decimal comma")
    for name, column in read.items():
        if column.sign and column.sign[0] == "doubt":
            _, row, cell = column.sign
            text = (
                f"column {name!r} has {cell!r} in {row_name(columns[name], row)}, which is read as "
                f"{column.values[row]:g}; if the point separates thousands, set "
                f"{setting('decimal', ...)}"
            )
            yield Remark("marks", [name], text)


def date_remarks(kinds: Mapping[str, str]) -> Iterator[Remark]:
    """Remarks on columns that are read as dates."""
    for kind, order in DATES.items():
        names = [name for name, kind_of_column in kinds.items() if kind_of_column == kind]
        if names:
            as_dates = f"read as {'a date' if len(names) == 1 else 'dates'}{order}"
            text = f"{listed(names)}: {as_dates} and used as a number of days"
            yield Remark("dates", names, text)


def _is_of_short_years(column: Read) -> bool:
    """True if most texts are dates like 31.12.21."""
    if column.kinds != ("category",):
        return False
    texts = {text for text in column.values if isinstance(text, str)}
    return sum(_SHORT_YEAR.fullmatch(text) is not None for text in texts) > len(texts) / 2


def _word_remarks(
    columns: Mapping[str, Column],
    read: Mapping[str, Read],
    kind: str,
    is_like: Callable[[AnyArray], AnyArray],
) -> Iterator[Remark]:
    """Columns treated as text although most of their cells are numbers, or dates."""
    broken = []
    for name, column in read.items():
        if column.kinds != ("category",) or column.codes is None:
            continue
        categorical = require("pandas", "A table of mixed columns").CategoricalDtype
        if isinstance(columns[name].dtype, categorical):
            continue
        n_of = np.bincount(column.codes + 1)[1:]  # rows of each text
        firsts = np.unique(column.codes, return_index=True)[1][-len(n_of) :]
        like = is_like(column.values[firsts])
        if n_of[like].sum() > n_of[~like].sum() > 0:
            broken.append((name, int(n_of[~like].sum()), int(firsts[~like].min())))
    if not broken:
        return
    name, n_wrong, first = broken[0]
    names = [parts[0] for parts in broken]
    rest = f", and so are {listed(names[1:])}" if names[1:] else ""
    yield Remark(
        "words",
        names,
        f"column {name!r} is treated as text, with a feature for each value, because {n_wrong} of "
        f"its cells {f'is not a {kind}' if n_wrong == 1 else f'are not {kind}s'}, first "
        f"{str(read[name].values[first])!r} in {row_name(columns[name], first)}{rest}; "
        "correct such cells or leave them empty",
    )


def _number_like(marks: Marks, texts: AnyArray) -> AnyArray:
    """True for numbers by the marks of the table, or, if few are, by the eye of a person."""
    codes = np.fromiter(map(is_code, texts), dtype=bool)
    like = number_like(texts) & ~codes
    if codes.any():
        return np.zeros(len(texts), dtype=bool)
    numbers = ~np.isnan([number_of(text, marks, strict=True) for text in texts])
    return np.asarray(numbers if 2 * numbers.sum() > like.sum() else like)


def _written_number_remarks(read: Mapping[str, Read]) -> Iterator[Remark]:
    """Columns of text all of whose cells are numbers to a person, and no codes.

    Most are like 0,5 or 12 %, or they are many values, most of them with decimals or of different
    lengths.
    """
    written = []
    for name, column in read.items():
        if column.kinds != ("category",):  # numbers are not looked at one by one
            continue
        texts = {text for text in column.values if isinstance(text, str)}
        if not texts or not number_like(texts).all():
            continue
        odd = [text for text in texts if _PLAIN.fullmatch(text) is None]
        if len(texts) > _MOST_CODES:
            odd += [text for text in texts if _PLAIN.fullmatch(text) and "." in text]
        if len(texts) > _FEW_VALUES and len(set(map(len, texts))) > 1:  # unlike codes
            odd += [text for text in texts if _PLAIN.fullmatch(text) and "." not in text]
        if 2 * len(odd) > len(texts):
            written.append((name, min(odd)))
    if written:
        names, example = [name for name, _ in written], written[0][1]
        are = "text, such as" if _PLAIN.fullmatch(example) else "written like"
        yield Remark(
            "words",
            names,
            f"{listed(names)}: treated as text, with a feature for each value, because numbers are "
            f"{are} {example!r}; convert them to numbers",
        )


def _repeat_remarks(read: Mapping[str, Read]) -> Iterator[Remark]:
    """Remarks on identifiers of rows, and on columns that may name groups of rows."""
    alike, repeated = [], []
    for name, column in read.items():
        codes = _codes(column)
        if codes is None:
            continue
        n_of = np.bincount(codes)
        n_of = n_of[n_of > 0]
        if len(n_of) == len(codes):
            alike.append(name)
        elif (
            len(n_of) > (_FEW_PERSONS if _PERSON.fullmatch(name) else _FEW_VALUES)
            and n_of[n_of > 1].sum() > len(codes) / 2
            and (column.kind in CATEGORIES or is_called_identifier(name) or _is_contiguous(codes))
        ):
            repeated.append(name)
    if alike:
        yield remark_on_identifiers(alike)
    if repeated:
        yield Remark(
            "repeated",
            repeated,
            f"many values, and most rows share theirs: {listed(repeated)}; if rows of one value "
            "belong together, such as those of a patient, and only one of them is held out, scores "
            "are optimistic: ",
        )


def remark_on_identifiers(names: list[str]) -> Remark:
    """Remark on columns with a different value in every row."""
    return Remark("identifiers", names, f"a different value in every row: {listed(names)}")


def remark_on_time(columns: Sequence[str], X: Array, windows: Sequence[AnyArray]) -> Remark:
    """Remark on columns with other values in every window of time, such as dates.

    Parameters
    ----------
    columns : names of the columns that the features of ``X`` are made of.
    X : (n, n_features) without gaps.
    windows : rows of each.
    """
    ends = np.array([[X[rows].min(axis=0), X[rows].max(axis=0)] for rows in windows])
    low, high = np.sort(ends, axis=0).transpose(1, 0, 2)
    apart = ((high[:-1] <= low[1:]) & (low[:-1] < low[1:])).all(axis=0)
    names = list(dict.fromkeys(np.array(columns, dtype=object)[apart]))
    text = "later rows have values beyond all of the fit, since no two windows share any"
    return Remark("time", names, f"{listed(names)}: {text}")


def is_called_identifier(name: str) -> bool:
    """True for the name of a column of identifiers, such as "patient" or "row_id"."""
    return _IDENTIFIER.search(name) is not None


def tells_rows_apart(column: Read) -> bool:
    """True for a column of texts, few of them numbers, of which nearly every row has its own."""
    if column.kind not in CATEGORIES or column.codes is None or len(column.codes) < _FEWEST_ROWS:
        return False
    present, firsts = np.unique(column.codes[column.codes >= 0], return_index=True)
    n_cells = np.count_nonzero(column.codes >= 0)
    texts = column.values[column.codes >= 0][firsts]
    if n_cells < _FEWEST_ROWS or len(present) < _NEARLY_ALL * n_cells:
        return False
    return bool(max(number_like(texts).mean(), date_like(texts).mean()) <= 0.5)


def _codes(column: Read) -> AnyArray | None:
    """(n,) number of each different value, from 0; None for dates, fractions and few rows."""
    if len(column.values) < _FEWEST_ROWS:
        return None
    if column.codes is not None:
        return column.codes + 1
    if column.kind != "number" or not (column.values % 1 == 0).all():
        return None
    codes: AnyArray = np.unique(column.values, return_inverse=True)[1]
    return codes


def _is_contiguous(codes: AnyArray) -> bool:
    """True if the rows with each value follow one another, like the visits of each patient."""
    return bool(1 + (np.diff(codes) != 0).sum() == len(np.unique(codes)))
