"""Probabilities from leave-one-out outputs, and what they are worth.

Which outputs and which calibrator are used where:

- new samples: the outputs of the model of all samples, a calibrator fitted to all leave-one-out
  outputs (`fit_calibrator`, `class_probabilities`);
- training samples: their leave-one-out outputs, each with a calibrator fitted without it
  (`loo_probabilities`). Scores and reliability belong to these.

Sources are cited by the keys of docs/references.md.
"""

from looms.calibration._beta import Beta, fit_beta
from looms.calibration._calibrators import (
    CALIBRATIONS,
    Calibrator,
    as_calibration,
    class_probabilities,
    fit_calibrator,
    loo_probabilities,
    output_at_half,
)
from looms.calibration._coupling import couple
from looms.calibration._isotonic import Isotonic, fit_isotonic
from looms.calibration._reliability import ReliabilityCurve, reliability_curve
from looms.calibration._scores import brier_score, deviance, log_loss
from looms.calibration._sigmoid import (
    Sigmoid,
    fit_increasing_sigmoid,
    fit_sigmoid,
    fit_sigmoids,
)

__all__ = [
    "CALIBRATIONS",
    "Beta",
    "Calibrator",
    "Isotonic",
    "ReliabilityCurve",
    "Sigmoid",
    "as_calibration",
    "brier_score",
    "class_probabilities",
    "couple",
    "deviance",
    "fit_beta",
    "fit_calibrator",
    "fit_increasing_sigmoid",
    "fit_isotonic",
    "fit_sigmoid",
    "fit_sigmoids",
    "log_loss",
    "loo_probabilities",
    "output_at_half",
    "reliability_curve",
]
