"""Machines with rows removed or added, from the inverse of their system.

The hyper-parameters stay, and so does the ridge λ_i = n mu / ζ_i of every remaining row. Weights
have mean one over the rows of a machine, so that mu' = mu Σζ / Σζ', with sums over the rows before
and after [docs/references.md, Rows removed and added].
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from looms._classes import class_indices
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.estimators._base import check_flag, checked_sample_weight
from looms.estimators._certificate import Certificate
from looms.estimators._fits import cross_of, fitted_machine
from looms.estimators._least_squares import GivenMachine, LeastSquaresMachine
from looms.kernels._samples import Pairs, Samples, center_of, check_scale, training_rows
from looms.lssvm import refit_loo
from looms.lssvm._system import check_finite, targets_as_columns
from looms.lssvm.conditioning import condition_of, rounding_bound
from looms.lssvm.fit import Fit
from looms.lssvm.left_out import Linear
from looms.lssvm.updates import Bordered
from looms.units import Units

_REFITTED = 3  # rows
#: Difference from a refit, in standard deviations of the targets, that rounding cannot explain.
_WRONG = 1e-6


class UpdatableMachine(LeastSquaresMachine):
    """Base class of the least-squares machines whose rows can be removed and added."""

    @abstractmethod
    def _given(self, mu: float, factors: Array) -> GivenMachine:
        """Unfitted machine with these hyper-parameters; ``factors`` are the class weights."""

    @abstractmethod
    def _as_targets(self, y: AnyArray) -> Array:
        """Targets of new rows, coded as those of the fit."""

    def without(self, rows: Any, certify: bool = True) -> Any:
        """The machine without some rows, with the same hyper-parameters.

        It equals a fit to the other rows with the parameters of the returned machine, including
        leave-one-out outputs, threshold and probabilities.

        Parameters
        ----------
        rows : array-like of int, or of bool of shape (n_samples,)
            Indices of the rows to remove, from 0, or a mask of them.
        certify : bool, default=True
            Whether to compare the outputs of three rows with a refit without the three.

        Returns
        -------
        machine : LSSVMClassifier or LSSVMRegressor
            A new machine; this one does not change. Its ``mu`` keeps the ridge of the other rows,
            ``n_samples * mu / weight``, as it was, and "balanced" class weights keep their
            values. ``certificate_`` has the largest difference from the refit. With groups
            the rest of a group is held out together; folds of `cv` are dropped, and each row is
            held out by itself. There is no ``nested_``: after a search ``scores_`` are those of
            leave-one-out, which are optimistic, and reading them gives an
            `OptimisticScoresWarning`.

        Raises
        ------
        ValueError
            If rows are out of range or repeated, or too few are left: fewer than two, none of
            some class, or a single group.
        RuntimeError
            If the outputs differ from those of the refit by more than 1e-6.

        Notes
        -----
        k rows cost k n² flops, after n³ for the inverse at the first call, which
        `left_out` keeps; the new machine has its own, of n² numbers. The refit
        costs 2n³/3 more. The new machine does not contain the removed rows, but it keeps what
        they helped to choose, such as ``kernel_``.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import LSSVMRegressor
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> machine = LSSVMRegressor(mu=1e-6).fit(X, np.sin(6 * X[:, 0]))
        >>> others = machine.without([0, 7])
        >>> len(others.X_fit_), others.certificate_.relative < 1e-8
        (48, True)
        >>> again = LSSVMRegressor(others.kernel, mu=others.mu).fit(others.X_fit_, others.loo_.y)
        >>> bool(np.abs(again.loo_.outputs - others.loo_.outputs).max() < 1e-8)
        True
        """
        check_is_fitted(self, "dual_coef_")
        check_flag("certify", certify)
        n = len(self.fit_weight_)
        rows = _checked_rows(rows, n)
        rest = np.delete(np.arange(n), rows)
        self._check_enough(rest)
        train, system = np.flatnonzero(self.fit_weight_), self._system()
        with blas_threads(len(train)):
            system = system.without(np.flatnonzero(np.isin(train, rows)))
        pairwise = self.kernel_.pairwise
        return self._updated(
            system,
            training_rows(self.X_fit_, rest, pairwise),
            self.loo_.y[rest],
            self.loo_.sample_weight[rest],
            self.units_.clusters[rest],
            rest if pairwise else np.arange(self.n_features_in_),
            certify,
        )

    def with_rows(self, X: Any, y: Any, sample_weight: Any = None, certify: bool = True) -> Any:
        """The machine with rows added after its own, with the same hyper-parameters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Samples to add.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets, or classes that the machine knows.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights, in the same units as in the fit; default ones.
        certify : bool, default=True
            As for `without`.

        Returns
        -------
        machine : LSSVMClassifier or LSSVMRegressor
            As for `without`.

        Raises
        ------
        ValueError
            If there is a class that the machine does not know; if its kernel is precomputed, since
            only a fit can check that the larger kernel matrix is positive semi-definite; or if it
            holds out groups, since it does not keep their labels.
        RuntimeError
            As for `without`.

        Notes
        -----
        k rows cost k n² flops, as for `without`.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import LSSVMRegressor
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> machine = LSSVMRegressor(mu=1e-6).fit(X[:48], np.sin(6 * X[:48, 0]))
        >>> more = machine.with_rows(X[48:], np.sin(6 * X[48:, 0]))
        >>> len(more.X_fit_), more.certificate_.relative < 1e-8
        (50, True)
        """
        check_is_fitted(self, "dual_coef_")
        check_flag("certify", certify)
        if self.kernel_.pairwise:
            raise ValueError(
                "with_rows needs samples with features, but this kernel is precomputed: fit a "
                f"machine to the larger kernel matrix, with mu = {self.mu_:.6g} times the sum of "
                "the weights before over that after, which keeps the ridge."
            )
        if self.units_.grouped:
            raise ValueError(
                "with_rows does not know the groups of new rows, but this machine holds out groups "
                "of rows: fit it anew to all rows with their groups."
            )
        X_new, y, weight = self._validated(X, y, sample_weight, reset=False, ensure_min_samples=1)
        targets = self._as_targets(y)
        # Weights of several orders of magnitude are refused together as each by itself.
        weights = checked_sample_weight(
            np.concatenate([self.loo_.sample_weight, weight]), len(self.fit_weight_) + len(weight)
        )
        zeta = weight * self._weight_factors()[self._class_indices(targets)]
        if sp.issparse(self.X_fit_):
            X_all = sp.vstack([self.X_fit_, X_new], format="csr")
        else:
            X_all = np.vstack([self.X_fit_, X_new.toarray() if sp.issparse(X_new) else X_new])
        check_scale(X_all)
        system, added = self._system(), np.flatnonzero(weight)
        train = np.flatnonzero(self.fit_weight_)
        with blas_threads(len(train)):
            new = Samples(X_all[self.X_fit_.shape[0] + added], center=center_of(X_all))
            old = Samples(self.X_fit_[train], center=new.center)
            with np.errstate(over="ignore", invalid="ignore"):
                K_own = self.kernel_.values(Pairs(new, new))
                K_new = self.kernel_.values(Pairs(new, old))
            for K in (K_own, K_new):
                check_finite("The kernel matrix of the rows to add", K)
            system = system.with_rows(K_new, K_own, targets_as_columns(targets)[added], zeta[added])
        return self._updated(
            system,
            X_all,
            np.concatenate([self.loo_.y, targets]),
            weights,
            np.arange(len(weights)),
            np.arange(self.n_features_in_),
            certify,
        )

    def _system(self) -> Bordered:
        """System of the machine, whose rows may be removed and added."""
        self._check_single()
        left_out = self.left_out()
        assert isinstance(left_out, Linear)
        return Bordered.of(left_out.projection)

    def _updated(
        self,
        system: Bordered,
        X: Matrix,
        y: Array,
        weight: Array,
        groups: AnyArray,
        features: AnyArray,
        certify: bool,
    ) -> GivenMachine:
        """Fitted machine of a system of the rows of positive weight."""
        train = np.flatnonzero(weight)
        system.check_leverage()
        factors, kernel = self._weight_factors(), self.kernel_
        rows = training_rows(X, train, kernel.pairwise)
        system.cross = cross_of(kernel, rows)
        left_out = Linear(system)
        units = Units.of_numbers(groups[train], groups[train])
        fit = Fit.of(system, left_out.outputs(units), y[train], self._tie)  # much the same
        attributes = fitted_machine(X, weight, y, kernel, system.mu, fit)
        attributes["units_"] = units.spread(train, groups)
        if certify:
            attributes["certificate_"] = _certificate(system, rows, train)
        attributes["n_features_in_"] = len(features)
        if hasattr(self, "feature_names_in_"):
            attributes["feature_names_in_"] = self.feature_names_in_[features]
        if hasattr(self, "classes_"):
            attributes["classes_"] = self.classes_
        if self._tuned_before or getattr(self, "nested", None) is not None:
            attributes["_tuned_before"] = True
        machine = self._given(system.mu, factors)
        machine._set_given(attributes)
        machine._left_out = left_out
        return machine

    def _class_indices(self, targets: Array) -> AnyArray:
        """Class of each row; zeros for a regressor."""
        return class_indices(targets) if is_classifier(self) else np.zeros(len(targets), dtype=int)

    def _weight_factors(self) -> Array:
        """For each class, weight in the fit over weight as given."""
        train = np.flatnonzero(self.fit_weight_)
        _, first = np.unique(self._class_indices(self.loo_.y[train]), return_index=True)
        return np.asarray(self.fit_weight_[train[first]] / self.loo_.sample_weight[train[first]])

    def _check_enough(self, rest: AnyArray) -> None:
        """ValueError unless a machine can be fitted to these rows."""
        left = rest[self.fit_weight_[rest] > 0]
        if len(left) < 2:
            raise ValueError(
                f"rows leaves {len(left)} of {len(self.fit_weight_)} samples of non-zero weight: "
                "leave-one-out needs two or more."
            )
        if is_classifier(self):
            counts = np.bincount(
                self._class_indices(self.loo_.y[left]), minlength=len(self.classes_)
            )
            if not counts.all():
                missing = self.classes_[counts == 0].tolist()
                raise ValueError(
                    f"rows leaves no sample of non-zero weight in class {missing}: keep some, or "
                    "fit a machine to the other classes."
                )


def _checked_rows(rows: Any, n: int) -> AnyArray:
    """Indices of rows to remove, from indices or a mask."""
    rows = np.atleast_1d(np.asarray(rows))
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(
                f"rows is a mask of shape {rows.shape}, but the machine has {n} rows: give one "
                "value for each."
            )
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            "rows must be a list of indices or a mask, but is an array of "
            f"{rows.dtype} of shape {rows.shape}."
        )
    rows = rows.astype(np.intp)
    outside = rows[(rows < 0) | (rows >= n)]
    if len(outside):
        raise ValueError(f"rows must be from 0 to {n - 1}, got {outside[0]}.")
    values, counts = np.unique(rows, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"rows names row {values[counts > 1][0]} more than once.")
    return values


def _certificate(system: Bordered, rows: Matrix, train: AnyArray) -> Certificate:
    """Outputs of a few rows compared with a refit without all of them.

    RuntimeError if rounding cannot explain the difference.
    """
    n, mu = len(train), system.mu
    G = np.random.default_rng(0).choice(n, min(_REFITTED, n - 1), replace=False)
    folds = np.full(n, -1)
    folds[G] = 0
    assert system.cross is not None
    with blas_threads(n):
        K = system.cross(rows)
        refitted = refit_loo(
            K,
            system.y,
            mu,
            sample_weight=system.zeta,
            fit_intercept=bool(system.corner),
            folds=folds,
        ).residuals[G]
        ours = np.linalg.solve(system.P[np.ix_(G, G)], system.alpha[G])
        K[np.diag_indices(n)] += system.ridge
        condition = condition_of(K)
    certificate = Certificate.of(
        train[G],
        np.abs(ours - refitted),
        system.y,
        condition=condition,
        bound=rounding_bound(condition, Linear(system).loo),
    )
    if not certificate.relative <= _WRONG:
        raise RuntimeError(
            "Held-out outputs differ from those of a refit by "
            f"{certificate.relative:.2g} standard "
            f"deviations of the targets, above the limit of {_WRONG:g}: at mu = {mu:.3g} the "
            "inverse has lost too many digits. Fit the machine anew to these rows, or use a "
            "larger mu."
        )
    return certificate
