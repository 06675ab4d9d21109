"""A classifier of scikit-learn from the Python call that makes it."""

from __future__ import annotations

import ast
from difflib import get_close_matches

from sklearn.base import BaseEstimator
from sklearn.utils.discovery import all_estimators

from looms.cli._errors import InputError


def classifier_of(call: str) -> BaseEstimator:
    """Unfitted classifier from "LogisticRegression" or "LogisticRegression(C=0.1)".

    Its arguments are literals by name; the text is never run.
    """
    form = "--estimator is a classifier of scikit-learn, such as 'LogisticRegression(C=0.1)'"
    try:
        node = ast.parse(call.strip(), mode="eval").body
        keywords = node.keywords if isinstance(node, ast.Call) and not node.args else []
        name = node.func if isinstance(node, ast.Call) and not node.args else node
        options = {str(one.arg): ast.literal_eval(one.value) for one in keywords}
    except (SyntaxError, ValueError):
        raise InputError(f"{form}, with plain values by name, not {call!r}") from None
    if not isinstance(name, ast.Name):
        raise InputError(f"{form}, with plain values by name, not {call!r}")
    known = dict(all_estimators("classifier"))
    if name.id not in known:
        near = get_close_matches(name.id, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"{form}; {name.id} is not one{hint}")
    try:
        classifier: BaseEstimator = known[name.id](**options)
    except TypeError as error:
        raise InputError(f"--estimator {call}: {error}") from None
    return classifier
