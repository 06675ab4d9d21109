"""A report as one self-contained HTML page, with its pictures, or as a model card."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from inspect import getmembers, isfunction
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looms._files import write_whole
from looms._optional import require
from looms.assessment._result import Assessment
from looms.report import text
from looms.report.displays.base import Display
from looms.report.displays.classes import DecisionCurveDisplay, PrecisionRecallDisplay, RocDisplay
from looms.report.displays.errors import OptimismDisplay
from looms.report.displays.samples import KINDS, CaseDeletionDisplay, ResidualsDisplay
from looms.report.displays.search import (
    CandidatesDisplay,
    CriterionHistoryDisplay,
    SearchPathDisplay,
)
from looms.report.facts import Facts
from looms.report.text import clean

if TYPE_CHECKING:
    from skops.card import Card

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
    notes: Sequence[str] | None = None,
) -> None:
    """Write a report on a fitted model: a single HTML page that loads nothing else.

    It shows the parameters, the selected model and the reason, scores, the features and samples
    that matter, and cautions. It is light or dark like the reader's device, and suits screens of
    any size and paper.

    Parameters
    ----------
    estimator : estimator
        A fitted looms model, or a pipeline that ends in one.
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
    the importance of the columns, whatever the number of samples, and their effects.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier, report
    >>> data = load_iris(as_frame=True)
    >>> model = KernelClassifier().fit(data.data, data.target)
    >>> report.write_html(model, "iris.html", y=data.target)              # doctest: +SKIP
    """
    write_page(Facts(estimator, X, y, groups, assessment, title, notes), path)


def write_page(facts: Facts, path: str | os.PathLike[str]) -> None:
    """Write the page of these facts, whole or not at all."""
    _write(path, partial(render, facts))


def write_check(values: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page of a `looms.report.check.TableCheck`, whole or not at all."""
    style = _text("report.css")
    _write(path, partial(_template("check.html").render, report=values, style=style))


def write_validation(
    values: Mapping[str, Any], displays: Mapping[str, Display], path: str | os.PathLike[str]
) -> None:
    """Write the page of a `looms.report.Validation`, whole or not at all."""

    def page() -> str:
        pictures = {name: picture(name, display) for name, display in displays.items()}
        more = {"displays": displays, "pictures": pictures, "style": _text("report.css")}
        return str(_template("validation.html").render(report=values, **more))

    _write(path, page)


def _write(path: str | os.PathLike[str], rendered: Callable[[], str]) -> None:
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file")
    if not place.parent.is_dir():
        raise FileNotFoundError(
            f"{path}: there is no folder {place.parent}; make it, or name another"
        )
    write_whole(place, rendered().encode("utf-8", errors="replace"))


def render(facts: Facts) -> str:
    """The page as text."""
    script = _text("report.js")
    # By its hash the page's content security policy knows its own script.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    displays = displays_of(facts)
    return rendered(
        "report.html",
        facts,
        model=facts.model,
        assessment=facts.assessment,
        held_steps=facts.held_steps,
        inf=inf,
        displays=displays,
        pictures={name: picture(name, display) for name, display in displays.items()},
        most_points=_MOST_POINTS,
        style=_text("report.css"),
        script=script,
        script_hash=f"sha256-{digest}",
    )


def card(
    estimator: Any,
    *,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
    notes: Sequence[str] | None = None,
) -> Card:
    """Model card of a fitted model, to be completed by hand and saved beside its file.

    It contains what looms knows: data, choice, scores with their standard errors, cautions. What
    looms cannot know, such as the intended use, is marked as missing.

    Parameters
    ----------
    estimator : estimator
        A fitted looms model, or a pipeline that ends in one.
    X, y, groups, assessment, title, notes : see `looms.report.summary`
        The scores of an assessment come first.

    Returns
    -------
    card : skops.card.Card
        ``add`` changes a section, ``save`` writes Markdown.

    Raises
    ------
    TypeError, ValueError
        As for `looms.report.summary`.
    ImportError
        If skops or jinja2 is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> from looms.report import card
    >>> data = load_iris(as_frame=True)
    >>> iris = card(KernelClassifier(mu=1e-3).fit(data.data, data.target), y=data.target)
    >>> iris = iris.add(**{"Model Card Contact": "iris@example.org"})
    >>> print(iris.select("Model description").content.splitlines()[0])  # doctest: +ELLIPSIS
    Classification of target, by a kernel model of looms ..., fitted to 150 rows of 4 ...
    """
    cards = require("skops.card", "A model card")
    written = rendered("card.md", Facts(estimator, X, y, groups, assessment, title, notes))
    _, *parts = re.split(r"^# (.+)\n", written, flags=re.MULTILINE)
    texts = (re.sub(r"\n{3,}", "\n\n", part.strip()) for part in parts[1::2])
    card_made: Card = cards.Card(estimator, model_diagram=False)
    card_made.add(**dict(zip(parts[::2], texts, strict=True)))
    card_made.delete("Model description/Training Procedure/Model Plot")
    return card_made


def rendered(template: str, facts: Facts, **more: Any) -> str:
    """A template filled with the summary, and with the functions of `looms.report.text`."""
    more["certificate"] = facts.certified
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
    environment.filters |= dict(getmembers(text, isfunction))
    return environment.get_template(name)


def _text(name: str) -> str:
    return files("looms.report").joinpath("templates", name).read_text(encoding="utf-8")


def displays_of(facts: Facts) -> dict[str, Display]:
    """Displays of the page, by name; the template has their captions."""
    estimator, model, report = facts.estimator, facts.model, facts.summary
    shown: dict[str, Display] = {}
    if model.tuning is not None:
        if len(model.fitted.candidates) > 1:
            shown["candidates"] = CandidatesDisplay.compute(estimator)
        if model.rows is not None and not model.follows_paths:
            shown["path"] = SearchPathDisplay.compute(estimator)
        history = CriterionHistoryDisplay.compute(estimator)
        if len(history.value) > 1:
            shown["history"] = history
    if facts.assessment is not None:
        assessed, key = report["assessment"]["scores"], report["headline"]["key"]
        keys = [row["key"] for row in assessed if row["loo"] is not None]
        if keys:
            key = key if key in keys else keys[0]
            shown["optimism"] = OptimismDisplay.compute(facts.assessment, score=key)
    if model.outcome.labeled:
        shown["roc"] = RocDisplay.compute(estimator)
        shown["precision"] = PrecisionRecallDisplay.compute(estimator)
    if facts.reliability is not None:
        shown["reliability"] = facts.reliability
        if len(model.classes) == 2:
            p = facts.probabilities
            shown["decisions"] = DecisionCurveDisplay.compute(estimator, probabilities=p)
    if not model.outcome.decides:
        shown["residuals"] = ResidualsDisplay.compute(estimator)
    if facts.importance is not None and facts.importance.along_numbers:
        shown["features"] = facts.importance
    shown |= {f"effect {k}": effect for k, effect in enumerate(facts.effects or [])}
    names = facts.names
    shown["samples"] = CaseDeletionDisplay.compute(estimator, kind="residual", names=names)
    if facts.deletion is not None:
        value, unit = facts.deletion.rms_change, facts.deletion.unit
        unit = "time" if unit == "group" and model.fitted.units.together == "times" else unit
        names = [clean(name) for name in facts.deletion.labels.tolist()]
        shown["influence"] = CaseDeletionDisplay(
            value=value, names=names, value_name=KINDS["rms_change"], unit=unit
        )
    return shown


def picture(name: str, display: Display) -> str:
    """A display as an SVG element in the colors of the page."""
    matplotlib = require("matplotlib", "A report", "report")
    figures = require("matplotlib.figure", "A report", "report")
    file = io.StringIO()
    height = _HEIGHT
    options = dict[str, Any]()
    if isinstance(display, CandidatesDisplay):
        height = 0.9 + _BAR * min(20, len(display.names))
    elif isinstance(display, ResidualsDisplay | CaseDeletionDisplay):
        options = {"max_points": _MOST_POINTS}
    # Salted, for the elements of all pictures share a page, and their names must differ.
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        # The browser has glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = figures.Figure(figsize=(_WIDTH, height), layout="compressed")
        display.plot(figure.subplots(), **options)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    svg = file.getvalue()
    svg = re.sub(r"<defs>\s*<style.*</style>\s*</defs>\s*", "", svg[svg.index("<svg") :])
    return re.sub("<[^<>]+>", _tag_of_page, svg)


def _tag_of_page(match: re.Match[str]) -> str:
    """A tag with colors of the page, and without an id that nothing refers to."""
    tag = re.sub(r"#0000(c\d)", r"var(--\1)", match[0]).replace(_INK, "var(--ink)")
    return re.sub(r' id="[\w.]+_\d+"', "", tag)
