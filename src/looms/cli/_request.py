"""The request for a model: options, the model that they make, and what they refuse."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from typing import Annotated, Any, Literal

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from looms import (
    KernelClassifier,
    KernelRegressor,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.cli._errors import InputError
from looms.cli._options import (
    OF_CANDIDATES,
    OF_MODEL,
    OF_SEARCH,
    PARAMETERS,
    Bounds,
    Column,
    Source,
    flag,
)
from looms.cli._output import refused, warning
from looms.cli._prepare import Prepared
from looms.estimators._one_kernel import FULL_ROWS
from looms.folds import GapKFold, fold_numbers, group_numbers
from looms.tables import TablePreprocessor
from looms.tables._cells import POINT
from looms.tables._target import Task

#: Windows of time that are held out.
WINDOWS = 10
_NO_ROWS = np.empty((0, 0))


def value_of(option: str, value: Any) -> Any:
    """The value of an option as Python takes it."""
    if option == "threshold":
        with suppress(ValueError):
            return float(value)
    if value == ["auto"]:
        return "auto"
    if value == "none" and option != "positive":
        return None
    whole = option in ("cv", "n_landmarks") and value.isdecimal()
    return int(value) if whole else value


@dataclass(frozen=True)
class ModelRequest:
    """Target to learn and model to fit; None leaves it to the model.

    Parameters
    ----------
    task
        What to learn.
    order
        Classes of the target from the lowest to the highest, such as low,medium,high: predictions
        are judged by how many ranks they are off.
    candidates
        Kernels to compare or stack, such as linear,rbf: linear, rbf, ard, laplacian, matern12 and
        others, also after ranked_ (for columns with long tails) or weighted_ (by feature). Default
        auto: linear, rbf, ranked_laplacian and weighted_matern12; from 400 rows on boosted trees
        beside them, and from 1000 rows on without rbf.
    combine
        With several candidates: stack them (default), or keep the best, by five folds that each was
        tuned without.
    threshold
        For two classes a probability, default 0.5, or balanced (least balanced error), f1,
        recall=0.9, precision=0.8, or cost=1:5, of a false positive to a false negative; see
        --positive.
    calibration
        How probabilities are learned, default sigmoid; or none.
    class_weight
        Weight of the classes; balanced gives them equal weight.
    positive
        The positive one of two classes, by default the later in order.
    target_transform
        For numbers that are skewed or never negative: none, sqrt, log or log1p, to fit to this
        transform of the target and predict its mean; log,sqrt compares two. Default auto: all
        that the targets admit.
    cv
        Folds to hold out: 10 for ten folds, 5x2 for five repetitions of two. By default each row,
        or group, by itself; with --time 10 windows.
    groups
        Column, such as the patient: rows with the same label are held out together. It is not a
        feature.
    time
        Column of dates or numbers that orders the rows; windows of time are held out. It is not a
        feature.
    gap
        Rows on either side of a window of --time to leave out of its training.
    duplicates
        Rows that are equal in every feature: ignore (default), or group and hold out together.
    sample_weight
        Column of weights of the rows.
    jobs
        Fits to run in parallel; -1 for one per core.
    seed
        Seed of subsamples, landmarks, folds and splits.
    loss
        Loss of the kernel models: squared (default); for classes also hinge or squared_hinge, the
        support vector machine, by default with the kernel rbf.
    criterion
        What the search minimizes: press (default), the mean squared held-out error; for classes
        also hinge, squared_hinge, smoothed_error, wmw or cross_entropy; press,wmw compares two.
        With --loss hinge also deviance (default).
    search
        Search by gradients (default), or on a grid; with --loss hinge by a pattern, or on a grid.
    max_iter
        Largest number of iterations of each search.
    prior
        Keep many hyper-parameters near their start; for ard, above all with few rows.
    n_landmarks
        Number of landmarks (rows that the model is made of), such as 1000; none for the whole
        kernel matrix; default auto: landmarks for more than 5000 rows.
    """

    target: str | None = None
    drop: list[str] | None = None
    drop_missing_targets: bool = False
    task: Task = "auto"
    order: Annotated[list[str] | None, "CLASS"] = None
    candidates: Annotated[list[str] | None, "KERNEL"] = None
    combine: Literal["stack", "best"] | None = None
    threshold: Annotated[str | None, "RULE"] = None
    calibration: Literal["sigmoid", "isotonic", "beta", "none"] | None = None
    class_weight: Literal["none", "balanced"] | None = None
    positive: Annotated[str | None, "CLASS"] = None
    target_transform: Annotated[list[str] | None, "NAME"] = None
    cv: Annotated[str | None, "FOLDS"] = None
    groups: Column = None
    time: Column = None
    gap: Annotated[int, Bounds(0)] = 0
    duplicates: Literal["ignore", "group"] = "ignore"
    sample_weight: Column = None
    jobs: int | None = None
    seed: Annotated[int, Bounds(0)] = 0
    loss: Literal["squared", "hinge", "squared_hinge"] | None = None
    criterion: list[str] | None = None
    search: Literal["gradient", "grid", "pattern"] | None = None
    max_iter: Annotated[int | None, Bounds(1)] = None
    prior: bool = False
    n_landmarks: Annotated[str | None, "NUMBER"] = None

    def __post_init__(self) -> None:
        """Refuse, before any file is read, options that are wrong for every table."""
        if self.time is None and self.gap:
            raise InputError("--gap goes with --time, the column that orders the rows")
        if self.time is not None and self.time == self.groups:
            raise InputError(f"--groups and --time are both {self.time}: leave --groups out")
        if self.order and self.task == "regression":
            raise InputError("--order is for classification, but --task is regression")
        named = self.candidates or []
        if "precomputed" in named:
            raise InputError("--candidates precomputed is for Python; here rows have features")
        if "auto" in named and len(named) > 1:
            raise InputError("--candidates auto is several kernels: leave it out, or the others")
        for option, names in {"--candidates": named, "--order": self.order or []}.items():
            if twice := [name for name in names if names.count(name) > 1]:
                raise InputError(f"{option} has {twice[0]} more than once: name it once")
        numbers = self.task == "regression" or (self.task == "auto" and self.target_transform)
        with refused(faults=(ValueError, TypeError)):
            self.model(not numbers)._check_parameters()

    @property
    def folds(self) -> Any:
        """Folds to hold out, or windows of time; None for single rows and groups."""
        given = self.cv and value_of("cv", self.cv)
        return given if self.time is None else GapKFold(given or WINDOWS, self.gap)

    @property
    def kernels(self) -> list[str]:
        """Names of the candidates."""
        return self.candidates or ["auto" if self.loss in (None, "squared") else "rbf"]

    def _values(self, *options: str) -> dict[str, Any]:
        """Values of those of the options that were given, as Python takes them."""
        given = {name: getattr(self, name) for name in options}
        values = {name: value_of(name, value) for name, value in given.items() if value is not None}
        return values | ({"cv": self.folds} if "cv" in options and self.folds else {})

    def model(self, classes: bool, rows: Any = _NO_ROWS) -> Any:
        """The unfitted model, of classes or of numbers; refuses options of the other.

        Expert options need the candidates of "auto", which depend on the ``rows`` of the fit.
        """
        kind: Any = TabularClassifier if classes else TabularRegressor
        tasks, values = ("classification", "regression"), dict[str, Any]()
        for name, value in self._values(*OF_MODEL).items():
            parameter = PARAMETERS.get(name, name)
            if parameter not in signature(kind).parameters:
                other, this = reversed(tasks) if classes else tasks
                raise InputError(f"{flag(name)} is for {other}, but this is {this}; see --task")
            values[parameter] = value
        if any(getattr(self, name) for name in OF_CANDIDATES):
            values["candidates"] = self._candidates(kind(), classes, rows)
        return kind(**values)

    def _candidates(self, of_auto: Any, classes: bool, rows: Any) -> list[Any]:
        """Candidates with the expert options, one for each kernel and criterion, and the others."""
        options = {OF_SEARCH[name]: value for name, value in self._values(*OF_SEARCH).items()}
        kind: Any = KernelClassifier if classes else KernelRegressor
        m = value_of("n_landmarks", self.n_landmarks or "auto")
        if self.loss is not None and not classes:
            raise InputError("--loss is for classification, but this is a regression; see --task")
        tried = [kind(kernel) for kernel in self.kernels if kernel != "auto"]
        tried = tried or of_auto._candidates_for(rows)
        criteria: list[Any] = list(self.criterion) if self.criterion else [None]
        searches = [Search(criterion, prior=self.prior, **options) for criterion in criteria]
        of_all = {"n_landmarks": m} | ({"loss": self.loss} if self.loss else {})
        candidates: list[Any] = []
        for one in tried:
            if isinstance(one, kind):
                candidates += [clone(one).set_params(search=s, **of_all) for s in searches]
            else:
                candidates.append(one)
        return candidates

    def takes_matrix(self, n_rows: int) -> bool:
        """True if a fit to so many rows has their kernel matrix, not landmarks."""
        few = n_rows <= FULL_ROWS and self.n_landmarks in (None, "auto")
        return few or self.n_landmarks == "none"

    def model_for(self, prepared: Prepared, again: bool = False) -> Any:
        """The unfitted model for a table; refuses what it would refuse for these rows.

        Splits fit it ``again`` to some of the rows, with the columns and kinds of the whole table.
        """
        classes, y = prepared.target.task == "classification", prepared.target.y
        rows: Any = np.empty((len(y), 0))  # of which "auto" takes the number
        if prepared.blocks is not None or issparse(prepared.X):
            rows = prepared.X if prepared.blocks is None else prepared.blocks
        model = self.model(classes, rows)
        given = {"--groups": self.groups, "--time": self.time, "--gap": self.gap}
        if self.time:  # whose windows have another name in Python
            given["--cv"] = self.cv
        prefix = " ".join(f"{name} {value}" for name, value in given.items() if value)
        with refused(prefix and f"{prefix}: "):
            groups = group_numbers(prepared.groups, len(y))
            fold_numbers(self.folds, y, groups, classes=classes)
        labels, counts = np.unique(y, return_counts=True)
        rule = value_of("threshold", self.threshold or "0.5")
        if self.positive is not None:
            named = {str(label): label for label in labels.tolist()}
            model.set_params(pos_label=named.get(self.positive, self.positive))
        elif rule not in (0.5, "balanced") and len(labels) == 2 and counts[1] > counts[0]:
            negative, positive = labels
            warning(
                f"--threshold {self.threshold} treats {positive} as the positive class, but most "
                f"rows have it. If {negative} is to be detected, give --positive {negative}"
            )
        if again:
            before = TablePreprocessor(kinds=prepared.preprocessor.kinds_ or None)
            model.set_params(preprocess=before)
        elif prepared.marks != POINT:
            decimal, thousands = prepared.marks
            model.set_params(preprocess=TablePreprocessor(decimal=(decimal, thousands)))
        return model


@dataclass(frozen=True)
class FitRequest(Source, ModelRequest):
    """A file, and the model to fit to it."""
