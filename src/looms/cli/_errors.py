"""Turns exceptions into one line on stderr and an exit code."""

from __future__ import annotations

import codecs
import errno
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import typer

from looms._files import FileError
from looms._optional import command_for
from looms._words import UNSET, Advice
from looms.cli._names import OPTIONS, REMEDIES

BAD_INPUT = 2
OTHER = 1
INTERRUPTED = 130
_VALUE = (
    r"None\b|True\b|False\b|\.\.\.|(?P<quote>['\"])(?P<text>[^'\"]*)(?P=quote)"
    r"|-?\d+(?:\.\d+)?\w*|\w+\([^()]*\)"
)
_NAMES = "|".join(sorted(OPTIONS, key=len, reverse=True))
_LONG = "|".join(name for name in OPTIONS if "_" in name)
#: Parts of names of files are no parameters.
_PARAMETER = (
    rf"(?<![\w/\\.-])(?P<set>{_NAMES})=(?P<value>{_VALUE})(?![/\\\w]|\.\w)"
    rf"|(?<![\w/\\.-])(?P<long>{_LONG})(?![/\\\w]|\.\w)"
    rf"|(?:^|(?<=: ))(?P<named>{_NAMES})(?= must\b)"
    rf"|(?<=Unknown )(?P<unknown>{_NAMES})(?= ['\"])"
)
#: Names of columns and other words of the user; not the apostrophe in "it's".
_QUOTED = r"\u2068[^\u2069]*\u2069|(?<!\w)(?P<mark>['\"])(?:\\.|[^\\])*?(?P=mark)(?!\w)"
#: An option with its value, and then again by its name.
_TWICE = re.compile(r"(--([\w-]+)(?: [^\s:]+)?):(?: --| )\2( )")
#: What Python calls otherwise than the command line.
_WORDS = {
    "another kernel": "another kernel (--candidates)",
    "leave it out unless": "leave it out (--drop) unless",
    "windows of time, as GapKFold does": "windows of time by --time",
    "Drop them, or hold them out together, as groups": "Drop them, or give --duplicates group",
    "together, as groups": "together by --groups COLUMN",
    "leave it out.": "leave it out (--drop).",
    "fit without them": "fit without them (looms fit --drop)",
    "cv=GapKFold()": "--time",
    " with criterion='error' does not admit": " does not admit",
    "groups=looms.duplicates.duplicate_groups(X)": "--duplicates group",
    " If the model leaves out columns of a table, X is model.preprocessor_.transform(table).": "",
    " to keep.": " for --id or --keep.",
    "give y.astype(str)": "leave --order out",
    "fit it to y.astype(str)": "fit it without --order",
    "looms.assess": "looms assess",
    "evaluate(nested=False)": "--no-evaluate",
    "joblib.parallel_config(n_jobs=...)": "--jobs",
    "; verbose=1 shows the progress": "",
    "evaluate()": "an evaluation (model.evaluate() in Python, looms fit without --no-evaluate)",
    "Unknown search method": "Unknown --search",
    "Unknown transform of the target": "Unknown --target-transform",
    "method='grid'": "--search grid",
    ", a splitter of scikit-learn or its splits, and None": "",
    ", an object of looms.threshold, and a metric of (y_true, y_pred)": "",
    " To cut outputs elsewhere, compare decision_function with a number.": "",
    "'auto' or None": "auto or none",
    "precomputed, one of these": "one of these",
}
_IN_PYTHON = re.compile(f"(?P<word>{'|'.join(map(re.escape, _WORDS))})|{_QUOTED}|{_PARAMETER}")
#: Signs of our own that not every encoding has, in signs that all have.
_PLAIN_SIGNS = str.maketrans(
    {"→": "->", "±": "+-", "−": "-", "–": "-", "…": "...", "─": "-", "×": "x", "·": "*"}
    | {"χ": "chi", "\u202f": " "}
    | dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
)
_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
#: Format characters that only join letters.
_JOINERS = "\u200c\u200d"
_QUIET = ContextVar("quiet", default=False)


class InputError(ValueError):
    """Error for input that cannot be used; the message says why, and what to do."""


class OutputError(Exception):
    """Error for a result that cannot be written where it was to go; the message says what to do."""


@contextmanager
def interruptible() -> Iterator[None]:
    """End the program with "Interrupted." on Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        say(f"Interrupted. {interrupt}".strip())
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def reported() -> Iterator[None]:
    """End the program with one line instead of a traceback.

    With the environment variable LOOMS_TRACEBACK the traceback is printed too, for unexpected
    errors and for errors with another error as their cause.
    """
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except BrokenPipeError:  # whoever read our output had enough
        _drop_output()
        raise typer.Exit(OTHER) from None
    except Exception as error:
        traceback, code = os.environ.get("LOOMS_TRACEBACK"), OTHER
        if error.__cause__ is not None and traceback:
            raise
        match error:
            case InputError() | FileError():
                message, code = str(error), BAD_INPUT
            case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EIO):
                _drop_output()
                message = f"the output cannot be written: {error.strerror}"
            case MemoryError():
                message = str(error) or "out of memory"
            case ModuleNotFoundError():
                message = f"{error.name} is not installed: {command_for('cli')}"
            case ImportError() | OutputError():
                message = str(error)
            case _ if traceback:
                raise
            case _:
                what = f"unexpected {type(error).__name__}: {error}"
                message = f"{what} (set LOOMS_TRACEBACK=1 to see where)"
        say(f"Error: {message}")
        raise typer.Exit(code) from None


def _drop_output() -> None:
    """Discard the rest of the output, so that closing it does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """Context without notes and progress, if ``quiet``."""
    before = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(before)


def is_quiet() -> bool:
    """True if there are to be no notes and no progress."""
    return _QUIET.get()


def say(message: str) -> None:
    """Write a line to stderr, in the words of the command line."""
    echo(visible(" ".join(message.split())))


def echo(line: str) -> None:
    """Write a line to stderr, in the signs of its encoding."""
    typer.echo(writable(line, sys.stderr), err=True)


def in_options(advice: Advice) -> str:
    """Advice in the words of the command line, with options in place of parameters.

    Examples
    --------
    >>> from looms._words import UNSET, Advice
    >>> in_options(Advice("class_weight", "balanced", None))
    '--class-weight balanced'
    >>> in_options(Advice("n_landmarks", None, None)), in_options(Advice("sep", ..., None))
    ('no --n-landmarks', '--sep')
    >>> in_options(Advice("fit_intercept", True, None))
    'fit_intercept=True'
    """
    name = OPTIONS.get(advice.parameter)
    if advice.text is not None:
        return REMEDIES.get(advice.parameter, advice.text)
    if name is None:
        return str(advice)
    option = f"--{name.replace('_', '-')}"
    if advice.value is None or advice.value is False:
        return f"no {option}"
    if any(advice.value is one for one in (UNSET, True, ...)):
        return option
    return f"{option} {advice.value}"


def name_options(text: str) -> str:
    """Text with options in place of the parameters of Python, but for what is in quotes.

    Examples
    --------
    >>> name_options("Error: max_iter must be an integer, give class_weight='balanced'")
    'Error: --max-iter must be an integer, give --class-weight balanced'
    >>> name_options("Unknown kernel 'rfb'; use n_landmarks=None and target='auto'")
    "Unknown --candidates 'rfb'; use no --n-landmarks and --target-transform auto"
    >>> name_options("column 'max_iter' has other values than max_iter")
    "column 'max_iter' has other values than --max-iter"
    >>> name_options("\u2068max_iter\u2069 is a column")
    '\u2068max_iter\u2069 is a column'
    >>> name_options("runs/seed=1/max_iter.csv has no rows; give seed=1")
    'runs/seed=1/max_iter.csv has no rows; give --seed 1'
    >>> name_options("threshold=1.5 is no probability; use threshold=0.5")
    '--threshold 1.5 is no probability; use --threshold 0.5'
    >>> name_options("--cv 1: cv must be from 2 folds")
    '--cv 1 must be from 2 folds'
    """
    return _TWICE.sub(r"\1\3", _IN_PYTHON.sub(_option, text))


def _option(parameter: re.Match[str]) -> str:
    if parameter["word"]:
        return _WORDS[parameter["word"]]
    if parameter["mark"] or parameter[0].startswith("\u2068"):
        return parameter[0]
    name = next(filter(None, map(parameter.group, ("set", "long", "named", "unknown"))))
    option = f"--{OPTIONS[name].replace('_', '-')}"
    value = parameter["value"]
    if value in ("None", "False"):
        return f"no {option}"
    if value in (None, "True", "..."):
        return option
    return f"{option} {value if parameter['text'] is None else parameter['text']}"


def visible(text: str, keep: str = "") -> str:
    """Text in which characters that a terminal would obey are escapes, such as ``\\x1b``.

    These are control characters, line separators, marks that change the writing direction and
    other format characters, and halves of characters; those to ``keep`` stay.
    """
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in _JOINERS + keep
        else c
        for c in text
    )


def writable(text: str, stream: Any) -> str:
    r"""Text in which the signs that the encoding of a stream lacks are others, or escapes.

    Examples
    --------
    >>> from io import BytesIO, TextIOWrapper
    >>> writable("R² 0.91 ± 2·10⁻¹² → кот", TextIOWrapper(BytesIO(), encoding="ascii"))
    'R^2 0.91 +- 2*10^-12 -> \\u043a\\u043e\\u0442'
    """
    encoding = stream.encoding or "utf-8"  # in memory there is none
    return text.encode(encoding, _IN_PLAIN_SIGNS).decode(encoding)


def _plain_signs(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    plain = _RAISED.sub(r"^\g<0>", lacking).translate(_PLAIN_SIGNS)
    return plain.encode("ascii", "backslashreplace").decode(), error.end


_IN_PLAIN_SIGNS = "looms.plain_signs"
codecs.register_error(_IN_PLAIN_SIGNS, _plain_signs)
