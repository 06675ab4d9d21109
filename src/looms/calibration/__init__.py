"""Probabilities from leave-one-out outputs.

Two kinds of probabilities:

- of new samples: from the outputs of the model of all samples, by a calibrator fitted to all
  leave-one-out outputs (`fit_calibrator`);
- of training samples: from their leave-one-out outputs, each by a calibrator fitted without it
  (`loo_probabilities`). Use these for scores and reliability curves.

Of any probabilities, with standard errors or bands:

- `recalibration` has the intercept and slope of their calibration;
- `smooth_reliability` has the share of the class over its probability;
- `net_benefit` tells at which thresholds decisions by them help.

Sources are cited by the keys of docs/references.md.
"""

from looms.calibration._calibrators import fit_calibrator, loo_probabilities
from looms.calibration._net_benefit import net_benefit
from looms.calibration._recalibration import recalibration, smooth_reliability

__all__ = [
    "fit_calibrator",
    "loo_probabilities",
    "net_benefit",
    "recalibration",
    "smooth_reliability",
]
