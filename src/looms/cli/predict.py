"""looms predict, score and show: a saved model, and its predictions for new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from json import dumps as json_text
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from scipy import sparse
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from looms import machine_of
from looms._optional import require
from looms._words import count, listed
from looms.cli._errors import InputError
from looms.cli._figures import (
    choice_of,
    facts_of,
    show_choice,
    show_confusion,
    show_figures,
    show_request,
)
from looms.cli._model import before_of, last_of, of_prepared
from looms.cli._options import Bounds, Source, command
from looms.cli._output import (
    as_messages,
    check_can_write,
    note,
    note_formulas,
    output_in_parts,
    show_json,
    without_formulas,
    write_output,
)
from looms.cli._predictions import CoverageRequest, Predictions, unlike_of
from looms.cli._prepare import open_file, read, tell
from looms.cli._target import Features, text
from looms.datasets._table import Table, no_rows
from looms.estimators._prevalence import PrevalenceClassifier
from looms.estimators._tabular import Tabular
from looms.model_files import load_model
from looms.model_files._files import SavedModel
from looms.onnx import register_converters
from looms.report.text import plain
from looms.tables import TablePreprocessor

#: Metadata of a model of looms fit.
METADATA = {
    *("task", "target", "columns", "n_rows", "n_features", "options", "seconds", "date", "file"),
    *("looms_version", "sklearn_version"),
}
#: First line of the output: columns that identify the rows, then those of predictions.
_HEADER = r"(.+,)?prediction(,decision_.*|,p_value_.*|,lower,upper)?$"
#: Entries in the kernel matrix of a block and the training rows, and the most rows that count.
_ENTRIES, _MOST_COLUMNS = 2**24, 2**14


@command
def predict(
    model: Path,
    *,
    output: Path | None = None,
    request: CoverageRequest,
    id: str | None = None,
    keep: list[str] | None = None,
    prevalence: list[str] | None = None,
    digits: Annotated[int, Bounds(1, 17)] = 6,
    source: Source,
    force: bool = False,
) -> None:
    """Predict rows: write a CSV with predictions, decision values and probabilities.

    Each row begins with its number in FILE, or the column --id, to join it to FILE.

    The larger decision_CLASS, the more speaks for that class; of two classes only the second has
    one. These decide the prediction, which need not be the class with the largest
    probability_CLASS. With --machine nonconformity, p_value_CLASS is small if the row is not
    typical of the class.

    --confidence-level adds an interval from lower to upper, or a set: labels with | between them,
    none for a row that is typical of no class. If the choice was not repeated without each row, as
    looms fit says, they are a little too small.

    --prevalence gives probabilities and predictions for rows among which a class is rarer, or
    more common, than in the fit, but looks the same: Bayes' rule. decision_CLASS is then the log
    odds or, for several classes, the log probability.

    Parameters
    ----------
    file
        The rows to predict.
    output
        CSV file to write; without it, standard output.
    id
        Column of FILE that names the rows; by default they are numbered from 1.
    keep
        Column of FILE to write too; may be repeated.
    prevalence
        Share of a class among the rows to predict, such as ill=0.01; may be repeated. Classes that
        are not named share the rest.
    digits
        Significant digits; 17 for all.

    Examples
    --------
    looms predict clinic.looms.skops new.csv
    looms predict clinic.looms.skops new.csv --id patient --confidence-level 0.9 --output out.csv
    looms predict clinic.looms.skops new.csv --prevalence yes=0.01
    """
    check_can_write(output, force, source.file, model, holds=_HEADER)
    saved = load(model, source.max_bytes)
    request.check_model(saved, model)
    machine = at_prevalence(saved, model, prevalence) if prevalence else None
    kept = [*([] if id is None else [id]), *(keep or [])]
    if prevalence and request.confidence_level is not None and not request.class_conditional:
        note(
            "--confidence-level holds for the shares of the fit; with --class-conditional, for any "
            "shares"
        )
    if request.confidence_level is not None and saved.metadata["options"].get("time"):
        note(
            "--confidence-level comes from single held-out rows, which rows near in time help to "
            "predict: later rows may be covered less often"
        )
    pandas = require("pandas", "Writing predictions")
    unlike, n_rows, n_empty, n_changed = unlike_of(saved), 0, 0, 0
    with as_messages(), output_in_parts(output) as write:
        for table in blocks_for(saved, source, kept):
            first, n_rows = n_rows, n_rows + table.X.shape[0]
            predictions = Predictions(saved, table.X, machine, unlike)
            numbers = {"row": range(first + 1, n_rows + 1)} if id is None else {}
            rows = numbers | table.kept
            outputs = predictions.outputs() | predictions.covering(request)
            for name in rows.keys() & outputs.keys():
                raise InputError(
                    f"predict writes a column {name!r} of its own; keep it by another name"
                )
            n_empty += int(sum(label == "" for label in outputs.get("set", ())))
            frame = pandas.DataFrame(rows | outputs)
            part, n = without_formulas(
                frame, index=False, header=not first, float_format=f"%.{digits}g"
            )
            write(part)
            n_changed += n
    note_formulas(n_changed)
    if n_empty:
        note(
            f"{count(n_empty, 'set')} of {n_rows} {'is' if n_empty == 1 else 'are'} empty: "
            f"at coverage {request.confidence_level:g} such a row is typical of no class of the "
            "training rows"
        )
    for remark in unlike.notes() if unlike else ():
        note(remark)
    if output is not None:
        note(f"{count(n_rows, 'prediction')} in {output}")


@command
def score(
    model: Path,
    *,
    drop_missing_targets: bool = False,
    json: bool = False,
    source: Source,
) -> None:
    """Score the model on rows whose target is known.

    Parameters
    ----------
    file
        Rows with the target.

    Examples
    --------
    looms score clinic.looms.skops new.csv
    looms score clinic.looms.skops new.csv --json
    looms score clinic.looms.skops new.csv --drop-missing-targets
    """
    saved = load(model, source.max_bytes)
    table = rows_for(saved, source, drop_missing=drop_missing_targets)
    unlike = unlike_of(saved)
    with as_messages():
        predictions = Predictions(saved, table.X, unlike=unlike)
    figures = predictions.figures(table.y)
    labels: list[str] = []
    if saved.metadata["task"] == "classification":
        classes, truth = text(last_of(saved.model).classes_), text(table.y)
        unknown = sorted(set(truth) - set(classes))
        if unknown:
            note(f"labels that the model does not know count as errors: {', '.join(unknown)}")
        labels = [*classes, *unknown]
    unlike_training = unlike.notes() if unlike else ()
    for remark in (*unlike_training, *predictions.trained_on()):
        note(remark)
    if json:
        show_json(plain({"n_rows": table.X.shape[0], "figures": figures}))
        return
    rows = f"{count(table.X.shape[0], 'row')} of {source.file.name}"
    show_figures({rows: figures}, len(getattr(last_of(saved.model), "classes_", ())))
    if labels:
        counts = confusion_matrix(truth, text(predictions.predicted), labels=labels)
        show_confusion(counts, labels)


@command
def show(
    model: Path,
    *,
    json: bool = False,
    max_bytes: Annotated[int, Bounds(1)] = Source.max_bytes,
) -> None:
    """Show the options, the choice, the candidates and the held-out scores.

    Examples
    --------
    looms show clinic.looms.skops
    looms show clinic.looms.skops --json
    looms show clinic.looms.skops --max-bytes 4000000000
    """
    saved = load(model, max_bytes)
    facts = facts_of(saved)
    if json:
        if facts is None:
            raise InputError(f"--json is not for the machines of {model}, chosen for each row")
        show_json(facts.summary)
        return
    show_request(saved.metadata)
    show_choice(saved, facts)
    if saved.metadata["by_fit"] or (facts is not None and facts.model.results):
        note(choice_of(saved, facts))


@command
def export(
    model: Path,
    *,
    onnx: Path | None = None,
    max_bytes: Annotated[int, Bounds(1)] = Source.max_bytes,
    force: bool = False,
) -> None:
    """Write a model as an ONNX graph, which runs without Python.

    The graph takes the prepared columns: numbers without gaps, scaled, and a column for each
    category. It has their names, in order, in its metadata.

    Parameters
    ----------
    onnx
        File to write.

    Examples
    --------
    looms export clinic.looms.skops --onnx clinic.onnx
    """
    if onnx is None:
        raise InputError("name the file to write by --onnx, such as --onnx model.onnx")
    check_can_write(onnx, force, model, option="--onnx", holds=r"[\s\S]*skl2onnx")
    to_onnx = require("skl2onnx", "looms export", "onnx").to_onnx
    saved = load(model, max_bytes)
    last, before = last_of(saved.model), before_of(saved.model)
    if getattr(last, "transform_", "none") != "none":
        raise InputError(
            f"{model}: a graph has no mean of a target that is fitted by its {last.transform_}; "
            "fit with --target-transform none"
        )
    with as_messages(prefix=f"{model}: "):
        machine = machine_of(saved.model)
        register_converters()
        options = {"zipmap": False} if is_classifier(machine) else {}
        rows = np.zeros((1, machine.n_features_in_))
        graph = to_onnx(machine, rows, options={id(machine): options})
    named = getattr(before, "get_feature_names_out", None)
    if named is not None:
        entry = graph.metadata_props.add()
        entry.key, entry.value = "columns", json_text(list(map(str, named())))
    write_output(onnx, graph.SerializeToString())
    note(f"the graph is in {onnx}, of {count(machine.n_features_in_, 'prepared column')}")


def load(path: Path, max_bytes: int) -> SavedModel:
    """The model of a file of looms fit or `save_model`, with warnings about versions as notes.

    Its metadata tell which, ``by_fit``.
    """
    with as_messages():
        saved = load_model(path, max_bytes=max_bytes)
    metadata = saved.metadata
    complete = metadata.keys() >= METADATA and isinstance(metadata["options"], dict)
    if not complete or not isinstance(metadata["columns"], dict | None):
        return completed(saved, path)
    return SavedModel(saved.model, metadata | {"by_fit": True})


def at_prevalence(saved: SavedModel, path: Path, prevalence: Sequence[str]) -> PrevalenceClassifier:
    """The machine of a model at the class shares that options give."""
    machine = of_prepared(saved.model)
    if saved.metadata["task"] == "regression":
        raise InputError(f"--prevalence is for classification, but {path} is for regression")
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
    saved: SavedModel,
    source: Source,
    kept: Sequence[str] = (),
    drop_missing: bool | None = None,
) -> Table:
    """The rows of a file in the form that the model takes, with the target.

    A note lists the columns that the model does not know, except those ``kept`` and those of the
    groups, times and weights of its fit.
    """
    table, path = read(source, saved.metadata["target"], kept, drop_missing), source.file
    if table.y is None and not saved.metadata["by_fit"]:
        raise InputError(
            f"{path}: the model does not name its target; save it with the metadata "
            "{'target': ...}, the name of the column"
        )
    if table.y is None:
        raise InputError(f"{path}: no labels are beside it; put them there, or use looms predict")
    note_ignored(saved, table, kept)
    return fitting(saved, table, path)


def blocks_for(saved: SavedModel, source: Source, kept: Sequence[str]) -> Iterator[Table]:
    """Rows of a file in the form that the model takes, a block at a time, without the target."""
    reader, path = open_file(source, None, kept), source.file
    size = min(reader.usual_size, _ENTRIES // min(saved.metadata["n_rows"], _MOST_COLUMNS))
    first = True
    for table in reader.tables(size):
        fits = fitting(saved, table, path)
        if first:
            note_ignored(saved, table, kept)
        first = False
        tell(source, table.notes)
        yield fits
    if first:
        raise no_rows(path)


def fitting(saved: SavedModel, table: Table, path: Path) -> Table:
    """Rows of a table in the form that the model takes, except the columns of a data frame."""
    columns, X = saved.metadata["columns"], table.X
    if columns != {} and (columns is None) != sparse.issparse(X):
        made_for = "sparse files" if columns is None else "tables with named columns"
        raise InputError(f"{path}: the model was fitted to {made_for}, but this is not such a file")
    n_features = saved.metadata["n_features"]  # a sparse file ends at the last column that it uses
    if columns:
        return table
    if not sparse.issparse(X):
        X = X.drop(columns=saved.metadata["target"] or [], errors="ignore")
        if X.shape[1] != n_features:
            raise InputError(
                f"{path}: the model was fitted to {n_features} columns without names, and there "
                f"are {X.shape[1]}"
            )
        return replace(table, X=X)
    if X.shape[1] > n_features:
        raise InputError(
            f"{path}: a row has feature {X.shape[1]}, but the model was fitted to {n_features}"
        )
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    return replace(table, X=X)


def note_ignored(saved: SavedModel, table: Table, kept: Sequence[str]) -> None:
    """Note columns that the model does not know, except kept ones and those of its fit."""
    metadata, options = saved.metadata, saved.metadata["options"]
    if metadata["columns"] == {}:  # without names all are taken
        return
    known = {*(metadata["columns"] or ()), *kept, metadata["target"]}
    known |= {options.get(name) for name in ("groups", "time", "sample_weight")}
    ignored = [str(name) for name in getattr(table.X, "columns", ()) if name not in known]
    if ignored:
        note(
            f"{count(len(ignored), 'column')} ignored, because the model does not know "
            f"{'it' if len(ignored) == 1 else 'them'}: {listed(ignored, 10)}"
        )


def completed(saved: SavedModel, path: Path) -> SavedModel:
    """A model of `save_model` as two steps, preparation and machine, with the metadata of a fit.

    Of its own metadata only ``target`` counts, the name of the column to predict. Refuses models
    that do not end in a fitted machine of looms.
    """
    model = saved.model
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    machine = steps[-1]
    try:
        check_is_fitted(machine)
    except NotFittedError:
        raise InputError(f"{path}: the model is not fitted; fit it, and save it again") from None
    known = [getattr(machine, name) for name in ("loo_", "validation_") if hasattr(machine, name)]
    if not known:
        raise InputError(
            f"{path}: the model ends in {type(machine).__name__}, and the command line takes "
            "machines of looms fit; use looms.model_files.load_model in Python"
        )
    kernel = getattr(getattr(machine, "machine_", machine), "kernel_", None)
    if kernel is not None and kernel.pairwise:
        raise InputError(
            f"{path}: the model takes kernel values, and the command line takes rows of features"
        )
    before, columns = _preparation(steps)
    ends = before is not None  # else the model prepares its columns itself
    target = saved.metadata.get("target")
    metadata = {
        "task": "classification" if is_classifier(machine) else "regression",
        "target": target if isinstance(target, str) else None,
        "columns": columns,
        "n_rows": known[0].n_samples if hasattr(known[0], "n_samples") else len(known[0]),
        "n_features": model.n_features_in_,
        "options": {},
        "file": path.name,
        "by_fit": False,
        "looms_version": saved.metadata["looms_version"],
    }
    whole = Pipeline([("table", before), ("machine", machine)]) if ends else machine
    return SavedModel(whole, metadata)


def _preparation(steps: list[Any]) -> tuple[Any, dict[str, str]]:
    """What comes before the machine, None if it prepares the columns itself; types of columns by
    name, empty if none.
    """
    first = steps[0]
    own = first.preprocessor_ if isinstance(first, Tabular) else None
    if isinstance(own, TablePreprocessor) and hasattr(own, "feature_names_in_"):
        return None, dict.fromkeys(own.kinds_, "")
    named = getattr(first, "feature_names_in_", None)
    if len(steps) == 2 and isinstance(first, TablePreprocessor) and named is not None:
        return first, dict.fromkeys(first.kinds_, "")
    names = None if named is None else [str(name) for name in named]
    rest = Pipeline([(f"step{k}", step) for k, step in enumerate(steps[:-1])])

    def matrix(X: Features) -> Any:
        """What the machine takes, of columns by name; of an array if the model knows no names."""
        if names is not None and not issparse(X):
            absent = [name for name in names if name not in X.columns]
            if absent:
                raise ValueError(
                    f"{len(absent)} of the model's {len(names)} columns are missing: "
                    f"{', '.join(map(repr, absent[:10]))}"
                )
            X = X[names]
        elif not issparse(X):
            X = X.to_numpy(dtype=object if isinstance(first, TablePreprocessor) else float)
        return rest.transform(X) if rest.steps else X

    return FunctionTransformer(matrix), dict.fromkeys(names or (), "")
