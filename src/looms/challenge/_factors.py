"""Weights of the factors of experiments by linear regression [C06 Table IV]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from looms.challenge._plans import CRITERIA, KERNELS, Experiment

#: Boolean features of an experiment, in the order of the paper.
FACTORS = (*CRITERIA, "weighted_training", "weighted_selection", *KERNELS)


def factor_weights(experiments: Sequence[Experiment], errors: Any) -> dict[str, float]:
    """Weights w of the factors in a linear model of standardized error rates.

    w minimizes Σ_i (z_i − Σ_k D_ik w_k)², with z the rates less their mean over their standard
    deviation (n − 1), and D_ik whether experiment i has factor k. Every experiment has one
    criterion and one kernel, so w is not unique: this is the minimizer of least norm, as in
    the printed table (the sums over criteria and over kernels are equal). There is no intercept.

    Source: [C06 Table IV], reproduced from Table III by the tests.

    Parameters
    ----------
    experiments : (n,) experiments with the criteria and kernels of Table III.
    errors : (n,) an error rate of each; NaN for one to leave out.

    Returns
    -------
    weights : of every factor of which there is an experiment; negative where it lowers the error.

    Raises
    ------
    ValueError
        If fewer than two rates are finite, all are equal, or an experiment has other factors.
    """
    errors = np.asarray(errors, dtype=float)
    finite = np.isfinite(errors)
    design = np.array([_features(e) for e in experiments], dtype=float)[finite]
    if finite.sum() < 2 or np.ptp(errors[finite]) == 0:
        raise ValueError("A regression on factors needs experiments with different error rates.")
    z = (errors[finite] - errors[finite].mean()) / errors[finite].std(ddof=1)
    weights = np.linalg.pinv(design) @ z
    occurs = design.any(axis=0)
    return {f: float(w) for f, w, t in zip(FACTORS, weights, occurs, strict=True) if t}


def _features(experiment: Experiment) -> list[bool]:
    if experiment.criterion not in CRITERIA or experiment.kernel not in KERNELS:
        raise ValueError(
            f"{experiment.name} is no experiment of Table III, whose factors the regression is on."
        )
    has = {
        experiment.criterion,
        experiment.kernel,
        *(["weighted_training"] if experiment.weighting != "none" else []),
        *(["weighted_selection"] if experiment.weighting == "both" else []),
    }
    return [factor in has for factor in FACTORS]
