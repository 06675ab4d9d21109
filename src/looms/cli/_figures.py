"""Figures of merit and the choice among candidates, as tables on stdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, f1_score, precision_score, recall_score

from looms import SVCCV, NonconformityClassifier
from looms._classes import class_indices
from looms._scores import number_scores, pooled_auc
from looms._typing import AnyArray
from looms._words import count
from looms.calibration import brier_score, log_loss
from looms.cli._output import NARROW, console, figure, table
from looms.cli._request import Threshold
from looms.criteria import mean_class_error
from looms.estimators._search import SelectingMachine
from looms.held_out import HeldOut
from looms.model_files._files import SavedModel
from looms.report._selection import (
    candidate_scores,
    chosen_by,
    n_choice_folds,
    on_grid,
    score_name,
)
from looms.report.model import Model, named
from looms.threshold import Cost, RequiredPrecision, RequiredRecall

#: Number of scales shown, the largest, for a kernel with a scale for every feature.
MOST_SCALES = 8
#: Number of settings of a support vector machine shown, the best.
MOST_POINTS = 8
#: Largest number of classes for which the confusion is shown.
MOST_CONFUSED = 10
#: Prefix of a candidate's score, by what is held out at a time.
_SHORT = {"sample": "LOO", "group": "LOGO", "fold": "CV"}
#: Headings of figures by key.
HEADINGS = {
    **{"error": "error", "ber": "BER", "auc": "AUC", "log_loss": "log loss", "brier": "Brier"},
    **{"rmse": "RMSE", "mae": "MAE", "r2": "R2"},
}
#: Heading of the area under the ROC curve of several classes.
MEAN_AREA = "mean AUC, each class against the rest"
#: Headings of columns that are not called like the option.
_HEADS = {"log_likelihood": "deviance"}


def held_out_figures(model: Model) -> dict[str, dict[str, float]]:
    """Figures to quote for a machine on its training rows by key, and their standard errors."""
    nested = "nested " * (model.nested is not None)
    rows: dict[str, dict[str, float]] = {f"{nested}{model.method}": {}, "± s.e.": {}}
    for key, pair in model.scored.scores.items():
        for row, value in zip(rows.values(), pair, strict=True):
            row[key] = value
    return rows


def choice_of(saved: SavedModel) -> str:
    """A sentence about what the choice of the machine means for its figures."""
    machine = saved.model[-1]
    if not hasattr(machine, "held_out_"):  # of a pool
        return (
            "the smallest of many validation errors flatters its machine; quote the figures of the "
            "choice, made for each row by the others; looms assess gives them for more rows"
        )
    model = named(saved.model, machine)
    if model.nested and model.repeated:
        folds = f"each of {model.nested.units.n_units} folds"
        what = model.repeated.replace("each fold", folds).replace("sample", "row")
        more = "" if model.nested.whole else "; --nested folds repeats the whole choice"
        return (
            f"for these figures {what}; what was done to the columns before, such as scaling, was "
            f"not repeated{more}"
        )
    time = " --time" * bool(saved.metadata["options"].get("time"))
    outer = "--nested folds and looms assess give"
    if machine.X_fit_ is None or not isinstance(machine.cv, int | str | None):
        outer = f"looms assess{time} gives"
    return f"{model.method} chose this machine, so its figures flatter it; {outer} honest ones"


def classification_figures(
    y: AnyArray, predicted: AnyArray, decision: AnyArray, classes: AnyArray
) -> dict[str, float]:
    """Error rate, balanced error rate and area under the ROC curve.

    For two classes ``decision`` is (n_samples,) and the second class is positive; else it is
    (n_samples, n_classes), and the area a mean over classes against the rest. It is NaN without
    samples of both kinds.
    """
    wrong, of_classes = y != predicted, np.where(y[:, None] == classes, 1.0, -1.0)
    targets = of_classes[:, 1] if decision.ndim == 1 else of_classes
    return {
        "error": float(wrong.mean()),
        "ber": mean_class_error(np.unique(y, return_inverse=True)[1], wrong),
        "auc": pooled_auc(targets, decision, np.ones(len(y)))[0],
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


def threshold_figures(positive: AnyArray, taken: AnyArray, rule: Threshold) -> dict[str, float]:
    """Figures that a threshold rule is about; every sample counts as one.

    These are recall and precision of the positive class (NaN if no sample is predicted positive),
    preceded by F1 or the cost per row if the rule is about that.
    """
    figures = {
        "recall": recall_score(positive, taken),
        "precision": precision_score(positive, taken, zero_division=np.nan),
    }
    if rule == "f1":
        return {"F1": f1_score(positive, taken)} | figures
    if isinstance(rule, Cost):
        alarms, missed = np.mean(taken & ~positive), np.mean(positive & ~taken)
        return {"cost": alarms * rule.false_positive + missed * rule.false_negative} | figures
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


def show_confusion(
    y: AnyArray, predicted: AnyArray, labels: Sequence[object], title: str = "Confusion"
) -> None:
    """Print counts of each label (row) predicted as each (column), and the shares of both."""
    counts = confusion_matrix(y, predicted, labels=labels)
    names = [str(label) for label in labels]
    shown = table(title, ["true \\ predicted"], [*names, "share"])
    for name, row in zip(names, counts, strict=True):
        shown.add_row(name, *map(str, row), f"{row.sum() / counts.sum():.1%}")
    shown.add_row("share", *(f"{n / counts.sum():.1%}" for n in counts.sum(axis=0)), "")
    console().print(shown)


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


@singledispatch
def show_tried(machine: Any) -> None:
    """Print what was tried, with an arrow at what was taken; nothing for values that were given."""


@show_tried.register
def _(machine: SelectingMachine) -> None:
    """Every kernel with every criterion; the arrow is at the best, or the largest weight."""
    name, key = score_name(machine)
    score = HEADINGS.get(key) or (name if on_grid(machine) else loss_name(machine.threshold))
    wide, shares = console().width >= NARROW, machine.candidate_weights_
    n_folds = n_choice_folds(machine)
    search = ["evals", "s", "stopped"] if wide else []
    weight = [] if shares is None else ["weight"]
    by = f"{n_folds}-fold" if n_folds else _SHORT[chosen_by(machine)]
    numbers = ["value ± s.e.", f"{by} {score}", *weight, *search[:2]]
    shown = table("Candidates", ["", "kernel", "criterion"], numbers)
    if wide:
        shown.add_column("stopped")
    values = candidate_scores(machine)
    for k, candidate in enumerate(machine.candidates_):
        taken = (
            str(candidate.n_evaluations),
            f"{candidate.seconds:.2f}",
            candidate.outcome.name.lower().replace("_", " "),
        )
        shown.add_row(
            "→" if k == machine.best_index_ else "",
            candidate.kernel_name,
            str(candidate.criterion),
            f"{candidate.value:.4g} ± {candidate.standard_error:.2g}",
            f"{values[k]:.4g}",
            *([] if shares is None else [f"{shares[k]:.3f}" if shares[k] else "–"]),
            *(taken if wide else ()),
        )
    console().print(shown)


@show_tried.register
def _(machine: SVCCV) -> None:
    """The best settings of a search among support vector machines."""
    results = machine.cv_results_
    names = list(dict.fromkeys(name for params in results["params"] for name in params))
    heads = (*names, machine.criterion, "support", "s")
    title = f"Best of {len(results['params'])} settings"
    shown = table(title, ["", "kernel"], [_HEADS.get(name, name) for name in heads])
    for k in np.argsort(results["rank_loo_score"], kind="stable")[:MOST_POINTS]:
        params = results["params"][k]
        shown.add_row(
            "→" if k == machine.best_index_ else "",
            results["kernel"][k],
            *(f"{params[name]:.4g}" if name in params else "" for name in names),
            f"{results['loo_score'][k]:.5g}",
            str(results["n_support"][k]),
            f"{results['seconds'][k]:.2f}",
        )
    console().print(shown)


@show_tried.register
def _(machine: NonconformityClassifier) -> None:
    """The machines with the smallest validation errors, and how many predict."""
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


def show_choice(saved: SavedModel) -> None:
    """Print what was tried, the hyper-parameters of the best one, and its held-out figures."""
    machine, metadata = saved.model[-1], saved.metadata
    show_tried(machine)
    if not hasattr(machine, "held_out_"):  # of a pool
        what = "the choice, of each row by the others"
        show_figures({what: machine.scores_, "± s.e.": machine.scores_se_})
        return
    model = named(saved.model, machine)
    _show_chosen(model)
    figures, n_classes = held_out_figures(model), len(model.classes)
    show_figures(figures, n_classes)
    _, rows, decisions = model.scored
    if decisions is None:
        return
    method = next(iter(figures))
    truth, predicted = class_indices(machine.loo_.y[rows]), decisions.predicted
    if n_classes <= MOST_CONFUSED:
        labels = machine.classes_
        show_confusion(labels[truth], labels[predicted], labels.tolist(), f"Confusion, {method}")
    if machine.threshold not in (None, 0.0):
        values = threshold_figures(truth == 1, predicted == 1, machine.threshold)
        shown = ", ".join(f"{name} {figure(value)}" for name, value in values.items())
        rule = metadata["options"].get("threshold", machine.threshold)
        console().print(
            f"{method[0].upper()}{method[1:]} at threshold {rule} (positive: "
            f"{machine.classes_[1]}): {shown}"
        )


def _show_chosen(model: Model) -> None:
    """Print the hyper-parameters, and the threshold of two classes."""
    machine: Any = model.machine
    how, stack = "Given", getattr(machine, "members_", ())[1:]
    if hasattr(machine, "best_index_"):
        how, values = "Chosen", dict(machine.cv_results_["params"][machine.best_index_])
    else:
        values = {h.name: h.value for h in machine.kernel_.hyperparameters} | {"mu": machine.mu_}
    scales = [values.pop(name) for name in list(values) if "[" in name]  # one for each feature
    chosen = [f"{name} = {value:.4g}" for name, value in values.items()]
    if getattr(machine, "landmarks_", None) is not None:
        chosen.append(f"{machine.landmarks_.shape[0]} landmarks")
    if len(model.classes) == 2:
        one_side = abs(machine.threshold_) > 2**9 * np.abs(machine.held_out_.outputs).max()
        chosen.append(
            "no output has probability 1/2" if one_side else f"threshold = {machine.threshold_:.4g}"
        )
    if stack:
        how = "Largest"
        chosen = [machine.candidates_[machine.best_index_].name, *chosen]
        console().print(f"Stacked: {len(stack) + 1} machines, by the weights above")
    console().print(f"{how}: {', '.join(chosen)}")
    if scales:
        order = np.argsort(-np.array(scales))[:MOST_SCALES]
        largest = ", ".join(f"{model.features[k]} {scales[k]:.3g}" for k in order)
        console().print(f"Largest of {len(scales)} scales: {largest}")
