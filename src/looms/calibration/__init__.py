"""Probabilities from leave-one-out outputs.

Sources are cited by the keys of docs/references.md.
"""

from looms.calibration._coupling import couple
from looms.calibration._sigmoid import Sigmoid, fit_sigmoid, fit_sigmoids

__all__ = ["Sigmoid", "couple", "fit_sigmoid", "fit_sigmoids"]
