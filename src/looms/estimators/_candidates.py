"""Models chosen among candidates, or stacked of them, on a matrix of numbers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_classifier

from looms._checks import check_known, ensure_list
from looms._typing import Array, Matrix
from looms._words import one_line
from looms.blocks import RowBlocks
from looms.estimators._classifier import Classifier
from looms.estimators._folds import unfitted
from looms.estimators._kernel_classifier import KernelClassifier
from looms.estimators._kernel_regressor import KernelRegressor
from looms.estimators._regressor import Regressor
from looms.estimators._selecting import SelectingModel
from looms.estimators._selection import Selection
from looms.estimators._trees import BoostedTreesClassifier, BoostedTreesRegressor
from looms.kernels import Ranked
from looms.kernels._names import as_kernel, is_estimator
from looms.lssvm.fit import LandmarkMember
from looms.selection._stack import COMBINATIONS

#: Kernels that "auto" stands for. On 23 tables of 500 rows a stack of them has 0.95 × the error of
#: "rbf", and on 20 others 0.95; "ard" as a fifth gains 0.4 % [benchmarks/tables/README.md].
AUTO_KERNELS = ("linear", "rbf", "ranked_laplacian", "weighted_matern12")
#: Boosted trees stand beside them from so many rows on: a stack of 460 or 500 rows has 0.988 × the
#: error, of fewer 0.997. From 1000 rows on "rbf" gains nothing beside them and is left out; the
#: stack has 0.967 × the error of the four kernels with 2000 rows, and 0.962 × with all of up to
#: 6700 [benchmarks/tables/README.md].
ROWS_OF_TREES, ROWS_WITHOUT_RBF = 400, 1000
BESIDE_TREES = ("linear", "ranked_laplacian", "weighted_matern12")
#: Kernels beside trees beyond so many rows: the search of the third takes minutes.
MANY_ROWS, BESIDE_MANY = 100_000, ("linear", "ranked_laplacian")


class Candidates(SelectingModel):
    """Base class of the models with several candidates."""

    candidates: Any
    combine: str
    #: Class of a candidate that is named by its kernel.
    _model: ClassVar[type[KernelClassifier | KernelRegressor]]
    #: Boosted trees that "auto" has beside kernels.
    _trees: ClassVar[type[BoostedTreesClassifier | BoostedTreesRegressor]]
    #: Of all candidates with a kernel.
    fit_intercept = True

    @property
    def _candidates(self) -> list[Any]:
        given = list(AUTO_KERNELS) if self._is_auto else ensure_list(self.candidates)
        return [one if is_estimator(one) else self._model(one) for one in given]

    def _candidates_for(self, X: Matrix | RowBlocks) -> list[Any]:
        """The candidates; those of "auto" depend on the rows. Ranks and trees need a dense matrix.

        Of many sparse rows, or rows in blocks, they are the first two.
        """
        tried, n = self._candidates, X.shape[0]
        if not self._is_auto:
            return tried
        if not isinstance(X, np.ndarray):
            some = tried[:2] if n > MANY_ROWS else tried
            return [one for one in some if not isinstance(as_kernel(one.kernel), Ranked)]
        if n < ROWS_OF_TREES:
            return tried
        if n >= ROWS_WITHOUT_RBF:
            tried = [self._model(one) for one in (BESIDE_TREES if n <= MANY_ROWS else BESIDE_MANY)]
        return [*tried, self._trees()]

    def _for_evaluation(self, selection: Selection) -> Any:
        """Several candidates are those of the fit, also those of "auto" with fewer rows.

        They are on as many landmarks, the search for whose number takes most of the time.
        """
        tried = list(selection.for_folds)
        if len(tried) < 2:
            return unfitted(self)
        for k, fit in selection.choice.fits.items():
            if isinstance(fit.member, LandmarkMember):
                tried[k] = clone(tried[k]).set_params(n_landmarks=len(fit.member.landmarks))
        return unfitted(self, candidates=tried)

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.candidates, str) and self.candidates == "auto"

    @property
    def _stacks(self) -> bool:
        return self.combine == "stack"

    def _check_parameters(self) -> None:
        several = isinstance(self.candidates, (str, list, tuple)) and self.candidates
        given = ensure_list(self.candidates)
        wrong = [one for one in given if not _is_candidate(one)] if several else [self.candidates]
        if wrong:
            raise ValueError(
                "candidates must be 'auto', the name of a kernel, or a list of kernels, kernel "
                f"models and estimators of scikit-learn, got {one_line(wrong[0])}."
            )
        check_known(self.combine, "combine", COMBINATIONS)
        names = [one for one in given if isinstance(one, str)]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"candidates has {twice[0]!r} more than once: name it once.")
        for one in self._of_kernels:
            if not isinstance(one, self._model):
                name = self._model.__name__
                raise ValueError(f"{one_line(one)} is no {name}: give one, or leave it out.")
            if not one.fit_intercept:
                raise ValueError(
                    f"{one_line(one)}: candidates are compared and stacked with intercepts."
                )
        super()._check_parameters()

    def _given_as(self, fitted: dict[str, Any], factors: Array) -> Self:
        values: dict[str, Any] = {"cv": None}
        if is_classifier(self):
            values["class_weight"] = self._class_weight_of(factors)
        model: Self = clone(self).set_params(**values)
        return model


def _is_candidate(one: Any) -> bool:
    """True for what can be a kernel, or an estimator; not for their classes."""
    is_kernel = isinstance(one, str) or (callable(one) and not isinstance(one, type))
    return is_kernel or is_estimator(one)


class CandidatesClassifier(Candidates, Classifier):
    """The best of several classifiers, or their stack, on a matrix of numbers.

    `TabularClassifier` prepares the columns of a table and fits it to these.

    Parameters
    ----------
    candidates : "auto" or list, default="auto"
        Kernels, `KernelClassifier` and classifiers of scikit-learn, which are refitted in folds
        where kernels have closed forms. Of a `KernelClassifier` the kernel, its values, its
        landmarks and its search count. "auto" is as for `TabularClassifier`.
    combine : {"stack", "best"}, default="stack"
        Candidates are tuned anew without each of five folds and combined on the rows of these
        folds. "stack" weights the outputs of all, with the nonnegative weights of the smallest log
        loss; "best" takes the one with the smallest loss of the threshold, and among equal ones the
        one with the fewest hyper-parameters. A splitter, splits or fold numbers for `cv` of three
        to ten folds are these themselves. If three cannot be made, and for the best of grids or on
        landmarks, the best is taken by the outputs that the candidates were tuned on.
    threshold, calibration, class_weight, pos_label, cv, n_jobs, verbose, random_state
        As for `KernelClassifier`.

    Attributes
    ----------
    members_ : tuple
        Members of the stack, or the only one: ``weight``, ``kernel``, ``mu``, ``dual_coef`` and
        ``intercept`` of a kernel model; ``weight`` and the fitted ``estimator`` of another.
    candidates_, cv_results_, best_index_, candidate_weights_
        As for `TabularClassifier`. If the best candidate has a kernel, ``kernel_``, ``mu_``,
        ``dual_coef_`` and ``intercept_`` are its values.
    choice_units_ : looms.units.Units or None
        Folds without which the candidates were tuned anew, to be compared or stacked. None if they
        were compared by ``held_out_``, or there is one.
    held_out_ : HeldOut
        Outputs of the models without each of these folds, combined by the rows of the other
        folds; of one candidate as for `KernelClassifier`.
    kernel_, mu_, units_, threshold_, calibrator_, classes_, n_features_in_
        As for `KernelClassifier`.
    loo_ : HeldOut
        As for `TabularClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CandidatesClassifier(["linear", "rbf"], combine="best", threshold="balanced")
    >>> model.fit(scale(X), y).score(scale(X), y) > 0.97
    True
    >>> [(type(c.kernel).__name__, c.loss < 0.05) for c in model.candidates_]
    [('Linear', True), ('RBF', True)]
    """

    _model, _trees = KernelClassifier, BoostedTreesClassifier

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "stack",
        threshold: Any = 0.5,
        calibration: str | None = "sigmoid",
        class_weight: Any = None,
        pos_label: Any = None,
        cv: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.threshold = threshold
        self.calibration = calibration
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state


class CandidatesRegressor(Candidates, Regressor):
    """The best of several regressors, or their stack, on a matrix of numbers.

    `TabularRegressor` prepares the columns of a table and fits it to these.

    Parameters
    ----------
    candidates : "auto" or list, default="auto"
        Kernels, `KernelRegressor` and regressors of scikit-learn; "auto" as for
        `CandidatesClassifier`.
    combine : {"stack", "best"}, default="stack"
        As for `CandidatesClassifier`, by squared errors.
    cv, n_jobs, verbose, random_state
        As for `KernelRegressor`.

    Attributes
    ----------
    members_, candidates_, cv_results_, best_index_, candidate_weights_, choice_units_, held_out_
        As for `CandidatesClassifier`.
    kernel_, mu_, units_, n_features_in_
        As for `KernelRegressor`.
    loo_ : HeldOut
        As for `TabularRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CandidatesRegressor(["linear", "rbf"]).fit(X[:150], y[:150])
    >>> float(model.candidate_weights_.sum().round(6))
    1.0
    """

    _model, _trees = KernelRegressor, BoostedTreesRegressor

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "stack",
        cv: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
