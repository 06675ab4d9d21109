"""How well a classifier fits, what it rests on, and how far to trust it.

`case_deletion` says what every sample does to a least-squares machine, in closed form. The
resampling statistics (excess error, deviance, goodness of fit, influence) were made for
support vector machines by Tsujitani & Tanaka [T11], and are here for any classifier with
decision values or probabilities, at hyper-parameters that are held. What they say is of the
sample and machine at hand; where hyper-parameters were chosen on the same sample, the
leave-one-out figures flatter (`looms.assess` repeats the choice).
"""

from looms.diagnostics._case_deletion import CaseDeletion, case_deletion
from looms.diagnostics._deviance import Deviance, DevianceDisplay, deviance
from looms.diagnostics._excess_error import ExcessError, ExcessErrorDisplay, excess_error
from looms.diagnostics._goodness_of_fit import (
    GoodnessOfFit,
    GoodnessOfFitDisplay,
    goodness_of_fit,
)
from looms.diagnostics._influence import Influence, InfluenceDisplay, influence
from looms.diagnostics._margins import loo_margins

__all__ = [
    "CaseDeletion",
    "Deviance",
    "DevianceDisplay",
    "ExcessError",
    "ExcessErrorDisplay",
    "GoodnessOfFit",
    "GoodnessOfFitDisplay",
    "Influence",
    "InfluenceDisplay",
    "case_deletion",
    "deviance",
    "excess_error",
    "goodness_of_fit",
    "influence",
    "loo_margins",
]
