"""Output: notes on stderr, tables and CSV on stdout, files written whole."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD, Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from looms._files import advice_on, try_writing, whole_file, write_whole
from looms.cli._errors import InputError, OutputError, is_quiet, say, visible, writable
from looms.datasets._read import SUFFIXES
from looms.datasets._table import table_name
from looms.model_files._files import is_model_file
from looms.report.overview import TextTable

if TYPE_CHECKING:
    import pandas as pd

    from looms.report.text import Caution

#: Width of a terminal below which columns of a table are closer, and below which there are fewer.
NARROW, WIDE = 80, 110
#: Characters of the longest name of a row that is not broken into lines.
LONGEST = 30
#: Suffixes of files that are not CSV.
_NOT_CSV = {*SUFFIXES, ".gz", ".html", ".json", ".pdf", ".pkl", ".skops", ".zip"} - {".csv"}
#: Text that a spreadsheet treats as a formula; a sign by itself is a label.
_FORMULA = re.compile(r"'*(?:[=@\t\r\n]|[+-](?=.)).*", re.DOTALL)


#: Isolates around a name, for the order of words in a page; in a line quotes show it.
_QUOTES = str.maketrans("\u2068\u2069", "''")


def note(message: str) -> None:
    """Write a remark to stderr, so that stdout can be piped."""
    if not is_quiet():
        say(f"Note: {message}")


def warning(message: str) -> None:
    """Write to stderr why the result may not be what was wanted."""
    say(f"Warning: {message}")


def show_cautions(cautions: Sequence[Caution]) -> None:
    """Write cautions of `looms.report`, the serious ones as warnings."""
    for caution in cautions:
        (warning if caution["level"] == "serious" else note)(caution["text"].translate(_QUOTES))


@contextmanager
def catch_messages() -> Iterator[None]:
    """Turns warnings into notes, each once."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            note(str(message))
        told.add(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = tell
        yield


@contextmanager
def refused(
    prefix: str = "", faults: tuple[type[Exception], ...] = (ValueError,)
) -> Iterator[None]:
    """Turns ``faults`` into input errors."""
    try:
        yield
    except (InputError, np.linalg.LinAlgError):  # the latter is not the fault of the input
        raise
    except faults as error:
        raise InputError(f"{prefix}{error}") from error


def write_stdout(text: str) -> None:
    """Write a result in the signs of the encoding; a terminal gets control characters escaped."""
    text = writable(text, sys.stdout)
    sys.stdout.write(visible(text, keep="\n\t") if sys.stdout.isatty() else text)
    sys.stdout.flush()


def data_to_stdout(text: str) -> None:
    """Write text that programs read, whole and unchanged, or else nothing."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding, sys.stdout.errors or "strict")
    except UnicodeEncodeError as error:
        raise OutputError(
            f"standard output is written in {encoding}, which has no "
            f"{text[error.start : error.end]!r}: give --output, a file in UTF-8, or set "
            "PYTHONIOENCODING=utf-8"
        ) from None
    write_stdout(text)


def show_json(values: Mapping[str, Any]) -> None:
    """Write plain values as JSON in ASCII, so that no terminal obeys characters in a name."""
    whole = json.dumps(values, ensure_ascii=False, allow_nan=False).translate(_QUOTES)
    write_stdout(f"{json.dumps(json.loads(whole), indent=1)}\n")


class _Visible(Console):
    """Console that shows names unchanged, and control characters as escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        """A text, such as a cell of a table, on one line, in the signs of the encoding."""
        return super().render_str(writable(visible(text), self.file), **options)


def console() -> Console:
    """Standard output; wide enough for all columns if it is not a terminal."""
    terminal = sys.stdout.isatty()
    return _Visible(
        width=None if terminal else 120,
        soft_wrap=not terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )


def print_blocks(*blocks: str | TextTable) -> None:
    """Print lines and tables.

    Where there is no room, cells are broken into lines; not names of rows up to `LONGEST`, in the
    first of words with a heading.
    """
    out = console()
    for block in blocks:
        if isinstance(block, str):
            out.print(block)
            continue
        of_rows = next(filter(None, block.words), None)
        shown = Table(
            box=Box(writable(str(SIMPLE_HEAD), sys.stdout), ascii=True),  # that is, as it is
            title=block.title,
            title_justify="left",
            title_style="bold",
            pad_edge=False,
            collapse_padding=out.width < NARROW,
        )
        for k, name in enumerate(block.names):
            whole = name == of_rows and max(len(row[k]) for row in block.rows) <= LONGEST
            side: Any = "left" if name in block.words else "right"
            shown.add_column(name, justify=side, overflow="fold", no_wrap=whole)
        for row in block.rows:
            shown.add_row(*row)
        out.print(shown)


def escape_formula(value: object) -> object:
    """Cell, with an apostrophe in front if a spreadsheet would run it; numbers are unchanged.

    Text that begins with apostrophes before such a sign gets another one, so that removing one
    apostrophe from every such cell restores the original.
    """
    if not isinstance(value, str) or not _FORMULA.fullmatch(value):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def csv_text(frame: pd.DataFrame, **options: Any) -> str:
    """Table as CSV without formulas, with a note if cells or names begin like a formula."""
    text, n_changed = escape_formulas(frame, **options)
    note_formulas(n_changed)
    return text


def note_formulas(n_changed: int) -> None:
    """Note on cells that were changed by `escape_formulas`, if any."""
    if n_changed:
        note(f"{n_changed} cells or names like formulas (= + - @) get an apostrophe in front")


def escape_formulas(frame: pd.DataFrame, **options: Any) -> tuple[str, int]:
    """Table as CSV without formulas, and the number of cells and names that were changed."""
    safe, n_changed = frame.copy(), 0

    def guarded(values: list[object]) -> list[object]:
        nonlocal n_changed
        after = [escape_formula(value) for value in values]
        n_changed += sum(a is not b for a, b in zip(after, values, strict=True))
        return after

    for k, kind in enumerate(frame.dtypes):
        if kind.kind not in "biufcmM":
            safe.isetitem(k, guarded(frame.iloc[:, k].astype(object).tolist()))
    safe.columns = guarded(frame.columns.tolist())
    if frame.index.dtype.kind not in "iu":
        safe.index = guarded(frame.index.tolist())
    safe.index.name = frame.index.name
    return str(safe.to_csv(lineterminator="\n", **options)), n_changed


def check_can_write(
    path: Path | None, force: bool, *inputs: Path, option: str = "--output", holds: str = ""
) -> None:
    """Refuse, before any work, to overwrite a file without ``force``, or an unwritable path.

    Even with ``force``, inputs are not overwritten, nor files that this command does not write:
    ``holds`` is a regular expression for the beginning of its files, or "model".
    """
    if path is None:
        return
    try:
        exists = path.exists()
        lost = exists and any(source.exists() and path.samefile(source) for source in inputs)
    except OSError as error:
        raise InputError(f"no file can be called so ({error.strerror}): {error.filename}") from None
    if str(path) == "-":
        raise InputError(f"{option} - is no file: name one")
    if lost:
        raise InputError(f"{path} is an input and would be lost; name another {option}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if exists and not path.is_file():  # a device or a pipe, at the end of links too
        raise InputError(f"{path} is not a regular file; name another {option}")
    if exists and not force:
        raise InputError(f"{path} exists; use --force to overwrite it, or {option} for another")
    if exists and path.stat().st_size:
        with path.open("rb") as file:
            begins = file.read(100_000).decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
        ours = re.match(holds, begins, re.IGNORECASE | re.MULTILINE)
        if not (is_model_file(path) if holds == "model" else ours):
            what = "is not a file that this command writes"
            raise InputError(f"{path} {what}; name another {option}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it, or name another")
    with writing(path, option):
        try_writing(path)


def check_can_write_csv(path: Path | None, force: bool, *inputs: Path, holds: str) -> None:
    """`check_can_write` for an ``--output`` of CSV; refuses the suffix of another format."""
    check_can_write(path, force, *inputs, holds=holds)
    if path is not None and path.suffix.lower() in _NOT_CSV:
        raise InputError(f"{path}: the output is CSV: name {table_name(path)}.csv")


@contextmanager
def writing(path: Path, option: str) -> Iterator[None]:
    """Turns errors of writing a file into errors of the option that names it."""
    try:
        yield
    except OSError as error:
        advice = advice_on(error, f"name another {option}")
        raise InputError(f"{path} cannot be written ({error.strerror}); {advice}") from None


def write_output(path: Path, data: bytes) -> None:
    """Write a result to a file, whole or not at all."""
    with writing(path, "file"):
        write_whole(path, data)


@contextmanager
def output_in_parts(path: Path | None) -> Iterator[Callable[[str], None]]:
    """Function that writes the next part of a result to stdout, or to a file (all or nothing)."""
    if path is None:
        yield data_to_stdout
        return
    with writing(path, "file"), whole_file(path) as file:

        def write(text: str) -> None:
            file.write(text.encode())

        yield write


def write_or_print(path: Path | None, text: str, what: str) -> None:
    """Write a result to a file, with a note on what it holds, or to stdout without a file."""
    if path is None:
        write_stdout(text)
    else:
        write_output(path, text.encode())
        note(f"{what} {path}")
