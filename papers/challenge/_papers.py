"""Printed results of the papers, and the regression that made Table IV from Table III.

``c06_table3`` has blanks where the print cannot be read. In ``g06_game`` a guess is the 100-fold
or the leave-one-out figure that decided the choice; a choice by the validation set has no guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from looms._optional import require
from papers.challenge._plans import CRITERIA, KERNELS, PaperExperiment

if TYPE_CHECKING:
    import pandas as pd

PaperTable = Literal["c06_table2", "c06_table3", "c06_table4", "c06_tables5_6", "g06_game"]


#: Boolean features of an experiment, in the order of the paper.
FACTORS = (*CRITERIA, "weighted_training", "weighted_selection", *KERNELS)


def paper_table(name: PaperTable) -> pd.DataFrame:
    """Table of the papers, with names as in looms.

    Parameters
    ----------
    name : {"c06_table2", "c06_table3", "c06_table4", "c06_tables5_6", "g06_game"}
        Dimensions of the sets [C06 Table II]; test balanced error rates of 70 experiments
        [C06 Table III]; the weights of their factors [C06 Table IV]; the two submissions
        [C06 Tables V and VI]; the baselines of the Model Selection Game [G06].

    Returns
    -------
    table : DataFrame
        Rates in [0, 1]; NaN where the print cannot be read.

    Examples
    --------
    >>> from papers.challenge._papers import paper_table
    >>> float(paper_table("c06_table3")["ada"].min())
    0.1649
    """
    pandas = require("pandas", "The papers' tables")
    with resources.files("papers.challenge").joinpath(f"printed/{name}.csv").open() as file:
        table: pd.DataFrame = pandas.read_csv(file)
    return table


def factor_weights(
    experiments: Sequence[PaperExperiment], errors: npt.ArrayLike
) -> dict[str, float]:
    """Weights w of the factors in a linear model of standardized error rates.

    w minimizes Σ_i (z_i − Σ_k D_ik w_k)², where z are the rates minus their mean, divided by their
    standard deviation (n − 1), and D_ik says whether experiment i has factor k. Every experiment
    has one criterion and one kernel, so w is not unique: this is the minimizer of least norm, as
    in the printed table (the sums over criteria and over kernels are equal). There is no intercept.

    Source: [C06 Table IV], reproduced from Table III by the tests.

    Parameters
    ----------
    experiments : (n,) experiments with the criteria and kernels of Table III.
    errors : (n,) error rate of each experiment; NaN to leave one out.

    Returns
    -------
    weights : weight of every factor that an experiment has; negative if it lowers the error.

    Raises
    ------
    ValueError
        If fewer than two rates are finite, all are equal, or an experiment has other factors.
    """
    errors = np.asarray(errors, dtype=float)
    finite = np.isfinite(errors)
    design = np.array([_features(e) for e in experiments], dtype=float)[finite]
    if finite.sum() < 2 or np.ptp(errors[finite]) == 0:
        raise ValueError("A regression on factors needs experiments whose error rates differ.")
    z = (errors[finite] - errors[finite].mean()) / errors[finite].std(ddof=1)
    weights = np.linalg.pinv(design) @ z
    occurs = design.any(axis=0)
    return {f: float(w) for f, w, t in zip(FACTORS, weights, occurs, strict=True) if t}


def _features(experiment: PaperExperiment) -> list[bool]:
    if experiment.criterion not in CRITERIA or experiment.kernel not in KERNELS:
        raise ValueError(
            f"{experiment.name} is not an experiment of Table III, whose factors are regressed on."
        )
    has = {
        experiment.criterion: True,
        experiment.kernel: True,
        "weighted_training": experiment.weighting != "none",
        "weighted_selection": experiment.weighting == "both",
    }
    return [has.get(factor, False) for factor in FACTORS]
