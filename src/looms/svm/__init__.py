"""Support vector machines: exact leave-one-out, of solutions to machine precision."""

from looms.svm._problem import IndefiniteKernelError, NotConvergedError, RoundingWarning
from looms.svm._svc import leave_one_out

__all__ = [
    "IndefiniteKernelError",
    "NotConvergedError",
    "RoundingWarning",
    "leave_one_out",
]
