"""The request for a model: options, the model that they make, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

import looms
from looms._checks import take_rows
from looms._memory import free_memory, gigabytes
from looms._threads import available_threads
from looms._typing import AnyArray
from looms._words import count
from looms.blocks import RowBlocks
from looms.cli._errors import InputError
from looms.cli._options import (
    OF_CANDIDATES,
    OF_MODEL,
    OF_SEARCH,
    PARAMETERS,
    Bounds,
    Column,
    flag,
)
from looms.cli._output import note, refused, warning, writing
from looms.cli._source import Source
from looms.datasets._large import SAMPLE, TableBlocks, first_pass
from looms.duplicates import duplicate_groups
from looms.estimators._one_kernel import FULL_ROWS
from looms.estimators._selection import largest_rank
from looms.folds import ForwardSplit, GapKFold, fold_numbers, group_numbers, joined_groups
from looms.lssvm.landmarks import KEPT
from looms.tables import TablePreprocessor
from looms.tables._cells import POINT, Marks
from looms.tables._columns import marks_in
from looms.tables._frames import Column as Cells
from looms.tables._preprocessor import matrix_of, remarks_in
from looms.tables._remarks import CHANGED, sentence
from looms.tables._target import Features, Target, Task, target_of, text

#: Windows of time that are held out.
WINDOWS = 10
#: The same of those that earlier rows test.
FORWARD_WINDOWS = 5
_NO_ROWS = np.empty((0, 0))
#: Rows in a working block of a dense table, and of a sparse one, which every sweep reads again.
_SIZE, _SPARSE_SIZE = 512, 2048
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


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


@dataclass
class Prepared:
    """Rows to fit, as they were read.

    Rows of one label in ``groups`` are held out together, which are those of a column that was
    named if they are ``grouped``, or of one time, or equal; ``weight`` are their weights. ``rows``
    are the numbers of the rows in the file, from 1; ``marks`` are those of numbers in text. For a
    table larger than memory, ``X`` is a
    sample of the rows, ``ranges`` are those of all, and ``blocks`` are all rows, prepared.
    """

    X: Features
    target: Target
    rows: AnyArray
    groups: AnyArray | None = None
    weight: AnyArray | None = None
    marks: Marks = POINT
    ranges: dict[str, list[float]] | None = None
    blocks: RowBlocks | None = None
    grouped: bool = False

    @cached_property
    def preprocessor(self) -> TablePreprocessor:
        """A preprocessor that is fitted to the rows."""
        with refused():
            return TablePreprocessor(decimal=self.marks).fit(self.X, ranges=self.ranges)


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
        auto, which may have others beside it: linear, rbf, ranked_laplacian and weighted_matern12;
        from 400 rows on boosted trees beside them, and from 1000 rows on without rbf.
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
        or group, by itself; with --time 10 windows, or 5 with --forward.
    groups
        Column, such as the patient: rows with the same label are held out together. It is not a
        feature.
    time
        Column of dates or numbers that orders the rows; windows of time are held out. It is not a
        feature.
    gap
        Rows on either side of a window of --time, before it with --forward, to leave out of its
        training.
    forward
        With --time, test each window by the rows before it alone, for a score of later rows.
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
        kernel matrix; default auto: landmarks for more than 7000 rows.
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
    forward: bool = False
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
        if self.time is None and self.forward:
            raise InputError("--forward goes with --time, the column that orders the rows")
        if self.time is not None and self.time == self.groups:
            raise InputError(f"--groups and --time are both {self.time}: leave --groups out")
        if self.order and self.task == "regression":
            raise InputError("--order is for classification, but --task is regression")
        named = self.candidates or []
        if "precomputed" in named:
            raise InputError("--candidates precomputed is for Python; here rows have features")
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
        if self.time is None:
            return given
        if self.forward:
            return ForwardSplit(given or FORWARD_WINDOWS, self.gap)
        return GapKFold(given or WINDOWS, self.gap)

    @property
    def kernels(self) -> list[str]:
        """Names of the candidates."""
        return self.candidates or ["auto" if self.loss in (None, "squared") else "rbf"]

    def _values(self, *options: str) -> dict[str, Any]:
        """Values of those of the options that were given, as Python takes them."""
        given = {name: getattr(self, name) for name in options}
        return {name: value_of(name, value) for name, value in given.items() if value is not None}

    def model(self, classes: bool, rows: Any = _NO_ROWS) -> Any:
        """The unfitted model, of classes or of numbers; refuses options of the other.

        Expert options need the candidates of "auto", which depend on the ``rows`` of the fit.
        """
        kind: Any = looms.TabularClassifier if classes else looms.TabularRegressor
        tasks, values = ("classification", "regression"), dict[str, Any]()
        for name, value in self._values(*OF_MODEL).items():
            parameter = PARAMETERS.get(name, name)
            if parameter not in signature(kind).parameters:
                other, this = reversed(tasks) if classes else tasks
                raise InputError(f"{flag(name)} is for {other}, but this is {this}; see --task")
            values[parameter] = value
        if self.folds:
            values["cv"] = self.folds
        if any(getattr(self, name) for name in OF_CANDIDATES):
            values["candidates"] = self._candidates(kind(self.kernels), classes, rows)
        return kind(**values)

    def _candidates(self, model: Any, classes: bool, rows: Any) -> list[Any]:
        """Those of a model with the expert options: one for each kernel and criterion, and the
        others."""
        options = {OF_SEARCH[name]: value for name, value in self._values(*OF_SEARCH).items()}
        kind: Any = looms.KernelClassifier if classes else looms.KernelRegressor
        m = value_of("n_landmarks", self.n_landmarks or "auto")
        if self.loss is not None and not classes:
            raise InputError("--loss is for classification, but this is a regression; see --task")
        criteria: list[Any] = list(self.criterion) if self.criterion else [None]
        searches = [looms.Search(criterion, prior=self.prior, **options) for criterion in criteria]
        of_all = {"n_landmarks": m} | ({"loss": self.loss} if self.loss else {})
        candidates: list[Any] = []
        for one in model._candidates_for(rows):
            made = [one]
            if isinstance(one, kind):
                made = [clone(one).set_params(search=search, **of_all) for search in searches]
            candidates += made
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

    def prepare(self) -> Prepared:
        """The rows of a file; notes on how it is understood go to stderr."""
        path, drop = self.file, list(self.drop or ())
        used = {
            "--groups": (self.groups, "groups"),
            "--time": (self.time, "orders"),
            "--sample-weight": (self.sample_weight, "weighs"),
        }
        for option, (name, does) in used.items():
            if name is not None and name == self.target:
                raise InputError(f"{path}: {option} {name} is the target; name another column")
            if name in drop:
                note(f"{name!r} only {does} rows; it is not a feature")
                drop.remove(name)
        table = self.read(self.target, drop_missing=self.drop_missing_targets)
        X, target, marks = self._understood(table.X, table.y, drop)
        groups = self.labels_in(X, self.groups)
        weight = self.weights_in(X, self.sample_weight, marks)
        times = self.times_in(X, self.time, marks)
        named = {name for name, _ in used.values()} - {None}
        X = X.drop(columns=list(named)) if named else X
        rows = np.arange(X.shape[0]) if issparse(X) else X.index.to_numpy()
        if times is not None:
            if not self.groups and len(np.unique(times)) < len(times):
                note(f"--time {self.time}: rows of one time are held out together")
                _, first, number = np.unique(times, return_index=True, return_inverse=True)
                groups = text(table.X[self.time])[first][number]
            order = np.argsort(times, kind="stable")
            X, rows = X.iloc[order], rows[order]
            target = replace(target, y=target.y[order])
            groups, weight = take_rows(groups, order), take_rows(weight, order)
        prepared = Prepared(X, target, rows + 1, groups, weight, marks, grouped=bool(self.groups))
        if self.duplicates == "group":
            equal = duplicate_groups(matrix_of(prepared.preprocessor, X))
            prepared.groups = joined_groups(group_numbers(groups, len(rows)), equal)
        return prepared

    def prepare_in_blocks(self, memory: str | None, beside: Path, stack: ExitStack) -> Prepared:
        """Table of a file, with columns prepared according to a sample of the rows.

        The matrix is in memory if the sample is the whole table; else it is blocks of rows, for a
        dense table in a file of a folder ``beside`` the model, which the ``stack`` removes. Refuses
        what takes more memory than allowed, such as 2GB.
        """
        allowed = None
        if memory is not None:
            amount = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?([KMGT]?)B?"
            match = re.fullmatch(amount, memory.strip(), re.IGNORECASE)
            if match is None:
                such = "an amount of memory, such as 2GB or 500MB"
                raise InputError(f"--memory {memory} is not {such}")
            allowed = int(float(match[1]) * _UNITS[match[2].upper()])
        reader, path = self.open(self.target), self.file
        first = first_pass(reader, decimal=self.decimal, drop=self.drop or ())
        sample, target, marks = self._understood(first.sample.X, first.y, self.drop or ())
        rows = np.arange(1, first.n_rows + 1)
        prepared = Prepared(sample, target, rows, marks=marks, ranges=first.ranges)
        n_sampled, in_memory = len(first.places), issparse(sample)
        if n_sampled == first.n_rows:
            return prepared
        size = _SPARSE_SIZE if in_memory else None
        blocks = TableBlocks(reader, prepared.preprocessor, first, size)
        n_outputs = 1 if target.task == "regression" else len(np.unique(target.y))
        given = self.n_landmarks or "auto"
        several = len(self.kernels) > 1 or self.kernels == ["auto"]
        most_tried = largest_rank(several and self.combine != "best", first.n_rows)
        rank = int(given) if given.isdecimal() else most_tried
        most, needed = allowed or free_memory(), bytes_needed(blocks.shape, n_outputs, rank)
        if most is not None and needed > most:
            fits = [m for m in range(1, rank) if bytes_needed(blocks.shape, n_outputs, m) <= most]
            fit = "no number fits: allow more by --memory"
            if fits:
                fit = f"--n-landmarks {fits[-1]} fits"
            raise InputError(
                f"{path}: {count(first.n_rows, 'row')} and --n-landmarks {given} take about "
                f"{gigabytes(needed)} of memory, and {gigabytes(most)} may be used; {fit}"
            )
        on_disk = f" and, meanwhile, {gigabytes(8 * prod(blocks.shape))} next to the model"
        note(
            f"{path.name}: {first.n_rows:,} rows in blocks; columns are prepared by a sample of "
            f"{n_sampled:,} rows; about {gigabytes(needed)} of memory{'' if in_memory else on_disk}"
        )
        note(f"rows in blocks are not saved: for intervals or sets, fit up to {SAMPLE:,} rows")
        prepared.blocks = blocks
        if not in_memory:
            with writing(beside, "--output"):
                folder = stack.enter_context(TemporaryDirectory(prefix=".looms-", dir=beside))
                prepared.blocks = blocks.stored(Path(folder) / "X.npy", _SIZE)
        return prepared

    def _understood(
        self, X: Features, y: Cells | None, drop: Sequence[str]
    ) -> tuple[Features, Target, Marks]:
        """Rows without the columns to leave out; the target, with a note on it; and the marks."""
        whole, X = X, self.without(X, drop, self.target)
        if y is None:
            raise self.no_target(X)
        marks = marks_in(whole, y, decimal=self.decimal)
        with refused(f"{self.file}: "):
            target = target_of(y, self.task, marks, self.order)
        note(f"{target.task}: {target.reason}")
        return X, target, marks


def tell_columns(preprocessor: TablePreprocessor, prepared: Prepared) -> None:
    """Notes on columns and labels that may be other than they look; warnings of what is lost."""
    for remark in remarks_in(preprocessor, prepared.grouped):
        (warning if remark.topic in CHANGED else note)(sentence(remark))
    for text_of_labels in prepared.target.notes:
        note(text_of_labels)


def bytes_needed(shape: tuple[int, int], n_outputs: int, rank: int) -> int:
    """Approximate memory of a fit: the program, m × m matrices, working blocks, columns of rows,
    and the quarter of the rows on which a search runs before all of them, with their features.

    The counts of matrices and columns are from fits with 2,000,000 rows and with 1000 landmarks.
    Two classes have one output.
    """
    (n_rows, n_features), threads = shape, available_threads()
    columns = 20 + 10 * (1 if n_outputs == 2 else n_outputs)
    matrices = (30 + 4 * threads) * (rank + 1) ** 2
    at_work = 8 * threads * _SIZE * rank
    subset = n_features * max(n_rows // 4, 20 * rank) + min(n_rows // 4 * rank, KEPT)
    return 420 * 10**6 + 8 * (matrices + at_work + subset + columns * n_rows)
