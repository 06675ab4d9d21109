"""Fitted attributes of least-squares machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from looms._typing import Array, Matrix
from looms.blocks import RowBlocks, as_blocks
from looms.held_out import HeldOut
from looms.lssvm.fit import Fit


def fitted_machine(
    X: Matrix | RowBlocks, weight: Array, y: Array, shares: Sequence[float], fits: Sequence[Fit]
) -> dict[str, Any]:
    """Fitted attributes of a machine, the sum of fits to the samples of positive weight.

    The other samples get coefficient zero and, as leave-one-out output, the output of the
    machine, which never saw them. ``shares`` are the weights of the fits.
    """
    train, others, n = np.flatnonzero(weight), np.flatnonzero(weight == 0), len(y)
    members = tuple(
        fit.member.among(train, n).weighing(share) for share, fit in zip(shares, fits, strict=True)
    )
    fit_weight = np.zeros(n)
    fit_weight[train] = fits[0].sample_weight
    loo = np.empty(y.shape)
    if len(others):
        rest = as_blocks(X).rows(others)
        loo[others] = np.sum([one.outputs(rest, X) for one in members], axis=0)
    held_out = loo.copy()
    loo[train] = sum(w * fit.outputs for w, fit in zip(shares, fits, strict=True))
    held_out[train] = sum(
        w * fit.mean_held_out.outputs for w, fit in zip(shares, fits, strict=True)
    )
    return {
        **({"X_fit_": None, "_blocks": X} if isinstance(X, RowBlocks) else {"X_fit_": X}),
        "members_": members,
        "fit_weight_": fit_weight,
        "loo_": HeldOut(y, loo, weight),
        "held_out_": HeldOut(y, held_out, weight),
        "_tie": max(fit.tie for fit in fits),
    }
