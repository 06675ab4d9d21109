"""Fitted kernel models: sums of members, their outputs, and models without any rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from looms._checks import check_count
from looms._classes import rounding
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks, blocks_of, rows_in_memory
from looms.estimators._certificate import Certificate, certified
from looms.estimators._folds import refits_of
from looms.estimators._scored import ScoredModel
from looms.held_out import HeldOut
from looms.kernels import Kernel, Samples
from looms.kernels._samples import training_rows
from looms.lssvm._system import targets_as_columns
from looms.lssvm.fit import Fit, KernelMember, Member
from looms.lssvm.left_out import Chosen, LeftOut, Sum
from looms.scores import Scores
from looms.selection._nested import Nested
from looms.units import Units


def fitted_model(
    X: Matrix | RowBlocks, weight: Array, y: Array, shares: Sequence[float], fits: Sequence[Fit]
) -> dict[str, Any]:
    """Fitted attributes of a model, the sum of fits to the samples of positive weight.

    The other samples get coefficient zero and, as leave-one-out output, the output of the
    model, which never saw them. ``shares`` are the weights of the fits.
    """
    train, others, n = np.flatnonzero(weight), np.flatnonzero(weight == 0), len(y)
    members = tuple(
        fit.member.among(train, n).weighing(share) for share, fit in zip(shares, fits, strict=True)
    )
    fit_weight = np.zeros(n)
    fit_weight[train] = fits[0].loo.sample_weight
    loo = np.empty(y.shape)
    if len(others):
        rest = blocks_of(X).rows(others)
        loo[others] = np.sum([one.outputs(rest, X) for one in members], axis=0)
    held_out = loo.copy()
    loo[train] = sum(w * fit.loo.outputs for w, fit in zip(shares, fits, strict=True))
    held_out[train] = sum(
        w * fit.mean_held_out.outputs for w, fit in zip(shares, fits, strict=True)
    )
    return {
        **({"X_fit_": None, "_blocks": X} if isinstance(X, RowBlocks) else {"X_fit_": X}),
        "members_": members,
        "fit_weight_": fit_weight,
        "loo_": HeldOut(y, loo, weight),
        "held_out_": HeldOut(y, held_out, weight),
        "_tie": max(fit.tie for fit in fits),
    }


#: Attributes that not every fit sets.
_OF_SOME_FITS = (
    *("certificate_", "_tuned_before", "_rule_kept"),
    *("candidates_", "best_index_", "cv_results_", "selection_", "n_iter_"),
)


def sum_of(weights: Sequence[float], members: Sequence[LeftOut]) -> LeftOut:
    """The only member, or the weighted sum of several."""
    return members[0] if len(weights) == 1 else Sum(weights, members)


def output_of(members: Sequence[Member], X: Matrix, X_fit: Matrix) -> Array:
    """Output of a model, the sum of its members, for validated samples."""
    return reduce(np.add, (one.outputs(X, X_fit) for one in members))


class KernelModel(ScoredModel):
    """Base class of the kernel models: the fitted model, its outputs, and models without rows."""

    X_fit_: Matrix
    fit_weight_: Array
    loo_: HeldOut
    certificate_: Certificate
    #: Rows that were held out together for ``held_out_``; those of weight zero stay.
    units_: Units
    #: True if a model with rows removed or added kept threshold and calibration, set by folds.
    _rule_kept: bool = False
    _made_again = (
        *("_left_out", "_chosen", "_units_of_fit", "_local_scales", "_blocks"),
        *("_closed_alone", "_solved_members"),
    )

    #: Models whose weighted outputs are summed, or the only one.
    members_: tuple[Member, ...]
    #: Folds without which candidates were tuned anew, to be compared; None if by ``units_``.
    choice_units_: Units | None = None
    #: Units, and outputs without them, that scores are of if the rows are in blocks.
    _scored_in: tuple[Units, Array] | None = None
    #: Difference up to which outputs are equal up to rounding, relative to the largest target.
    _tie: float = 0.0
    #: Models of each member without any of the rows, once they are solved.
    _solved_members: dict[int, LeftOut]
    #: Rows in blocks that the model was fitted to; they are neither copied nor saved.
    _blocks: RowBlocks | None = None
    fit_intercept: bool
    fit_intercept_: bool

    @property
    def _kernel_members(self) -> list[KernelMember]:
        """The members that have a kernel."""
        return [one for one in vars(self).get("members_", ()) if isinstance(one, KernelMember)]

    @property
    def _leading(self) -> KernelMember:
        """The kernel model with the largest weight."""
        check_is_fitted(self)
        if not self._kernel_members:
            raise AttributeError(f"This {type(self).__name__} has no kernel model.")
        return max(self._kernel_members, key=lambda one: one.weight)

    @property
    def kernel_(self) -> Kernel:
        return self._leading.kernel

    @property
    def mu_(self) -> float:
        return self._leading.mu

    @property
    def dual_coef_(self) -> Array:
        return self._leading.dual_coef

    @property
    def intercept_(self) -> Any:
        return self._leading.intercept

    @property
    def coef_(self) -> Array:
        one = self._leading
        if one.coef is not None:
            return one.coef
        coef = one.kernel.feature_weights(Samples(one.basis(self.X_fit_)), one.dual_coef)
        if coef is None:
            raise AttributeError(
                f"Only linear models have coef_, and the kernel is {one.kernel!r}: see "
                "looms.report.RelevanceDisplay, or sklearn.inspection.permutation_importance."
            )
        return coef

    @property
    def landmarks_(self) -> Matrix | None:
        return self._leading.landmarks

    @property
    def _pairwise(self) -> bool:
        """True if it takes kernel values instead of features."""
        return self.members_[0].pairwise

    @property
    def _cost_of_refit(self) -> int:
        """n q² for the largest order q of a system that refits of n rows solve; n³ without one."""
        shape = n, _ = int(np.count_nonzero(self.fit_weight_)), self.n_features_in_
        orders = [one.order_of_refits(shape) for one in self.members_ if one.closed]
        return int(n * max(orders, default=n) ** 2)

    def _set_fitted(self, **attributes: Any) -> None:
        for name in _OF_SOME_FITS:
            self.__dict__.pop(name, None)
        super()._set_fitted(fit_intercept_=bool(self.fit_intercept), **attributes)

    def left_out(self) -> LeftOut:
        """The model, or stack, without any of the rows of its fit.

        A fit keeps coefficients only: the system that these models need has up to n² numbers,
        too many to keep in memory after every fit and in every model file. The first call solves
        it from the training rows, for n³ flops, or n q² for a model of q landmarks or features.
        It is cached with the model, but not pickled or saved, until the model is fitted again.

        Returns
        -------
        left_out : looms.lssvm.left_out.LeftOut
            Of the rows with positive weight, in their order; targets and outputs in columns.
        """
        check_is_fitted(self)
        cached: LeftOut | None = vars(self).get("_left_out")
        if cached is None:
            each = [self._solved_member(k) for k in range(len(self.members_))]
            cached = self._left_out = sum_of([one.weight for one in self.members_], each)
        return cached

    def _solved_member(self, k: int) -> LeftOut:
        """Models of one member without any of the rows, solved once."""
        known: dict[int, LeftOut] = self.__dict__.setdefault("_solved_members", {})
        if k not in known:
            known[k] = self._solved(self.members_[k])
        return known[k]

    def __sklearn_is_fitted__(self) -> bool:
        return "fit_weight_" in vars(self)  # a fit that failed may have left other attributes

    def _kernel_model(self) -> KernelModel:
        return self

    @property
    def _units(self) -> Units:
        """Rows of the fit that are held out together."""
        cached: Units | None = vars(self).get("_units_of_fit")
        if cached is None:
            cached = self._units_of_fit = self.units_.among(np.flatnonzero(self.fit_weight_))
        return cached

    @property
    def _units_at_hand(self) -> Units:
        """Units without which all members have models at hand: those of the criterion, unless some
        member has models without folds only."""
        return self._folds_of_members or self._units

    @property
    def _folds_of_members(self) -> Units | None:
        """The folds of members that have models without these only; None if there are none."""
        of_members = (one.units for one in self.members_)
        return next((units for units in of_members if units is not None), None)

    def _models_without_rows(
        self, X: Matrix, method: str, chosen: bool = True
    ) -> tuple[Array, float, Iterator[tuple[slice, Array]]]:
        """Held-out residuals of the rows of the fit, their tie, and outputs of models without each.

        The outputs come in blocks: the rows of ``X``, and (rows, n_train) or (rows, n_train,
        n_targets) numbers. After nested scores the models were chosen without the row, unless
        ``chosen`` is false. ``method`` asks for them.
        """
        evaluated, shape = self._evaluation(method), (-1, *self.loo_.y.shape[1:])
        nested = evaluated._nested if chosen else None
        left_out, units, residuals = self._models_of(nested)
        residuals = residuals.reshape(shape)
        new = blocks_of(X[:, np.flatnonzero(self.fit_weight_)] if self._pairwise else X)

        def outputs() -> Iterator[tuple[slice, Array]]:
            for rows in left_out.parts(new.shape[0]):
                with blas_threads(len(left_out.y)):
                    F = left_out.at(new.rows(np.arange(rows.start, rows.stop)), units)
                yield rows, F[:, units.own].reshape(len(F), *shape)

        return residuals, self._tie_without_rows(nested), outputs()

    def _tie_without_rows(self, nested: Nested | None) -> float:
        """``_tie`` of models without rows, that of estimators included."""
        known = self._tie if nested is None else nested.tie
        return max(known, rounding(int(np.count_nonzero(self.fit_weight_))))

    def _kept(self, name: str, again: str) -> LeftOut:
        """Models in closed form that `evaluate` has made; NotFittedError if they are lost.

        Parameters
        ----------
        name : "_left_out" for those of the fit, "_chosen" for points of a grid chosen anew.
        again : call that makes them.
        """
        left_out: LeftOut | None = vars(self).get(name)
        if left_out is None:
            self._rows_of_fit()  # an error without these
            raise NotFittedError(
                f"The models without each row, n² numbers, are not at hand: call {again} to make "
                "them, since other scores need none, and a copied or saved model holds none. The "
                "scores stay the same."
            )
        return left_out

    def _models_of(self, nested: Nested | None) -> tuple[LeftOut, Units, Array]:
        """Models without each unit, the units, and the residuals of their rows.

        ``nested`` selected them; None for those of the fit.
        """
        if nested is None:
            left_out = self._kept("_left_out", "evaluate(nested=False)")
            units = self._units_of_intervals
            with blas_threads(len(left_out.y)):
                outputs = left_out.outputs(units)[
                    units.repetition[units.own], np.arange(len(left_out.y))
                ]
            return left_out, units, left_out.y - outputs
        closed = nested.in_closed_form
        left_out = self._kept("_chosen", "evaluate()") if closed else self._refits_of(nested)
        return left_out, nested.units, nested.held_out.residuals

    def _keep_models(self, scores: Scores) -> None:
        nested = scores._nested
        if scores is self._own_scores and self._has_rows:
            left_out, units = self.left_out(), self._units_of_intervals
            row = blocks_of(self._rows_of_fit()).rows(np.arange(1))
            with blas_threads(len(left_out.y)):
                left_out.outputs(units)
                left_out.at(
                    row[:, np.flatnonzero(self.fit_weight_)] if self._pairwise else row, units
                )
        if nested is not None and nested.in_closed_form and "_chosen" not in vars(self):
            (y, _, weight), each = nested.held_out, nested.models
            solved = [self._solved(KernelMember(1.0, one.kernel, one.mu)) for one in each]
            Y = targets_as_columns(y)
            self._chosen = Chosen(solved, nested.units, nested.model_of_fold, Y, weight)

    def _rows_of_fit(self) -> Matrix | RowBlocks:
        rows = self._blocks if self.X_fit_ is None else self.X_fit_
        if rows is None:
            raise ValueError(
                "This needs the training rows, but a saved model does not hold those that were "
                "in blocks: use the model before it is saved, or fit it to rows in memory; to "
                "certify it, pass them as X."
            )
        return rows

    def _kept_rows(self) -> Matrix:
        """All rows of the fit, in memory."""
        return rows_in_memory(self._rows_of_fit())

    def _solved(self, member: Member) -> LeftOut:
        """Models of a member without any of the rows of the fit."""
        train = np.flatnonzero(self.fit_weight_)
        X = training_rows(self._rows_of_fit(), train, member.pairwise)
        data = X, self.loo_.y[train], self.fit_weight_[train]
        return member.left_out_of_fit(*data, self.fit_intercept_)

    @property
    def _has_rows(self) -> bool:
        return self.X_fit_ is not None or self._blocks is not None

    @property
    def _units_of_intervals(self) -> Units:
        """Single rows or groups; the folds of members that have models without these only."""
        folds = self._folds_of_members
        return self._units.draws if folds is None else folds.only(np.unique(folds.own))

    def _refits_of(self, nested: Nested) -> LeftOut:
        X_fit = training_rows(self._kept_rows(), nested.rows, self._pairwise)

        def outputs_of(model: Any, rest: AnyArray, X: Matrix) -> Array:
            return targets_as_columns(output_of(model, X, X_fit))

        return refits_of(nested, X_fit, outputs_of)

    def _outputs(self, X: Matrix) -> Array:
        """f(x) = Σ_j α_j k(x_j, x) + b for validated samples, or the weighted sum of a stack."""
        return output_of(self.members_, X, self.X_fit_)

    def certify(self, n_rows: int = 3, X: Any = None) -> Certificate:
        """Largest difference between some outputs, held-out and ordinary, and refits.

        Held-out outputs are compared with models refitted without the row, or its group or
        fold. The model's ordinary outputs, as ``predict`` computes them and by the dual
        coefficients, are compared with a model refitted to all rows. The hyper-parameters stay
        the same. The refits share only the kernel with the fit: a least-squares model is solved
        anew by LU with partial pivoting, a support vector machine by scikit-learn's ``SVC``. On
        landmarks, or with the linear kernel of few features, normal equations are solved.

        Parameters
        ----------
        n_rows : int, default=3
            Number of rows to hold out, at most all: the one with the largest residual, and others
            drawn at random, the same at every call.
        X : array-like, sparse matrix, dask collection or RowBlocks, default=None
            The training samples, needed only for a saved model that was fitted to rows in
            blocks, which are not saved with it.

        Returns
        -------
        certificate : Certificate
            Also stored as ``certificate_``. It covers ``loo_``, and ``held_out_`` if rows are held
            out in groups or folds, but not outputs of models that were tuned anew, as by
            `evaluate`. If a model without the rows cannot be fitted, the difference is infinite.

        Raises
        ------
        ValueError
            If ``n_rows`` is not a positive integer, or the samples are neither kept nor given.
        MemoryError
            If the refits would take more memory than is free.
        sklearn.exceptions.NotFittedError
            If the model is not fitted.

        Notes
        -----
        Each row, or fold, and the model of all rows cost 2n³/3 flops, and the condition number
        n³/3; on q landmarks, or with the linear kernel of q features, few beside n, each costs
        n q² flops. At n = 1000, three rows cost a quarter of the fit of a model that tunes its
        hyper-parameters, and five times the fit with given ones; at n = 2000, 0.8 s, as much as
        the fit. Memory: six n×n arrays, or a few q×q.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from looms import KernelClassifier
        >>> certificate = KernelClassifier(mu=1e-3).fit(*load_iris(return_X_y=True)).certify()
        >>> certificate.verdict, len(certificate.rows), certificate.relative < certificate.bound
        ('agrees', 3, True)
        """
        check_is_fitted(self)
        check_count(n_rows, "n_rows")
        self.certificate_ = certified(self, int(n_rows), X)
        return self.certificate_
