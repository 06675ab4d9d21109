"""What was chosen, how good it is and what to distrust: displays, a dict and an HTML page."""

from looms.report._candidates import CandidatesDisplay
from looms.report._case_deletion import CaseDeletionDisplay
from looms.report._curves import PrecisionRecallDisplay, RocDisplay
from looms.report._fit_cautions import cautions
from looms.report._history import CriterionHistoryDisplay
from looms.report._html import html
from looms.report._importance import Importance, ImportanceDisplay, feature_importance
from looms.report._nonconformity import ErrorAgainstBoundDisplay
from looms.report._optimism import OptimismDisplay
from looms.report._relevance import RelevanceDisplay
from looms.report._reliability import ReliabilityDisplay
from looms.report._residuals import ResidualsDisplay
from looms.report._search_path import SearchPathDisplay
from looms.report._summary import summary

__all__ = [
    "CandidatesDisplay",
    "CaseDeletionDisplay",
    "CriterionHistoryDisplay",
    "ErrorAgainstBoundDisplay",
    "Importance",
    "ImportanceDisplay",
    "OptimismDisplay",
    "PrecisionRecallDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "ResidualsDisplay",
    "RocDisplay",
    "SearchPathDisplay",
    "cautions",
    "feature_importance",
    "html",
    "summary",
]
