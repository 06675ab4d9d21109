"""Conformal prediction: how well a label conforms to what was left out of the training."""

from looms.conformal._bounds import dkw_bound, error_against_bound, vc_bound
from looms.conformal._nonconformity import (
    NonconformityChoice,
    choose,
    conformity_counts,
    joint_p_values,
    margin_scores,
    neighbour_scores,
    p_values,
    pairwise_margin_scores,
)

__all__ = [
    "NonconformityChoice",
    "choose",
    "conformity_counts",
    "dkw_bound",
    "error_against_bound",
    "joint_p_values",
    "margin_scores",
    "neighbour_scores",
    "p_values",
    "pairwise_margin_scores",
    "vc_bound",
]
