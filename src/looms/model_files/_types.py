"""Types that a model file may hold, their attributes, and the check of a model.

Of a type of looms, a file may hold the parameters and the attributes that its class declares, of
the types that it declares.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar, get_origin, get_type_hints

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from looms.estimators._model import Model
from looms.model_files import _models as models
from looms.model_files import _transformers as transformers
from looms.model_files._values import is_of, require, type_name
from looms.selection._candidates import Candidates

#: Attributes of transformers of scikit-learn, besides their parameters and those of every
#: estimator; the version is removed again on reading.
_FITTED = {
    "sklearn.compose._column_transformer.ColumnTransformer": (
        "_columns _remainder _transformer_to_input_indices force_int_remainder_cols "
        "output_indices_ sparse_output_ transformers_"
    ),
    "sklearn.impute._base.MissingIndicator": "_n_features _precomputed features_",
    "sklearn.impute._base.SimpleImputer": "_fill_dtype _fit_dtype indicator_ statistics_",
    "sklearn.pipeline.Pipeline": "",
    "sklearn.preprocessing._data.MaxAbsScaler": "max_abs_ n_samples_seen_ scale_",
    "sklearn.preprocessing._data.StandardScaler": "mean_ n_samples_seen_ scale_ var_",
    "sklearn.preprocessing._encoders.OneHotEncoder": (
        "_default_to_infrequent_mappings _drop_idx_after_grouping _infrequent_enabled "
        "_infrequent_indices _n_features_outs categories_ drop_idx_"
    ),
    # What a ColumnTransformer makes of "passthrough".
    "sklearn.preprocessing._function_transformer.FunctionTransformer": "_sklearn_output_config",
}
#: Checks of types whose attributes must agree with one another, or with limits.
_CHECKS: dict[str, Callable[[Any], None]] = {
    "looms.calibration._isotonic.Isotonic": models.isotonic,
    "looms.calibration._sigmoid.Sigmoid": models.sigmoid,
    "looms.calibration._softmax.Softmax": models.softmax,
    "looms.calibration._beta.Beta": models.beta,
    "looms.estimators._estimator_member.EstimatorMember": models.of_estimator,
    "looms.estimators._kernel_classifier.KernelClassifier": models.model,
    "looms.estimators._kernel_regressor.KernelRegressor": models.model,
    "looms.estimators._tabular_classifier.TabularClassifier": models.model,
    "looms.estimators._tabular_regressor.TabularRegressor": models.model,
    "looms.estimators._trees.BoostedTreesClassifier": models.trees,
    "looms.estimators._trees.BoostedTreesRegressor": models.trees,
    "looms.fitted._certificate.Certificate": models.certificate,
    "looms.fitted._fitted.Fitted": models.fitted,
    "looms.fitted._fitted.Selected": models.selected,
    "looms.fitted._ordered.CumulativeSigmoid": models.cumulative,
    "looms.fitted._ordered.OrderedClasses": models.ordered,
    "looms.fitted._ordered.OrderedDecisions": models.ordered_decisions,
    "looms.fitted._outcome.Classes": models.classes,
    "looms.fitted._outcome.Numbers": models.transformed,
    "looms.fitted._rows.Rows": models.rows,
    "looms.kernels._base.Product": models.composite,
    "looms.kernels._base.Sum": models.composite,
    "looms.kernels._dot_product.Polynomial": models.polynomial,
    "looms.kernels._mapped.Columns": models.composite,
    "looms.kernels._mapped.Normalized": models.composite,
    "looms.kernels._mapped.Ranked": models.composite,
    "looms.kernels._mapped.Weighted": models.composite,
    "looms.nonconformity._classifier.NonconformityClassifier": models.scored,
    "looms.nonconformity._svm_grid.SVMGrid": models.grid,
    "looms.scores.Scores": models.scores,
    "looms.selection._decisions.Decisions": models.decisions,
    "looms.selection._decisions.Rule": models.rule,
    "looms.selection._nested.Nested": models.nested,
    "looms.tables._columns.Columns": transformers.table_columns,
    "looms.tables._preprocessor.TablePreprocessor": transformers.table,
    "looms.units.Units": models.units,
    "sklearn.compose._column_transformer.ColumnTransformer": transformers.columns,
    "sklearn.impute._base.MissingIndicator": transformers.missing,
    "sklearn.impute._base.SimpleImputer": transformers.imputer,
    "sklearn.pipeline.Pipeline": transformers.pipeline,
    "sklearn.preprocessing._data.MaxAbsScaler": transformers.scaler,
    "sklearn.preprocessing._data.StandardScaler": transformers.scaler,
    "sklearn.preprocessing._encoders.OneHotEncoder": transformers.encoder,
    "sklearn.preprocessing._function_transformer.FunctionTransformer": transformers.function,
}
#: Other types, by module.
_OTHERS = {
    "looms.criteria._differentiable": "CrossEntropy Hinge PRESS SmoothedError SquaredHinge WMW",
    "looms.estimators._prevalence": "PrevalenceClassifier",
    "looms.estimators._search": "Search",
    "looms.folds": "GapKFold",
    "looms.held_out": "HeldOut",
    "looms.kernels._base": "Constant",
    "looms.kernels._categories": "Hamming HammingARD",
    "looms.kernels._dot_product": "Boolean Linear",
    "looms.kernels._laplacian": "Laplacian",
    "looms.kernels._names": "Precomputed",
    "looms.kernels._stationary": "ARD Matern MaternARD PowerExponential PowerExponentialARD RBF",
    "looms.lssvm.fit": "KernelMember LandmarkMember",
    "looms.nonconformity._choice": "Neighbors",
    "looms.nonconformity._pool": "EstimatorPool",
    "looms.optimize._search": "Point Search",
    "looms.selection._candidates": "Candidate",
    "looms.selection._objective": "HyperPrior",
    "looms.selection._tuning": "BoundMet Tuning",
    "looms.svm.member": "SupportVectorMember",
    "looms.threshold": "AtLeast BalancedError Cost FBeta",
}
#: Names of the types. No other objects come out of a model file.
TYPES = (*_CHECKS, *(f"{room}.{name}" for room, names in _OTHERS.items() for name in names.split()))


@cache
def attributes(name: str) -> frozenset[str]:
    """Attributes that objects of a type in `TYPES` may have in a file; none is a method."""
    kind = _class(name)
    own = {*inspect.signature(kind).parameters, *_FITTED.get(name, "").split(), *_declared(name)}
    if issubclass(kind, BaseEstimator):
        own |= {"n_features_in_", "feature_names_in_"}
    return frozenset(own | {"_sklearn_version"} if name in _FITTED else own)


@cache
def _declared(name: str) -> dict[str, Any]:
    """Types of the attributes that a class of looms declares, without an estimator's parameters.

    None is a method, computed, or made again after reading.
    """
    kind = _class(name)
    apart = {*getattr(kind, "_made_again", ())}
    apart |= set() if is_dataclass(kind) else set(inspect.signature(kind).parameters)
    return {
        attribute: declared
        for attribute, declared in ({} if name in _FITTED else get_type_hints(kind)).items()
        if get_origin(declared) is not ClassVar
        and attribute not in apart
        and not isinstance(getattr(kind, attribute, None), property)
    }


def _class(name: str) -> Any:
    module, _, kind = name.rpartition(".")
    return getattr(import_module(module), kind)


_CONTAINERS = (list, tuple, set, Candidates)
_PLAIN = (str, int, float, bool, type(None), slice, np.generic, np.dtype)
#: In a file they are names, each of which the caller admits.
_FUNCTIONS = (np.ufunc, FunctionType, BuiltinFunctionType)
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
    waiting, found = [model], dict[int, Any]()
    while waiting:
        part = waiting.pop()
        if id(part) not in found:
            found[id(part)] = part
            with _naming(part):
                waiting += _parts(part, trusted)
    for part in reversed(found.values()):  # mostly after its own parts
        check = _CHECKS.get(type_name(type(part)))
        if check is not None and _has_state(part):
            with _naming(part):
                check(part)


@contextmanager
def _naming(part: Any) -> Iterator[None]:
    """Context in which any error is a ValueError that names the type of a part."""
    try:
        yield
    except Exception as error:  # a file may hold anything where a fit leaves an array
        problem = str(error) if isinstance(error, ValueError) else repr(error)
        raise ValueError(f"{type(part).__name__}: {problem}") from error


def _has_state(part: Any) -> bool:
    """False for a model that is not fitted."""
    return not isinstance(part, Model) or part.__sklearn_is_fitted__()


def _parts(part: Any, trusted: Collection[str]) -> list[Any]:
    """Parts of a part, whose type, format and names of attributes are checked."""
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
    if isinstance(part, (*_PLAIN, *_FUNCTIONS)) or name == "looms.optimize._search.Outcome":
        return []
    require(name in TYPES or name in trusted, f"{name} is of another kind than a fit leaves")
    state = getattr(part, "__dict__", {})
    for attribute in state:
        require(not callable(getattr(kind, attribute, None)), f"{attribute} hides a method")
    if isinstance(part, BaseEstimator):
        _check_features(state)
        if hasattr(kind, "_parameter_constraints"):
            part._validate_params()
    if name in TYPES and _has_state(part):
        for attribute, declared in _declared(name).items():
            proper = attribute not in state or is_of(state[attribute], declared)
            require(proper, f"{attribute} is not of the type that it has after a fit")
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
