"""Cautions, numbers and names as text for a report, and values for JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TypedDict

import numpy as np

from looms._scores import SCORES
from looms._words import clean as clean

_NOTHING = "–"
#: Most characters of a name that a picture shows.
_LONGEST_NAME = 28


#: Criteria of a search: what people call them, and in plain words.
CRITERIA = {
    "press": ("squared error", "mean squared held-out error"),
    "deviance": ("deviance", "−2 log of the held-out probability of the true class"),
    "hinge": ("hinge loss", "mean hinge loss of held-out outputs"),
    "squared_hinge": ("squared hinge loss", "mean squared hinge loss of held-out outputs"),
    "smoothed_error": ("error rate", "held-out error rate, smoothed"),
    "cross_entropy": ("logistic loss", "mean logistic loss of held-out outputs"),
    "wmw": ("ROC area", "1 − area under the ROC curve of held-out outputs, smoothed"),
}
#: Why a search ended, in plain words, for those that do not speak for themselves.
ENDS = {
    "within noise": "no step would gain more than a fraction of the criterion's standard error",
    "converged": "no step would lower the criterion",
}


class Caution(TypedDict):
    """A caution about a model or its scores, of level "serious" or "note"."""

    level: str
    title: str
    text: str


def serious(title: str, text: str) -> Caution:
    return Caution(level="serious", title=title, text=text)


def note(title: str, text: str) -> Caution:
    return Caution(level="note", title=title, text=text)


def marked_title(caution: Caution) -> str:
    """Title of a caution, with a mark of its level."""
    return f"{'!' if caution['level'] == 'serious' else '-'} {caution['title']}"


def number(value: float | None, digits: int = 4) -> str:
    """Significant digits, with a power of ten if very small or large; a dash for None."""
    if value is None:
        return _NOTHING
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e6):
        return signed(str(int(value)))
    size = abs(value)
    text = f"{value:.{digits}g}"
    if 1e-4 <= size < 1e6:
        places = max(0, digits - 1 - int(np.floor(np.log10(size))))
        text = f"{value:.{min(places, 7)}f}"
    mantissa, e, exponent = text.partition("e")
    if e:
        raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        mantissa += f" · 10{raised}"
    return mantissa.replace("-", "−")


def percent(value: float | None, places: int = 1) -> str:
    """A share in percent."""
    if value is None:
        return _NOTHING
    size = number(100.0 * value, 3) if abs(value) >= 1e4 else signed(f"{100 * value:.{places}f}")
    return f"{size} %"


def score(value: float | None, key: str, digits: int = 4) -> str:
    """A score as text; by `number` if it is not in `SCORES`."""
    unit = SCORES[key].unit if key in SCORES else ""
    if value is None or not unit:
        return number(value, digits)
    return percent(value) if unit == "%" else signed(f"{value:{unit}}")


def plus_minus(value: float | None, key: str, *, alone: bool = False) -> str:
    """The standard error of a score as text, in its units; two digits, or those of the score.

    The sign of a percentage is left to the score before it, unless the error stands ``alone``.
    """
    if value is None:
        return ""
    unit = SCORES[key].unit if key in SCORES else ""
    if unit == "%":
        return f"± {100 * value:.1f}{' %' * alone}"
    return f"± {value:{unit}}" if unit else f"± {number(value, 2)}"


def count(n: int, what: str) -> str:
    """A number of things, in the plural unless there is one."""
    ending = "es" if what.endswith("s") else "s"
    return f"{thousands(n)} {what}{'' if n == 1 else ending}"


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def calibration_text(found: Mapping[str, float | None]) -> str:
    """Slope and intercept of a recalibration, or why there is no slope."""
    known = [name for name in ("slope", "intercept") if found[name] is not None]
    parts = [f"{name} {found[name]:.2f} ± {found[f'{name}_error']:.2f}" for name in known]
    if found["slope"] is None:
        parts.append("no slope: the probabilities separate the classes, or are equal")
    return f"Calibration {', '.join(parts)}"


def heading(key: str) -> str:
    """Name of a score at the beginning of a line; a key that is not in `SCORES` stays as it is."""
    return sentence(SCORES[key].name) if key in SCORES else key


def plainly(criterion: str) -> str:
    """A criterion, and what it is in plain words if it is known."""
    if criterion not in CRITERIA:
        return criterion
    name, what = CRITERIA[criterion]
    return f"{name} (criterion {criterion}): {what}"


def criterion_name(criterion: str) -> str:
    """Name of a criterion in plain words, if it has one."""
    return CRITERIA[criterion][0] if criterion in CRITERIA else criterion


def unit_words(unit: str) -> str:
    """Plain word for what is held out at a time, by `Units.unit`."""
    words = {"window": "window of time", "forward": "window of time and the rows after it"}
    return {"sample": "row", **words}.get(unit, unit)


def thousands(n: int) -> str:
    """An integer in groups of three digits from 10 000 on."""
    return f"{n:,}".replace(",", "\u202f") if n >= 10_000 else str(n)


def day(iso: str) -> str:
    """A date and time in words."""
    moment = datetime.fromisoformat(iso)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def signed(text: str) -> str:
    """A number with a true minus sign, and with none if it was rounded to zero."""
    return text.replace("-", "−" if float(text) else "")


def isolated(text: Any) -> str:
    """A name within a sentence, isolated so that it does not change the direction of the text."""
    return f"\u2068{clean(text)}\u2069"


def escaped(text: object) -> str:
    """Text on one line of Markdown, with its marks and those of HTML escaped."""
    return re.sub(r"([\\`*_\[\]<>|#$&~])", r"\\\1", clean(text))


def short(text: Any, longest: int = _LONGEST_NAME) -> str:
    """`clean`, cut at the end if it is too long."""
    name = clean(text)
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def plain(value: Any) -> Any:
    """The value in types that JSON has, with None for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


class PlainValues(Mapping[str, Any]):
    """Base class of results that are mappings of plain values, which JSON can hold as a dict."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
