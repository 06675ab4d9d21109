"""Arguments that more than one statistic takes."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_level(alpha: Any) -> float:
    """A level of significance, inside (0, 1)."""
    if not isinstance(alpha, Real) or not 0 < float(alpha) < 1:
        raise ValueError(f"alpha must be a number between 0 and 1, got {alpha!r}.")
    return float(alpha)


def check_replicates(n_bootstrap: Any, alpha: float) -> int:
    """A number of replicates that reaches the level: their largest is beyond it."""
    least = max(1, math.ceil(1 / alpha - 1e-9) - 1)
    if not isinstance(n_bootstrap, Integral) or int(n_bootstrap) < 1:
        raise ValueError(f"n_bootstrap must be a positive whole number, got {n_bootstrap!r}.")
    if (int(n_bootstrap) + 1) * alpha < 1 - 1e-9:
        raise ValueError(
            f"{n_bootstrap} replicates cannot reach level {alpha:g}: take n_bootstrap={least} or "
            "more, 400 to 1000 if you can."
        )
    return int(n_bootstrap)
