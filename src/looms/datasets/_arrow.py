"""Parquet and Arrow files, and Python tables with an Arrow interface, at once or in blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
from pyarrow import ipc, parquet

from looms._files import reading
from looms.datasets._bytes import read_bytes, too_large
from looms.datasets._rows import Source
from looms.datasets._table import TableError, check_columns, first_line
from looms.tables._cells import EXACT

#: Number of rows that are decoded at once, and of bytes of a column that are read at once.
_ROWS, _BYTES = 2**13, 2**20
#: Columns that hold an index of pandas without a name.
_INDEX = re.compile(r"__index_level_\d+__")


def arrow_source(path: Path, format: str, max_bytes: int | None = None) -> Source:
    """Source of a Parquet file, or of a file or stored stream in Arrow's IPC format.

    It keeps little more than one block in memory; with ``max_bytes`` the file is read once, into
    memory, unpacked if its name ends in ``.gz``.
    """
    content = None if max_bytes is None else read_bytes(path, max_bytes)

    def opened() -> Any:
        with _damage_errors(path, f"it is not a whole {format.capitalize()} file"):
            file = pa.OSFile(str(path)) if content is None else pa.BufferReader(content)
            if format == "parquet":
                # Not ahead, and a part of a column at a time: row groups may be of any size.
                return parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BYTES)
            is_stream = file.read(6) != b"ARROW1"
            file.seek(0)
            return ipc.open_stream(file) if is_stream else ipc.open_file(file)

    def batches() -> Iterator[Any]:
        source, n_values = opened(), 0
        if format == "parquet":
            source_batches = source.iter_batches(_ROWS, use_threads=False)
        elif hasattr(source, "num_record_batches"):
            source_batches = map(source.get_batch, range(source.num_record_batches))
        else:
            source_batches = source
        for k in count(1):
            with _damage_errors(path, f"batch {k} of its rows cannot be read"):
                batch = next(source_batches, None)
            if batch is None:
                return
            # A value that is stored once, however often it appears, takes memory each time.
            n_values += batch.num_rows * batch.num_columns
            if max_bytes is not None and 8 * n_values > max_bytes:
                raise too_large(path, max_bytes)
            yield batch

    source = opened()
    schema = source.schema_arrow if format == "parquet" else source.schema
    return _source(path, batches, schema.names)


def object_source(source: Any) -> Source:
    """Source of an object with ``__arrow_c_stream__``, or of a function.

    The function returns record batches from the start at each call.
    """
    is_stream = hasattr(source, "__arrow_c_stream__")
    batches = partial(pa.RecordBatchReader.from_stream, source) if is_stream else source
    return _source(Path(f"the {type(source).__name__}"), batches)


@contextmanager
def _damage_errors(path: Path, problem: str) -> Iterator[None]:
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
    check_columns(names, path)
    return Source(path, partial(_checked_batches, path, batches), partial(_typed, path), names)


def _checked_batches(path: Path, batches: Callable[[], Iterable[Any]]) -> Iterator[pa.Table]:
    """Batches as tables; refuses a batch whose columns or types differ from the first one."""
    fields = None
    for k, batch in enumerate(batches(), start=1):
        if fields is None:
            fields = list(batch.schema)
            check_columns(batch.schema.names, path)
        if list(batch.schema) != fields:
            odd = [f"column {f.name!r} of type {f.type}" for f in batch.schema if f not in fields]
            problem = f"batch {k} has {(odd or ['other columns'])[0]}, unlike the first"
            raise TableError(path, problem, "All batches must have one schema.")
        yield batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])


def _typed(path: Path, table: pa.Table) -> pandas.DataFrame:
    """Cells of a pyarrow table by their types, without an index of pandas that has no name.

    Columns of whole numbers with gaps are floats, or objects if these would round.
    """
    nested = [field for field in table.schema if pa.types.is_nested(field.type)]
    if nested:
        raise TableError(
            path,
            f"column {nested[0].name!r} holds values of the type {nested[0].type}",
            "Write each of its parts as a column, or leave it out.",
        )
    table = table.select([name for name in table.column_names if not _INDEX.fullmatch(name)])
    table = table.replace_schema_metadata(None)  # what pandas noted may be damaged
    try:
        table.validate(full=True)
        frame = table.to_pandas(date_as_object=False)
        for name, column in zip(table.column_names, table.columns, strict=True):
            has_gaps = pa.types.is_integer(column.type) and column.null_count
            if has_gaps and (frame[name].abs() >= EXACT).any():
                frame[name] = pandas.Series(column.to_pylist(), dtype=object)
    except (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError) as error:
        raise TableError(
            path, f"its columns are damaged ({first_line(error)})", "Get or write the file again."
        ) from None
    return frame
