"""Prediction intervals, prediction sets, and model selection by nonconformity."""

from looms.conformal._bounds import dkw_bound, vc_bound
from looms.conformal._jackknife import jackknife_minmax, jackknife_plus
from looms.conformal._local_scale import LocalScale
from looms.conformal._nonconformity import choose, p_values
from looms.conformal._sets import class_p_values, prediction_sets

__all__ = [
    "LocalScale",
    "choose",
    "class_p_values",
    "dkw_bound",
    "jackknife_minmax",
    "jackknife_plus",
    "p_values",
    "prediction_sets",
    "vc_bound",
]
