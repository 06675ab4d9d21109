"""Base class of the kernel models: their candidates, and the selection among them."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from sklearn.base import is_classifier
from sklearn.utils import Tags, check_random_state

from looms._checks import check_count
from looms._memory import GRID, check_memory
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks, rows_in_memory
from looms.dask._blocks import gathered
from looms.estimators._base import validated
from looms.estimators._callbacks import CallbackSupportMixin, CallbackWatcher
from looms.estimators._estimator_member import check_estimators, estimator_problem
from looms.estimators._fit_routing import model_takes_weights
from looms.estimators._folds import (
    CHOICE_FOLDS,
    SHARE_IN_FOLDS,
    RowsOfFit,
    nearly_noiseless,
    tuned_in_outer_folds,
    unfitted,
)
from looms.estimators._one_kernel import candidate_of, check_candidate, model_of_folds, problem_of
from looms.estimators._selection import (
    MOST_IN_FOLDS,
    Selection,
    TunedInFolds,
    choice_folds,
    combined_in_folds,
    stacked_by_fit,
)
from looms.estimators._updates import UpdatableModel
from looms.estimators._warnings import (
    warn_of_duplicates,
    warn_of_long_fit,
    warn_of_scales,
    warn_of_time,
)
from looms.folds import group_numbers, is_grouped
from looms.kernels import Kernel
from looms.kernels._names import as_kernel
from looms.kernels._samples import training_rows
from looms.selection._candidates import Candidate, choose
from looms.selection._nested import Nested, Rounds
from looms.selection._support_vectors import DEVIANCE
from looms.selection._tuning import Tuning
from looms.units import Units

#: Times of a grid that its choices without every row take.
_ROUNDS = 4.0


class SelectingModel(CallbackSupportMixin, UpdatableModel):  # type: ignore[misc]
    """Base class of the kernel models, each the best of some candidates or their stack."""

    random_state: Any
    cv: Any
    n_jobs: int | None
    verbose: int
    n_iter_: int
    candidate_weights_: Array | None
    selection_weight_: Array
    selection_: Tuning
    candidates_: list[Candidate]
    cv_results_: dict[str, Any]
    best_index_: int
    _outer_seed: int
    #: True if groups were given to the fit.
    _grouped: bool = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = any(
            (isinstance(kernel, str) and kernel == "precomputed")
            or getattr(kernel, "pairwise", False)
            for kernel in self._given_kernels
        )
        return tags

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Matrix, AnyArray, Array]:
        return validated(self, X, y, sample_weight, **options)

    @property
    @abstractmethod
    def _candidates(self) -> list[Any]:
        """Models with one kernel, and estimators of scikit-learn, to choose from."""

    def _candidates_for(self, X: Matrix | RowBlocks) -> list[Any]:
        """The candidates for rows."""
        return self._candidates

    @property
    def _of_kernels(self) -> list[Any]:
        """The candidates with a kernel."""
        return [one for one in self._candidates if isinstance(one, SelectingModel)]

    @property
    def _given_kernels(self) -> list[Any]:
        """Kernels as they were passed."""
        return [one.kernel for one in self._of_kernels]

    def _kernels(self) -> list[Kernel]:
        return [as_kernel(kernel) for kernel in self._given_kernels]

    @property
    def _stacks(self) -> bool:
        """True if several candidates are stacked, by the outputs of the fit if without folds."""
        return False

    @property
    def _tunes(self) -> bool:
        """True unless all values are given; estimators of scikit-learn may tune themselves."""
        kernels = self._of_kernels
        return len(self._candidates) > 1 or not kernels or kernels[0].mu is None

    def _selection_on(self, rows: RowsOfFit, watcher: CallbackWatcher) -> Selection:
        """The candidate with the smallest loss, or a stack of several."""
        began = time.perf_counter()
        rows = self._checked_rows(rows)
        X = training_rows(rows.X, rows.train, any(one.pairwise for one in self._kernels()))
        candidates, units = self._candidates_for(X), rows.units(self.cv)
        kernels = [one for one in candidates if isinstance(one, SelectingModel)]
        estimators = [one for one in candidates if one not in kernels]
        check_estimators(estimators, rows.classes, self._kernels())
        operations, n_arrays = self._cost_on(X)
        if n_arrays:
            check_memory(len(rows.train), n_arrays)
        warn_of_long_fit(operations, len(rows.train), n_arrays, self._remedies_of_time)
        if self._tunes:
            warn_of_scales(X, self._kernels(), getattr(self, "feature_names_in_", None))
        options = self._options_on(rows, units)
        compares = len(candidates) > 1 and self._compares(X, kernels)
        outer = choice_folds(self, rows, units) if compares else None
        problems = [
            estimator_problem(one, rows, X, outer, **options)
            if one in estimators
            else problem_of(one, rows, X, **options)
            for one in candidates
        ]
        on_grid = self._all_on_grid(kernels)
        watcher.begins(len(problems))
        choice = choose(
            problems,
            loss_of=rows.loss,
            watcher=watcher,
            by_value=on_grid,
        )
        selection = Selection(rows, units, choice, self.fit_intercept, self._tunes)
        for_folds = [model_of_folds(one) if one in kernels else one for one in candidates]
        if outer is not None:
            selection = combined_in_folds(self, selection, for_folds, outer)
            quiet = nearly_noiseless(selection.in_folds, rows.classes)
            for_folds = candidates if quiet else for_folds
        elif compares and self._stacks:
            selection = stacked_by_fit(self, selection)
        return replace(selection, for_folds=for_folds, seconds=time.perf_counter() - began)

    def _for_evaluation(self, selection: Selection) -> Any:
        """Unfitted model that `evaluate` fits without each fold; None if its folds are used up."""
        return unfitted(self)

    def _options_on(self, rows: RowsOfFit, units: Units) -> dict[str, Any]:
        """Options of an objective of the rows."""
        return {
            "sample_weight": rows.own(rows.fit_weight),
            "selection_weight": rows.own(rows.selection_weight),
            "fit_intercept": self.fit_intercept,
            "units": units,
        }

    def _compares(self, X: Matrix | RowBlocks, kernels: Sequence[Any]) -> bool:
        """True if candidates are compared other than by the values that tuned them."""
        whole = all(candidate_of(one).landmarks_for(X) is None for one in kernels)
        return self._stacks or (whole and not self._all_on_grid(kernels))

    def _cost_on(self, X: Matrix | RowBlocks) -> tuple[float, float]:
        """Floating-point operations of a fit to rows, with its fits in folds, very roughly.

        And the arrays of the size of the kernel matrix that it has in memory at once.
        """
        candidates = self._candidates_for(X)
        kernels = [one for one in candidates if isinstance(one, SelectingModel)]
        operations = float(sum(candidate_of(one).operations_for(X) for one in kernels))
        few = X.shape[0] <= MOST_IN_FOLDS
        if len(candidates) > 1 and few and self._compares(X, kernels):
            operations *= 1 + SHARE_IN_FOLDS * CHOICE_FOLDS * (1 - 1 / CHOICE_FOLDS) ** 3
        return operations, max((candidate_of(one).arrays_for(X) for one in kernels), default=0.0)

    @property
    def _remedies_of_time(self) -> list[str]:
        """Settings that make a fit faster."""
        ways = ["fewer candidates"] * (len(self._candidates) > 1)
        if any(candidate_of(one).may_have_landmarks for one in self._of_kernels):
            of = "" if self in self._of_kernels else " of the candidates"
            ways.append(f"fewer landmarks{of} (n_landmarks=...)")
        return ways

    @staticmethod
    def _all_on_grid(kernels: Sequence[Any]) -> bool:
        """True if the candidates with a kernel are compared on grids."""
        return bool(kernels) and all(candidate_of(one).on_grid for one in kernels)

    @property
    def _was_tuned(self) -> bool:
        # By the fit: parameters may have been set since.
        return "candidates_" in vars(self) or self._tuned_before

    def _chosen_anew(self) -> Nested:
        """In closed form for points of a grid, otherwise by models tuned anew in folds."""
        model, classes = self._unfitted, is_classifier(self)
        loss_of = model._loss_of(self.classes_) if classes else None
        data = self._rows_of_fit(), self._y_of_fit
        rows = RowsOfFit.of(self, *data, loss_of=loss_of, weighs=model_takes_weights(model))
        if self._repeats_in_closed_form:
            return self._in_rounds(rows)
        outer, models = tuned_in_outer_folds(self, model, self, rows)
        rules = None
        if classes:
            rules = [one._rule for one in models]
        tuned = TunedInFolds.of(models, outer, rows)
        return tuned.nested(rows, rows.own(rows.targets), rules, whole=True)

    @property
    def _repeats_in_closed_form(self) -> bool:
        """True if a fitted model repeats its choice in closed form: a grid on all rows."""
        model = self._unfitted
        if model is None or model._stacks or self.X_fit_ is None:
            return False
        kernels = model._of_kernels
        only = len(kernels) == len(model._candidates) and self._all_on_grid(kernels)
        return only and self.landmarks_ is None and Rounds.can_take(self._units)

    def _in_rounds(self, rows: RowsOfFit) -> Nested:
        """Choices among the points of the grid without every unit, from one factorization each."""
        model, train = self._unfitted, rows.train
        X, y = training_rows(rows.X, train, self._pairwise), rows.own(rows.targets)
        check_memory(len(train), GRID)
        warn_of_time(_ROUNDS * self._fit_seconds, n_jobs=1)
        rounds = Rounds(y, self._units, classes=rows.classes)
        options = self._options_on(rows, self._units)
        for one in model._candidates_for(X):
            problem = problem_of(one, rows, X, **options)
            rounds.scan(problem.candidate.objective(problem))
        return rounds.nested(train, rows.own(rows.weight), rows.loss)

    def _checked_rows(self, rows: RowsOfFit) -> RowsOfFit:
        """The rows, with numbers of their groups and a seed."""
        X, n, least = rows.X, len(rows.train), 3 if self._tunes else 2
        if isinstance(X, RowBlocks):
            X.check_finite()
            if any(candidate_of(one).landmarks_for(X) is None for one in self._of_kernels):
                X = rows_in_memory(X)
        numbers = group_numbers(gathered(rows.groups), X.shape[0], self.cv)
        grouped = rows.groups is not None
        if self._tunes and not (is_grouped(numbers) or isinstance(X, RowBlocks)):
            warn_of_duplicates(X[rows.train])
        if n < least:
            words = {2: "Leave-one-out needs two", 3: "Tuning with leave-one-out needs three"}
            raise ValueError(
                f"{words[least]} samples of non-zero weight or more, got {n} sample"
                f"{'s' * (n != 1)}: give more{', or mu=...' if least == 3 else ''}."
            )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        options = {"grouped": grouped, "seed": seed, "weighs": model_takes_weights(self)}
        checked = replace(rows, X=X, groups=numbers, **options)
        return replace(checked, selection_weight=self._selection_weight(checked))

    def _selection_weight(self, rows: RowsOfFit) -> Array:
        """(n,) weights of the rows in the criterion."""
        return rows.selection_weight

    @property
    def _whole_matrix(self) -> bool:
        """True if the model takes all rows at once, by their kernel matrix."""
        return all(one.n_landmarks is None for one in self._of_kernels)

    def _check_parameters(self) -> None:
        if not (self.n_jobs is None or isinstance(self.n_jobs, Integral)):
            raise TypeError(f"n_jobs must be None or an integer, -1 for all, got {self.n_jobs!r}.")
        if not isinstance(self.verbose, bool):
            check_count(self.verbose, "verbose", 0)
        for one in self._of_kernels:
            check_candidate(one, is_classifier(self))


def chosen_criterion(model: Any) -> Any:
    """Criterion of outputs of the selected candidate; of given values "press"."""
    candidates: list[Candidate] | None = getattr(model, "candidates_", None)
    chosen = "press" if candidates is None else candidates[model.best_index_].criterion
    return "hinge" if chosen == DEVIANCE else chosen
