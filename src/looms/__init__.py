"""Leave-one-out model selection of kernel machines.

One factorisation of a kernel machine already contains every leave-one-out prediction,
exactly. looms uses it to choose kernels, hyper-parameters and thresholds.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from looms.assessment import assess, compare
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
    "assess",
    "compare",
]

#: Rooms of the names that are not in `looms.estimators`.
_HOMES = {"LeaveOneOut": "leave_one_out", "assess": "assessment", "compare": "assessment"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `looms --help` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"looms.{_HOMES.get(name, 'estimators')}"), name)


def __dir__() -> list[str]:
    return __all__
