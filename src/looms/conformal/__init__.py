"""Prediction intervals and sets, from what leave-one-out models give for new points."""

from looms.conformal._jackknife import jackknife_minmax, jackknife_plus, required_rank
from looms.conformal._local_scale import LocalScale
from looms.conformal._sets import class_margins, class_p_values, prediction_sets

__all__ = [
    "LocalScale",
    "class_margins",
    "class_p_values",
    "jackknife_minmax",
    "jackknife_plus",
    "prediction_sets",
    "required_rank",
]
