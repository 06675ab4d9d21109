"""looms assess and compare: models of a table on outer splits, which they never see."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import looms
from looms.assessment import AssessmentInterrupted
from looms.assessment._result import Assessment
from looms.cli._errors import InputError
from looms.cli._model import facts_of
from looms.cli._options import Bounds, Metrics, command
from looms.cli._output import (
    check_can_write_csv,
    csv_text,
    refused,
    show_json,
    warning,
    write_or_print,
    write_stdout,
)
from looms.cli._progress import Meter
from looms.cli._request import FitRequest, Prepared, tell_columns
from looms.cli.fit import check_report, train, write_report
from looms.report.scores import outer
from looms.report.text import plain


@dataclass(frozen=True)
class SplitRequest:
    """Outer splits, and the scores of their test rows.

    Parameters
    ----------
    splits
        Number of outer splits, default 100; with --time 5.
    test_size
        Share of the rows to test on, 1/k for k-fold; from 1 on a number of rows.
    method
        Random splits (default), repeated k-fold, or .632+ bootstrap. With --time, windows of rows,
        each tested after training on the rows before it.
    """

    splits: Annotated[int | None, Bounds(2)] = None
    test_size: float = 0.1
    method: Literal["shuffle", "kfold", "bootstrap"] | None = None
    metric: Metrics = None
    store: Path | None = None

    def options(self, request: FitRequest, prepared: Prepared) -> dict[str, Any]:
        """Options of `looms.assess`."""
        return {
            "n_splits": self.splits,
            "test_size": int(self.test_size) if self.test_size % 1 == 0 else self.test_size,
            "method": self.method or ("shuffle" if request.time is None else "forward"),
            "scoring": self.metric,
            "store": self.store,
            "n_jobs": request.jobs,
            "random_state": request.seed,
            "gap": request.gap,
            "groups": prepared.groups,
            "sample_weight": prepared.weight,
        }


@dataclass(frozen=True)
class SeveralRequests(FitRequest):
    """Options that several models share, each of one candidate."""

    def __post_init__(self) -> None:
        """Refuse a comparison of fewer than two, and options that are wrong for every table."""
        if len(self.requests()) < 2:
            raise InputError("a comparison needs two --candidates or more, such as linear,rbf")
        if self.time is not None:
            raise InputError(
                "--time is not for looms compare: assess each candidate by looms assess"
            )

    def requests(self) -> dict[str, FitRequest]:
        """Request of each candidate by its name; ``auto`` is the default model."""
        shared = asdict(self)
        return {
            name: FitRequest(**shared | {"candidates": [name]}) for name in self.candidates or ()
        }


@command
def assess(
    *,
    request: FitRequest,
    outer_splits: SplitRequest,
    output: Path | None = None,
    report: Path | None = None,
    json: bool = False,
    force: bool = False,
) -> None:
    """Assess the whole selection on outer splits, whose test rows it never sees.

    Parameters
    ----------
    output
        CSV file with a row per split.
    report
        HTML page on the model of all rows, and how good it is.

    Examples
    --------
    looms assess clinic.csv --target relapse --splits 20
    looms assess clinic.csv -t relapse --method kfold --splits 10 --store runs --jobs -1
    looms assess days.csv -t sales --time day --gap 7
    """
    check_report(report, output, force, request.file)
    if request.time is not None and (how := outer_splits.method) is not None:
        raise InputError(f"--time tests rows after the training rows, which --method {how} mixes")
    check_can_write_csv(output, force, request.file, holds="split,n_train,n_test,")
    prepared = request.prepare()
    tell_columns(prepared.preprocessor, prepared)
    model, y = request.model_for(prepared, again=True), prepared.target.y
    options = outer_splits.options(request, prepared)
    try:
        with refused(), Meter("Splits") as meter:
            result = looms.assess(model, prepared.X, y, progress=meter.split, **options)
    except AssessmentInterrupted as interrupt:
        if interrupt.result is not None:
            show_result(interrupt.result, request, json)
        raise
    try:  # files before anything is printed, to a pipe that may close
        if output is not None:
            write_or_print(output, csv_text(result.table), "a row for each split is in")
        if report is not None:
            fitted = train(model, prepared, request, again=True)
            write_report(report, facts_of(fitted, prepared, result))
    finally:
        show_result(result, request, json)


@command
def compare(
    *,
    request: SeveralRequests,
    outer_splits: SplitRequest,
    output: Path | None = None,
    json: bool = False,
    force: bool = False,
) -> None:
    """Compare candidates on the same outer splits, with their differences.

    Each candidate is a model of its own, with the other options; auto is the default model, of
    several kernels. Differences have corrected
    standard errors, and intervals and p-values for each pair by itself.

    Parameters
    ----------
    output
        CSV file with a row per candidate, pair and score.

    Examples
    --------
    looms compare clinic.csv --target relapse --candidates linear,rbf
    looms compare clinic.csv -t relapse -c auto,rbf --splits 20 --groups patient
    looms compare homes.csv -t price -c rbf,ard --metric neg_mean_absolute_error
    """
    check_can_write_csv(output, force, request.file, holds="first,second,score,")
    prepared = request.prepare()
    tell_columns(prepared.preprocessor, prepared)
    models = {
        name: candidate.model_for(prepared, again=True)
        for name, candidate in request.requests().items()
    }
    y, options = prepared.target.y, outer_splits.options(request, prepared)
    with refused(), Meter("Splits") as meter:
        result = looms.compare(models, prepared.X, y, progress=meter.split, **options)
    named = {name: replace(found, estimator=name) for name, found in result.results.items()}
    result = replace(result, results=named)
    table = result.differences()
    if output is not None:
        write_or_print(output, csv_text(table.reset_index(), index=False), "the differences are in")
    if json:
        assessed = {name: outer(found) for name, found in result.results.items()}
        rows = table.reset_index().to_dict("records")
        show_json(plain({"candidates": assessed, "differences": rows}))
    else:
        write_stdout(f"{result.summary()}\n")


def show_result(result: Assessment, request: FitRequest, json: bool) -> None:
    """Scores of an assessment on standard output, the model by the names of its candidates."""
    result = replace(result, estimator=f"candidates {', '.join(request.kernels)}")
    if n_failed := len(result.failures):
        n, first = len(result.splits), next(iter(result.failures.values()))
        warning(f"{n_failed} of {n} splits failed: the scores are without them; the first: {first}")
    if json:
        show_json(plain(outer(result)))
    else:
        write_stdout(f"{result.summary()}\n")
