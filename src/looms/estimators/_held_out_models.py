"""Models of a machine without each row, or without each fold, at new samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.conformal import LocalScale
from looms.kernels import Kernel
from looms.kernels._gram import finite_values
from looms.kernels._samples import Pairs, Samples
from looms.lssvm import features
from looms.lssvm.leave_one_out_models import LeaveOneOutModels

_NUMBERS = 1 << 20  # in an array of a block


@dataclass(eq=False)
class MachineModels:
    """Leave-one-out models of a machine, for samples as the machine itself takes them.

    Attributes
    ----------
    models : one for each sample that took part in the fit.
    train : indices of these samples.
    """

    models: LeaveOneOutModels
    train: AnyArray
    _kernel: Kernel
    _basis: Samples

    def blocks(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        """`kernel_blocks` of the rows of ``X``."""
        return kernel_blocks(self._kernel, X, self._basis, self.train)

    def outputs(self, X: Matrix) -> Iterator[tuple[slice, Array, Array]]:
        """Rows of ``X``, their kernel values, and the outputs of every leave-one-out model there.

        Blocks have so many rows that an array of rows × samples × targets has 2²⁰ numbers.
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
        K = np.vstack([K for _, K in self.blocks(self._basis.X)])[self.train]
        residuals = self.models.pair_residuals()
        return [LocalScale(R, K) for R in np.moveaxis(residuals.reshape(*K.shape, -1), 2, 0)]


def kernel_blocks(
    kernel: Kernel, X: Matrix, basis: Samples, train: AnyArray
) -> Iterator[tuple[slice, Array]]:
    """Rows of ``X`` and their kernel values with some samples of the basis, (rows, n_train).

    Blocks have so many rows that an array of rows × samples has 2²⁰ numbers.
    """
    step = max(1, _NUMBERS // basis.n_samples)
    for start in range(0, X.shape[0], step):
        rows = Samples(X[start : start + step], start=start, center=basis.center)
        K = finite_values(kernel, Pairs(rows, basis))
        yield slice(start, start + step), K if K.shape[1] == len(train) else K[:, train]


def feature_outputs(solution: features.Solution, X: Matrix) -> Iterator[tuple[slice, Array]]:
    """Rows of ``X``, and the outputs there of the linear machine without each row of the fit."""
    with blas_threads(len(solution.fit.y)):
        yield from solution.outputs_without_rows(X)


class NestedModels(NamedTuple):
    """Models of one kernel, each without a fold.

    Attributes
    ----------
    kernel : kernel with its values; None for feature weights.
    members : (m,) indices of the rows, among those of the fit, in these folds.
    fold : (m,) which of the models has not seen the row.
    alpha, intercepts : (n, n_models, t), or weights (n_features, n_models, t), and (n_models, t).
    """

    kernel: Kernel | None
    members: AnyArray
    fold: AnyArray
    alpha: Array
    intercepts: Array


def nested_outputs(
    models: Sequence[NestedModels],
    X: Matrix,
    basis: Samples,
    train: AnyArray,
    shape: tuple[int, ...],
) -> Iterator[tuple[slice, Array]]:
    """Rows of ``X``, and the output there of the model without each row of the fit.

    Parameters
    ----------
    models : models that have not seen some row; if several for a row, their outputs are summed.
    basis : the samples of the machine.
    train : indices of the samples that took part in the fit.
    shape : (n_train,) or (n_train, t), the shape of the targets.
    """
    size = int(np.prod(shape))
    step = max(1, _NUMBERS // size)
    for start in range(0, X.shape[0], step):
        rows = Samples(X[start : start + step], start=start, center=basis.center)
        F = np.zeros((rows.n_samples, len(train), size // len(train)))
        with blas_threads(basis.n_samples):
            for one in models:
                K = rows.X
                if one.kernel is not None:
                    K = one.kernel.values(Pairs(rows, basis))[:, train]
                f = K @ one.alpha.reshape(len(one.alpha), -1) + one.intercepts.ravel()
                F[:, one.members] += f.reshape(len(f), *one.intercepts.shape)[:, one.fold]
        yield slice(start, start + rows.n_samples), F.reshape(len(F), *shape)
