"""Options of the commands, each defined once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import typer

from looms.cli._errors import InputError, reported
from looms.datasets._read import Format


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Function for Typer, which reports an error in one line instead of a traceback.

    A parameter that is a dataclass of options is replaced by its fields. A field or parameter
    called ``jobs`` must not be zero.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(kind=keyword, annotation=hints[name]))
            continue
        kinds = get_type_hints(groups[name], include_extras=True)
        parameters += [
            inspect.Parameter(f.name, keyword, default=f.default, annotation=kinds[f.name])
            for f in fields(groups[name])
        ]

    def run(**values: Any) -> None:
        with reported():
            if values.get("jobs") == 0:
                raise InputError("--jobs 0 would run nothing; use 1, or -1 for one per core")
            for name, kind in groups.items():
                values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
            function(**values)

    run.__doc__ = function.__doc__
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


Task: TypeAlias = Literal["auto", "classification", "regression"]
IntervalMethod: TypeAlias = Literal["plus", "minmax", "scaled"]

MaxBytesOption = Annotated[
    int,
    typer.Option("--max-bytes", min=1, metavar="BYTES", help="Largest unpacked size of a file."),
]


@dataclass(frozen=True)
class Reading:
    """Options for reading a file; None means that the file tells."""

    format: Annotated[
        Format | None, typer.Option(help="Format of the file, if its suffix does not tell.")
    ] = None
    sep: Annotated[
        str | None,
        typer.Option(
            help='Character between cells of CSV files, or "tab"; detected by default.',
            metavar="CHARACTER",
        ),
    ] = None
    decimal: Annotated[
        Literal[".", ","] | None,
        typer.Option(help="Decimal mark of CSV files and spreadsheet text; detected by default."),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of CSV files, such as cp1252; detected by default.")
    ] = None
    sheet: Annotated[
        str | None, typer.Option(help="Sheet of a spreadsheet: its name, or its number from 1.")
    ] = None
    max_bytes: MaxBytesOption = 2**30  # as `looms.datasets.read_table` has it


FileArgument = Annotated[Path, typer.Argument(help="The table to learn from.", metavar="FILE")]
ModelArgument = Annotated[Path, typer.Argument(help="A model file of looms fit.", metavar="MODEL")]
TargetOption = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Column to predict; not for svmlight and npz files."),
]
DropOption = Annotated[
    list[str] | None, typer.Option("--drop", help="Column to leave out; may be repeated.")
]
DropMissingOption = Annotated[
    bool,
    typer.Option("--drop-missing-targets", help="Leave out rows whose target is missing."),
]


@dataclass(frozen=True)
class Columns:
    """Columns to predict and to leave out."""

    target: TargetOption = None
    drop: DropOption = None
    drop_missing_targets: DropMissingOption = False


JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print figures as JSON, and nothing else, on standard output."),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store", help="Folder that keeps finished splits; the same command runs the rest."
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite existing output files.")
]
