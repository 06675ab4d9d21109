"""looms check: what makes the scores of a table misleading, whatever the model."""

from __future__ import annotations

from pathlib import Path

import looms
from looms.cli._errors import in_options
from looms.cli._options import Column, Columns, Source, command
from looms.cli._output import as_messages, check_can_write, note, show_json, to_stdout, writing
from looms.cli._prepare import labels_of_groups, read, understood
from looms.cli.fit import PAGE, check_report
from looms.report import TableCheck
from looms.tables._target import Task


@command
def check(
    *,
    columns: Columns,
    task: Task = "auto",
    groups: Column = None,
    report: Path | None = None,
    source: Source,
    json: bool = False,
    force: bool = False,
) -> None:
    """Check a table before any model: duplicates, columns that give the target, rows in an order.

    Parameters
    ----------
    task
        What is to be learned.
    groups
        Column, such as the patient, whose rows with the same label belong together.
    report
        HTML page with the findings and the columns.

    Examples
    --------
    looms check clinic.csv --target relapse
    looms check clinic.csv -t relapse --groups patient --report check.html
    looms check homes.parquet -t price --json
    """
    file = source.file
    check_report(report, None)
    check_can_write(report, force, file, option="--report", holds=PAGE)
    table = read(source, columns.target, drop_missing=columns.drop_missing_targets)
    X, _ = understood(file, table.X, table.y, columns, task)
    labels = labels_of_groups(file, X, groups)
    X = X if groups is None else X.drop(columns=groups)
    with as_messages(prefix=f"{file}: "):
        found = looms.check(X, table.y, labels, task=task)
    findings = [{**one, "text": in_options(one["text"])} for one in found["findings"]]
    found = TableCheck({**found, "target": columns.target, "findings": findings})
    if report is not None:
        with writing(report, "--report"):
            found.report(report)
        note(f"the report is in {report}")
    if json:
        show_json(dict(found))
    else:
        to_stdout(f"{found}\n")
