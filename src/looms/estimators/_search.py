"""Base class of the estimators that choose their hyper-parameters by leave-one-out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from looms._checks import check_count, check_flag, check_known, one_or_many
from looms._classes import class_indices
from looms._memory import GRID, SEARCH, check_memory
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks, as_blocks, rows_in_memory
from looms.copies import copy_groups
from looms.criteria import as_criterion
from looms.dask._blocks import gathered
from looms.estimators._callbacks import CallbackSupportMixin, CallbackWatcher
from looms.estimators._estimator_member import (
    RefittedCriterion,
    check_estimators,
)
from looms.estimators._folds import (
    CHOICE_FOLDS,
    OUTER_FOLDS,
    RowsOfFit,
    TunedInFolds,
    outer_units_of,
    takes_weight,
    tuned_without,
)
from looms.estimators._least_squares import LeastSquaresMachine
from looms.estimators._selection import Selection, combined
from looms.estimators._warnings import warn_of_copies, warn_of_scales, warn_of_time
from looms.folds import group_numbers, is_grouped, joined_groups
from looms.kernels import Kernel, Ranked
from looms.kernels._names import as_kernel, is_estimator
from looms.kernels._samples import training_rows
from looms.lssvm.features import has_few_features
from looms.lssvm.fit import Fit
from looms.optimize._minimize import OPTIMIZERS
from looms.selection import tune
from looms.selection._candidates import Candidate, choose
from looms.selection._low_rank import low_rank_objective
from looms.selection._nested import Nested, Rounds
from looms.selection._objective import objective_of
from looms.selection._scan import scan
from looms.selection._tuning import Tuning
from looms.units import Units

COPIES = ("apart", "together")
SEARCHES = ("gradient", "grid")
COMBINE = ("auto", "best", "stack")
#: Kernels that "auto" stands for. On 23 tables of 500 rows a stack of them has 0.95 × the error of
#: "rbf", and on 20 others 0.95; "ard" as a fifth gains 0.4 % [benchmarks/tables/README.md].
AUTO_KERNELS = ("linear", "rbf", "ranked_laplacian", "weighted_matern12")
#: Rows up to which rank="auto" takes the whole kernel matrix.
FULL_ROWS = 5000
#: Times of a grid that its choices without every row take.
_ROUNDS = 4.0


def chosen_criterion(machine: Any) -> Any:
    """Criterion of the chosen candidate; of given values "press", or the loss of an SVM."""
    candidates: list[Candidate] | None = getattr(machine, "candidates_", None)
    given = getattr(machine, "loss", "press")
    return given if candidates is None else candidates[machine.best_index_].criterion


class SelectingMachine(CallbackSupportMixin, LeastSquaresMachine):  # type: ignore[misc]
    """Base class of the machines that choose their hyper-parameters by leave-one-out."""

    _is_tuned = True
    criterion: Any
    optimizer: str
    prior: bool
    max_iter: int
    n_restarts: int
    tol_se: float
    copies: str
    random_state: Any
    cv: Any
    rank: int | str | None
    search: str
    combine: str
    n_iter_: int
    candidate_weights_: Array | None
    selection_weight_: Array
    selection_: Tuning
    candidates_: list[Candidate]
    cv_results_: dict[str, Any]
    best_index_: int
    _outer_seed: int

    def _selection_on(self, rows: RowsOfFit, watcher: CallbackWatcher) -> Selection:
        """The candidate with the smallest score, or a stack of several."""
        began = time.perf_counter()
        self._check_parameters()
        rows = self._checked_rows(rows)
        train, n, X = rows.train, len(rows.train), rows.X
        units, rank = rows.units(self.cv), self._rank_of(n)
        kernels, tried = self._kernels(), self._candidate_kernels(sp.issparse(X))
        estimators = [one for one in tried if is_estimator(one)]
        check_estimators(estimators, is_classifier(self), kernels)
        candidates = self._candidates(tried)
        X_train = training_rows(X, train, any(one.pairwise for one in kernels))
        whole = rank is None and not all(has_few_features(one, X_train) for one in kernels)
        if whole:
            check_memory(n, SEARCH if self.search == "gradient" else GRID)
        warn_of_scales(X_train, kernels, getattr(self, "feature_names_in_", None))
        watcher.begins(len(candidates))
        choice = choose(
            candidates,
            objective_of=self._objective_of(rows, X_train, units, rank),
            search=self._tune(),
            scorer=rows.score,
            watcher=watcher,
            random_state=rows.seed,
            by_value=self.search == "grid",
        )
        selection = Selection(rows, units, choice, self.fit_intercept)
        if self._is_stack or (self.search == "gradient" and rank is None):
            selection = combined(self, selection, candidates)
        return replace(selection, seconds=time.perf_counter() - began)

    def _candidates(self, tried: list[Any]) -> list[tuple[Any, Any]]:
        """Kernels to try, each with every criterion; estimators take none."""
        criteria = one_or_many(self.criterion)
        return [
            (kernel, criterion)
            for kernel, criterion in product(tried, criteria)
            if criterion is criteria[0] or not is_estimator(kernel)
        ]

    def _checked_rows(self, rows: RowsOfFit) -> RowsOfFit:
        """The rows, with numbers of their groups and a seed."""
        X, n = rows.X, len(rows.train)
        if isinstance(X, RowBlocks):
            X = self._checked_blocks(X)
        groups = self._checked_groups(X, rows.groups, rows.train)
        if n < 3:
            raise ValueError(
                f"Choosing by leave-one-out needs three samples of non-zero weight or more, got "
                f"{n} sample{'s' * (n != 1)}."
            )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return replace(rows, X=X, groups=groups, seed=seed, weighs=takes_weight(self))

    def _objective_of(
        self, rows: RowsOfFit, X: Matrix, units: Units, rank: int | str | None
    ) -> Callable[..., Any]:
        """Function of kernel and criterion that gives the objective on the rows ``X``."""
        options: dict[str, Any] = {
            "sample_weight": rows.own(rows.fit_weight),
            "selection_weight": rows.own(rows.selection_weight),
            "fit_intercept": self.fit_intercept,
            "units": units,
            "prior": self.prior,
        }
        y = rows.own(rows.targets)
        of_kernel: Callable[..., Any] = partial(objective_of, X, y, **options)
        if rank is not None:
            options |= {"rank": rank, "tuned": self._tune(), "random_state": rows.seed}
            of_kernel = partial(low_rank_objective, as_blocks(X), y, **options)
        classes = np.unique(rows.own(rows.y)) if rows.classes else None
        given = {name: options[name] for name in ("sample_weight", "selection_weight", "units")}

        def of_candidate(kernel: Any, criterion: Any) -> Any:
            if is_estimator(kernel):
                return RefittedCriterion(X, y, kernel, criterion, classes=classes, **given)
            return of_kernel(kernel=kernel, criterion=criterion)

        return of_candidate

    def _checked_blocks(self, blocks: RowBlocks) -> Matrix | RowBlocks:
        """Rows in blocks, as a matrix if the machine takes the whole kernel matrix."""
        blocks.check_finite()
        n = blocks.shape[0]
        if self.rank == "auto" and n <= FULL_ROWS:
            return rows_in_memory(blocks)
        return blocks

    @property
    def _whole_matrix(self) -> bool:
        return self.rank is None

    def _rank_of(self, n: int) -> int | str | None:
        """Number of landmarks for ``n`` rows, or "auto"; None for the whole kernel matrix."""
        if self.rank is None or (self.rank == "auto" and n <= FULL_ROWS):
            return None
        if any(kernel.pairwise for kernel in self._kernels()):
            raise ValueError(
                "kernel='precomputed' is the whole kernel matrix, without landmarks: use rank=None."
            )
        if self.rank != "auto" and int(self.rank) > n:
            raise ValueError(f"rank={self.rank} asks for more landmarks than there are rows, {n}.")
        return self.rank

    def _tune(self) -> Callable[..., tuple[Tuning, Fit | None]]:
        """The search with its options."""
        if self.search == "grid":
            return scan
        return partial(
            tune,
            optimizer=self.optimizer,
            max_iter=self.max_iter,
            n_restarts=self.n_restarts,
            tolerance=self.tol_se,
        )

    def _checked_groups(self, X: Matrix, groups: Any, train: AnyArray) -> AnyArray:
        """Numbers of the groups, joined with copies if these are held out together."""
        numbers = group_numbers(gathered(groups), X.shape[0], self.cv)
        if self.copies == "together":
            return joined_groups(numbers, copy_groups(rows_in_memory(X)))
        if not (is_grouped(numbers) or isinstance(X, RowBlocks)):
            copies = copy_groups(X)
            remedy = "Drop them, or hold them out together: copies='together'."
            warn_of_copies(X[train], copies[train], remedy)
        return numbers

    @property
    def _was_tuned(self) -> bool:
        return True

    def _chosen_anew(self) -> Nested:
        """In closed form for points of a grid, otherwise by machines tuned anew in folds."""
        machine = self._unfitted
        targets, _, weight = self.loo_
        classes = is_classifier(self)
        y = self.classes_[class_indices(targets)] if classes else targets
        weights = weight, self.fit_weight_, self.selection_weight_
        data = self._rows_of_fit(), y, targets, *weights, self.units_.clusters, classes
        scorer = machine._score if classes else None
        rows = RowsOfFit(*data, scorer, takes_weight(machine), self._outer_seed)
        if self._repeats_in_closed_form:
            return self._in_rounds(rows)
        most = OUTER_FOLDS
        if self.choice_units_ is not None:  # others than those that compared the candidates
            most, rows = CHOICE_FOLDS, replace(rows, seed=rows.seed + 1)
        outer = outer_units_of(rows, machine.cv, most)
        warn_of_time(outer.n_units * self._fit_seconds)
        (machines,) = tuned_without(self, [machine], outer, rows, machine.cv)
        rules = None
        if classes:
            rules = [(machine.threshold_, machine.calibrator_) for machine in machines]
        tuned = TunedInFolds.of(machines, outer, rows)
        return tuned.nested(rows, rows.own(targets), rules, whole=True)

    @property
    def _repeats_in_closed_form(self) -> bool:
        """True if a fitted machine repeats its choice in closed form: a grid on all rows."""
        machine = self._unfitted
        if machine is None or machine.search != "grid" or machine._is_stack or self.X_fit_ is None:
            return False
        kernels = not any(map(is_estimator, machine._candidate_kernels()))
        return kernels and self.landmarks_ is None and Rounds.can_take(self._units)

    def _in_rounds(self, rows: RowsOfFit) -> Nested:
        """Choices among the points of the grid without every unit, from one factorization each."""
        machine, train = self._unfitted, rows.train
        X, y = training_rows(rows.X, train, self._pairwise), rows.own(rows.targets)
        check_memory(len(train), GRID)
        warn_of_time(_ROUNDS * self._fit_seconds, n_jobs=1)
        rounds = Rounds(y, self._units, classes=rows.classes)
        objective_of = machine._objective_of(rows, X, self._units, None)
        for kernel, criterion in machine._candidates(machine._candidate_kernels(sp.issparse(X))):
            rounds.scan(objective_of(kernel=as_kernel(kernel), criterion=criterion))
        return rounds.nested(train, rows.own(rows.weight), rows.score)

    @property
    def _is_stack(self) -> bool:
        return self.combine == "stack" or (self.combine == "auto" and is_auto(self.kernel))

    def _candidate_kernels(self, sparse: bool = False) -> list[Any]:
        """Kernels to try, as they were passed, or those that "auto" stands for.

        Sparse samples go without ranked kernels, since their ranks are dense.
        """
        if not is_auto(self.kernel):
            return one_or_many(self.kernel)
        return [k for k in AUTO_KERNELS if not (sparse and isinstance(as_kernel(k), Ranked))]

    def _kernels(self) -> list[Kernel]:
        given = self._candidate_kernels()
        return [as_kernel(kernel) for kernel in given if not is_estimator(kernel)]

    def _check_parameters(self) -> None:
        criteria = one_or_many(self.criterion)
        if not criteria or not self._candidate_kernels():
            raise ValueError("kernel and criterion must each name at least one candidate.")
        self._kernels()  # an unknown name is an error
        for criterion in criteria:
            if as_criterion(criterion).needs_labels and not is_classifier(self):
                raise ValueError(
                    f"Criterion {criterion!r} judges classes; for regression use 'press'."
                )
        check_known(self.search, "search", SEARCHES)
        if self.search == "grid" and (len(criteria) > 1 or self.prior):
            raise ValueError(
                "search='grid' compares its candidates by one criterion, without a prior: give one "
                "criterion and prior=False."
            )
        check_known(self.combine, "combine", COMBINE)
        check_flag("fit_intercept", self.fit_intercept)
        check_flag("prior", self.prior)
        check_known(self.optimizer, "optimizer", OPTIMIZERS)
        if not (isinstance(self.copies, str) and self.copies in COPIES):
            raise ValueError(f"copies must be one of {', '.join(COPIES)}, got {self.copies!r}.")
        if self.rank not in (None, "auto"):
            check_count(self.rank, "rank", others=", 'auto' or None")
        check_count(self.max_iter, "max_iter")
        check_count(self.n_restarts, "n_restarts", least=0)
        if not (isinstance(self.tol_se, Real) and 0 <= float(self.tol_se) < np.inf):
            raise ValueError(f"tol_se must be a nonnegative number, got {self.tol_se!r}.")


def is_auto(kernel: Any) -> bool:
    """True if looms chooses the kernels."""
    return isinstance(kernel, str) and kernel == "auto"
