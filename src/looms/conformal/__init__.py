"""Prediction intervals and sets from the outputs of leave-one-out models."""

from looms.conformal._jackknife import jackknife_minmax, jackknife_plus
from looms.conformal._sets import prediction_sets

__all__ = [
    "jackknife_minmax",
    "jackknife_plus",
    "prediction_sets",
]
