"""A report as one self-contained HTML page, with its pictures."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from looms._files import write_whole
from looms._optional import require
from looms.assessment._result import Assessment
from looms.report.displays.base import Display
from looms.report.displays.classes import (
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
)
from looms.report.displays.errors import OptimismDisplay
from looms.report.displays.samples import KINDS, CaseDeletionDisplay, ResidualsDisplay
from looms.report.displays.search import (
    CandidatesDisplay,
    CriterionHistoryDisplay,
    SearchPathDisplay,
)
from looms.report.facts import Facts
from looms.report.model import Model
from looms.report.text import (
    certified,
    clean,
    count,
    day,
    escaped,
    figure,
    number,
    percent,
    plus_minus,
    sentence,
)

#: Stands for the color of the page's text, #0000c0 to #0000c9 for c0 to c9 of its style sheet.
_INK = "#0000ff"
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 9.0,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # then the reader's own sans-serif
    "axes.linewidth": 0.6,
    "axes.facecolor": "none",
    "axes.prop_cycle": f"cycler(color={[f'#0000c{k}' for k in range(10)]})",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK
    ),
}
_WIDTH, _HEIGHT, _BAR = 4.6, 3.3, 0.24  # inches
#: Samples drawn in one picture.
_MOST_POINTS = 1200


def write_html(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write a report on a fitted machine: a single HTML page that loads nothing else.

    It shows the parameters, the choice and its reason, figures of merit, the features and samples
    that matter, and cautions. It is light or dark like the reader's device, and suits screens of
    any size and paper.

    Parameters
    ----------
    estimator : estimator
        A fitted looms machine, or a pipeline that ends in one.
    path : path
        The file to write; an existing one is replaced, whole or not at all.
    X, y, groups, assessment, title, notes : see `summary`
        The outer estimate of an assessment becomes the headline, unless the standard error of
        nested cross-validation of all samples is smaller.

    Raises
    ------
    TypeError, ValueError
        As for `summary`.
    ImportError
        If jinja2 or matplotlib is not installed.
    OSError
        If the file cannot be written; an existing one stays as it is.

    See Also
    --------
    summary : The contents of the page as a dict.

    Notes
    -----
    It takes some seconds beyond the fit: about 4·10¹⁰ flops for the surface of the criterion and
    the importance of the columns, whatever the number of samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifierCV, report
    >>> data = load_iris(as_frame=True)
    >>> model = LSSVMClassifierCV().fit(data.data, data.target)
    >>> report.write_html(model, "iris.html", y=data.target)              # doctest: +SKIP
    """
    write_page(Facts(estimator, X, y, groups, assessment, title, notes), path)


def write_page(facts: Facts, path: str | os.PathLike[str]) -> None:
    """Write the page of these facts, whole or not at all."""
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file")
    if not place.parent.is_dir():
        raise FileNotFoundError(
            f"{path}: there is no folder {place.parent}; make it, or name another"
        )
    write_whole(place, render(facts).encode("utf-8", errors="replace"))


def render(facts: Facts) -> str:
    """The page as text."""
    script = _text("report.js")
    # By its hash the page's content security policy knows its own script.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return rendered(
        "report.html",
        facts,
        pictures=_of_search(facts) | _of_outputs(facts) | _of_samples(facts),
        style=_text("report.css"),
        script=script,
        script_hash=f"sha256-{digest}",
    )


def rendered(template: str, facts: Facts, **more: Any) -> str:
    """A template filled with the summary, and with the functions of `looms.report.text`."""
    page: str = _template(template).render(report=facts.summary, **more)
    return page


@cache
def _template(name: str) -> Any:
    """A template as code, compiled once."""
    jinja2 = require("jinja2", "A report", "report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (certified, clean, count, day, escaped, figure, number, percent, plus_minus, sentence)
    environment.filters |= {function.__name__: function for function in filters}
    return environment.get_template(name)


def _text(name: str) -> str:
    return files("looms.report").joinpath("templates", name).read_text(encoding="utf-8")


class Picture(NamedTuple):
    """An SVG element in the colors of the page, its caption, and its content in words."""

    svg: str
    caption: str
    alt: str


def picture(
    display: Display, caption: str, alt: str, *, height: float = _HEIGHT, **options: Any
) -> Picture:
    """A display drawn for the page; ``options`` for ``plot``."""
    matplotlib = require("matplotlib", "A report", "report")
    figures = require("matplotlib.figure", "A report", "report")
    file = io.StringIO()
    # Salted, for the elements of all pictures share a page, and their names must differ.
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": caption}), warnings.catch_warnings():
        # The browser has glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = figures.Figure(figsize=(_WIDTH, height), layout="constrained")
        display.plot(figure.subplots(), **options)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    svg = file.getvalue()
    svg = re.sub(r"<defs>\s*<style.*</style>\s*</defs>\s*", "", svg[svg.index("<svg") :])
    return Picture(re.sub("<[^<>]+>", _tag_of_page, svg), caption, alt)


def _tag_of_page(match: re.Match[str]) -> str:
    """A tag with colors of the page, and without an id that nothing refers to."""
    tag = re.sub(r"#0000(c\d)", r"var(--\1)", match[0]).replace(_INK, "var(--ink)")
    return re.sub(r' id="[\w.]+_\d+"', "", tag)


def _of_search(facts: Facts) -> dict[str, Picture]:
    estimator, model, drawn = facts.estimator, facts.model, {}
    if model.tuning is None:
        return {}
    if len(model.candidates) > 1:
        candidates = CandidatesDisplay.compute(estimator)
        score, names = candidates.score, candidates.names
        drawn["candidates"] = picture(
            candidates,
            f"Candidates by {candidates.score_name}; the "
            f"{'largest of the stack' if model.stacked else 'one taken'} is marked.",
            f"Dot plot of {len(names)} candidates; scores from {np.nanmin(score):.4g} "
            f"({names[int(score.argmin())]}) to {np.max(score[np.isfinite(score)]):.4g}.",
            height=0.9 + _BAR * min(20, len(names)),
        )
    of_largest = " Shown for the largest machine of the stack." if model.stacked else ""
    if model.rows is not None:
        drawn["path"] = _search_path(facts, of_largest)
    history = CriterionHistoryDisplay.compute(estimator)
    n, value = len(history.value), history.value
    if n > 1:
        drawn["history"] = picture(
            history,
            f"The criterion at each of {n} evaluations, and the best so far in each stage."
            f"{of_largest}",
            f"Line plot of {history.criterion} falling from {value[0]:.4g} at the first of {n} "
            f"evaluations to {value[np.isfinite(value)][-1]:.4g} at the last.",
        )
    return drawn


def _search_path(facts: Facts, of_largest: str) -> Picture:
    path, model = SearchPathDisplay.compute(facts.estimator), facts.model
    n, p = model.n_with_weight, model.machine.kernel_.theta.size + 1
    slice_of = f", a slice of the {p} hyper-parameters through the optimum" if p > 2 else ""
    key = "" if len(path.names) == 1 else f" (fainter is lower{slice_of})"
    if path.n_surface >= n and not model.n_landmarks:
        caption = f"The criterion around the search{key}, the points evaluated, and the one taken."
    else:
        caption = (
            f"The points evaluated and the one taken, over the criterion of {path.n_surface} of "
            f"the {n} samples{key}{', by the whole kernel matrix' if model.n_landmarks else ''}. "
            "The search itself ended on all samples, where the optimum may lie elsewhere."
        )
    ends = ", ".join(
        f"log₂ {name} from {start:.3g} to {end:.3g}"
        for name, start, end in zip(path.names, path.path[0], path.best, strict=True)
    )
    alt = f"Path of {len(path.path)} evaluations over contours of {path.criterion}: {ends}."
    return picture(path, f"{caption}{of_largest}", alt)


def _of_outputs(facts: Facts) -> dict[str, Picture]:
    """Curves or residuals of held-out outputs, and figures of outer splits."""
    model, report, drawn = facts.model, facts.summary, {}
    if facts.assessment is not None and report["assessment"]["scores"][0]["loo"] is not None:
        drawn["optimism"] = _optimism(facts.assessment, report["headline"]["key"], model)
    outputs = f"{model.method} outputs"
    if model.nested is not None:
        outputs = f"outputs of machines chosen without the {model.unit}"
    if model.classification:
        return drawn | _curves(facts, outputs)
    figures = {f["key"]: f["value"] for f in report["loo"]["figures"]}
    return drawn | {"residuals": _residuals(facts, outputs, figures)}


def _optimism(assessment: Assessment, key: str, model: Model) -> Picture:
    optimism = OptimismDisplay.compute(assessment, score=key)
    return picture(
        optimism,
        f"A dot for each outer split: the {model.candidates_by} figure against that of the "
        "test part. On the line, both agree.",
        f"Scatter plot of {len(optimism.loo)} splits; mean {key} {optimism.loo.mean():.4g} by "
        f"{model.candidates_by}, {optimism.outer.mean():.4g} on test parts. "
        f"{assessment.optimism_text(key, model.candidates_by)}",
    )


def _residuals(facts: Facts, outputs: str, figures: dict[str, float | None]) -> Picture:
    residuals = ResidualsDisplay.compute(facts.estimator)
    half = np.ptp(residuals.interval[0]) / 2
    r2 = float("nan") if figures["r2"] is None else figures["r2"]
    return picture(
        residuals,
        f"Targets against {outputs}, and the band that contains 90 % of the "
        f"residuals (± {half:.3g}); new samples need a wider one."
        + (" Only the first target is shown." if facts.model.held_out.y.ndim == 2 else "")
        + _part(len(residuals.target)),
        f"Scatter plot along the diagonal, root mean square error {figures['rmse']:.4g}, "
        f"R² {r2:.3g}.",
        max_points=_MOST_POINTS,
    )


def _curves(facts: Facts, outputs: str) -> dict[str, Picture]:
    several = facts.model.held_out.y.ndim == 2
    of_classes = " of each class against the rest, by the" if several else " of the"
    # By the machine of the facts, which knows these outputs.
    machine = facts.model.machine
    roc, curve = (each.compute(machine) for each in (RocDisplay, PrecisionRecallDisplay))
    drawn = {
        "roc": picture(
            roc,
            f"Receiver operating characteristic{of_classes} {outputs}. Each sample is placed at "
            "its mean output over the machines that have not seen it; the area in the table "
            "compares samples under one such machine.",
            f"ROC curves; areas under them: {_by_class(roc.areas)}."
            + _at_threshold(roc.chosen, "false positive rate", "true positive rate"),
        ),
        "precision": picture(
            curve,
            f"Precision against recall{of_classes} {outputs}.",
            f"Precision–recall curves; average precision: {_by_class(curve.areas)}."
            + _at_threshold(curve.chosen, "recall", "precision"),
        ),
    }
    if facts.probabilities is not None:
        reliability = ReliabilityDisplay.compute(facts.estimator, probabilities=facts.probabilities)
        errors = {label: curve.calibration_error for label, curve in reliability.curves.items()}
        drawn["reliability"] = picture(
            reliability,
            f"Reliability of probabilities{' of each class' if several else ''}, by "
            f"{reliability.calibration} calibration of the {outputs}. On the line, they are right.",
            f"Reliability curves; mean distance from the diagonal: {_by_class(errors)}.",
        )
    return drawn


def _by_class(values: dict[str, float]) -> str:
    return ", ".join(f"{label} {value:.3f}" for label, value in values.items())


def _at_threshold(chosen: tuple[float, float] | None, *names: str) -> str:
    if chosen is None:
        return ""
    rates = ", ".join(f"{name} {rate:.3f}" for name, rate in zip(names, chosen, strict=True))
    return f" At the threshold chosen: {rates}."


def _part(n: int, unit: str = "sample") -> str:
    return f" {_MOST_POINTS} of the {n} {unit}s are drawn." if n > _MOST_POINTS else ""


def _of_samples(facts: Facts) -> dict[str, Picture]:
    residuals = CaseDeletionDisplay.compute(facts.estimator, kind="residual", names=facts.names)
    first = ", ".join(row["name"] for row in facts.summary["samples"]["rows"][:6])
    n = len(residuals.value)
    drawn = {
        "samples": picture(
            residuals,
            f"Distance of each target from the output of the machine without the sample.{_part(n)}",
            f"Index plot of {n} samples; the largest residuals are those of {first}.",
            max_points=_MOST_POINTS,
        )
    }
    if facts.deletion is not None:
        value, unit = facts.deletion.rms_change, facts.deletion.unit
        names = [clean(name) for name in facts.deletion.labels.tolist()]
        largest = ", ".join(names[k] for k in np.argsort(-value, kind="stable")[:6])
        drawn["influence"] = picture(
            CaseDeletionDisplay(
                value=value, names=names, value_name=KINDS["rms_change"], unit=unit
            ),
            f"Exact change of the outputs at the other samples when each {unit} is left out, with "
            f"the same hyper-parameters.{_part(len(value), unit)}",
            f"Index plot of {len(value)} {unit}s; the largest changes are those of {largest}.",
            max_points=_MOST_POINTS,
        )
    return drawn
