"""looms predict, score, show and export: a saved model, and its predictions for new rows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from json import dumps as json_text
from pathlib import Path
from typing import Annotated

import numpy as np
from sklearn.metrics import confusion_matrix

from looms._optional import require
from looms._words import count
from looms.cli._errors import InputError
from looms.cli._model import (
    CoverageRequest,
    SavedModel,
    blocks_for,
    load,
    rows_for,
    rows_of,
    scored,
)
from looms.cli._options import Bounds, Bytes, Source, command
from looms.cli._output import (
    catch_messages,
    check_can_write,
    check_can_write_csv,
    console,
    escape_formulas,
    note,
    note_formulas,
    output_in_parts,
    print_blocks,
    show_json,
    write_output,
    writing,
)
from looms.cli._scores import (
    choice_of,
    facts_of,
    plain_scores,
    show_choice,
    show_columns,
    show_request,
)
from looms.cli.fit import PAGE, check_report
from looms.estimators._encoding import decides_one_class
from looms.estimators._prevalence import PrevalenceClassifier
from looms.model_files._files import is_model_file
from looms.onnx import register_converters
from looms.report import Validation
from looms.report.overview import table_of_confusion, table_of_scores, units_of
from looms.report.text import plain
from looms.tables._target import text

#: First line of the output: columns that identify the rows, then those of predictions.
_HEADER = r"(.+,)?prediction(,decision_.*|,lower,upper)?$"


@command
def predict(
    model: Path,
    *,
    output: Path | None = None,
    request: CoverageRequest,
    id: str | None = None,
    keep: list[str] | None = None,
    prevalence: Annotated[list[str] | None, "CLASS=SHARE"] = None,
    digits: Annotated[int, Bounds(1, 17)] = 6,
    source: Source,
    force: bool = False,
) -> None:
    """Predict rows: write a CSV with predictions, decision values and probabilities.

    Each row begins with its number in FILE, or the column --id, to join it to FILE.

    decision_CLASS is the decision value: the higher, the likelier the class. With two classes there
    is one column, for the positive one: --positive of the fit, or the later in order. Decision
    values make the prediction, which need not be the class with the largest probability_CLASS. If
    one class is predicted whatever the output, they are far from zero, and a note says so.

    --confidence-level adds an interval from lower to upper, or a set: labels with | between them,
    none for a row that is typical of no class. They are a little too small if the model was not
    tuned again without each row, as looms fit says.

    --prevalence gives probabilities and predictions for rows among which a class is rarer, or
    more common, than in the fit, but looks the same: Bayes' rule. decision_CLASS is then the log
    odds or, for several classes, the log probability.

    Parameters
    ----------
    file
        The rows to predict.
    output
        CSV file to write; without it, or as -, standard output.
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
    check_order("predict", model, source.file)
    output = None if str(output) == "-" else output
    check_can_write_csv(output, force, source.file, model, holds=_HEADER)
    saved = load(model, source.max_bytes)
    with catch_messages():
        request.prepare(saved, model)
    moved = prevalence_model(saved, model, prevalence) if prevalence else None
    prepared, coverage = saved.own(), request.for_model(saved)
    kept = [*([] if id is None else [id]), *(keep or [])]
    if prevalence and request.confidence_level is not None and not request.class_conditional:
        note("--confidence-level holds for the shares of the fit; with --class-conditional for any")
    if request.confidence_level is not None and saved.metadata["options"].get("time"):
        note("--confidence-level comes from single held-out rows; later ones may be covered less")
    pandas = require("pandas", "Writing predictions")
    style = {"index": False, "float_format": f"%.{digits}g"}
    n_rows = n_empty = n_changed = 0
    ids = []
    with catch_messages(), output_in_parts(output) as write:
        for table in blocks_for(saved, source, kept):
            first, n_rows = n_rows, n_rows + table.X.shape[0]
            numbers = {"row": range(first + 1, n_rows + 1)} if id is None else {}
            rows, new = numbers | table.kept, rows_of(saved, table.X)
            ids.append(pandas.Series(() if id is None else rows[id]))
            outputs = prepared._columns(*new, **coverage)
            if moved is not None:
                p = [outputs[f"probability_{label}"] for label in saved.classes]
                outputs |= moved._columns(np.column_stack(p))
            for name in rows.keys() & outputs.keys():
                raise InputError(f"predict writes a column {name!r} of its own; rename it in FILE")
            n_empty += int(sum(label == "" for label in outputs.get("set", ())))
            frame = pandas.DataFrame(rows | outputs)
            part, n = escape_formulas(frame, header=not first, **style)
            write(part)
            n_changed += n
    note_formulas(n_changed)
    named = pandas.concat(ids)
    if n_alike := int((named.duplicated(keep=False) | named.eq("")).sum()):
        note(
            f"--id {id} does not tell {n_alike} of {n_rows} rows apart: it is missing there, or "
            "the same in several rows; without --id rows are numbered"
        )
    decided = saved.last if saved.is_classifier and moved is None else None
    if decided and decides_one_class(decided.threshold_, decided.held_out_.outputs):
        note(
            "the model predicts one class for all rows: no output has the probability that the "
            "other is predicted from, and decision values are far from zero; --digits 17 tells "
            "them apart"
        )
    if n_empty:
        note(f"{n_empty} of {n_rows} sets are empty: such a row is typical of no class of the fit")
    saved.tell_remarks()
    if output is not None:
        note(f"{count(n_rows, 'prediction')} in {output}")


@command
def score(
    model: Path,
    *,
    drop_missing_targets: bool = False,
    report: Path | None = None,
    json: bool = False,
    source: Source,
    force: bool = False,
) -> None:
    """Score the model on rows whose target is known.

    The column that weighted the rows of the fit weights these too, if FILE has it.

    Parameters
    ----------
    file
        Rows with the target.
    report
        HTML page with these scores beside the held-out ones and, for two classes with
        probabilities, their calibration and a decision curve.

    Examples
    --------
    looms score clinic.looms.skops new.csv
    looms score clinic.looms.skops new.csv --report new.html
    looms score clinic.looms.skops new.csv --json
    looms score clinic.looms.skops new.csv --drop-missing-targets
    """
    check_order("score", model, source.file)
    check_report(report, None)
    if report is not None:
        check_can_write(report, force, source.file, model, option="--report", holds=PAGE)
    saved = load(model, source.max_bytes)
    table = rows_for(saved, source, drop_missing=drop_missing_targets)
    made = scored(saved, table, source.file)
    values, outputs, _, _, scores, baselines = made
    if report is not None:
        remarks = [] if saved.unseen is None else [each.text for each in saved.unseen.notes()]
        title = " on ".join(filter(None, [saved.metadata["target"], source.file.name]))
        page = Validation(facts_of(saved).model, made, remarks, title)
        with writing(report, "--report"):
            page.report(report)
        note(f"the report is in {report}")
    n_rows = table.X.shape[0]
    if json:
        show_json(plain({"n_rows": n_rows, "scores": plain_scores(scores, baselines)}))
        return
    rows = f"{count(n_rows, 'row')} of {source.file.name}"
    print_blocks(table_of_scores({rows: scores}, baselines, len(saved.classes)))
    if not saved.is_classifier and saved.metadata["target"]:
        print_blocks(units_of(saved.metadata["target"]))
    if saved.is_classifier:
        fitted, classes, truth = saved.last.fitted_, text(saved.classes), text(values)
        labels = [*classes[fitted.outcome.in_order], *sorted(set(truth) - set(classes))]
        predicted = text(fitted.prediction_columns(outputs)["prediction"])
        counts = confusion_matrix(truth, predicted, labels=labels)
        print_blocks(table_of_confusion(counts, labels, width=console().width))


@command
def show(model: Path, *, json: bool = False, max_bytes: Bytes = Source.max_bytes) -> None:
    """Show the options, the candidates, what was selected, and the held-out scores.

    Examples
    --------
    looms show clinic.looms.skops
    looms show clinic.looms.skops --json
    looms show clinic.looms.skops --max-bytes 4000000000
    """
    saved = load(model, max_bytes)
    facts = facts_of(saved)
    if json:
        show_json(facts.summary)
        return
    show_request(saved.metadata)
    if saved.table is not None and saved.table.kinds_:
        show_columns(saved.table.kinds_)
    show_choice(saved, facts)
    if facts.model.fitted.candidates:
        note(choice_of(saved, facts))


@command
def export(
    model: Path,
    *,
    output: Path | None = None,
    max_bytes: Bytes = Source.max_bytes,
    force: bool = False,
) -> None:
    """Write a model as an ONNX graph, which takes prepared columns.

    The graph does not take the columns of the table, but the prepared ones: numbers without gaps,
    scaled, and a column for each category. It has their names, in order, in its metadata. Prepare
    new rows in Python, by looms.load(MODEL).preprocessor_.transform(table).

    A model whose target was transformed cannot be exported: fit it with --target-transform none.
    Where looms predicts no number below zero, since no target is, the graph does; a note says so.

    Parameters
    ----------
    output
        File to write, by default the name of MODEL + .onnx.

    Examples
    --------
    looms export clinic.looms.skops
    looms export clinic.looms.skops --output clinic.onnx
    """
    output = output or Path(f"{model.name.removesuffix('.skops').removesuffix('.looms')}.onnx")
    check_can_write(output, force, model, holds=r"[\s\S]*skl2onnx")
    saved = load(model, max_bytes)
    transform = getattr(saved.last, "transform_", "none")
    if transform != "none":
        raise InputError(
            f"{model}: the model predicts the {transform} of the target, which a graph cannot turn "
            "into the target; fit it with --target-transform none, or use looms predict"
        )
    to_onnx = require("skl2onnx", "looms export", "onnx").to_onnx
    with catch_messages(prefix=f"{model}: "):
        fitted = saved.own()
        register_converters()
        options = {"zipmap": False} if saved.is_classifier else {}
        rows = np.zeros((1, fitted.n_features_in_))
        graph = to_onnx(fitted, rows, options={id(fitted): options})
    if saved.table is not None:
        names = list(map(str, saved.table.get_feature_names_out()))
        graph.metadata_props.add(key="columns", value=json_text(names))
    write_output(output, graph.SerializeToString())
    note(f"the graph is in {output}, of {count(fitted.n_features_in_, 'prepared column')}")
    if saved.steps:
        steps = ".preprocessor_" if hasattr(saved.model, "preprocessor_") else "[:-1]"
        prepare = f"looms.load({str(model)!r}){steps}.transform(table)"
        note(f"the graph does not prepare columns; do that in Python: {prepare}")


def check_order(command: str, model: Path, file: Path) -> None:
    """Refuse a file and a model in the wrong order, with the right one."""
    if file.is_file() and is_model_file(file) and not (model.is_file() and is_model_file(model)):
        right = shlex.join(["looms", command, str(file), str(model)])
        raise InputError(f"{file} is the model: it comes first, as in {right}")


def prevalence_model(
    saved: SavedModel, path: Path, prevalence: Sequence[str]
) -> PrevalenceClassifier:
    """The model of prepared rows, at the class shares that options give."""
    if not hasattr(saved.own(), "predict_proba"):
        raise InputError(f"--prevalence needs probabilities of classes, and {path} has none")
    labels = {str(label): label for label in saved.classes.tolist()}
    shares = {}
    for option in prevalence:
        name, equals, share = option.rpartition("=")
        try:
            shares[labels.get(name, name)] = float(share if equals else "")
        except ValueError:
            raise InputError(f"--prevalence {option} is not CLASS=SHARE, as ill=0.01 is") from None
    model = PrevalenceClassifier(saved.own(), shares)
    with catch_messages():
        _ = model.prevalence_
    return model
