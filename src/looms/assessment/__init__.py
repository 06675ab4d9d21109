"""Honest performance: outer splits that repeat the whole selection, stored as they finish."""

from looms.assessment._assess import (
    AllSplitsRaisedError,
    AssessmentInterrupted,
    assess,
    stored,
)
from looms.assessment._compare import Comparison, compare
from looms.assessment._kinds import ScoreKind, smaller_is_better
from looms.assessment._result import Assessment, ScoreFigures
from looms.assessment._run import SplitResult
from looms.assessment._store import StoreError
from looms.assessment._text import estimator_text

__all__ = [
    "AllSplitsRaisedError",
    "Assessment",
    "AssessmentInterrupted",
    "Comparison",
    "ScoreFigures",
    "ScoreKind",
    "SplitResult",
    "StoreError",
    "assess",
    "compare",
    "estimator_text",
    "smaller_is_better",
    "stored",
]
