"""Leave-one-out models of a fitted machine at new points; prediction intervals and sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from looms._classes import class_indices
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.conformal import LocalScale, jackknife_minmax, jackknife_plus, prediction_sets
from looms.conformal._jackknife import required_rank
from looms.conformal._sets import class_margins
from looms.kernels import Kernel
from looms.kernels._samples import Pairs, Samples
from looms.lssvm.leave_one_out_models import LeaveOneOutModels

METHODS = ("plus", "minmax", "scaled")
_NUMBERS = 1 << 20  # in an array of a block


@dataclass(eq=False)
class MachineModels:
    """Leave-one-out models of a machine, for points as the machine itself takes them.

    Attributes
    ----------
    models : one for each sample that took part in the fit.
    seen : (n,) which of the training samples these are.
    """

    models: LeaveOneOutModels
    seen: Any
    _kernel: Kernel
    _basis: Samples

    def blocks(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        """Rows of ``X`` and their kernel values with the samples seen, (rows, n_seen).

        As many rows as give an array of rows × samples 2²⁰ numbers.
        """
        step = max(1, _NUMBERS // self._basis.n_samples)
        for start in range(0, X.shape[0], step):
            part = X[start : start + step]
            rows = Samples(part, start=start, center=self._basis.center)
            K = self._kernel.values(Pairs(rows, self._basis))
            yield slice(start, start + step), K if self.seen.all() else K[:, self.seen]

    def outputs(self, X: Matrix) -> Iterator[tuple[slice, Array, Array]]:
        """Rows of ``X``, their kernel values, and what every leave-one-out model gives there.

        As many rows as give an array of rows × samples × targets 2²⁰ numbers.
        """
        step = max(1, _NUMBERS // self.models.fit.alpha.size)
        with blas_threads(self._basis.n_samples):
            for rows, K in self.blocks(X):
                for start, F in zip(
                    range(0, len(K), step), self.models.output_blocks(K, step), strict=True
                ):
                    first = rows.start + start
                    yield slice(first, first + len(F)), K[start : start + step], F

    @cached_property
    def local_scales(self) -> list[LocalScale]:
        """Scale of the noise around a point, for each target."""
        K = np.vstack([K for _, K in self.blocks(self._basis.X)])[self.seen]
        residuals = self.models.pair_residuals()
        return [LocalScale(R, K) for R in np.moveaxis(residuals.reshape(*K.shape, -1), 2, 0)]


def intervals(machine: Any, X: Matrix, coverage: Any, method: Any) -> Array:
    """(m, 2) or (m, t, 2) intervals at validated samples."""
    if not (isinstance(method, str) and method in METHODS):
        raise ValueError(f"Unknown method {method!r}; known are {', '.join(METHODS)}.")
    n = int((machine.fit_weight_ > 0).sum())
    required_rank(coverage, n)  # an error before any work
    if method == "scaled" and n < 3:
        raise ValueError(f"method='scaled' needs three samples of non-zero weight, got {n}.")
    trained = machine.leave_one_out_models()
    r = trained.models.residuals
    ends = np.empty((X.shape[0], *r.shape[1:], 2))
    if method == "scaled":
        if trained.models.sets:
            raise ValueError("method='scaled' holds out single rows: it needs copies='apart'.")
        loo_scales = np.stack([scale.loo for scale in trained.local_scales], axis=-1)
        loo_scales = loo_scales.reshape(r.shape)
    for rows, K, F in trained.outputs(X):
        if method == "plus":
            ends[rows] = jackknife_plus(r, F, coverage)
        elif method == "minmax":
            ends[rows] = jackknife_minmax(r, F, coverage)
        else:
            scales = np.stack([scale.at(K) for scale in trained.local_scales], axis=-1)
            ends[rows] = jackknife_plus(
                r, F, coverage, loo_scales=loo_scales, scales=scales.reshape(F.shape)
            )
    return ends


def sets(machine: Any, X: Matrix, coverage: Any, class_conditional: bool) -> AnyArray:
    """(m, k) prediction sets at validated samples."""
    seen = machine.fit_weight_ > 0
    codes = machine.loo_.y[seen]
    labels = class_indices(codes)
    if class_conditional:
        for name, count in zip(machine.classes_.tolist(), np.bincount(labels), strict=True):
            try:
                required_rank(coverage, int(count))
            except ValueError as error:
                raise ValueError(f"Class {name!r}: {error}") from None
    else:
        required_rank(coverage, len(labels))
    trained = machine.leave_one_out_models()
    loo = codes - trained.models.residuals
    loo_scores = class_margins(loo.reshape(len(loo), -1))[np.arange(len(labels)), labels]
    members = np.empty((X.shape[0], len(machine.classes_)), dtype=bool)
    for rows, _, F in trained.outputs(X):
        scores = class_margins(F.reshape(*F.shape[:2], -1))
        members[rows] = prediction_sets(
            loo_scores, scores, coverage, labels if class_conditional else None
        )
    return members
