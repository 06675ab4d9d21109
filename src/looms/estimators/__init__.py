"""Estimators with the interface of scikit-learn."""

from looms.estimators._certificate import Certificate
from looms.estimators._classifier import LSSVMClassifier
from looms.estimators._classifier_cv import LSSVMClassifierCV
from looms.estimators._in_pipelines import machine_of, predict_interval, predict_set
from looms.estimators._nonconformity import NonconformityClassifier
from looms.estimators._prevalence import PrevalenceClassifier
from looms.estimators._regressor import LSSVMRegressor, LSSVMRegressorCV
from looms.estimators._svc_cv import SVCCV
from looms.estimators._transformed_target import TransformedTargetRegressorCV
from looms.estimators._warnings import (
    BoundWarning,
    CopiesWarning,
    OneClassWarning,
    ScalesWarning,
)

__all__ = [
    "SVCCV",
    "BoundWarning",
    "Certificate",
    "CopiesWarning",
    "LSSVMClassifier",
    "LSSVMClassifierCV",
    "LSSVMRegressor",
    "LSSVMRegressorCV",
    "NonconformityClassifier",
    "OneClassWarning",
    "PrevalenceClassifier",
    "ScalesWarning",
    "TransformedTargetRegressorCV",
    "machine_of",
    "predict_interval",
    "predict_set",
]
