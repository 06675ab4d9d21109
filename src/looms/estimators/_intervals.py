"""Prediction intervals and sets of fitted machines, from their leave-one-out models."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._classes import class_indices
from looms._typing import AnyArray, Array, Matrix
from looms.conformal import jackknife_minmax, jackknife_plus, prediction_sets
from looms.conformal._jackknife import required_rank
from looms.conformal._sets import class_margins
from looms.estimators._loo_models import MachineModels, machine_models

METHODS = ("plus", "minmax", "scaled")


def intervals(machine: Any, X: Matrix, coverage: Any, method: Any) -> Array:
    """(m, 2) or (m, t, 2) intervals at validated samples."""
    if not (isinstance(method, str) and method in METHODS):
        raise ValueError(f"Unknown method {method!r}; known are {', '.join(METHODS)}.")
    n = int((machine.fit_weight_ > 0).sum())
    required_rank(coverage, n)  # an error before any work
    if method == "scaled" and n < 3:
        raise ValueError(f"method='scaled' needs three samples of non-zero weight, got {n}.")
    trained = machine_models(machine)
    if method == "scaled" and trained.models.sets:
        raise ValueError("method='scaled' holds out single rows: it needs copies='apart'.")
    r = trained.models.residuals
    found = np.empty((X.shape[0], *r.shape[1:], 2))
    for rows, K, F in trained.outputs(X):
        if method == "plus":
            found[rows] = jackknife_plus(r, F, coverage)
        elif method == "minmax":
            found[rows] = jackknife_minmax(r, F, coverage)
        else:
            found[rows] = _scaled(trained, r, K, F, coverage)
    return found


def _scaled(trained: MachineModels, r: Array, K: Array, F: Array, coverage: float) -> Array:
    loo_scales = np.stack([scale.loo for scale in trained.local_scales], axis=-1)
    scales = np.stack([scale.at(K) for scale in trained.local_scales], axis=-1)
    return jackknife_plus(
        r, F, coverage, loo_scales=loo_scales.reshape(r.shape), scales=scales.reshape(F.shape)
    )


def sets(machine: Any, X: Matrix, coverage: Any, class_conditional: bool) -> AnyArray:
    """(m, k) prediction sets at validated samples."""
    seen = machine.fit_weight_ > 0
    codes = machine.loo_.y[seen]
    labels = class_indices(codes)
    if class_conditional:
        _check_classes(coverage, labels, machine.classes_)
    else:
        required_rank(coverage, len(labels))
    trained = machine_models(machine)
    loo = codes - trained.models.residuals
    loo_scores = class_margins(_with_last_axis(loo, codes))[np.arange(len(labels)), labels]
    found = np.empty((X.shape[0], len(machine.classes_)), dtype=bool)
    for rows, _, F in trained.outputs(X):
        scores = class_margins(_with_last_axis(F, codes))
        found[rows] = prediction_sets(
            loo_scores, scores, coverage, labels if class_conditional else None
        )
    return found


def _with_last_axis(outputs: Array, codes: Array) -> Array:
    return outputs[..., None] if codes.ndim == 1 else outputs


def _check_classes(coverage: Any, labels: AnyArray, classes: AnyArray) -> None:
    for name, count in zip(classes.tolist(), np.bincount(labels).tolist(), strict=True):
        try:
            required_rank(coverage, count)
        except ValueError as error:
            raise ValueError(f"Class {name!r}: {error}") from None
