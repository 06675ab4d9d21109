"""looms predict, score and show: a saved model, and its predictions for new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import typer
from scipy import sparse

from looms import NonconformityClassifier, PrevalenceClassifier
from looms._optional import require
from looms._typing import AnyArray, Matrix
from looms._words import count, listed
from looms.cli._errors import InputError
from looms.cli._figures import (
    classification_figures,
    probability_figures,
    regression_figures,
    show_choice,
    show_confusion,
    show_figures,
    show_request,
)
from looms.cli._options import ForceOption, MaxBytesOption, ModelArgument, Reading, command
from looms.cli._output import as_messages, check_can_write, csv_text, note, write_or_print
from looms.cli._prepare import Column, Features, date_notes, numbers, read, text
from looms.cli._request import CoverageRequest
from looms.copies import copy_groups
from looms.datasets._table import Table
from looms.model_files import load_model
from looms.model_files._files import SavedModel

#: Metadata of a model of looms fit.
METADATA = {
    *("task", "target", "columns", "ranges", "n_rows", "n_features", "options", "seconds", "date"),
    *("file", "looms_version", "sklearn_version"),
}
#: First line of what is written: columns that tell the rows, then those of predictions.
_HEADER = r"(.+,)?prediction(,decision_.*|,p_value_.*|,lower,upper)?$"
#: Between the labels of a set.
SEPARATOR = "|"
#: Beyond the training range by this share of its width a value is far outside.
FAR = 0.25
#: Notes on columns, and columns in a note.
MOST_NOTES = MOST_COLUMNS = 5


@command
def predict(
    model: ModelArgument,
    file: Annotated[Path, typer.Argument(help="The rows to predict.", metavar="FILE")],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", "-o", help="CSV file to write; without it, standard output."
        ),
    ] = None,
    request: CoverageRequest,
    id: Annotated[
        str | None,
        typer.Option(
            help="Column of FILE that names the rows; without it they are numbered from 1."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column of FILE to write, too; may be given again.")
    ] = None,
    prevalence: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Share of a class among the rows to predict, such as ill=0.01; may be given again. "
                "Classes that are not named have the rest."
            ),
            metavar="CLASS=SHARE",
        ),
    ] = None,
    digits: Annotated[int, typer.Option(min=1, max=17, help="Significant digits; 17 for all.")] = 6,
    reading: Reading,
    force: ForceOption = False,
) -> None:
    """Predict rows: a CSV with prediction, decision values and probabilities of each.

    Each row begins with its number in FILE, or what --id says, by which it can be joined to FILE.

    The larger decision_CLASS, the more speaks for that class; of two classes the second has one.
    The prediction goes by them; it need not be the class of the greatest probability_CLASS.
    Of --machine nonconformity p_value_CLASS is small where the row is not typical of the class.

    With --coverage an interval from lower to upper, or a set: labels with | between them, none
    for a row that is typical of no class. Where the choice was not repeated without each row, as
    looms fit says, they are a little too small.

    With --prevalence probabilities and predictions are for rows among which a class is rarer, or
    more common, than among those of the fit, but looks alike: Bayes' rule. decision_CLASS is then
    the log odds, or of several classes the log probability.
    """
    check_can_write(output, force, file, model, holds=_HEADER)
    saved = load(model, reading.max_bytes)
    request.check_model(saved, model)
    machine = at_prevalence(saved, model, prevalence) if prevalence else None
    kept = [*([] if id is None else [id]), *(keep or [])]
    table = rows_for(saved, file, reading, with_target=False, kept=kept)
    n_rows = table.X.shape[0]
    predictions = Predictions.of(saved, table.X, machine)
    if prevalence and request.coverage is not None and not request.class_conditional:
        note("--coverage is at the shares of the fit, with --class-conditional at any")
    rows = ({"row": range(1, n_rows + 1)} if id is None else {}) | table.kept
    outputs = predictions.outputs() | predictions.covering(request)
    for name in rows.keys() & outputs.keys():
        raise InputError(f"predict writes a column {name!r} of its own; keep it by another name")
    frame = require("pandas", "Writing predictions").DataFrame(rows | outputs)
    content = csv_text(frame, index=False, float_format=f"%.{digits}g")
    for remark in predictions.unlike():
        note(remark)
    write_or_print(output, content, f"{count(n_rows, 'prediction')} in")


@command
def score(
    model: ModelArgument,
    file: Annotated[Path, typer.Argument(help="Rows with the target.", metavar="FILE")],
    *,
    reading: Reading,
) -> None:
    """Score the model on rows whose target is known."""
    saved = load(model, reading.max_bytes)
    table = rows_for(saved, file, reading, with_target=True)
    predictions = Predictions.of(saved, table.X)
    figures = predictions.figures(table.y)
    labels: list[str] = []
    if saved.metadata["task"] == "classification":
        classes, truth = text(saved.model[-1].classes_), text(table.y)
        unknown = sorted(set(truth) - set(classes))
        if unknown:
            note(f"labels that the model does not know count as errors: {', '.join(unknown)}")
        labels = [*classes, *unknown]
    for remark in (*predictions.unlike(), *predictions.trained_on()):
        note(remark)
    show_figures({f"{count(table.X.shape[0], 'row')} of {file.name}": figures})
    if labels:
        show_confusion(truth, text(predictions.predicted), labels)


@command
def show(model: ModelArgument, *, max_bytes: MaxBytesOption = Reading.max_bytes) -> None:
    """Show what was asked, what was chosen, the candidates and the leave-one-out figures."""
    saved = load(model, max_bytes)
    show_request(saved.metadata)
    show_choice(saved.model, saved.metadata)


def load(path: Path, max_bytes: int) -> SavedModel:
    """The model of a file of looms fit, with warnings about versions as notes."""
    with as_messages():
        saved = load_model(path, max_bytes=max_bytes)
    metadata = saved.metadata
    complete = metadata.keys() >= METADATA and isinstance(metadata["options"], dict)
    if not complete or not isinstance(metadata["columns"], dict | None):
        raise InputError(f"{path}: the model was not saved by looms fit; fit it again")
    return saved


def at_prevalence(saved: SavedModel, path: Path, prevalence: Sequence[str]) -> PrevalenceClassifier:
    """The machine of a model at the shares of its classes that options name."""
    machine = saved.model[-1]
    if saved.metadata["task"] == "regression":
        raise InputError(f"--prevalence is for classification, and {path} is of regression")
    if not hasattr(machine, "predict_proba"):
        raise InputError(f"--prevalence needs probabilities: {path} has --calibration none")
    labels = {str(label): label for label in machine.classes_.tolist()}
    shares = {}
    for option in prevalence:
        name, equals, share = option.rpartition("=")
        try:
            shares[labels.get(name, name)] = float(share if equals else "")
        except ValueError:
            raise InputError(f"--prevalence {option} is no CLASS=SHARE, such as ill=0.01") from None
    model = PrevalenceClassifier(machine, shares)
    with as_messages(prefix="--prevalence: "):
        _ = model.prevalence_
    return model


def rows_for(
    saved: SavedModel, path: Path, reading: Reading, *, with_target: bool, kept: Sequence[str] = ()
) -> Table:
    """The rows of a file in the form that the model takes, with the target if it is asked for.

    Columns that the model does not know are said to be ignored, but for those ``kept`` and those
    of the groups and times of its fit.
    """
    columns, target = saved.metadata["columns"], saved.metadata["target"]
    table = read(path, target if with_target else None, reading, kept)
    X = table.X
    if (columns is None) != sparse.issparse(X):
        made_for = "sparse files" if columns is None else "tables with named columns"
        raise InputError(f"{path}: the model was fitted to {made_for}, and this is no such file")
    if with_target and table.y is None:
        raise InputError(f"{path}: no labels are beside it; put them there, or use looms predict")
    if columns is None:  # a sparse file ends at the last column that it uses
        n_features = saved.metadata["n_features"]
        if X.shape[1] > n_features:
            raise InputError(
                f"{path}: a row has feature {X.shape[1]}, and the model was fitted to {n_features}"
            )
        X = sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
        return replace(table, X=X)
    options = saved.metadata["options"]
    known = {*columns, *kept, target, options.get("groups"), options.get("time")}
    ignored = [str(name) for name in X.columns if name not in known]
    if ignored:
        note(
            f"{count(len(ignored), 'column')} ignored, for the model does not know "
            f"{'it' if len(ignored) == 1 else 'them'}: {listed(ignored, 10)}"
        )
    return table


@dataclass(frozen=True, eq=False)
class Predictions:
    """Outputs of a saved model for some rows, from one pass of its preprocessor.

    The ``columns`` are the rows as floats and text, or a sparse matrix, the ``matrix`` is what the
    machine takes. Of a regression the decision values are the predictions, of nonconformity the
    p-values.
    """

    saved: SavedModel
    columns: Features
    matrix: Matrix
    predicted: AnyArray
    decision: AnyArray
    probabilities: AnyArray | None

    @classmethod
    def of(cls, saved: SavedModel, X: Features, machine: Any = None) -> Self:
        """Outputs for rows as they were read; refuses rows that the model cannot take.

        ``machine`` stands for that of the model where it is given.
        """
        before, own = saved.model
        machine = own if machine is None else machine
        with as_messages(
            prefix="the model cannot take these rows: ", faults=(ValueError, TypeError)
        ):
            columns = before[:-1].transform(X)
            matrix = before[-1].transform(columns)
            predicted = decision = machine.predict(matrix)
            if isinstance(machine, NonconformityClassifier):
                decision = machine.p_values(matrix)
            elif saved.metadata["task"] == "classification":
                decision = machine.decision_function(matrix)
            likely = machine.predict_proba(matrix) if hasattr(machine, "predict_proba") else None
        return cls(saved, columns, matrix, predicted, decision, likely)

    def outputs(self) -> dict[str, AnyArray]:
        """Columns of the prediction, decision values and probabilities, as the model has them."""
        columns = {"prediction": self.predicted}
        if self.saved.metadata["task"] == "classification":
            machine = self.saved.model[-1]
            classes = machine.classes_
            decided = classes[1:] if self.decision.ndim == 1 else classes
            values = self.decision.reshape(len(self.predicted), -1)
            kind = "p_value" if isinstance(machine, NonconformityClassifier) else "decision"
            columns |= {f"{kind}_{c}": values[:, k] for k, c in enumerate(decided)}
            if self.probabilities is not None:
                columns |= {
                    f"probability_{c}": self.probabilities[:, k] for k, c in enumerate(classes)
                }
        return columns

    def covering(self, request: CoverageRequest) -> dict[str, AnyArray]:
        """Columns ``lower`` and ``upper``, or ``set``; none if no coverage was asked for."""
        if request.coverage is None:
            return {}
        if self.saved.metadata["options"].get("time"):
            note(
                "--coverage is of single rows left out, of which those near in time tell: later "
                "rows may be covered less often"
            )
        machine = self.saved.model[-1]
        if request.method == "scaled" and machine.members_:
            raise InputError(
                f"--method scaled is for one machine, and the model is a stack of "
                f"{len(machine.members_)}; fit with --combine best"
            )
        # ValueError: more coverage than the rows of the model can give.
        with as_messages(prefix=f"--coverage {request.coverage:g}: "):
            if self.saved.metadata["task"] == "regression":
                method = request.method or "plus"
                lower, upper = machine.predict_interval(self.matrix, request.coverage, method).T
                return {"lower": lower, "upper": upper}
            sets = machine.predict_set(self.matrix, request.coverage, request.class_conditional)
        n_empty = int((~sets.any(axis=1)).sum())
        if n_empty:
            note(
                f"{count(n_empty, 'set')} of {len(sets)} {'is' if n_empty == 1 else 'are'} empty: "
                f"at coverage {request.coverage:g} such a row is typical of no class of the "
                "training rows"
            )
        return {"set": joined(sets, [str(label) for label in machine.classes_])}

    def figures(self, y: Column) -> dict[str, float]:
        """Figures against the target of the rows, as it was read."""
        if self.saved.metadata["task"] == "regression":
            return regression_figures(numbers(y), self.predicted)
        classes, truth, predicted = map(text, (self.saved.model[-1].classes_, y, self.predicted))
        decision = self.decision
        if decision.ndim == 2 and len(classes) == 2:
            decision = decision[:, 1] - decision[:, 0]
        figures = classification_figures(truth, predicted, decision, classes)
        if self.probabilities is not None:
            figures |= probability_figures(truth, self.probabilities, classes)
        return figures

    def unlike(self) -> Iterator[str]:
        """Notes on dates, values far outside their range, and categories not met in training."""
        if sparse.issparse(self.columns):
            return
        yield from date_notes(self.saved.model[0]["columns"].kinds)
        empty = [name for name in self.columns if self.columns[name].isna().all()]
        if empty:
            yield f"no row has a value of {listed(empty)}: typical ones stand in for them"
        remarks = sorted([*self._extrapolated(), *self._foreign()], key=lambda each: -each[0])
        for _, remark in remarks[:MOST_NOTES]:
            yield remark
        if len(remarks) > MOST_NOTES:
            yield f"{len(remarks) - MOST_NOTES} more such notes are left out"

    def trained_on(self) -> Iterator[str]:
        """A note on rows equal to training rows."""
        known, new = self.saved.model[-1].X_fit_, self.matrix
        if known is None:
            return
        if sparse.issparse(new):
            groups = copy_groups(sparse.csr_array(sparse.vstack([known, new])))
        else:
            groups = copy_groups(np.vstack([known, new]))
        n = int(np.isin(groups[known.shape[0] :], groups[: known.shape[0]]).sum())
        if n:
            yield (
                f"{count(n, 'row')} of {new.shape[0]} equal in every feature what the model was "
                "fitted to: if they are the same rows, the figures flatter it; looms assess gives "
                "honest ones"
            )

    def _extrapolated(self) -> Iterator[tuple[int, str]]:
        """Number of rows, and the note, of columns far outside their range in these rows."""
        kinds = self.saved.model[0]["columns"].kinds
        columns: dict[bytes, list[str]] = {}
        for name, (low, high) in self.saved.metadata["ranges"].items():
            values = self.columns[name].to_numpy()
            beyond = np.fmax(low - values, values - high)
            far = beyond > FAR * (high - low)
            if far.any():
                limits = (low, high, values[np.nanargmax(beyond)])
                least, most, furthest = (_shown(value, kinds[name]) for value in limits)
                columns.setdefault(far.tobytes(), []).append(
                    f"{name!r} is far outside its training range, {least} to {most}, furthest "
                    f"{furthest}"
                )
        for rows, each in columns.items():
            n, more = rows.count(1), len(each) - MOST_COLUMNS
            named = " and ".join(each[:MOST_COLUMNS]) + f" and {more} more" * (more > 0)
            of = count(len(self.columns), "row")
            yield n, f"in {n} of {of} {named}; predictions there are extrapolated"

    def _foreign(self) -> Iterator[tuple[int, str]]:
        """Number of rows, and the note, of every column with categories that were not met."""
        before = self.saved.model[0]
        names = [name for name, kind in before["columns"].kinds.items() if kind == "category"]
        categories = before["matrix"].named_transformers_["categories"].categories_ if names else []
        for name, known in zip(names, categories, strict=True):
            column = self.columns[name]
            foreign = ~column.isin(known) & ~column.isna()
            n = int(foreign.sum())
            if n:
                yield (
                    n,
                    f"in {n} of {count(len(column), 'row')} {name!r} has a value that no training "
                    f"row has, first {column[foreign].iloc[0]!r}: it tells the model nothing",
                )


def joined(members: AnyArray, labels: list[str]) -> AnyArray:
    """(m,) labels of every row of (m, n_classes) memberships, with bars between them."""
    if any(SEPARATOR in label for label in labels):
        note(f"labels hold {SEPARATOR!r}, which is between the labels of a set, too")
    sets = [
        SEPARATOR.join(label for label, member in zip(labels, row, strict=True) if member)
        for row in members
    ]
    return np.array(sets, dtype=object)


def _shown(value: float, kind: str) -> str:
    if kind.endswith("date"):
        return str(np.datetime64("1970-01-01") + np.timedelta64(round(value), "D"))
    return f"{value:.6g}"
