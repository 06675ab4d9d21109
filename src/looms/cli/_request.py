"""The request for a machine, checked before any work."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import typer
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from looms import SVCCV, LSSVMClassifierCV, LSSVMRegressorCV, NonconformityClassifier
from looms._memory import GRID, SEARCH
from looms._typing import AnyArray
from looms.cli._errors import InputError
from looms.cli._options import Task
from looms.cli._output import as_messages, warning
from looms.cli._prepare import Prepared
from looms.criteria import DIFFERENTIABLE
from looms.estimators._folds import CHOICE_FOLDS, OUTER_FOLDS
from looms.estimators._search import AUTO_KERNELS
from looms.folds import NUMBER_OF_FOLDS, GapKFold, fold_numbers, group_numbers
from looms.kernels._names import KERNEL_NAMES, LEARNED_NAMES, is_kernel_name
from looms.threshold import RULES, Cost, RequiredPrecision, RequiredRecall

Threshold: TypeAlias = float | str | RequiredPrecision | RequiredRecall | Cost | None

FORMS = "0, ber, f1, recall=0.9, precision=0.8 or cost=1:5 (false positive : false negative)"
_NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"

#: Windows of time that are held out.
WINDOWS = 10
#: Criteria of `SVCCV`, by name.
_SVM_CRITERIA = ["log_likelihood", "error", "ber", *DIFFERENTIABLE]
#: Options of ``--machine nonconformity``.
_OF_NONCONFORMITY = {"task", "machine", "random_state", "cv"}
_KERNELS = [name for name in (*KERNEL_NAMES, *LEARNED_NAMES) if name != "precomputed"]


def threshold_of(text: str | None) -> Threshold:
    """The number, name or rule of `looms.threshold` that an option stands for, or None."""
    if text is None or text in RULES:
        return text
    if text == "0":
        return 0.0
    share = re.fullmatch(f"(recall|precision)={_NUMBER}", text)
    costs = re.fullmatch(f"cost={_NUMBER}:{_NUMBER}", text)
    try:
        if share is not None:
            kind = RequiredRecall if share[1] == "recall" else RequiredPrecision
            return kind(float(share[2]))
        if costs is not None:
            false_positive, false_negative = float(costs[1]), float(costs[2])
            if not (false_positive > 0 and false_negative > 0):
                raise ValueError("both costs must be positive, else one class takes everything")
            return Cost(false_positive, false_negative)
    except ValueError as error:
        raise InputError(f"--threshold {text}: {error}") from None
    raise InputError(f"--threshold {text} is none of {FORMS}")


@dataclass(frozen=True)
class MachineRequest:
    """Machine to fit; None leaves a choice to the machine."""

    task: Annotated[Task, typer.Option(help="What to learn.")] = "auto"
    machine: Annotated[
        Literal["lssvm", "svm", "nonconformity"],
        typer.Option(
            "--machine",
            "-m",
            help="Least-squares SVM; for classes also svm, or a grid of them, one for each row.",
        ),
    ] = "lssvm"
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            "-k",
            help=(
                "linear, quadratic, cubic, boolean, rbf (default), laplacian, ard, matern12, "
                "matern32, matern52, powexp, powexp_ard, polynomial4 and other degrees, or one of "
                "these after normalized_, or ranked_ (for columns with long tails), or a kernel of "
                "distances after weighted_ (by feature); repeat it to compare several, or give "
                "auto for a stack of several."
            ),
        ),
    ] = None
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            "--criterion",
            "-c",
            help=(
                "press (default); for classes also hinge, squared_hinge, smoothed_error, wmw or "
                "cross_entropy; repeat it to compare several. For svm also log_likelihood "
                "(default), error or ber, and only one."
            ),
        ),
    ] = None
    optimizer: Annotated[
        Literal["lbfgs", "scg", "nelder-mead"] | None,
        typer.Option(help="Optimizer of the hyper-parameters, default lbfgs."),
    ] = None
    threshold: Annotated[
        str | None,
        typer.Option(
            help=(
                "For two classes, by default at probability one half: 0, ber (least balanced "
                "error), f1, recall=0.9, precision=0.8, or cost=1:5, of a false positive to a "
                "false negative; positive is the later class in order."
            ),
            metavar="RULE",
        ),
    ] = None
    calibration: Annotated[
        Literal["sigmoid", "isotonic", "beta", "none"] | None,
        typer.Option(help="How probabilities are learned, default sigmoid; or none."),
    ] = None
    weight: Annotated[
        Literal["none", "balanced"] | None,
        typer.Option(help="Weight of the classes; balanced gives them equal weight."),
    ] = None
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Largest number of iterations of each search.")
    ] = None
    random_state: Annotated[int, typer.Option(min=0, help="Seed of subsamples and splits.")] = 0
    prior: Annotated[
        bool,
        typer.Option(
            "--prior",
            help="Keep many hyper-parameters near their start; for ard, above all with few rows.",
        ),
    ] = False
    copies: Annotated[
        Literal["apart", "together"],
        typer.Option(help="Hold out rows that are equal in every feature apart or together."),
    ] = "apart"
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column, such as the patient: rows with the same label are held out together.",
            metavar="COLUMN",
        ),
    ] = None
    cv: Annotated[
        str | None,
        typer.Option(
            help=(
                "Folds to hold out: 10 for ten folds, 5x2 for five repetitions of two. By default "
                "each row, or group, by itself; with --time 10 windows; for nonconformity a "
                "validation part."
            ),
            metavar="FOLDS",
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            help="Column of dates or numbers that orders the rows; windows of time are held out.",
            metavar="COLUMN",
        ),
    ] = None
    gap: Annotated[
        int,
        typer.Option(
            min=0, help="Rows on either side of a window of --time to leave out of its training."
        ),
    ] = 0
    combine: Annotated[
        Literal["best", "stack"] | None,
        typer.Option(
            help=(
                "For several candidates, compared on five folds that each was tuned without: the "
                "best (default), or a weighted sum (default of --kernel auto)."
            )
        ),
    ] = None
    search: Annotated[
        Literal["gradient", "grid"],
        typer.Option(
            help=(
                "Search by gradients, or on a grid, whose choice is repeated without each row, "
                "group or fold: honest figures."
            )
        ),
    ] = "gradient"
    rank: Annotated[
        str | None,
        typer.Option(
            help=(
                "Number of landmarks (rows that the machine is made of), such as 1000, or auto: "
                "for more rows than a kernel matrix can have, or than fit in memory."
            ),
            metavar="NUMBER",
        ),
    ] = None
    nested: Annotated[
        Literal["folds", "none"] | None,
        typer.Option(
            help=(
                "folds repeats the search without each of up to ten folds: honest figures, at up "
                "to ten times the cost. Default of lssvm for up to 1000 rows, or 200 with several "
                "candidates; none turns it off."
            )
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuse unknown names, and options that the machine or the task does not have."""
        threshold_of(self.threshold)
        if self.cv is not None and NUMBER_OF_FOLDS.fullmatch(self.cv) is None:
            raise InputError(
                f"--cv {self.cv} is no number of folds, as 10, nor repetitions and folds, as 5x2"
            )
        if self.machine == "nonconformity":
            self._check_nonconformity()
        self._check_time()
        self._check_rank()
        if self.search == "grid":
            self._check_grid()
        self._check_kernels()
        if self.task == "regression":
            self._check_regression()
        self._check_criteria()
        if self.machine == "svm":
            self._check_svm()

    def _check_kernels(self) -> None:
        names = self.kernel or []
        if "auto" in names:
            if len(names) > 1:
                raise InputError("--kernel auto stands for several: give no other kernel")
            if self.machine == "svm":
                raise InputError("--kernel auto is for --machine lssvm; name those of svm")
            return
        for name in names:
            if name == "precomputed" or not is_kernel_name(name):
                raise InputError(
                    f"there is no kernel {name!r}; known are {', '.join(_KERNELS)}, and "
                    "polynomial4 and other degrees"
                )

    def _check_criteria(self) -> None:
        known = _SVM_CRITERIA if self.machine == "svm" else list(DIFFERENTIABLE)
        for name in self.criterion or ():
            if name not in known:
                if name in _SVM_CRITERIA:
                    raise InputError(f"--criterion {name} needs --machine svm")
                raise InputError(f"there is no criterion {name!r}; known are {', '.join(known)}")

    def _check_svm(self) -> None:
        if len(self.criterion or ()) > 1:
            raise InputError("--machine svm takes only one --criterion, by which it compares")
        for name in self.kernel or ():
            if name.endswith("ard"):
                raise InputError(f"--kernel {name} needs a gradient, which --machine svm lacks")
        if self.copies == "together":
            raise InputError(
                "--copies together is for --machine lssvm; give --groups, or drop copies"
            )
        if self.cv is not None and "x" in self.cv:
            raise InputError(
                f"--machine svm holds out each row once, and --cv {self.cv} repeats it; give a "
                "number of folds"
            )
        if self.search == "grid":
            raise InputError("--search grid is for --machine lssvm: svm has its own grid")
        if self.combine is not None:
            raise InputError("--combine is for --machine lssvm: svm compares its kernels by scores")
        self._check_gradient("--machine lssvm: svm searches without gradients")
        if self.calibration in ("isotonic", "beta"):
            raise InputError(
                f"--calibration {self.calibration} is for --machine lssvm; svm has sigmoid or none"
            )

    @property
    def by_features(self) -> bool:
        """True for only a linear machine, which with few features takes no kernel matrix.

        It does take one if rows are held out several times, or if a grid repeats the choice
        without each row.
        """
        linear = self.machine == "lssvm" and set(self.kernel or ()) == {"linear"}
        repeated = self.gap > 0 or "x" in (self.cv or "")
        return linear and not repeated and (self.search == "gradient" or self.nested == "none")

    @property
    def n_arrays(self) -> float:
        """Arrays of the size of a kernel matrix in memory at once; none on landmarks."""
        if self.rank is not None:
            return 0.0
        return GRID if self.search == "grid" else SEARCH

    @property
    def n_fits(self) -> float | None:
        """Searches of all rows that take as long as this one; None if that is not known."""
        if self.machine != "lssvm" or self.search == "grid":
            return None
        kernels = AUTO_KERNELS if self.kernel == ["auto"] else self.kernel or ["rbf"]
        n_candidates = len(kernels) * len(self.criterion or ["press"])
        of_choice = CHOICE_FOLDS * (1 - 1 / CHOICE_FOLDS) ** 3 if n_candidates > 1 else 0.0
        outer = OUTER_FOLDS * (1 - 1 / OUTER_FOLDS) ** 3 if self.nested == "folds" else 0.0
        return n_candidates * (1.0 + of_choice) * (1.0 + outer)

    def _check_nonconformity(self) -> None:
        for field in fields(self):
            if field.name not in _OF_NONCONFORMITY and getattr(self, field.name) != field.default:
                option = f"--{field.name.replace('_', '-')}"
                raise InputError(f"{option} is not for --machine nonconformity, which has --cv")

    def _check_time(self) -> None:
        if self.time is None:
            if self.gap:
                raise InputError("--gap goes with --time, the column that orders the rows")
        elif self.nested == "folds":
            raise InputError(
                "--nested folds is for rows without --time: looms assess --time tests on later rows"
            )
        elif self.combine == "stack":
            raise InputError("--combine stack is for rows without --time: give --combine best")
        elif self.machine == "svm":
            raise InputError("--time is for --machine lssvm: svm leaves out no windows")
        elif self.time == self.groups:
            raise InputError(
                f"--groups and --time are both {self.time}: rows of one time are held out together "
                "without --groups"
            )
        elif self.cv is not None and "x" in self.cv:
            raise InputError(
                f"--time cuts the rows into windows once, and --cv {self.cv} repeats it; give the "
                "number of windows"
            )

    def _check_rank(self) -> None:
        if self.rank is None:
            return
        if self.rank != "auto" and (not self.rank.isdecimal() or int(self.rank) == 0):
            raise InputError(f"--rank {self.rank} is no number of landmarks, nor auto")
        others = {
            "--machine": None if self.machine == "lssvm" else self.machine,
            "--kernel": "auto" if "auto" in (self.kernel or ()) else None,
            "--copies": None if self.copies == "apart" else self.copies,
            "--combine": self.combine if self.combine == "stack" else None,
            "--nested": self.nested if self.nested == "folds" else None,
        }
        for option, value in others.items():
            if value is not None:
                raise InputError(f"{option} {value} does not go with --rank: leave one of them out")

    def _check_grid(self) -> None:
        if len(self.criterion or ()) > 1:
            raise InputError("--search grid compares by one --criterion, but there are several")
        self._check_gradient("--search gradient, and this is --search grid")

    def _check_gradient(self, wanted: str) -> None:
        """Refuse the options of a search by gradients, naming what they are for."""
        for name in ("optimizer", "max_iter", "prior"):
            if getattr(self, name):
                raise InputError(f"--{name.replace('_', '-')} is for {wanted}")

    def _check_regression(self) -> None:
        if self.machine != "lssvm":
            raise InputError(
                f"--machine {self.machine} is for classification, but this is a regression"
            )
        for name in ("threshold", "weight", "calibration"):
            if getattr(self, name) is not None:
                raise InputError(f"--{name} is for classification, but this is a regression")

    def estimator(self, prepared: Prepared) -> BaseEstimator:
        """The unfitted estimator for a table; refuses options of others, and impossible folds."""
        y, classes = prepared.target.y, prepared.target.task == "classification"
        cv = self._checked_cv(prepared)
        if not classes:
            self._check_regression()
        if self.machine == "nonconformity":
            if issparse(prepared.matrix):
                raise InputError("--machine nonconformity is for dense tables; use lssvm")
            return NonconformityClassifier(
                validation=self.cv or "split", random_state=self.random_state
            )
        kernel = _one_or_list(self.kernel, "rbf")
        usual = "log_likelihood" if self.machine == "svm" else "press"
        criterion = _one_or_list(self.criterion, usual)
        search: dict[str, Any] = {
            "optimizer": self.optimizer or "lbfgs",
            "random_state": self.random_state,
            "prior": self.prior,
            "copies": self.copies,
            "cv": cv,
            "search": self.search,
            "combine": self.combine or "auto",
        }
        if self.rank is not None:
            if self.rank != "auto" and int(self.rank) > len(y):
                raise InputError(
                    f"--rank {self.rank} asks for more landmarks than there are rows, {len(y)}"
                )
            search["rank"] = self.rank if self.rank == "auto" else int(self.rank)
        if self.max_iter is not None:
            search["max_iter"] = self.max_iter
        if self.nested is not None:
            search["nested"] = None if self.nested == "none" else self.nested
        if not classes:
            return LSSVMRegressorCV(kernel, criterion, **search)
        self._check_classes(y)
        options: dict[str, Any] = {
            "class_weight": "balanced" if self.weight == "balanced" else None,
            "threshold": threshold_of(self.threshold),
        }
        calibration = None if self.calibration == "none" else self.calibration or "sigmoid"
        if self.machine == "svm":
            probability = calibration and "loo"
            nested = "folds" if self.nested == "folds" else None
            return SVCCV(
                kernel, criterion, probability=probability, cv=cv, nested=nested, **options
            )
        return LSSVMClassifierCV(kernel, criterion, calibration=calibration, **options, **search)

    def _checked_cv(self, prepared: Prepared) -> Any:
        """What is held out, in the form that estimators take."""
        y, groups = prepared.target.y, prepared.groups
        cv: Any = int(self.cv) if self.cv is not None and self.cv.isdecimal() else self.cv
        if self.time is not None:
            cv = GapKFold(WINDOWS if cv is None else cv, self.gap)
        given = {"--groups": self.groups, "--time": self.time, "--gap": self.gap, "--cv": self.cv}
        prefix = " ".join(f"{name} {value}" for name, value in given.items() if value)
        with as_messages(prefix=f"{prefix}: "):
            numbers = None if groups is None else group_numbers(groups, len(y))
            labels = y if prepared.target.task == "classification" else None
            fold_numbers(cv, y, numbers, labels=labels)
        return cv

    def _check_classes(self, y: AnyArray) -> None:
        labels, counts = np.unique(y, return_counts=True)
        threshold, n_classes = threshold_of(self.threshold), len(labels)
        if n_classes > 2 and threshold not in (None, 0.0):
            raise InputError(
                f"--threshold {self.threshold} is for two classes, but the target has "
                f"{n_classes}; for classes of unequal size use --weight balanced"
            )
        if n_classes == 2 and counts.min() == 1:
            raise InputError(
                f"the class {labels[counts.argmin()]} has only one row, and without that row there "
                "is no second class to learn; add rows of it, or name another --target"
            )
        if threshold not in (None, 0.0, "ber") and counts[1] > counts[0]:
            other, positive = labels
            warning(
                f"--threshold {self.threshold} treats {positive} as the positive class, because it "
                f"is later in order, but most rows have it. If {other} is to be detected, "
                "write the labels so that it is later, such as 1, and 0 for the other"
            )


def _one_or_list(names: list[str] | None, default: str) -> str | list[str]:
    """The name or names that were given, or else the default."""
    names = names or [default]
    return names[0] if len(names) == 1 else names
