"""What is written where: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import typer

from looms._files import write_whole
from looms.cli._errors import InputError


def note(message: str) -> None:
    """Say something on stderr, so that stdout can be piped."""
    typer.echo(f"Note: {' '.join(message.split())}", err=True)


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
    """Write a result."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_output(path: Path, data: bytes) -> None:
    """Write a result to a file, whole or not at all."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}); name another file"
        ) from None
