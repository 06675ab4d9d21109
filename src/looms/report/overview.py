"""Overview of a fitted model: candidates, the one that was chosen, scores and leading columns.

It is lines and tables, which the command line prints, and a summary as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from looms import threshold
from looms._scores import SCORES, ValuesAndErrors, scale_of
from looms._words import aligned, estimate_text, score_text
from looms.report._chosen import candidates, chosen
from looms.report.displays.features import ImportanceDisplay
from looms.report.model import Reported
from looms.report.scores import scores_in_order
from looms.report.text import CRITERIA, ENDS, clean, criterion_name, plainly, sentence

Rule: TypeAlias = "threshold.ThresholdRule | threshold.Metric"

#: Number of scales shown, the largest, for a kernel with a scale for every feature; and of columns.
_MOST_SCALES = MOST_COLUMNS = 8
#: Prefix of a candidate's loss, by what was held out.
_SHORT = {"sample": "LOO", "group": "LOGO", "fold": "CV", "window": "CV", "forward": "CV"}
#: Characters of a cell of a confusion matrix, such as 100.0%, and between two of them.
_CELL, _GAP = 6, 3
#: Characters of a line.
_WIDTH = 100
#: Heading of the ROC AUC of several classes.
_MEAN_AREA = "mean ROC AUC"


class TextTable(NamedTuple):
    """Cells of a table, as text.

    Attributes
    ----------
    title : above it, or None.
    names : of the columns.
    rows : of cells.
    words : columns of words, which are at the left; numbers are at the right.
    """

    title: str | None
    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str]

    def __str__(self) -> str:
        left = [k for k, name in enumerate(self.names) if name in self.words]
        lines = aligned([self.names, *self.rows], left)
        return "\n".join(lines if self.title is None else [self.title, *lines])


def table_of(
    title: str | None, rows: Sequence[Mapping[str, str]], words: Sequence[str], missing: str = ""
) -> TextTable:
    """Table of rows by the names of their columns; ``missing`` is the cell of a row without one."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name, missing) for name in names] for row in rows]
    return TextTable(title, names, cells, words)


def overview(
    model: Reported,
    confusion: Mapping[str, Any] | None,
    importance: ImportanceDisplay | None,
    *,
    wide: bool = False,
    width: int = _WIDTH,
    rule: Any = None,
) -> Iterator[str | TextTable]:
    """Lines and tables on a fitted model.

    Parameters
    ----------
    model : of a report.
    confusion : of a summary, or None.
    importance : of the columns, or None.
    wide : whether there is room for evaluations, seconds and ends of searches.
    width : characters of a line.
    rule : the threshold as it was asked for, if it is called otherwise than by the model.
    """
    yield from tried(model, wide)
    yield from _chosen(model)
    scores = model.scores
    shown = {scores.kind: scores_in_order(model)}
    yield table_of_scores(shown, scores.baselines, len(model.classes))
    if not model.outcome.decides and model.target:
        yield units_of(model.target)
    yield from _leading(importance, model.scale)
    if confusion is None:
        return
    labels, counts = confusion["labels"], confusion["counts"]
    yield table_of_confusion(counts, labels, f"Confusion, {scores.kind}", width)
    outcome = model.outcome
    if outcome.threshold == 0.5:
        return
    if outcome.positive_first:
        labels, counts = labels[::-1], [row[::-1] for row in counts[::-1]]
    values = rule_scores(counts, model.rule)
    listed = ", ".join(f"{name} {score_text(value)}" for name, value in values.items())
    rule = rule or getattr(outcome.threshold, "__name__", outcome.threshold)
    yield f"{sentence(scores.kind)}, at threshold {rule} (positive: {labels[1]}): {listed}"


def text_of(blocks: Iterable[str | TextTable]) -> str:
    """Lines and tables as one text, with an empty line around each table; long lines are broken."""
    texts = [fill(block, _WIDTH) if isinstance(block, str) else f"\n{block}\n" for block in blocks]
    return "\n".join(texts).strip("\n").replace("\n\n\n", "\n\n")


def tried(model: Reported, wide: bool) -> Iterator[str | TextTable]:
    """Candidates, with an arrow at the one that was taken; nothing for values that were given.

    The arrow is at the best, or at the largest weight of a stack.
    """
    fitted, found = model.fitted, candidates(model)
    name, _, rule = model.loss
    loss = getattr(rule, "loss_name", name)
    method = f"{model.n_choice_folds}-fold" if model.n_choice_folds else _SHORT[fitted.units.unit]
    weighed = any(row["weight"] is not None for row in found)
    rows = [
        {"": _arrow(k == model.best), "kernel": row["kernel"]}
        | {"criterion": criterion_name(row["criterion"])}
        | {"value ± s.e.": estimate_text(row["value"], row["standard_error"])}
        | {f"{method} {loss}": f"{row['loss']:.4g}"}
        | ({"weight": f"{row['weight']:.3f}" if row["chosen"] else "–"} if weighed else {})
        | ({"evaluations": str(row["n_evaluations"]), "s": f"{row['seconds']:.2f}"} if wide else {})
        | ({"search ended": row["outcome"]} if wide else {})
        for k, row in enumerate(found)
    ]
    if rows:
        yield table_of("Candidates", rows, ["", "kernel", "criterion", "search ended"])
        of_scale = f", of {model.fitted_to}" if model.fitted_to else ""
        for criterion in dict.fromkeys(row["criterion"] for row in found):
            if criterion in CRITERIA:
                yield f"{plainly(criterion)}{of_scale}"
        for end in dict.fromkeys(row["outcome"] for row in found):
            if wide and end in ENDS:
                yield f"{end}: {ENDS[end]}"
    if len(fitted.transforms) > 1:
        error_of, taken = f"RMSE of {model.target or 'the target'}", model.outcome.transform
        rows = [
            {"": _arrow(name == taken), "transform": name, error_of: score_text(error)}
            for name, error in fitted.transforms.items()
        ]
        yield table_of("Transforms of the target, with one kernel", rows, ["", "transform"])


def _arrow(taken: object) -> str:
    return "→" if taken else ""


def _chosen(model: Reported) -> Iterator[str]:
    """The hyper-parameters, and the threshold of two classes."""
    taken = chosen(model)
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
    if model.scale or model.fitted.transforms:
        shown.append(f"transform of the target = {taken['transform']}")
    how = "Given" if taken["criterion"] is None else "Selected"
    if model.stacked:
        largest = (taken["members"] or [taken])[0]
        criterion = largest["criterion"]
        named = [] if criterion is None else [criterion_name(criterion)]
        how, shown = "Largest", [largest["kernel"], *named, *shown]
        fitted = model.fitted
        weighted = "by the weights above" if fitted.candidates else "by the weights of the fit"
        yield f"Stacked: {len(fitted.members)} models, {weighted}"
    yield f"{how}: {', '.join(shown)}"
    if scales:
        n = taken["n_parameters"] - (len(taken["parameters"]) - len(scales))
        largest_ones = ", ".join(f"{s['feature']} {s['value']:.3g}" for s in scales[:_MOST_SCALES])
        yield f"Largest of {n} scales: {largest_ones}"


def table_of_scores(
    scores: Mapping[str, ValuesAndErrors],
    baselines: Mapping[str, float],
    n_classes: int = 2,
    **others: Mapping[str, float],
) -> TextTable:
    """Sets of scores, below each its standard errors, baselines and others; a dash for none."""
    headings = {key: shown.name for key, shown in SCORES.items()}
    headings |= {"roc_auc": _MEAN_AREA} if n_classes > 2 else {}
    rows = []
    for name, of_set in scores.items():
        for part, title in enumerate([name, "± s.e."]):
            texts = {k: score_text(v[part], scale_of(k, v[0])) for k, v in of_set.items()}
            rows.append({"": title} | texts)
    for name, values in {"baseline": baselines, **others}.items():
        texts = {key: score_text(value, scale_of(key, value)) for key, value in values.items()}
        rows.append({"": name} | texts)
    named = [{headings.get(key, key): text for key, text in row.items()} for row in rows]
    return table_of(None, named, [""], "–")


def units_of(target: str) -> str:
    """What the errors of a regression are measured in."""
    return f"RMSE and MAE: in units of {target!r}"


def table_of_confusion(
    counts: Any, labels: Sequence[object], title: str = "Confusion", width: int = _WIDTH
) -> TextTable:
    """Counts of each label (row) predicted as each (column), with recall and precision.

    Where the labels are too long for the columns, these are numbered as the rows are.
    """
    counts, true = np.asarray(counts), "true \\ predicted"
    heads = names = [str(label) for label in labels]
    if sum(max(len(head), _CELL) + _GAP for head in (true, *names, "recall")) > width:
        heads = [str(k) for k, _ in enumerate(names, 1)]
        names = [f"{head} {name}" for head, name in zip(heads, names, strict=True)]
    classes = zip(counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0), strict=True)
    recall, precision = zip(*((_percent(n, a), _percent(n, b)) for n, a, b in classes), strict=True)
    rows = [
        (name, *map(str, row), part) for name, row, part in zip(names, counts, recall, strict=True)
    ]
    rows.append(("precision", *precision, ""))
    return TextTable(title, [true, *heads, "recall"], rows, [true])


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "–"


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


def _leading(importance: ImportanceDisplay | None, scale: str | None) -> Iterator[str]:
    """The columns that the model needs, if there are several."""
    if importance is None or importance.n_columns < 2 or not importance.press > 0:
        return
    rises, errors = 100 * importance.value, 100 * importance.standard_error
    effects = zip(importance.names, rises, errors, strict=True)
    leading = [
        f"{clean(name)} {rise / importance.press:+.0f} ± {error / importance.press:.0f} %"
        for name, rise, error in effects
        if rise > 2 * error
    ]
    more = f", and {len(leading) - MOST_COLUMNS} more" if len(leading) > MOST_COLUMNS else ""
    columns = ", ".join(leading[:MOST_COLUMNS]) + more if leading else "none beyond two s.e."
    where = "" if scale is None else f" on the scale of the {scale}"
    yield f"Rise of the squared held-out error{where} if a column is shuffled: {columns}"
