"""Base class of the machines with scores from held-out predictions."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._scores import Scores, number_scores
from looms._typing import Array, Matrix
from looms.blocks import RowBlocks
from looms.estimators._warnings import warn_of_optimistic_scores
from looms.held_out import HeldOut
from looms.kernels._samples import as_matrix
from looms.scores import Scored
from looms.selection._nested import Nested


class ScoredMachine(BaseEstimator):  # type: ignore[misc]
    """Base class of the machines with scores from held-out predictions."""

    #: Attributes that are made from others when they are needed; neither pickled nor saved.
    _made_again: ClassVar[tuple[str, ...]] = ("_held_out_scores", "_said_optimistic")
    _nested: Nested | None = None
    #: Unfitted machine, to be tuned in outer folds; None where it was, or is not to be.
    _unfitted: Any = None

    @property
    def nested_(self) -> Nested | None:
        """Predictions for each sample by machines that were chosen without it, or None.

        Unless the fit did, the first access computes them, at the cost of ten fits.
        """
        check_is_fitted(self)
        if self._unfitted is not None:
            self._nested, self._unfitted = self._tuned_in_folds() or self._nested, None
        return self._nested

    @property
    def scores_(self) -> dict[str, float]:
        """Figures to quote, from held-out predictions.

        For classes "error", "ber" (the mean over classes of the error rate), "auc" and, with
        probabilities, "log_loss"; for numbers "rmse", "mae" and "r2". With ``nested_`` the whole
        choice was made without the row. Without, as on landmarks, beyond 1000 rows by default, or
        after `without`, the hyper-parameters were chosen on the same rows, so the scores are
        optimistic, and the first access gives an `OptimisticScoresWarning` (not where
        ``nested=None`` was asked for). The first access costs n³ flops for a least-squares machine,
        or the ten fits of ``nested_``.

        "auc" compares two rows under one machine that has seen neither: leave-pair-out. `SVCCV`,
        and machines that were fitted to rows in blocks, compare rows within the
        folds of `cv`, or within ten folds made for this, whose outputs the other scores of the
        latter are of as well; "auc" is then NaN if some class has fewer than three rows, or groups.
        After a choice among several candidates, rows are compared within its folds.
        """
        return {name: value for name, (value, _) in self._read_scores().items()}

    @property
    def scores_se_(self) -> dict[str, float]:
        """Standard errors of ``scores_`` over draws of the rows, or groups, for a fixed machine.

        Over draws of the training rows too, the distance from the score on new rows is larger:
        1.0 to 1.4 times (root mean square, error rates and areas of 150 or 200 rows), for log loss
        and numbers up to 2.9 times [benchmarks/results/standard_errors.csv].
        """
        return {name: error for name, (_, error) in self._read_scores().items()}

    @property
    def _remedy_of_optimism(self) -> str | None:
        """Advice for honest scores, if the machine was tuned on the rows of ``scores_``."""
        return self._remedy if self.nested_ is None else None

    @property
    def _remedy(self) -> str | None:
        """Advice for honest scores of a machine without ``nested_``; None if it needs none."""
        return None

    def _read_scores(self) -> Scores:
        """``scores_`` with standard errors; the first access warns if they are optimistic."""
        scores = self._scored().scores
        warn_of_optimistic_scores(self)
        return scores

    def _scored(self) -> Scored:
        """``scores_``, their standard errors and the decisions that they rest on."""
        check_is_fitted(self)
        cached: Scored | None = vars(self).get("_held_out_scores")
        if cached is None:
            cached = self._held_out_scores = self._scored_anew()
        return cached

    def _checked_new_data(self, X: Any) -> Matrix:
        check_is_fitted(self)
        if isinstance(X, RowBlocks):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            return X
        X = validate_data(
            self, X, accept_sparse="csr", accept_large_sparse=False, dtype=np.float64, reset=False
        )
        return as_matrix(X)

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Table of fitted attributes, without scores, which take work, words and ten fits."""
        shown = copy(self)
        shown._unfitted, shown._said_optimistic = None, True
        shown._held_out_scores = Scored({}, np.zeros(0, dtype=np.intp), None)
        fitted = super(ScoredMachine, shown)._get_fitted_attr_html(doc_link)
        for name in ("scores_", "scores_se_"):
            fitted.pop(name, None)
        return fitted

    def _set_fitted(self, **attributes: Any) -> None:
        """Set fitted attributes, all at once: a fit that failed before changed none of them."""
        for name in self._made_again:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._made_again}

    @abstractmethod
    def _scored_anew(self) -> Scored:
        """`_scored`, computed."""

    @abstractmethod
    def _kernel_machine(self) -> Any:
        """The kernel machine that it is, or that it holds; NotFittedError if that is not made."""

    def _check_parameters(self) -> None:
        """ValueError or TypeError for parameters that no rows could mend."""

    def _tuned_in_folds(self) -> Nested | None:
        """Predictions of every fold by a machine that was tuned anew without it."""
        raise NotImplementedError


def check_parameters(machine: ScoredMachine) -> None:
    """ValueError or TypeError, as `fit` raises it, for parameters that no rows could mend."""
    machine._check_parameters()


def scored_of(machine: ScoredMachine) -> Scored:
    """Scores of a fitted machine, and the decisions that they rest on."""
    return machine._scored()


class ScoredRegressor(RegressorMixin, ScoredMachine):  # type: ignore[misc]
    """Base class of the regressors with scores from held-out predictions."""

    held_out_: HeldOut

    def _scored_anew(self) -> Scored:
        machine, nested = self._kernel_machine(), self.nested_
        train = np.flatnonzero(machine.fit_weight_)
        y, _, weight = (each[train] for each in self.held_out_)
        outputs = self._by_repetition() if nested is None else nested.held_out.outputs[None]
        return Scored(number_scores(y, outputs, weight, machine._units.clusters), train, None)

    @abstractmethod
    def _by_repetition(self) -> Array:
        """Held-out predictions of the rows fitted, (n_repetitions, n) or (n_repetitions, n, t).

        NaN where a row is not tested.
        """
