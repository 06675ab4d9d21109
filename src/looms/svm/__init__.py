"""Support vector machines: solutions to machine precision and exact leave-one-out."""

from looms.svm._problem import IndefiniteKernelError, NotConvergedError, RoundingWarning
from looms.svm._svc import leave_one_out
from looms.svm.dual import solve

__all__ = [
    "IndefiniteKernelError",
    "NotConvergedError",
    "RoundingWarning",
    "leave_one_out",
    "solve",
]
