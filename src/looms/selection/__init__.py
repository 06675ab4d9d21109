"""Selection of hyper-parameters, kernels and criteria by exact leave-one-out.

`Objective.evaluate` computes a criterion and its gradient; `tune` minimizes it for one kernel.
"""

from looms.selection._grid import grid_search, pattern_search
from looms.selection._objective import Objective
from looms.selection._tune import tune

__all__ = [
    "Objective",
    "grid_search",
    "pattern_search",
    "tune",
]
