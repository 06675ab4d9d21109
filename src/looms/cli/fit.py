"""looms fit and demo: a model of a table, how good it is, and its file."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from sklearn import __version__ as sklearn_version
from sklearn.exceptions import ConvergenceWarning

from looms import (
    BoundWarning,
    DuplicatesWarning,
    OneClassWarning,
    ScalesWarning,
    __version__,
    machine_of,
)
from looms._memory import CERTIFICATE, check_memory
from looms._optional import require
from looms.cli._errors import InputError
from looms.cli._figures import (
    choice_of,
    facts_of,
    held_out_figures,
    show_choice,
    show_figures,
    show_tried,
)
from looms.cli._model import before_of, last_of
from looms.cli._options import Bounds, Columns, Source, command
from looms.cli._output import (
    as_messages,
    check_can_write,
    console,
    note,
    refused,
    show_cautions,
    show_json,
    warning,
    writing,
)
from looms.cli._predictions import Predictions
from looms.cli._prepare import (
    Prepared,
    memory_of,
    no_target,
    prepare_file,
    prepare_large,
    read,
    tell_columns,
)
from looms.cli._progress import USUAL_EVALUATIONS, Meter
from looms.cli._request import ModelRequest, takes_matrix
from looms.cli._target import target_of
from looms.cli.predict import fitting
from looms.datasets._table import Table, table_name
from looms.estimators import Certificate
from looms.estimators._metrics import as_scorers
from looms.estimators._scored import scores_of
from looms.estimators._tabular import Tabular
from looms.model_files import save_model
from looms.model_files._files import SavedModel
from looms.report._cautions import cautions_of_fit
from looms.report.facts import Facts
from looms.report.page import write_page
from looms.report.text import plain

#: Beginning of a page of `looms.report`.
PAGE = r'<!doctype html>[\s\S]*<meta name="generator" content="looms '
#: Number of rows up to which the refits take about a second; on m landmarks n m² counts, not n³.
_CHEAP = 2000


@command
def fit(
    *,
    columns: Columns,
    request: ModelRequest,
    no_evaluate: bool = False,
    test: Path | None = None,
    metric: list[str] | None = None,
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
        Repeat nothing: the scores are those of the fit, by which the model was tuned.
    test
        File with the same columns, none of whose rows are in FILE, to score as well.
    output
        Model file, by default the name of FILE + .looms.skops.
    report
        HTML page on the choice, how good it is, and what to distrust.
    memory
        Most memory to use for rows in blocks, such as 2GB; by default all there is.
    certify
        Compare three held-out outputs with refits; done anyway if that is cheap.

    Examples
    --------
    looms fit clinic.csv --target relapse
    looms fit clinic.csv -t relapse --groups patient --threshold recall=0.9 --report page.html
    looms fit homes.parquet -t price --candidates rbf --candidates linear --test new.parquet
    """
    file = source.file
    output = output or Path(f"{table_name(file)}.looms.skops")
    check_report(report, request, output, "the model", json, certify)
    check_metrics(metric)
    whole = _is_whole(request, columns, memory)

    def check_paths() -> None:
        check_can_write(output, force, file, holds="model")
        if output.suffix not in (".skops", ""):
            raise InputError(
                f"{output}: the name of a model file ends in .skops, not in {output.suffix}"
            )
        check_can_write(report, force, file, option="--report", holds=PAGE)

    with ExitStack() as stack:
        if whole:  # a wrong --target is told first
            prepared = prepare_file(source, columns, request)
            check_paths()
            if certify and takes_matrix(request, len(prepared.rows)):
                with refused(f"{file}: ", (MemoryError,)):
                    check_memory(len(prepared.rows), CERTIFICATE)
        else:  # reading may take long
            check_paths()
            most = memory_of(memory)
            prepared = prepare_large(source, columns, request, most, output.parent, stack)
        new = None
        if test is not None:
            drop = columns.drop_missing_targets
            new = read(replace(source, file=test), columns.target, drop_missing=drop)
        names = columns.target, file.name
        saved = train(prepared, request, not no_evaluate, False, *names)
        tested = None if new is None or test is None else tested_on(saved, new, test)
        try:
            certificate = certified(saved.model, prepared.blocks, certify)
        except (KeyboardInterrupt, MemoryError):
            save_model(output, saved.model, saved.metadata)
            note(f"the model is in {output}, without a certificate")
            raise
        if certificate is not None and certificate.holds:  # otherwise it is among the cautions
            note(str(certificate))
        save_model(output, saved.model, saved.metadata)
    facts = facts_of(saved, prepared)
    if report is not None and facts is not None:  # before printing, to a pipe that may close
        write_report(report, facts)
    by_metric = scores_by(saved, metric)
    if json and facts is not None:
        more: dict[str, Any] = {} if test is None else {"test": tested}
        more |= {"metrics": by_metric} if metric else {}
        show_json(facts.summary | plain(more))
    else:
        show_choice(saved, facts)
        if tested is not None and test is not None:
            rows = {f"{test.name}, {tested['n_rows']} rows": tested["figures"]}
            show_figures(rows, len(getattr(last_of(saved.model), "classes_", ())))
        for name, value in by_metric.items():
            console().print(f"{name}: {value:.4g}")
    if facts is not None:
        show_cautions(cautions_of_fit(facts.model, facts.remarks))
    note(choice_of(saved, facts))
    note(f"the model is in {output}")


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
        "--machine": request.machine != "kernel",
        "--n-landmarks none": request.n_landmarks == "none",
    }
    given = [name for name, value in needs.items() if value]
    if memory is not None and given:
        raise InputError(
            f"--memory is for rows in blocks, but {given[0]} reads the whole table; leave one out"
        )
    return not blocks or bool(given)


@command
def demo(
    seed: Annotated[int, Bounds(0)] = 0,
) -> None:
    """Fit half of a real data set, and compare held-out scores with the other half.

    Parameters
    ----------
    seed
        Seed of the split, the folds and the subsamples.

    Examples
    --------
    looms demo
    looms demo --seed 1
    looms demo --quiet
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    out = console()
    out.print(
        "Breast cancer Wisconsin (diagnostic), 569 tumors, 30 features, from scikit-learn.",
        "One half is for training; the other half is not seen until the end.",
        sep="\n",
    )
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    y = y.map({0: "malignant", 1: "benign"})
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    request = ModelRequest("classification", candidates=["linear", "rbf"], seed=seed)
    prepared = Prepared(X_train, target_of(y_train, request.task), np.arange(len(y_train)))
    fitted = train(prepared, request)
    facts = Facts(fitted.model)
    show_tried(facts)
    with as_messages():
        predictions = Predictions(fitted, X_test)
    (kind, figures), _ = held_out_figures(facts).items()
    show_figures(
        {
            f"{kind}, {len(y_train)} rows": figures,
            f"the other half, {len(y_test)} rows": predictions.figures(y_test),
        }
    )
    out.print(
        "Each score is of rows that neither the model nor its choice has seen. Your own table:",
        "looms fit FILE --target COLUMN",
        sep="\n",
    )


def train(
    prepared: Prepared,
    request: ModelRequest,
    evaluate: bool = True,
    again: bool = False,
    target: str | None = None,
    file: str = "",
) -> SavedModel:
    """The model that was asked for, fitted to a table; progress goes to stderr.

    ``again`` is for a table whose columns were understood before, and for the model that splits
    fitted; ``target`` and ``file`` are names.
    """
    model = request.model_for(prepared, again)
    machine = last_of(model)
    rows = prepared.X if prepared.blocks is None else prepared.blocks
    start = time.perf_counter()
    with ExitStack() as stack:
        stack.enter_context(as_messages())
        stack.enter_context(refused(faults=(MemoryError,)))
        # The cautions of the fit say these; and columns are scaled.
        in_notes = [DuplicatesWarning, OneClassWarning, ScalesWarning]
        if isinstance(model, Tabular):
            in_notes += [BoundWarning, ConvergenceWarning]
        for category in in_notes:
            warnings.simplefilter("ignore", category)
        if hasattr(machine, "set_callbacks"):  # of scikit-learn since 1.9
            usual = None if request.machine == "svm" else USUAL_EVALUATIONS
            meter = Meter("", rows.shape[0], usual, 3 if prepared.blocks is None else 1)
            machine.set_callbacks(stack.enter_context(meter))
            stack.callback(_without_callbacks, model)
        _fit(model, prepared)
        if evaluate:
            try:
                machine.evaluate()
            except ValueError as error:
                warning(f"the scores are those of the fit, because it cannot be repeated: {error}")
        if hasattr(machine, "held_out_"):
            scores_of(machine)  # which are kept
    if prepared.blocks is not None:
        model.set_params(preprocess="auto").preprocessor_ = prepared.preprocessor
    if not again:
        tell_columns(before_of(model), prepared.target)
    types = None
    if not prepared.sparse:
        types = {str(n): str(t) for n, t in prepared.X.dtypes.items()}
    metadata = {
        "task": str(prepared.target.task),
        "columns": types,
        "n_rows": rows.shape[0],
        "n_features": prepared.X.shape[1],
        "options": asdict(request),
        "seconds": time.perf_counter() - start,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "looms_version": __version__,
        "sklearn_version": sklearn_version,
        "target": target,
        "file": file,
    }
    return SavedModel(model, metadata)


def _fit(model: Any, prepared: Prepared) -> None:
    """Fit a model to rows, to rows in blocks, or a machine of matrices to prepared columns."""
    y, options = prepared.target.y, prepared.fit_options
    if isinstance(model, Tabular) and prepared.blocks is None:
        model.fit(prepared.X, y, **options)
    elif isinstance(model, Tabular):
        model.set_params(preprocess=None).fit(prepared.blocks, y, **options)
    else:
        model[-1].fit(model[0].fit_transform(prepared.X), y, **options)


def _without_callbacks(model: Any) -> None:
    """Take the callbacks from a model that may be fitted."""
    for one in (last_of(model), getattr(last_of(model), "machine_", None)):
        if one is not None:
            one.set_callbacks()


def check_metrics(metrics: list[str] | None) -> None:
    """Refuse names of scorers that there are not."""
    with refused("--metric: "):
        as_scorers(metrics or [])


def scores_by(saved: SavedModel, metrics: list[str] | None) -> dict[str, float]:
    """Scores of the held-out predictions by scorers of scikit-learn."""
    machine = last_of(saved.model)
    if not metrics:
        return {}
    nested = machine._nested_scores is not None
    with as_messages():
        return dict(machine.evaluate(nested=nested, metrics=metrics))


def tested_on(saved: SavedModel, table: Table, file: Path) -> dict[str, Any]:
    """Number of rows and scores of a table that the model was not fitted to."""
    if table.y is None:
        raise no_target(file, table.X)
    with as_messages():
        predictions = Predictions(saved, fitting(saved, table, file).X)
    for remark in predictions.trained_on():
        note(f"{file.name}: {remark}")
    return {"n_rows": table.X.shape[0], "figures": predictions.figures(table.y)}


def certified(model: Any, blocks: Any, always: bool) -> Certificate | None:
    """Certificate of a model, if asked for or cheap compared with the fit; else None."""
    if not hasattr(last_of(model), "certify"):
        return None
    machine = machine_of(model)
    basis, n = getattr(machine, "landmarks_", None), len(machine.fit_weight_)
    m = n if basis is None else basis.shape[0]
    if not always and n * m**2 > _CHEAP**3:
        return None
    try:
        certificate: Certificate = machine.certify(X=blocks)
        return certificate
    except MemoryError:
        if always:
            raise
        return None


def check_report(
    report: Path | None,
    request: ModelRequest,
    other: Path | None,
    holds: str,
    json: bool = False,
    certify: bool = False,
) -> None:
    """Refuse, before any work, what could not be made afterwards.

    ``other`` is the other file that the command writes, and ``holds`` what is in it.
    """
    for option, wanted in {"--report": report, "--json": json, "--certify": certify}.items():
        if wanted and request.machine == "nonconformity":
            raise InputError(
                f"{option} is not for --machine nonconformity: rows are held out of its choice, "
                "not of its machines"
            )
    if report is None:
        return
    if other is not None and report.absolute() == other.absolute():
        raise InputError(f"{report} is to hold {holds}; name another --report")
    for package in ("jinja2", "matplotlib"):
        require(package, "--report", "report")


def write_report(path: Path, facts: Facts) -> None:
    """Write the page of a fitted model."""
    with writing(path, "--report"):
        write_page(facts, path)
    note(f"the report is in {path}")
