"""Probabilities from leave-one-out outputs.

Two kinds of probabilities:

- of new samples: from the outputs of the model of all samples, by a calibrator fitted to all
  leave-one-out outputs (`fit_calibrator`);
- of training samples: from their leave-one-out outputs, each by a calibrator fitted without it
  (`loo_probabilities`). Use these for scores and reliability curves.

Of any probabilities, with standard errors or bands:

- `recalibration` has the intercept and slope of their calibration;
- `reliability_curve` and `smooth_reliability` have the share of the class over its probability;
- `net_benefit` tells at which thresholds decisions by them help.

Sources are cited by the keys of docs/references.md.
"""

from looms.calibration._calibrators import fit_calibrator, loo_probabilities
from looms.calibration._net_benefit import NetBenefit, net_benefit
from looms.calibration._recalibration import (
    Recalibration,
    SmoothCurve,
    recalibration,
    smooth_reliability,
)
from looms.calibration._scores import ReliabilityCurve, reliability_curve

__all__ = [
    "NetBenefit",
    "Recalibration",
    "ReliabilityCurve",
    "SmoothCurve",
    "fit_calibrator",
    "loo_probabilities",
    "net_benefit",
    "recalibration",
    "reliability_curve",
    "smooth_reliability",
]
