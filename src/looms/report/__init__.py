"""Reports of fitted machines: displays, cautions, a dict and an HTML page."""

from looms.report._fit_cautions import cautions
from looms.report.displays.bound import ErrorAgainstBoundDisplay
from looms.report.displays.curves import PrecisionRecallDisplay, RocDisplay
from looms.report.displays.features import (
    ImportanceDisplay,
    RelevanceDisplay,
    feature_importance,
)
from looms.report.displays.optimism import OptimismDisplay
from looms.report.displays.reliability import ReliabilityDisplay
from looms.report.displays.samples import CaseDeletionDisplay, ResidualsDisplay
from looms.report.displays.search import (
    CandidatesDisplay,
    CriterionHistoryDisplay,
    SearchPathDisplay,
)
from looms.report.page import write_html
from looms.report.summary import summary

__all__ = [
    "CandidatesDisplay",
    "CaseDeletionDisplay",
    "CriterionHistoryDisplay",
    "ErrorAgainstBoundDisplay",
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
    "summary",
    "write_html",
]
