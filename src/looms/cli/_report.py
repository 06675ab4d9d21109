"""The HTML report that commands write beside their results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from looms.cli._errors import InputError
from looms.cli._options import Machine

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from looms.assessment._result import Assessment
    from looms.datasets._table import Table


def check_report(
    report: Path | None, machine: Machine, force: bool, file: Path, other: Path | None, holds: str
) -> None:
    """Refuse, before any work, what could not be written after it.

    Parameters
    ----------
    report : where to; None for no report.
    machine : what is fitted.
    force : whether files may be overwritten.
    file : the table.
    other : what else is written, and what it ``holds``.
    """
    from looms._optional import require
    from looms.cli._apply import check_can_write

    if report is None:
        return
    if machine is Machine.SVM:
        raise InputError("--report is for --machine lssvm")
    made_by_looms = r'<!doctype html>[\s\S]*<meta name="generator" content="looms '
    check_can_write(report, force, file, option="--report", holds=made_by_looms)
    if other is not None and report.absolute() == other.absolute():
        raise InputError(f"{report} is to hold {holds}; name another --report")
    for package in ("jinja2", "matplotlib"):
        require(package, "--report", "report")


def write_report(
    path: Path,
    model: Pipeline,
    table: Table,
    target: str | None,
    file: Path,
    assessment: Assessment | None = None,
) -> None:
    """Write the page of a fitted model; an assessment is its headline."""
    from pandas import DataFrame, RangeIndex, Series

    from looms._files import advice_on
    from looms.cli._say import note
    from looms.report import write_html

    title = f"{target}, {file.name}" if target else file.name
    y = Series(table.y, name=target)
    # People count the rows of a file from 1; only the names of the samples matter here.
    rows = RangeIndex(1, len(y) + 1, name="row in the file, counted from 1 after any header")
    try:
        write_html(model, path, X=DataFrame(index=rows), y=y, assessment=assessment, title=title)
    except OSError as error:
        advice = advice_on(error, "name another --report")
        raise InputError(f"{path} cannot be written ({error.strerror}); {advice}") from None
    note(f"the report is in {path}")
