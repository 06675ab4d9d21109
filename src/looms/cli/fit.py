"""looms fit: tune a kernel machine on a table and store it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn import __version__ as sklearn_version
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from looms import BoundWarning, CopiesWarning, OneClassWarning, __version__
from looms._optional import require
from looms.assessment._result import Assessment
from looms.cli._errors import InputError
from looms.cli._figures import show_choice
from looms.cli._options import (
    DropOption,
    FileArgument,
    ForceOption,
    MachineOptions,
    Reading,
    TargetOption,
    command,
)
from looms.cli._output import as_messages, check_can_write, note, show_cautions, writing
from looms.cli._prepare import Prepared, prepare, read_training, target_of
from looms.cli._progress import Meter
from looms.cli._request import Request
from looms.datasets._table import table_name
from looms.model_files import save_model
from looms.model_files._files import SavedModel
from looms.report import cautions, write_html
from looms.tables import table_preprocessor

#: Beginning of a page of `looms.report`.
_PAGE = r'<!doctype html>[\s\S]*<meta name="generator" content="looms '
#: No option holds the values searched.
_IN_PYTHON = {"in param_grid": "as param_grid of looms.SVCCV in Python"}


@command
def fit(
    file: FileArgument,
    *,
    target: TargetOption = None,
    options: MachineOptions,
    drop: DropOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", "-o", help="Model file, default the name of FILE + .looms.skops."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="HTML page on the choice, how good it is, what to distrust."),
    ] = None,
    reading: Reading,
    force: ForceOption = False,
) -> None:
    """Fit a kernel machine to a table, chosen by exact leave-one-out, and store it."""
    request = Request.of(options)
    request.check_task(options.task)
    output = output or Path(f"{table_name(file)}.looms.skops")
    check_can_write(output, force, file, holds="model")
    if output.suffix not in (".skops", ""):
        raise InputError(
            f"{output}: the name of a model file ends in .skops, not in {output.suffix}"
        )
    check_report(report, request, force, file, output, "the model")
    table = read_training(file, target, drop, reading)
    known = target_of(table.y, options.task)
    note(f"{known.task}: {known.reason}")
    prepared = prepare(table.X, known)
    for remark in prepared.notes:
        note(remark)
    fitted = train(prepared, request)
    metadata = {**fitted.metadata, "target": target, "file": file.name}
    save_model(output, fitted.model, metadata)
    show_choice(fitted.model, metadata)
    show_cautions(cautions(fitted.model, table.X))
    note(
        "leave-one-out chose this machine, so its figures flatter it; looms assess gives honest "
        "ones"
    )
    note(f"the model is in {output}")
    if report is not None:
        write_report(report, fitted.model, table.y, target, file, prepared.notes)


def train(prepared: Prepared, request: Request) -> SavedModel:
    """The model that was asked for, fitted to a table; progress goes to stderr."""
    X, target = prepared.X, prepared.target
    request.check_target(target)
    machine = request.estimator(target.task)
    names = request.candidates()
    start = time.perf_counter()
    with ExitStack() as stack:
        stack.enter_context(as_messages(_IN_PYTHON))
        preprocessor = table_preprocessor(X, prepared.kinds)
        columns = preprocessor[:-1].fit_transform(X)
        matrix = preprocessor[-1].fit_transform(columns)
        for category in (CopiesWarning, OneClassWarning):  # the cautions of the fit say these
            warnings.simplefilter("ignore", category)
        if request.options.machine != "svm":
            warnings.simplefilter("ignore", BoundWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
        if hasattr(machine, "set_callbacks"):  # of scikit-learn since 1.9
            machine.set_callbacks(stack.enter_context(Meter("", names, len(target.y))))
            stack.callback(machine.set_callbacks)
        machine.fit(matrix, target.y)
    kinds = {} if prepared.kinds is None else preprocessor[0].kinds
    numbers = [name for name, kind in kinds.items() if kind != "category"]  # and dates, as days
    framed = prepared.kinds is not None
    metadata = {
        "task": str(target.task),
        "columns": {str(n): str(t) for n, t in X.dtypes.items()} if framed else None,
        "ranges": {n: [float(columns[n].min()), float(columns[n].max())] for n in numbers}
        if framed
        else None,
        "n_rows": X.shape[0],
        "n_features": X.shape[1],
        "options": request.metadata(),
        "seconds": time.perf_counter() - start,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "looms_version": __version__,
        "sklearn_version": sklearn_version,
    }
    return SavedModel(Pipeline([("table", preprocessor), ("machine", machine)]), metadata)


def check_report(
    report: Path | None, request: Request, force: bool, file: Path, other: Path | None, holds: str
) -> None:
    """Refuse, before any work, a report that could not be written after it.

    ``other`` is what else the command writes, and ``holds`` what is in it.
    """
    if report is None:
        return
    if request.options.machine == "svm":
        raise InputError("--report is for --machine lssvm")
    check_can_write(report, force, file, option="--report", holds=_PAGE)
    if other is not None and report.absolute() == other.absolute():
        raise InputError(f"{report} is to hold {holds}; name another --report")
    for package in ("jinja2", "matplotlib"):
        require(package, "--report", "report")


def write_report(
    path: Path,
    model: Pipeline,
    y: Any,
    target: str | None,
    file: Path,
    notes: Sequence[str],
    assessment: Assessment | None = None,
) -> None:
    """Write the page of a fitted model, with the target as the file has it and notes on it."""
    pandas = require("pandas", "--report")
    title = f"{target}, {file.name}" if target else file.name
    y = pandas.Series(y, name=target)
    # People count the rows of a file from 1; only the names of the samples matter here.
    rows = pandas.RangeIndex(1, len(y) + 1, name="row in the file, counted from 1 after any header")
    X = pandas.DataFrame(index=rows)
    with writing(path, "--report"):
        write_html(model, path, X=X, y=y, assessment=assessment, title=title, notes=notes)
    note(f"the report is in {path}")
