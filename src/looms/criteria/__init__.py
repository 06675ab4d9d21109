"""Model selection criteria for leave-one-out outputs.

Every criterion is a weighted mean over samples, and a mean over targets if there are
several (the one-against-rest columns of a multi-class problem). Smaller is better. With labels
t = ±1 and outputs f, the leave-one-out margin is t f, and t r = 1 − t f.

Criteria have a gradient, and guide the search. Error rates are step functions and do not; they
serve to compare tuned candidates, and for reports.

Sources are cited by the keys of docs/references.md.
"""

from looms.criteria._differentiable import DIFFERENTIABLE as DIFFERENTIABLE
from looms.criteria._differentiable import (
    PRESS,
    WMW,
    Criterion,
    CrossEntropy,
    Evaluation,
    Hinge,
    PointwiseCriterion,
    SmoothedError,
    SquaredHinge,
)
from looms.criteria._differentiable import as_criterion as as_criterion
from looms.criteria._differentiable import standard_error as standard_error
from looms.criteria._error_rates import mean_class_error as mean_class_error

__all__ = [
    "PRESS",
    "WMW",
    "Criterion",
    "CrossEntropy",
    "Evaluation",
    "Hinge",
    "PointwiseCriterion",
    "SmoothedError",
    "SquaredHinge",
]
