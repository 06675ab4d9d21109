"""Choosing hyper-parameters, kernels and criteria by exact leave-one-out."""

from looms.selection._candidates import Candidate, Choice, Judge, Watcher, choose
from looms.selection._grid import Searched, grid_search, pattern_search
from looms.selection._machine_scores import (
    MeanOverPairs,
    OfClasses,
    Sample,
    Score,
    Scored,
    loo_deviance,
    sweep,
)
from looms.selection._objective import Objective
from looms.selection._one_against_one import (
    FittedTo,
    LeftOut,
    Machines,
    Pair,
    class_leave_one_out,
    class_log_probabilities,
    class_targets,
    pairs_of,
    solved_pairs,
)
from looms.selection._prior import HyperPrior
from looms.selection._tune import BoundMet, Tuning, log2_mu_shift, tune

__all__ = [
    "BoundMet",
    "Candidate",
    "Choice",
    "FittedTo",
    "HyperPrior",
    "Judge",
    "LeftOut",
    "Machines",
    "MeanOverPairs",
    "Objective",
    "OfClasses",
    "Pair",
    "Sample",
    "Score",
    "Scored",
    "Searched",
    "Tuning",
    "Watcher",
    "choose",
    "class_leave_one_out",
    "class_log_probabilities",
    "class_targets",
    "grid_search",
    "log2_mu_shift",
    "loo_deviance",
    "pairs_of",
    "pattern_search",
    "solved_pairs",
    "sweep",
    "tune",
]
