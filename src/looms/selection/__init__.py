"""Choosing hyper-parameters, kernels and criteria by exact leave-one-out."""

from looms.selection._candidates import Candidate, Choice, Judge, Watcher, choose
from looms.selection._objective import Objective
from looms.selection._prior import HyperPrior
from looms.selection._tune import Tuning, tune

__all__ = [
    "Candidate",
    "Choice",
    "HyperPrior",
    "Judge",
    "Objective",
    "Tuning",
    "Watcher",
    "choose",
    "tune",
]
