"""Estimators with the interface of scikit-learn."""

from looms.estimators._candidates import CandidatesClassifier, CandidatesRegressor
from looms.estimators._certificate import Certificate
from looms.estimators._in_pipelines import machine_of, predict_interval, predict_set
from looms.estimators._kernel_classifier import KernelClassifier
from looms.estimators._kernel_regressor import KernelRegressor
from looms.estimators._nonconformity import NonconformityClassifier
from looms.estimators._prevalence import PrevalenceClassifier
from looms.estimators._search import Search
from looms.estimators._svc_cv import SVCCV
from looms.estimators._tabular import TabularClassifier, TabularRegressor
from looms.estimators._warnings import (
    BoundWarning,
    ColumnsWarning,
    DuplicatesWarning,
    OneClassWarning,
    ScalesWarning,
)

__all__ = [
    "SVCCV",
    "BoundWarning",
    "CandidatesClassifier",
    "CandidatesRegressor",
    "Certificate",
    "ColumnsWarning",
    "DuplicatesWarning",
    "KernelClassifier",
    "KernelRegressor",
    "NonconformityClassifier",
    "OneClassWarning",
    "PrevalenceClassifier",
    "ScalesWarning",
    "Search",
    "TabularClassifier",
    "TabularRegressor",
    "machine_of",
    "predict_interval",
    "predict_set",
]
