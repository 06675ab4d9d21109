"""Pictures of a report: displays as SVG images, once for light and once for dark pages."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from looms._optional import require
from looms.report.displays.base import Display
from looms.report.displays.curves import PrecisionRecallDisplay, RocDisplay
from looms.report.displays.optimism import OptimismDisplay
from looms.report.displays.reliability import ReliabilityDisplay
from looms.report.displays.samples import KINDS, CaseDeletionDisplay, ResidualsDisplay
from looms.report.displays.search import (
    CandidatesDisplay,
    CriterionHistoryDisplay,
    SearchPathDisplay,
)
from looms.report.facts import Facts

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "looms",
    "font.size": 9.0,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # then the reader's own sans-serif
    "axes.linewidth": 0.6,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_WIDTH, _HEIGHT, _BAR = 4.6, 3.3, 0.24  # inches
#: Samples drawn in one picture.
_MOST_POINTS = 1200


@dataclass(frozen=True)
class Picture:
    """A picture of a report.

    Attributes
    ----------
    name : key by which a template finds it.
    light, dark : images for light and for dark pages, as addresses that hold them.
    caption : its title and how to read it.
    alt : its content in words, for those who do not see it.
    """

    name: str
    light: str
    dark: str
    caption: str
    alt: str


def pictures(facts: Facts, report: dict[str, Any]) -> dict[str, Picture]:
    """Pictures of a report by name.

    Parameters
    ----------
    facts : what was computed of the machine.
    report : the dict made of it.
    """
    drawn = [*_of_search(facts, report), *_of_outputs(facts, report), *_of_samples(facts, report)]
    return {picture.name: picture for picture in drawn}


def picture(
    name: str, display: Display, caption: str, alt: str, *, height: float = _HEIGHT, **options: Any
) -> Picture:
    """A display drawn in the colors of the page, light and dark; ``options`` for ``plot``."""
    light, dark = (_image(display, colors, height, options) for colors in palettes())
    return Picture(name, light, dark, caption, alt)


@cache
def palettes() -> list[dict[str, str]]:
    """Colors of the page's style sheet by their names there, for light and for dark."""
    sheet = files("looms.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    light, dark, *_ = sheet.split("prefers-color-scheme: dark")
    return [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in (light, dark)]


def _image(display: Display, colors: dict[str, str], height: float, options: dict[str, Any]) -> str:
    matplotlib = require("matplotlib", "A report", "report")
    figures = require("matplotlib.figure", "A report", "report")
    cycler = require("cycler", "A report", "report").cycler
    cycle = cycler(color=[colors[f"c{k}"] for k in range(10)])
    style = {**_STYLE, **dict.fromkeys(_INKED, colors["ink"]), "axes.prop_cycle": cycle}
    file = io.BytesIO()
    with matplotlib.rc_context(style), warnings.catch_warnings():
        # The browser has glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = figures.Figure(figsize=(_WIDTH, height), layout="constrained")
        display.plot(figure.subplots(), **options)
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()


def _of_search(facts: Facts, report: dict[str, Any]) -> Iterator[Picture]:
    if report["chosen"]["outcome"] is None:
        return
    estimator, model = facts.estimator, facts.model
    if report["n_candidates"] > 1:
        candidates = CandidatesDisplay.compute(estimator)
        score, names = candidates.score, candidates.names
        yield picture(
            "candidates",
            candidates,
            f"Candidates by {candidates.score_name}; the one taken is marked.",
            f"Dot plot of {len(names)} candidates; scores from {np.nanmin(score):.4g} "
            f"({names[int(score.argmin())]}) to {np.max(score[np.isfinite(score)]):.4g}.",
            height=0.9 + _BAR * min(20, len(names)),
        )
    path = SearchPathDisplay.compute(estimator)
    n, p = int(model.seen.sum()), model.machine.kernel_.theta.size + 1
    slice_of = f", a slice of the {p} hyper-parameters through the optimum" if p > 2 else ""
    key = "" if len(path.names) == 1 else f" (the fainter the lower{slice_of})"
    if path.n_surface >= n:
        caption = f"The criterion around the search{key}, the points evaluated, and the one taken."
    else:
        caption = (
            f"The points evaluated and the one taken, over the criterion of {path.n_surface} of "
            f"the {n} samples{key}. The search itself ended on all samples, where the optimum may "
            "lie elsewhere."
        )
    ends = ", ".join(
        f"log₂ {name} from {start:.3g} to {end:.3g}"
        for name, start, end in zip(path.names, path.path[0], path.best, strict=True)
    )
    alt = f"Path of {len(path.path)} evaluations over contours of {path.criterion}: {ends}."
    yield picture("path", path, caption, alt)
    history = CriterionHistoryDisplay.compute(estimator)
    n, value = len(history.value), history.value
    yield picture(
        "history",
        history,
        f"The criterion at each of {n} evaluations, and the best so far in each stage.",
        f"Line plot of {history.criterion} falling from {value[0]:.4g} at the first of {n} "
        f"evaluations to {value[np.isfinite(value)][-1]:.4g} at the last.",
    )


def _of_outputs(facts: Facts, report: dict[str, Any]) -> Iterator[Picture]:
    """Figures of merit of leave-one-out outputs, and of outer splits."""
    estimator, model = facts.estimator, facts.model
    several = model.loo.y.ndim == 2
    if facts.assessment is not None and report["assessment"]["scores"][0]["loo"] is not None:
        key = report["headline"]["key"]
        optimism = OptimismDisplay.compute(facts.assessment, score=key)
        yield picture(
            "optimism",
            optimism,
            "A dot for each outer split: the leave-one-out figure against that of the test part. "
            "On the line both agree.",
            f"Scatter plot of {len(optimism.loo)} splits; mean {key} {optimism.loo.mean():.4g} by "
            f"leave-one-out, {optimism.outer.mean():.4g} on test parts. "
            f"{facts.assessment.optimism_text(key)}",
        )
    if not model.classification:
        residuals = ResidualsDisplay.compute(estimator)
        figures = {f["key"]: f["value"] for f in report["loo"]["figures"]}
        half = 0.0 if residuals.interval is None else float(np.ptp(residuals.interval[0])) / 2
        r2 = float("nan") if figures["r2"] is None else figures["r2"]
        yield picture(
            "residuals",
            residuals,
            "Targets against leave-one-out outputs, and the band that holds 90 % of the "
            f"residuals (± {half:.3g}); new samples need a wider one."
            + (" The first of the targets." if several else "")
            + _part(len(residuals.target)),
            f"Scatter plot along the diagonal, root mean square error {figures['rmse']:.4g}, "
            f"R² {r2:.3g}.",
            max_points=_MOST_POINTS,
        )
        return
    against = " of each class against the rest" if several else ""
    roc, curve = RocDisplay.compute(estimator), PrecisionRecallDisplay.compute(estimator)
    yield picture(
        "roc",
        roc,
        f"Receiver operating characteristic of the leave-one-out outputs{against}.",
        f"ROC curves; areas under them: {_by_class(roc.areas)}."
        + _at_threshold(roc.chosen, "false positive rate", "true positive rate"),
    )
    yield picture(
        "precision",
        curve,
        f"Precision against recall of the leave-one-out outputs{against}.",
        f"Precision–recall curves; average precision: {_by_class(curve.areas)}."
        + _at_threshold(curve.chosen, "recall", "precision"),
    )
    if facts.probabilities is None:
        return
    method = getattr(model.machine, "calibration", "")
    reliability = ReliabilityDisplay.of_probabilities(model, facts.probabilities, method)
    errors = {label: curve.calibration_error for label, curve in reliability.curves.items()}
    yield picture(
        "reliability",
        reliability,
        f"Reliability of probabilities by {method} calibration of the leave-one-out "
        f"outputs{against}: on the line they are right.",
        f"Reliability curves; mean distance from the diagonal: {_by_class(errors)}.",
    )


def _by_class(values: dict[str, float]) -> str:
    return ", ".join(f"{label} {value:.3f}" for label, value in values.items())


def _at_threshold(chosen: tuple[float, float] | None, *names: str) -> str:
    if chosen is None:
        return ""
    rates = ", ".join(f"{name} {rate:.3f}" for name, rate in zip(names, chosen, strict=True))
    return f" At the threshold chosen: {rates}."


def _part(n: int) -> str:
    return f" {_MOST_POINTS} of the {n} samples are drawn." if n > _MOST_POINTS else ""


def _of_samples(facts: Facts, report: dict[str, Any]) -> Iterator[Picture]:
    residuals = CaseDeletionDisplay.compute(facts.estimator, kind="residual", names=facts.names)
    first = ", ".join(row["name"] for row in report["samples"]["rows"][:6])
    n = len(residuals.value)
    yield picture(
        "samples",
        residuals,
        f"Distance of each sample from the output of the machine without it.{_part(n)}",
        f"Index plot of {n} samples; the largest residuals are those of {first}.",
        max_points=_MOST_POINTS,
    )
    if facts.deletion is None:
        return
    value = facts.deletion.rms_change
    largest = ", ".join(facts.names[k] for k in np.argsort(-value, kind="stable")[:6])
    yield picture(
        "influence",
        CaseDeletionDisplay(value=value, names=facts.names, value_name=KINDS["rms_change"]),
        "Change of the outputs at the other samples when each one is left out, exactly, "
        f"hyper-parameters held.{_part(n)}",
        f"Index plot of {n} samples; the largest changes are those of {largest}.",
        max_points=_MOST_POINTS,
    )
