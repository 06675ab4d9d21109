"""A skops model card, filled from the summary of a fitted machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from looms._optional import require
from looms.assessment._result import Assessment
from looms.report.facts import Facts
from looms.report.page import rendered

if TYPE_CHECKING:
    from skops.card import Card


def card(
    estimator: Any,
    *,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> Card:
    """Model card of a fitted machine, to be completed by hand and saved beside its file.

    It contains what looms knows: data, choice, figures with their standard errors, cautions. What
    looms cannot know, such as the intended use, is marked as missing.

    Parameters
    ----------
    estimator : estimator
        A fitted looms machine, or a pipeline that ends in one.
    X, y, groups, assessment, title, notes : see `looms.report.summary`
        The figures of an assessment come first.

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
    >>> from looms import LSSVMClassifier
    >>> from looms.report import card
    >>> data = load_iris(as_frame=True)
    >>> iris = card(LSSVMClassifier().fit(data.data, data.target), y=data.target)
    >>> iris = iris.add(**{"Model Card Contact": "iris@example.org"})
    >>> print(iris.select("Model description").content.splitlines()[0])  # doctest: +ELLIPSIS
    Classification of target, by a kernel machine of looms ..., fitted to 150 samples of 4 ...
    """
    cards = require("skops.card", "A model card")
    written = rendered("card.md", Facts(estimator, X, y, groups, assessment, title, notes))
    _, *parts = re.split(r"^# (.+)\n", written, flags=re.MULTILINE)
    texts = (re.sub(r"\n{3,}", "\n\n", part.strip()) for part in parts[1::2])
    made: Card = cards.Card(estimator, model_diagram=False)
    made.add(**dict(zip(parts[::2], texts, strict=True)))
    made.delete("Model description/Training Procedure/Model Plot")
    return made
