"""Local minimization of a function of the hyper-parameters in a box.

`minimize` runs one of three optimizers, scaled conjugate gradients (our own), L-BFGS-B or
Nelder-Mead (SciPy's), and returns the same kind of record for each.
"""

from looms.optimize._minimize import minimize
from looms.optimize._search import Outcome, Point

__all__ = [
    "Outcome",
    "Point",
    "minimize",
]
