"""Honest performance: outer splits that repeat the whole selection, stored as they finish."""

from looms.assessment._assess import AllSplitsRaisedError, assess, stored
from looms.assessment._compare import Comparison, compare
from looms.assessment._result import Assessment
from looms.assessment._run import SplitResult
from looms.assessment._store import StoreError

__all__ = [
    "AllSplitsRaisedError",
    "Assessment",
    "Comparison",
    "SplitResult",
    "StoreError",
    "assess",
    "compare",
    "stored",
]
