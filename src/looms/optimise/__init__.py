"""Local minimum of a function of the hyper-parameters in a box.

`minimise` runs one of three optimizers and returns one kind of record: scaled conjugate gradients
(our own), L-BFGS-B or Nelder-Mead (SciPy's).
"""

from looms.optimise._minimise import minimise
from looms.optimise._search import Outcome, Point

__all__ = [
    "Outcome",
    "Point",
    "minimise",
]
