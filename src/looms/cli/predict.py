"""looms predict, score, show and export: a saved model, and its predictions for new rows."""

from __future__ import annotations

import json as json_format
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.metrics import confusion_matrix

from looms import at_prevalence
from looms._optional import require
from looms._words import count, listed
from looms.cli._errors import InputError
from looms.cli._model import (
    SavedModel,
    blocks_for,
    choice_of,
    facts_of,
    load,
    options_text,
    plain_scores,
    rows_for,
    rows_of,
    scored,
    show_choice,
    tell,
)
from looms.cli._options import REMEDIES, Bounds, Bytes, command
from looms.cli._output import (
    check_can_write,
    check_can_write_csv,
    console,
    escape_formulas,
    note,
    note_formulas,
    output_in_parts,
    print_blocks,
    refused,
    show_cautions,
    show_json,
    write_output,
    writing,
)
from looms.cli._source import Source
from looms.cli.fit import check_report
from looms.estimators._encoding import decides_one_class
from looms.model_files._files import is_model_file
from looms.onnx import register_converters
from looms.report import Validation
from looms.report._cautions import cautions_of_fit
from looms.report.model import model_of
from looms.report.overview import MOST_COLUMNS, table_of_confusion, table_of_scores, units_of
from looms.report.text import plain
from looms.tables._target import text

#: First line of the output: columns that identify the rows, then those of predictions.
_HEADER = r"(.+,)?prediction(,decision_.*|,lower,upper)?$"


@command
def predict(
    model: Path,
    *,
    output: Path | None = None,
    confidence_level: float | None = None,
    method: Literal["plus", "minmax", "scaled"] | None = None,
    class_conditional: bool = False,
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
    confidence_level
        Share of rows to cover, such as 0.9: adds lower and upper, or a set of labels.
    method
        Intervals: jackknife+ (default), minmax, or scaled.
    class_conditional
        Sets that cover this share of every class.
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
    for name, value in {"--method": method, "--class-conditional": class_conditional}.items():
        if value and confidence_level is None:
            raise InputError(f"{name} goes with --confidence-level, such as 0.9")
    check_order("predict", model, source.file)
    output = None if str(output) == "-" else output
    check_can_write_csv(output, force, source.file, model, holds=_HEADER)
    saved = load(model, source.max_bytes)
    coverage = coverage_of(saved, model, confidence_level, method, class_conditional)
    moved = at_shares(saved, model, prevalence) if prevalence else None
    if confidence_level is not None and prevalence and not class_conditional:
        note("--confidence-level holds for the shares of the fit; with --class-conditional for any")
    if confidence_level is not None and saved.options.get("time"):
        note("--confidence-level comes from single held-out rows; later ones may be covered less")
    pandas, prepared = require("pandas", "Writing predictions"), saved.own()
    style = {"index": False, "float_format": f"%.{digits}g"}
    n_rows = n_empty = n_changed = 0
    ids: list[str | None] = []
    with refused(), output_in_parts(output) as write:
        for table in blocks_for(saved, source, [*([] if id is None else [id]), *(keep or [])]):
            first, n_rows = n_rows, n_rows + table.X.shape[0]
            numbers = {"row": range(first + 1, n_rows + 1)} if id is None else {}
            rows = numbers | table.kept
            ids += [] if id is None else table.kept[id]
            outputs = prepared._columns(*rows_of(saved, table.X), **coverage)
            if moved is not None:
                p = [outputs[f"probability_{label}"] for label in saved.classes]
                outputs |= moved._columns(np.column_stack(p))
            for name in rows.keys() & outputs.keys():
                raise InputError(f"predict writes a column {name!r} of its own; rename it in FILE")
            n_empty += int(sum(label == "" for label in outputs.get("set", ())))
            part, n = escape_formulas(pandas.DataFrame(rows | outputs), header=not first, **style)
            write(part)
            n_changed += n
    note_formulas(n_changed)
    named = pandas.Series(ids, dtype=object)
    if n_alike := int((named.duplicated(keep=False) | named.eq("")).sum()):
        note(
            f"--id {id} does not tell {n_alike} of {n_rows} rows apart: it is missing there, or "
            "the same in several rows; without --id rows are numbered"
        )
    decides = saved.is_classifier and moved is None
    if decides and decides_one_class(saved.last.threshold_, saved.last.held_out_.outputs):
        note(
            "the model predicts one class for all rows: no output has the probability that the "
            "other is predicted from, and decision values are far from zero; --digits 17 tells "
            "them apart"
        )
    if n_empty:
        note(f"{n_empty} of {n_rows} sets are empty: such a row is typical of no class of the fit")
    tell(saved.remarks)
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
        probabilities, their calibration, which is printed too, and a decision curve.

    Examples
    --------
    looms score clinic.looms.skops new.csv
    looms score clinic.looms.skops new.csv --report new.html
    looms score clinic.looms.skops new.csv --json
    looms score clinic.looms.skops new.csv --drop-missing-targets
    """
    check_order("score", model, source.file)
    check_report(report, None, force, source.file, model)
    saved = load(model, source.max_bytes)
    table = rows_for(saved, source, drop_missing=drop_missing_targets)
    made, remarks = scored(saved, source, table)
    values, outputs, _, _, scores, baselines = made
    more, calibration = dict[str, Any](), list[str]()
    if report is not None:
        title = " on ".join(filter(None, [saved.metadata["target"], source.file.name]))
        page = Validation(facts_of(saved).model, made, [each.text for each in remarks], title)
        with writing(report, "--report"):
            page.report(report)
        note(f"the report is in {report}")
        more, calibration = {"recalibration": page["recalibration"]}, page.calibration
    n_rows = table.X.shape[0]
    if json:
        show_json(plain({"n_rows": n_rows, "scores": plain_scores(scores, baselines)} | more))
        return
    rows = f"{count(n_rows, 'row')} of {source.file.name}"
    print_blocks(table_of_scores({rows: scores}, baselines, len(saved.classes)), *calibration)
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
    fit, echo = saved.metadata, console().print
    task = "Classification" if saved.is_classifier else "Regression"
    task += f" of {fit['target']!r}" if fit["target"] else ""
    size = f"{count(saved.n_rows, 'row')}, {count(saved.model.n_features_in_, 'feature')}"
    by_looms = f"by looms {fit['looms_version']}"
    if saved.by_fit:
        echo(f"{task}, {fit['file']}: {size}")
        echo(f"Options: {options_text(saved.options) or 'all at their defaults'}")
        seconds, sklearn = f"{fit['seconds']:.1f} s", fit["sklearn_version"]
        echo(f"Fitted {fit['date']} in {seconds} {by_looms}, scikit-learn {sklearn}")
    else:
        echo(f"{task}: {size}; saved {by_looms}")
    if saved.table is not None and saved.table.kinds_:
        of_kind: dict[str, list[str]] = {}
        for name, kind in saved.table.kinds_.items():
            of_kind.setdefault(kind, []).append(name)
        kinds = (f"{kind} {listed(names, MOST_COLUMNS)}" for kind, names in of_kind.items())
        comma = "; numbers with a decimal comma" if saved.table.kinds_.decimal == "," else ""
        echo(f"Columns: {'; '.join(kinds)}{comma}")
    show_choice(saved, facts)
    show_cautions(cautions_of_fit(facts.model, facts.remarks))
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
    if saved.last.fitted_.outcome.decides and not saved.last.fitted_.outcome.labeled:
        raise InputError(f"{model}: ordered classes have no graph; use looms predict")
    to_onnx = require("skl2onnx", "looms export", "onnx").to_onnx
    with refused(f"{model}: "):
        fitted = saved.own()
        register_converters()
        options = {"zipmap": False} if saved.is_classifier else {}
        rows = np.zeros((1, fitted.n_features_in_))
        graph = to_onnx(fitted, rows, options={id(fitted): options})
    if saved.table is not None:
        names = list(map(str, saved.table.get_feature_names_out()))
        graph.metadata_props.add(key="columns", value=json_format.dumps(names))
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


def coverage_of(
    saved: SavedModel,
    path: Path,
    confidence_level: float | None,
    method: str | None,
    class_conditional: bool,
) -> dict[str, Any]:
    """Options of intervals or sets as predictions take them; refuses those of the other task.

    The models that the file does not hold are made. Nothing is tuned: they are the closed forms of
    the model that there is.
    """
    what, task, name, other = "intervals", "regression", "--class-conditional", "classification"
    how, wrong = dict[str, Any](method=method or "plus"), class_conditional
    if saved.is_classifier:
        what, task, name, other = "sets", other, "--method", task
        how, wrong = {"class_conditional": class_conditional}, method is not None
    if wrong:
        raise InputError(f"{name} is for {other}, but {path} is for {task}")
    if confidence_level is None:
        return {"confidence_level": None}
    model, remedy = saved.last, REMEDIES["evaluate"]
    if not model.fitted_.has_rows:
        why = "the file holds no training rows, since these were in blocks"
        raise InputError(f"{path}: {why}, and --confidence-level needs them")
    nested = "nested" in model._scores
    if not nested and model.fitted_.tuned:
        if not model._scores:
            tuned = "the model was tuned but not evaluated"
            raise InputError(f"{path}: {tuned}, and --confidence-level needs {remedy}")
        mends = f"; {remedy} mends that" if model_of(saved.model).can_evaluate else ""
        tuned = "the model was tuned on the rows that they come from"
        note(f"{what} cover a little less than the level, because {tuned}{mends}")
    with refused():
        model.evaluate(nested=nested)
        if nested and method == "scaled":
            model.evaluate(nested=False)
    return {"confidence_level": confidence_level, **how}


def at_shares(saved: SavedModel, path: Path, prevalence: Sequence[str]) -> Any:
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
    with refused():
        return at_prevalence(saved.own(), shares)
