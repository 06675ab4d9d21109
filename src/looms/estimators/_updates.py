"""Models with rows removed or added, from the inverse of their system.

The hyper-parameters stay, and so does the ridge λ_i = n mu / ζ_i of every remaining row. Weights
have mean one over the rows of a model, so that mu' = mu Σζ / Σζ', with sums over the rows before
and after [docs/references.md, Rows removed and added].
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples, check_is_fitted

from looms._checks import check_flag
from looms._classes import class_indices
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import rows_in_memory
from looms.dask._blocks import blocks_and_arrays
from looms.estimators._base import checked_sample_weight
from looms.estimators._certificate import Certificate, certified_together
from looms.estimators._kernel_model import (
    KernelModel,
    fitted_model,
    sum_of,
)
from looms.estimators._warnings import kept_warnings, warn_of_duplicates, warn_of_order
from looms.kernels._names import is_estimator
from looms.kernels._samples import check_scale, training_rows
from looms.lssvm.fit import Member
from looms.lssvm.left_out import LeftOut
from looms.selection._candidates import Candidate, Candidates
from looms.units import Units

_REFITTED = 3  # rows
#: Difference from a refit, in standard deviations of the targets, that rounding cannot explain.
_WRONG = 1e-6


class UpdatableModel(KernelModel):
    """Base class of the kernel models whose rows can be removed and added."""

    candidates_: list[Candidate]
    #: The best candidate in closed form, if no member is.
    _best_closed: Member | None = None
    _closed_alone: UpdatableModel | None

    @abstractmethod
    def _given_as(self, fitted: dict[str, Any], factors: Array) -> UpdatableModel:
        """Unfitted model with the values of fitted attributes; ``factors`` of the classes."""

    def _set_given(self, fitted: dict[str, Any], rule_of: Any) -> None:
        """Set the attributes of a fit, and what follows from its held-out outputs.

        ``rule_of`` is the model whose threshold and calibration stay; None to make them anew.
        """
        self._set_fitted(**fitted)

    @abstractmethod
    def _as_targets(self, y: AnyArray) -> Array:
        """Targets of new rows, coded as those of the fit."""

    @property
    def _closed(self) -> UpdatableModel | None:
        """The members in closed form by themselves, as a model of the same rows; None without any,
        or without the rows.

        It is this model if all are, and of the best candidate in closed form if none has weight.
        Its threshold and calibration are those of its own held-out outputs.
        """
        if all(one.closed for one in self.members_):
            return self
        if not self._has_rows:
            return None
        if "_closed_alone" not in vars(self):
            closed = [k for k, one in enumerate(self.members_) if one.closed]
            pairs = [(self.members_[k], self._solved_member(k)) for k in closed]
            if not pairs and self._best_closed is not None:
                pairs = [(self._best_closed, self._solved(self._best_closed))]
            self._closed_alone = self._of_closed(*zip(*pairs, strict=True)) if pairs else None
        return self._closed_alone

    def _of_closed(self, members: Sequence[Member], left_out: Sequence[LeftOut]) -> UpdatableModel:
        """Model of some members, which share its weight."""
        train, total = np.flatnonzero(self.fit_weight_), sum(one.weight for one in members)
        weights = [one.weight / total for one in members]
        with blas_threads(len(train)):
            pairs = zip(members, left_out, strict=True)
            y = self.loo_.y[train]
            fits = [one.fit(known, self._units, y, self._tie) for one, known in pairs]
        data = self._rows_of_fit(), self.loo_.sample_weight, self.loo_.y
        attributes = fitted_model(*data, weights, fits)
        same = "n_features_in_", "feature_names_in_", "classes_", "units_", "selection_weight_"
        attributes |= {name: vars(self)[name] for name in same if name in vars(self)}
        if "candidates_" in vars(self):
            kept = [one for one in self.candidates_ if not is_estimator(one.kernel)]
            best = int(np.argmin([one.loss for one in kept]))
            attributes |= {"candidates_": Candidates(kept), "best_index_": best}
        elif self._was_tuned:
            attributes["_tuned_before"] = True
        model = self._given_as(attributes, self._weight_factors())
        with kept_warnings():
            model._set_given(attributes, rule_of=None)
        model._left_out = sum_of(weights, left_out)
        return model

    def without(self, rows: Any, certify: bool = True) -> Any:
        """The model without some rows, with the same hyper-parameters.

        It equals a fit to the other rows with the parameters of the returned model, including
        leave-one-out outputs, threshold and probabilities. For a stack, ``members_`` has the values
        of all members, and the parameters are those of the member with the largest weight. If
        candidates were compared in folds, their weights, threshold and calibration stay those of
        the fit, for these folds are not repeated.

        Parameters
        ----------
        rows : array-like of int, or of bool of shape (n_samples,)
            Indices of the rows to remove, from 0, or a mask of them.
        certify : bool, default=True
            Whether to compare the outputs of three rows with a refit without the three.

        Returns
        -------
        model : model of the same class
            A new model; this one does not change. Its ``mu`` keeps the ridge of the other rows,
            ``n_samples * mu / weight``, as it was, and "balanced" class weights keep their
            values. ``certificate_`` has the largest difference from the refit. With groups
            the rest of a group is held out together; folds of `cv` are dropped, and each row is
            held out by itself. After a search the hyper-parameters were tuned on the removed rows
            too, so only ``evaluate(nested=False)`` is available, which is optimistic.

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
        `left_out` keeps; the new model has its own, of n² numbers. The refit
        costs 2n³/3 more. On m landmarks, which stay, a pass over the rows costs n m² flops, and the
        members of a stack cost as much each; their weights stay. The new model does not contain
        the removed rows, but it keeps what was tuned on them, such as ``kernel_``.

        Examples
        --------
        >>> import numpy as np
        >>> from looms import KernelRegressor
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = KernelRegressor(mu=1e-6).fit(X, np.sin(6 * X[:, 0]))
        >>> others = model.without([0, 7])
        >>> len(others.X_fit_), others.certificate_.relative < 1e-8
        (48, True)
        >>> again = KernelRegressor(others.kernel, mu=others.mu).fit(others.X_fit_, others.loo_.y)
        >>> bool(np.abs(again.loo_.outputs - others.loo_.outputs).max() < 1e-8)
        True
        """
        check_is_fitted(self)
        check_flag("certify", certify)
        n, X = len(self.fit_weight_), self._kept_rows()
        rows = checked_rows(rows, n)
        rest = np.delete(np.arange(n), rows)
        self._check_enough(rest)
        train, pairwise = np.flatnonzero(self.fit_weight_), self._pairwise
        places = np.flatnonzero(np.isin(train, rows))

        return self._updated(
            places,
            np.delete(self.left_out().weight, places),
            training_rows(X, rest, pairwise),
            self.loo_.y[rest],
            self.loo_.sample_weight[rest],
            self.units_.clusters[rest],
            rest if pairwise else np.arange(self.n_features_in_),
            certify,
        )

    def with_rows(self, X: Any, y: Any, sample_weight: Any = None, certify: bool = True) -> Any:
        """The model with rows added after its own, with the same hyper-parameters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Samples to add.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets, or classes that the model knows.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights, in the same units as in the fit; default ones.
        certify : bool, default=True
            As for `without`.

        Returns
        -------
        model : model of the same class
            As for `without`.

        Raises
        ------
        ValueError
            If there is a class that the model does not know; if its kernel is precomputed, since
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
        >>> from looms import KernelRegressor
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = KernelRegressor(mu=1e-6).fit(X[:48], np.sin(6 * X[:48, 0]))
        >>> more = model.with_rows(X[48:], np.sin(6 * X[48:, 0]))
        >>> len(more.X_fit_), more.certificate_.relative < 1e-8
        (50, True)
        """
        check_is_fitted(self)
        check_flag("certify", certify)
        if self._pairwise:
            raise ValueError(
                "with_rows needs samples with features, but this kernel is precomputed: fit a "
                f"model to the larger kernel matrix, with mu = {self.mu_:.6g} times the sum of "
                "the weights before over that after, which keeps the ridge."
            )
        if self.units_.grouped:
            raise ValueError(
                "with_rows does not know the groups of new rows, but this model holds out groups "
                "of rows: fit it anew to all rows with their groups."
            )
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        X, y, sample_weight = blocks_and_arrays(X, y, sample_weight)
        data = rows_in_memory(X), y, sample_weight
        if _num_samples(data[0]) == 0:
            return self.without([], certify)
        X_new, y, weight = self._validated(*data, reset=False, ensure_min_samples=1)
        targets = self._as_targets(y)
        # Weights of several orders of magnitude are refused together as each by itself.
        weights = checked_sample_weight(
            np.concatenate([self.loo_.sample_weight, weight]), len(self.fit_weight_) + len(weight)
        )
        zeta = weight * self._weight_factors()[self._class_indices(targets)]
        X = self._kept_rows()
        if sp.issparse(X):
            X_all = sp.vstack([X, X_new], format="csr")
        else:
            X_all = np.vstack([X, X_new.toarray() if sp.issparse(X_new) else X_new])
        check_scale(X_all)
        if self._was_tuned:
            warn_of_duplicates(X_all[weights > 0])
        return self._updated(
            np.empty(0, dtype=np.intp),
            np.append(self.left_out().weight, zeta[weight > 0]),
            X_all,
            np.concatenate([self.loo_.y, targets]),
            weights,
            np.arange(len(weights)),
            np.arange(self.n_features_in_),
            certify,
        )

    def _updated(
        self,
        out: AnyArray,
        zeta: Array,
        X: Matrix,
        y: Array,
        weight: Array,
        groups: AnyArray,
        features: AnyArray,
        certify: bool,
    ) -> UpdatableModel:
        """Model of the rows ``X``, with weights ``zeta``: those of the fit, less those at `out`,
        and new ones.
        """
        if not self._kernel_members:
            raise ValueError(
                "This model has no kernel, whose system rows could leave or join: fit it anew."
            )
        train, factors = np.flatnonzero(weight), self._weight_factors()
        rows = training_rows(X, train, self._pairwise), y[train]
        units = Units.of_numbers(groups[train], groups[train])
        with blas_threads(len(train)):
            pairs = zip(self.members_, self.left_out().members, strict=True)
            systems = [
                one.changed(known, out, *rows, zeta, self.fit_intercept_) for one, known in pairs
            ]
            fits = [
                one.fit(system, units, y[train], self._tie)  # much the same
                for one, system in zip(self.members_, systems, strict=True)
            ]
        weights = [one.weight for one in self.members_]
        attributes = fitted_model(X, weight, y, weights, fits)
        attributes["units_"] = units.spread(train, groups)
        opened = next((fit for fit in fits if not fit.member.closed), None)
        if opened is not None and is_classifier(self):
            outputs = [w * fit.mean_held_out.outputs for w, fit in zip(weights, fits, strict=True)]
            attributes["_scored_in"] = opened.units, np.sum(outputs, axis=0)
        attributes["n_features_in_"] = len(features)
        if hasattr(self, "feature_names_in_"):
            attributes["feature_names_in_"] = self.feature_names_in_[features]
        if hasattr(self, "classes_"):
            attributes["classes_"] = self.classes_
        if self._was_tuned:
            attributes["_tuned_before"] = True
        attributes["candidate_weights_"] = vars(self).get("candidate_weights_")
        attributes["_rule_kept"] = self.choice_units_ is not None or self._rule_kept
        model = self._given_as(attributes, factors)
        model._set_given(attributes, self if attributes["_rule_kept"] else None)
        each = enumerate(zip(systems, fits, strict=True))  # refits without folds are in the members
        model._solved_members = {k: known for k, (known, fit) in each if fit.member.closed}
        model.left_out()
        if certify:
            model.certificate_ = certified_together(model, _REFITTED)
            _check(model.certificate_, model.mu_)
        return model

    def _class_indices(self, targets: Array) -> AnyArray:
        """Class of each row; zeros for a regressor."""
        return class_indices(targets) if is_classifier(self) else np.zeros(len(targets), dtype=int)

    def _weight_factors(self) -> Array:
        """For each class, weight in the fit over weight as given."""
        train = np.flatnonzero(self.fit_weight_)
        _, first = np.unique(self._class_indices(self.loo_.y[train]), return_index=True)
        return np.asarray(self.fit_weight_[train[first]] / self.loo_.sample_weight[train[first]])

    def _check_enough(self, rest: AnyArray) -> None:
        """ValueError unless a model can be fitted to these rows."""
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
                    "fit a model to the other classes."
                )


def checked_rows(rows: Any, n: int) -> AnyArray:
    """Indices of rows to remove, from indices or a mask."""
    named = hasattr(rows, "get_indexer")
    rows = rows if named else np.atleast_1d(np.asarray(rows))
    if named or any(isinstance(one, str) for one in rows.flat):
        raise ValueError(
            "rows are labels of an index, but rows are counted by position, from 0: give "
            "X.index.get_indexer(labels), or the mask X.index.isin(labels)."
        )
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(
                f"rows is a mask of shape {rows.shape}, but the model has {n} rows: give one "
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


def _check(certificate: Certificate, mu: float) -> None:
    """RuntimeError if rounding cannot explain a difference from refits."""
    if not certificate.relative <= _WRONG:
        raise RuntimeError(
            "Held-out outputs differ from those of a refit by "
            f"{certificate.relative:.2g} standard "
            f"deviations of the targets, above the limit of {_WRONG:g}: at mu = {mu:.3g} the "
            "inverse has lost too many digits. Fit the model anew to these rows, or use a "
            "larger mu."
        )
