"""Models with one kernel as candidates: values of their parameters, costs and searches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import Parallel
from sklearn.base import clone

from looms._advice import setting
from looms._checks import check_count, check_flag, check_known
from looms._memory import GIVEN, GRID, SEARCH
from looms._typing import Array, Matrix
from looms._words import one_line
from looms.blocks import RowBlocks, blocks_of
from looms.criteria import Criterion, as_criterion
from looms.estimators._encoding import class_weights
from looms.estimators._search import Search
from looms.fitted._rows import Rows
from looms.kernels import Kernel
from looms.kernels._names import KernelLike, as_kernel, is_estimator
from looms.kernels._samples import Samples, center_of, check_scale
from looms.lssvm.features import has_few_features
from looms.lssvm.fit import Fit, KernelMember, LandmarkMember
from looms.selection._low_rank import (
    LARGEST_RANK,
    SAMPLE_ROWS,
    drawn_landmarks,
    low_rank_objective,
)
from looms.selection._objective import ROWS_OF_SEARCH, HeldOutCriterion, objective_of
from looms.selection._problem import Given, Problem, Tuned
from looms.selection._scan import scan
from looms.selection._subsamples import samples_of_search
from looms.selection._support_vectors import (
    DEVIANCE,
    SupportVectorCriterion,
    score_of,
    search_paths,
)
from looms.selection._tune import ROWS_OF_EXTRAPOLATION, tune
from looms.selection._tuning import Tuning
from looms.svm._problem import Loss
from looms.units import Units

#: Rows up to which n_landmarks="auto" takes the whole kernel matrix.
FULL_ROWS = 7000
#: Landmarks of n_landmarks="auto" beyond that if the values are given.
_GIVEN_LANDMARKS = LARGEST_RANK // 2
#: Floating-point operations of a search over n³, with its smaller ones, at the speed of a matrix
#: product; a value on all of many rows takes one.
_OF_SEARCH = 16.0
#: The same on m landmarks over m², for each row, and for each of those that searches run on.
_OF_ALL_ROWS, _OF_SOME_ROWS, _SOME_ROWS = 12.0, 60.0, 30_000
#: The same of finding how many landmarks pay, and about how many do so over √n. With them the
#: default fit on 6000, 20,000 and 100,000 rows takes 0.7, 1.2 and 0.6 × as long as told
#: [benchmarks/results/default_call.csv]; 64 landmarks pay for a noisy target, 1024 for a smooth
#: one.
_OF_NUMBER, _LANDMARKS_THAT_PAY = 8e11, 3.6
#: The same of support vector machines: some fifty points with their leave-one-out paths.
_OF_PATHS = 200.0
LOSSES = ("squared", "hinge", "squared_hinge")
#: Share of their rows that searches of fits without a fold end on.
SHARE_IN_FOLDS = 0.25
#: Options of searches along gradients.
_OF_GRADIENTS = ("max_iter", "n_restarts", "tol", "max_samples", "prior")


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A candidate with the squared loss, tuned along gradients or on a grid.

    Attributes
    ----------
    kernel : kernel, as it was passed.
    mu : regularization; with a number nothing is searched.
    n_landmarks : number of landmarks, or "auto"; None for the whole kernel matrix.
    search : options of the search.
    largest_rank : number of landmarks that "auto" tries at most.
    """

    kernel: KernelLike
    mu: float | None
    n_landmarks: int | str | None
    search: Search
    largest_rank: int = LARGEST_RANK
    methods = ("gradient", "grid")

    @property
    def criterion(self) -> str | Criterion:
        """Criterion of the search, by default the mean squared error."""
        return "press" if self.search.criterion is None else self.search.criterion

    @property
    def on_grid(self) -> bool:
        """True if the points of a grid compete, whose choice is repeated in closed form."""
        return self.search.method == "grid"

    @property
    def may_have_landmarks(self) -> bool:
        """True unless the kernel matrix is given."""
        return not as_kernel(self.kernel).pairwise

    def check(self, classes: bool) -> None:
        """ValueError for a criterion of classes without order, if these are no such ``classes``."""
        if as_criterion(self.criterion).needs_labels > classes:
            raise ValueError(
                f"Criterion {self.criterion!r} judges classes; for regression use 'press', as for "
                "ordered classes."
            )

    def landmarks_for(self, X: Matrix | RowBlocks) -> int | str | None:
        """Number of landmarks for the rows ``X``, or "auto"; None for the whole kernel matrix."""
        kernel, n = as_kernel(self.kernel), X.shape[0]
        few = has_few_features(kernel, X.shape) and not isinstance(X, RowBlocks)
        whole = n <= FULL_ROWS or kernel.pairwise or few
        if self.n_landmarks is None or (self.n_landmarks == "auto" and whole):
            return None
        if kernel.pairwise:
            raise ValueError(
                f"{setting('kernel', 'precomputed')} is the whole kernel matrix, without "
                f"landmarks: use {setting('n_landmarks', None)}."
            )
        if self.n_landmarks == "auto":
            return "auto" if self.mu is None else _GIVEN_LANDMARKS
        return min(int(self.n_landmarks), n)

    def arrays_for(self, X: Matrix | RowBlocks) -> float:
        """Arrays of the size of the kernel matrix that a fit to ``X`` has in memory at once."""
        few = has_few_features(as_kernel(self.kernel), X.shape)
        if few or self.landmarks_for(X) is not None:
            return 0.0
        if self.mu is not None:
            return GIVEN
        share = self._searched_of(X.shape[0]) / X.shape[0]
        return GRID if self.on_grid else max(GIVEN, SEARCH * share**2)

    def _searched_of(self, n: int) -> int:
        """Number of the n rows that a search by the whole kernel matrix is on."""
        return n if self.on_grid else samples_of_search(self.search.max_samples, n, ROWS_OF_SEARCH)

    def operations_for(self, X: Matrix | RowBlocks) -> float:
        """Floating-point operations of a fit to ``X``, very roughly."""
        m, n, given = self.landmarks_for(X), float(X.shape[0]), self.mu is not None
        if has_few_features(as_kernel(self.kernel), X.shape):
            return 0.0
        if given:
            return n**3 if m is None else 10.0 * n * float(m) ** 2
        if m is None:
            searched = float(self._searched_of(X.shape[0]))
            values = (searched < n) + (searched < n <= ROWS_OF_EXTRAPOLATION)
            return _OF_SEARCH * searched**3 + values * n**3
        size = min(self.largest_rank, _LANDMARKS_THAT_PAY * n**0.5) if m == "auto" else float(m)
        rows = _OF_ALL_ROWS * n + _OF_SOME_ROWS * min(n, _SOME_ROWS)
        return rows * size**2 + _OF_NUMBER * (m == "auto")

    def searched(self, objective: HeldOutCriterion, **options: Any) -> tuple[Tuning, Fit | None]:
        """Hyper-parameters that the search finds, and the model there.

        ``options`` are the random state and callbacks of `looms.selection._tune.tune`.
        """
        search = self.search
        if self.on_grid:
            return scan(objective, **options)
        return tune(
            objective,
            max_iter=search.max_iter,
            n_restarts=search.n_restarts,
            tolerance=search.tol,
            max_samples=search.max_samples,
            minimizer=search._minimizer,
            **options,
        )

    def tuned(self, problem: Problem, **callbacks: Any) -> Tuned:
        """The least criterion that the search finds, or that of the given values."""
        if self.mu is not None:
            return self._given(problem, self.mu)
        objective, rng = self.objective(problem), np.random.RandomState(problem.seed)
        options = {"random_state": rng, "starts": problem.starts}
        tuning, fit = self.searched(objective, **options, **callbacks)
        failure = "" if fit else objective.failure_at(tuning.theta)
        return Tuned.of(objective, tuning, fit, failure)

    def objective(self, problem: Problem) -> HeldOutCriterion:
        """The criterion as a function of the hyper-parameters."""
        m, kernel = self.landmarks_for(problem.X), as_kernel(self.kernel)
        options = {"criterion": self.criterion, "prior": self.search.prior} | problem.options
        if m is None:
            return objective_of(problem.X, problem.y, kernel=kernel, **options)
        n = samples_of_search(self.search.max_samples, min(len(problem.y), SAMPLE_ROWS))
        return low_rank_objective(
            blocks_of(problem.X),
            problem.y,
            kernel=kernel,
            rank=m,
            largest_rank=self.largest_rank,
            tuned=self.ending_on(None).searched,
            n_sample=n,
            random_state=problem.seed,
            **options,
        )

    def _given(self, problem: Problem, mu: float) -> Tuned:
        """The model with given values; those that the kernel leaves open are of the rows."""
        X, kernel, m = problem.X, as_kernel(self.kernel), self.landmarks_for(problem.X)
        member: KernelMember
        if m is None:
            if not kernel.pairwise:
                check_scale(X)
            samples = Samples(X, center=center_of(X), weight=problem.zeta)
            member = KernelMember(1.0, kernel.started(samples), mu)
        else:
            X, rng = blocks_of(X), np.random.RandomState(problem.seed)
            kernel, landmarks = drawn_landmarks(kernel, X, int(m), rng)
            samples = Samples(landmarks, center=center_of(landmarks))
            member = LandmarkMember(1.0, kernel, mu, landmarks=landmarks)
        return Given(self.kernel, self.criterion, member, samples).tuned(replace(problem, X=X))

    def with_kernel(self, kernel: Kernel, max_samples: float | None = None) -> Self:
        """The candidate with another kernel, without landmarks, and perhaps a shorter search."""
        one = replace(self, kernel=kernel, n_landmarks=None)
        return one if self.on_grid or self.search.max_samples else one.ending_on(max_samples)

    def ending_on(self, max_samples: float | None) -> Self:
        """The candidate with a search that ends on so many samples, or all."""
        return replace(self, search=clone(self.search).set_params(max_samples=max_samples))


@dataclass(frozen=True, eq=False)
class SupportVectors:
    """A candidate with a hinge loss, tuned by the paths of its models without each unit.

    Attributes
    ----------
    kernel, mu, search : as for `LeastSquares`.
    loss : "hinge" or "squared_hinge".
    n_jobs : number of processes that solve models.
    """

    kernel: KernelLike
    mu: float | None
    loss: Loss
    search: Search
    n_jobs: int | None
    methods = ("pattern", "grid")
    on_grid = may_have_landmarks = False

    @property
    def criterion(self) -> str | Criterion:
        """Criterion of the search, by default the deviance."""
        return DEVIANCE if self.search.criterion is None else self.search.criterion

    def check(self, classes: bool) -> None:
        """ValueError for options of a search that do not suit, or ordered classes."""
        if not classes:
            raise ValueError(
                f"{setting('loss', self.loss)} is for classes without order: use "
                f"{setting('loss', 'squared')}, or "
                f"{setting('no order', text='give y.astype(str)')}."
            )
        score_of(self.criterion)
        given, plain = self.search.get_params(), Search().get_params()
        others = [name for name in _OF_GRADIENTS if given[name] != plain[name]]
        if others:
            raise ValueError(
                f"{setting('loss', self.loss)} is searched without gradients, for which Search has "
                f"{', '.join(others)}: leave that out, or use {setting('loss', 'squared')}."
            )

    def landmarks_for(self, X: Matrix | RowBlocks) -> None:
        return None

    def arrays_for(self, X: Matrix | RowBlocks) -> float:
        return SEARCH

    def operations_for(self, X: Matrix | RowBlocks) -> float:
        return (1.0 if self.mu is None else 1.0 / 50) * _OF_PATHS * float(X.shape[0]) ** 3

    def tuned(self, problem: Problem, **callbacks: Any) -> Tuned:
        """The least criterion that the search finds, or that of the given values."""
        values: dict[str, Any] = {"mu": self.mu, "loss": self.loss, "criterion": self.criterion}
        return search_paths(
            SupportVectorCriterion(problem, kernel=as_kernel(self.kernel), **values),
            method=self.search.method or "pattern",
            resolution=self.search.resolution,
            run=Parallel(n_jobs=self.n_jobs, return_as="generator"),
            **callbacks,
        )

    def with_kernel(self, kernel: Kernel, max_samples: float | None = None) -> Self:
        """The candidate with another kernel; it has no landmarks."""
        return replace(self, kernel=kernel)


def candidate_of(model: Any) -> LeastSquares | SupportVectors:
    """The candidate that the parameters of a model describe."""
    search = Search() if model.search is None else model.search
    if model.loss == "squared":
        return LeastSquares(model.kernel, model.mu, model.n_landmarks, search)
    return SupportVectors(model.kernel, model.mu, model.loss, search, model.n_jobs)


def problem_of(
    model: Any,
    rows: Rows,
    X: Matrix | RowBlocks,
    units: Units,
    fit_intercept: bool,
    parts: tuple[Problem, ...] = (),
    largest_rank: int = LARGEST_RANK,
) -> Problem:
    """The candidate on the rows of a fit; ``X`` are those that take part."""
    candidate = candidate_of(model)
    if isinstance(candidate, LeastSquares):
        candidate = replace(candidate, largest_rank=largest_rank)
    data = X, rows.own(rows.targets), rows.own(rows.fit_weight)
    weight = rows.own(criterion_weight(candidate.search, rows))
    return Problem(candidate, *data, weight, fit_intercept, units, rows.seed, parts)


def criterion_weight(search: Search, rows: Rows) -> Array:
    """(n,) weights of the rows in the criterion of a search."""
    given, same = search.class_weight, "same"
    if not rows.outcome.decides or (isinstance(given, str) and given == same):
        return rows.selection_weight
    labels, classes = rows.outcome.codes(rows.targets), rows.outcome.classes
    name = "class_weight of the search"
    return rows.weight * class_weights(given, labels, classes, rows.weight, name, same)


def model_of_folds(model: Any) -> Any:
    """The model that is fitted without a fold, whose search, if any, ends on a share of the rows.

    On 23 tables of 500 rows a stack has 0.999 × the error of one with searches on all rows.
    """
    search = _search_along_gradients(model)
    return model if search is None or search.max_samples else _ending_on(model, SHARE_IN_FOLDS)


def model_of_part(model: Any, n: int) -> Any:
    """The model that is tuned on a part of n rows, of which ``max_samples`` may be a share."""
    search = _search_along_gradients(model)
    if search is None or search.max_samples is None:
        return model
    return _ending_on(model, samples_of_search(search.max_samples, n))


def _search_along_gradients(model: Any) -> Search | None:
    """The search of a model with a kernel and the squared loss, unless it is on a grid."""
    candidate = candidate_of(model) if has_kernel(model) else None
    return (
        None if not isinstance(candidate, LeastSquares) or candidate.on_grid else candidate.search
    )


def _ending_on(model: Any, max_samples: float) -> Any:
    """The model with a search that ends on so many rows."""
    candidate = candidate_of(model)
    assert isinstance(candidate, LeastSquares)
    return clone(model).set_params(search=candidate.ending_on(max_samples).search)


def check_candidate(model: Any, classes: bool) -> None:
    """ValueError or TypeError for parameters that no rows could mend."""
    if isinstance(model.kernel, (list, tuple)):
        task = "Classifier" if classes else "Regressor"
        raise ValueError(
            f"{setting('kernel')} must be one kernel, got a list of {len(model.kernel)}: "
            f"Tabular{task}(candidates=...) compares several kernels, or stacks them."
        )
    if is_estimator(model.kernel):
        raise TypeError(
            f"A kernel must be a name, an object or a function, got {one_line(model.kernel)}."
        )
    as_kernel(model.kernel)  # an unknown name is an error
    mu, m, loss = model.mu, model.n_landmarks, model.loss
    if mu is not None and not (isinstance(mu, Real) and 0 < float(mu) < np.inf):
        raise ValueError(f"mu must be a positive number, or None to tune it, got {mu!r}.")
    if m not in (None, "auto"):
        check_count(m, "n_landmarks", others=setting("landmarks", text=", 'auto' or None"))
    check_flag("fit_intercept", model.fit_intercept)
    check_known(loss, "loss", LOSSES)
    candidate = candidate_of(model)
    search = candidate.search
    if not isinstance(search, Search):
        raise TypeError(f"{setting('search')} must be a looms.Search or None, got {search!r}.")
    if search.method is not None:
        check_known(
            search.method,
            f"{setting('search method', text='search method')} of {setting('loss', loss)}",
            candidate.methods,
        )
    search.check()
    candidate.check(classes)
    if isinstance(candidate, SupportVectors):
        if m not in (None, "auto"):
            raise ValueError(
                f"{setting('loss', loss)} has support vectors instead of landmarks: use "
                f"{setting('n_landmarks', None)}, or {setting('loss', 'squared')}."
            )
        if not model.fit_intercept:
            raise ValueError(f"{setting('loss', loss)} has an intercept: use fit_intercept=True.")


def has_kernel(candidate: Any) -> bool:
    """True for a model of looms with one kernel, and not an estimator of scikit-learn."""
    return bool(getattr(candidate, "_has_kernel", False))
