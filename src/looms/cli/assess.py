"""looms assess: honest performance of a kernel machine on a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from joblib import effective_n_jobs
from sklearn.pipeline import Pipeline

from looms.assessment import AssessmentInterrupted
from looms.assessment import assess as assess_splits
from looms.assessment._result import Assessment
from looms.cli._errors import InputError
from looms.cli._figures import facts_of
from looms.cli._options import Bounds, Columns, Source, command
from looms.cli._output import (
    as_messages,
    check_can_write,
    csv_text,
    note,
    show_cautions,
    show_json,
    to_stdout,
    write_or_print,
)
from looms.cli._prepare import check_kernel_matrix, prepare_file
from looms.cli._progress import Meter
from looms.cli._request import MachineRequest, arrays_of, tell_cost
from looms.cli.fit import PAGE, check_report, train, write_report
from looms.report._choice import near_guess
from looms.report.figures import outer
from looms.report.text import plain


@command
def assess(
    *,
    columns: Columns,
    splits: Annotated[int | None, Bounds(2)] = None,
    test_size: float = 0.1,
    method: Literal["shuffle", "kfold", "bootstrap"] | None = None,
    store: Path | None = None,
    jobs: int = 1,
    request: MachineRequest,
    output: Path | None = None,
    report: Path | None = None,
    source: Source,
    json: bool = False,
    force: bool = False,
) -> None:
    """Assess the whole selection on outer splits, whose test rows it never sees.

    Parameters
    ----------
    splits
        Number of outer splits, default 100; with --time 5.
    test_size
        Share of the rows to test on; 1/k for k-fold.
    method
        Random splits (default), repeated k-fold, or .632+ bootstrap. With --time, windows of rows,
        each tested after training on the rows before it.
    jobs
        Splits to run in parallel; -1 for one per core.
    output
        CSV file with a row per split.
    report
        HTML page on the machine of all rows, and how good it is.
    """
    file = source.file
    if request.nested:
        raise InputError("--nested is for looms fit: looms assess tunes anew in splits of its own")
    check_report(report, request, output, "the row a split")
    if request.time is not None and method is not None:
        raise InputError(
            f"--time tests rows after the training rows, which --method {method} mixes; leave one "
            "of these options out"
        )
    n_splits, at_once = splits or (100 if request.time is None else 5), effective_n_jobs(jobs)
    prepared = prepare_file(source, columns, request)
    n_arrays = arrays_of(request, prepared.matrix) * at_once
    check_kernel_matrix(file, len(prepared.rows), n_arrays)
    check_can_write(output, force, file, holds="split,n_train,n_test,")
    check_can_write(report, force, file, option="--report", holds=PAGE)
    machine, y = request.estimator_for(prepared), prepared.target.y
    if getattr(machine, "threshold", 0.5) != 0.5:
        note(f"--threshold {request.threshold}: positive is {max(y)}")
    tell_cost(request, round((1.0 - test_size) * len(y)), n_arrays, n_splits / at_once)
    try:
        with as_messages(), Meter("Splits") as meter:
            result = assess_splits(
                Pipeline([("table", prepared.preprocessor), ("machine", machine)]),
                prepared.X,
                y,
                n_splits=n_splits,
                test_size=test_size,
                method=method or ("shuffle" if request.time is None else "forward"),
                gap=request.gap,
                store=store,
                n_jobs=jobs,
                random_state=request.random_state,
                groups=prepared.groups,
                copies=request.copies or "apart",
                progress=meter.split,
            )
    except AssessmentInterrupted as interrupt:
        if interrupt.result is not None:
            show_result(interrupt.result, json)
        raise
    try:  # files before anything is printed, to a pipe that may close
        if output is not None:
            write_or_print(output, csv_text(result.table), "a row for each split is in")
        if report is not None:
            fitted = train(prepared, request, target=columns.target, file=file.name)
            facts = facts_of(fitted, prepared, result)
            assert facts is not None  # by `check_report`
            write_report(report, facts)
    finally:
        show_result(result, json)
    if result.classification:
        show_cautions(list(near_guess(result, len(set(y)))))


def show_result(result: Assessment, json: bool) -> None:
    """Figures of an assessment on standard output."""
    if json:
        show_json(plain(outer(result)))
    else:
        to_stdout(f"{result.summary()}\n")
