"""The leave-one-out models of a fitted machine at new points, by blocks of rows.

A fit keeps coefficients only: the inverse that the leave-one-out models need is n² numbers,
too many to keep in memory after every fit and in every model file. It is made again from
the training samples when it is first asked for, for n³ flops, and kept with the machine,
out of its pickled and saved state, until the machine is fitted anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.conformal import LocalScale
from looms.kernels import Kernel
from looms.kernels._gram import GramBlocks, gram_into
from looms.kernels._samples import Pairs, Samples, centre_of, training_rows
from looms.lssvm._held_out_sets import held_out_sets
from looms.lssvm.cholesky import solve_in_place
from looms.lssvm.leave_one_out_models import LeaveOneOutModels

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
            rows = Samples(part, start=start, centre=self._basis.centre)
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
        """How large the noise is around a point, for each target."""
        K = np.vstack([K for _, K in self.blocks(self._basis.X)])[self.seen]
        residuals = self.models.pair_residuals()
        return [LocalScale(R, K) for R in np.moveaxis(residuals.reshape(*K.shape, -1), 2, 0)]


def machine_models(machine: Any) -> MachineModels:
    """The leave-one-out models of a fitted machine, made at the first call."""
    kept: MachineModels | None = vars(machine).get("_machine_models")
    if kept is None:
        kept = machine._machine_models = _made(machine)
    return kept


def _made(machine: Any) -> MachineModels:
    X, weight, kernel = machine.X_fit_, machine.fit_weight_, machine.kernel_
    seen = weight > 0
    n = int(seen.sum())
    X_seen = X if seen.all() else training_rows(X, np.flatnonzero(seen), kernel.pairwise)
    groups = getattr(machine, "groups_", None)
    sets = held_out_sets(None if groups is None else groups[seen], n)
    K = np.empty((n, n), order="F")
    with blas_threads(n):
        gram_into(K, kernel, GramBlocks(X_seen, frozenset()))
        solution = solve_in_place(
            K,
            machine.loo_.y[seen],
            machine.mu_,
            weight[seen],
            fit_intercept=machine.fit_intercept_,
            sets=sets,
        )
        models = solution.models()
    return MachineModels(models, seen, kernel, Samples(X, centre=centre_of(X)))
