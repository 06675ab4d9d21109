"""Leave-one-out model selection for kernel models.

One factorization of a kernel model gives the exact leave-one-out prediction of every row.
looms uses these predictions to tune kernels, hyper-parameters and thresholds.
"""

from __future__ import annotations

from importlib import import_module

# The command line imports this before it can tell of an interruption, so nothing slow is imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from looms import assessment as assessment
    from looms import calibration as calibration
    from looms import conformal as conformal
    from looms import criteria as criteria
    from looms import datasets as datasets
    from looms import diagnostics as diagnostics
    from looms import duplicates as duplicates
    from looms import estimators as estimators
    from looms import kernels as kernels
    from looms import lssvm as lssvm
    from looms import model_files as model_files
    from looms import nonconformity as nonconformity
    from looms import onnx as onnx
    from looms import optimize as optimize
    from looms import report as report
    from looms import selection as selection
    from looms import svm as svm
    from looms import tables as tables
    from looms import threshold as threshold
    from looms._version import __version__
    from looms.assessment import assess, compare
    from looms.estimators import (
        BoostedTreesClassifier,
        BoostedTreesRegressor,
        BoundWarning,
        ColumnsWarning,
        DuplicatesWarning,
        Intervals,
        KernelClassifier,
        KernelRegressor,
        OneClassWarning,
        ScalesWarning,
        Search,
        TabularClassifier,
        TabularRegressor,
        at_prevalence,
        density_ratio,
        predict_interval,
        predict_set,
    )
    from looms.held_out import HeldOut
    from looms.model_files import load
    from looms.nonconformity import NonconformityClassifier
    from looms.report.check import check
    from looms.scores import Scores

__all__ = [
    "BoostedTreesClassifier",
    "BoostedTreesRegressor",
    "BoundWarning",
    "ColumnsWarning",
    "DuplicatesWarning",
    "HeldOut",
    "Intervals",
    "KernelClassifier",
    "KernelRegressor",
    "NonconformityClassifier",
    "OneClassWarning",
    "ScalesWarning",
    "Scores",
    "Search",
    "TabularClassifier",
    "TabularRegressor",
    "__version__",
    "assess",
    "at_prevalence",
    "check",
    "compare",
    "density_ratio",
    "load",
    "predict_interval",
    "predict_set",
]

#: Modules of the names that are not in `looms.estimators`.
_HOMES = {
    "HeldOut": "held_out",
    "NonconformityClassifier": "nonconformity",
    "Scores": "scores",
    "__version__": "_version",
    "assess": "assessment",
    "check": "report.check",
    "compare": "assessment",
    "load": "model_files",
}


def _rooms() -> set[str]:
    """Modules that ``import looms`` makes available, each imported when it is first used."""
    from pkgutil import iter_modules

    return {module.name for module in iter_modules(__path__) if not module.name.startswith("_")}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used; `looms --help` needs none of them."""
    if name in __all__:
        value: Any = getattr(import_module(f"looms.{_HOMES.get(name, 'estimators')}"), name)
    elif not name.startswith("_") and name in _rooms():
        value = import_module(f"looms.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # so that it is looked up here once
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_rooms()])
