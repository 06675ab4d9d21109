"""Options of the commands: from signatures and docstrings, with names that all commands share."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeAlias, get_origin, get_type_hints

import typer
from typer.models import ParameterInfo

from looms._advice import UNSET, Advice, advice_in, short
from looms._words import rows_of_files
from looms.cli._errors import InputError, quietly, reported
from looms.cli._output import catch_messages


class Bounds(NamedTuple):
    """Least and largest value of an option."""

    min: int
    max: int | None = None


#: Options of `looms fit` whose names differ from the parameters that they give.
PARAMETERS = {
    "positive": "pos_label",
    "target_transform": "target",
    "jobs": "n_jobs",
    "seed": "random_state",
}
#: Options of the models of tables; those of one kind of target are of one of the two.
OF_TABLES = (
    *("candidates", "combine", "threshold", "calibration", "class_weight", "positive"),
    "target_transform",
)
OF_MODEL = (*OF_TABLES, "cv", "jobs", "seed")
#: Options of every candidate with a kernel, of its search and its landmarks.
OF_SEARCH = {"max_iter": "max_iter", "search": "method"}
OF_CANDIDATES = ("loss", "criterion", *OF_SEARCH, "prior", "n_landmarks")
#: Parts of the help, and the options in each.
PANELS = {
    "Data": (
        *("target", "drop", "drop_missing_targets", "groups", "time", "gap"),
        *("forward", "duplicates"),
        *("sample_weight", "task", "order", "data", "format", "sep", "decimal", "encoding"),
        *("sheet", "max_bytes"),
    ),
    "Model": (*OF_TABLES, "prevalence"),
    "Validation": (
        *("cv", "no_evaluate", "test", "metric", "certify", "splits", "test_size", "method"),
        *("confidence_level", "class_conditional", "bootstrap", "resampling", "alpha", "store"),
    ),
    "Output": (*("output", "report", "json", "force", "quiet", "id", "keep", "digits", "plot"),),
    "Expert": (*OF_CANDIDATES, "memory", "jobs", "seed"),
}
PANEL_OF = {option: panel for panel, options in PANELS.items() for option in options}
#: Parameters that messages name, and their options.
OPTIONS = {
    **{option: option for option in PANEL_OF},
    **{parameter: option for option, parameter in PARAMETERS.items()},
    **{"kernel": "candidates", "n_splits": "splits", "scoring": "metric"},
}
#: Remedies that the command line has in other words, or not at all.
REMEDIES = {
    "assess": "looms assess",
    "assess forward": "looms assess --time",
    "cuts": "",
    "drop": " by --drop",
    "drop columns": " (looms fit --drop)",
    "duplicate groups": "give --duplicates group",
    "evaluate": "an evaluation (model.evaluate() in Python, looms fit without --no-evaluate)",
    "grid": "--search grid",
    "group rows": "together by --groups COLUMN",
    "jobs": "--jobs",
    "landmarks": ", auto or none",
    "no order": "leave --order out",
    "no scales": "a sparse file, such as svmlight",
    "not nested": "--no-evaluate",
    "other kernels": "another kernel (--candidates)",
    "precomputed": "",
    "rules": "",
    "search method": "--search",
    "splitters": "",
    "time": "--time",
    "transforms": "--target-transform",
    "verbose": "",
    "windows": "windows of time by --time",
}
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
    about, texts, examples = _help(function)
    hints: dict[str, Any] = get_type_hints(function)
    groups: dict[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    parameters = [*_options(function, texts), _option("quiet", bool, False, {})]
    words = partial(in_options, own=frozenset(p.name for p in parameters))

    def run(**values: Any) -> None:
        quiet = values.pop("quiet")
        with reported(), advice_in(words), rows_of_files(), quietly(quiet), catch_messages():
            if values.get("jobs") == 0:
                raise InputError("--jobs 0 would run nothing; use 1, or -1 for one per core")
            for name in LISTS & values.keys():
                given = [part.strip() for text in values[name] or () for part in text.split(",")]
                values[name] = list(filter(None, given)) or None
                if given and not values[name]:
                    raise InputError(f"{flag(name)} names nothing: give a name, or leave it out")
            for name, kind in groups.items():
                values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
            function(**values)

    run.__doc__ = "\n\n".join(" ".join(part.split()) for part in about.split("\n\n"))
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


def _options(documented: Any, texts: dict[str, str]) -> Iterator[inspect.Parameter]:
    """Parameters of a function, or fields of a dataclass, as Typer takes them."""
    hints = get_type_hints(documented, include_extras=True)
    for name, parameter in inspect.signature(documented).parameters.items():
        if is_dataclass(hints[name]):
            classes = reversed(inspect.getmro(hints[name]))
            of_fields = {n: text for one in classes for n, text in _help(one)[1].items()}
            yield from _options(hints[name], of_fields | texts)
        else:
            yield _option(name, hints[name], parameter.default, texts)


def _option(name: str, kind: Any, default: Any, texts: dict[str, str]) -> inspect.Parameter:
    """An option, or an argument if it has no default."""
    notes: tuple[Any, ...] = ()  # bounds, what a value is called, or what Typer itself takes
    if get_origin(kind) is Annotated:
        kind, notes = kind.__origin__, kind.__metadata__
    about: dict[str, Any] = {"help": texts.get(name, HELP.get(name))}
    about["rich_help_panel"] = PANEL_OF.get(name)
    for note in notes:
        about |= note._asdict() if isinstance(note, Bounds) else {"metavar": note}
    if notes and isinstance(notes[0], ParameterInfo):
        parameter: Any = notes[0]
    elif default is inspect.Parameter.empty:
        parameter = typer.Argument(**about | {"metavar": name.upper()})
    else:
        names = [flag(name), *OTHERS.get(name, [])]
        names += [f"-{name[0]}"] if name in LETTERS else []
        parameter = typer.Option(*names, **about)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, parameter])


def flag(name: str) -> str:
    """An option as it is given."""
    return f"--{name.replace('_', '-')}"


def in_options(advice: Advice, own: Collection[str] = PANEL_OF) -> str:
    """Advice in the words of a command with its ``own`` options, in place of parameters.

    Options that it lacks are those of `looms fit`.

    Examples
    --------
    >>> from looms._advice import UNSET, Advice
    >>> in_options(Advice("class_weight", "balanced", None))
    '--class-weight balanced'
    >>> in_options(Advice("n_landmarks", None, None)), in_options(Advice("sep", ..., None))
    ('--n-landmarks none', '--sep')
    >>> in_options(Advice("fit_intercept", True, None))
    'fit_intercept=True'
    >>> in_options(Advice("group rows", "patient id", "together, as groups"))
    "together by --groups 'patient id'"
    >>> in_options(Advice("task", "classification", None), own={"decimal"})
    'looms fit --task classification'
    """
    name = OPTIONS.get(advice.parameter)
    if advice.text is not None:
        remedy = REMEDIES.get(advice.parameter, advice.text)
        named = isinstance(advice.value, str)
        return remedy.replace("COLUMN", shlex.quote(advice.value)) if named else remedy
    if name is None:
        return str(advice)
    option = flag(name) if name in own else f"looms fit {flag(name)}"
    if advice.value is False:
        return f"no {option}"
    if any(advice.value is one for one in (UNSET, True, ...)):
        return option
    return f"{option} {'none' if advice.value is None else shlex.quote(short(advice.value))}"


Column: TypeAlias = Annotated[str | None, "COLUMN"]
Metrics: TypeAlias = Annotated[list[str] | None, "SCORER"]
Bytes: TypeAlias = Annotated[int, Bounds(1), "BYTES"]
