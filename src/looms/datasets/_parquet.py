"""Parquet and Arrow files, and Python tables with an Arrow interface, at once or in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looms._files import reading
from looms._optional import require
from looms.datasets._bytes import read_bytes, too_large
from looms.datasets._numbers import EXACT, RoundedError, left_as_text, number
from looms.datasets._rows import ColumnReader
from looms.datasets._table import Columns, TableError, check_columns, first_line

if TYPE_CHECKING:
    import pyarrow as pa

#: Number of rows that are decoded at once, and of bytes of a column that are read at once.
_ROWS, _BYTES = 2**13, 2**20


class ArrowRows(ColumnReader):
    """Rows of pyarrow batches, which a function returns from the start at each call.

    Parameters
    ----------
    path, target, keep : as in `read_table`.
    batches : function that returns record batches, or tables of pyarrow; its errors say where.
    names : names of the columns, if the schema tells them before a batch is read.
    """

    def __init__(
        self,
        path: Path,
        target: str | None,
        keep: Sequence[str],
        batches: Callable[[], Iterable[Any]],
        names: Sequence[str] = (),
    ) -> None:
        super().__init__(path, target, keep)
        self._batches, self.n_columns = batches, len(names)
        check_columns(names, path)

    def stored(self) -> Iterator[pa.Table]:
        """Batches as tables; refuses a batch whose columns or types differ from the first one."""
        arrow = require("pyarrow", "Reading tables in blocks")
        schema = None
        for k, batch in enumerate(self._batches(), start=1):
            if schema is None:
                schema = batch.schema
                check_columns(schema.names, self.path)
            elif not batch.schema.equals(schema):
                raise self._other_schema(k, schema, batch.schema)
            yield batch if isinstance(batch, arrow.Table) else arrow.Table.from_batches([batch])

    def _other_schema(self, k: int, schema: pa.Schema, other: pa.Schema) -> TableError:
        if other.names != schema.names:
            problem = f"batch {k} has other columns than the first"
        else:
            name = next(n for n in schema.names if not other.field(n).equals(schema.field(n)))
            types = other.field(name).type, schema.field(name).type
            problem = f"column {name!r} is of type {types[0]} in batch {k}, and {types[1]} before"
        return TableError(self.path, problem, "All batches must have one schema.")

    def columns(self, rows: pa.Table, first: int) -> Columns:
        """Typed columns of some rows."""
        return columns_of(rows, self.path, first)


def open_parquet(path: Path, target: str | None, keep: Sequence[str]) -> ArrowRows:
    """Reader of a Parquet file, which keeps little more than one block in memory."""
    parquet = require("pyarrow.parquet", "Reading Parquet files")
    # Not ahead, and a part of a column at a time, so that row groups may be of any size.
    options = {"memory_map": False, "pre_buffer": False, "buffer_size": _BYTES}
    with _whole(path, "it is not a whole Parquet file"):
        file = parquet.ParquetFile(path, **options)
        names = file.schema_arrow.names

    def batches() -> Iterator[Any]:
        n = file.num_row_groups
        for group in range(n):
            with _whole(path, f"row group {group + 1} of {n} cannot be read"):
                yield from file.iter_batches(_ROWS, row_groups=[group], use_threads=False)

    return ArrowRows(path, target, keep, batches, names)


def open_arrow(path: Path, target: str | None, keep: Sequence[str]) -> ArrowRows:
    """Reader of a file or stored stream in Arrow's IPC format."""
    ipc = require("pyarrow.ipc", "Reading Arrow files")
    with reading(path, TableError), path.open("rb") as file:
        is_stream = file.read(6) != b"ARROW1"

    def batches() -> Iterator[Any]:
        k = 0
        with path.open("rb") as file:
            with _whole(path, "it is not a whole Arrow file"):
                source = ipc.open_stream(file) if is_stream else ipc.open_file(file)
            while is_stream or k < source.num_record_batches:
                try:
                    with _whole(path, f"record batch {k + 1} cannot be read"):
                        yield source.read_next_batch() if is_stream else source.get_batch(k)
                except StopIteration:
                    return
                k += 1

    with path.open("rb") as file, _whole(path, "it is not a whole Arrow file"):
        names = (ipc.open_stream(file) if is_stream else ipc.open_file(file)).schema.names
    return ArrowRows(path, target, keep, batches, names)


def open_batches(source: Any, target: str | None, keep: Sequence[str]) -> ArrowRows:
    """Reader of an object with ``__arrow_c_stream__`` or ``__dataframe__``, or of a function.

    The function returns record batches from the start at each call.
    """
    pa = require("pyarrow", "Reading tables in blocks")
    batches = source
    if hasattr(source, "__arrow_c_stream__"):

        def batches() -> Any:
            return pa.RecordBatchReader.from_stream(source)
    elif hasattr(source, "__dataframe__"):
        interchange = require("pyarrow.interchange", "Reading data frames")

        def batches() -> Iterator[Any]:
            for chunk in source.__dataframe__().get_chunks():
                yield interchange.from_dataframe(chunk)

    return ArrowRows(Path(f"the {type(source).__name__}"), target, keep, batches)


@contextmanager
def _whole(path: Path, problem: str) -> Iterator[None]:
    """Turns errors of pyarrow into a TableError for a damaged file, with the problem."""
    pa = require("pyarrow", "Reading tables")
    with reading(path, TableError):
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                path, f"{problem} ({first_line(error)})", "Get or write the file again."
            ) from None


def read_parquet(path: Path, max_bytes: int) -> Columns:
    """Read a Parquet file; columns keep their types.

    Only whole numbers that floats would round become text.
    """
    content = read_bytes(path, max_bytes)
    require("pandas", "Reading tables")
    pa = require("pyarrow", "Reading Parquet files")
    parquet = require("pyarrow.parquet", "Reading Parquet files")
    with _whole(path, "it is not a whole Parquet file"):
        file = parquet.ParquetFile(pa.BufferReader(content))
        check_columns(file.schema_arrow.names, path)
        # A value that is written once, however often it appears, has its bytes in memory each time.
        if 8 * file.metadata.num_rows * file.metadata.num_columns > max_bytes:
            raise too_large(path, max_bytes)
        table = file.read()
    return columns_of(table, path)


def read_arrow(path: Path, max_bytes: int) -> Columns:
    """Read a file or stored stream in Arrow's IPC format, like a Parquet file."""
    content = read_bytes(path, max_bytes)
    require("pandas", "Reading tables")
    ipc = require("pyarrow.ipc", "Reading Arrow files")
    is_file = content.startswith(b"ARROW1")
    with _whole(path, "it is not a whole Arrow file"):
        source = ipc.open_file(content) if is_file else ipc.open_stream(content)
        check_columns(source.schema.names, path)
        table = source.read_all()
    return columns_of(table, path)


def columns_of(table: pa.Table, path: Path, first: int = 0) -> Columns:
    """Typed columns of a pyarrow table, whose first row is row ``first`` of the file."""
    pandas = require("pandas", "Reading tables")
    pa = require("pyarrow", "Reading tables")
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
        return [None if cell is None else str(cell).removesuffix(".0") for cell in cells]

    integers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    notes = {n: _rounded(n, table[n], first) for n in integers if n in frame.columns}
    for name in filter(notes.get, notes):
        frame[name] = pandas.Series(text(name), index=frame.index, dtype=object)
    return Columns(frame, text, tuple(filter(None, notes.values())))


def _rounded(name: str, column: pa.Array, first: int) -> str:
    """Note if floats would round a whole number of a column, else an empty string."""
    pa = require("pyarrow", "Reading Parquet files")
    pc = require("pyarrow.compute", "Reading Parquet files")
    floats = pc.cast(column, pa.float64(), safe=False)
    for row in pc.indices_nonzero(pc.greater_equal(pc.abs(floats), float(EXACT))).to_pylist():
        cell = str(column[row].as_py())
        try:
            number(cell)
        except RoundedError as error:
            return left_as_text(name, first + row, cell, error)
    return ""
