"""Assessment by outer splits that repeat model selection, stored as they finish."""

from looms.assessment._assess import assess, stored
from looms.assessment._compare import Comparison, compare
from looms.assessment._errors import AllSplitsRaisedError, AssessmentInterrupted
from looms.assessment._result import Assessment
from looms.assessment._scoring import smaller_is_better
from looms.assessment._store import StoreError

__all__ = [
    "AllSplitsRaisedError",
    "Assessment",
    "AssessmentInterrupted",
    "Comparison",
    "StoreError",
    "assess",
    "compare",
    "smaller_is_better",
    "stored",
]
