"""Types that a model file may hold, the attributes of each, and the check of its state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

from looms.model_files import _machines as machines
from looms.model_files import _transformers as transformers

_FEATURES = "n_features_in_ feature_names_in_"
#: Attributes of every estimator of scikit-learn; the version is taken out again when it is read.
_SKLEARN = f"{_FEATURES} _sklearn_version"
_REGRESSOR = f"{_FEATURES} X_fit_ dual_coef_ fit_intercept_ fit_weight_ intercept_ kernel_ loo_ mu_"
_SELECTED = "best_index_ candidates_ cv_results_ groups_ n_iter_ selection_ selection_weight_"
_CLASSIFIER = f"{_REGRESSOR} calibrator_ classes_ threshold_"
_SVM = (
    f"{_FEATURES} C_ best_index_ calibrators_ classes_ cv_results_ dual_coef_ fit_weight_ "
    "intercept_ kernel_ loo_ loo_score_ selection_weight_ support_ support_vectors_ threshold_"
)
_POOLED = f"{_FEATURES} _pool classes_ pool_"
_SCORED = f"{_POOLED} _held_out _neighbors _seed _validation_labels validation_ validation_scores_"
_ONE_HOT = (
    "_default_to_infrequent_mappings _drop_idx_after_grouping _infrequent_enabled "
    "_infrequent_indices _n_features_outs categories_ drop_idx_"
)
_COLUMNS = (
    "_columns _remainder _transformer_to_input_indices force_int_remainder_cols output_indices_ "
    "sparse_output_ transformers_"
)


@dataclass(frozen=True)
class Held:
    """Attributes that a model file may hold for a type, and their check.

    Attributes
    ----------
    check : function that raises ValueError for invalid state, or None.
    fitted : names of attributes, besides the fields of a dataclass or the parameters of another.
    """

    check: Callable[[Any], None] | None = None
    fitted: str = ""


#: By name. No other objects come out of a model file.
TYPES = {
    "looms.calibration._beta.Beta": Held(machines.beta),
    "looms.calibration._isotonic.Isotonic": Held(machines.isotonic),
    "looms.calibration._sigmoid.Sigmoid": Held(machines.sigmoid),
    "looms.conformal._nonconformity.Neighbors": Held(),
    "looms.criteria.CrossEntropy": Held(),
    "looms.criteria.Hinge": Held(),
    "looms.criteria.PRESS": Held(),
    "looms.criteria.SmoothedError": Held(),
    "looms.criteria.SquaredHinge": Held(),
    "looms.criteria.WMW": Held(),
    "looms.estimators._classifier.LSSVMClassifier": Held(machines.classifier, _CLASSIFIER),
    "looms.estimators._classifier_cv.LSSVMClassifierCV": Held(
        machines.classifier, f"{_CLASSIFIER} {_SELECTED}"
    ),
    "looms.estimators._largest_margin.LargestMarginClassifier": Held(machines.pooled, _POOLED),
    "looms.estimators._nonconformity.NonconformityClassifier": Held(machines.scored, _SCORED),
    "looms.estimators._ensemble.EstimatorPool": Held(),
    "looms.estimators._regressor.LSSVMRegressor": Held(machines.least_squares, _REGRESSOR),
    "looms.estimators._regressor.LSSVMRegressorCV": Held(
        machines.least_squares, f"{_REGRESSOR} {_SELECTED}"
    ),
    "looms.estimators._svc_cv.SVCCV": Held(machines.support_vector_machine, _SVM),
    "looms.estimators._svm_grid.SVMGrid": Held(machines.grid),
    "looms.kernels._base.Constant": Held(),
    "looms.kernels._base.Product": Held(machines.composite),
    "looms.kernels._base.Sum": Held(machines.composite),
    "looms.kernels._dot_product.Boolean": Held(),
    "looms.kernels._dot_product.Linear": Held(),
    "looms.kernels._dot_product.Polynomial": Held(machines.polynomial),
    "looms.kernels._given.Precomputed": Held(),
    "looms.kernels._normalized.Normalized": Held(machines.composite),
    "looms.kernels._stationary.ARD": Held(),
    "looms.kernels._stationary.RBF": Held(),
    "looms.held_out.HeldOut": Held(),
    "looms.optimize._search.Point": Held(),
    "looms.optimize._search.Search": Held(),
    "looms.selection._candidates.Candidate": Held(),
    "looms.selection._prior.HyperPrior": Held(),
    "looms.selection._tune.BoundMet": Held(),
    "looms.selection._tune.Tuning": Held(),
    "looms.tables.SparseColumns": Held(transformers.sparse_columns, f"{_FEATURES} columns_"),
    "looms.tables.TableColumns": Held(transformers.table_columns, _FEATURES),
    "looms.threshold.BalancedError": Held(),
    "looms.threshold.Cost": Held(),
    "looms.threshold.FBeta": Held(),
    "looms.threshold.RequiredPrecision": Held(),
    "looms.threshold.RequiredRecall": Held(),
    "sklearn.compose._column_transformer.ColumnTransformer": Held(
        transformers.columns, f"{_SKLEARN} {_COLUMNS}"
    ),
    "sklearn.impute._base.MissingIndicator": Held(
        transformers.missing, f"{_SKLEARN} _n_features _precomputed features_"
    ),
    "sklearn.impute._base.SimpleImputer": Held(
        transformers.imputer, f"{_SKLEARN} _fill_dtype _fit_dtype indicator_ statistics_"
    ),
    "sklearn.pipeline.Pipeline": Held(transformers.pipeline, _SKLEARN),
    "sklearn.preprocessing._data.MaxAbsScaler": Held(
        transformers.scaler, f"{_SKLEARN} max_abs_ n_samples_seen_ scale_"
    ),
    "sklearn.preprocessing._data.StandardScaler": Held(
        transformers.scaler, f"{_SKLEARN} mean_ n_samples_seen_ scale_ var_"
    ),
    "sklearn.preprocessing._encoders.OneHotEncoder": Held(
        transformers.encoder, f"{_SKLEARN} {_ONE_HOT}"
    ),
}


@cache
def attributes(name: str) -> frozenset[str]:
    """Attributes that objects of a type of `TYPES` may have in a file; none is a method of it."""
    module, _, kind_name = name.rpartition(".")
    kind = getattr(import_module(module), kind_name)
    own = (
        {field.name for field in fields(kind)}
        if is_dataclass(kind)
        else set(inspect.signature(kind).parameters)
    )
    return frozenset(own.union(TYPES[name].fitted.split()))
