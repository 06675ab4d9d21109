"""A skops model card, filled from the summary of a fitted machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from looms._optional import require
from looms.assessment._result import Assessment
from looms.report.facts import Facts
from looms.report.text import (
    certified,
    clean,
    count,
    day,
    figure,
    number,
    plus_minus,
    sentence,
)

if TYPE_CHECKING:
    from skops.card import Card

_NEEDED = "[More Information Needed]"


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
        If skops is not installed.

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
    report = Facts(estimator, X, y, groups, assessment, title, notes).summary
    sections = {
        "Model description": _description(report),
        "Model description/Intended uses & limitations": [
            _NEEDED,
            *(
                f"- **{_text(each['title'])}** ({each['level']}): {_text(each['text'])}"
                for each in report["cautions"]
            ),
        ],
        "Model description/Training Procedure": _choice(report),
        "Model description/Evaluation Results": [
            *_outer_figures(report["assessment"]),
            *_held_out_figures(report["loo"]),
            "" if report["certificate"] is None else certified(report["certificate"]),
        ],
        "How to Get Started with the Model": [
            "```python\nfrom looms.model_files import load_model\n\n"
            'model = load_model("model.skops").model\nmodel.predict(X)\n```'
        ],
    }
    text = {name: "\n\n".join(filter(None, parts)) for name, parts in sections.items()}
    made: Card = cards.Card(estimator, model_diagram=False).add(**text)
    made.delete("Model description/Training Procedure/Model Plot")
    return made


def _description(report: dict[str, Any]) -> list[str]:
    data = report["data"]
    landmarks = "" if data["n_landmarks"] is None else f", on {data['n_landmarks']} landmarks"
    steps = ", ".join(map(_text, data["steps"]))
    classes = [
        (each["label"], str(each["n"]), figure(each["error"], "error")) for each in data["classes"]
    ]
    return [
        f"{_text(report['title'])}, by a kernel machine of looms {report['looms_version']}, "
        f"fitted to {count(data['n_samples'], 'sample')} of "
        f"{count(data['n_features'], 'feature')}{landmarks}.",
        f"Steps before it: {steps}." if steps else "",
        _table(("class", "samples", "held-out error"), classes),
    ]


def _choice(report: dict[str, Any]) -> list[str]:
    chosen = report["chosen"]
    kernels = [(each["kernel"], number(each["weight"], 3)) for each in chosen["members"]]
    parameters = [(each["name"], number(each["value"])) for each in chosen["parameters"]]
    return [
        f"{chosen['reason']} (Written {day(report['date'])}.)",
        _table(("kernel of the stack", "weight"), kernels),
        _table(
            ("chosen", "value"),
            [("kernel", chosen["kernel"]), ("mu", number(chosen["mu"])), *parameters],
        ),
    ]


def _held_out_figures(loo: dict[str, Any]) -> list[str]:
    repeated = "" if loo["repeated"] is None else f"; {loo['repeated']}"
    rows = [
        (
            sentence(each["name"]),
            figure(each["value"], each["key"]),
            plus_minus(each["standard_error"], each["key"]),
        )
        for each in loo["figures"]
    ]
    return [
        f"By {loo['method']}, each {loo['unit']} predicted by machines that have not seen it"
        f"{repeated}:",
        _table(("figure", "value", "standard error"), rows),
        ""
        if loo["nested"]
        else "If the hyper-parameters were tuned, these same predictions chose them, which "
        "flatters the figures.",
    ]


def _outer_figures(outer: dict[str, Any] | None) -> list[str]:
    if outer is None:
        return []
    rows = [
        (
            sentence(each["name"]),
            figure(each["value"], each["key"]),
            plus_minus(each["standard_error"], each["key"]),
            f"{figure(each['low'], each['key'])} to {figure(each['high'], each['key'])}",
        )
        for each in outer["scores"]
    ]
    return [
        f"By {outer['n_splits']} outer splits ({outer['method']}), each of which repeats the whole "
        "choice:",
        _table(("figure", "value", "standard error", "95 % interval"), rows),
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown table; empty without rows."""
    lines = [f"| {' | '.join(map(_text, row))} |" for row in rows]
    rule = f"| {' | '.join(['---'] * len(head))} |"
    return "\n".join([f"| {' | '.join(head)} |", rule, *lines]) if lines else ""


def _text(text: object) -> str:
    """Text on one line, with marks of Markdown and HTML escaped."""
    return re.sub(r"([\\`*_\[\]<>|#$&~])", r"\\\1", clean(text))
