"""From options to the model: one table of names, and what is refused before any file is read."""

import shlex
from dataclasses import fields
from inspect import signature

import numpy as np
import pandas as pd
import pytest

from looms import (
    KernelClassifier,
    KernelRegressor,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms._advice import advice_in
from looms.cli._errors import InputError
from looms.cli._model import command_of
from looms.cli._options import OF_MODEL, PANEL_OF, PARAMETERS, in_options
from looms.cli._request import FitRequest, ModelRequest, Prepared
from looms.folds import ForwardSplit, GapKFold
from looms.tables._target import Target

NUMBERS = {"task": "regression"}
CASES = [
    ({}, TabularClassifier()),
    (NUMBERS, TabularRegressor()),
    ({"seed": 3}, TabularClassifier(random_state=3)),
    ({"jobs": 2}, TabularClassifier(n_jobs=2)),
    ({"candidates": ["ard", "rbf"]}, TabularClassifier(["ard", "rbf"])),
    ({"candidates": ["auto"]}, TabularClassifier()),
    ({"candidates": ["auto", "matern32"]}, TabularClassifier(["auto", "matern32"])),
    ({"combine": "best"}, TabularClassifier(combine="best")),
    ({"threshold": "0.3"}, TabularClassifier(threshold=0.3)),
    ({"threshold": "recall=0.9"}, TabularClassifier(threshold="recall=0.9")),
    ({"calibration": "beta"}, TabularClassifier(calibration="beta")),
    ({"calibration": "none"}, TabularClassifier(calibration=None)),
    ({"class_weight": "balanced"}, TabularClassifier(class_weight="balanced")),
    ({"class_weight": "none"}, TabularClassifier()),
    ({"positive": "ill"}, TabularClassifier(pos_label="ill")),
    ({"cv": "10"}, TabularClassifier(cv=10)),
    ({"order": ["low", "high"]}, TabularClassifier()),
    (NUMBERS | {"cv": "5x2"}, TabularRegressor(cv="5x2")),
    ({"target_transform": ["auto"]}, TabularRegressor()),
    ({"target_transform": ["sqrt", "log"]}, TabularRegressor(target=["sqrt", "log"])),
    ({"time": "day"}, TabularClassifier(cv=GapKFold(10))),
    ({"time": "day", "gap": 3, "cv": "4"}, TabularClassifier(cv=GapKFold(4, 3))),
    ({"time": "day", "forward": True, "gap": 3}, TabularClassifier(cv=ForwardSplit(5, 3))),
    ({"groups": "patient", "duplicates": "group", "sample_weight": "w"}, TabularClassifier()),
    (
        {"candidates": ["ard"], "criterion": ["hinge", "wmw"], "n_landmarks": "20"},
        TabularClassifier(
            [KernelClassifier("ard", n_landmarks=20, search=Search(c)) for c in ("hinge", "wmw")]
        ),
    ),
    (
        {"candidates": ["rbf"], "max_iter": 7, "prior": True},
        TabularClassifier([KernelClassifier(search=Search(max_iter=7, prior=True))]),
    ),
    (
        {"loss": "hinge", "search": "pattern", "criterion": ["deviance"]},
        TabularClassifier(
            [KernelClassifier(loss="hinge", search=Search("deviance", method="pattern"))]
        ),
    ),
    (
        {"loss": "squared_hinge", "candidates": ["linear"]},
        TabularClassifier([KernelClassifier("linear", loss="squared_hinge", search=Search())]),
    ),
    (
        NUMBERS | {"candidates": ["rbf"], "search": "grid", "n_landmarks": "none"},
        TabularRegressor([KernelRegressor(n_landmarks=None, search=Search(method="grid"))]),
    ),
]
HINGE = {"loss": "hinge"}


def model_of(options):
    numbers = options.get("task") == "regression" or "target_transform" in options
    return ModelRequest(**options).model(not numbers)


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_options_make_the_model(options, expected):
    model = model_of(options)
    assert type(model) is type(expected)
    assert repr(model.get_params()) == repr(expected.get_params())  # splitters have no equality


@pytest.mark.parametrize("n_rows", [50, 500, 2000])
def test_expert_options_keep_the_candidates_of_auto(n_rows):
    rows = np.empty((n_rows, 0))
    expected = TabularClassifier()._candidates_for(rows)
    model = ModelRequest(max_iter=3, criterion=["press", "wmw"]).model(True, rows)
    assert len(model.candidates) == 2 * len(expected) - (n_rows >= 400)
    assert [*dict.fromkeys(getattr(one, "kernel", None) for one in model.candidates)] == [
        getattr(one, "kernel", None) for one in expected
    ]
    assert {one.search.max_iter for one in model.candidates if hasattr(one, "search")} == {3}


def test_every_option_is_among_the_cases_and_in_a_part_of_the_help():
    options = {field.name for field in fields(ModelRequest)}
    of_the_table = {"target", "drop", "drop_missing_targets"}
    assert {name for case, _ in CASES for name in case} == options - of_the_table
    assert options <= PANEL_OF.keys()


def test_every_parameter_of_the_models_has_its_option():
    parameters = signature(TabularClassifier).parameters.keys()
    parameters |= signature(TabularRegressor).parameters.keys()
    of_python = {"preprocess", "columns", "verbose"}
    assert parameters - of_python == {PARAMETERS.get(name, name) for name in OF_MODEL}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"candidates": ["rfb"]}, "Unknown --candidates 'rfb' (did you mean 'rbf'?)"),
        ({"candidates": ["precomputed"]}, "--candidates precomputed"),
        ({"criterion": ["loss"]}, "Unknown --criterion 'loss'"),
        (NUMBERS | {"criterion": ["wmw"]}, "'press'"),
        ({"prior": True, "search": "grid"}, "--search grid"),
        (HINGE | {"search": "gradient"}, "'gradient'; known are pattern, grid"),
        ({"search": "pattern"}, "'pattern'; known are gradient, grid"),
        (HINGE | {"n_landmarks": "30"}, "landmarks"),
        (HINGE | NUMBERS, "--loss is for classification"),
        (HINGE | {"max_iter": 7}, "without gradients"),
        (NUMBERS | {"threshold": "0.3"}, "--threshold is for classification"),
        (NUMBERS | {"class_weight": "none"}, "--class-weight is for classification"),
        (NUMBERS | {"positive": "a"}, "--positive is for classification"),
        (NUMBERS | {"order": ["low", "high"]}, "--order is for classification"),
        ({"task": "classification", "target_transform": ["log"]}, "--target-transform is for reg"),
        ({"n_landmarks": "0"}, "--n-landmarks"),
        ({"n_landmarks": "many"}, "--n-landmarks"),
        ({"order": ["low", "low"]}, "--order has low more than once"),
        ({"gap": 3}, "--gap goes with --time"),
        ({"forward": True}, "--forward goes with --time"),
        ({"time": "day", "groups": "day"}, "--groups and --time are both day"),
        ({"threshold": "best"}, "'cost=1:5'"),
        ({"threshold": "5"}, "--threshold 5.0 is not"),
    ],
)
def test_what_no_rows_could_mend_is_refused_by_its_option(options, text):
    with pytest.raises(InputError) as refused, advice_in(in_options):
        ModelRequest(**options)
    assert text in str(refused.value)


@pytest.mark.parametrize("command", ["fit", "assess", "compare"])
def test_it_is_refused_before_the_file_is_read(looms, command, one_line):
    one_line(looms(command, "nowhere.csv", "-c", "rfb"), 2, "Unknown --candidates 'rfb'")


@pytest.mark.parametrize("options", [["-c", ""], ["--metric", " , "]])
def test_a_list_of_nothing_is_refused(looms, pets, one_line, options):
    one_line(looms("fit", pets, "-t", "kind", *options), 2, "names nothing")


@pytest.mark.parametrize(
    ("rule", "share", "told"),
    [
        ("recall=0.9", 0.75, True),
        ("f1", 0.75, True),
        ("f1", 0.25, False),
        ("balanced", 0.75, False),
        ("0.5", 0.75, False),
    ],
)
def test_a_positive_class_of_most_rows_is_warned_of(capsys, rule, share, told):
    y, rows = np.where(np.arange(40) < 40 * share, "nein", "ja"), np.arange(40)
    prepared = Prepared(pd.DataFrame({"a": rows}), Target(y, "classification", ""), rows)
    assert ModelRequest(threshold=rule).model_for(prepared).pos_label is None
    text = f"Warning: --threshold {rule} treats nein as the positive class"
    assert capsys.readouterr().err.startswith(text) == told
    assert ModelRequest(threshold=rule, positive="ja").model_for(prepared).pos_label == "ja"
    assert capsys.readouterr().err == ""


def test_the_model_of_a_table_reads_it_as_the_command_did(tmp_path):
    """With its decimal mark; in splits with the kinds of all rows."""
    rows = "".join(f'"{k},12{k % 7}";{"uv"[k % 2]}\n' for k in range(20))
    (tmp_path / "t.csv").write_text(f"a;y\n{rows}")
    request = FitRequest("y", file=tmp_path / "t.csv", decimal=",", positive="u")
    prepared = request.prepare()
    model = request.model_for(prepared)
    assert (model.preprocess.decimal[0], model.pos_label) == (",", "u")
    again = request.model_for(prepared, again=True)
    assert again.preprocess.kinds == prepared.preprocessor.kinds_ == {"a": "number"}


def test_a_command_is_written_as_a_shell_takes_it():
    options = {"candidates": ["rbf", "linear"], "drop": ["a, b", "it's"], "prior": True, "seed": 0}
    command = command_of({"file": "my table.csv", "target": "y", "options": options})
    given = ["--candidates", "rbf,linear", "--drop", "a, b", "--drop", "it's", "--prior"]
    assert shlex.split(command) == ["looms", "fit", "my table.csv", "--target", "y", *given]
