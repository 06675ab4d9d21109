"""From what was asked for to a fitted model."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import __version__ as sklearn_version
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from looms import SVCCV, LSSVMClassifierCV, LSSVMRegressorCV, __version__
from looms.cli._columns import MOST_NAMES
from looms.cli._errors import InputError
from looms.cli._new_rows import ranges
from looms.cli._options import Calibration, Copies, Machine, Optimizer, Task
from looms.cli._progress import progress_of
from looms.cli._say import note, warnings_as_notes
from looms.cli._task import alike_labels, labels, numbers
from looms.cli._threshold import threshold_of
from looms.criteria import DIFFERENTIABLE
from looms.datasets._table import Table
from looms.estimators import BoundWarning, CopiesWarning, OneClassWarning
from looms.kernels._names import KERNEL_NAMES
from looms.tables import table_preprocessor

#: Of `SVCCV`, by name.
SVM_CRITERIA = ["log_likelihood", "error", "ber", *DIFFERENTIABLE]

#: No option holds the values searched.
_IN_PYTHON = {"in param_grid": "as param_grid of looms.SVCCV in Python"}


@dataclass(frozen=True)
class Request:
    """What `looms fit` was asked for; None leaves a choice to the estimator."""

    kernels: tuple[str, ...]
    criteria: tuple[str, ...]
    optimizer: str | None
    threshold: str | None
    weight: str | None
    max_iter: int | None
    random_state: int
    prior: bool = False
    machine: str = "lssvm"
    calibration: str | None = None
    copies: str = "apart"

    def check(self) -> None:
        """Refuse unknown names, and options that the machine does not have, before any work."""
        threshold_of(self.threshold)
        _check_names(
            "kernel", self.kernels, [name for name in KERNEL_NAMES if name != "precomputed"]
        )
        if self.machine != Machine.SVM:
            for name in sorted({*self.criteria} & {*SVM_CRITERIA} - {*DIFFERENTIABLE}):
                raise InputError(f"--criterion {name} needs --machine svm")
            _check_names("criterion", self.criteria, list(DIFFERENTIABLE))
            return
        _check_names("criterion", self.criteria, SVM_CRITERIA)
        if len(self.criteria) > 1:
            raise InputError("--criterion of --machine svm is one: its scores compare no others")
        ard = [name for name in self.kernels if name.endswith("ard")]
        if ard:
            raise InputError(f"--kernel {ard[0]} needs a gradient, which --machine svm has not")
        if self.copies == Copies.TOGETHER:
            raise InputError(
                "--copies together is for --machine lssvm: the path of svm leaves one out"
            )
        for name in ("optimizer", "max_iter", "prior"):
            if getattr(self, name):
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"{option} is for --machine lssvm: svm searches without gradient")
        if self.calibration in (Calibration.ISOTONIC, Calibration.BETA):
            raise InputError(
                f"--calibration {self.calibration} is for --machine lssvm; svm has sigmoid or none"
            )

    def check_task(self, task: Task) -> None:
        """Refuse options of classification for a regression."""
        if task is Task.REGRESSION:
            if self.machine == Machine.SVM:
                raise InputError("--machine svm is for classification, and this is a regression")
            for name in ("threshold", "weight", "calibration"):
                if getattr(self, name) is not None:
                    raise InputError(f"--{name} is for classification, and this is a regression")

    def names(self) -> list[str]:
        """The candidates in the order in which they are tried."""
        return [
            f"{kernel}, {criterion}" for kernel, criterion in product(self.kernels, self.criteria)
        ]

    def estimator(self, task: Task) -> BaseEstimator:
        """The estimator, not fitted yet."""
        kernel, criterion = _one_or_list(self.kernels), _one_or_list(self.criteria)
        balanced = "balanced" if self.weight == "balanced" else None
        of_classes: dict[str, Any] = {
            "class_weight": balanced,
            "selection_weight": balanced,
            "threshold": threshold_of(self.threshold),
        }
        if self.machine == Machine.SVM:
            probability = None if self.calibration == Calibration.NONE else "loo"
            return SVCCV(kernel, criterion, probability=probability, **of_classes)
        options: dict[str, Any] = {
            "optimizer": str(self.optimizer),
            "random_state": self.random_state,
            "prior": self.prior,
            "copies": str(self.copies),
        }
        if self.max_iter is not None:
            options["max_iter"] = self.max_iter
        if task is Task.CLASSIFICATION:
            named = str(self.calibration or Calibration.SIGMOID)
            of_classes["calibration"] = None if named == Calibration.NONE else named
            return LSSVMClassifierCV(kernel, criterion, **of_classes, **options)
        return LSSVMRegressorCV(kernel, criterion, **options)


def request_of(
    machine: Machine,
    kernels: list[str] | None,
    criteria: list[str] | None,
    optimizer: str | None,
    threshold: str | None,
    weight: str | None,
    max_iter: int | None,
    random_state: int,
    prior: bool,
    calibration: Calibration | None,
    copies: Copies,
) -> Request:
    """The checked request of the options that several commands share."""
    svm = machine is Machine.SVM
    request = Request(
        kernels=tuple(kernels or ["rbf"]),
        criteria=tuple(criteria or ["log_likelihood" if svm else "press"]),
        optimizer=optimizer if svm or optimizer else Optimizer.LBFGS,
        threshold=threshold,
        weight=weight,
        max_iter=max_iter,
        random_state=random_state,
        prior=prior,
        machine=machine,
        calibration=calibration,
        copies=copies,
    )
    request.check()
    return request


@dataclass(frozen=True)
class Fitted:
    """A fitted model and what to store with it."""

    model: Pipeline
    metadata: dict[str, Any]


def train(table: Table, target: str | None, task: Task, request: Request) -> Fitted:
    """Fit a table; progress goes to stderr.

    Parameters
    ----------
    table : Table
        Features and target.
    target : str or None
        Name of the target, where it has one.
    task : Task
        Classification or regression.
    request : Request
        The rest of what was asked for.
    """
    y = targets(table, task, request)
    machine = request.estimator(task)
    start = time.perf_counter()
    try:
        preprocessor = table_preprocessor(table.X)
        X = preprocessor.fit_transform(table.X)
        with warnings_as_notes(_IN_PYTHON), progress_of(machine, request.names(), len(y)):
            for category in (CopiesWarning, OneClassWarning):  # the cautions of the fit say these
                warnings.simplefilter("ignore", category)
            if request.machine != Machine.SVM:
                warnings.simplefilter("ignore", BoundWarning)
                warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(X, y)
    except np.linalg.LinAlgError:  # a ValueError too, and not the fault of the table
        raise
    except ValueError as error:  # what scikit-learn and the estimators refuse
        raise InputError(str(error)) from error
    model = Pipeline([("table", preprocessor), ("machine", machine)])
    dense = not sparse.issparse(table.X)
    metadata = {
        "task": str(task),
        "target": target,
        "columns": {str(n): str(t) for n, t in table.X.dtypes.items()} if dense else None,
        "ranges": ranges(preprocessor, table.X) if dense else None,
        "n_rows": table.X.shape[0],
        "n_features": table.X.shape[1],
        "asked": asdict(request),
        "seconds": time.perf_counter() - start,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "looms_version": __version__,
        "sklearn_version": sklearn_version,
    }
    return Fitted(model, metadata)


def targets(table: Table, task: Task, request: Request) -> Any:
    """The target as the estimators take it, or a refusal of what they could not learn."""
    request.check_task(task)
    y = labels(table.y) if task is Task.CLASSIFICATION else numbers(table.y)
    alike = alike_labels(table.y) if task is Task.CLASSIFICATION else []
    if alike:
        groups = "; ".join(", ".join(map(repr, group)) for group in alike[:MOST_NAMES])
        note(
            f"labels that differ only by case or by blanks around them: {groups}; write those of "
            "one class alike (blanks are taken away, case makes another class)"
        )
    n_values = len(np.unique(y))
    if n_values < 2:
        raise InputError(
            f"the target has one value only, {y[0]!r}: name another column with --target, or give "
            "rows of other values too"
        )
    if n_values > 2 and threshold_of(request.threshold) not in (None, 0.0):
        raise InputError(
            f"--threshold {request.threshold} is for two classes, and the target has {n_values}; "
            "against classes of unequal size use --weight balanced"
        )
    return y


def _one_or_list(names: tuple[str, ...]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _check_names(what: str, names: tuple[str, ...], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"there is no {what} {name!r}; known are {', '.join(known)}")
