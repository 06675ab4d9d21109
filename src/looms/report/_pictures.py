"""Displays as pictures in a page: SVG with the colours and fonts of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from looms._optional import require
from looms._typing import Array
from looms.assessment._result import Assessment
from looms.report._candidates import CandidatesDisplay
from looms.report._case_deletion import CaseDeletionDisplay
from looms.report._curves import PrecisionRecallDisplay, RocDisplay
from looms.report._facts import Facts
from looms.report._history import CriterionHistoryDisplay
from looms.report._model import Model
from looms.report._optimism import OptimismDisplay
from looms.report._reliability import ReliabilityDisplay, curves_of
from looms.report._residuals import ResidualsDisplay
from looms.report._search_path import SearchPathDisplay

#: Colours that stand for variables of the page's style sheet; in data they do not occur.
_INK = "#010203"
_CYCLE = tuple(f"#0102{16 + k:02x}" for k in range(10))
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "looms",
    "font.size": 9.0,
    "font.family": "DejaVu Sans",
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "axes.linewidth": 0.6,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.parse_math": True,
}
_WIDTH, _HEIGHT, _BAR = 4.6, 3.3, 0.24  # inches
#: Samples drawn in one picture.
_MOST_POINTS = 1200


@dataclass(frozen=True)
class Picture:
    """A picture of a report.

    Attributes
    ----------
    name : key by which a template finds it.
    svg : an svg element, safe to put into a page: matplotlib has escaped all text in it.
    caption : what it shows.
    alt : what is to be seen in it, for those who do not see it.
    """

    name: str
    svg: str
    caption: str
    alt: str


def pictures(facts: Facts, found: dict[str, Any]) -> dict[str, Picture]:
    """The pictures of a report by name.

    Parameters
    ----------
    facts : what was computed of the machine.
    found : the dict made of it.
    """
    estimator, model = facts.estimator, facts.model
    drawn = [*_of_search(estimator, model, found), *_of_figures(facts, found)]
    drawn += _of_samples(facts, found)
    outer = found["assessment"]
    if facts.assessment is not None and outer["scores"][0]["loo"] is not None:
        drawn.append(_of_optimism(facts.assessment, found))
    return {picture.name: picture for picture in drawn}


def as_svg(name: str, display: Any, *, height: float = _HEIGHT, **options: Any) -> str:
    """A display drawn on nothing, in the variables of the page's style sheet.

    Parameters
    ----------
    name : letters, unique in the page.
    display : what has a ``plot`` method.
    height : inches; the width is fixed.
    **options : for ``plot``.
    """
    matplotlib = require("matplotlib", "A report", "report")
    figures = require("matplotlib.figure", "A report", "report")
    cycle = require("cycler", "A report", "report").cycler(color=_CYCLE)
    file = io.StringIO()
    with (
        matplotlib.rc_context({**_STYLE, "axes.prop_cycle": cycle}),
        warnings.catch_warnings(),
    ):
        # The browser has glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = figures.Figure(figsize=(_WIDTH, height), layout="constrained")
        display.plot(figure.subplots(), **options)
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _for_page(file.getvalue(), name)


def _for_page(svg: str, name: str) -> str:
    """Only the svg element: no size but its proportions, no metadata, colours as variables."""
    svg = svg[svg.index("<svg") :]
    for left_out in ("<metadata>.*?</metadata>", "<style .*?</style>", "<!--.*?-->"):
        svg = re.sub(left_out, "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*</defs>", "", svg)
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0]
    opening = f'<svg viewBox="0 0 {width} {height}" aria-hidden="true" focusable="false">'
    svg = re.sub(r"<svg\b[^>]*>", opening, svg, count=1)
    # In tags only: text between them is the user's and stays.
    return re.sub(r"<[^>]+>", lambda tag: _tag_for_page(tag[0], name), svg)


def _tag_for_page(tag: str, name: str) -> str:
    # Several pictures share the page: what one defines, another may not mean.
    tag = re.sub(r'\sid="([^"]+)"', rf' id="{name}-\1"', tag)
    tag = re.sub(r'\s(?:xlink:)?href="#([^"]+)"', rf' href="#{name}-\1"', tag)
    tag = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", tag)
    for k, colour in enumerate(_CYCLE):
        tag = tag.replace(colour, f"var(--c{k})")
    return tag.replace(_INK, "currentColor")


def _of_search(estimator: Any, model: Model, found: dict[str, Any]) -> Iterator[Picture]:
    if found["chosen"]["outcome"] is None:
        return
    if found["n_candidates"] > 1:
        display = CandidatesDisplay.compute(estimator)
        best, worst = np.nanmin(display.score), np.max(display.score[np.isfinite(display.score)])
        yield Picture(
            "candidates",
            as_svg("ca", display, height=0.9 + _BAR * min(20, len(display.names))),
            f"Candidates by {display.score_name}; the one taken is marked.",
            f"Dot plot of {len(display.names)} candidates; scores from {best:.4g} "
            f"({display.names[int(display.score.argmin())]}) to {worst:.4g}.",
        )
    path = SearchPathDisplay.compute(estimator)
    yield Picture("path", as_svg("pa", path), _path_caption(path, model), _path_alt(path))
    history = CriterionHistoryDisplay.compute(estimator)
    n = len(history.value)
    yield Picture(
        "history",
        as_svg("hi", history),
        f"The criterion at each of {n} evaluations, and the best so far in each stage.",
        f"Line plot of {history.criterion} falling from {history.value[0]:.4g} at the first of "
        f"{n} evaluations to {history.value[np.isfinite(history.value)][-1]:.4g} at the last.",
    )


def _path_caption(path: SearchPathDisplay, model: Model) -> str:
    n = int((model.loo.sample_weight > 0).sum())
    p = model.machine.kernel_.theta.size + 1
    slice_of = f", a slice of the {p} hyper-parameters through the optimum" if p > 2 else ""
    key = "" if len(path.names) == 1 else f" (the fainter the lower{slice_of})"
    if path.n_surface >= n:
        return f"The criterion around the search{key}, the points evaluated, and the one taken."
    return (
        f"The points evaluated and the one taken, over the criterion of {path.n_surface} of the "
        f"{n} samples{key}. The search itself ended on all samples, "
        "where the optimum may lie elsewhere."
    )


def _path_alt(path: SearchPathDisplay) -> str:
    ends = ", ".join(
        f"log₂ {name} from {start:.3g} to {end:.3g}"
        for name, start, end in zip(path.names, path.path[0], path.best, strict=True)
    )
    return f"Path of {len(path.path)} evaluations over contours of {path.criterion}: {ends}."


def _of_figures(facts: Facts, found: dict[str, Any]) -> Iterator[Picture]:
    estimator, model = facts.estimator, facts.model
    if not model.classification:
        residuals = ResidualsDisplay.compute(estimator)
        figures = {f["key"]: f["value"] for f in found["loo"]["figures"]}
        interval = residuals.interval
        half = 0.0 if interval is None else float(np.ptp(interval[0])) / 2
        yield Picture(
            "residuals",
            as_svg("re", residuals, max_points=_MOST_POINTS),
            "Targets against leave-one-out outputs, and the band that holds 90 % of the "
            f"residuals (± {half:.3g}); new samples need a wider one."
            + _first_target(model)
            + _part(len(residuals.target)),
            f"Scatter plot along the diagonal, root mean square error {figures['rmse']:.4g}, "
            f"R² {figures['r2'] if figures['r2'] is not None else float('nan'):.3g}.",
        )
        return
    roc = RocDisplay.compute(estimator)
    areas = ", ".join(f"{label} {area:.3f}" for label, area in roc.areas.items())
    against = " of each class against the rest" if model.loo.y.ndim == 2 else ""
    yield Picture(
        "roc",
        as_svg("ro", roc),
        f"Receiver operating characteristic of the leave-one-out outputs{against}.",
        f"ROC curves; areas under them: {areas}." + _marked(roc.chosen, "rates"),
    )
    curve = PrecisionRecallDisplay.compute(estimator)
    areas = ", ".join(f"{label} {area:.3f}" for label, area in curve.areas.items())
    yield Picture(
        "precision",
        as_svg("pr", curve),
        f"Precision against recall of the leave-one-out outputs{against}.",
        f"Precision–recall curves; average precision: {areas}." + _marked(curve.chosen, "recall"),
    )
    if facts.probabilities is not None:
        yield _of_probabilities(model, facts.probabilities, against)


def _of_probabilities(model: Model, probabilities: Array, against: str) -> Picture:
    machine: Any = model.machine
    curves = curves_of(model, probabilities)
    display = ReliabilityDisplay(curves=curves, calibration=machine.calibration)
    errors = ", ".join(
        f"{label} {curve.calibration_error:.3f}" for label, curve in display.curves.items()
    )
    return Picture(
        "reliability",
        as_svg("rl", display),
        f"Reliability of probabilities by {display.calibration} calibration of the leave-one-out "
        f"outputs{against}: on the line they are right.",
        f"Reliability curves; mean distance from the diagonal: {errors}.",
    )


def _marked(chosen: tuple[float, float] | None, what: str) -> str:
    if chosen is None:
        return ""
    x, y = chosen
    if what == "rates":
        return f" At the threshold chosen: false positive rate {x:.3f}, true positive rate {y:.3f}."
    return f" At the threshold chosen: recall {x:.3f}, precision {y:.3f}."


def _first_target(model: Model) -> str:
    return " The first of the targets." if model.loo.y.ndim == 2 else ""


def _part(n: int) -> str:
    return f" {_MOST_POINTS} of the {n} samples are drawn." if n > _MOST_POINTS else ""


def _of_samples(facts: Facts, found: dict[str, Any]) -> Iterator[Picture]:
    display = CaseDeletionDisplay.compute(facts.estimator, kind="residual", names=facts.names)
    first = ", ".join(row["name"] for row in found["samples"]["rows"][:6])
    n = len(display.value)
    yield Picture(
        "samples",
        as_svg("sa", display, max_points=_MOST_POINTS),
        f"How far each sample is from what the machine without it says.{_part(n)}",
        f"Index plot of {n} samples; the largest residuals are those of {first}.",
    )
    if facts.deletion is not None:
        value = facts.deletion.rms_change
        moving = CaseDeletionDisplay(
            value=value, names=facts.names, value_name="r.m.s. change of other outputs"
        )
        largest = np.argsort(-value, kind="stable")[:6]
        yield Picture(
            "influence",
            as_svg("in", moving, max_points=_MOST_POINTS),
            "By how much leaving out each sample changes the outputs at the others, exactly, "
            f"hyper-parameters held.{_part(n)}",
            f"Index plot of {n} samples; the largest changes are those of "
            f"{', '.join(facts.names[k] for k in largest)}.",
        )


def _of_optimism(assessment: Assessment, found: dict[str, Any]) -> Picture:
    key = found["headline"]["key"]
    display = OptimismDisplay.compute(assessment, score=key)
    return Picture(
        "optimism",
        as_svg("op", display),
        "A dot for each outer split: what leave-one-out said, and what the test part gave. On "
        "the line both agree.",
        f"Scatter plot of {len(display.loo)} splits; mean {key} {display.loo.mean():.4g} by "
        f"leave-one-out, {display.outer.mean():.4g} on test parts. {assessment.optimism_text(key)}",
    )
