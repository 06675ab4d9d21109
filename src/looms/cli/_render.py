"""Results as tables on stdout; the numbers come from elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from looms._classes import class_indices
from looms.cli._figures import confusion, loo_figures, threshold_figures
from looms.cli._say import count
from looms.cli._text import visible
from looms.cli._threshold import loss_name

#: Of a kernel with a scale for every feature, so many are shown, the largest.
MOST_SCALES = 8
#: Of the settings of a support vector machine so many are shown, the best.
MOST_POINTS = 8
#: Width of a terminal below which a table says less.
NARROW = 80
#: What a column of figures shows where it is not called as the option is.
_HEADS = {"log_likelihood": "deviance"}
#: Classes up to which their confusion is shown.
MOST_CONFUSED = 10


class _Visible(Console):
    """A console that shows names as they are: what a terminal would obey comes as escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        """A text, such as a cell of a table, on one line."""
        return super().render_str(visible(text), **options)


def console() -> Console:
    """Standard output; wide enough for all columns where it is no terminal."""
    terminal = sys.stdout.isatty()
    return _Visible(
        width=None if terminal else 120,
        soft_wrap=not terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )


def show_asked(metadata: Mapping[str, Any]) -> None:
    """What the model was fitted to, and what was asked for."""
    asked = metadata["asked"]
    wanted = ", ".join(f"{name}={_plain(value)}" for name, value in asked.items() if value)
    out = console()
    target = f" of {metadata['target']!r}" if metadata["target"] else ""
    out.print(
        f"{metadata['task'].capitalize()}{target}, {metadata['file']}: "
        f"{count(metadata['n_rows'], 'row')}, {count(metadata['n_features'], 'feature')}"
    )
    out.print(f"Asked for: {wanted}")
    out.print(
        f"Fitted {metadata['date']} in {metadata['seconds']:.1f} s by looms "
        f"{metadata['looms_version']}, scikit-learn {metadata['sklearn_version']}"
    )


def show_candidates(machine: Any, metadata: Mapping[str, Any]) -> None:
    """Every kernel under every criterion, and which was chosen."""
    regression = metadata["task"] == "regression"
    asked = metadata["asked"]
    table = _table("Candidates")
    for name in ("", "kernel", "criterion"):
        table.add_column(name)
    score = "LOO RMSE" if regression else f"LOO {loss_name(asked['threshold'])}"
    for name in ("value ± s.e.", score):
        table.add_column(name, justify="right")
    wide = console().width >= NARROW
    if wide:
        table.add_column("evals", justify="right")
        table.add_column("s", justify="right")
        table.add_column("stopped")
    names = product(asked["kernels"], asked["criteria"])
    candidates = machine.candidates_
    # Of equally good candidates the first was chosen.
    chosen = min(range(len(candidates)), key=lambda k: candidates[k].score)
    for k, ((kernel, criterion), candidate) in enumerate(zip(names, candidates, strict=True)):
        search = (
            str(candidate.n_evaluations),
            f"{candidate.seconds:.2f}",
            candidate.outcome.name.lower().replace("_", " "),
        )
        table.add_row(
            "→" if k == chosen else "",
            kernel,
            criterion,
            f"{candidate.value:.4g} ± {candidate.standard_error:.2g}",
            f"{np.sqrt(candidate.score) if regression else candidate.score:.4g}",
            *(search if wide else ()),
        )
    console().print(table)


def show_choice(model: Any, metadata: Mapping[str, Any]) -> None:
    """Candidates, the hyper-parameters of the best one, and its leave-one-out figures."""
    machine = model[-1]
    if hasattr(machine, "support_vectors_"):
        _show_points(machine)
        _show_threshold(machine, metadata)
        return
    show_candidates(machine, metadata)
    out = console()
    values = machine.kernel_.hyperparameters
    scales = [h for h in values if re.fullmatch(r".*\[\d+\]", h.name)]
    shown = [f"{h.name} = {h.value:.4g}" for h in values if h not in scales]
    shown.append(f"mu = {machine.mu_:.4g}")
    if metadata["task"] == "classification" and machine.loo_.y.ndim == 1:
        one_side = abs(machine.threshold_) > 2**9 * np.abs(machine.loo_.outputs).max()
        shown.append(
            "no output has probability 1/2" if one_side else f"threshold = {machine.threshold_:.4g}"
        )
    out.print(f"Chosen: {', '.join(shown)}")
    if scales:
        out.print(_largest_scales(scales, model))
    threshold = getattr(machine, "threshold_", 0.0)
    show_figures({"leave-one-out": loo_figures(machine.loo_, metadata["task"], threshold)})
    _show_decisions(machine, metadata)
    _show_threshold(machine, metadata)


def _show_threshold(machine: Any, metadata: Mapping[str, Any]) -> None:
    """Which class is positive, and the figures that a rule asked for."""
    rule = metadata["asked"].get("threshold")
    if rule is None or rule == "0":
        return
    found = threshold_figures(machine.loo_, machine.threshold_, rule)
    shown = ", ".join(f"{name} {_figure(value)}" for name, value in found.items())
    console().print(f"Leave-one-out at threshold {rule} (positive: {machine.classes_[1]}): {shown}")


def _show_points(machine: Any) -> None:
    """The best points of a search among support vector machines, the best one's figures."""
    results = machine.cv_results_
    names = list(dict.fromkeys(name for params in results["params"] for name in params))
    table = _table(f"Best of {len(results['params'])} settings")
    for name in ("", "kernel"):
        table.add_column(name)
    for name in (*names, machine.criterion, "support", "s"):
        table.add_column(_HEADS.get(name, name), justify="right")
    order = np.argsort(results["rank_loo_score"], kind="stable")
    for k in order[:MOST_POINTS]:
        params = results["params"][k]
        table.add_row(
            "→" if k == machine.best_index_ else "",
            results["kernel"][k],
            *(f"{params[name]:.4g}" if name in params else "" for name in names),
            f"{results['loo_score'][k]:.5g}",
            str(results["n_support"][k]),
            f"{results['seconds'][k]:.2f}",
        )
    console().print(table)
    chosen = [f"{n} = {v:.4g}" for n, v in results["params"][machine.best_index_].items()]
    if machine.loo_.y.ndim == 1:
        chosen.append(f"threshold = {machine.threshold_:.4g}")
    console().print(f"Chosen: {', '.join(chosen)}")
    figures = loo_figures(machine.loo_, "classification", machine.threshold_)
    show_figures({"leave-one-out": figures})
    _show_decisions(machine, {"task": "classification"})


def _show_decisions(machine: Any, metadata: Mapping[str, Any]) -> None:
    """Confusion of the leave-one-out decisions, of not too many classes."""
    if metadata["task"] == "regression" or len(machine.classes_) > MOST_CONFUSED:
        return
    truth = class_indices(machine.loo_.y)
    predicted = class_indices(machine.loo_.outputs, machine.threshold_)
    counts = confusion(truth, predicted, list(range(len(machine.classes_))))[1]
    show_confusion(machine.classes_.tolist(), counts, "Confusion, leave-one-out")


def show_figures(figures: Mapping[str, Mapping[str, float]]) -> None:
    """Figures of merit, a row each of what they are of; a dash where a row lacks one."""
    table = _table()
    table.add_column("")
    names = list(dict.fromkeys(name for values in figures.values() for name in values))
    for name in names:
        table.add_column(name, justify="right")
    for row, values in figures.items():
        table.add_row(row, *(_figure(values.get(name, np.nan)) for name in names))
    console().print(table)


def _figure(value: float) -> str:
    """Four decimals, which rates have, or four significant digits where these say more."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.4g}"


def show_confusion(
    labels: Sequence[Any], counts: Sequence[Sequence[int]], title: str = "Confusion"
) -> None:
    """How often each label (row) was predicted as each (column), and the share of either."""
    table = _table(title)
    table.add_column("true \\ predicted")
    for label in labels:
        table.add_column(str(label), justify="right")
    table.add_column("share", justify="right")
    total = np.sum(counts)
    for label, row in zip(labels, counts, strict=True):
        table.add_row(str(label), *map(str, row), f"{sum(row) / total:.1%}")
    predicted = (f"{sum(column) / total:.1%}" for column in zip(*counts, strict=True))
    table.add_row("share", *predicted, "")
    console().print(table)


def _table(title: str | None = None) -> Table:
    return Table(
        box=SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        collapse_padding=console().width < NARROW,
    )


def _largest_scales(scales: Sequence[Any], model: Any) -> str:
    """The features that matter most to a kernel with a scale for each."""
    names = model[:-1].get_feature_names_out()
    order = np.argsort([-h.value for h in scales])[:MOST_SCALES]
    largest = ", ".join(f"{_feature(names[k])} {scales[k].value:.3g}" for k in order)
    return f"Largest of {len(scales)} scales: {largest}"


def _feature(name: str) -> str:
    """Name of a column of the matrix without the transformer that made it."""
    kind, _, column = name.partition("__")
    if kind == "gaps":
        column = column.removeprefix("missingindicator_")
        return f"{column} is missing"
    if kind == "categories" and column.endswith("_nan"):
        return f"{column.removesuffix('_nan')} is missing"
    return column or name


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
