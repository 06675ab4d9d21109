"""looms fit and demo: tune a kernel machine on a table."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from scipy.sparse import issparse
from sklearn import __version__ as sklearn_version
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from looms import (
    BoundWarning,
    CopiesWarning,
    OneClassWarning,
    ScalesWarning,
    __version__,
    machine_of,
)
from looms._memory import CERTIFICATE
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
from looms.cli._options import Bounds, Columns, Source, command
from looms.cli._output import (
    as_messages,
    check_can_write,
    console,
    note,
    show_cautions,
    show_json,
    writing,
)
from looms.cli._predictions import Predictions
from looms.cli._prepare import (
    Prepared,
    check_kernel_matrix,
    memory_of,
    prepare,
    prepare_file,
    prepare_large,
)
from looms.cli._progress import USUAL_EVALUATIONS, Meter
from looms.cli._request import MachineRequest, arrays_of, repeats_by_itself, tell_cost
from looms.cli._target import target_of
from looms.datasets._table import table_name
from looms.estimators import Certificate
from looms.estimators._scored import ScoredMachine, scores_of
from looms.model_files import save_model
from looms.model_files._files import SavedModel
from looms.report._cautions import cautions_of_fit
from looms.report.facts import Facts
from looms.report.page import write_page

#: Beginning of a page of `looms.report`.
PAGE = r'<!doctype html>[\s\S]*<meta name="generator" content="looms '
#: Number of rows up to which the refits take about a second; on m landmarks n m² counts, not n³.
_CHEAP = 2000
#: No option sets the values to search.
_IN_PYTHON = {"in param_grid": "as param_grid of looms.SVCCV in Python"}


@command
def fit(
    *,
    columns: Columns,
    request: MachineRequest,
    output: Path | None = None,
    report: Path | None = None,
    source: Source,
    memory: str | None = None,
    json: bool = False,
    certify: bool = False,
    force: bool = False,
) -> None:
    """Fit a kernel machine to a table, chosen by exact leave-one-out, and save it.

    With --rank the table may be larger than memory, except with --groups, --time,
    --target-transform or --drop-missing-targets. It is read in blocks, and its columns are prepared
    according to a sample of 20,000 rows.

    Parameters
    ----------
    output
        Model file, by default the name of FILE + .looms.skops.
    report
        HTML page on the choice, how good it is, and what to distrust.
    memory
        Most memory to use with --rank, such as 2GB; by default all there is.
    certify
        Compare three held-out outputs with refits; done anyway if that is cheap.
    """
    file = source.file
    output = output or Path(f"{table_name(file)}.looms.skops")
    check_report(report, request, output, "the model", json, certify)
    if memory and not request.rank:
        raise InputError("--memory goes with --rank, the number of landmarks")
    together = request.groups or request.time or request.target_transform
    whole = bool(not request.rank or together or columns.drop_missing_targets)
    if memory and whole:
        raise InputError(
            "--memory is for rows in blocks, but --groups, --time, --target-transform and "
            "--drop-missing-targets read the whole table"
        )
    most = memory_of(memory)

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
            n_rows, n_arrays = len(prepared.rows), arrays_of(request, prepared.matrix)
            n_arrays = max(n_arrays, CERTIFICATE * certify * (not request.rank))
            check_kernel_matrix(file, n_rows, n_arrays)
            check_paths()
            tell_cost(request, n_rows, n_arrays)
        else:  # reading may take long
            check_paths()
            beside = output.parent
            prepared = prepare_large(source, columns, request, most, beside, stack)
        saved = train(prepared, request, target=columns.target, file=file.name)
        try:
            certificate = certified(saved.model[-1], prepared.matrix, certify)
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
    if json and facts is not None:
        show_json(facts.summary)
    else:
        show_choice(saved, facts)
    if facts is not None:
        show_cautions(cautions_of_fit(facts.model, facts.remarks))
    note(choice_of(saved, facts))
    note(f"the model is in {output}")


@command
def demo(
    random_state: Annotated[int, Bounds(0)] = 0,
) -> None:
    """Fit half of a real data set, and compare leave-one-out with the other half.

    Parameters
    ----------
    random_state
        Seed of the split and the subsamples.
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
        X, y, test_size=0.5, stratify=y, random_state=random_state
    )
    request = MachineRequest("classification", kernel=["linear", "rbf"], random_state=random_state)
    fitted = train(prepare(X_train, target_of(y_train, request.task)), request)
    facts = Facts(fitted.model)
    show_tried(facts)
    with as_messages():
        predictions = Predictions(fitted, X_test)
    (method, figures), _ = held_out_figures(facts).items()
    show_figures(
        {
            f"{method}, {len(y_train)} rows": figures,
            f"the other half, {len(y_test)} rows": predictions.figures(y_test),
        }
    )
    out.print(
        "Each figure is of rows that neither the machine nor its choice has seen. Your own table:",
        "looms fit FILE --target COL; and looms assess, which also repeats the preparation",
        sep="\n",
    )


def train(prepared: Prepared, request: MachineRequest, **about: Any) -> SavedModel:
    """The model that was asked for, fitted to a table; progress goes to stderr.

    ``about`` is more metadata: the target, and the name of the file.
    """
    machine = request.estimator_for(prepared)
    start = time.perf_counter()
    with ExitStack() as stack:
        stack.enter_context(as_messages(_IN_PYTHON))
        # The cautions of the fit say these; and columns are scaled.
        in_notes = [CopiesWarning, OneClassWarning, ScalesWarning]
        if request.machine == "lssvm":
            in_notes += [BoundWarning, ConvergenceWarning]
        for category in in_notes:
            warnings.simplefilter("ignore", category)
        if hasattr(machine, "set_callbacks"):  # of scikit-learn since 1.9
            usual = None if request.machine == "svm" else USUAL_EVALUATIONS
            power = 3 if arrays_of(request, prepared.matrix) else 1
            meter = Meter("", prepared.matrix.shape[0], usual, power)
            machine.set_callbacks(stack.enter_context(meter))
            stack.callback(machine.set_callbacks)
        together = {} if prepared.groups is None else {"groups": prepared.groups}
        machine.fit(prepared.matrix, prepared.target.y, **together)
        if isinstance(machine, ScoredMachine):
            evaluate(machine, request)
    types = None
    if not issparse(prepared.X):
        types = {str(n): str(t) for n, t in prepared.X.dtypes.items()}
    metadata = {
        "task": str(prepared.target.task),
        "columns": types,
        "n_rows": prepared.matrix.shape[0],
        "n_features": prepared.X.shape[1],
        "options": asdict(request),
        "seconds": time.perf_counter() - start,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "looms_version": __version__,
        "sklearn_version": sklearn_version,
        **about,
    }
    return SavedModel(Pipeline([("table", prepared.preprocessor), ("machine", machine)]), metadata)


def evaluate(machine: ScoredMachine, request: MachineRequest) -> None:
    """Scores of a fitted machine, which its file holds: nested if asked for, or of few rows."""
    if request.nested == "folds":
        machine.evaluate()
    elif request.nested is None and repeats_by_itself(machine):
        with suppress(ValueError):  # too few rows for outer folds
            machine.evaluate()
    scores_of(machine)


def certified(machine: Any, X: Any, always: bool) -> Certificate | None:
    """Certificate of a machine, if asked for or cheap compared with the fit; else None."""
    if not hasattr(machine, "certify"):
        return None
    machine = machine_of(machine)
    basis = getattr(machine, "landmarks_", None)
    m = (X if basis is None else basis).shape[0]
    if not always and X.shape[0] * m**2 > _CHEAP**3:
        return None
    try:
        certificate: Certificate = machine.certify(X=X if machine.X_fit_ is None else None)
        return certificate
    except MemoryError:
        if always:
            raise
        return None


def check_report(
    report: Path | None,
    request: MachineRequest,
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
