"""From options to the estimator, without a fit; what is refused before any file is read."""

from dataclasses import fields

import pytest

from looms import (
    SVCCV,
    KernelClassifier,
    KernelRegressor,
    NonconformityClassifier,
    Search,
    TransformedTargetRegressorCV,
)
from looms.cli._errors import InputError, in_options
from looms.cli._request import MachineRequest
from looms.estimators import CandidatesClassifier
from looms.folds import GapKFold
from looms.threshold import Cost, Recall

CASES = [
    ({}, KernelClassifier()),
    ({"task": "regression"}, KernelRegressor()),
    ({"machine": "svm"}, SVCCV()),
    ({"machine": "nonconformity"}, NonconformityClassifier(random_state=0)),
    ({"random_state": 3}, KernelClassifier(random_state=3)),
    ({"kernel": ["ard"]}, KernelClassifier("ard")),
    ({"kernel": ["linear", "rbf"]}, CandidatesClassifier(["linear", "rbf"], combine="best")),
    (
        {"criterion": ["hinge", "wmw"]},
        CandidatesClassifier(
            [KernelClassifier(k, search=Search(c)) for k in ["rbf"] for c in ["hinge", "wmw"]],
            combine="best",
        ),
    ),
    ({"criterion": ["ber"], "machine": "svm"}, SVCCV(criterion="ber")),
    ({"optimizer": "scg"}, KernelClassifier(search=Search(optimizer="scg"))),
    ({"threshold": "0"}, KernelClassifier(calibration=None)),
    ({"threshold": "recall=0.9"}, KernelClassifier(threshold=Recall(0.9))),
    ({"threshold": "cost=1:5", "machine": "svm"}, SVCCV(threshold=Cost(1.0, 5.0))),
    ({"calibration": "beta"}, KernelClassifier(calibration="beta")),
    ({"calibration": "none"}, KernelClassifier(calibration=None)),
    ({"calibration": "none", "machine": "svm"}, SVCCV(probability=None)),
    ({"calibration": "sigmoid", "machine": "svm"}, SVCCV(probability="loo")),
    ({"weight": "balanced"}, KernelClassifier(class_weight="balanced")),
    ({"weight": "balanced", "machine": "svm"}, SVCCV(class_weight="balanced")),
    ({"weight": "none"}, KernelClassifier()),
    ({"max_iter": 7}, KernelClassifier(search=Search(max_iter=7))),
    ({"prior": True}, KernelClassifier(search=Search(prior=True))),
    ({"copies": "together"}, KernelClassifier()),
    ({"cv": "10"}, KernelClassifier(cv=10)),
    ({"cv": "5x2", "task": "regression"}, KernelRegressor(cv="5x2")),
    ({"cv": "4", "machine": "svm"}, SVCCV(cv=4)),
    ({"cv": "5x2", "machine": "nonconformity"}, NonconformityClassifier(validation="5x2")),
    ({"combine": "stack"}, CandidatesClassifier(["rbf"])),
    ({"search": "grid"}, KernelClassifier(search=Search(method="grid"))),
    ({"search": "grid", "machine": "svm"}, SVCCV(search="grid")),
    ({"nested": "folds"}, KernelClassifier()),
    ({"nested": "none", "machine": "svm"}, SVCCV()),
    ({"rank": "20"}, KernelClassifier(n_landmarks=20)),
    ({"rank": "auto"}, KernelClassifier(n_landmarks="auto")),
    ({"rank": "20", "kernel": ["auto"]}, CandidatesClassifier()),
    (
        {"rank": "20", "search": "grid"},
        KernelClassifier(n_landmarks=20, search=Search(method="grid")),
    ),
    ({"rank": "20", "nested": "folds"}, KernelClassifier(n_landmarks=20)),
    ({"rank": "20", "cv": "5x2"}, KernelClassifier(n_landmarks=20, cv="5x2")),
    ({"rank": "20", "copies": "together"}, KernelClassifier(n_landmarks=20)),
    (
        {"task": "regression", "target_transform": ["auto"], "nested": "none", "cv": "5"},
        TransformedTargetRegressorCV(KernelRegressor(cv=5)),
    ),
    (
        {"task": "regression", "target_transform": ["sqrt", "log"]},
        TransformedTargetRegressorCV(KernelRegressor(), ["sqrt", "log"]),
    ),
    ({"time": "day"}, KernelClassifier(cv=GapKFold(10))),
    ({"time": "day", "machine": "svm"}, SVCCV(cv=GapKFold(10))),
    ({"time": "day", "gap": 3, "cv": "4"}, KernelClassifier(cv=GapKFold(4, 3))),
    ({"time": "day", "nested": "folds"}, KernelClassifier(cv=GapKFold(10))),
    ({"time": "day", "kernel": ["auto"]}, CandidatesClassifier(cv=GapKFold(10))),
    ({"time": "day", "combine": "stack"}, CandidatesClassifier(["rbf"], cv=GapKFold(10))),
]


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_options_make_the_estimator(options, expected):
    estimator = MachineRequest(**options).estimator(options.get("task") != "regression")
    assert type(estimator) is type(expected)
    wanted = expected.get_params(deep=False)
    if "random_state" in wanted:
        wanted["random_state"] = options.get("random_state", 0)
    assert repr(estimator.get_params(deep=False)) == repr(wanted)  # splitters have no equality


def test_every_option_is_among_the_cases():
    options = {field.name for field in fields(MachineRequest)}
    assert {name for case, _ in CASES for name in case} == options - {"groups"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kernel": ["rfb"]}, "Unknown --kernel 'rfb'; known are linear"),
        ({"kernel": ["precomputed"]}, "--kernel precomputed is for Python"),
        ({"kernel": ["auto", "rbf"]}, "'auto' works only with --machine lssvm, and not in a list"),
        ({"kernel": ["auto"], "machine": "svm"}, "'auto' works only with --machine lssvm"),
        ({"criterion": ["loss"]}, "Unknown --criterion 'loss'; known are press"),
        ({"criterion": ["loss"], "machine": "svm"}, "'loss'; known are log_likelihood, error, ber"),
        ({"criterion": ["wmw"], "task": "regression"}, "judges classes; for regression use"),
        ({"criterion": ["ber", "error"], "machine": "svm"}, "svm takes only one --criterion"),
        ({"criterion": ["press", "wmw"], "search": "grid"}, "--search grid compares its candidat"),
        ({"prior": True, "search": "grid"}, "give one criterion and no --prior"),
        ({"search": "gradient", "machine": "svm"}, "--search must be 'pattern' or 'grid'"),
        ({"search": "pattern"}, "Unknown --search 'pattern'; known are gradient, grid"),
        ({"machine": "svm", "task": "regression"}, "--machine svm is for classification"),
        ({"threshold": "0", "task": "regression"}, "--threshold is for classification, but this"),
        ({"weight": "none", "task": "regression"}, "--weight is for classification, but this"),
        ({"optimizer": "scg", "machine": "svm"}, "--optimizer is for --machine lssvm, not for svm"),
        ({"max_iter": 3, "machine": "svm"}, "--max-iter is for --machine lssvm, not for svm"),
        ({"copies": "together", "machine": "svm"}, "--copies is for --machine lssvm, not for svm"),
        ({"combine": "best", "machine": "svm"}, "--combine is for --machine lssvm, not for svm"),
        ({"rank": "9", "machine": "svm"}, "--rank is for --machine lssvm, not for svm"),
        ({"calibration": "beta", "machine": "svm"}, "svm has sigmoid or none"),
        ({"weight": "none", "machine": "nonconformity"}, "is for --machine lssvm or svm, not for"),
        ({"groups": "a", "machine": "nonconformity"}, "--groups is for --machine lssvm or svm"),
        ({"time": "a", "machine": "nonconformity"}, "--time is for --machine lssvm or svm"),
        ({"rank": "0"}, "--rank must be a positive integer, 'auto' or None, got 0"),
        ({"rank": "many"}, "--rank must be a positive integer, 'auto' or None, got 'many'"),
        ({"gap": 3}, "--gap goes with --time"),
        ({"time": "day", "groups": "day"}, "--groups and --time are both day"),
    ],
)
def test_what_no_rows_could_mend_is_refused_by_its_option(options, text):
    with pytest.raises(InputError) as refused:
        MachineRequest(**options)
    assert text in in_options(f"Error: {refused.value}")


@pytest.mark.parametrize("command", ["fit", "assess"])
def test_it_is_refused_before_the_file_is_read(looms, command, one_line):
    one_line(looms(command, "nowhere.csv", "-k", "rfb"), 2, "Unknown --kernel 'rfb'")
