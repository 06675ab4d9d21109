"""Candidates, the selected model, and scores of predictions, as tables on stdout."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from looms import threshold
from looms._optional import require
from looms._scores import SCORES, ValuesAndErrors, scale_of
from looms._words import count, estimate_text, listed, score_text
from looms.assessment._result import Assessment
from looms.cli._model import SavedModel
from looms.cli._names import REMEDIES
from looms.cli._options import LISTS, Source
from looms.cli._output import WIDE, console, show_rows, show_table
from looms.cli._prepare import Prepared
from looms.cli._request import ModelRequest
from looms.report._chosen import candidates, chosen
from looms.report.facts import Facts
from looms.report.scores import scores_in_order
from looms.report.text import (
    CRITERIA,
    ENDS,
    clean,
    criterion_name,
    plainly,
    sentence,
    unit_words,
)
from looms.tables import Columns

Rule: TypeAlias = "threshold.ThresholdRule | threshold.Metric"

#: Number of scales shown, the largest, for a kernel with a scale for every feature; and of columns.
MOST_SCALES = MOST_COLUMNS = 8
#: Prefix of a candidate's loss, by what was held out.
_SHORT = {"sample": "LOO", "group": "LOGO", "fold": "CV", "window": "CV"}
#: Characters of a cell of a confusion matrix, such as 100.0%, and between two of them.
_CELL, _GAP = 6, 3
#: Heading of the ROC AUC of several classes.
MEAN_AREA = "mean ROC AUC"


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


def rule_scores(counts: Sequence[Sequence[float]], rule: Rule) -> dict[str, float]:
    """Scores that a threshold rule is about, from the confusion of two classes.

    These are recall and precision of the positive class (NaN if no sample is predicted positive),
    preceded by the F score if the rule is about that, or by the cost per row, beside the costs of
    predicting one class for all.
    """
    (negative, alarms), (missed, found) = counts
    scores = {
        "recall": found / (found + missed),
        "precision": found / (found + alarms) if found + alarms else float("nan"),
    }
    if not isinstance(rule, threshold.FBeta | threshold.Cost):
        return scores
    positives, negatives = found + missed, alarms + negative
    confusions = [[found, alarms, missed, negative], [positives, negatives, 0, 0]]
    confusions.append([0, 0, positives, negatives])
    losses = rule.losses(threshold.Counts(*np.array(confusions, float).T))[0]
    loss, of_all, of_none = losses.tolist()
    if isinstance(rule, threshold.FBeta):
        return {f"F{rule.beta:g}": 1.0 - loss} | scores
    always = {"always positive": of_all, "always negative": of_none}
    return {rule.loss_name: loss} | always | scores


def show_scores(
    scores: Mapping[str, ValuesAndErrors], baselines: Mapping[str, float], n_classes: int = 2
) -> None:
    """Print sets of scores, below each its standard errors, and baselines; a dash for none."""
    headings = {key: shown.name for key, shown in SCORES.items()}
    headings |= {"roc_auc": MEAN_AREA} if n_classes > 2 else {}
    rows = []
    for name, of_set in scores.items():
        for part, title in enumerate([name, "± s.e."]):
            texts = {k: score_text(v[part], scale_of(k, v[0])) for k, v in of_set.items()}
            rows.append({"": title} | texts)
    texts = {key: score_text(value, scale_of(key, value)) for key, value in baselines.items()}
    rows.append({"": "baseline"} | texts)
    named = [{headings.get(key, key): text for key, text in row.items()} for row in rows]
    show_rows(None, named, [""], "–")


def plain_scores(
    scores: ValuesAndErrors, baselines: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Scores with their standard errors and baselines, for JSON."""
    return {
        name: {"value": value, "standard_error": error, "baseline": baselines.get(name, np.nan)}
        for name, (value, error) in scores.items()
    }


def show_units(saved: SavedModel) -> None:
    """Print what the errors of a regression are measured in."""
    if not saved.is_classifier and saved.metadata["target"]:
        console().print(f"RMSE and MAE: in units of {saved.metadata['target']!r}")


def show_confusion(counts: Any, labels: Sequence[object], title: str = "Confusion") -> None:
    """Print counts of each label (row) predicted as each (column), with recall and precision.

    Where the labels are too long for the columns, these are numbered as the rows are.
    """
    counts, true = np.asarray(counts), "true \\ predicted"
    heads = names = [str(label) for label in labels]
    width = sum(max(len(head), _CELL) + _GAP for head in (true, *names, "recall"))
    if width > console().width:
        heads = [str(k) for k, _ in enumerate(names, 1)]
        names = [f"{head} {name}" for head, name in zip(heads, names, strict=True)]
    classes = zip(counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0), strict=True)
    recall, precision = zip(*((_percent(n, a), _percent(n, b)) for n, a, b in classes), strict=True)
    rows = [
        (name, *map(str, row), part) for name, row, part in zip(names, counts, recall, strict=True)
    ]
    rows.append(("precision", *precision, ""))
    show_table(title, [true, *heads, "recall"], rows, [true])


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "–"


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


def show_tried(facts: Facts) -> None:
    """Print what was tried, with an arrow at what was taken; nothing for values that were given.

    The arrow is at the best, or at the largest weight of a stack.
    """
    model, fitted = facts.model, facts.model.fitted
    tried = candidates(model)
    wide = console().width >= WIDE
    name, _, rule = model.loss
    loss = getattr(rule, "loss_name", name)
    method = f"{model.n_choice_folds}-fold" if model.n_choice_folds else _SHORT[fitted.units.unit]
    weighed = [row["weight"] is not None for row in tried]
    rows = [
        {"": _arrow(k == model.best), "kernel": row["kernel"]}
        | {"criterion": criterion_name(row["criterion"])}
        | {"value ± s.e.": estimate_text(row["value"], row["standard_error"])}
        | {f"{method} {loss}": f"{row['loss']:.4g}"}
        | ({"weight": f"{row['weight']:.3f}" if row["chosen"] else "–"} if any(weighed) else {})
        | ({"evaluations": str(row["n_evaluations"]), "s": f"{row['seconds']:.2f}"} if wide else {})
        | ({"search ended": row["outcome"]} if wide else {})
        for k, row in enumerate(tried)
    ]
    if tried:
        show_rows("Candidates", rows, ["", "kernel", "criterion", "search ended"])
        of_scale = f", of {model.fitted_to}" if model.fitted_to else ""
        for criterion in dict.fromkeys(row["criterion"] for row in tried):
            if criterion in CRITERIA:
                console().print(f"{plainly(criterion)}{of_scale}")
        for end in dict.fromkeys(row["outcome"] for row in tried):
            if wide and end in ENDS:
                console().print(f"{end}: {ENDS[end]}")
    if len(fitted.transforms) > 1:
        error_of, taken = f"RMSE of {model.target or 'the target'}", model.outcome.transform
        rows = [
            {"": _arrow(name == taken), "transform": name, error_of: score_text(error)}
            for name, error in fitted.transforms.items()
        ]
        show_rows("Transforms of the target, with one kernel", rows, ["", "transform"])


def _arrow(taken: object) -> str:
    return "→" if taken else ""


def show_choice(saved: SavedModel, facts: Facts) -> None:
    """Print what was tried, the hyper-parameters of the best one, and its held-out scores."""
    show_tried(facts)
    _show_chosen(facts)
    scores, confusion = facts.model.scores, facts.loo["confusion"]
    method = scores.kind
    show_scores({method: scores_in_order(facts.model)}, scores.baselines, len(facts.model.classes))
    show_units(saved)
    _show_columns(facts)
    if confusion is None:
        return
    labels, counts = confusion["labels"], confusion["counts"]
    show_confusion(counts, labels, f"Confusion, {method}")
    outcome = facts.model.outcome
    rule = outcome.threshold
    if rule == 0.5:
        return
    if outcome.positive_first:
        labels, counts = labels[::-1], [row[::-1] for row in counts[::-1]]
    values = rule_scores(counts, facts.model.rule)
    shown = ", ".join(f"{name} {score_text(value)}" for name, value in values.items())
    threshold = saved.metadata["options"].get("threshold", rule)
    where = f"at threshold {threshold} (positive: {labels[1]})"
    console().print(f"{sentence(method)}, {where}: {shown}")


def _show_columns(facts: Facts) -> None:
    """Print the columns that the model needs, if there are several."""
    importance, scale = facts.importance, facts.model.scale
    if importance is None or importance.n_columns < 2 or not importance.press > 0:
        return
    rises, errors = 100 * importance.value, 100 * importance.standard_error
    effects = zip(importance.names, rises, errors, strict=True)
    leading = [
        f"{clean(name)} {rise / importance.press:.0f} ± {error / importance.press:.0f} %"
        for name, rise, error in effects
        if rise > 2 * error
    ]
    more = f", and {len(leading) - MOST_COLUMNS} more" if len(leading) > MOST_COLUMNS else ""
    columns = ", ".join(leading[:MOST_COLUMNS]) + more if leading else "none beyond two s.e."
    where = "" if scale is None else f" on the scale of the {scale}"
    console().print(f"Rise of the squared held-out error{where} if a column is shuffled: {columns}")


def _show_chosen(facts: Facts) -> None:
    """Print the hyper-parameters, and the threshold of two classes."""
    model, taken = facts.model, chosen(facts.model)
    scales = [row for row in taken["parameters"] if row["feature"] is not None]
    values = {row["name"]: row["value"] for row in taken["parameters"] if row not in scales}
    values |= {"regularization mu": taken["mu"]}
    shown = [f"{name} = {value:.4g}" for name, value in values.items() if value is not None]
    if model.n_landmarks:
        shown.append(f"{model.n_landmarks} landmarks")
    if taken["one_class"]:
        shown.append("no output has probability 1/2")
    elif taken["threshold"] is not None:
        probability = taken["probability"]
        where = "" if probability is None else f" (probability {probability:.3g})"
        shown.append(f"threshold = {taken['threshold']:.4g}{where}")
    if taken["transform"]:
        shown.append(f"transform of the target = {taken['transform']}")
    how = "Given" if taken["criterion"] is None else "Selected"
    if model.stacked:
        largest = (taken["members"] or [taken])[0]
        criterion = largest["criterion"]
        named = [] if criterion is None else [criterion_name(criterion)]
        how, shown = "Largest", [largest["kernel"], *named, *shown]
        fitted = model.fitted
        weighted = "by the weights above" if fitted.candidates else "by the weights of the fit"
        console().print(f"Stacked: {len(fitted.members)} models, {weighted}")
    console().print(f"{how}: {', '.join(shown)}")
    if scales:
        n = taken["n_parameters"] - (len(taken["parameters"]) - len(scales))
        largest_ones = ", ".join(f"{s['feature']} {s['value']:.3g}" for s in scales[:MOST_SCALES])
        console().print(f"Largest of {n} scales: {largest_ones}")
