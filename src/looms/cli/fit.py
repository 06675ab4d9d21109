"""looms fit and demo: a model of a table, how good it is, and its file."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from scipy.sparse import issparse
from sklearn import __version__ as sklearn_version
from sklearn.exceptions import ConvergenceWarning

import looms
from looms._memory import CERTIFICATE, check_memory
from looms._optional import require
from looms._scores import score_with_error
from looms._words import count
from looms.cli._errors import InputError
from looms.cli._model import SavedModel, choice_of, facts_of, plain_scores, scored, show_choice
from looms.cli._options import Bounds, Metrics, command
from looms.cli._output import (
    WIDE,
    check_can_write,
    console,
    note,
    print_blocks,
    refused,
    show_cautions,
    show_json,
    warning,
    writing,
)
from looms.cli._progress import Meter
from looms.cli._request import FitRequest, Prepared
from looms.datasets._table import table_name
from looms.estimators._metrics import judged, named_scorer, scorers_of
from looms.estimators._model import scores_of
from looms.fitted._certificate import Certificate
from looms.model_files import save_model
from looms.report._cautions import cautions_of_fit
from looms.report.facts import Facts
from looms.report.overview import table_of_scores, tried
from looms.report.page import write_page
from looms.report.text import plain
from looms.tables._target import target_of

#: Beginning of a page of `looms.report`.
PAGE = r'<!doctype html>[\s\S]*<meta name="generator" content="looms '
#: Warnings of a fit that its cautions say, and of scales, since columns are scaled.
IN_CAUTIONS = (
    *(looms.ColumnsWarning, looms.DuplicatesWarning, looms.OneClassWarning),
    *(looms.ScalesWarning, looms.BoundWarning, ConvergenceWarning),
)
#: Number of rows up to which refits of order n take about a second; `Fitted.cost_of_refit`.
_CHEAP = 2000


@command
def fit(
    *,
    request: FitRequest,
    no_evaluate: bool = False,
    test: Path | None = None,
    metric: Metrics = None,
    output: Path | None = None,
    report: Path | None = None,
    memory: str | None = None,
    json: bool = False,
    certify: bool = False,
    force: bool = False,
) -> None:
    """Fit a model to a table, tuned by exact held-out predictions, and save it.

    Then everything, the preparation of the columns too, is repeated without the rows of each of
    some folds, to tell how good the model is.

    With --n-landmarks or --memory the table may be larger than memory, except with --groups,
    --time, --duplicates, --sample-weight, --target-transform or --drop-missing-targets. It is read
    in blocks, and its columns are prepared according to a sample of 20,000 rows.

    Parameters
    ----------
    no_evaluate
        Repeat nothing: the scores are those that the model was tuned by, and optimistic.
    test
        File with the same columns, none of whose rows are in FILE, to score as well.
    output
        Model file, by default the name of FILE + .looms.skops.
    report
        HTML page on the model: its scores, features and rows, and cautions.
    memory
        Most memory to use for rows in blocks, such as 2GB; by default all there is.
    certify
        Compare three held-out outputs with refits; done anyway if that is cheap.

    Examples
    --------
    looms fit clinic.csv --target relapse
    looms fit clinic.csv -t relapse --groups patient --threshold recall=0.9 --report page.html
    looms fit homes.parquet -t price --candidates rbf,linear --test new.parquet
    """
    file = request.file
    output = output or Path(f"{table_name(file)}.looms.skops")
    check_report(report, output, force, file)
    with refused("--metric: "):
        for name in metric or []:
            named_scorer(name)
    whole = is_whole(request, memory)
    with ExitStack() as stack:
        prepared = request.prepare() if whole else None
        check_can_write(output, force, file, holds="model")
        if output.suffix not in (".skops", ""):
            raise InputError(f"{output}: the name of a model file ends in .skops")
        if prepared is None:  # reading may take long
            prepared = request.prepare_in_blocks(memory, output.parent, stack)
        elif certify and request.takes_matrix(len(prepared.rows)):
            with refused(f"{file}: ", (MemoryError,)):
                check_memory(len(prepared.rows), CERTIFICATE)
        model = request.model_for(prepared)
        with refused("--metric: "):
            scorers = scorers_of(metric, model, prepared.target.y) if metric else {}
        table = None
        if test is not None:
            source = request.of(test)
            table = source.read(request.target, drop_missing=request.drop_missing_targets)
            if table.y is None:
                raise source.no_target(table.X)
        saved = train(model, prepared, request, not no_evaluate)
        save_model(output, saved.model, saved.metadata)  # before what may fail
        stack.callback(note, f"the model is in {output}")
        more: dict[str, Any] = {}
        if table is not None and test is not None:
            (*_, of_test, baselines), _ = scored(saved, source, table, f"{test.name}: ")
            n_rows = table.X.shape[0]
            more["test"] = {"n_rows": n_rows, "scores": plain_scores(of_test, baselines)}
        certificate = certified(saved, certify)
        if certificate is not None:
            save_model(output, saved.model, saved.metadata)
            if certificate.holds:  # otherwise it is among the cautions
                note(str(certificate))
        facts = facts_of(saved, prepared)
        if report is not None:  # before printing, to a pipe that may close
            write_report(report, facts)
        if metric:
            scores = judged(scores_of(saved.last), scorers, saved.last.fitted_.outcome)
            more["metrics"] = plain_scores(scores.with_errors, scores.baselines)
        if json:
            show_json(facts.summary | plain(more))
        else:
            show_choice(saved, facts)
            if test is not None:
                rows = f"{test.name}, {count(n_rows, 'row')}"
                print_blocks(table_of_scores({rows: of_test}, baselines, len(saved.classes)))
            for name, shown in more.get("metrics", {}).items():
                text = score_with_error(name, shown["value"], shown["standard_error"])
                console().print(f"{name}: {text}")
        show_cautions(cautions_of_fit(facts.model, facts.remarks))
        note(choice_of(saved, facts))


def is_whole(request: FitRequest, memory: str | None) -> bool:
    """True if the whole table is read at once, False if in blocks."""
    needs = {
        "--groups": request.groups,
        "--time": request.time,
        "--duplicates": request.duplicates == "group",
        "--sample-weight": request.sample_weight,
        "--target-transform": request.target_transform,
        "--drop-missing-targets": request.drop_missing_targets,
        "--n-landmarks none": request.n_landmarks == "none",
    }
    given = [name for name, value in needs.items() if value]
    if memory is not None and given:
        raise InputError(f"--memory is for rows in blocks, but {given[0]} reads the whole table")
    return bool(given) or (memory is None and request.n_landmarks is None)


@command
def demo(report: Path | None = None, seed: Annotated[int, Bounds(0)] = 0) -> None:
    """Fit half of a real data set, and compare held-out scores with the other half.

    Parameters
    ----------
    report
        HTML page on the model, as of looms fit; an older one is replaced.
    seed
        Seed of the split, the folds and the subsamples.

    Examples
    --------
    looms demo
    looms demo --report demo.html
    looms demo --seed 1
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    check_report(report, None, force=True)
    out = console()
    out.print("Breast cancer Wisconsin (diagnostic), 569 tumors, 30 features, from scikit-learn.")
    out.print("One half is for training; the other half is not seen until the end.")
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    y = y.map({0: "malignant", 1: "benign"})
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    name = Path("breast cancer data")
    request = FitRequest(file=name, target="tumor", candidates=["linear", "rbf"], seed=seed)
    prepared = Prepared(X_train, target_of(y_train, request.task), np.arange(1, len(y_train) + 1))
    fitted = train(request.model_for(prepared), prepared, request)
    facts = replace(facts_of(fitted, prepared), command="looms demo")
    if report is not None:
        write_report(report, facts)
    print_blocks(*tried(facts.model, console().width >= WIDE))
    of_new = fitted.model.scores(X_test, y_test)
    scores = facts.model.scores
    rows = f"{scores.kind}, {len(y_train)} rows", f"the other half, {len(y_test)} rows"
    new = {name: (value, error) for name, value, error, _ in of_new.itertuples()}
    sets = {rows[0]: scores.with_errors, rows[1]: new}
    print_blocks(table_of_scores(sets, of_new["baseline"]))
    out.print("Each score is of rows that neither the model nor its tuning has seen.")
    out.print("Your own table: looms fit FILE --target COLUMN")


def train(
    model: Any,
    prepared: Prepared,
    request: FitRequest,
    evaluate: bool = True,
    again: bool = False,
) -> SavedModel:
    """A model as `ModelRequest.model_for` gives it, fitted to a table; progress goes to stderr.

    ``again`` is for a table whose columns were understood before, and for the model that splits
    fitted. The other options are kept with the model.
    """
    start, X, blocks = time.perf_counter(), prepared.X, prepared.blocks
    rows: Any = X if blocks is None else blocks
    if blocks is not None:
        model.set_params(preprocess=None)
    meter = Meter("", rows.shape[0], 3 if blocks is None else 1, None if again else prepared)
    with warnings.catch_warnings(), refused(f"{request.file}: ", (ValueError, MemoryError)), meter:
        for category in IN_CAUTIONS:
            warnings.simplefilter("ignore", category)
        if hasattr(model, "set_callbacks"):  # of scikit-learn since 1.9
            model.set_callbacks(meter)
        if blocks is not None:
            meter.on_columns(model, prepared.preprocessor)
        series, index = require("pandas", "looms fit").Series, getattr(rows, "index", None)
        y = series(prepared.target.y, index, name=request.target)
        model.fit(rows, y, prepared.weight, prepared.groups)
        if evaluate:
            try:
                model.evaluate()
            except ValueError as error:
                why = error.__cause__ or error  # without the advice to do what is done
                warning(f"the scores are those of the fit, because it cannot be repeated: {why}")
        model._scored()
    vars(model).pop("_skl_callbacks", None)
    if blocks is not None:
        model.set_params(preprocess="auto")._set_columns(prepared.preprocessor)
    kinds, numbers = model.preprocessor_.kinds_, prepared.rows
    options = asdict(request) | {"no_evaluate": not evaluate}
    metadata = {
        "task": str(prepared.target.task),
        "columns": None if issparse(X) else {str(n): kinds.get(str(n), "not used") for n in X},
        "n_rows": rows.shape[0],
        "rows": None if np.all(np.diff(numbers) == 1) and numbers[0] == 1 else numbers.tolist(),
        "target": options.pop("target"),
        "file": options.pop("file").name,
        "options": options,
        "seconds": time.perf_counter() - start,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "sklearn_version": sklearn_version,
    }
    saved = SavedModel(model, metadata)
    meter.on_columns(model, saved.table)  # before scikit-learn 1.9
    return saved


def certified(saved: SavedModel, always: bool) -> Certificate | None:
    """Certificate of a model, if asked for or cheap compared with the fit; else None."""
    model, certificate = saved.last, None
    closed = any(member.closed for member in model.members_)
    if always and not closed:
        warning("no certificate: no model of the stack has a closed form")
    elif closed and (always or model.fitted_.cost_of_refit <= _CHEAP**3):
        with suppress(*[] if always else [MemoryError]):
            certificate = model.certify()
    return certificate


def check_report(report: Path | None, output: Path | None, force: bool, *inputs: Path) -> None:
    """Refuse, before any work, a report that could not be made afterwards."""
    if report is None:
        return
    if output is not None and report.absolute() == output.absolute():
        raise InputError(f"--output and --report are both {report}; give them different names")
    for package in ("jinja2", "matplotlib"):
        require(package, "--report", "report")
    check_can_write(report, force, *inputs, option="--report", holds=PAGE)


def write_report(path: Path, facts: Facts) -> None:
    """Write the page of a fitted model."""
    with writing(path, "--report"):
        write_page(facts, path)
    note(f"the report is in {path}")
