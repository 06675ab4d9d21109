"""Options that more than one module knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer


class Task(StrEnum):
    """What to learn."""

    AUTO = "auto"
    CLASSIFICATION = "classification"
    REGRESSION = "regression"


class Machine(StrEnum):
    """What is fitted."""

    LSSVM = "lssvm"
    SVM = "svm"


class Optimizer(StrEnum):
    """Optimisers of the hyper-parameters."""

    LBFGS = "lbfgs"
    SCG = "scg"
    NELDER_MEAD = "nelder-mead"


class Calibration(StrEnum):
    """How leave-one-out outputs teach probabilities."""

    SIGMOID = "sigmoid"
    ISOTONIC = "isotonic"
    BETA = "beta"
    NONE = "none"


class IntervalMethod(StrEnum):
    """Prediction intervals from leave-one-out models: jackknife+ and its relatives."""

    PLUS = "plus"
    MINMAX = "minmax"
    SCALED = "scaled"


class Weight(StrEnum):
    """How samples of different classes count."""

    NONE = "none"
    BALANCED = "balanced"


class Method(StrEnum):
    """How outer splits are made."""

    SHUFFLE = "shuffle"
    KFOLD = "kfold"
    BOOTSTRAP = "bootstrap"


class FileFormat(StrEnum):
    """Formats of files, where the suffix does not tell."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    ARFF = "arff"
    SVMLIGHT = "svmlight"
    CHALLENGE = "challenge"
    SPREADSHEET = "spreadsheet"
    NPZ = "npz"


class Copies(StrEnum):
    """How copies of rows are held out."""

    APART = "apart"
    TOGETHER = "together"


class DecimalMark(StrEnum):
    """What stands before the decimals of a number."""

    POINT = "."
    COMMA = ","


@dataclass(frozen=True)
class Reading:
    """How a file is to be read; None leaves it to the file."""

    format: FileFormat | None
    sep: str | None
    decimal: DecimalMark | None
    encoding: str | None
    sheet: str | None
    max_bytes: int


FormatOption = Annotated[
    FileFormat | None,
    typer.Option("--format", help="Format of the file, where its suffix does not tell."),
]

SepOption = Annotated[
    str | None,
    typer.Option(
        "--sep",
        help='Character between cells of CSV files, or "tab"; else detected.',
        metavar="CHARACTER",
    ),
]

DecimalOption = Annotated[
    DecimalMark | None,
    typer.Option(
        "--decimal", help="Decimal mark of CSV files and of text in spreadsheets, else detected."
    ),
]

EncodingOption = Annotated[
    str | None,
    typer.Option("--encoding", help="Encoding of CSV files, such as cp1252; else detected."),
]

SheetOption = Annotated[
    str | None,
    typer.Option("--sheet", help="Sheet of a spreadsheet: its name, or its number from 1."),
]

MaxBytesOption = Annotated[
    int,
    typer.Option(
        "--max-bytes", min=1, metavar="BYTES", help="Largest file that is read, unpacked."
    ),
]
#: 1 GiB, as `looms.datasets.read_table` has it.
MAX_BYTES = 2**30

ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite the output if it is there.")
]

TargetOption = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Column to predict; not for svmlight, challenge, npz."),
]

TaskOption = Annotated[Task, typer.Option("--task", help="What to learn.")]

MachineOption = Annotated[
    Machine,
    typer.Option(
        "--machine",
        "-m",
        help="Least-squares support vector machine, or, for classes, support vector machine.",
    ),
]

KernelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        "-k",
        help=(
            "linear, quadratic, cubic, boolean, rbf (default) or ard, or one of these after "
            "normalized_; give it again to compare."
        ),
    ),
]

CriterionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--criterion",
        "-c",
        help=(
            "press (default); for classes also hinge, squared_hinge, smoothed_error, wmw or "
            "cross_entropy; give it again to compare. Of an svm also log_likelihood (default), "
            "error or ber, and one only."
        ),
    ),
]

OptimizerOption = Annotated[
    Optimizer | None,
    typer.Option("--optimizer", help="Optimiser of the hyper-parameters, default lbfgs."),
]

ThresholdOption = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        help=(
            "Of two classes, default where the probability is a half: 0, ber (least balanced "
            "error), f1, recall=0.9, precision=0.8, or cost=1:5, of a false positive to a false "
            "negative; positive is the later class in order."
        ),
        metavar="RULE",
    ),
]

CalibrationOption = Annotated[
    Calibration | None,
    typer.Option(
        "--calibration", help="How probabilities are learned, default sigmoid; none for none."
    ),
]

WeightOption = Annotated[
    Weight | None,
    typer.Option("--weight", help="Weight of the classes; balanced counts them alike."),
]

MaxIterOption = Annotated[
    int | None, typer.Option("--max-iter", min=1, help="Iterations allowed for each search.")
]

PriorOption = Annotated[
    bool,
    typer.Option(
        "--prior",
        help="Hold many hyper-parameters near their start; for ard, above all on few rows.",
    ),
]

CopiesOption = Annotated[
    Copies,
    typer.Option("--copies", help="How rows equal in every feature are left out."),
]

DropOption = Annotated[
    list[str] | None, typer.Option("--drop", help="Column to leave out; may be given again.")
]
