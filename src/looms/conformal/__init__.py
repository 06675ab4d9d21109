"""Prediction intervals and sets, and the choice of a model by what conforms to unseen samples."""

from looms.conformal._bounds import dkw_bound, error_against_bound, vc_bound
from looms.conformal._jackknife import jackknife_minmax, jackknife_plus, required_rank
from looms.conformal._local_scale import LocalScale
from looms.conformal._nonconformity import (
    NonconformityChoice,
    choose,
    conformity_counts,
    joint_p_values,
    neighbour_scores,
    p_values,
    pairwise_margins,
)
from looms.conformal._sets import class_margins, class_p_values, prediction_sets

__all__ = [
    "LocalScale",
    "NonconformityChoice",
    "choose",
    "class_margins",
    "class_p_values",
    "conformity_counts",
    "dkw_bound",
    "error_against_bound",
    "jackknife_minmax",
    "jackknife_plus",
    "joint_p_values",
    "neighbour_scores",
    "p_values",
    "pairwise_margins",
    "prediction_sets",
    "required_rank",
    "vc_bound",
]
