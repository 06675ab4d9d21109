"""Fitting a machine whose hyper-parameters are chosen by leave-one-out."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from looms._typing import AnyArray, Array, Matrix
from looms.copies import copy_groups
from looms.criteria import Criterion, as_criterion
from looms.estimators._callbacks import CallbackSupportMixin, CallbackWatcher, warn_of_copies
from looms.estimators._machine import (
    LeastSquaresMachine,
    check_flag,
    check_kernel_matrix,
    fitted_machine,
    one_or_many,
)
from looms.kernels import Kernel
from looms.kernels._samples import training_rows
from looms.optimise._minimise import OPTIMIZERS
from looms.selection._candidates import Candidate, Choice, Judge, choose
from looms.selection._tune import Tuning

COPIES = ("apart", "together")


class SelectingMachine(CallbackSupportMixin, LeastSquaresMachine):  # type: ignore[misc]
    """Base of the self-tuning estimators: from their parameters to a choice."""

    criterion: Any
    optimizer: str
    prior: bool
    max_iter: int
    n_restarts: int
    tol: float
    copies: str
    random_state: Any
    n_iter_: int
    groups_: AnyArray | None
    selection_: Tuning
    candidates_: list[Candidate]
    cv_results_: dict[str, Any]
    best_index_: int

    def _criteria(self) -> list[str | Criterion]:
        criteria = one_or_many(self.criterion)
        for criterion in criteria:
            as_criterion(criterion)  # an unknown name is an error before any work
        return criteria

    def _choose(
        self,
        X: Matrix,
        targets: Array,
        weight: Array,
        fit_weight: Array,
        selection_weight: Array,
        judge: Judge,
        groups: AnyArray | None,
        watcher: CallbackWatcher,
    ) -> Choice:
        """Check the parameters and choose among the candidates that they name."""
        kernels, criteria = self._kernels(), self._criteria()
        self._check_search(kernels, criteria)
        if kernels[0].pairwise:
            check_kernel_matrix(X)
        seen = np.flatnonzero(weight > 0)
        if len(seen) < 3:
            raise ValueError(
                f"Choosing by leave-one-out needs three samples of non-zero weight or more, got "
                f"{len(seen)} sample{'s' * (len(seen) != 1)}."
            )
        watcher.begins(len(kernels) * len(criteria))
        return choose(
            training_rows(X, seen, kernels[0].pairwise) if len(seen) < len(weight) else X,
            targets[seen],
            kernels=one_or_many(self.kernel),
            criteria=criteria,
            judge=judge,
            watcher=watcher,
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
            objective_options={
                "sample_weight": fit_weight[seen],
                "selection_weight": selection_weight[seen],
                "fit_intercept": self.fit_intercept,
                "groups": None if groups is None else groups[seen],
                "prior": self.prior,
            },
            tune_options={
                "optimizer": self.optimizer,
                "max_iter": self.max_iter,
                "n_restarts": self.n_restarts,
                "tolerance": self.tol,
            },
        )

    def _held_out_groups(self, X: Matrix, weight: Array) -> AnyArray | None:
        """Labels of the rows that are held out together, None for each by itself."""
        if not (isinstance(self.copies, str) and self.copies in COPIES):
            raise ValueError(f"copies must be one of {', '.join(COPIES)}, got {self.copies!r}.")
        groups = copy_groups(X)
        if self.copies == "together":
            return groups
        seen = np.flatnonzero(weight > 0)
        warn_of_copies(
            X[seen],
            groups[seen],
            "Drop them, or hold them out together: copies='together'.",
        )
        return None

    def _keep(
        self, choice: Choice, X: Matrix, weight: Array, targets: Array, **attributes: Any
    ) -> None:
        best = choice.best
        self._set_fitted(
            candidates_=choice.candidates,
            best_index_=choice.candidates.index(best),
            cv_results_=results_table(choice.candidates),
            selection_=choice.tuning,
            n_iter_=max(1, choice.tuning.n_iterations),
            **attributes,
            **fitted_machine(X, weight, targets, best.kernel, best.mu, choice.fit),
        )

    def _check_search(self, kernels: list[Kernel], criteria: list[Any]) -> None:
        if not kernels or not criteria:
            raise ValueError("kernel and criterion must each name at least one candidate.")
        if len({kernel.pairwise for kernel in kernels}) > 1:
            raise ValueError(
                "Precomputed kernels and kernels of features cannot be candidates for the same X."
            )
        check_flag("prior", self.prior)
        if not (isinstance(self.optimizer, str) and self.optimizer in OPTIMIZERS):
            known = ", ".join(OPTIMIZERS)
            raise ValueError(f"Unknown optimizer {self.optimizer!r}; known are {known}.")
        for name, least in (("max_iter", 1), ("n_restarts", 0)):
            value = getattr(self, name)
            if not (isinstance(value, (int, np.integer)) and value >= least):
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
        if not (isinstance(self.tol, Real) and 0 <= float(self.tol) < np.inf):
            raise ValueError(f"tol must be a nonnegative number, got {self.tol!r}.")


def results_table(candidates: list[Candidate]) -> dict[str, Any]:
    """``cv_results_``: a row for each candidate, with the one of least score ranked first."""
    params = [
        {h.name: h.value for h in candidate.kernel.hyperparameters} | {"mu": candidate.mu}
        for candidate in candidates
    ]
    scores = np.array([candidate.score for candidate in candidates])
    table: dict[str, Any] = {
        "kernel": [candidate.kernel_name for candidate in candidates],
        "criterion": [str(candidate.criterion) for candidate in candidates],
    }
    one_number = dict.fromkeys(name for row in params for name in row if "[" not in name)
    for name in one_number:
        table[f"param_{name}"] = np.array([row.get(name, np.nan) for row in params])
    return table | {
        "params": params,
        "loo_score": scores,
        "rank_loo_score": rankdata(scores, method="min").astype(int),
        "seconds": np.array([candidate.seconds for candidate in candidates]),
    }
