"""Members of a fitted model, and their fits with held-out outputs.

A model is a weighted sum of members, mostly of one. A `Member` has its outputs for new rows, and
solves for its models without any rows, also where rows were removed or added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from looms._classes import merge_ties
from looms._memory import CERTIFICATE, check_memory
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks, blocks_of, rows_in_memory
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._gram import (
    GramBlocks,
    check_finite_lower,
    expansion,
    finite_values,
    gram_into,
)
from looms.kernels._samples import Pairs, Samples, center_of
from looms.lssvm._system import check_finite, targets_as_columns
from looms.lssvm.conditioning import tie_of
from looms.lssvm.dense import Dense
from looms.lssvm.features import decompose_features, has_few_features
from looms.lssvm.landmarks import Landmarks, Streamed, outputs_on
from looms.lssvm.left_out import LeftOut
from looms.lssvm.projection import Projection
from looms.lssvm.refit import SystemOfFeatures, SystemOnLandmarks, WholeSystem
from looms.lssvm.updates import Bordered
from looms.units import Units

_NUMBERS = 1 << 20  # in an array of a block


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model with its held-out outputs.

    Attributes
    ----------
    member : the model.
    loo : targets, leave-one-out outputs of the rows, and their weights ζ.
    held_out : (n_repetitions, n) or (n_repetitions, n, t) outputs of models trained without
        the fold of the row; NaN if the row is in no fold.
    tie : difference up to which outputs are equal up to rounding, relative to the largest target.
    units : the units that ``held_out`` is without; of refits in folds, these.
    """

    member: Member
    loo: HeldOut
    held_out: Array
    units: Units
    tie: float = 0.0

    @classmethod
    def of(
        cls,
        projection: Projection,
        units: Units,
        y: Array,
        kernel: Kernel,
        tie: float | None = None,
    ) -> Fit:
        """Fit of a solved system.

        Parameters
        ----------
        projection : P of the system.
        units : as for the class.
        y : (n,) or (n, t) targets, whose shape the outputs and coefficients take.
        kernel : of the system.
        tie : as for the class; by default that of the system.
        """
        # First: on landmarks a sweep for the units has what single rows need, too.
        held_out = projection.outputs(units).reshape(-1, *y.shape)
        expansion, t = projection.expansion, y.shape[1:]
        b, w = expansion.intercept, expansion.weights
        alpha = np.ascontiguousarray(expansion.coefficients).reshape(-1, *t)
        values = 1.0, kernel, projection.mu, alpha, b if t else float(b[0])
        member = KernelMember(*values, None if w is None else w.reshape(-1, *t))
        if expansion.landmarks is not None:
            member = LandmarkMember(*values, landmarks=expansion.landmarks)
        return cls(
            member,
            HeldOut(y, (projection.y - projection.loo_residuals).reshape(y.shape), projection.zeta),
            held_out,
            units,
            tie_of(y, projection.size, projection.alpha) if tie is None else tie,
        )

    @property
    def mean_held_out(self) -> HeldOut:
        """Targets, held-out outputs averaged over repetitions, and weights."""
        return HeldOut(self.loo.y, np.nanmean(self.held_out, axis=0), self.loo.sample_weight)

    @property
    def decided(self) -> HeldOut:
        """`mean_held_out`, for thresholds and calibration: of labels, those that tie are equal."""
        y, outputs, weight = self.mean_held_out
        labels = bool((np.abs(y) == 1).all())
        return HeldOut(y, merge_ties(outputs, self.tie) if labels else outputs, weight)


class Member(ABC):
    """One of the models whose weighted outputs are summed.

    Attributes
    ----------
    weight : nonnegative weight of its outputs; the weights of all members sum to one.
    """

    weight: float
    kernel: Any

    @abstractmethod
    def outputs(self, X: Matrix | RowBlocks, X_fit: Any) -> Array:
        """w f(x) for validated samples, (b,) or (b, t); ``X_fit`` are the training samples."""

    @abstractmethod
    def left_out(self, X: Matrix, y: Array, zeta: Array, fit_intercept: bool) -> LeftOut:
        """Its models without any of the rows ``X``, solved anew with the same values.

        ``y``, (n,) or (n, t), are targets; ``zeta``, (n,), are weights of mean one.
        """

    def left_out_of_fit(self, X: Matrix, y: Array, zeta: Array, fit_intercept: bool) -> LeftOut:
        """`left_out` for the rows of its own fit, with models that the fit has kept."""
        return self.left_out(X, y, zeta, fit_intercept)

    @property
    def units(self) -> Units | None:
        """The only units without which it has models; None if these are in closed form for any."""
        return None

    @abstractmethod
    def fit(self, left_out: Any, units: Units, y: Array, tie: float | None = None) -> Fit:
        """Fit of its `left_out`, with outputs without the units, shaped like ``y``."""

    def changed(
        self, known: Any, out: AnyArray, X: Matrix, y: Array, zeta: Array, fit_intercept: bool
    ) -> LeftOut:
        """Its models after the rows ``out`` have left and others have joined at the end.

        Parameters
        ----------
        known : its `left_out` before.
        out : (k,) places of rows in ``known``.
        X, y, zeta : rows, targets and weights now, in units of those before; the ridges of rows
            that stay are as they were.
        fit_intercept : as for `left_out`.
        """
        return self.left_out(X, y, zeta * (len(zeta) / zeta.sum()), fit_intercept)

    def refits(self, X: Matrix | RowBlocks, y: Array, zeta: Array, fit_intercept: bool) -> Any:
        """Its refits without some rows, by another route than `left_out`; `looms.lssvm.refit`.

        ``refitted(labels, units, repetition)`` takes the rows to leave out, and the units that hold
        out all rows, to whose outputs sigmoids of several classes are fitted. Only members in
        closed form have them.
        """
        raise NotImplementedError

    def order_of_refits(self, shape: tuple[int, int]) -> int:
        """Order q of the systems that `refits` of n rows and p features solve, in n q² flops."""
        raise NotImplementedError

    def expanded(self, refits: Any, train: AnyArray, places: AnyArray) -> Array:
        """f(x) of some rows of its refits, by its coefficients of the rows ``train``."""
        raise NotImplementedError

    def among(self, rest: AnyArray, n: int) -> Member:
        """The model of the rows ``rest`` as one of n samples."""
        return self

    @abstractmethod
    def weighing(self, weight: float) -> Member:
        """The same model with another weight."""

    #: True if its models without any rows are in closed form.
    closed: ClassVar[bool] = True

    @property
    def pairwise(self) -> bool:
        """True if it takes kernel values instead of features."""
        return False


@dataclass(frozen=True, eq=False, repr=False)
class KernelMember(Member):
    """A least-squares model, f(x) = Σ_i α_i k(x_i, x) + b over the training samples.

    Attributes
    ----------
    weight : as for `Member`.
    kernel, mu : kernel with its values, and regularization.
    dual_coef : (n,) or (n, t) coefficients of the training samples; empty before a fit.
    intercept : float or (t,)
    coef : (n_features,) or (n_features, t) feature weights of a linear model that was solved for
        them, otherwise None.
    """

    weight: float
    kernel: Kernel
    mu: float
    dual_coef: Array = field(default_factory=lambda: np.empty(0))
    intercept: Any = 0.0
    coef: Array | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel!r}, mu={self.mu:.3g}, weight={self.weight:.3g})"

    @property
    def landmarks(self) -> Matrix | None:
        """Samples that the coefficients belong to, in the place of the training samples."""
        return None

    @property
    def pairwise(self) -> bool:
        return self.kernel.pairwise

    def basis(self, X_fit: Any) -> Matrix:
        """Samples that the coefficients belong to."""
        return X_fit

    def outputs(self, X: Matrix | RowBlocks, X_fit: Any) -> Array:
        basis, dual_coef = as_expansion(self.basis(X_fit), self.dual_coef, self.coef)
        samples = self._samples
        if samples is None or samples.X is not basis:
            samples = samples_of_fit(basis)
            if self.coef is None:
                object.__setattr__(self, "_samples", samples)
        f = outputs(self.kernel, X, samples, dual_coef, self.intercept)
        return np.asarray(self.weight * f)

    #: Samples of the last outputs, with what the kernel has computed of them.
    _samples: ClassVar[Samples | None] = None

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it."""
        return {name: value for name, value in vars(self).items() if name != "_samples"}

    def left_out(self, X: Matrix, y: Array, zeta: Array, fit_intercept: bool) -> LeftOut:
        """By the features if these are few, else by the whole kernel matrix."""
        n, Y = len(y), targets_as_columns(y)
        with blas_threads(n):
            if has_few_features(self.kernel, X.shape):
                features = decompose_features(X, zeta, fit_intercept=fit_intercept)
                return features.solve(Y, self.mu)
            K = np.empty((n, n), order="F")
            gram_into(K, self.kernel, GramBlocks(X, frozenset()))
            check_finite_lower(K, self.kernel)
            return Dense(
                *(K, Y, self.mu, zeta),
                fit_intercept=fit_intercept,
                cross=cross_of(self.kernel, X),
                self_values=self_values_of(self.kernel, X),
            )

    def fit(self, left_out: Any, units: Units, y: Array, tie: float | None = None) -> Fit:
        return Fit.of(left_out, units, y, self.kernel, tie)

    def changed(
        self,
        known: Any,
        out: AnyArray,
        X: Matrix,
        y: Array,
        zeta: Array,
        fit_intercept: bool,
    ) -> LeftOut:
        system = Bordered.of(known)
        if len(out):
            system = system.without(out)
        n = len(system.y)
        if len(y) > n:
            old = Samples(X[:n], center=center_of(X))
            new = Samples(X[n:], center=old.center)
            with np.errstate(over="ignore", invalid="ignore"):
                K_own = self.kernel.values(Pairs(new, new))
                K_new = self.kernel.values(Pairs(new, old))
            for K in (K_own, K_new):
                check_finite("The kernel matrix of the rows to add", K)
            system = system.with_rows(K_new, K_own, targets_as_columns(y[n:]), zeta[n:])
        system.cross = cross_of(self.kernel, X)
        return system

    def refits(self, X: Matrix | RowBlocks, y: Array, zeta: Array, fit_intercept: bool) -> Any:
        if has_few_features(self.kernel, X.shape):
            rows = rows_in_memory(X)
            return SystemOfFeatures(self.kernel, rows, y, self.mu, zeta, fit_intercept)
        check_memory(len(y), CERTIFICATE)
        basis, every = Samples(X, center=center_of(X)), np.arange(len(y))
        K = np.vstack([block for _, block in kernel_blocks(self.kernel, X, basis, every)])
        of_fit = np.empty(K.shape, order="F")
        gram_into(of_fit, self.kernel, GramBlocks(X, frozenset()))
        errors = np.abs(np.tril(K - of_fit))
        return WholeSystem(K, y, self.mu, zeta, fit_intercept, errors)

    def order_of_refits(self, shape: tuple[int, int]) -> int:
        n_rows, n_features = shape
        return n_features if has_few_features(self.kernel, shape) else n_rows

    def expanded(self, refits: Any, train: AnyArray, places: AnyArray) -> Array:
        f: Array = refits.expanded(self.dual_coef[train], self.intercept, places)
        return f

    def among(self, rest: AnyArray, n: int) -> KernelMember:
        """The model of the rows ``rest`` of n samples, with coefficients of all n."""
        if len(rest) == n:
            return self
        dual_coef = np.zeros((n, *self.dual_coef.shape[1:]))
        dual_coef[rest] = self.dual_coef
        return replace(self, dual_coef=dual_coef)

    def weighing(self, weight: float) -> KernelMember:
        return replace(self, weight=float(weight))


@dataclass(frozen=True, eq=False, repr=False)
class LandmarkMember(KernelMember):
    """A least-squares model on landmarks, f(x) = Σ_j c_j k(z_j, x) + b.

    Attributes
    ----------
    landmarks : (m, n_features) samples z that the coefficients, (m,) or (m, t), belong to.
    weight, kernel, mu, dual_coef, intercept, coef : as for `KernelMember`.
    """

    landmarks: Matrix = None

    def basis(self, X_fit: Any) -> Matrix:
        return self.landmarks

    def left_out(
        self, X: Matrix | RowBlocks, y: Array, zeta: Array, fit_intercept: bool
    ) -> Projection:
        Y, blocks = targets_as_columns(y), blocks_of(X)
        with blas_threads(len(y)):
            on = self._landmarks
            return Streamed(blocks, Y, self.mu, zeta, on, fit_intercept=fit_intercept)

    def changed(
        self,
        known: Projection,
        out: AnyArray,
        X: Matrix,
        y: Array,
        zeta: Array,
        fit_intercept: bool,
    ) -> Projection:
        total = float(zeta.sum())
        mu = known.mu * len(known.y) / total
        return replace(self, mu=mu).left_out(X, y, zeta * (len(zeta) / total), fit_intercept)

    def refits(
        self, X: Matrix | RowBlocks, y: Array, zeta: Array, fit_intercept: bool
    ) -> SystemOnLandmarks:
        return SystemOnLandmarks(self._landmarks, blocks_of(X), y, self.mu, zeta, fit_intercept)

    def order_of_refits(self, shape: tuple[int, int]) -> int:
        return int(self.landmarks.shape[0])

    def expanded(self, refits: Any, train: AnyArray, places: AnyArray) -> Array:
        f: Array = refits.expanded(self.dual_coef, self.intercept, places)
        return f

    def among(self, rest: AnyArray, n: int) -> LandmarkMember:
        return self

    @property
    def _landmarks(self) -> Landmarks:
        return Landmarks(self.kernel, Samples(self.landmarks, center=center_of(self.landmarks)))


def cross_of(kernel: Kernel, X: Matrix) -> Callable[[Matrix], Array]:
    """Function of new rows that gives their kernel values with the rows ``X``, (b, n)."""
    basis = Samples(X, center=center_of(X))
    return lambda new: kernel.values(Pairs(Samples(new, center=basis.center), basis))


def self_values_of(kernel: Kernel, X: Matrix) -> Callable[[Matrix], Array]:
    """Function of new rows that gives k(x, x), (b,), where the model is of the rows ``X``."""
    center = center_of(X)
    return lambda new: kernel.self_values(Samples(new, center=center))


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


def as_expansion(X_fit: Matrix, dual_coef: Array, coef: Array | None) -> tuple[Matrix, Array]:
    """Samples and coefficients of an expansion; with ``coef``, w·x is the kernel of w and x."""
    if coef is None:
        return X_fit, dual_coef
    W = np.atleast_2d(coef.T)
    return W, np.eye(len(W)) if coef.ndim > 1 else np.ones(1)


def samples_of_fit(X_fit: Matrix) -> Samples:
    """Samples that coefficients belong to; of a kernel matrix only the size counts."""
    return Samples(X_fit, center=center_of(X_fit))


def outputs(
    kernel: Kernel,
    X: Matrix | RowBlocks,
    basis: Samples,
    dual_coef: Array,
    intercept: Any,
) -> Array:
    """f(x) = Σ_j α_j k(x_j, x) + b for validated samples."""
    if isinstance(X, RowBlocks):
        return outputs_on(X, Landmarks(kernel, basis), dual_coef, intercept)
    with blas_threads(max(len(dual_coef), X.shape[0])):
        expanded = expansion(kernel, X, basis, dual_coef)
    return np.asarray(expanded + intercept)
