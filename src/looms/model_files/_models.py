"""Checks of the fitted state of models, kernels and calibrators.

A model that is not fitted has no state to check.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_regressor

from looms._typing import AnyArray
from looms.calibration._beta import Beta
from looms.calibration._isotonic import Isotonic
from looms.calibration._sigmoid import Sigmoid
from looms.calibration._softmax import Softmax
from looms.kernels import Kernel
from looms.kernels._samples import Samples
from looms.lssvm.fit import KernelMember, LandmarkMember
from looms.model_files._values import index, indices, is_of, numbers, places, positive, require
from looms.selection._nested import Setting
from looms.selection._target_transforms import TARGET_TRANSFORMS
from looms.svm.member import SupportVectorMember

#: Highest degree of a polynomial, because powers are multiplied out one by one.
_HIGHEST_DEGREE = 1000
_CALIBRATORS = (Beta, Isotonic, Sigmoid)


def _samples(owner: Any, name: str, n_features: int | None = None) -> tuple[int, int]:
    """Shape of a matrix of finite samples with ``n_features`` columns, or ``n_features_in_``."""
    X = getattr(owner, name)
    if sparse.issparse(X):
        require(X.format == "csr", f"{name} is not in CSR format")
        X.check_format(full_check=True)
        require(X.dtype.kind == "f" and bool(np.isfinite(X.data).all()), f"{name} is not finite")
    else:
        numbers(owner, name, None, None)
    n, d = X.shape
    n_features = owner.n_features_in_ if n_features is None else n_features
    require(n > 0 and d == n_features, f"{name} has shape {X.shape}")
    return n, d


def _classes(owner: Any) -> int:
    classes = np.unique(owner.classes_)
    proper = len(classes) >= 2 and owner.classes_.shape == classes.shape
    require(proper, "classes_ is not of two or more labels")
    return len(classes)


# Models ---------------------------------------------------------------------------


def _kernel_of(kernel: Any, X: Any) -> None:
    """Kernel whose hyper-parameters are positive numbers, for the number of features."""
    kernel.started(Samples(X[:1]))  # checks all values, of those that are not tuned too
    kernel.theta  # noqa: B018 (raises for a value of None)


def _held_out(owner: Any, name: str, shape: tuple[int, ...]) -> None:
    outputs = getattr(owner, name)
    require(outputs.y.shape == shape, f"{name} has shape {outputs.y.shape}, not {shape}")


def _weights(owner: Any, n: int) -> None:
    for name in ("fit_weight_", "selection_weight_"):
        if name in vars(owner):
            require(bool((numbers(owner, name, n) >= 0).all()), f"{name} is negative")


def _together(owner: Any, n: int) -> None:
    """Check what is held out together."""
    for units in (owner.units_, getattr(owner, "choice_units_", None) or owner.units_):
        require(len(units.clusters) == n, "units_ are of other rows")


def _models_of_folds(owner: Any, weight: AnyArray) -> tuple[Any, ...]:
    """Models chosen without each fold, if any; checks that these, and scores, are of all rows
    fitted."""
    later, seed = owner._unfitted, {"_outer_seed", "model_"} & {*vars(owner)}
    proper = later is None or (type(later) is type(owner) and bool(seed))
    require(proper, "_unfitted is another model")
    evaluated = [one for one in (owner._nested_scores, owner._own_scores) if one is not None]
    chosen = [one for one in (*(s._nested for s in evaluated), owner._in_folds) if one is not None]
    for one in (*evaluated, *chosen):
        same = np.array_equal(one.rows, np.flatnonzero(weight))
        require(same, "scores are not of the rows fitted")
    for scores in evaluated:
        require(scores.predictions.n_samples == len(weight), "predictions are of other rows")
    return tuple(model for one in chosen for model in one.models)


def _members(model: Any, members: Any, n: int) -> None:
    """Check the models that are summed, on ``n`` samples or on landmarks."""
    require(len(members) > 0, "members_ are not there")
    for one in members:
        require(bool(numbers(one, "weight") >= 0), "weight is negative")
        require(one.pairwise == members[0].pairwise, "members_ take other samples")
        if isinstance(one, KernelMember):
            _kernel_member(model, one, n)
        else:
            require(one.shape == model.loo_.y.shape[1:], f"shape {one.shape} is of others")
            m = len(numbers(one, "held_out", None, *one.shape))
            n_rows, n_units = (
                (m, 0) if one.units is None else (one.units.shape[1], one.units.n_units)
            )
            proper = n_rows == m and len(one.without) == n_units
            alike = all(type(each) is type(one) and each.shape == one.shape for each in one.without)
            require(proper and alike, "without is not of the folds of the rows")
    require(abs(sum(one.weight for one in members) - 1) < 1e-6, "the weights do not sum to one")


def _chosen_in_fold(model: Any, one: Any, n: int) -> None:
    """Check what was chosen without a fold of ``n`` samples: members, or a point of a grid."""
    if isinstance(one, Setting):
        _kernel_of(one.kernel, model.X_fit_)
        positive(one, "mu")
    else:
        _members(model, one, n)


def _kernel_member(model: Any, one: KernelMember, n: int) -> None:
    shape, on_landmarks = model.loo_.y.shape[1:], isinstance(one, LandmarkMember)
    require(not (on_landmarks and one.pairwise), "landmarks are of a kernel matrix")
    if isinstance(one, SupportVectorMember) and shape:
        shape = (shape[0] * (shape[0] - 1) // 2,)
        numbers(one, "sigmoids", 2, *shape)
    _kernel_of(one.kernel, one.basis(model.X_fit_))
    positive(one, "mu")
    m = _samples(one, "landmarks", model.n_features_in_)[0] if on_landmarks else n
    numbers(one, "dual_coef", m, *shape)
    if one.coef is not None:
        numbers(one, "coef", model.n_features_in_, *shape)
    numbers(one, "intercept", *shape)


def least_squares(model: Any) -> None:
    n = len(model.fit_weight_) if model.X_fit_ is None else _samples(model, "X_fit_")[0]
    _members(model, model.members_, n)
    for name in ("loo_", "held_out_"):
        _held_out(model, name, (n, *model.loo_.y.shape[1:]))
    require(0 <= model._tie < 1, "_tie is no small number")
    best = getattr(model, "_best_closed", None)
    if best is not None:
        require(isinstance(best, KernelMember), "_best_closed has no kernel")
        _kernel_member(model, best, n)
    _weights(model, n)
    _together(model, n)
    m = int(np.count_nonzero(model.fit_weight_))
    for one in _models_of_folds(model, model.fit_weight_):
        _chosen_in_fold(model, one, m)
    if model._scored_in is not None:
        (units, outputs), shape = model._scored_in, (m, *model.loo_.y.shape[1:])
        proper = len(units.clusters) == m and outputs.shape == shape
        require(proper and outputs.dtype == np.float64, "_scored_in is not of the rows fitted")
    if "candidates_" in vars(model):
        n_candidates = len(model.candidates_)
        index(model, "best_index_", n_candidates)
        if model.candidate_weights_ is not None:
            numbers(model, "candidate_weights_", n_candidates)


def tabular(model: Any) -> None:
    inner, weight = model.model_, model.model_.fit_weight_
    require("members_" in vars(inner), "model_ is not fitted")
    before = model.preprocessor_
    n_features = model.n_features_in_ if before is None else len(before.get_feature_names_out())
    require(n_features == inner.n_features_in_, "model_ is of other features")
    nested = getattr(model._nested_scores, "_nested", None)
    for one in _models_of_folds(model, weight):
        if type(one) is not type(model):
            _chosen_in_fold(inner, one, int(np.count_nonzero(weight)))
    models = getattr(nested, "models", ())  # those that were compared
    by_model = model._is_plain or bool(inner._nested_scores)
    proper = {tuple, Setting} if by_model else {type(model)}
    require({type(one) for one in models} <= proper, "folds are not of such models")
    if is_regressor(model):
        require(model.transform_ in TARGET_TRANSFORMS, "transform_ is not known")
        for name in ("loo_", "held_out_"):
            _held_out(model, name, inner.loo_.y.shape)
        shape = (int(np.count_nonzero(weight)), *model.held_out_.y.shape[1:])
        repeated = model._repeated  # NaN where a row is not tested
        proper = repeated.dtype == np.float64 and repeated.shape[1:] == shape
        require(proper and not np.isinf(repeated).any(), "_repeated is not of the rows fitted")


def trees(model: Any) -> None:
    if "roots_" not in vars(model):
        return
    n, t = len(model.feature_), len(numbers(model, "baseline_", None))
    places(model, "feature_", model.n_features_in_, n)
    places(model, "children_", n, n, 2)
    places(model, "roots_", n, None, t)
    numbers(model, "threshold_", n)
    numbers(model, "value_", n)
    index(model, "depth_", n)
    if is_classifier(model):
        n_classes = len(np.unique(model.classes_))
        require(n_classes == t if t > 1 else n_classes <= 2, "classes_ are of other trees")


def certificate(certificate: Any) -> None:
    require(numbers(certificate, "rows", None).dtype.kind in "iu", "rows are not integers")
    for name in ("difference", "relative", "bound", "condition"):
        value = getattr(certificate, name)
        require(value is None or not value < 0, f"{name} is not a size")


def classifier(model: Any) -> None:
    least_squares(model)
    n_classes = _classes(model)
    shape = model.loo_.y.shape[1:]
    require(shape == (() if n_classes == 2 else (n_classes,)), f"targets have shape {shape}")
    calibrator = getattr(model, "calibrator_", None)
    if isinstance(calibrator, Softmax):
        proper = n_classes > 2 and np.shape(calibrator.constants) == (n_classes,)
        require(proper, f"calibrator_ is not of {n_classes} classes")
        numbers(model, "threshold_", *np.shape(model.threshold_)[:1] and (n_classes,))
    else:
        require(
            calibrator is None or isinstance(calibrator, _CALIBRATORS),
            "calibrator_ is not a calibrator",
        )
        numbers(model, "threshold_")


def scores(scores: Any) -> None:
    n = len(numbers(scores, "rows", None))
    for pair in scores.with_errors.values():
        require(is_of(pair, tuple[float, float]), "scores are not pairs of numbers")
    made = scores.decisions
    require(made is None or len(made.predicted) == n, f"decisions are not of {n} rows")


def nested(nested: Any) -> None:
    n = len(numbers(nested, "rows", None))
    _held_out(nested, "held_out", (n, *nested.held_out.y.shape[1:]))
    made = nested.decisions
    if made is not None:
        require(len(made.predicted) == n, f"decisions are not of {n} rows")
    require(0 <= nested.tie < 1, "tie is no small number")
    places(nested, "model_of_fold", len(nested.models), nested.units.n_units)
    tested = nested.units.tested
    once = tested.shape[1] == n and bool((tested.sum(axis=0) == 1).all())
    require(once, f"units are not of {n} rows, each tested once")


def units(units: Any) -> None:
    number = places(units, "number", units.number.size, None, None, least=-1)
    places(units, "clusters", number.size, number.shape[1])
    require(
        numbers(units, "tested", *number.shape).dtype == bool, "tested is not of true and false"
    )


def decisions(made: Any) -> None:
    outputs = numbers(made, "outputs", *(None for _ in np.shape(made.outputs)))
    n, n_classes = len(outputs), outputs.shape[1] if outputs.ndim == 2 else 2
    places(made, "predicted", n_classes, n)
    numbers(made, "wrong", n)
    if made.probabilities is not None:
        numbers(made, "probabilities", n, n_classes)
        numbers(made, "losses", n)


def scored(model: Any) -> None:
    if "_pool" not in vars(model):
        return
    n_classes = _classes(model)
    pool = model._pool
    require(pool.n_classes == n_classes, f"the pool is not of {n_classes} classes")
    if hasattr(pool, "X"):
        require(pool.X.shape[1] == model.n_features_in_, f"the pool has shape {pool.X.shape}")
    n_rows = len(numbers(model, "validation_", None))
    numbers(model, "_validation_labels", n_rows)
    numbers(model, "_labels_by_others", n_rows)
    numbers(model, "validation_scores_", len(model.pool_), n_rows)
    require(len(indices(model, "deciding_", len(model.pool_))) > 0, "no model decides")


def grid(grid: Any) -> None:
    n_pairs = grid.n_classes * (grid.n_classes - 1) // 2
    n, _ = numbers(grid, "X", None, None).shape
    positive(grid, "gammas", None)
    positive(grid, "Cs", None)
    sizes = len(grid.gammas), len(grid.Cs)
    numbers(grid, "coef", *sizes, n, n_pairs)
    numbers(grid, "intercept", *sizes, n_pairs)


# Kernels and calibrators ----------------------------------------------------------


def polynomial(kernel: Any) -> None:
    degree = kernel.degree
    proper = isinstance(degree, int | np.integer) and 1 <= degree <= _HIGHEST_DEGREE
    require(proper, f"the degree is not from 1 to {_HIGHEST_DEGREE}")


def composite(kernel: Any) -> None:
    require(all(isinstance(part, Kernel) for part in kernel.parts), "a part of it is not a kernel")


def sigmoid(sigmoid: Any) -> None:
    for name in ("slope", "intercept"):
        numbers(sigmoid, name)


def softmax(softmax: Any) -> None:
    require(bool(numbers(softmax, "slope") >= 0), "slope is negative")
    numbers(softmax, "constants", None)


def beta(beta: Any) -> None:
    for name in ("a", "b", "c"):
        numbers(beta, name)


def isotonic(isotonic: Any) -> None:
    (n,) = numbers(isotonic, "outputs", None).shape
    values = numbers(isotonic, "probabilities", n)
    require(
        n > 0 and bool(((values >= 0) & (values <= 1)).all()), "probabilities are not from 0 to 1"
    )
