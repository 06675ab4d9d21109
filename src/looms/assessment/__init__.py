"""Honest performance: outer splits that repeat the whole selection, stored as they finish."""

from looms.assessment._assess import (
    AllSplitsRaisedError,
    AssessmentInterrupted,
    assess,
    stored,
)
from looms.assessment._compare import Comparison, compare
from looms.assessment._experiment import estimator_text
from looms.assessment._result import Assessment, ScoreFigures
from looms.assessment._scoring import ScoreKind, smaller_is_better
from looms.assessment._split_run import SplitResult
from looms.assessment._store import StoreError

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
