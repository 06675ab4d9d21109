"""Checks of the fitted state of models, kernels and calibrators.

A model that is not fitted has no state to check.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from looms.calibration._beta import Beta
from looms.calibration._calibrators import calibration_function
from looms.calibration._isotonic import Isotonic
from looms.calibration._sigmoid import Sigmoid
from looms.calibration._softmax import Softmax
from looms.estimators._encoding import check_threshold
from looms.fitted._fitted import Fitted, are_summed
from looms.kernels import Kernel
from looms.kernels._samples import Samples
from looms.lssvm.fit import KernelMember, LandmarkMember
from looms.model_files._values import index, indices, numbers, places, positive, require
from looms.selection._candidates import Candidate
from looms.selection._nested import Setting
from looms.selection._target_transforms import TARGET_TRANSFORMS
from looms.svm.member import SupportVectorMember

#: Highest degree of a polynomial, because powers are multiplied out one by one.
_HIGHEST_DEGREE = 1000
_CALIBRATORS = (Beta, Isotonic, Sigmoid, Softmax)


def _samples(owner: Any, name: str) -> tuple[int, int]:
    """Shape of a matrix of finite samples."""
    X = getattr(owner, name)
    if sparse.issparse(X):
        require(X.dtype.kind == "f" and bool(np.isfinite(X.data).all()), f"{name} is not finite")
    else:
        numbers(owner, name, None, None)
    n, d = X.shape
    require(n > 0, f"{name} has shape {X.shape}")
    return n, d


def _labels(owner: Any, name: str) -> int:
    """Number of labels, which are sorted and differ."""
    labels = getattr(owner, name)
    proper = len(labels) >= 2 and np.array_equal(np.unique(labels), labels)
    require(proper, f"{name} is not of two or more labels")
    return len(labels)


# Fitted models --------------------------------------------------------------------


def rows(rows: Any) -> None:
    n = len(numbers(rows, "weight", None))
    for name in ("weight", "fit_weight", "selection_weight"):
        require(bool((numbers(rows, name, n) >= 0).all()), f"{name} is negative")
    shape = numbers(rows, "targets", n, *(None for _ in rows.targets.shape[1:])).shape
    if rows.numbers is not None:
        numbers(rows, "numbers", *shape)
    places(rows, "groups", n, n)
    require(rows.X is None or _samples(rows, "X")[0] == n, "X is of other rows")


def classes(outcome: Any) -> None:
    _labels(outcome, "labels")
    check_threshold(outcome.threshold, outcome.calibration is not None)
    if outcome.calibration is not None:
        calibration_function(outcome.calibration)


def transformed(outcome: Any) -> None:
    known = {outcome.transform, *outcome.errors} <= TARGET_TRANSFORMS.keys()
    require(known, "a transform is not known")


def rule(rule: Any) -> None:
    numbers(rule, "threshold", *(None for _ in np.shape(rule.threshold)))
    proper = rule.calibrator is None or isinstance(rule.calibrator, _CALIBRATORS)
    require(proper, "calibrator is not a calibrator")
    require(0 <= rule.tie < 1, "tie is no small number")


def selected(selection: Any) -> None:
    proper = all(isinstance(candidate, Candidate) for candidate in selection.candidates)
    require(proper, "candidates are no candidates")
    index(selection, "index", len(selection.candidates))


def fitted(fitted: Any) -> None:
    fitted.__post_init__()
    n, selection = len(fitted.rows.weight), fitted.selection
    _members(fitted, fitted.members, n)
    if selection is not None and selection.closed is not None:
        require(isinstance(selection.closed, KernelMember), "closed has no kernel")
        _kernel_member(fitted, selection.closed, n)
    blocks = () if fitted.blocks_scored_in is None else fitted.blocks_scored_in[1:]
    for outputs in (fitted.loo_outputs, fitted.held_out_outputs, *blocks):
        require(outputs.dtype == np.float64, "outputs are no numbers")
    if fitted.candidate_weights is not None:
        numbers(fitted, "candidate_weights", None)
    if fitted.in_folds is not None:
        _choices(fitted, fitted.in_folds)
    if fitted.columns is not None:
        n_columns = len(fitted.columns.get_feature_names_out())
        require(n_columns == fitted.n_features, "the members are of other columns")
    require(fitted.table is None, "the table of the fit is there")


def _n_features(fitted: Any) -> int:
    """Number of features before the columns are prepared."""
    return int(fitted.n_features if fitted.columns is None else fitted.columns.n_features_in_)


def _choices(fitted: Any, nested: Any, kinds: tuple[type, ...] = (tuple,)) -> None:
    """Check models of some kinds that were chosen without each fold of the rows of the fit."""
    n, t = len(nested.rows), fitted.rows.targets.shape[1:]
    require(np.array_equal(nested.rows, fitted.rows.train), "choices are of other rows")
    require(nested.held_out.y.shape[1:] == t, "choices are of other targets")
    kind = type(nested.models[0])
    for model in nested.models:
        require(type(model) is kind and kind in kinds, "folds are not of such models")
        if kind is Setting:
            _kernel_of(model.kernel, fitted.rows.X)
            positive(model, "mu")
        elif kind is tuple:
            require(are_summed(model), "members do not agree")
            _members(fitted, model, n)
        else:
            alike = type(model.outcome) is type(fitted.outcome)
            alike = alike and model.rows.targets.shape[1:] == t
            require(
                alike and _n_features(model) == _n_features(fitted), "folds are of other models"
            )


def _members(fitted: Any, members: Any, n: int) -> None:
    """Check the models that are summed, on ``n`` samples or on landmarks."""
    for member in members:
        require(bool(numbers(member, "weight") >= 0), "weight is negative")
        if isinstance(member, KernelMember):
            _kernel_member(fitted, member, n)
        else:
            proper = member.shape == fitted.rows.targets.shape[1:] and member.held_out is not None
            require(proper, "a member is of other rows")


def _kernel_member(fitted: Any, member: KernelMember, n: int) -> None:
    shape, on_landmarks = fitted.rows.targets.shape[1:], isinstance(member, LandmarkMember)
    require(not (on_landmarks and member.pairwise), "landmarks are of a kernel matrix")
    if isinstance(member, SupportVectorMember) and shape:
        shape = (shape[0] * (shape[0] - 1) // 2,)
        numbers(member, "sigmoids", 2, *shape)
    _kernel_of(member.kernel, member.basis(fitted.rows.X))
    positive(member, "mu")
    n_features = fitted.n_features
    if on_landmarks:
        n, d = _samples(member, "landmarks")
        require(d == n_features, f"landmarks have {d} features")
    numbers(member, "dual_coef", n, *shape)
    if member.coef is not None:
        numbers(member, "coef", n_features, *shape)
    numbers(member, "intercept", *shape)


def _kernel_of(kernel: Any, X: Any) -> None:
    """Kernel whose hyper-parameters are positive numbers, for the number of features."""
    kernel.started(Samples(X[:1]))  # checks all values, of those that are not tuned too
    kernel.theta  # noqa: B018 (raises for a value of None)


def of_estimator(member: Any) -> None:
    """Check what an estimator has held out: outputs of rows, by members without each fold."""
    if member.held_out is None:
        require(member.units is None and not member.without, "without is of no rows")
        return
    n, n_units = len(numbers(member, "held_out", None, *member.shape)), 0
    if member.units is not None:
        n_units = member.units.n_units
        require(member.units.shape[1] == n, "units are of other rows")
    alike = all(other.shape == member.shape for other in member.without)
    require(alike and len(member.without) == n_units, "without is not of the folds")


def model(model: Any) -> None:
    fitted, outcome = model.fitted_, model.fitted_.outcome
    require(outcome.decides == is_classifier(model), "the outcome is another")
    require(model.n_features_in_ == _n_features(fitted), "the members are of other features")
    recipe = fitted.recipe
    require(recipe is None or type(recipe) is type(model), "recipe is another model")
    require({*model._scores} <= {"nested", "fit"}, "scores are of other choices")
    for name, scores in model._scores.items():
        require(np.array_equal(scores.rows, fitted.rows.train), "scores are of other rows")
        proper = scores.predictions.n_samples == len(fitted.rows.weight)
        require(proper, "predictions are of other rows")
        if scores._nested is not None:
            kinds = (Fitted, tuple, Setting) if name == "nested" else (tuple,)
            _choices(fitted, scores._nested, kinds)


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


def scores(scores: Any) -> None:
    n = len(numbers(scores, "rows", None))
    made = scores.decisions
    require(made is None or len(made.predicted) == n, f"decisions are not of {n} rows")


def nested(nested: Any) -> None:
    n = len(numbers(nested, "rows", None))
    require(nested.held_out.n_samples == n, f"held_out is not of {n} rows")
    of_rows = (nested.own_residuals, nested.held_out.y.shape), (nested.auc and nested.auc[1], (n,))
    for values, shape in of_rows:
        proper = values is None or (values.dtype, values.shape) == (np.float64, shape)
        require(proper, "residuals, or parts of the area, are of other rows")
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
    n_classes = _labels(model, "classes_")
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
