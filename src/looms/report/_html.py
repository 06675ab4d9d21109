"""A report as one page that needs nothing but itself."""

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
from looms.report._axes import clean
from looms.report._facts import facts_of
from looms.report._format import FILTERS
from looms.report._pictures import pictures
from looms.report._summary import summarised


def html(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
) -> None:
    """Write a report of a fitted machine: one page of HTML that loads nothing.

    What was asked, what was chosen and why, how good it is, which features and samples
    matter, what to distrust. Light or dark as the reader's device, for screens of any
    size and for paper.

    Parameters
    ----------
    estimator : machine of looms, or pipeline that ends in one
        Fitted.
    path : path
        The file to write; one that is there is replaced, whole or not at all.
    X : the training samples, default=None
        Of a data frame, the index names the samples; otherwise they are numbered from 0.
    y : the training targets, default=None
        Of a series, the name is that of the target.
    assessment : Assessment, default=None
        Of `looms.assess`, of the same estimator: the honest outer estimate, which becomes
        the headline.
    title : str, default=None
        Of the page.

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
    summary : What the page is made of, as a dict.

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
    >>> report.html(model, "iris.html", y=data.target)              # doctest: +SKIP
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
    """The page of `html` as text."""
    environment = _environment()
    facts = facts_of(estimator, X, y, assessment)
    found = summarised(facts, title)
    drawn = pictures(facts, found)
    script = _text("report.js")
    markup = require("markupsafe", "A report", "report").Markup
    page: str = environment.get_template("report.html").render(
        report=found,
        pictures={
            name: {"svg": markup(p.svg), "caption": p.caption, "alt": p.alt}
            for name, p in drawn.items()
        },
        style=markup(_text("report.css")),
        script=markup(script),
        script_hash=_hash(script),
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
    environment.filters |= {**FILTERS, "clean": clean}
    return environment


def _text(name: str) -> str:
    return files("looms.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """By which a content security policy knows the page's own script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
