"""Checks of the fitted state of models, kernels and calibrators.

A model that is not fitted has no state to check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from looms.calibration._beta import Beta
from looms.calibration._isotonic import Isotonic
from looms.calibration._sigmoid import Sigmoid
from looms.calibration._softmax import Softmax
from looms.fitted._fitted import Fitted
from looms.fitted._ordered import CumulativeSigmoid, OrderedClasses
from looms.fitted._outcome import Classes, Numbers
from looms.kernels import Kernel
from looms.kernels._samples import Samples
from looms.lssvm.fit import KernelMember, LandmarkMember, Member
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
    name = "labels" if hasattr(owner, "labels") else "classes_"
    given = getattr(owner, name)
    classes = np.unique(given)
    proper = len(classes) >= 2 and given.shape == classes.shape
    require(proper, f"{name} is not of two or more labels")
    return len(classes)


# Models ---------------------------------------------------------------------------


def _kernel_of(kernel: Any, X: Any) -> None:
    """Kernel whose hyper-parameters are positive numbers, for the number of features."""
    kernel.started(Samples(X[:1]))  # checks all values, of those that are not tuned too
    kernel.theta  # noqa: B018 (raises for a value of None)


def _held_out(owner: Any, name: str, shape: tuple[int, ...]) -> None:
    outputs = getattr(owner, name)
    require(outputs.y.shape == shape, f"{name} has shape {outputs.y.shape}, not {shape}")


def rows(rows: Any) -> None:
    n = len(numbers(rows, "weight", None))
    for name in ("weight", "fit_weight", "selection_weight"):
        require(bool((numbers(rows, name, n) >= 0).all()), f"{name} is negative")
    targets = numbers(rows, "targets", n, *(None for _ in rows.targets.shape[1:]))
    if rows.numbers is not None:
        numbers(rows, "numbers", *targets.shape)
    places(rows, "groups", n, n)
    if rows.X is not None:
        require(_samples(rows, "X", rows.X.shape[1])[0] == n, "X is of other rows")


def fitted(fitted: Any) -> None:
    fitted.__post_init__()
    rows, n = fitted.rows, len(fitted.rows.weight)
    require(all(isinstance(member, Member) for member in fitted.members), "members are no members")
    _members(fitted, fitted.members, n)
    for name in ("loo_outputs", "held_out_outputs"):
        numbers(fitted, name, *rows.targets.shape)
    require(0 <= fitted.rule.tie < 1, "tie is no small number")
    selection, m = fitted.selection, int(np.count_nonzero(rows.weight))
    if selection is not None:
        index(selection, "index", len(selection.candidates))
        if fitted.candidate_weights is not None:
            numbers(fitted, "candidate_weights", len(selection.candidates))
        if selection.closed is not None:
            require(isinstance(selection.closed, KernelMember), "closed has no kernel")
            _kernel_member(fitted, selection.closed, n)
    if fitted.in_folds is not None:
        _choices(fitted, fitted.in_folds)
    if fitted.blocks_scored_in is not None:
        units, outputs = fitted.blocks_scored_in
        proper = len(units.clusters) == m and outputs.shape == (m, *rows.targets.shape[1:])
        require(proper and outputs.dtype == np.float64, "blocks_scored_in is of other rows")
    _OUTCOMES[type(rows.outcome)](fitted)


def _transforms(fitted: Any) -> None:
    """Check the transform of numbers."""
    require(fitted.outcome.transform in TARGET_TRANSFORMS, "transform is not known")


def _decides(fitted: Any) -> None:
    """Check threshold and calibrator of classes."""
    n_classes, rule = _classes(fitted.outcome), fitted.rule
    shape = fitted.rows.targets.shape[1:]
    require(shape == (() if n_classes == 2 else (n_classes,)), f"targets have shape {shape}")
    if isinstance(rule.calibrator, Softmax):
        proper = n_classes > 2 and np.shape(rule.calibrator.constants) == (n_classes,)
        require(proper, f"calibrator is not of {n_classes} classes")
        numbers(rule, "threshold", *np.shape(rule.threshold)[:1] and (n_classes,))
        return
    proper = rule.calibrator is None or isinstance(rule.calibrator, _CALIBRATORS)
    require(proper, "calibrator is not a calibrator")
    numbers(rule, "threshold")


def _orders(fitted: Any) -> None:
    """Check ranks, cuts and calibrator of ordered classes."""
    n, n_classes, rule = len(fitted.rows.weight), _classes(fitted.outcome), fitted.rule
    ranks = places(fitted.outcome, "ranks", n_classes, n_classes)
    require(np.array_equal(np.sort(ranks), np.arange(n_classes)), "ranks are not of the classes")
    targets = numbers(fitted.rows, "targets", n)
    require(bool(np.isin(targets, ranks).all()), "targets are no ranks")
    cuts = numbers(rule, "threshold", n_classes - 1)
    require(bool((np.diff(cuts) >= 0).all()), "threshold falls")
    if rule.calibrator is None:
        return
    proper = isinstance(rule.calibrator, CumulativeSigmoid)
    require(proper, "calibrator is not of ordered classes")
    require(bool(numbers(rule.calibrator, "slope") >= 0), "slope is negative")
    constants = numbers(rule.calibrator, "constants", n_classes - 1)
    require(bool((np.diff(constants) > 0).all()), "constants do not rise")


_OUTCOMES: dict[type, Callable[[Any], None]] = {
    Classes: _decides,
    Numbers: _transforms,
    OrderedClasses: _orders,
}


def _choices(fitted: Any, nested: Any) -> None:
    """Check models that were chosen without each fold."""
    trained = np.flatnonzero(fitted.rows.weight)
    require(np.array_equal(nested.rows, trained), "choices are not of the rows fitted")
    for model in nested.models:
        if isinstance(model, Setting):
            _kernel_of(model.kernel, fitted.rows.X)
            positive(model, "mu")
        elif not isinstance(model, Fitted):
            require(type(model) is tuple, "folds are not of such models")
            _members(fitted, model, len(trained))
    require(len({type(model) for model in nested.models}) == 1, "folds are of different models")


def _members(fitted: Any, members: Any, n: int) -> None:
    """Check the models that are summed, on ``n`` samples or on landmarks."""
    shape = fitted.rows.targets.shape[1:]
    require(len(members) > 0, "members are not there")
    for member in members:
        require(bool(numbers(member, "weight") >= 0), "weight is negative")
        require(member.pairwise == members[0].pairwise, "members take other samples")
        if isinstance(member, KernelMember):
            _kernel_member(fitted, member, n)
            continue
        require(member.shape == shape, f"shape {member.shape} is of others")
        m = len(numbers(member, "held_out", None, *shape))
        n_rows, n_units = m, 0
        if member.units is not None:
            n_rows, n_units = member.units.shape[1], member.units.n_units
        require(n_rows == m and len(member.without) == n_units, "without is not of the folds")
        alike = all(
            type(other) is type(member) and other.shape == shape for other in member.without
        )
        require(alike, "without is not of such members")
    require(abs(sum(member.weight for member in members) - 1) < 1e-6, "weights do not sum to one")


def _kernel_member(fitted: Any, member: KernelMember, n: int) -> None:
    shape, on_landmarks = fitted.rows.targets.shape[1:], isinstance(member, LandmarkMember)
    require(not (on_landmarks and member.pairwise), "landmarks are of a kernel matrix")
    if isinstance(member, SupportVectorMember) and shape:
        shape = (shape[0] * (shape[0] - 1) // 2,)
        numbers(member, "sigmoids", 2, *shape)
    _kernel_of(member.kernel, member.basis(fitted.rows.X))
    positive(member, "mu")
    n_features = fitted.n_features
    m = _samples(member, "landmarks", n_features)[0] if on_landmarks else n
    numbers(member, "dual_coef", m, *shape)
    if member.coef is not None:
        numbers(member, "coef", n_features, *shape)
    numbers(member, "intercept", *shape)


def model(model: Any) -> None:
    """Check that scores are of the rows fitted, and columns those of the members."""
    fitted = model.fitted_
    require(fitted.outcome.decides == is_classifier(model), "the outcome is another")
    n_features = model.n_features_in_
    if fitted.columns is not None:
        require(n_features == fitted.columns.n_features_in_, "columns are of another table")
        n_features = len(fitted.columns.get_feature_names_out())
    require(n_features == fitted.n_features, "the members are of other features")
    recipe = fitted.recipe
    require(recipe is None or type(recipe) is type(model), "recipe is another model")
    for scores in model._scores.values():
        trained = np.flatnonzero(fitted.rows.weight)
        require(np.array_equal(scores.rows, trained), "scores are not of the rows fitted")
        n = len(fitted.rows.weight)
        require(scores.predictions.n_samples == n, "predictions are of other rows")
        if scores._nested is not None:
            _choices(fitted, scores._nested)


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
    _decided(made, len(outputs), outputs.shape[1] if outputs.ndim == 2 else 2)


def ordered_decisions(made: Any) -> None:
    n, n_classes = numbers(made, "shares", None, None).shape
    numbers(made, "outputs", n)
    _decided(made, n, n_classes)
    if made.probabilities is not None:
        numbers(made, "ranked", n)


def _decided(made: Any, n: int, n_classes: int) -> None:
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
