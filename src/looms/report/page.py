"""A report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from looms._files import write_whole
from looms._optional import require
from looms.assessment._result import Assessment
from looms.report.facts import facts_of
from looms.report.pictures import pictures
from looms.report.summary import summarized
from looms.report.text import FILTERS


def write_html(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
) -> None:
    """Write a report of a fitted machine: one page of HTML that loads nothing.

    The parameters, the choice and its reason, figures of merit, features and samples that
    matter, cautions. Light or dark as the reader's device, for screens of any size and for paper.

    Parameters
    ----------
    estimator : machine of looms, or pipeline that ends in one
        Fitted.
    path : path
        The file to write; one that is there is replaced, whole or not at all.
    X, y, assessment, title : see `summary`
        With an assessment the outer estimate becomes the headline.

    Raises
    ------
    TypeError
        If there is no machine of looms in the estimator.
    ValueError
        If ``X`` or ``y`` are not those that it was fitted to, by their number.
    ImportError
        If jinja2 or matplotlib is not installed.
    OSError
        If the file cannot be written; what was there stays.

    See Also
    --------
    summary : The contents of the page as a dict.

    Notes
    -----
    Some seconds beyond the fit: about 4·10¹⁰ flops for the surface of the criterion and the
    importance of the columns, whatever the number of samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifierCV, report
    >>> data = load_iris(as_frame=True)
    >>> model = LSSVMClassifierCV().fit(data.data, data.target)
    >>> report.write_html(model, "iris.html", y=data.target)              # doctest: +SKIP
    """
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file")
    if not place.parent.is_dir():
        raise FileNotFoundError(
            f"{path}: there is no folder {place.parent}; make it, or name another"
        )
    page = render(estimator, X=X, y=y, assessment=assessment, title=title)
    write_whole(place, page.encode("utf-8", errors="replace"))


def render(
    estimator: Any,
    *,
    X: Any = None,
    y: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
) -> str:
    """The page of `write_html` as text."""
    template = _environment().get_template("report.html")
    facts = facts_of(estimator, X, y, assessment)
    report = summarized(facts, title)
    script = _text("report.js")
    # By its hash the page's content security policy knows its own script.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    markup = require("markupsafe", "A report", "report").Markup
    page: str = template.render(
        report=report,
        pictures=pictures(facts, report),
        style=markup(_text("report.css")),
        script=markup(script),
        script_hash=f"sha256-{digest}",
    )
    return page


@cache
def _environment() -> Any:
    jinja2 = require("jinja2", "A report", "report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    return environment


def _text(name: str) -> str:
    return files("looms.report").joinpath("templates", name).read_text(encoding="utf-8")
