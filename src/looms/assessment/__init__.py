"""Assessment by outer splits that repeat model selection, stored as they finish."""

from looms.assessment._assess import assess
from looms.assessment._compare import compare
from looms.assessment._errors import AllSplitsRaisedError, AssessmentInterrupted
from looms.assessment._store import StoreError

__all__ = [
    "AllSplitsRaisedError",
    "AssessmentInterrupted",
    "StoreError",
    "assess",
    "compare",
]
