"""One kernel model as a candidate: parameters, objective and search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import Parallel
from sklearn.base import clone

from looms._checks import check_count, check_flag, check_known
from looms._classes import class_indices
from looms._memory import GIVEN, GRID, SEARCH
from looms._typing import Array, Matrix
from looms._words import one_line
from looms.blocks import RowBlocks, blocks_of
from looms.criteria import as_criterion
from looms.estimators._encoding import class_weights
from looms.estimators._folds import SHARE_IN_FOLDS
from looms.estimators._model import Model
from looms.estimators._search import Search
from looms.fitted._fitted import Fitted
from looms.fitted._rows import Rows
from looms.kernels import Kernel
from looms.kernels._names import as_kernel, is_estimator
from looms.kernels._samples import Samples, center_of, check_scale
from looms.lssvm.features import has_few_features
from looms.lssvm.fit import KernelMember, LandmarkMember
from looms.selection._candidates import Tried
from looms.selection._given import GivenCriterion
from looms.selection._low_rank import (
    LARGEST_RANK,
    drawn_landmarks,
    low_rank_objective,
)
from looms.selection._objective import objective_of
from looms.selection._support_vectors import (
    DEVIANCE,
    SupportVectorCriterion,
    score_of,
    search_paths,
)

#: Rows up to which n_landmarks="auto" takes the whole kernel matrix.
FULL_ROWS = 5000
#: Landmarks of n_landmarks="auto" beyond that if the values are given.
_GIVEN_LANDMARKS = LARGEST_RANK // 2
#: Floating-point operations of a search over n³: 3 to 13 in searches on 2500 and 4000 rows, at the
#: speed of a matrix product.
OPERATIONS_OF_SEARCH = 8.0
#: The same on m landmarks over m², for each row, and for each of those that searches run on.
_OF_ALL_ROWS, _OF_SOME_ROWS, _ROWS_OF_SEARCH = 12.0, 60.0, 30_000
#: The same of finding how many landmarks pay, and about how many do so over √n. With them the
#: default fit on 6000, 20,000 and 100,000 rows takes 0.7 to 2.0 × as long as told
#: [benchmarks/results/default_call.csv]; with a single kernel, where 64 landmarks pay for a noisy
#: target and 1024 for a smooth one, the time of 6000 rows is a seventh of it or 1.9 ×.
_OF_NUMBER, _LANDMARKS_THAT_PAY = 6e11, 3.6
#: The same of support vector machines: some fifty points with their leave-one-out paths.
_OF_PATHS = 200.0
LOSSES = ("squared", "hinge", "squared_hinge")
#: Options of searches along gradients.
_OF_GRADIENTS = ("max_iter", "n_restarts", "tol", "max_samples", "prior")


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A candidate with the squared loss, tuned along gradients or on a grid.

    Attributes
    ----------
    model : with the parameters.
    """

    model: OneKernel
    methods = ("gradient", "grid")
    criterion = "press"

    def check(self, search: Search, classes: bool) -> None:
        """ValueError for options of a search that do not suit."""
        if search.criterion is not None and as_criterion(search.criterion).needs_labels > classes:
            raise ValueError(
                f"Criterion {search.criterion!r} judges classes; for regression use 'press'."
            )

    def landmarks_for(self, X: Matrix | RowBlocks) -> int | str | None:
        """Number of landmarks for the rows ``X``, or "auto"; None for the whole kernel matrix."""
        model, kernel, n = self.model, as_kernel(self.model.kernel), X.shape[0]
        few = has_few_features(kernel, X.shape) and not isinstance(X, RowBlocks)
        whole = n <= FULL_ROWS or kernel.pairwise or few
        if model.n_landmarks is None or (model.n_landmarks == "auto" and whole):
            return None
        if kernel.pairwise:
            raise ValueError(
                "kernel='precomputed' is the whole kernel matrix, without landmarks: use "
                "n_landmarks=None."
            )
        if model.n_landmarks == "auto":
            return "auto" if model.mu is None else _GIVEN_LANDMARKS
        return min(int(model.n_landmarks), n)

    def arrays_for(self, X: Matrix | RowBlocks) -> float:
        """Arrays of the size of the kernel matrix that a fit to ``X`` has in memory at once."""
        few = has_few_features(as_kernel(self.model.kernel), X.shape)
        if few or self.landmarks_for(X) is not None:
            return 0.0
        if self.model.mu is not None:
            return GIVEN
        return GRID if self.model._on_grid else SEARCH

    def operations_for(self, X: Matrix | RowBlocks) -> float:
        """Floating-point operations of a fit to ``X``, very roughly."""
        m, n, given = self.landmarks_for(X), float(X.shape[0]), self.model.mu is not None
        if has_few_features(as_kernel(self.model.kernel), X.shape):
            return 0.0
        if m is None:
            return (1.0 if given else OPERATIONS_OF_SEARCH) * n**3
        if given:
            return 10.0 * n * float(m) ** 2
        size = min(LARGEST_RANK, _LANDMARKS_THAT_PAY * n**0.5) if m == "auto" else float(m)
        rows = _OF_ALL_ROWS * n + _OF_SOME_ROWS * min(n, _ROWS_OF_SEARCH)
        return rows * size**2 + _OF_NUMBER * (m == "auto")

    def tried_on(self, rows: Rows, X: Matrix | RowBlocks, **options: Any) -> Tried:
        model, y, m = self.model, rows.own(rows.targets), self.landmarks_for(X)
        search = model._options

        def objective(kernel: Any, at_most: int | None = None) -> Any:
            if model.mu is not None:
                return self._given_criterion(as_kernel(kernel), X, y, m, rows.seed, **options)
            if m is None:
                return objective_of(X, y, kernel=kernel, prior=search.prior, **options)
            rank = m if at_most is None else at_most if m == "auto" else min(m, at_most)
            drawn: dict[str, Any] = {"rank": rank, "tuned": search.tuned, "random_state": rows.seed}
            return low_rank_objective(
                blocks_of(X), y, kernel=kernel, prior=search.prior, **drawn, **options
            )

        return Tried(model.kernel, options["criterion"], objective, search.tuned)

    def _given_criterion(
        self,
        kernel: Kernel,
        X: Matrix | RowBlocks,
        y: Array,
        n_landmarks: Any,
        seed: int,
        **options: Any,
    ) -> GivenCriterion:
        """Criterion at the given values; those that the kernel leaves open are of the rows."""
        zeta, mu = options["sample_weight"], float(self.model.mu or 0.0)
        rng = np.random.RandomState(seed)
        zeta = options["sample_weight"] = zeta * (len(zeta) / zeta.sum())
        if n_landmarks is None:
            if not kernel.pairwise:
                check_scale(X)
            samples = Samples(X, center=center_of(X), weight=zeta)
            kernel = kernel.started(samples)
            return GivenCriterion(
                X, y, member=KernelMember(1.0, kernel, mu), samples=samples, **options
            )
        kernel, landmarks = drawn_landmarks(kernel, blocks_of(X), n_landmarks, rng)
        values = 1.0, kernel, mu
        return GivenCriterion(
            blocks_of(X), y, member=LandmarkMember(*values, landmarks=landmarks), **options
        )


@dataclass(frozen=True, eq=False)
class SupportVectors:
    """A candidate with the hinge loss, tuned by the paths of its models without each unit.

    Attributes
    ----------
    model : with the parameters.
    """

    model: OneKernel
    methods = ("pattern", "grid")
    criterion = DEVIANCE

    def check(self, search: Search, classes: bool) -> None:
        """ValueError for options of a search that do not suit, and for what an SVM has not."""
        if search.criterion is not None:
            score_of(search.criterion)
        given, plain = search.get_params(), Search().get_params()
        others = [name for name in _OF_GRADIENTS if given[name] != plain[name]]
        if others:
            raise ValueError(
                f"loss={self.model.loss!r} is searched without gradients, for which Search has "
                f"{', '.join(others)}: leave that out, or use loss='squared'."
            )
        if self.model.n_landmarks not in (None, "auto"):
            raise ValueError(
                f"loss={self.model.loss!r} has support vectors instead of landmarks: use "
                "n_landmarks=None, or loss='squared'."
            )
        if not self.model.fit_intercept:
            raise ValueError(f"loss={self.model.loss!r} has an intercept: use fit_intercept=True.")

    def landmarks_for(self, X: Matrix | RowBlocks) -> None:
        return None

    def arrays_for(self, X: Matrix | RowBlocks) -> float:
        return SEARCH

    def operations_for(self, X: Matrix | RowBlocks) -> float:
        return (1.0 if self.model.mu is None else 1.0 / 50) * _OF_PATHS * float(X.shape[0]) ** 3

    def tried_on(self, rows: Rows, X: Matrix | RowBlocks, **options: Any) -> Tried:
        model, search, zeta = self.model, self.model._options, options["sample_weight"]
        del options["fit_intercept"]
        options["sample_weight"] = zeta * (len(zeta) / zeta.sum())
        values: dict[str, Any] = {"mu": model.mu, "loss": model.loss}

        def objective(kernel: Any, at_most: int | None = None) -> SupportVectorCriterion:
            y = rows.own(rows.targets)
            return SupportVectorCriterion(X, y, kernel=as_kernel(kernel), **values, **options)

        run = Parallel(n_jobs=model.n_jobs, return_as="generator")
        how: dict[str, Any] = {"method": search.method or "pattern"}
        searched = partial(search_paths, **how, resolution=search.resolution, run=run)
        return Tried(model.kernel, options["criterion"], objective, searched)


class OneKernel(Model):
    """Base class of the models with one kernel, whose values are tuned or given."""

    kernel: Any
    mu: float | None
    loss: str = "squared"
    n_landmarks: int | str | None
    search: Search | None

    @property
    def _options(self) -> Search:
        """Options of its search."""
        return Search() if self.search is None else self.search

    @property
    def _on_grid(self) -> bool:
        """True if the points of a grid compete, whose choice is repeated in closed form."""
        return self.loss == "squared" and self._options.method == "grid"

    @property
    def _candidates(self) -> list[Any]:
        return [self]

    @property
    def _problem(self) -> LeastSquares | SupportVectors:
        return LeastSquares(self) if self.loss == "squared" else SupportVectors(self)

    @property
    def _can_have_landmarks(self) -> bool:
        """True for the squared loss, unless the kernel matrix is given."""
        return self.loss == "squared" and not as_kernel(self.kernel).pairwise

    def _tried_on(self, rows: Rows, X: Matrix | RowBlocks, **options: Any) -> Tried:
        """The candidate on the rows of a fit; ``X`` are those that take part."""
        problem = self._problem
        options["criterion"] = self._options.criterion or problem.criterion
        options["selection_weight"] = rows.own(self._selection_weight(rows))
        return problem.tried_on(rows, X, **options)

    @property
    def _for_folds(self) -> Self:
        """The model that is fitted without a fold, whose search ends on a share of the rows.

        On 23 tables of 500 rows a stack has 0.999 × the error of one with searches on all rows.
        """
        search = self._options
        if self.loss != "squared" or self._on_grid or search.max_samples is not None:
            return self
        few = clone(search).set_params(max_samples=SHARE_IN_FOLDS)
        model: Self = clone(self).set_params(search=few)
        return model

    def _selection_weight(self, rows: Rows) -> Array:
        given, same = self._options.class_weight, "same"
        if not rows.outcome.decides or (isinstance(given, str) and given == same):
            return rows.selection_weight
        labels, classes = class_indices(rows.targets), np.unique(rows.y)
        name = "class_weight of the search"
        return rows.weight * class_weights(given, labels, classes, rows.weight, name, same)

    def _check_candidate(self, classes: bool) -> None:
        """ValueError or TypeError for parameters that no rows could mend."""
        if isinstance(self.kernel, (list, tuple)):
            task = "Classifier" if classes else "Regressor"
            raise ValueError(
                f"kernel must be one kernel, got a list of {len(self.kernel)}: "
                f"Tabular{task}(candidates=...) compares several kernels, or stacks them."
            )
        if is_estimator(self.kernel):
            raise TypeError(
                f"A kernel must be a name, an object or a function, got {one_line(self.kernel)}."
            )
        as_kernel(self.kernel)  # an unknown name is an error
        if self.mu is not None and not (isinstance(self.mu, Real) and 0 < float(self.mu) < np.inf):
            raise ValueError(f"mu must be a positive number, or None to tune it, got {self.mu!r}.")
        if self.n_landmarks not in (None, "auto"):
            check_count(self.n_landmarks, "n_landmarks", others=", 'auto' or None")
        check_flag("fit_intercept", self.fit_intercept)
        check_known(self.loss, "loss", LOSSES)
        if not isinstance(self._options, Search):
            raise TypeError(f"search must be a looms.Search or None, got {self.search!r}.")
        problem = self._problem
        if self._options.method is not None:
            check_known(
                self._options.method, f"search method of loss={self.loss!r}", problem.methods
            )
        self._options.check()
        problem.check(self._options, classes)

    def _values_of(self, fitted: Fitted) -> dict[str, Any]:
        member = fitted.kernel_members[0]
        values = {"kernel": member.kernel, "mu": member.mu, "fit_intercept": fitted.fit_intercept}
        return super()._values_of(fitted) | values  # as fitted, whatever was set since
