"""Options of the commands: from signatures and docstrings, with names that all commands share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_origin, get_type_hints

import typer
from typer.models import ParameterInfo

from looms._advice import advice_in
from looms._words import rows_of_files
from looms.cli._errors import InputError, in_options, quietly, reported
from looms.cli._names import PANEL_OF
from looms.datasets._read import Format


class Bounds(NamedTuple):
    """Least and largest value of an option."""

    min: int
    max: int | None = None


#: Options that their first letter stands for, too, and those with other names.
LETTERS = {"bootstrap", "candidates", "force", "jobs", "output", "quiet", "target"}
OTHERS = {"output": ["--out"], "splits": ["-n"]}
#: Options whose values may be listed with commas: names that have none.
LISTS = {"candidates", "criterion", "metric", "order", "target_transform"}
#: Help of options of several commands.
HELP = {
    "drop": "Column to leave out; may be repeated.",
    "drop_missing_targets": "Leave out rows whose target is missing.",
    "force": "Overwrite existing output files.",
    "json": "Print scores as JSON, and nothing else, on standard output.",
    "max_bytes": "Largest unpacked size of a file.",
    "metric": "Scorers of scikit-learn, such as f1,roc_auc or neg_mean_absolute_error.",
    "model": "A model file of looms fit.",
    "quiet": "No notes and no progress on standard error, only warnings and errors.",
    "store": "Folder that keeps finished splits; the same command runs the rest.",
    "target": "Column to predict; not for svmlight and npz files.",
}


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Function for Typer, which reports an error in one line instead of a traceback.

    A parameter is an option of its name; without a default it is an argument. Its help is in the
    docstring, under "Parameters", or in `HELP`, with the lines under "Examples" at the end. A
    parameter that is a dataclass of options is replaced by its fields. One called ``jobs`` must not
    be zero. All commands have ``quiet``.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    about, own_texts, examples = _help(function)
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in groups:
            parameters.append(_option(name, hints[name], parameter.default, own_texts))
            continue
        kinds = get_type_hints(groups[name], include_extras=True)
        texts = dict[str, str]()
        for kind in reversed(groups[name].__mro__):
            texts |= _help(kind)[1]
        parameters += [
            _option(f.name, kinds[f.name], f.default, texts | own_texts)
            for f in fields(groups[name])
        ]

    def run(**values: Any) -> None:
        with reported(), advice_in(in_options), rows_of_files(), quietly(values.pop("quiet")):
            if values.get("jobs") == 0:
                raise InputError("--jobs 0 would run nothing; use 1, or -1 for one per core")
            for name in LISTS & values.keys():
                given = [part.strip() for text in values[name] or () for part in text.split(",")]
                values[name] = list(filter(None, given)) or None
                if given and not values[name]:
                    option = f"--{name.replace('_', '-')}"
                    raise InputError(f"{option} names nothing: give a name, or leave it out")
            for name, kind in groups.items():
                values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
            function(**values)

    parameters.append(_option("quiet", bool, False, {}))
    run.__doc__ = about
    run.epilog = examples  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _help(documented: Any) -> tuple[str, dict[str, str], str]:
    """The docstring up to its parameters, the text of each of these, and the examples."""
    text, _, examples = (inspect.getdoc(documented) or "").partition("\n\nExamples\n--------\n")
    about, _, section = text.partition("\n\nParameters\n----------\n")
    texts = re.findall(r"(?m)^(\w+)\n((?: +.+\n?)+)", section)
    lines = ["Examples:", *examples.splitlines()] if examples else []
    return about, {name: " ".join(text.split()) for name, text in texts}, "\n\n".join(lines)


def _option(name: str, kind: Any, default: Any, texts: dict[str, str]) -> inspect.Parameter:
    """The parameter of a function, or field of a dataclass, as Typer takes it."""
    notes: tuple[Any, ...] = ()  # bounds, what a value is called, or what Typer itself takes
    if get_origin(kind) is Annotated:
        kind, notes = kind.__origin__, kind.__metadata__
    about: dict[str, Any] = {"help": texts.get(name, HELP.get(name))}
    about["rich_help_panel"] = PANEL_OF.get(name)
    for note in notes:
        about |= note._asdict() if isinstance(note, Bounds) else {"metavar": note}
    if notes and isinstance(notes[0], ParameterInfo):
        parameter: Any = notes[0]
    elif default in (inspect.Parameter.empty, MISSING):
        default = inspect.Parameter.empty
        parameter = typer.Argument(**about | {"metavar": name.upper()})
    else:
        names = [f"--{name.replace('_', '-')}", *OTHERS.get(name, [])]
        names += [f"-{name[0]}"] if name in LETTERS else []
        parameter = typer.Option(*names, **about)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, parameter])


Column: TypeAlias = Annotated[str | None, "COLUMN"]
Metrics: TypeAlias = Annotated[list[str] | None, "SCORER"]
Bytes: TypeAlias = Annotated[int, Bounds(1), "BYTES"]
IntervalMethod: TypeAlias = Literal["plus", "minmax", "scaled"]


@dataclass(frozen=True)
class Reading:
    """Options for reading a file; None means that the file tells.

    Parameters
    ----------
    format
        Format of the file, if its suffix does not tell.
    sep
        Character between cells of CSV files, or "tab"; detected by default.
    decimal
        Decimal mark of numbers in text; by default the fit decides it.
    encoding
        Encoding of CSV files, such as cp1252; detected by default.
    sheet
        Sheet of a spreadsheet: its name, or its number from 1.
    """

    format: Format | None = None
    sep: Annotated[str | None, "CHARACTER"] = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    sheet: str | None = None
    max_bytes: Bytes = 2**30  # as `looms.datasets.read_table` has it

    def options(self) -> dict[str, Any]:
        """The options by the names of Python."""
        tab = {"sep": "\t"} if self.sep in ("tab", r"\t") else {}
        names = [f.name for f in fields(Reading) if f.name != "decimal"]  # which columns have
        return {name: getattr(self, name) for name in names} | tab

    def of(self, file: Path) -> Source:
        """Another file, with these options for reading it."""
        return Source(file=file, **{f.name: getattr(self, f.name) for f in fields(Reading)})


@dataclass(frozen=True)
class Source(Reading):
    """A file, and options for reading it.

    Parameters
    ----------
    file
        The table to learn from.
    """

    file: Path = field(kw_only=True)


@dataclass(frozen=True)
class Columns:
    """Columns to predict and to leave out."""

    target: str | None = None
    drop: list[str] | None = None
    drop_missing_targets: bool = False
