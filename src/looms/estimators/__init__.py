"""Estimators with the interface of scikit-learn."""

from looms.estimators._density_ratio import density_ratio
from looms.estimators._in_pipelines import predict_interval, predict_set
from looms.estimators._intervals import Intervals
from looms.estimators._kernel_classifier import KernelClassifier
from looms.estimators._kernel_regressor import KernelRegressor
from looms.estimators._prevalence import at_prevalence
from looms.estimators._search import Search
from looms.estimators._tabular_classifier import TabularClassifier
from looms.estimators._tabular_regressor import TabularRegressor
from looms.estimators._trees import BoostedTreesClassifier, BoostedTreesRegressor
from looms.estimators._warnings import (
    BoundWarning,
    ColumnsWarning,
    DuplicatesWarning,
    OneClassWarning,
    ScalesWarning,
)

__all__ = [
    "BoostedTreesClassifier",
    "BoostedTreesRegressor",
    "BoundWarning",
    "ColumnsWarning",
    "DuplicatesWarning",
    "Intervals",
    "KernelClassifier",
    "KernelRegressor",
    "OneClassWarning",
    "ScalesWarning",
    "Search",
    "TabularClassifier",
    "TabularRegressor",
    "at_prevalence",
    "density_ratio",
    "predict_interval",
    "predict_set",
]
