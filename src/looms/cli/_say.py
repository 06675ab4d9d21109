"""What is written where: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from looms._files import advice_on, write_whole
from looms.cli._errors import InputError
from looms.cli._text import csv_of, visible

if TYPE_CHECKING:
    import pandas as pd


def count(n: int, what: str) -> str:
    """A number of things, in the plural where there is not one."""
    return f"{n} {what}{'s' * (n != 1)}"


def note(message: str) -> None:
    """Say something on stderr, so that stdout can be piped."""
    typer.echo(f"Note: {visible(' '.join(message.split()))}", err=True)


def warning(message: str) -> None:
    """Say on stderr what makes a result doubtful."""
    typer.echo(f"Warning: {' '.join(message.split())}", err=True)


def say_cautions(cautions: Sequence[Mapping[str, str]]) -> None:
    """Say cautions of `looms.report`, the serious ones as warnings."""
    for each in cautions:
        # Isolates around a name, for the order of words in a page; in a line quotes show it.
        text = each["text"].replace("\u2068", "'").replace("\u2069", "'")
        (warning if each["level"] == "serious" else note)(text)


@contextmanager
def warnings_as_notes(instead: Mapping[str, str] | None = None) -> Iterator[None]:
    """Collect warnings, and say each once at the end.

    ``instead`` has what the command line says for words of Python.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(w.message) for w in caught):
        for word, other in (instead or {}).items():
            message = message.replace(word, other)
        note(message)


def to_stdout(text: str) -> None:
    """Write a result; what a terminal would obey is shown to it instead."""
    sys.stdout.write(visible(text, keep="\n\t") if sys.stdout.isatty() else text)
    sys.stdout.flush()


def csv_text(table: pd.DataFrame, **options: Any) -> str:
    """A table as CSV, and a note if cells or names of it begin like formulas."""
    text, n_changed = csv_of(table, **options)
    if n_changed:
        note(
            f"{n_changed} cells or names begin like a formula of a spreadsheet (= + - @) and have "
            "an apostrophe in front in the table; take one away to have them as they were"
        )
    return text


def write_output(path: Path, data: bytes) -> None:
    """Write a result to a file, whole or not at all."""
    try:
        write_whole(path, data)
    except OSError as error:
        advice = advice_on(error, "name another file")
        raise InputError(f"{path} cannot be written ({error.strerror}); {advice}") from None
