"""Facts of a model on stdout, the options that it was fitted with, and its scores for JSON."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from looms._optional import require
from looms._scores import ValuesAndErrors
from looms._words import count, listed
from looms.assessment._result import Assessment
from looms.cli._model import SavedModel
from looms.cli._names import REMEDIES
from looms.cli._options import LISTS, Source
from looms.cli._output import WIDE, console, print_blocks
from looms.cli._prepare import Prepared
from looms.cli._request import ModelRequest
from looms.report.facts import Facts
from looms.report.overview import MOST_COLUMNS, overview
from looms.report.text import unit_words
from looms.tables import Columns


def facts_of(
    saved: SavedModel, prepared: Prepared | None = None, assessment: Assessment | None = None
) -> Facts:
    """Facts of a model, with what is known of its rows after a fit."""
    pandas, about = require("pandas", "A report"), dict[str, Any]()
    target, file = saved.metadata["target"], saved.metadata["file"]
    if prepared is not None:
        about["notes"] = (*saved.table.remarks_, *prepared.target.notes)
        about["groups"] = prepared.groups
    title, index = f"{target}, {file}" if target else file, saved.rows
    names = pandas.Series(index, pandas.Index(index, name=saved.rows_are))
    if saved.metadata.get("by_fit", True):
        about["command"] = command_of(saved.metadata)
    about |= {"assessment": assessment, "title": title}
    return Facts(saved.model, names, **about)


def choice_of(saved: SavedModel, facts: Facts) -> str:
    """A sentence about what the selection of the model means for its scores."""
    model = facts.model
    if model.nested:
        n = model.nested.units.n_units
        several = {"fold": f"of {n} folds", "window": f"of {n} windows of time"}
        unit = several.get(model.unit, unit_words(model.unit))
        text = f"for these scores {model.repeated_without(unit)}"
        if model.prepared_anew:
            return f"{text}: the columns were prepared and the model was tuned anew"
        more = "" if model.nested.whole else f"; by {REMEDIES['evaluate']} the whole selection is"
        return f"{text}; the preparation of the columns was not repeated{more}"
    in_time = saved.metadata["options"].get("time")
    remedy = "looms assess --time gives" if in_time else model.unbiased_by
    text = f"{model.method} tuned this model, so its scores are optimistic"
    return f"{text}; {remedy} unbiased ones" if remedy else text


def plain_scores(
    scores: ValuesAndErrors, baselines: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Scores with their standard errors and baselines, for JSON."""
    return {
        name: {"value": value, "standard_error": error, "baseline": baselines.get(name, np.nan)}
        for name, (value, error) in scores.items()
    }


def show_request(metadata: Mapping[str, Any]) -> None:
    """Print the data that the model was fitted to, and the options that were given."""
    target = f" of {metadata['target']!r}" if metadata["target"] else ""
    task, version = f"{metadata['task'].capitalize()}{target}", metadata["looms_version"]
    size = f"{count(metadata['n_rows'], 'row')}, {count(metadata['n_features'], 'feature')}"
    echo = console().print
    if not metadata["by_fit"]:
        echo(f"{task}: {size}; saved by looms {version}")
        return
    echo(f"{task}, {metadata['file']}: {size}")
    echo(f"Options: {_options(metadata) or 'all at their defaults'}")
    echo(
        f"Fitted {metadata['date']} in {metadata['seconds']:.1f} s by looms {version}, "
        f"scikit-learn {metadata['sklearn_version']}"
    )


def show_columns(columns: Columns) -> None:
    """Print the kind of each column that the model reads, and how numbers are written."""
    of_kind: dict[str, list[str]] = {}
    for name, kind in columns.items():
        of_kind.setdefault(kind, []).append(name)
    kinds = (f"{kind} {listed(names, MOST_COLUMNS)}" for kind, names in of_kind.items())
    comma = "; numbers with a decimal comma" if columns.decimal == "," else ""
    console().print(f"Columns: {'; '.join(kinds)}{comma}")


def command_of(metadata: Mapping[str, Any]) -> str:
    """The command that fitted a model, as a shell takes it; the file without its folders."""
    target = option_text("target", metadata["target"]) if metadata["target"] else ""
    words = ["looms fit", shlex.quote(metadata["file"]), target, _options(metadata)]
    return " ".join(filter(None, words))


def _options(metadata: Mapping[str, Any]) -> str:
    """The options of a fit that are not at their defaults, but for the target."""
    defaults = {f.name: f.default for kind in (ModelRequest, Source) for f in fields(kind)}
    given = metadata["options"].items()
    return " ".join(option_text(n, v) for n, v in given if v and v != defaults.get(n))


def option_text(name: str, value: Any) -> str:
    """An option and its value as they are given."""
    option = f"--{name.replace('_', '-')}"
    values = value if isinstance(value, list) else [value]
    if name in LISTS:
        values = [",".join(values)]
    return option if value is True else " ".join(f"{option} {shlex.quote(str(v))}" for v in values)


def show_choice(saved: SavedModel, facts: Facts) -> None:
    """Print what was tried, the hyper-parameters of the best one, and its held-out scores."""
    width = console().width
    rule = saved.metadata["options"].get("threshold")
    parts = facts.model, facts.loo["confusion"], facts.importance
    print_blocks(*overview(*parts, wide=width >= WIDE, width=width, rule=rule))
