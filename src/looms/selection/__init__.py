"""Choosing hyper-parameters, kernels and criteria by exact leave-one-out."""

from looms.selection._candidates import Candidate, Choice, Judge, Watcher, choose
from looms.selection._grid import Searched, grid_search, pattern_search
from looms.selection._objective import Objective
from looms.selection._prior import HyperPrior
from looms.selection._tune import BoundMet, Tuning, log2_mu_shift, tune

__all__ = [
    "BoundMet",
    "Candidate",
    "Choice",
    "HyperPrior",
    "Judge",
    "Objective",
    "Searched",
    "Tuning",
    "Watcher",
    "choose",
    "grid_search",
    "log2_mu_shift",
    "pattern_search",
    "tune",
]
