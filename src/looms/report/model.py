"""The fitted machine in an estimator: names, held-out predictions, its training problem."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from looms._classes import class_indices
from looms._typing import AnyArray, Array, Matrix
from looms.diagnostics import loo_margins
from looms.estimators._in_pipelines import parts_of
from looms.estimators._least_squares import LeastSquaresMachine
from looms.estimators._search import SelectingMachine, chosen_criterion
from looms.held_out import HeldOut
from looms.kernels import Kernel, Weighted
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._samples import training_rows, variances
from looms.report._feature_names import feature_names
from looms.report._selection import METHODS, chosen_by, combined_by_rest, n_choice_folds, unit_of
from looms.scores import Scored
from looms.selection import Objective
from looms.selection._nested import Nested
from looms.selection._tuning import BoundMet
from looms.units import Units

#: So many samples of every class are kept, if there are as many.
_FEW = 5


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted machine with names for its features.

    Attributes
    ----------
    machine : the last step.
    features, sources, named : names of its features, as `feature_names` gives them.
    """

    machine: LeastSquaresMachine
    features: list[str]
    sources: list[str]
    named: bool

    @property
    def classification(self) -> bool:
        return bool(is_classifier(self.machine))

    @property
    def held_out(self) -> HeldOut:
        """Output for every sample by the machine without its fold, its group or itself."""
        return self.machine.held_out_

    @cached_property
    def predictions(self) -> HeldOut:
        """Held-out outputs that can be compared with one another, like the figures.

        For classes, the outputs that decide: means over the pairs in which a sample is left out;
        if the choice was repeated without the sample, those of the machines so chosen. n³ flops.
        Of rows in blocks, without folds of ``cv``, those of the machines without one of ten folds.
        """
        held_out, nested, decisions = self.held_out, self.nested, None
        outputs = held_out.outputs.copy()
        if self.classification:
            decisions = self.scored.decisions
        if decisions is not None:
            outputs[self.scored.rows] = decisions.outputs
        elif nested is not None:
            outputs[nested.rows] = nested.held_out.outputs
        return HeldOut(held_out.y, outputs, held_out.sample_weight)

    @cached_property
    def scored(self) -> Scored:
        """Figures to quote, and the predictions that they rest on."""
        return scored(self.machine)

    @property
    def has_weight(self) -> AnyArray:
        """True for samples of positive weight: others take no part in the fit or the figures."""
        return np.asarray(self.held_out.sample_weight > 0)

    @property
    def n_with_weight(self) -> int:
        """Number of samples of positive weight."""
        return int(np.count_nonzero(self.has_weight))

    @property
    def units(self) -> Units:
        """Samples that the criterion held out together; those of weight zero stay."""
        return self.machine.units_

    @property
    def nested(self) -> Nested | None:
        """Predictions by machines that were chosen without the sample; None without."""
        nested: Nested | None = self.machine.nested_
        return nested

    @property
    def unit(self) -> str:
        """What is held out at a time: "sample", "group" or "fold"."""
        return unit_of(self.machine)

    @property
    def method(self) -> str:
        """Name of the method by which samples are held out."""
        return METHODS[self.unit]

    @property
    def chosen_by(self) -> str:
        """Name of the method by which the criterion held samples out."""
        return METHODS[chosen_by(self.machine)]

    @property
    def candidates_by(self) -> str:
        """Name of the method by which the candidates' score held samples out."""
        n_folds = n_choice_folds(self.machine)
        return f"{n_folds}-fold {METHODS['fold']}" if n_folds else self.chosen_by

    @property
    def repeated(self) -> str | None:
        """What was repeated without the sample; None for nothing."""
        if self.nested is None:
            return None
        of_groups = self.unit == "fold" and self.units.grouped
        each = f"{self.unit} of whole groups" if of_groups else self.unit
        if combined_by_rest(self.machine):
            verb = "weighed" if self.stacked else "chosen"
            return f"candidates were tuned anew without each {each}, and {verb} by the other folds"
        return f"the choice was repeated without each {each}"

    @property
    def stacked(self) -> bool:
        """True for a stack of machines; ``kernel_`` is then that of the largest."""
        return len(self.machine.members_) > 1

    @property
    def n_landmarks(self) -> int | None:
        """Number of landmarks; None if the coefficients belong to all samples."""
        landmarks: Matrix | None = self.machine.landmarks_
        return None if landmarks is None else landmarks.shape[0]

    @property
    def rows(self) -> Matrix | None:
        """Samples that the machine was fitted to; None for rows in blocks, which are not kept."""
        rows: Matrix | None = self.machine.X_fit_
        return rows

    @property
    def variances(self) -> Array:
        """(n_features,) variances over the samples, or the landmarks if samples are not kept."""
        return variances(self.machine.landmarks_ if self.rows is None else self.rows)

    @property
    def pairwise(self) -> bool:
        """True if the samples are rows of a kernel matrix, without features."""
        return bool(self.machine.kernel_.pairwise)

    @property
    def columns(self) -> dict[str, list[int]]:
        """Features by the column of the table that they were made from."""
        columns: dict[str, list[int]] = {}
        for k, source in enumerate(self.sources):
            columns.setdefault(source, []).append(k)
        return columns

    @property
    def selecting(self) -> SelectingMachine | None:
        """The machine if it chose its hyper-parameters itself."""
        return self.machine if isinstance(self.machine, SelectingMachine) else None

    @property
    def classes(self) -> list[str]:
        return [str(label) for label in getattr(self.machine, "classes_", [])]

    @property
    def threshold(self) -> float | Array:
        threshold: float | Array = getattr(self.machine, "threshold_", 0.0)
        return threshold


def model_of(estimator: Any) -> Model:
    """The least-squares machine in a fitted estimator; TypeError or NotFittedError without one.

    The estimator is the machine, a pipeline that ends in it, or a search with such a
    ``best_estimator_``.
    """
    machine = parts_of(estimator).last
    if not isinstance(machine, LeastSquaresMachine):
        raise TypeError(
            f"A report shows least-squares machines of looms, such as LSSVMClassifierCV, and "
            f"pipelines that end in one; got {type(estimator).__name__}."
        )
    check_is_fitted(machine, "fit_weight_")
    return named(estimator, machine)


def scored(machine: Any) -> Scored:
    """``scores_`` of a machine with their errors and the decisions that they rest on."""
    figures: Scored = machine._scored()
    return figures


def named(estimator: Any, machine: Any) -> Model:
    """A fitted looms machine with the feature names of the estimator around it."""
    _ = machine.nested_  # which takes ten fits, and stays with the user's own
    # What else is computed of it on the way, such as an n×n matrix, does not.
    known, machine = vars(machine), copy(machine)
    vars(machine).update(known)
    return Model(machine, *feature_names(Pipeline(parts_of(estimator).steps), machine))


def selecting_model(estimator: Any, purpose: str) -> tuple[Model, SelectingMachine]:
    """`model_of` and its machine; TypeError unless that chose its hyper-parameters itself."""
    model = model_of(estimator)
    if model.selecting is None:
        name = type(model.machine).__name__
        raise TypeError(
            f"{purpose} shows how hyper-parameters were chosen, but {name} was given them; fit "
            f"{name}CV."
        )
    return model, model.selecting


def parameter_name(model: Model, tuned: Hyperparameter | BoundMet) -> str:
    """A hyper-parameter's name, with that of the feature that it belongs to."""
    if tuned.feature is None:
        return tuned.name
    return f"{tuned.word} of {model.features[tuned.feature]}"


def relevances(model: Model) -> Array | None:
    """Relevance of each feature, as in `looms.report.RelevanceDisplay`; None without scales.

    For a stack, those of its largest member; for rows in blocks, those over the landmarks.
    """
    kernel, gammas, is_ard = model.machine.kernel_, np.zeros(model.machine.n_features_in_), False
    for h in kernel.hyperparameters:
        if h.word == "gamma" and h.feature is not None and h.value is not None:
            gammas[h.feature] += h.value
            is_ard = True
    if isinstance(kernel, Weighted):
        gammas, is_ard = np.asarray(kernel.weights) * (gammas if is_ard else 1.0), True
    if not is_ard:
        return None
    part = gammas * model.variances
    return np.asarray(part / part.sum()) if part.sum() > 0 else part


def residual_sizes(model: Model) -> Array:
    """Size of the leave-one-out residual, (n_samples,); the norm for several targets.

    For classes it is [1 − t f]₊, by how much the output falls short of the label: an output beyond
    ±1 on the right side does not count. NaN for a sample of weight zero, which is not left out.
    """
    loo = model.held_out
    sizes = np.maximum(loo.y * loo.residuals, 0) if model.classification else np.abs(loo.residuals)
    sizes = sizes if sizes.ndim == 1 else np.linalg.norm(sizes, axis=1)
    return np.where(model.has_weight, sizes, np.nan)


def predicted_labels(model: Model) -> AnyArray:
    """Index of the class that most machines without a sample give it, (n_samples,)."""
    labels = np.asarray(loo_margins(model.machine).argmax(axis=1))
    decisions = model.scored.decisions
    if decisions is not None:
        labels[model.scored.rows] = decisions.predicted
    return labels


def sampled_rows(model: Model, size: int, random_state: int) -> AnyArray:
    """At most about ``size`` rows of positive weight, stratified by class.

    ValueError if the machine keeps no rows.
    """
    if model.rows is None:
        raise ValueError(
            "This needs the training rows in memory, but the machine was fitted to rows in blocks."
        )
    weighted = np.flatnonzero(model.has_weight)
    if len(weighted) <= size:
        return weighted
    rng = np.random.RandomState(random_state)
    if not model.classification:
        return np.sort(rng.choice(weighted, size, replace=False))
    labels = class_indices(model.held_out.y)[weighted]
    chosen = []
    for label in np.unique(labels):
        members = weighted[labels == label]
        quota = max(round(size * len(members) / len(weighted)), min(_FEW, len(members)))
        chosen.append(rng.choice(members, quota, replace=False))
    return np.sort(np.concatenate(chosen))


def training_objective(
    model: Model, rows: AnyArray, X: Matrix | None = None, kernel: Kernel | None = None
) -> Objective:
    """The criterion by which the machine was chosen, on some rows of its samples.

    ``X`` replaces these rows if they differ from those of the fit; ``kernel`` is that of a machine
    of the stack other than the largest.
    """
    machine: Any = model.machine
    loo = machine.loo_
    selection_weight = getattr(machine, "selection_weight_", loo.sample_weight)
    return Objective(
        training_rows(machine.X_fit_, rows, model.pairwise) if X is None else X,
        loo.y[rows],
        kernel=machine.kernel_ if kernel is None else kernel,
        criterion=chosen_criterion(machine),
        sample_weight=machine.fit_weight_[rows],
        selection_weight=selection_weight[rows],
        units=model.units.among(rows),
        # As it was fitted: the parameter may have been set anew since.
        fit_intercept=machine.fit_intercept_,
    )
