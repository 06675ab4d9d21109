"""The request for a machine: options, the estimator that they make, and what it costs."""

from __future__ import annotations

import re
import time
from dataclasses import asdict, dataclass
from inspect import signature
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from scipy.linalg import blas
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from looms import (
    SVCCV,
    KernelClassifier,
    KernelRegressor,
    NonconformityClassifier,
    Search,
    TransformedTargetRegressorCV,
)
from looms._checks import one_or_many
from looms._classes import class_targets
from looms._memory import GRID, SEARCH, bytes_needed, free_memory, gigabytes
from looms._typing import AnyArray
from looms.cli._errors import OTHERWISE, InputError
from looms.cli._options import Bounds, Task
from looms.cli._output import as_messages, note, refused, warning
from looms.cli._prepare import Prepared
from looms.cli._progress import duration
from looms.estimators import CandidatesClassifier, CandidatesRegressor
from looms.estimators._candidates import AUTO_KERNELS
from looms.estimators._encoding import check_threshold
from looms.estimators._folds import CHOICE_FOLDS, OUTER_FOLDS
from looms.estimators._least_squares import LeastSquaresMachine
from looms.estimators._one_kernel import FULL_ROWS
from looms.estimators._scored import check_parameters
from looms.estimators._selecting import SelectingMachine
from looms.folds import GapKFold, fold_numbers, group_numbers, is_number_of_folds
from looms.kernels import Linear
from looms.lssvm.features import has_few_features
from looms.threshold import RULES, Cost, Precision, Recall

Threshold: TypeAlias = float | str | Precision | Recall | Cost

FORMS = (
    "a probability such as 0.3, balanced, f1, recall=0.9, precision=0.8 or cost=1:5 (false "
    "positive : false negative)"
)
_NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"

#: Windows of time that are held out.
WINDOWS = 10

#: Floating-point operations of a fit over n³, at the speed of a matrix product: 3 to 13 in fits to
#: 2500 and 4000 rows.
_OPERATIONS = 8.0
#: Size of the matrix product that is timed, some hundredths of a second.
_TIMED = 1000


def threshold_of(text: str | None) -> Threshold:
    """The probability, name or rule of `looms.threshold` that an option stands for."""
    if text is None:
        return 0.5
    if text in RULES:
        return text
    if re.fullmatch(_NUMBER, text) and 0 < float(text) < 1:
        return float(text)
    share = re.fullmatch(f"(recall|precision)={_NUMBER}", text)
    costs = re.fullmatch(f"cost={_NUMBER}:{_NUMBER}", text)
    try:
        if share is not None:
            kind = Recall if share[1] == "recall" else Precision
            return kind(float(share[2]))
        if costs is not None:
            false_positive, false_negative = float(costs[1]), float(costs[2])
            if not (false_positive > 0 and false_negative > 0):
                raise ValueError("both costs must be positive, else one class takes everything")
            return Cost(false_positive, false_negative)
    except ValueError as error:
        raise InputError(f"--threshold {text}: {error}") from None
    raise InputError(f"--threshold {text} is none of {FORMS}")


def parameter_of(option: str, value: Any) -> Any:
    """The value of an option as the estimator takes it."""
    if option == "threshold":
        return threshold_of(value)
    if isinstance(value, list):
        if "precomputed" in value:
            raise InputError("--kernel precomputed is for Python; here rows have features")
        return value[0] if len(value) == 1 else value
    if option in ("calibration", "weight") and value == "none":
        return None
    return int(value) if option in ("cv", "rank") and value.isdecimal() else value


#: Rows up to which a choice is repeated in outer folds by itself: of one candidate, of several.
MOST_REPEATED, MOST_COMPARED = 1000, 200
#: Estimators by machine, and by whether the target has classes.
ESTIMATORS: dict[tuple[str, bool], Any] = {
    ("lssvm", True): CandidatesClassifier,
    ("lssvm", False): CandidatesRegressor,
    ("svm", True): SVCCV,
    ("nonconformity", True): NonconformityClassifier,
}
#: Options of the candidates, not of the model.
_OF_CANDIDATES = ("kernel", "criterion", "optimizer", "max_iter", "prior", "search", "rank")
#: Options that are no parameters of these.
_AROUND = {"task", "machine", "random_state", "gap", "target_transform"}


def options_of(kind: Any) -> dict[str, str]:
    """The options that an estimator has, and its parameters by them."""
    options = {OTHERWISE.get(name, name): name for name in signature(kind).parameters}
    if "candidates" in options:
        options |= dict.fromkeys(_OF_CANDIDATES, "candidates")
    more = {"groups": "groups", "time": "cv", "nested": "nested"}
    return options | (more if "cv" in options.values() else {})


@dataclass(frozen=True)
class MachineRequest:
    """Machine to fit; None leaves a choice to the machine.

    Parameters
    ----------
    task
        What to learn.
    machine
        Least-squares SVM; for classes also svm, or a grid of them, one for each row.
    kernel
        linear, quadratic, cubic, boolean, rbf (default), laplacian, ard, matern12, matern32,
        matern52, powexp, powexp_ard, polynomial4 and other degrees, or one of these after
        normalized_, or ranked_ (for columns with long tails), or a kernel of distances after
        weighted_ (by feature); repeat it to compare several, or give auto for a stack of several.
    criterion
        press (default); for classes also hinge, squared_hinge, smoothed_error, wmw or
        cross_entropy; repeat it to compare several. For svm also log_likelihood (default), error or
        ber, and only one.
    optimizer
        Optimizer of the hyper-parameters, default lbfgs.
    threshold
        For two classes a probability, default 0.5, or balanced (least balanced error), f1,
        recall=0.9, precision=0.8, or cost=1:5, of a false positive to a false negative; positive is
        the later class in order.
    calibration
        How probabilities are learned, default sigmoid; or none.
    weight
        Weight of the classes; balanced gives them equal weight.
    max_iter
        Largest number of iterations of each search.
    random_state
        Seed of subsamples and splits.
    prior
        Keep many hyper-parameters near their start; for ard, above all with few rows.
    copies
        Hold out rows that are equal in every feature apart (default) or together.
    groups
        Column, such as the patient: rows with the same label are held out together.
    cv
        Folds to hold out: 10 for ten folds, 5x2 for five repetitions of two. By default each row,
        or group, by itself; with --time 10 windows; for nonconformity a validation part.
    time
        Column of dates or numbers that orders the rows; windows of time are held out.
    gap
        Rows on either side of a window of --time to leave out of its training.
    combine
        For several candidates, compared on five folds that each was tuned without: the best
        (default), or a weighted sum (default of --kernel auto).
    search
        Search by gradients (default), or on a grid, whose choice is repeated without each row,
        group or fold: honest figures. For svm by a pattern (default), or a grid.
    rank
        Number of landmarks (rows that the machine is made of), such as 1000, or auto: for more rows
        than a kernel matrix can have, or than fit in memory.
    nested
        folds repeats the search without each of up to ten folds: honest figures, at up to ten times
        the cost. Default of lssvm for up to 1000 rows, or 200 with several candidates; none turns
        it off.
    target_transform
        For numbers that are skewed or never negative: none, sqrt, log or log1p, to fit to this
        transform of the target and predict its mean; repeat it to compare several, or give auto for
        all that the targets admit.
    """

    task: Task = "auto"
    machine: Literal["lssvm", "svm", "nonconformity"] = "lssvm"
    kernel: list[str] | None = None
    criterion: list[str] | None = None
    optimizer: Literal["lbfgs", "scg", "nelder-mead"] | None = None
    threshold: str | None = None
    calibration: Literal["sigmoid", "isotonic", "beta", "none"] | None = None
    weight: Literal["none", "balanced"] | None = None
    max_iter: Annotated[int | None, Bounds(1)] = None
    random_state: Annotated[int, Bounds(0)] = 0
    prior: bool = False
    copies: Literal["apart", "together"] | None = None
    groups: str | None = None
    cv: str | None = None
    time: str | None = None
    gap: Annotated[int, Bounds(0)] = 0
    combine: Literal["best", "stack"] | None = None
    search: Literal["gradient", "grid", "pattern"] | None = None
    rank: str | None = None
    nested: Literal["folds", "none"] | None = None
    target_transform: list[str] | None = None

    def __post_init__(self) -> None:
        """Refuse, before any file is read, what no rows could mend."""
        numbers = self.task == "regression" or (self.task == "auto" and self.target_transform)
        self._checked(not numbers)
        self._check_time()

    def _checked(self, classes: bool) -> Any:
        """The unfitted estimator; refuses what it refuses whatever the rows."""
        estimator = self.estimator(classes)
        with refused(faults=(ValueError, TypeError)):
            check_parameters(estimator)
        return estimator

    @property
    def folds(self) -> Any:
        """Folds to hold out, or windows of time; None for single rows and groups."""
        given = self.cv and parameter_of("cv", self.cv)
        return given if self.time is None else GapKFold(given or WINDOWS, self.gap)

    def _check_time(self) -> None:
        if self.time is None:
            if self.gap:
                raise InputError("--gap goes with --time, the column that orders the rows")
        elif self.time == self.groups:
            raise InputError(
                f"--groups and --time are both {self.time}: rows of one time are held out together "
                "without --groups"
            )

    def estimator(self, classes: bool) -> BaseEstimator:
        """The unfitted estimator; refuses options that it has no parameter for."""
        kind = ESTIMATORS.get((self.machine, classes))
        if kind is None:
            raise InputError(
                f"--machine {self.machine} is for classification, but this is a regression"
            )
        known, values = options_of(kind), dict[str, Any]()
        for name, value in asdict(self).items():
            if value is None or value is False or name in _AROUND:
                continue
            if name not in known:
                raise self._not_for(name, classes)
            own = name not in _OF_CANDIDATES or self.machine != "lssvm"
            if own and name not in ("groups", "time", "nested"):
                values[known[name]] = parameter_of(name, value)
        if self.machine == "svm":
            if self.calibration not in (None, "sigmoid", "none"):
                raise InputError(
                    f"--calibration {self.calibration} is for --machine lssvm; svm has sigmoid or "
                    "none"
                )
            if len(self.criterion or ()) > 1:
                raise InputError("--machine svm takes only one --criterion, by which it compares")
            if self.calibration == "sigmoid":
                values["probability"] = "loo"
        if self.time is not None:
            values["cv"] = self.folds
        if "random_state" in known:
            values["random_state"] = self.random_state
        if self.machine == "lssvm":
            values |= self._candidates(KernelClassifier if classes else KernelRegressor)
            if len(values["candidates"]) == 1:
                (one,) = values.pop("candidates")
                values.pop("combine")
                kind, values = type(one), one.get_params(deep=False) | values
        estimator: BaseEstimator = kind(**values)
        if self.target_transform is None:
            return estimator
        if classes:
            raise InputError(
                "--target-transform is for regression, but this is a classification; see --task"
            )
        transforms = parameter_of("target_transform", self.target_transform)
        return TransformedTargetRegressorCV(estimator, transforms)

    def _candidates(self, kind: Any) -> dict[str, Any]:
        """Candidates of the options, and how they are combined."""
        names = {"optimizer": "optimizer", "max_iter": "max_iter", "search": "method"}
        given = {name: getattr(self, option) for option, name in names.items()}
        options = {name: value for name, value in given.items() if value is not None}
        rank = None if self.rank is None else parameter_of("rank", self.rank)
        searches = [
            Search(criterion, prior=self.prior, **options)
            for criterion in self.criterion or ["press"]
        ]
        auto = self.kernel == ["auto"]
        kernels = (
            AUTO_KERNELS if auto else one_or_many(parameter_of("kernel", self.kernel or ["rbf"]))
        )
        candidates = [
            kind(kernel, n_landmarks=rank, search=search)
            for kernel in kernels
            for search in searches
        ]
        combine = self.combine or ("stack" if auto else "best")
        return {"candidates": candidates, "combine": combine}

    def _not_for(self, option: str, classes: bool) -> InputError:
        """Error for an option that the estimator does not have."""
        having = [
            machine for (machine, _), kind in ESTIMATORS.items() if option in options_of(kind)
        ]
        name = f"--{option.replace('_', '-')}"
        if not classes and self.machine in having:
            return InputError(f"{name} is for classification, but this is a regression")
        names = " or ".join(dict.fromkeys(having))
        return InputError(f"{name} is for --machine {names}, not for {self.machine}")

    def estimator_for(self, prepared: Prepared) -> Any:
        """The unfitted estimator for a table; refuses what it would refuse for these rows."""
        classes = prepared.target.task == "classification"
        estimator = self._checked(classes)
        if issparse(prepared.matrix) and not get_tags(estimator).input_tags.sparse:
            raise InputError(f"--machine {self.machine} is for dense tables; use lssvm")
        self._check_folds(prepared)
        if classes and self.machine != "nonconformity":
            self._check_classes(prepared.target.y)
        return estimator

    def _check_folds(self, prepared: Prepared) -> None:
        """Refuse folds that cannot be made, naming the options that ask for them."""
        y = prepared.target.y
        given = {"--groups": self.groups, "--time": self.time, "--gap": self.gap, "--cv": self.cv}
        prefix = " ".join(f"{name} {value}" for name, value in given.items() if value)
        with as_messages(prefix=f"{prefix}: "):
            groups = group_numbers(prepared.groups, len(y))
            classes = prepared.target.task == "classification"
            fold_numbers(self.folds, y, groups, classes=classes)

    def _check_classes(self, y: AnyArray) -> None:
        labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        rule = threshold_of(self.threshold)
        try:
            check_threshold(rule, class_targets(codes, len(labels)))
        except ValueError as error:
            given = f"--threshold {self.threshold}"
            raise InputError(str(error).replace(f"threshold={rule!r}", given)) from error
        if len(labels) == 2 and counts.min() == 1:
            raise InputError(
                f"the class {labels[counts.argmin()]} has only one row, and without that row there "
                "is no second class to learn; add rows of it, or name another --target"
            )
        if rule not in (0.5, "balanced") and counts[1] > counts[0]:
            other, positive = labels
            warning(
                f"--threshold {self.threshold} treats {positive} as the positive class, because it "
                f"is later in order, but most rows have it. If {other} is to be detected, "
                "write the labels so that it is later, such as 1, and 0 for the other"
            )


def repeats_by_itself(machine: Any) -> bool:
    """True if the choice of a fitted machine is repeated without being asked for.

    That is so for few rows in memory that folds of some number hold out, and for a grid.
    """
    inner = getattr(machine, "machine_", machine)
    if not isinstance(inner, LeastSquaresMachine) or inner.X_fit_ is None:
        return False
    if isinstance(machine, SelectingMachine) and machine._repeats_in_closed_form:
        return True
    few = MOST_REPEATED if machine._in_folds is None else MOST_COMPARED
    n = int(np.count_nonzero(inner.fit_weight_))
    return is_number_of_folds(inner.cv) and n <= few


def arrays_of(request: MachineRequest, X: Any) -> float:
    """Arrays of the size of a kernel matrix in memory at once, for a fit to samples ``X``.

    None on landmarks, or for a linear machine of few features, unless a grid repeats the choice
    without each row.
    """
    linear = request.machine == "lssvm" and set(request.kernel or ()) == {"linear"}
    once = request.search != "grid" or request.nested == "none"
    if request.rank or (linear and once and has_few_features(Linear(), X)):
        return 0.0
    return GRID if request.search == "grid" else SEARCH


def searches_of(request: MachineRequest) -> float | None:
    """Searches of all rows that take as long as the fit; None if that is not known."""
    if request.machine != "lssvm" or request.search == "grid":
        return None
    kernels = AUTO_KERNELS if request.kernel == ["auto"] else request.kernel or ["rbf"]
    n_candidates = len(kernels) * len(request.criterion or ["press"])
    transforms = len(request.target_transform or ["none"])
    of_choice = CHOICE_FOLDS * (1 - 1 / CHOICE_FOLDS) ** 3 if n_candidates > 1 else 0.0
    outer = OUTER_FOLDS * (1 - 1 / OUTER_FOLDS) ** 3 if request.nested == "folds" else 0.0
    return transforms * n_candidates * (1.0 + of_choice) * (1.0 + outer)


def tell_cost(request: MachineRequest, n_rows: int, n_arrays: float, n_fits: float = 1.0) -> None:
    """Note memory and time before fits to many rows start.

    ``n_arrays`` of the size of a kernel matrix are in memory at once; nothing is noted if there
    are none.
    """
    if n_rows <= FULL_ROWS or not n_arrays:
        return
    free, searches = free_memory(), searches_of(request)
    of_free = "" if free is None else f" (of {gigabytes(free)} free)"
    of_time = ""
    if searches is not None:
        seconds = n_fits * searches * _OPERATIONS * n_rows**3 / _operations_per_second()
        of_time = f" and, very roughly, {duration(seconds)}"
    note(
        f"{n_rows:,} rows: about {gigabytes(bytes_needed(n_rows, n_arrays))} of memory{of_free}"
        f"{of_time}; --rank auto, a machine on landmarks, takes far less"
    )


def _operations_per_second() -> float:
    A = np.ones((_TIMED, _TIMED), order="F")
    blas.dgemm(1.0, A[:100], A)  # wakes its threads
    began = time.perf_counter()
    blas.dgemm(1.0, A, A)
    return 2.0 * _TIMED**3 / (time.perf_counter() - began)
