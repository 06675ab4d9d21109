"""Diagnostics of fitted models: goodness of fit, held-out errors, influence of each sample.

`case_deletion` computes the effect of every sample, or group of samples, on a least-squares
model, `row_order` tests that its rows are in no order, and `permutation_test` that its columns tell
nothing about the target, all in closed form. The resampling
statistics (excess error, deviance, goodness of fit, influence) were developed for support vector
machines by Tsujitani & Tanaka [T11]. Here they work for any classifier with decision values or
probabilities, at fixed hyper-parameters. `left_out_fits` computes what three of them share.
Leave-one-out scores are optimistic if the hyper-parameters were tuned on the same samples;
`looms.assess` repeats the tuning in every split.
"""

from looms.diagnostics._case_deletion import case_deletion
from looms.diagnostics._goodness_of_fit import goodness_of_fit
from looms.diagnostics._left_out import left_out_fits
from looms.diagnostics._permutation import permutation_test
from looms.diagnostics._row_order import row_order
from looms.diagnostics._statistics import (
    deviance,
    excess_error,
    influence,
)

__all__ = [
    "case_deletion",
    "deviance",
    "excess_error",
    "goodness_of_fit",
    "influence",
    "left_out_fits",
    "permutation_test",
    "row_order",
]
