"""Choosing hyper-parameters, kernels and criteria by exact leave-one-out."""

from looms.selection._objective import Objective

__all__ = ["Objective"]
