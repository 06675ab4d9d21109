"""Facts of a fitted machine, and scores of predictions, as tables on stdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from looms._optional import require
from looms._scores import number_scores
from looms._typing import AnyArray
from looms._words import count
from looms.assessment._result import Assessment
from looms.calibration import brier_score, log_loss
from looms.cli._output import NARROW, console, figure, table
from looms.cli._prepare import Prepared
from looms.cli._request import Threshold
from looms.criteria import mean_class_error
from looms.held_out import HeldOut
from looms.model_files._files import SavedModel
from looms.report._chosen import candidates, chosen
from looms.report.facts import Facts
from looms.report.text import sentence
from looms.selection._fold_pairs import pair_auc
from looms.threshold import Cost, RequiredPrecision, RequiredRecall

#: Number of scales shown, the largest, for a kernel with a scale for every feature.
MOST_SCALES = 8
#: Number of points of a search shown, the best.
MOST_POINTS = 8
#: Prefix of a candidate's score, by how it was held out.
_SHORT = {"leave-one-out": "LOO", "leave-one-group-out": "LOGO", "cross-validation": "CV"}
#: Headings of figures by key.
HEADINGS = {
    **{"error": "error", "ber": "BER", "auc": "AUC", "log_loss": "log loss", "brier": "Brier"},
    **{"rmse": "RMSE", "mae": "MAE", "r2": "R2"},
}
#: Heading of the area under the ROC curve of several classes.
MEAN_AREA = "mean AUC, each class against the rest"


def facts_of(
    saved: SavedModel, prepared: Prepared | None = None, assessment: Assessment | None = None
) -> Facts | None:
    """Facts of a model, with what is known of its rows after a fit; None for a pool of machines."""
    if not hasattr(saved.model[-1], "held_out_"):
        return None
    pandas, about = require("pandas", "A report"), dict[str, Any]()
    target, file = saved.metadata["target"], saved.metadata["file"]
    y: Any = range(saved.metadata["n_rows"])  # of which only the name counts
    if prepared is not None:
        # People count the rows of a file from 1; only the names of the samples matter here.
        rows = pandas.Index(prepared.rows, name="row in the file, counted from 1 after any header")
        y, about = prepared.target.y, {"X": pandas.DataFrame(index=rows), "notes": prepared.notes}
        about["groups"] = prepared.arguments.get("groups")
    return Facts(
        saved.model,
        y=pandas.Series(y, name=target),
        assessment=assessment,
        title=f"{target}, {file}" if target else file,
        **about,
    )


def held_out_figures(facts: Facts) -> dict[str, dict[str, float]]:
    """Scores to quote for a machine on its training rows by key, and their standard errors."""
    nested, figures = "nested " * facts.loo["nested"], facts.loo["figures"]
    return {
        f"{nested}{facts.loo['method']}": {each["key"]: each["value"] for each in figures},
        "± s.e.": {each["key"]: each["standard_error"] for each in figures},
    }


def choice_of(saved: SavedModel, facts: Facts | None) -> str:
    """A sentence about what the choice of the machine means for its scores."""
    if facts is None:  # of a pool
        return (
            "the smallest of many validation errors flatters its machine; quote the figures of the "
            "choice, made for each row by the others; looms assess gives them for more rows"
        )
    model = facts.model
    if model.nested and model.repeated:
        folds = f"each of {model.nested.units.n_units} folds"
        what = model.repeated.replace("each fold", folds).replace("sample", "row")
        more = "" if model.nested.whole else "; --nested folds repeats the whole choice"
        return (
            f"for these figures {what}; what was done to the columns before, such as scaling, was "
            f"not repeated{more}"
        )
    honest = model.honest_by
    if saved.metadata["options"].get("time"):
        honest = honest.replace("assess", "assess --time")
    return f"{model.method} chose this machine, so its figures flatter it; {honest} honest ones"


def classification_figures(
    y: AnyArray, predicted: AnyArray, decision: AnyArray, classes: AnyArray
) -> dict[str, float]:
    """Error rate, balanced error rate and area under the ROC curve.

    For two classes ``decision`` is (n_samples,) and the second class is positive; else it is
    (n_samples, n_classes), and the area a mean over classes against the rest. It is NaN without
    samples of both kinds.
    """
    wrong, of_classes = y != predicted, np.where(y[:, None] == classes, 1.0, -1.0)
    targets = of_classes[:, 1:] if decision.ndim == 1 else of_classes
    one, outputs = np.ones(len(y)), decision.reshape(targets.shape)
    area, _ = pair_auc(targets, outputs, [np.arange(len(y))], [], [], one)
    return {
        "error": float(wrong.mean()),
        "ber": mean_class_error(np.unique(y, return_inverse=True)[1], wrong),
        "auc": area,
    }


def probability_figures(
    y: AnyArray, probabilities: AnyArray, classes: AnyArray
) -> dict[str, float]:
    """Log loss and Brier score, which for two classes is that of one of them.

    NaN if a label is not one of the classes, because it has no probability.
    """
    if not np.isin(y, classes).all():
        return {"log_loss": float("nan"), "brier": float("nan")}
    codes = np.where(y[:, None] == classes, 1.0, -1.0)
    codes = codes[:, 1] if len(classes) == 2 else codes
    truth = HeldOut(codes, np.zeros(codes.shape))
    return {"log_loss": log_loss(truth, probabilities), "brier": brier_score(truth, probabilities)}


def threshold_figures(counts: Sequence[Sequence[int]], rule: Threshold) -> dict[str, float]:
    """Figures that a threshold rule is about, from the confusion of two classes.

    These are recall and precision of the positive class (NaN if no sample is predicted positive),
    preceded by F1 or the cost per row if the rule is about that.
    """
    (negative, alarms), (missed, found) = counts
    figures = {
        "recall": found / (found + missed),
        "precision": found / (found + alarms) if found + alarms else float("nan"),
    }
    if rule == "f1":
        return {"F1": 2 * found / (2 * found + alarms + missed)} | figures
    if isinstance(rule, Cost):
        cost = alarms * rule.false_positive + missed * rule.false_negative
        return {"cost": cost / (negative + alarms + missed + found)} | figures
    return figures


def regression_figures(y: AnyArray, predicted: AnyArray) -> dict[str, float]:
    """Root mean square error, mean absolute error, and the share of the variance explained."""
    scores = number_scores(y, predicted[None], np.ones(len(y)))
    return {key: value for key, (value, _) in scores.items()}


def show_figures(figures: Mapping[str, Mapping[str, float]], n_classes: int = 2) -> None:
    """Print figures of merit by key, with a row for each set; a dash if a row lacks one."""
    keys = list(dict.fromkeys(key for values in figures.values() for key in values))
    headings = HEADINGS | ({"auc": MEAN_AREA} if n_classes > 2 else {})
    shown = table(None, [""], [headings[key] for key in keys])
    for row, values in figures.items():
        shown.add_row(row, *(figure(values.get(key, np.nan)) for key in keys))
    console().print(shown)


def show_confusion(counts: Any, labels: Sequence[object], title: str = "Confusion") -> None:
    """Print counts of each label (row) predicted as each (column), and the shares of both."""
    counts, names = np.asarray(counts), [str(label) for label in labels]
    shown = table(title, ["true \\ predicted"], [*names, "share"])
    for name, row in zip(names, counts, strict=True):
        shown.add_row(name, *map(str, row), f"{row.sum() / counts.sum():.1%}")
    shown.add_row("share", *(f"{n / counts.sum():.1%}" for n in counts.sum(axis=0)), "")
    console().print(shown)


def confusion_of(y: AnyArray, predicted: AnyArray, labels: Sequence[object]) -> AnyArray:
    """Counts of each label (row) predicted as each (column)."""
    return np.asarray(confusion_matrix(y, predicted, labels=labels))


def show_request(metadata: Mapping[str, Any]) -> None:
    """Print the data that the model was fitted to, and the options."""
    target = f" of {metadata['target']!r}" if metadata["target"] else ""
    options = {
        name: " ".join(map(str, value)) if isinstance(value, list | tuple) else value
        for name, value in metadata["options"].items()
        if value
    }
    size = f"{count(metadata['n_rows'], 'row')}, {count(metadata['n_features'], 'feature')}"
    if "date" not in metadata:  # of save_model
        what = f"{metadata['task'].capitalize()}{target}: {size}"
        console().print(f"{what}; saved by looms {metadata['looms_version']}")
        return
    for line in (
        f"{metadata['task'].capitalize()}{target}, {metadata['file']}: {size}",
        f"Asked for: {', '.join(f'{name}={value}' for name, value in options.items())}",
        f"Fitted {metadata['date']} in {metadata['seconds']:.1f} s by looms "
        f"{metadata['looms_version']}, scikit-learn {metadata['sklearn_version']}",
    ):
        console().print(line)


def loss_name(rule: Threshold) -> str:
    """Name of the loss by which candidates compete at a threshold."""
    if isinstance(rule, Cost):
        return "cost"
    if isinstance(rule, RequiredRecall):
        return "1 - precision"
    if isinstance(rule, RequiredPrecision):
        return "1 - recall"
    return "1 - F1" if rule == "f1" else "BER"


def show_tried(facts: Facts) -> None:
    """Print what was tried, with an arrow at what was taken; nothing for values that were given."""
    tried = candidates(facts.model)
    if tried and tried[0]["n_evaluations"] is None:
        _show_points(facts, tried)
    elif tried:
        _show_candidates(facts, tried)
    transforms = facts.model.transforms
    if len(transforms) > 1:
        shown = table("Transforms of the target", ["", "transform"], ["error", "log-likelihood"])
        for one in transforms:
            arrow = "→" if one.name == facts.model.transform else ""
            shown.add_row(arrow, one.name, f"{one.error:.4g}", f"{one.log_likelihood:.4g}")
        console().print(shown)


def _show_candidates(facts: Facts, tried: list[dict[str, Any]]) -> None:
    """Every kernel with every criterion; the arrow is at the best, or the largest weight."""
    model, wide, stacked = facts.model, console().width >= NARROW, facts.model.shares is not None
    name, key = model.score
    score = HEADINGS.get(key, name)
    if name.startswith("loss of "):
        score = loss_name(model.machine.threshold)
    folds = model.n_choice_folds
    by = f"{folds}-fold" if folds else _SHORT[model.chosen_by]
    numbers = ["value ± s.e.", f"{by} {score}", *["weight"] * stacked, *["evals", "s"] * wide]
    shown = table("Candidates", ["", "kernel", "criterion"], numbers)
    if wide:
        shown.add_column("stopped")
    for k, row in enumerate(tried):
        shown.add_row(
            "→" if k == model.machine.best_index_ else "",
            row["kernel"],
            row["criterion"],
            f"{row['value']:.4g} ± {row['standard_error']:.2g}",
            f"{row['score']:.4g}",
            *([f"{row['weight']:.3f}" if row["chosen"] else "–"] if stacked else []),
            *([str(row["n_evaluations"]), f"{row['seconds']:.2f}", row["outcome"]] if wide else []),
        )
    console().print(shown)


def _show_points(facts: Facts, tried: list[dict[str, Any]]) -> None:
    """The best points of a search."""
    names = list(dict.fromkeys(each["name"] for row in tried for each in row["parameters"]))
    score = HEADINGS.get(facts.model.score[1], facts.model.score[0])
    shown = table(f"Best of {len(tried)} settings", ["", "kernel"], [*names, score, "support", "s"])
    for row in (tried[k] for k in facts.model.ranked[:MOST_POINTS]):
        values = {each["name"]: f"{each['value']:.4g}" for each in row["parameters"]}
        shown.add_row(
            "→" if row["chosen"] else "",
            row["kernel"],
            *(values.get(name, "") for name in names),
            f"{row['score']:.5g}",
            str(row["n_support"]),
            f"{row['seconds']:.2f}",
        )
    console().print(shown)


def show_choice(saved: SavedModel, facts: Facts | None) -> None:
    """Print what was tried, the hyper-parameters of the best one, and its held-out figures."""
    if facts is None:
        show_pool(saved.model[-1])
        return
    show_tried(facts)
    _show_chosen(facts)
    figures, confusion = held_out_figures(facts), facts.loo["confusion"]
    show_figures(figures, len(facts.model.classes))
    method = next(iter(figures))
    if confusion is not None:
        show_confusion(confusion["counts"], confusion["labels"], f"Confusion, {method}")
    rule = getattr(facts.model.machine, "threshold", None)
    if rule not in (None, 0.0):
        values = threshold_figures(confusion["counts"], rule)
        shown = ", ".join(f"{name} {figure(value)}" for name, value in values.items())
        console().print(
            f"{sentence(method)} at threshold {saved.metadata['options'].get('threshold', rule)} "
            f"(positive: {confusion['labels'][1]}): {shown}"
        )


def _show_chosen(facts: Facts) -> None:
    """Print the hyper-parameters, and the threshold of two classes."""
    taken = chosen(facts.model)
    scales = [each for each in taken["parameters"] if each["feature"] is not None]
    values = {each["name"]: each["value"] for each in taken["parameters"] if each not in scales}
    values = {"C": taken["C"]} | values | {"mu": taken["mu"]}
    shown = [f"{name} = {value:.4g}" for name, value in values.items() if value is not None]
    if facts.model.n_landmarks:
        shown.append(f"{facts.model.n_landmarks} landmarks")
    if taken["one_class"]:
        shown.append("no output has probability 1/2")
    elif taken["threshold"] is not None:
        shown.append(f"threshold = {taken['threshold']:.4g}")
    if taken["transform"]:
        shown.append(f"transform of the target = {taken['transform']}")
    how = "Given" if taken["criterion"] is None else "Chosen"
    if facts.model.stacked:
        largest = taken["members"][0] if taken["members"] else taken
        how, shown = "Largest", [f"{largest['kernel']}, {largest['criterion']}", *shown]
        n = len(facts.model.members)
        console().print(f"Stacked: {n} machines, by the weights above")
    console().print(f"{how}: {', '.join(shown)}")
    if scales:
        n = taken["n_parameters"] - (len(taken["parameters"]) - len(scales))
        largest_ones = ", ".join(f"{s['feature']} {s['value']:.3g}" for s in scales[:MOST_SCALES])
        console().print(f"Largest of {n} scales: {largest_ones}")


def show_pool(machine: Any) -> None:
    """The machines of a pool with the smallest validation errors, how many predict, and scores."""
    errors, names = machine.validation_errors_, list(machine.pool_[0])
    n_rows = len(machine.validation_)
    shown = table(f"Best of {len(errors)} machines", ["", *names], ["error", "± s.e."])
    for k in np.argsort(errors, kind="stable")[:MOST_POINTS]:
        spread = np.sqrt(errors[k] * (1.0 - errors[k]) / n_rows)
        shown.add_row(
            "→" if k in machine.deciding_ else "",
            *(f"{machine.pool_[k][name]:.4g}" for name in names),
            figure(errors[k]),
            figure(spread),
        )
    console().print(shown)
    how = "held out in folds" if machine.validation != "split" else "that none was trained on"
    console().print(
        f"Errors of {count(n_rows, 'row')} {how}; {len(machine.deciding_)} of the machines (→) "
        "predict: for each row, the one most certain of its label"
    )
    what = "the choice, of each row by the others"
    show_figures({what: machine.scores_, "± s.e.": machine.scores_se_})
