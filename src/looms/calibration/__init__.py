"""Probabilities from leave-one-out outputs, and their scores.

Two kinds of probabilities:

- of new samples: from the outputs of the model of all samples, by a calibrator fitted to all
  leave-one-out outputs (`fit_calibrator`, `class_probabilities`);
- of training samples: from their leave-one-out outputs, each by a calibrator fitted without it
  (`loo_probabilities`). Use these for scores and reliability curves.

Sources are cited by the keys of docs/references.md.
"""

from looms.calibration._calibrators import class_probabilities, fit_calibrator, loo_probabilities
from looms.calibration._coupling import at_prevalence, couple
from looms.calibration._scores import brier_score, log_loss, loo_deviance, reliability_curve
from looms.calibration._sigmoid import fit_sigmoid
from looms.calibration._softmax import Softmax

__all__ = [
    "Softmax",
    "at_prevalence",
    "brier_score",
    "class_probabilities",
    "couple",
    "fit_calibrator",
    "fit_sigmoid",
    "log_loss",
    "loo_deviance",
    "loo_probabilities",
    "reliability_curve",
]
