"""Options that more than one module knows."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Task(StrEnum):
    """What to learn."""

    AUTO = "auto"
    CLASSIFICATION = "classification"
    REGRESSION = "regression"


class Optimizer(StrEnum):
    """Optimisers of the hyper-parameters."""

    LBFGS = "lbfgs"
    SCG = "scg"
    NELDER_MEAD = "nelder-mead"


class Threshold(StrEnum):
    """Where positive begins."""

    ZERO = "0"
    BER = "ber"


class Weight(StrEnum):
    """How samples of different classes count."""

    NONE = "none"
    BALANCED = "balanced"


class FileFormat(StrEnum):
    """Formats of files, where the suffix does not tell."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    ARFF = "arff"
    SVMLIGHT = "svmlight"
    CHALLENGE = "challenge"


FormatOption = Annotated[
    FileFormat | None,
    typer.Option("--format", help="Format of the file, where its suffix does not tell."),
]

ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite the output if it is there.")
]
