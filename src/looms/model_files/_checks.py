"""Fitted state of every type that a model file may hold, checked against itself.

`CHECKS` has a function for each type, by its name in a file: it raises ValueError for state that
no fit leaves behind. A model that was not fitted has no state to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from looms._typing import AnyArray
from looms.calibration import Beta, Isotonic, Sigmoid
from looms.kernels import Kernel, Samples
from looms.leave_one_out import LeaveOneOut
from looms.selection import Candidate

#: Degrees of a polynomial are multiplied out one by one.
_HIGHEST_DEGREE = 1000
_CALIBRATORS = (Beta, Isotonic, Sigmoid)


def check_fitted(model: Any) -> None:
    """Check all that a model is made of, at any depth.

    Parameters
    ----------
    model : estimator
        Fitted or not.

    Raises
    ------
    ValueError
        If shapes do not agree, numbers are out of range or not finite, indices point beyond what
        they are of, or there is something of another kind than a fit leaves.
    """
    for part in _parts(model):
        if sparse.issparse(part):
            part.check_format(full_check=True)
        check = CHECKS.get(type_name(type(part)))
        if check is not None:
            try:
                check(part)
            except Exception as error:  # a file may hold anything where a fit leaves an array
                problem = str(error) if isinstance(error, ValueError) else repr(error)
                raise ValueError(f"{type(part).__name__}: {problem}") from error


def type_name(kind: type) -> str:
    """Module and name of a type, as in a file."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _parts(whole: Any) -> Iterator[Any]:
    """Everything that an object holds, at any depth, itself included; each once."""
    waiting, seen = [whole], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Mapping):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            waiting += part
        elif isinstance(part, np.ndarray) and part.dtype == object:
            waiting += part.ravel().tolist()
        if not isinstance(part, type):
            waiting += getattr(part, "__dict__", {}).values()


# Values of one attribute --------------------------------------------------------


def _require(condition: bool | np.bool_, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _numbers(owner: Any, name: str, *shape: int | None) -> AnyArray:
    """A finite array of this shape; None is any length, no shape is a single number."""
    value = getattr(owner, name)
    _require(isinstance(value, np.ndarray | np.generic | Real), f"{name} holds no numbers")
    array = np.asarray(value)
    _require(array.dtype.kind in "biuf", f"{name} holds no numbers")
    agrees = len(shape) == array.ndim and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    _require(agrees, f"{name} has shape {array.shape}, not {shape}")
    _require(bool(np.isfinite(array).all()), f"{name} is not finite")
    return array


def _positive(owner: Any, name: str, *shape: int | None) -> None:
    _require(bool((_numbers(owner, name, *shape) > 0).all()), f"{name} is not positive")


def _indices(owner: Any, name: str, n: int) -> AnyArray:
    """Different indices into something of length ``n``."""
    array = _numbers(owner, name, None)
    inside = array.dtype.kind in "iu" and bool(((array >= 0) & (array < n)).all())
    _require(inside, f"{name} points beyond {n}")
    _require(len(np.unique(array)) == len(array), f"{name} names one twice")
    return array


def _index(owner: Any, name: str, n: int) -> None:
    value = getattr(owner, name)
    _require(isinstance(value, int | np.integer) and 0 <= value < n, f"{name} points beyond {n}")


def _samples(owner: Any, name: str) -> tuple[int, int]:
    """The shape of a matrix of finite samples, whose columns are the features seen in fit."""
    X = getattr(owner, name)
    if sparse.issparse(X):
        X.check_format(full_check=True)
        _require(X.dtype.kind == "f" and bool(np.isfinite(X.data).all()), f"{name} is not finite")
    else:
        _numbers(owner, name, None, None)
    n, d = X.shape
    _require(n > 0 and d == owner.n_features_in_, f"{name} has shape {X.shape}")
    return n, d


def _classes(owner: Any) -> int:
    classes = owner.classes_
    _require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_ is no list of labels")
    n = len(classes)
    _require(n >= 2 and len(np.unique(classes)) == n, "classes_ is not of two or more labels")
    return n


# Machines ---------------------------------------------------------------------------


def _kernel_of(owner: Any, X: Any) -> None:
    """The kernel with values for its hyper-parameters, positive, as many as there are features."""
    kernel = owner.kernel_
    _require(isinstance(kernel, Kernel), "kernel_ is no kernel")
    kernel.started(Samples(X[:1]))  # checks all values, of those that are not tuned too
    kernel.theta  # noqa: B018 (raises for one that waits for the data)


def _expansion(owner: Any, n: int) -> int | None:
    """Coefficients of ``n`` samples and intercept; the number of outputs, None for plain ones."""
    outputs = np.shape(owner.intercept_)
    _numbers(owner, "intercept_", *outputs[:1])
    _numbers(owner, "dual_coef_", n, *outputs)
    return outputs[0] if outputs else None


def _loo(owner: Any, shape: tuple[int, ...]) -> None:
    _require(isinstance(owner.loo_, LeaveOneOut), "loo_ holds no leave-one-out outputs")
    _require(owner.loo_.y.shape == shape, f"loo_ has shape {owner.loo_.y.shape}, not {shape}")


def _least_squares(machine: Any) -> None:
    if "dual_coef_" not in vars(machine):
        return
    n, _ = _samples(machine, "X_fit_")
    _expansion(machine, n)
    _kernel_of(machine, machine.X_fit_)
    _positive(machine, "mu_")
    _loo(machine, machine.dual_coef_.shape)
    if "fit_weight_" in vars(machine):
        _require(bool((_numbers(machine, "fit_weight_", n) >= 0).all()), "fit_weight_ is negative")
    if "candidates_" in vars(machine):
        candidates = machine.candidates_
        _require(
            isinstance(candidates, list) and all(isinstance(c, Candidate) for c in candidates),
            "candidates_ is no list of candidates",
        )
        _index(machine, "best_index_", len(candidates))


def _classifier(machine: Any) -> None:
    if "dual_coef_" not in vars(machine):
        return
    _least_squares(machine)
    n_classes = _classes(machine)
    _require(
        np.shape(machine.intercept_) == (() if n_classes == 2 else (n_classes,)),
        f"intercept_ has shape {np.shape(machine.intercept_)}, and there are {n_classes} classes",
    )
    _numbers(machine, "threshold_")
    calibrator = getattr(machine, "calibrator_", None)
    _require(calibrator is None or isinstance(calibrator, _CALIBRATORS), "calibrator_ is none")


def _reduced_classifier(machine: Any) -> None:
    _classifier(machine)
    if "dual_coef_" in vars(machine):
        _indices(machine, "settling_", machine.n_features_in_)
        _numbers(machine, "floor_")


def _support_vector_machine(machine: Any) -> None:
    if "dual_coef_" not in vars(machine):
        return
    n_classes = _classes(machine)
    n_pairs = n_classes * (n_classes - 1) // 2
    n, _ = _samples(machine, "support_vectors_")
    _require(
        _expansion(machine, n) == (None if n_pairs == 1 else n_pairs), "intercept_: not a pair"
    )
    _kernel_of(machine, machine.support_vectors_)
    _positive(machine, "C_")
    _numbers(machine, "threshold_")
    _require(isinstance(machine.loo_, LeaveOneOut), "loo_ holds no leave-one-out outputs")
    rows = machine.loo_.y.shape[0]
    _loo(machine, (rows,) if n_pairs == 1 else (rows, n_classes))
    _require(len(_indices(machine, "support_", rows)) == n, f"support_ is not of {n} rows")
    calibrators = machine.calibrators_
    _require(calibrators is not None or n_pairs == 1, "calibrators_ is none")
    if calibrators is not None:
        proper = isinstance(calibrators, tuple) and len(calibrators) == n_pairs
        proper = proper and all(isinstance(one, _CALIBRATORS) for one in calibrators)
        _require(proper, "calibrators_ has not one for each pair")
    table = machine.cv_results_
    _require(len({len(column) for column in table.values()}) == 1, "cv_results_ is no table")
    _index(machine, "best_index_", len(table["params"]))


def _pooled(machine: Any) -> None:
    if "_pool" not in vars(machine):
        return
    n_classes = _classes(machine)
    pool = machine._pool
    _require(pool.n_classes == n_classes, f"the pool is not of {n_classes} classes")
    if hasattr(pool, "X"):
        _require(pool.X.shape[1] == machine.n_features_in_, f"the pool has shape {pool.X.shape}")


def _scored(machine: Any) -> None:
    _pooled(machine)
    if "_pool" in vars(machine):
        scored = machine._scored
        n_models = len(machine.pool_)
        _numbers(scored, "scores", n_models, len(_numbers(scored, "rows", None)))
        _numbers(machine, "validation_scores_", n_models, len(scored.rows))


def _grid(grid: Any) -> None:
    n_pairs = grid.n_classes * (grid.n_classes - 1) // 2
    n, _ = _numbers(grid, "X", None, None).shape
    _positive(grid, "gammas", None)
    _positive(grid, "Cs", None)
    sizes = len(grid.gammas), len(grid.Cs)
    _numbers(grid, "coef", *sizes, n, n_pairs)
    _numbers(grid, "intercept", *sizes, n_pairs)


# Kernels and calibrators ----------------------------------------------------------


def _polynomial(kernel: Any) -> None:
    degree = kernel.degree
    proper = isinstance(degree, int | np.integer) and 1 <= degree <= _HIGHEST_DEGREE
    _require(proper, f"the degree is not from 1 to {_HIGHEST_DEGREE}")


def _composite(kernel: Any) -> None:
    _require(all(isinstance(part, Kernel) for part in kernel.parts), "a part of it is no kernel")


def _sigmoid(sigmoid: Any) -> None:
    for name in ("slope", "intercept"):
        _numbers(sigmoid, name)


def _beta(beta: Any) -> None:
    _require(isinstance(beta.sigmoid, _CALIBRATORS), "sigmoid is none")
    for name in ("a", "b", "c"):
        _numbers(beta, name)


def _isotonic(isotonic: Any) -> None:
    (n,) = _numbers(isotonic, "outputs", None).shape
    values = _numbers(isotonic, "probabilities", n)
    _require(n > 0 and bool(((values >= 0) & (values <= 1)).all()), "probabilities are none")


# Transformers -------------------------------------------------------------------


def _lengths(*names: str) -> Callable[[Any], None]:
    """One number a feature in each of these; what is absent or None is not checked."""

    def check(transformer: Any) -> None:
        for name in names:
            if getattr(transformer, name, None) is not None:
                _numbers(transformer, name, transformer.n_features_in_)

    return check


def _scaler(transformer: Any) -> None:
    _lengths("mean_", "var_", "scale_", "max_abs_")(transformer)
    if getattr(transformer, "scale_", None) is not None:
        _positive(transformer, "scale_", None)


def _imputer(imputer: Any) -> None:
    if "statistics_" in vars(imputer):
        shape = np.shape(imputer.statistics_)
        _require(shape == (imputer.n_features_in_,), f"statistics_ has shape {shape}")


def _missing(indicator: Any) -> None:
    if "features_" in vars(indicator):
        _indices(indicator, "features_", indicator._n_features)


def _encoder(encoder: Any) -> None:
    if "categories_" not in vars(encoder):
        return
    n = encoder.n_features_in_
    categories = encoder.categories_
    proper = isinstance(categories, list) and len(categories) == n
    proper = proper and all(isinstance(c, np.ndarray) and c.ndim == 1 for c in categories)
    _require(proper, f"categories_ is not of {n} columns")
    mappings = getattr(encoder, "_default_to_infrequent_mappings", [None] * n)
    _require(len(mappings) == n, f"the mappings of rare categories are not of {n} columns")
    for values, mapping in zip(categories, mappings, strict=True):
        if mapping is not None:
            inside = np.shape(mapping) == values.shape and mapping.dtype.kind in "iu"
            inside = inside and bool(((mapping >= 0) & (mapping < len(values))).all())
            _require(inside, "a mapping of rare categories points beyond them")


def _step(step: Any) -> None:
    proper = isinstance(step, BaseEstimator) or step in ("passthrough", "drop", None)
    _require(proper, f"a step of it is {type(step).__name__}, no estimator")


def _pipeline(pipeline: Any) -> None:
    _require(pipeline.memory is None, "memory names a folder, to write to and to read from")
    _require(isinstance(pipeline.steps, list) and len(pipeline.steps) > 0, "steps is no list")
    for name, step in pipeline.steps:
        _require(isinstance(name, str), "a step of it has no name")
        _step(step)


def _columns(transformer: Any) -> None:
    _require(transformer.n_jobs is None, "n_jobs asks for processes")
    for _, step, _ in [*transformer.transformers, *getattr(transformer, "transformers_", [])]:
        _step(step)


def _table_columns(transformer: Any) -> None:
    kinds = transformer.kinds
    proper = isinstance(kinds, dict) and all(
        isinstance(name, str) and kind in ("number", "date", "category")
        for name, kind in kinds.items()
    )
    _require(proper, "kinds is not of columns")


def _sparse_columns(transformer: Any) -> None:
    if "columns_" in vars(transformer):
        _indices(transformer, "columns_", transformer.n_features_in_)


def _ada_columns(transformer: Any) -> None:
    for column in getattr(transformer, "columns_", {}).values():
        inside = isinstance(column, int | np.integer) and 0 <= column < transformer.n_features_in_
        _require(inside, "columns_ points beyond the features")


def _pixels(transformer: Any) -> None:
    func = transformer.func
    _require(func is None or func.__module__ == "looms.challenge._preparation", "func is another")
    _require(transformer.kw_args is None, "kw_args are given")


def _nothing(part: Any) -> None:
    """Parameters, or a record of a search, which predicting does not use."""


#: What is checked, by the name of the type. No other objects come out of a model file.
CHECKS: dict[str, Callable[[Any], None]] = {
    "looms.calibration._beta.Beta": _beta,
    "looms.calibration._isotonic.Isotonic": _isotonic,
    "looms.calibration._sigmoid.Sigmoid": _sigmoid,
    "looms.challenge._preparation.ADAColumns": _ada_columns,
    "looms.challenge._preparation.ContinuousScaler": _scaler,
    "looms.challenge._reduced.ReducedLSSVMClassifierCV": _reduced_classifier,
    "looms.criteria.CrossEntropy": _nothing,
    "looms.criteria.Hinge": _nothing,
    "looms.criteria.PRESS": _nothing,
    "looms.criteria.SmoothedError": _nothing,
    "looms.criteria.SquaredHinge": _nothing,
    "looms.criteria.WMW": _nothing,
    "looms.estimators._classifier.LSSVMClassifier": _classifier,
    "looms.estimators._classifier_cv.LSSVMClassifierCV": _classifier,
    "looms.estimators._max_margin.MaxMarginClassifier": _pooled,
    "looms.estimators._nonconformity.NonconformityClassifier": _scored,
    "looms.estimators._pool.EstimatorPool": _nothing,
    "looms.estimators._regressor.LSSVMRegressor": _least_squares,
    "looms.estimators._regressor_cv.LSSVMRegressorCV": _least_squares,
    "looms.estimators._scored_pool.Conformity": _nothing,
    "looms.estimators._scored_pool.ScoredPool": _nothing,
    "looms.estimators._svc_cv.SVCCV": _support_vector_machine,
    "looms.estimators._svm_grid.SVMGrid": _grid,
    "looms.kernels._base.Constant": _nothing,
    "looms.kernels._base.Product": _composite,
    "looms.kernels._base.Sum": _composite,
    "looms.kernels._dot_product.Boolean": _nothing,
    "looms.kernels._dot_product.Linear": _nothing,
    "looms.kernels._dot_product.Polynomial": _polynomial,
    "looms.kernels._given.Precomputed": _nothing,
    "looms.kernels._normalized.Normalized": _composite,
    "looms.kernels._stationary.ARD": _nothing,
    "looms.kernels._stationary.RBF": _nothing,
    "looms.leave_one_out.LeaveOneOut": _nothing,
    "looms.optimise._search.Outcome": _nothing,
    "looms.optimise._search.Point": _nothing,
    "looms.optimise._search.Search": _nothing,
    "looms.selection._candidates.Candidate": _nothing,
    "looms.selection._prior.HyperPrior": _nothing,
    "looms.selection._tune.BoundMet": _nothing,
    "looms.selection._tune.Tuning": _nothing,
    "looms.tables.SparseColumns": _sparse_columns,
    "looms.tables.TableColumns": _table_columns,
    "looms.threshold.BalancedError": _nothing,
    "looms.threshold.Cost": _nothing,
    "looms.threshold.FBeta": _nothing,
    "looms.threshold.RequiredPrecision": _nothing,
    "looms.threshold.RequiredRecall": _nothing,
    "sklearn.compose._column_transformer.ColumnTransformer": _columns,
    "sklearn.impute._base.MissingIndicator": _missing,
    "sklearn.impute._base.SimpleImputer": _imputer,
    "sklearn.pipeline.Pipeline": _pipeline,
    "sklearn.preprocessing._data.MaxAbsScaler": _scaler,
    "sklearn.preprocessing._data.StandardScaler": _scaler,
    "sklearn.preprocessing._encoders.OneHotEncoder": _encoder,
    "sklearn.preprocessing._function_transformer.FunctionTransformer": _pixels,
}
