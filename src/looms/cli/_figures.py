"""Figures of merit and the choice among candidates, as tables on stdout."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import (
    confusion_matrix,
    f1_score,
    mean_absolute_error,
    precision_score,
    r2_score,
    recall_score,
    roc_auc_score,
)
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.pipeline import Pipeline

from looms import SVCCV, NonconformityClassifier
from looms._classes import class_indices
from looms._typing import AnyArray
from looms._words import count
from looms.calibration import brier_score, log_loss
from looms.cli._output import NARROW, console, figure, table
from looms.cli._request import Threshold
from looms.criteria import mean_class_error
from looms.estimators._search import chosen_criterion
from looms.folds import GapKFold
from looms.held_out import HeldOut
from looms.report._feature_names import feature_names
from looms.report._selection import (
    METHODS,
    chosen_by,
    combined_by_rest,
    n_choice_folds,
    on_grid,
    unit_of,
)
from looms.report.model import scored
from looms.threshold import Cost, RequiredPrecision, RequiredRecall

#: Number of scales shown, the largest, for a kernel with a scale for every feature.
MOST_SCALES = 8
#: Number of settings of a support vector machine shown, the best.
MOST_POINTS = 8
#: Largest number of classes for which the confusion is shown.
MOST_CONFUSED = 10
#: Name of the mean over the classes of the AUC of each class against the rest.
MEAN_AREA = "mean AUC, each class against the rest"
#: Prefix of a candidate's score, by what is held out at a time.
_SHORT = {"sample": "LOO", "group": "LOGO", "fold": "CV"}
#: Names of figures by key.
_NAMES = {
    **{"error": "error", "ber": "BER", "auc": "AUC", "log_loss": "log loss"},
    **{"rmse": "RMSE", "mae": "MAE", "r2": "R2"},
}
#: Headings of columns that are not called like the option.
_HEADS = {"log_likelihood": "deviance"}


def held_out_figures(machine: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Figures to quote for a machine on its training rows, and their standard errors."""
    several = not is_regressor(machine) and machine.loo_.y.ndim > 1
    names = _NAMES | ({"auc": MEAN_AREA} if several else {})
    scores = scored(machine).scores
    values, errors = (
        {names[key]: pair[k] for key, pair in scores.items() if key in names} for k in range(2)
    )
    return values, errors


def by_key(figures: Mapping[str, float]) -> dict[str, float]:
    """Figures by the keys of `looms.report.summary`, not by their names."""
    keys = {name: key for key, name in _NAMES.items()} | {MEAN_AREA: "auc", "Brier": "brier"}
    return {keys[name]: value for name, value in figures.items()}


def method_of(machine: Any) -> str:
    """Name of the way in which rows were held out."""
    nested = machine.nested_ is not None
    return f"{'nested ' * nested}{METHODS[unit_of(machine)]}"


def choice_of(machine: Any) -> str:
    """A sentence about what the choice of the machine means for its figures."""
    if isinstance(machine, NonconformityClassifier):
        return (
            "the smallest of many validation errors flatters its machine; quote the figures of the "
            "choice, made for each row by the others; looms assess gives them for more rows"
        )
    if isinstance(getattr(machine, "cv", None), GapKFold) and machine.nested_ is None:
        return (
            "windows of time chose this machine, so its figures flatter it; looms assess --time "
            "gives honest ones"
        )
    if machine.nested_ is not None and combined_by_rest(machine):
        verb = "weighed" if machine.members_ else "compared"
        return (
            f"the figures are of candidates tuned again without each of {n_choice_folds(machine)} "
            f"folds and {verb} by the other folds; what was done to the columns before, such as "
            "scaling, was not repeated; --nested folds repeats the whole choice"
        )
    if machine.nested_ is not None:
        unit = unit_of(machine).replace("sample", "row")
        if unit == "fold":
            unit = f"of {len(np.unique(machine.nested_.folds))} folds"
        return (
            f"for these figures the choice was repeated without each {unit}; what was done to the "
            "columns before, such as scaling, was not repeated"
        )
    outer = "--nested folds and looms assess give"
    if machine.X_fit_ is None:  # rows in blocks
        outer = "looms assess gives"
    method = METHODS[unit_of(machine)]
    return f"{method} chose this machine, so its figures flatter it; {outer} honest ones"


def classification_figures(
    y: AnyArray, predicted: AnyArray, decision: AnyArray, classes: AnyArray
) -> dict[str, float]:
    """Error rate, balanced error rate and area under the ROC curve, or `MEAN_AREA`.

    For two classes ``decision`` is (n_samples,) and the second class is positive; else it is
    (n_samples, n_classes). An area is NaN without samples of both kinds.
    """
    wrong = y != predicted
    of_classes = (
        [(classes[1], decision)] if decision.ndim == 1 else zip(classes, decision.T, strict=True)
    )
    areas = [
        roc_auc_score(y == label, values)
        for label, values in of_classes
        if 0 < np.count_nonzero(y == label) < len(y)
    ]
    return {
        "error": float(wrong.mean()),
        "BER": mean_class_error(np.unique(y, return_inverse=True)[1], wrong),
        "AUC" if decision.ndim == 1 else MEAN_AREA: float(np.mean(areas or [np.nan])),
    }


def probability_figures(
    y: AnyArray, probabilities: AnyArray, classes: AnyArray
) -> dict[str, float]:
    """Log loss and Brier score, which for two classes is that of one of them.

    NaN if a label is not one of the classes, because it has no probability.
    """
    if not np.isin(y, classes).all():
        return {"log loss": float("nan"), "Brier": float("nan")}
    codes = np.where(y[:, None] == classes, 1.0, -1.0)
    codes = codes[:, 1] if len(classes) == 2 else codes
    truth = HeldOut(codes, np.zeros(codes.shape))
    return {"log loss": log_loss(truth, probabilities), "Brier": brier_score(truth, probabilities)}


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
    varies = len(y) > 1 and np.ptp(y) > 0
    return {
        "RMSE": float(rmse(y, predicted)),
        "MAE": float(mean_absolute_error(y, predicted)),
        "R2": float(r2_score(y, predicted)) if varies else float("nan"),
    }


def show_figures(figures: Mapping[str, Mapping[str, float]]) -> None:
    """Print figures of merit, with a row for each set; a dash if a row lacks one."""
    names = list(dict.fromkeys(name for values in figures.values() for name in values))
    shown = table(None, [""], names)
    for row, values in figures.items():
        shown.add_row(row, *(figure(values.get(name, np.nan)) for name in names))
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


def show_candidates(machine: Any) -> None:
    """Print every kernel with every criterion; an arrow marks the best, or the largest weights."""
    if is_regressor(machine):
        score = "RMSE"
    elif on_grid(machine):
        score = str(chosen_criterion(machine))
    else:
        score = loss_name(machine.threshold)
    wide, shares, n_folds = (
        console().width >= NARROW,
        machine.candidate_weights_,
        n_choice_folds(machine),
    )
    search = ["evals", "s", "stopped"] if wide else []
    weight = [] if shares is None else ["weight"]
    by = f"{n_folds}-fold" if n_folds else _SHORT[chosen_by(machine)]
    numbers = ["value ± s.e.", f"{by} {score}", *weight, *search[:2]]
    shown = table("Candidates", ["", "kernel", "criterion"], numbers)
    if wide:
        shown.add_column("stopped")
    for k, candidate in enumerate(machine.candidates_):
        taken = (
            str(candidate.n_evaluations),
            f"{candidate.seconds:.2f}",
            candidate.outcome.name.lower().replace("_", " "),
        )
        value = np.sqrt(candidate.score) if is_regressor(machine) else candidate.score
        shown.add_row(
            "→" if k == machine.best_index_ else "",
            candidate.kernel_name,
            candidate.criterion,
            f"{candidate.value:.4g} ± {candidate.standard_error:.2g}",
            f"{value:.4g}",
            *([] if shares is None else [f"{shares[k]:.3f}" if shares[k] else "–"]),
            *(taken if wide else ()),
        )
    console().print(shown)


def show_choice(model: Pipeline, metadata: Mapping[str, Any]) -> None:
    """Print candidates, the hyper-parameters of the best one, and its leave-one-out figures."""
    machine = model[-1]
    out = console()
    if isinstance(machine, NonconformityClassifier):
        _show_pool(machine)
        return
    if isinstance(machine, SVCCV):
        _show_settings(machine)
        best = machine.cv_results_["params"][machine.best_index_]
        chosen, scales = [f"{name} = {value:.4g}" for name, value in best.items()], []
    else:
        if hasattr(machine, "candidates_"):
            show_candidates(machine)
        values = machine.kernel_.hyperparameters
        scales = [h for h in values if re.fullmatch(r".*\[\d+\]", h.name)]
        chosen = [f"{h.name} = {h.value:.4g}" for h in values if h not in scales]
        chosen.append(f"mu = {machine.mu_:.4g}")
        if machine.landmarks_ is not None:
            chosen.append(f"{machine.landmarks_.shape[0]} landmarks")
    if not is_regressor(machine) and machine.loo_.y.ndim == 1:
        one_side = abs(machine.threshold_) > 2**9 * np.abs(machine.held_out_.outputs).max()
        chosen.append(
            "no output has probability 1/2" if one_side else f"threshold = {machine.threshold_:.4g}"
        )
    members = getattr(machine, "members_", ())
    if members:
        out.print(f"Stacked: {len(members)} machines, by the weights above")
        taken = machine.candidates_[machine.best_index_].name
        chosen = [taken, *chosen]
    how = "Chosen" if hasattr(machine, "best_index_") else "Given"
    out.print(f"{'Largest' if members else how}: {', '.join(chosen)}")
    if scales:
        names, _, _ = feature_names(model[:-1], machine)
        order = np.argsort([-h.value for h in scales])[:MOST_SCALES]
        largest = ", ".join(f"{names[k]} {scales[k].value:.3g}" for k in order)
        out.print(f"Largest of {len(scales)} scales: {largest}")
    method = method_of(machine)
    values, errors = held_out_figures(machine)
    show_figures({method: values, "± s.e.": errors})
    _, rows, decisions = scored(machine)
    if decisions is None:
        return
    truth, predicted = class_indices(machine.loo_.y[rows]), decisions.predicted
    if len(machine.classes_) <= MOST_CONFUSED:
        labels = machine.classes_
        show_confusion(labels[truth], labels[predicted], labels.tolist(), f"Confusion, {method}")
    if machine.threshold not in (None, 0.0):
        values = threshold_figures(truth == 1, predicted == 1, machine.threshold)
        shown = ", ".join(f"{name} {figure(value)}" for name, value in values.items())
        rule = metadata["options"].get("threshold", machine.threshold)
        out.print(
            f"{method[0].upper()}{method[1:]} at threshold {rule} (positive: "
            f"{machine.classes_[1]}): {shown}"
        )


def _show_settings(machine: SVCCV) -> None:
    """Print the best settings of a search among support vector machines."""
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


def _show_pool(machine: NonconformityClassifier) -> None:
    """Print the machines with the smallest validation errors, and how many predict."""
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
    values, of_values = (
        {_NAMES[name]: value for name, value in scores.items()}
        for scores in (machine.scores_, machine.scores_se_)
    )
    show_figures({"the choice, of each row by the others": values, "± s.e.": of_values})
