"""Support vector machines: solutions to machine precision and their exact leave-one-out."""

from looms.svm._problem import IndefiniteKernelError, NotConvergedError, RoundingWarning
from looms.svm._svc import SVCProblem, dual_problem, kernel_matrix, leave_one_out
from looms.svm.dual import DualSolution, solve

__all__ = [
    "DualSolution",
    "IndefiniteKernelError",
    "NotConvergedError",
    "RoundingWarning",
    "SVCProblem",
    "dual_problem",
    "kernel_matrix",
    "leave_one_out",
    "solve",
]
