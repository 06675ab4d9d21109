"""What --threshold may be, and what it stands for."""

from __future__ import annotations

import re
from typing import Any

from looms.cli._errors import InputError
from looms.threshold import RULES, Cost, RequiredPrecision, RequiredRecall

FORMS = "0, ber, f1, recall=0.9, precision=0.8 or cost=1:5 (false positive : false negative)"
_NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"


def threshold_of(text: str | None) -> Any:
    """The number, name or rule of `looms.threshold` that an option stands for, or None."""
    if text is None:
        return None
    if text == "0":
        return 0.0
    if text in RULES:
        return text
    try:
        rule = _rule(text)
    except ValueError as error:
        raise InputError(f"--threshold {text}: {error}") from None
    if rule is None:
        raise InputError(f"--threshold {text} is none of {FORMS}")
    return rule


def loss_name(text: str | None) -> str:
    """What candidates compete by at such a threshold."""
    name = (text or "0").partition("=")[0]
    losses = {"f1": "1 - F1", "recall": "1 - precision", "precision": "1 - recall", "cost": "cost"}
    return losses.get(name, "BER")


def _rule(text: str) -> RequiredPrecision | RequiredRecall | Cost | None:
    """ValueError for a number out of range, None for what has no such form."""
    share = re.fullmatch(f"(recall|precision)={_NUMBER}", text)
    if share is not None:
        kind = RequiredRecall if share[1] == "recall" else RequiredPrecision
        return kind(float(share[2]))
    costs = re.fullmatch(f"cost={_NUMBER}:{_NUMBER}", text)
    if costs is None:
        return None
    false_positive, false_negative = float(costs[1]), float(costs[2])
    if not (false_positive > 0 and false_negative > 0):
        raise ValueError("both costs must be positive, else one class takes everything")
    return Cost(false_positive, false_negative)
