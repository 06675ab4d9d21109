"""Types that a model file may hold, their attributes, and the check of a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from looms.estimators._base import ScoredMachine
from looms.model_files import _machines as machines
from looms.model_files import _transformers as transformers
from looms.model_files._values import require, type_name
from looms.selection._candidates import Candidates
from looms.selection._target_transforms import TransformCandidates

_FEATURES = "n_features_in_ feature_names_in_"
#: Attributes of every estimator of scikit-learn; the version is removed again on reading.
_SKLEARN = f"{_FEATURES} _sklearn_version"
_REGRESSOR = (
    f"{_FEATURES} X_fit_ _tie certificate_ fit_intercept_ fit_weight_ held_out_ loo_ members_ "
    "units_"
)
_SELECTED = (
    "_nested _outer_seed _scored_in _unfitted best_index_ candidate_weights_ candidates_ "
    "choice_units_ cv_results_ n_iter_ selection_ selection_weight_"
)
_UPDATED = "_tuned_before"
_CLASSIFIER = f"{_REGRESSOR} calibrator_ classes_ threshold_"
_SVM = (
    f"{_FEATURES} C_ X_fit_ best_index_ calibrators_ certificate_ classes_ cv_results_ "
    "dual_coef_ fit_weight_ held_out_ intercept_ kernel_ loo_ loo_score_ "
    "_nested selection_weight_ support_ support_vectors_ threshold_ units_"
)
_SCORED = (
    f"{_FEATURES} _held_out _labels_by_others _neighbors _pool _seed _validation_labels classes_ "
    "deciding_ pool_ validation_ validation_scores_"
)
_TRANSFORMED = (
    f"{_FEATURES} _nested _outer_seed _repeated _unfitted candidates_ held_out_ loo_ machine_ "
    "transform_"
)
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
    fitted : names of attributes besides the fields of a dataclass, or an estimator's parameters.
    """

    check: Callable[[Any], None] | None = None
    fitted: str = ""


#: Types by name. No other objects come out of a model file.
TYPES = {
    "looms.calibration._beta.Beta": Held(machines.beta),
    "looms.calibration._isotonic.Isotonic": Held(machines.isotonic),
    "looms.calibration._sigmoid.Sigmoid": Held(machines.sigmoid),
    "looms.calibration._softmax.Softmax": Held(machines.softmax),
    "looms.conformal._nonconformity.Neighbors": Held(),
    "looms.criteria._differentiable.CrossEntropy": Held(),
    "looms.criteria._differentiable.Hinge": Held(),
    "looms.criteria._differentiable.PRESS": Held(),
    "looms.criteria._differentiable.SmoothedError": Held(),
    "looms.criteria._differentiable.SquaredHinge": Held(),
    "looms.criteria._differentiable.WMW": Held(),
    "looms.estimators._certificate.Certificate": Held(machines.certificate),
    "looms.lssvm.fit.KernelMember": Held(),
    "looms.lssvm.fit.LandmarkMember": Held(),
    "looms.estimators._estimator_member.EstimatorMember": Held(),
    "looms.estimators._classifier.LSSVMClassifier": Held(
        machines.classifier, f"{_CLASSIFIER} {_UPDATED}"
    ),
    "looms.estimators._classifier_cv.LSSVMClassifierCV": Held(
        machines.classifier, f"{_CLASSIFIER} {_SELECTED}"
    ),
    "looms.estimators._nonconformity.NonconformityClassifier": Held(machines.scored, _SCORED),
    "looms.estimators._ensemble.EstimatorPool": Held(),
    "looms.estimators._prevalence.PrevalenceClassifier": Held(),
    "looms.estimators._regressor.LSSVMRegressor": Held(
        machines.least_squares, f"{_REGRESSOR} {_UPDATED}"
    ),
    "looms.estimators._regressor.LSSVMRegressorCV": Held(
        machines.least_squares, f"{_REGRESSOR} {_SELECTED}"
    ),
    "looms.estimators._svc_cv.SVCCV": Held(machines.support_vector_machine, _SVM),
    "looms.estimators._transformed_target.TransformedTargetRegressorCV": Held(
        machines.transformed, _TRANSFORMED
    ),
    "looms.estimators._svm_grid.SVMGrid": Held(machines.grid),
    "looms.folds.GapKFold": Held(),
    "looms.kernels._base.Constant": Held(),
    "looms.kernels._base.Product": Held(machines.composite),
    "looms.kernels._base.Sum": Held(machines.composite),
    "looms.kernels._categories.Hamming": Held(),
    "looms.kernels._categories.HammingARD": Held(),
    "looms.kernels._mapped.Columns": Held(machines.composite),
    "looms.kernels._dot_product.Boolean": Held(),
    "looms.kernels._dot_product.Linear": Held(),
    "looms.kernels._dot_product.Polynomial": Held(machines.polynomial),
    "looms.kernels._laplacian.Laplacian": Held(),
    "looms.kernels._names.Precomputed": Held(),
    "looms.kernels._mapped.Normalized": Held(machines.composite),
    "looms.kernels._mapped.Ranked": Held(machines.composite),
    "looms.kernels._stationary.ARD": Held(),
    "looms.kernels._stationary.Matern": Held(),
    "looms.kernels._stationary.MaternARD": Held(),
    "looms.kernels._stationary.PowerExponential": Held(),
    "looms.kernels._stationary.PowerExponentialARD": Held(),
    "looms.kernels._stationary.RBF": Held(),
    "looms.kernels._mapped.Weighted": Held(machines.composite),
    "looms.held_out.HeldOut": Held(),
    "looms.optimize._search.Point": Held(),
    "looms.optimize._search.Search": Held(),
    "looms.selection._candidates.Candidate": Held(),
    "looms.selection._decisions.Decisions": Held(machines.decisions),
    "looms.selection._nested.Nested": Held(machines.nested),
    "looms.selection._nested.Setting": Held(),
    "looms.selection._held_out_criterion.HyperPrior": Held(),
    "looms.selection._tuning.BoundMet": Held(),
    "looms.selection._tuning.Tuning": Held(),
    "looms.selection._target_transforms.TransformCandidate": Held(),
    "looms.tables._transformers.PairScaler": Held(transformers.scaler, f"{_FEATURES} mean_ scale_"),
    "looms.tables._transformers.SparseColumns": Held(
        transformers.sparse_columns, f"{_FEATURES} columns_"
    ),
    "looms.tables._transformers.TableColumns": Held(transformers.table_columns, _FEATURES),
    "looms.threshold.BalancedError": Held(),
    "looms.units.Units": Held(machines.units),
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
    # What a ColumnTransformer makes of "passthrough".
    "sklearn.preprocessing._function_transformer.FunctionTransformer": Held(
        transformers.function, f"{_SKLEARN} _sklearn_output_config"
    ),
}


@cache
def attributes(name: str) -> frozenset[str]:
    """Attributes that objects of a type in `TYPES` may have in a file; none is a method."""
    module, _, kind_name = name.rpartition(".")
    kind = getattr(import_module(module), kind_name)
    own = (
        {field.name for field in fields(kind)}
        if is_dataclass(kind)
        else set(inspect.signature(kind).parameters)
    )
    return frozenset(own.union(TYPES[name].fitted.split()))


_CONTAINERS = (list, tuple, set, Candidates, TransformCandidates)
_PLAIN = (str, int, float, bool, type(None), slice, np.generic, np.dtype)
_SPARSE = (sparse.csr_array, sparse.csr_matrix)
#: Attributes that hold a type or a function, which the check of their owner knows.
_KNOWN_TO_OWNER = {"dtype", "func"}


def check_fitted(model: Any, trusted: Collection[str] = ()) -> None:
    """Check all parts of a model, at any depth.

    Parameters
    ----------
    model : estimator
        Fitted or unfitted.
    trusted : names of further types that the caller admits, whose state is not checked.

    Raises
    ------
    ValueError
        If shapes do not agree, numbers are out of range or not finite, indices are out of range,
        an attribute hides a method, or an object has a type that no fit stores.
    """
    waiting, done = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) in done:
            continue
        done.add(id(part))
        try:
            waiting += _checked(part, trusted)
        except Exception as error:  # a file may hold anything where a fit leaves an array
            problem = str(error) if isinstance(error, ValueError) else repr(error)
            raise ValueError(f"{type(part).__name__}: {problem}") from error


def _checked(part: Any, trusted: Collection[str]) -> list[Any]:
    """Parts of a part, after its own check."""
    kind = type(part)
    name = type_name(part if kind is type else kind)
    if kind is dict:
        return [*part.keys(), *part.values()]
    if kind in _CONTAINERS:
        return list(part)
    if kind in _SPARSE:
        part.check_format(full_check=True)
        return [part.data]
    if kind is np.ndarray and part.dtype == object:
        return part.ravel().tolist()  # type: ignore[no-any-return]
    if kind is np.ndarray:
        proper = part.dtype.kind in "biufUMm" and part.dtype.itemsize > 0
        require(proper or name in trusted, f"an array of {part.dtype}")
        return []
    if isinstance(part, _PLAIN) or name == "looms.optimize._search.Outcome":
        return []
    require(name in TYPES or name in trusted, f"{name} is of another kind than a fit leaves")
    state = getattr(part, "__dict__", {})
    for attribute in state:
        require(not callable(getattr(kind, attribute, None)), f"{attribute} hides a method")
    if isinstance(part, BaseEstimator):
        _check_features(state)
        if hasattr(kind, "_parameter_constraints"):
            part._validate_params()
    held = TYPES.get(name)
    has_state = not isinstance(part, ScoredMachine) or part.__sklearn_is_fitted__()
    if held and held.check and has_state:
        held.check(part)
    return [value for attribute, value in state.items() if attribute not in _KNOWN_TO_OWNER]


def _check_features(state: dict[str, Any]) -> None:
    """Check that there are as many feature names as features."""
    n = state.get("n_features_in_", 1)
    require(type(n) is int and n > 0, "n_features_in_ is not a number of features")
    if "feature_names_in_" in state:
        names = state["feature_names_in_"]
        proper = isinstance(names, np.ndarray) and names.shape == (n,) and names.dtype == object
        proper = proper and all(isinstance(one, str) for one in names)
        require(proper, f"feature_names_in_ does not name {n} features")
