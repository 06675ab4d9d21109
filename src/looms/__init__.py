"""Leave-one-out model selection of kernel machines.

One factorisation of a kernel machine already contains every leave-one-out prediction,
exactly. looms uses it to choose kernels, hyper-parameters and thresholds.
"""

from importlib.metadata import PackageNotFoundError, version

from looms.estimators import (
    BoundWarning,
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
)
from looms.leave_one_out import LeaveOneOut

try:
    __version__ = version("looms")
except PackageNotFoundError:  # a source tree that was not installed
    __version__ = "0+unknown"

__all__ = [
    "BoundWarning",
    "LSSVMClassifier",
    "LSSVMClassifierCV",
    "LSSVMRegressor",
    "LSSVMRegressorCV",
    "LeaveOneOut",
    "__version__",
]
