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
from sklearn import __version__ as sklearn_version
from sklearn.exceptions import ConvergenceWarning

import looms
from looms._memory import CERTIFICATE, check_memory
from looms._optional import require
from looms._scores import score_with_error
from looms._words import count
from looms.cli._errors import InputError
from looms.cli._model import SavedModel, scored
from looms.cli._options import Bounds, Columns, Metrics, Source, command
from looms.cli._output import (
    WIDE,
    catch_messages,
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
from looms.cli._prepare import (
    Prepared,
    memory_of,
    no_target,
    prepare_file,
    prepare_large,
    read,
    tell_columns,
)
from looms.cli._progress import Meter
from looms.cli._request import ModelRequest, takes_matrix
from looms.cli._scores import (
    choice_of,
    facts_of,
    plain_scores,
    show_choice,
)
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
from looms.tables import TablePreprocessor
from looms.tables._target import target_of

#: Beginning of a page of `looms.report`.
PAGE = r'<!doctype html>[\s\S]*<meta name="generator" content="looms '
#: Number of rows up to which refits of order n take about a second; `Fitted.cost_of_refit`.
_CHEAP = 2000


@command
def fit(
    *,
    columns: Columns,
    request: ModelRequest,
    no_evaluate: bool = False,
    test: Path | None = None,
    metric: Metrics = None,
    output: Path | None = None,
    report: Path | None = None,
    source: Source,
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
    file = source.file
    output = output or Path(f"{table_name(file)}.looms.skops")
    check_report(report, output)
    with refused("--metric: "):
        for name in metric or []:
            named_scorer(name)
    with ExitStack() as stack:
        whole = _is_whole(request, columns, memory)
        prepared = prepare_file(source, columns, request) if whole else None
        check_can_write(output, force, file, holds="model")
        if output.suffix not in (".skops", ""):
            raise InputError(f"{output}: the name of a model file ends in .skops")
        check_can_write(report, force, file, option="--report", holds=PAGE)
        if prepared is None:  # reading may take long
            most = memory_of(memory)
            prepared = prepare_large(source, columns, request, most, output.parent, stack)
        elif certify and takes_matrix(request, len(prepared.rows)):
            with refused(f"{file}: ", (MemoryError,)):
                check_memory(len(prepared.rows), CERTIFICATE)
        model = request.model_for(prepared)
        with refused("--metric: "):
            scorers = scorers_of(metric, model, prepared.target.y)
        test_table = None
        if test is not None:
            drop = columns.drop_missing_targets
            test_table = read(source.of(test), columns.target, drop_missing=drop)
            if test_table.y is None:
                raise no_target(test, test_table.X)
        saved = train(model, prepared, request, not no_evaluate, False, columns, source)
        save_model(output, saved.model, saved.metadata)  # before what may fail
        stack.callback(note, f"the model is in {output}")
        more: dict[str, Any] = {}
        if test_table is not None and test is not None:
            *_, of_test, baselines = scored(saved, test_table, test, f"{test.name}: ")
            n_rows = test_table.X.shape[0]
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
            scores = scores_of(saved.last)
            of_metrics = judged(scores, scorers, saved.last.fitted_.outcome)
            more["metrics"] = plain_scores(of_metrics.with_errors, of_metrics.baselines)
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


def _is_whole(request: ModelRequest, columns: Columns, memory: str | None) -> bool:
    """True if the whole table is read at once, False if in blocks."""
    blocks = request.n_landmarks not in (None, "none") or memory is not None
    needs = {
        "--groups": request.groups,
        "--time": request.time,
        "--duplicates": request.duplicates == "group",
        "--sample-weight": request.sample_weight,
        "--target-transform": request.target_transform,
        "--drop-missing-targets": columns.drop_missing_targets,
        "--n-landmarks none": request.n_landmarks == "none",
    }
    given = [name for name, value in needs.items() if value]
    if memory is not None and given:
        raise InputError(f"--memory is for rows in blocks, but {given[0]} reads the whole table")
    return not blocks or bool(given)


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

    check_report(report, None)
    check_can_write(report, True, option="--report", holds=PAGE)
    out = console()
    out.print("Breast cancer Wisconsin (diagnostic), 569 tumors, 30 features, from scikit-learn.")
    out.print("One half is for training; the other half is not seen until the end.")
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    y = y.map({0: "malignant", 1: "benign"})
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    request = ModelRequest("classification", candidates=["linear", "rbf"], seed=seed)
    prepared = Prepared(X_train, target_of(y_train, request.task), np.arange(1, len(y_train) + 1))
    model = request.model_for(prepared)
    source = Source(file=Path("breast cancer data"))
    fitted = train(model, prepared, request, True, False, Columns("tumor"), source)
    facts = replace(facts_of(fitted, prepared), command="looms demo")
    if report is not None:
        write_report(report, facts)
    print_blocks(*tried(facts.model, console().width >= WIDE))
    with catch_messages():
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
    request: ModelRequest,
    evaluate: bool,
    again: bool,
    columns: Columns,
    source: Source,
) -> SavedModel:
    """A model as `ModelRequest.model_for` gives it, fitted to a table; progress goes to stderr.

    ``again`` is for a table whose columns were understood before, and for the model that splits
    fitted. The other options are kept with the model.
    """
    X, start = prepared.X, time.perf_counter()
    # The cautions of the fit say these; and columns are scaled.
    in_cautions = [looms.ColumnsWarning, looms.DuplicatesWarning, looms.OneClassWarning]
    in_cautions += [looms.ScalesWarning, looms.BoundWarning, ConvergenceWarning]
    rows = X if prepared.blocks is None else prepared.blocks
    if prepared.blocks is not None:
        model.set_params(preprocess=None)
    meter = _FitMeter(prepared, rows.shape[0], again)
    with catch_messages(), refused(faults=(MemoryError,)), meter:
        for category in in_cautions:
            warnings.simplefilter("ignore", category)
        if hasattr(model, "set_callbacks"):  # of scikit-learn since 1.9
            model.set_callbacks(meter)
        if prepared.blocks is not None:
            meter.on_columns(model, prepared.preprocessor)
        y = require("pandas", "looms fit").Series(prepared.target.y, name=columns.target)
        model.fit(rows, y, **prepared.fit_options)
        if evaluate:
            try:
                model.evaluate()
            except ValueError as error:
                why = error.__cause__ or error  # without the advice to do what is done
                warning(f"the scores are those of the fit, because it cannot be repeated: {why}")
        model._scored()
    vars(model).pop("_skl_callbacks", None)
    if prepared.blocks is not None:
        model.set_params(preprocess="auto")._set_columns(prepared.preprocessor)
    numbers = prepared.rows
    options = asdict(request) | asdict(columns) | asdict(source) | {"no_evaluate": not evaluate}
    target, file = options.pop("target"), options.pop("file").name
    kinds = model.preprocessor_.kinds_
    metadata = {
        "task": str(prepared.target.task),
        "columns": None if prepared.sparse else {str(n): kinds.get(str(n), "not used") for n in X},
        "n_rows": rows.shape[0],
        "rows": None if np.all(np.diff(numbers) == 1) and numbers[0] == 1 else numbers.tolist(),
        "n_features": X.shape[1],
        "options": options,
        "seconds": time.perf_counter() - start,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "looms_version": looms.__version__,
        "sklearn_version": sklearn_version,
        "target": target,
        "file": file,
    }
    saved = SavedModel(model, metadata)
    meter.on_columns(model, saved.table)  # before scikit-learn 1.9
    return saved


class _FitMeter(Meter):
    """Progress of a fit, with the notes on its columns, once, before the search."""

    def __init__(self, prepared: Prepared, n_rows: int, again: bool) -> None:
        super().__init__("", n_rows, 3 if prepared.blocks is None else 1)
        self._target = None if again else prepared.target

    def on_columns(self, estimator: object, preprocessor: TablePreprocessor) -> None:
        """Notes on the columns, as this preprocessor was fitted to them."""
        if self._target is not None:
            tell_columns(preprocessor, self._target)
            self._target = None


def certified(saved: SavedModel, always: bool) -> Certificate | None:
    """Certificate of a model, if asked for or cheap compared with the fit; else None."""
    model = saved.last
    if not any(member.closed for member in model.members_):
        if always:
            warning("no certificate: no model of the stack has a closed form")
        return None
    if not always and model.fitted_.cost_of_refit > _CHEAP**3:
        return None
    certificate: Certificate | None = None
    with suppress(*[] if always else [MemoryError]):
        certificate = model.certify()
    return certificate


def check_report(report: Path | None, output: Path | None) -> None:
    """Refuse, before any work, a report that could not be made afterwards."""
    if report is None:
        return
    if output is not None and report.absolute() == output.absolute():
        raise InputError(f"--output and --report are both {report}; give them different names")
    for package in ("jinja2", "matplotlib"):
        require(package, "--report", "report")


def write_report(path: Path, facts: Facts) -> None:
    """Write the page of a fitted model."""
    with writing(path, "--report"):
        write_page(facts, path)
    note(f"the report is in {path}")
