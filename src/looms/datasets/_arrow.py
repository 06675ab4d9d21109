"""Parquet and Arrow files, and Python tables with an Arrow interface, at once or in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
from pyarrow import interchange, ipc, parquet

from looms._files import reading
from looms.datasets._bytes import read_bytes, too_large
from looms.datasets._columns import first_rounded
from looms.datasets._numbers import left_as_text, text_of
from looms.datasets._rows import Source
from looms.datasets._table import Columns, TableError, check_columns, first_line

#: Number of rows that are decoded at once, and of bytes of a column that are read at once.
_ROWS, _BYTES = 2**13, 2**20


def parquet_source(path: Path, max_bytes: int | None = None) -> Source:
    """Source of a Parquet file, which keeps little more than one block in memory.

    With ``max_bytes`` the file is read at once, unpacked if its name ends in ``.gz``.
    """
    content = None if max_bytes is None else pa.BufferReader(read_bytes(path, max_bytes))
    # Not ahead, and a part of a column at a time, so that row groups may be of any size.
    options = {"memory_map": False, "pre_buffer": False, "buffer_size": _BYTES}
    with _whole(path, "it is not a whole Parquet file"):
        file = parquet.ParquetFile(content or path, **({} if content else options))
        names = file.schema_arrow.names
    check_columns(names, path)
    # A value that is written once, however often it appears, has its bytes in memory each time.
    if max_bytes is not None and 8 * file.metadata.num_rows * len(names) > max_bytes:
        raise too_large(path, max_bytes)

    size = max(file.metadata.num_rows, 1) if content else _ROWS

    def batches() -> Iterator[Any]:
        n = file.num_row_groups
        for group in range(n):
            with _whole(path, f"row group {group + 1} of {n} cannot be read"):
                yield from file.iter_batches(size, row_groups=[group], use_threads=bool(content))

    return _source(path, batches, names)


def arrow_source(path: Path, max_bytes: int | None = None) -> Source:
    """Source of a file or stored stream in Arrow's IPC format, as in `parquet_source`."""
    content = None if max_bytes is None else read_bytes(path, max_bytes)

    def opened() -> tuple[Any, bool]:
        with reading(path, TableError):
            file = pa.OSFile(str(path)) if content is None else pa.BufferReader(content)
        is_stream = file.read(6) != b"ARROW1"
        file.seek(0)
        with _whole(path, "it is not a whole Arrow file"):
            return ipc.open_stream(file) if is_stream else ipc.open_file(file), is_stream

    def batches() -> Iterator[Any]:
        k, (source, is_stream) = 0, opened()
        while is_stream or k < source.num_record_batches:
            try:
                with _whole(path, f"record batch {k + 1} cannot be read"):
                    yield source.read_next_batch() if is_stream else source.get_batch(k)
            except StopIteration:
                return
            k += 1

    names = opened()[0].schema.names
    check_columns(names, path)
    return _source(path, batches, names)


def object_source(source: Any) -> Source:
    """Source of an object with ``__arrow_c_stream__`` or ``__dataframe__``, or of a function.

    The function returns record batches from the start at each call.
    """
    batches = source
    if hasattr(source, "__arrow_c_stream__"):

        def batches() -> Any:
            return pa.RecordBatchReader.from_stream(source)
    elif hasattr(source, "__dataframe__"):

        def batches() -> Iterator[Any]:
            return map(interchange.from_dataframe, source.__dataframe__().get_chunks())

    return _source(Path(f"the {type(source).__name__}"), batches)


@contextmanager
def _whole(path: Path, problem: str) -> Iterator[None]:
    """Turns errors of pyarrow into a TableError for a damaged file, with the problem."""
    with reading(path, TableError):
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                path, f"{problem} ({first_line(error)})", "Get or write the file again."
            ) from None


def _source(path: Path, batches: Callable[[], Iterable[Any]], names: Sequence[str] = ()) -> Source:
    """Source of a function that returns record batches, or tables of pyarrow."""
    return Source(path, partial(_alike, path, batches), partial(_columns, path), names)


def _alike(path: Path, batches: Callable[[], Iterable[Any]]) -> Iterator[pa.Table]:
    """Batches as tables; refuses a batch whose columns or types differ from the first one."""
    schema = None
    for k, batch in enumerate(batches(), start=1):
        if schema is None:
            schema = batch.schema
            check_columns(schema.names, path)
        elif not batch.schema.equals(schema):
            problem = f"batch {k} has other columns than the first"
            if batch.schema.names == schema.names:
                now, name = next(
                    (field.type, field.name)
                    for field, before in zip(batch.schema, schema, strict=True)
                    if not field.equals(before)
                )
                before = schema.field(name).type
                problem = f"column {name!r} is of type {now} in batch {k}, and {before} before"
            raise TableError(path, problem, "All batches must have one schema.")
        yield batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])


def _columns(path: Path, table: pa.Table, first: int) -> Columns:
    """Columns of a pyarrow table, whose first row is row ``first`` of the file.

    They keep their types; only whole numbers that floats would round become text.
    """
    nested = [field for field in table.schema if pa.types.is_nested(field.type)]
    if nested:
        raise TableError(
            path,
            f"column {nested[0].name!r} holds values of the type {nested[0].type}",
            "Write each of its parts as a column, or leave it out.",
        )
    try:
        frame = table.to_pandas(date_as_object=False)
    except (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError) as error:
        raise TableError(
            path,
            f"its columns, or what pandas noted about them, are damaged ({first_line(error)})",
            "Get or write the file again.",
        ) from None

    def text(name: str) -> list[str | None]:
        cells = table[name].to_pylist()
        return [None if cell is None else text_of(cell) for cell in cells]

    notes = {}
    for field in table.schema:
        if not pa.types.is_integer(field.type) or field.name not in frame.columns:
            continue
        rounded = first_rounded(table[field.name])
        if rounded is not None:
            row, reason = rounded
            cell = str(table[field.name][row].as_py())
            notes[field.name] = left_as_text(field.name, first + row, cell, reason)
            frame[field.name] = pandas.Series(text(field.name), index=frame.index, dtype=object)
    return Columns(frame, text, tuple(notes.values()), tuple(notes))
