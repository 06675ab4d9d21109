"""looms check: what makes the scores of a table misleading, whatever the model."""

from __future__ import annotations

from pathlib import Path

import looms
from looms._optional import require
from looms.cli._options import Column, command
from looms.cli._output import (
    check_can_write,
    note,
    refused,
    show_json,
    write_stdout,
    writing,
)
from looms.cli._source import Source
from looms.cli.fit import PAGE
from looms.tables._target import Task


@command
def check(
    *,
    target: str | None = None,
    drop: list[str] | None = None,
    task: Task = "auto",
    groups: Column = None,
    report: Path | None = None,
    source: Source,
    json: bool = False,
    force: bool = False,
) -> None:
    """Check a table: duplicates, columns that give the target, rows in an order.

    Parameters
    ----------
    task
        What is to be learned.
    groups
        Column, such as the patient, whose rows with the same label belong together.
    report
        HTML page with the findings and the columns.
    json
        Print the findings as JSON, and nothing else, on standard output.

    Examples
    --------
    looms check clinic.csv --target relapse
    looms check clinic.csv -t relapse --groups patient --report check.html
    looms check homes.parquet -t price --json
    """
    file = source.file
    if report is not None:
        require("jinja2", "--report", "report")
    check_can_write(report, force, file, option="--report", holds=PAGE)
    table = source.read(target, drop_missing=True)
    X = source.without(table.X, drop, target)
    if table.y is None:
        raise source.no_target(X)
    labels = source.labels_in(X, groups)
    X = X.drop(columns=groups) if groups else X
    with refused(f"{file}: "):
        result = looms.check(X, table.y, labels, task=task, decimal=source.decimal)
    if report is not None:
        with writing(report, "--report"):
            result.report(report)
        note(f"the report is in {report}")
    if json:
        show_json(dict(result))
    else:
        write_stdout(f"{result}\n")
