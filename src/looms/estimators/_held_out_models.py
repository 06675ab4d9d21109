"""Models of a machine without each row, or without each fold, at new samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.kernels import Kernel
from looms.kernels._gram import finite_values
from looms.kernels._samples import Pairs, Samples

_NUMBERS = 1 << 20  # in an array of a block


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
