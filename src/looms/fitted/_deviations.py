"""Standard deviations of the targets of new rows."""

from __future__ import annotations

from looms._advice import setting
from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.blocks import RowBlocks, blocks_of
from looms.fitted._fitted import Fitted, sum_of
from looms.fitted._outcome import Numbers
from looms.lssvm.left_out import Spread


def standard_deviations(model: Fitted, X: Matrix | RowBlocks) -> Array:
    """Standard deviations of the targets of validated samples, shaped like their outputs.

    The first call solves the systems of the members, of n³ flops and n² numbers each.
    """
    spread = spread_of_fit(model)
    _, (deviations,) = blocks_of(X).sweep(lambda rows: ((), (spread.at(rows),)))
    return deviations.reshape(-1, *model.loo.y.shape[1:])


def spread_of_fit(model: Fitted) -> Spread:
    """Standard deviations of targets by a model, made once.

    Its systems are its own, for P in those of `Fitted.left_out` has lost digits that these need.

    Raises
    ------
    ValueError
        If the model has no standard deviations.
    """
    _check(model)
    spread: Spread | None = model.computed.get("spread")
    if spread is None:
        with blas_threads(len(model.rows.train)):
            systems = [model.system_of(member) for member in model.members]
            left_out = sum_of([member.weight for member in model.members], systems)
            spread = model.computed["spread"] = left_out.spread(model.units_of_intervals)
    return spread


def _check(model: Fitted) -> None:
    """ValueError with the reason for which a model has no standard deviations."""
    outcome, instead = model.outcome, setting("predict_interval", text="predict_interval")
    others = [member.kernel for member in model.members if not member.closed]
    if others:
        raise ValueError(
            f"Standard deviations are of kernels, and {type(others[0]).__name__} is a member: use "
            f"{instead}, or kernels as the only candidates."
        )
    if model.pairwise:
        raise ValueError(
            f"{setting('kernel', 'precomputed')} has no value k(x, x) of new rows, which their "
            f"standard deviations need: use {instead}, or a kernel of features."
        )
    assert isinstance(outcome, Numbers)
    if not outcome.function.keeps_scale:
        raise ValueError(
            f"The fit is to the {outcome.transform} of the target, whose standard deviations are "
            f"not those of the target: use {instead}, or {setting('target', 'none')}."
        )
