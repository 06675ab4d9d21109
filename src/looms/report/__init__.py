"""Reports on fitted models: displays, cautions, a summary dict and an HTML page."""

from looms.report._cautions import cautions
from looms.report._validation import Validation, validation
from looms.report.check import TableCheck
from looms.report.displays.classes import (
    DecisionCurveDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
)
from looms.report.displays.effects import EffectDisplay
from looms.report.displays.errors import OptimismDisplay
from looms.report.displays.features import (
    ImportanceDisplay,
    RelevanceDisplay,
    feature_importance,
)
from looms.report.displays.samples import CaseDeletionDisplay, ResidualsDisplay
from looms.report.displays.search import (
    CandidatesDisplay,
    CriterionHistoryDisplay,
    SearchPathDisplay,
)
from looms.report.facts import summary, summary_schema
from looms.report.page import card, write_html

__all__ = [
    "CandidatesDisplay",
    "CaseDeletionDisplay",
    "CriterionHistoryDisplay",
    "DecisionCurveDisplay",
    "EffectDisplay",
    "ImportanceDisplay",
    "OptimismDisplay",
    "PrecisionRecallDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "ResidualsDisplay",
    "RocDisplay",
    "SearchPathDisplay",
    "TableCheck",
    "Validation",
    "card",
    "cautions",
    "feature_importance",
    "summary",
    "summary_schema",
    "validation",
    "write_html",
]
