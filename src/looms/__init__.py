"""Leave-one-out model selection of kernel machines.

One factorisation of a kernel machine already contains every leave-one-out prediction,
exactly. looms uses it to choose kernels, hyper-parameters and thresholds.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from looms import assessment as assessment
    from looms import calibration as calibration
    from looms import challenge as challenge
    from looms import conformal as conformal
    from looms import copies as copies
    from looms import criteria as criteria
    from looms import datasets as datasets
    from looms import diagnostics as diagnostics
    from looms import kernels as kernels
    from looms import lssvm as lssvm
    from looms import model_files as model_files
    from looms import optimise as optimise
    from looms import report as report
    from looms import selection as selection
    from looms import svm as svm
    from looms import tables as tables
    from looms import threshold as threshold
    from looms.assessment import assess, compare
    from looms.estimators import (
        SVCCV,
        BoundWarning,
        CopiesWarning,
        LSSVMClassifier,
        LSSVMClassifierCV,
        LSSVMRegressor,
        LSSVMRegressorCV,
        MaxMarginClassifier,
        NonconformityClassifier,
        OneClassWarning,
    )
    from looms.leave_one_out import LeaveOneOut

try:
    __version__ = version("looms")
except PackageNotFoundError:  # a source tree that was not installed
    __version__ = "0+unknown"

__all__ = [
    "SVCCV",
    "BoundWarning",
    "CopiesWarning",
    "LSSVMClassifier",
    "LSSVMClassifierCV",
    "LSSVMRegressor",
    "LSSVMRegressorCV",
    "LeaveOneOut",
    "MaxMarginClassifier",
    "NonconformityClassifier",
    "OneClassWarning",
    "__version__",
    "assess",
    "compare",
]

#: Rooms of the names that are not in `looms.estimators`.
_HOMES = {"LeaveOneOut": "leave_one_out", "assess": "assessment", "compare": "assessment"}

#: Modules that ``import looms`` alone makes available, each imported when it is first used.
_ROOMS = (
    "assessment",
    "calibration",
    "challenge",
    "conformal",
    "copies",
    "criteria",
    "datasets",
    "diagnostics",
    "kernels",
    "lssvm",
    "model_files",
    "optimise",
    "report",
    "selection",
    "svm",
    "tables",
    "threshold",
)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `looms --help` needs none of them."""
    if name in _ROOMS:
        value: Any = import_module(f"looms.{name}")
    elif name in __all__:
        value = getattr(import_module(f"looms.{_HOMES.get(name, 'estimators')}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # so that it is looked up here once
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
