"""looms diagnose: excess error, deviance, goodness of fit and influence of a classifier."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.discovery import all_estimators

from looms import SVCCV
from looms._checks import check_share
from looms._typing import AnyArray, Matrix
from looms._words import count
from looms.assessment._experiment import numbered
from looms.cli._diagnosis import (
    FIGURES,
    Diagnosis,
    Subject,
    check_figures,
    drawn,
    rows_of,
    show,
)
from looms.cli._errors import InputError
from looms.cli._options import Bounds, Columns, Source, command
from looms.cli._output import (
    as_messages,
    check_can_write,
    csv_text,
    note,
    refused,
    write_or_print,
    write_output,
)
from looms.cli._prepare import check_kernel_matrix, labels_of_groups, prepare, read_training
from looms.cli._progress import Meter
from looms.cli._target import Target, target_of
from looms.cli.predict import load, rows_for
from looms.copies import copy_groups, n_unexpected_copies
from looms.diagnostics import (
    deviance,
    excess_error,
    goodness_of_fit,
    influence,
    left_out_fits,
)
from looms.diagnostics._goodness_of_fit import least_replicates
from looms.diagnostics._problem import classes_and_labels

#: Advice of the search, in terms of options; C is the first of its two.
_BY_OPTION = {
    "give smaller values in param_grid": "give a smaller one by --C",
    "give larger values in param_grid": "give a larger one by --C",
    "give other values in param_grid": "give another by --gamma",
}


SVMKernel: TypeAlias = Literal["linear", "quadratic", "cubic", "rbf"]
_DEGREES: dict[SVMKernel, int] = {"quadratic": 2, "cubic": 3}
#: Step in log2 at which the search stops; the statistics need nothing finer.
_RESOLUTION = 1.0


@dataclass(frozen=True)
class SVMRequest:
    """Support vector machine to diagnose; None means chosen by the leave-one-out error.

    The polynomial kernels are (gamma x·x' + 1)^degree.

    Parameters
    ----------
    kernel
        Kernel of the SVM, default rbf.
    C
        Cost of errors of the SVM; chosen by default.
    gamma
        Inverse squared kernel width; chosen by default.
    """

    kernel: SVMKernel | None = None
    C: float | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        """Refuse values that no machine takes."""
        for name, value in (("--C", self.C), ("--gamma", self.gamma)):
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} must be a positive number, not {value:g}")
        if self.kernel == "linear" and self.gamma is not None:
            raise InputError("--gamma is not for the linear kernel; leave it out")
        if self.kernel in _DEGREES and self.C is not None and self.gamma is None:
            raise InputError(
                f"--C of the {self.kernel} kernel goes with --gamma, which scales it; give both, "
                "or leave both to the search"
            )

    def given(self) -> list[str]:
        """The options that were given."""
        values = {"--kernel": self.kernel, "--C": self.C, "--gamma": self.gamma}
        return [name for name, value in values.items() if value is not None]

    def tuned(self, X: Matrix, y: AnyArray, n_jobs: int) -> tuple[SVC, str, list[str]]:
        """The unfitted machine, itself in words, and the hyper-parameters that were not given.

        These are chosen by `SVCCV`, at the values of the others.
        """
        kernel, C, gamma = self.kernel or "rbf", self.C, self.gamma
        degree = _DEGREES.get(kernel)
        names = ["C"] if kernel == "linear" else ["C", "gamma"]
        chosen = [name for name in names if getattr(self, name) is None]
        if chosen:
            held = {} if C is None else {"C": C}
            if gamma is not None:
                held |= {"gamma": gamma} if degree is None else {"c": 1.0 / gamma}
            tuned = SVCCV(
                kernel, param_grid=held, resolution=_RESOLUTION, probability=None, n_jobs=n_jobs
            ).fit(X, y)
            C = tuned.C_
            if degree is not None:
                # The kernel of SVCCV is (x·x' + c)^degree, c^degree times that of gamma = 1/c.
                C, gamma = C * tuned.kernel_.c**degree, 1.0 / tuned.kernel_.c
            elif kernel != "linear":
                gamma = tuned.kernel_.gamma
        options = {"kernel": kernel} if degree is None else {"kernel": "poly", "degree": degree}
        values = {"C": C} if kernel == "linear" else {"C": C, "gamma": gamma}
        shown = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
        machine = SVC(**options, coef0=0.0 if degree is None else 1.0, **values)
        return machine, f"Support vector machine, {kernel} kernel, {shown}", chosen


def classifier_of(call: str) -> BaseEstimator:
    """Unfitted classifier from "LogisticRegression" or "LogisticRegression(C=0.1)".

    Its arguments are literals by name; the text is never run.
    """
    form = "--estimator is a classifier of scikit-learn, such as 'LogisticRegression(C=0.1)'"
    try:
        node = ast.parse(call.strip(), mode="eval").body
        keywords = node.keywords if isinstance(node, ast.Call) and not node.args else []
        name = node.func if isinstance(node, ast.Call) and not node.args else node
        options = {str(one.arg): ast.literal_eval(one.value) for one in keywords}
    except (SyntaxError, ValueError):
        raise InputError(f"{form}, with plain values by name, not {call!r}") from None
    if not isinstance(name, ast.Name):
        raise InputError(f"{form}, with plain values by name, not {call!r}")
    known = dict(all_estimators("classifier"))
    if name.id not in known:
        near = get_close_matches(name.id, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"{form}; {name.id} is not one{hint}")
    try:
        classifier: BaseEstimator = known[name.id](**options)
    except TypeError as error:
        raise InputError(f"--estimator {call}: {error}") from None
    return classifier


@dataclass(frozen=True)
class Plan:
    """Options of the statistics.

    Parameters
    ----------
    bootstrap
        Bootstrap samples; 0 for none.
    resampling
        Draw labels by fitted or held-out probabilities, or rows (pairs).
    alpha
        Level of the tests.
    random_state
        Seed of the bootstrap.
    jobs
        Refits to run in parallel; -1 for one per core.
    cv
        Folds to leave out instead of single rows or groups; one refit per fold.
    """

    bootstrap: Annotated[int, Bounds(0)] = 400
    resampling: Literal["labels", "held-out", "pairs"] = "labels"
    alpha: float = 0.05
    random_state: Annotated[int, Bounds(0)] = 0
    jobs: int = 1
    cv: Annotated[int | None, Bounds(2)] = None

    def __post_init__(self) -> None:
        """Refuse impossible options, before any work."""
        with refused():
            check_share(self.alpha, "alpha")
        least = least_replicates(self.alpha)
        if 0 < self.bootstrap < least:
            raise InputError(
                f"--bootstrap {self.bootstrap} cannot reach level {self.alpha:g}, which takes "
                f"at least {least} samples; take 400 to 1000, or 0 for none"
            )


@command
def diagnose(
    *,
    columns: Columns,
    model: Path | None = None,
    estimator: str | None = None,
    request: SVMRequest,
    plan: Plan,
    groups: str | None = None,
    plot: Path | None = None,
    output: Path | None = None,
    source: Source,
    force: bool = False,
) -> None:
    """Diagnose a classifier: excess error, deviance, goodness of fit, influential rows.

    Without --model it diagnoses a support vector machine with probabilities by Platt's sigmoid; if
    --C or --gamma is not given, it is chosen by leave-one-out. A model of looms fit, or a
    classifier by --estimator, is refitted to the rows of FILE with fixed hyper-parameters.

    Parameters
    ----------
    model
        Model file of looms fit; without it, a tuned SVM.
    estimator
        Classifier of scikit-learn instead of the SVM, with its options as in Python:
        'RandomForestClassifier(n_estimators=50, random_state=0)'.
    groups
        Column, such as the patient: rows with the same label are left out together. By default that
        of the fit, if FILE has it.
    plot
        Folder for the figures, as PNG files.
    output
        CSV file with a row per sample.
    """
    given = [*request.given(), *([] if estimator is None else ["--estimator"])]
    if len(given) > 1 and estimator is not None:
        raise InputError(f"{given[0]} is for a support vector machine, --estimator for others")
    if model is not None and given:
        what = "for a support vector machine" if estimator is None else "a machine"
        raise InputError(
            f"{given[0]} is {what}, but {model} has its own machine; leave out one of them"
        )
    check_can_write(output, force, source.file, *([] if model is None else [model]), holds="row,")
    if plot is not None:
        names = [name for name, of in FIGURES.items() if plan.bootstrap or of != "fit"]
        check_figures(plot, names, force)
    if model is None:
        machine = request if estimator is None else classifier_of(estimator)
        subject = _of_table(source, columns, groups, machine, plan.jobs)
    elif columns.drop:
        raise InputError("--drop is for an SVM; a model knows its columns")
    else:
        subject = _of_model(source, columns, model, groups)
    X = numbered(subject.X)
    n_copies = n_unexpected_copies(X, copy_groups(X))
    if n_copies and subject.groups is None:
        note(
            f"{n_copies} of {len(subject.y)} rows are copies of other rows: leaving one out keeps "
            "its copies, which flatters the leave-one-out figures"
        )
    diagnosis = diagnosed(subject, plan)
    show(diagnosis)
    if n_impossible := diagnosis.deviance.n_impossible:
        note(
            f"{count(n_impossible, 'held-out row')} got probability 0 of the true class, "
            "so the CV score is infinite"
        )
    # Everything is made before anything is written.
    figures = {} if plot is None else drawn(diagnosis)
    if output is not None:
        write_or_print(output, csv_text(rows_of(diagnosis)), "a row for each sample is in")
    if plot is not None:
        plot.mkdir(exist_ok=True)
        for name, content in figures.items():
            write_output(plot / name, content)
        note(f"{len(figures)} figures are in {plot}")


def _of_table(
    source: Source,
    columns: Columns,
    groups: str | None,
    machine: SVMRequest | BaseEstimator,
    n_jobs: int,
) -> Subject:
    """A classifier, or a support vector machine, tuned on the rows if it is not given."""
    table, labels = read_training(source, columns, groups)
    file = source.file
    check_kernel_matrix(file, table.X.shape[0])
    classes = classes_of(table.y, file)
    prepared = prepare(table.X, classes)
    steps = [("table", prepared.preprocessor)]
    if not isinstance(machine, SVMRequest):
        model = Pipeline([*steps, ("machine", machine)])
        return Subject(model, prepared.X, classes.y, labels, repr(machine), file.name)
    with as_messages(_BY_OPTION):
        svm, description, chosen = machine.tuned(prepared.matrix, classes.y, n_jobs)
    if chosen:
        note(
            f"{' and '.join(chosen)} {'was' if len(chosen) == 1 else 'were'} chosen on these rows "
            "by leave-one-out, so the errors flatter the machine; looms assess gives honest ones"
        )
    note("this machine decides at output 0; one of looms fit decides at probability 1/2")
    model = Pipeline([*steps, ("machine", svm)])
    return Subject(model, prepared.X, classes.y, labels, description, file.name)


def _of_model(source: Source, columns: Columns, path: Path, groups: str | None) -> Subject:
    """The machine of a model file, to be refitted to the rows."""
    saved, file, target = load(path, source.max_bytes), source.file, columns.target
    if not saved.metadata["by_fit"]:
        raise InputError(f"{path}: diagnostics take files of looms fit, and this is of save_model")
    if saved.metadata["task"] != "classification":
        raise InputError(f"{path}: it is a regression, but diagnostics are for classes")
    if target not in (None, saved.metadata["target"]):
        raise InputError(f"{path}: it predicts {saved.metadata['target']!r}, not {target!r}")
    table = rows_for(saved, source, [groups] if groups else [], columns.drop_missing_targets)
    y = classes_of(table.y, file).y
    note(f"the machine of {path} is refitted to these rows with fixed hyper-parameters")
    of_fit, labels, X = saved.metadata["options"].get("groups"), None, table.X
    if groups or of_fit in getattr(X, "columns", []):
        name = groups or of_fit
        labels = labels_of_groups(file, table, name)
        X = X if name in saved.metadata["columns"] else X.drop(columns=name)
    elif hasattr(saved.model[-1], "units_") and saved.model[-1].units_.grouped:
        note("rows that the fit held out together are left out one at a time here; see --groups")
    kinds = {"svm": "Support vector", "lssvm": "Least-squares"}
    kind = kinds.get(saved.metadata["options"]["machine"], "Nonconformity")
    return Subject(saved.model, X, y, labels, f"{kind} machine of {path}", file.name)


def classes_of(column: Any, file: Path) -> Target:
    """The target; refuses one without classes, or with too few rows in a class."""
    without = f"{file}: diagnostics are for classes, but"
    try:
        target = target_of(column, "auto")
    except InputError as error:
        raise InputError(f"{without} {getattr(error, 'problem', error)}") from None
    if target.task != "classification":
        raise InputError(f"{without} the target has {target.values}")
    with as_messages(prefix=f"{file}: "):
        classes_and_labels(target.y)
    return target


def diagnosed(subject: Subject, plan: Plan) -> Diagnosis:
    """All statistics of a subject; progress goes to stderr."""
    data = subject.model, subject.X, subject.y
    options: dict[str, Any] = {"cv": plan.cv, "groups": subject.groups, "n_jobs": plan.jobs}
    with as_messages(), Meter("Leave-one-out refits") as meter:
        fits = left_out_fits(*data, progress=meter.refit, **options)
        fits = fits.named(np.arange(1, len(subject.y) + 1))
        errors, spread = excess_error(fits), deviance(fits)
        changes = influence(fits, alpha=plan.alpha)
    unit = "fold" if plan.cv else {"sample": "row", "group": "group"}[fits.unit]
    if not plan.bootstrap:
        return Diagnosis(subject, unit, errors, spread, changes, None)
    options = {name: getattr(plan, name) for name in ("alpha", "resampling", "random_state")}
    with as_messages(), Meter("Bootstrap") as meter:
        options |= {"n_jobs": plan.jobs, "progress": meter.refit}
        fit = goodness_of_fit(*data, plan.bootstrap, **options)
    return Diagnosis(subject, unit, errors, spread, changes, fit)
