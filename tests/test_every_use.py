"""Every machine with every use: what works, what has no meaning, what is refused.

The outcomes are those of a committed table, which is a page of the documentation, too. Whoever
fills a cell writes both anew:

    python tests/test_every_use.py

Works means here that the use runs and gives what it is for; the tests named in `SHOWN` compare with
refits.
"""

import csv
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from evaluated import evaluated
from sklearn.linear_model import LinearRegression, LogisticRegression
from stacks import stacked_classifier, stacked_regressor
from typer.testing import CliRunner

from looms import (
    KernelClassifier,
    KernelRegressor,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.blocks import ArrayBlocks
from looms.cli import _request
from looms.cli._app import app
from looms.diagnostics import case_deletion, permutation_test
from looms.folds import ForwardSplit, GapKFold
from looms.kernels import RBF
from looms.model_files import load_model, save_model
from looms.optimize._search import StopReason
from looms.report import EffectDisplay, cautions, feature_importance, summary

TABLE = Path(__file__).parents[1] / "benchmarks" / "results" / "models_and_uses.csv"
PAGE = TABLE.parents[2] / "docs" / "reference" / "models_and_uses.md"
N = 24
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
SIGNAL = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * RNG.normal(size=N)
NUMBERS = np.exp(SIGNAL)
CLASSES = np.where(SIGNAL > 0, "yes", "no")
GRADES = pd.Series(pd.qcut(SIGNAL, 3, labels=["low", "middle", "high"]))
GROUPS = np.arange(N) // 3
NEW = RNG.normal(size=(4, 2))

# Machines -------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """Estimators for classes and for numbers, the rows they take, and how to tell them.

    ``ordered`` classes are the target instead of two, if they are given.
    """

    classifier: Callable[..., Any] | None
    regressor: Callable[..., Any] | None
    rows: Callable[[np.ndarray], Any] = np.asarray
    is_it: Callable[[Any], bool] = lambda model: True
    command: tuple[str, ...] | None = ()
    ordered: Any = None


def least_squares(kernel: Any = "rbf", method: str = "gradient", **fixed: Any) -> list[Any]:
    """A classifier and a regressor of one kernel; ``criterion``, ``method`` are of the search."""

    def one(cls: Any, criterion: str = "press", method: str = method, **options: Any) -> Any:
        return cls(kernel, search=Search(criterion, method=method), **fixed, **options)

    return [partial(one, cls) for cls in (KernelClassifier, KernelRegressor)]


def several(
    *candidates: Any,
    kinds: Any = (stacked_classifier, stacked_regressor),
    given: Any = None,
    **fixed: Any,
) -> list[Any]:
    """A stack of classifiers, and of regressors, the second of a pair; ``fixed`` of each kernel."""

    def stack(k: int, criterion: str = "press", method: str = "gradient", **options: Any) -> Any:
        one, search = (KernelClassifier, KernelRegressor)[k], Search(criterion, method=method)
        own = [each[k] if isinstance(each, tuple) else each for each in candidates]
        own = [each if hasattr(each, "fit") else one(each, search=search, **fixed) for each in own]
        return kinds[k](own, **(given or {}), **options)

    return [partial(stack, k) for k in range(2)]


def frame(rows: np.ndarray) -> pd.DataFrame:
    """Numbers with gaps, and text."""
    table = pd.DataFrame(rows, columns=["a", "b"])
    table.loc[table["b"] > 1.2, "b"] = None
    return table.assign(color=np.where(rows.sum(axis=1) > 0, "red", "blue"))


def dask_blocks(rows: np.ndarray) -> Any:
    import dask.array

    return dask.array.from_array(rows, chunks=(16, 2))


def on_landmarks(model: Any) -> bool:
    return model.landmarks_ is not None


def streamed(model: Any) -> bool:
    return on_landmarks(model) and model.X_fit_ is None


def on_grid(model: Any) -> bool:
    return model.selection_.stop_reason is StopReason.GRID


def stacked(model: Any) -> bool:
    """Without folds the best was taken."""
    return model.combine == "stack" and model.choice_units_ is not None


STACK = "linear", RBF(0.5, gamma_bounds="fixed")
OF_BOTH = "-c", "linear", "-c", "rbf"
WITH_SKLEARN = "stack with an estimator of scikit-learn"
ORDERED = "ordered classes"
LANDMARKS = {"n_landmarks": 8}
ON_LANDMARKS = "-c", "rbf", "--n-landmarks", "8"
TABULAR = several(*STACK, kinds=(TabularClassifier, TabularRegressor))
LOG = {"target": ["none", "log"], "preprocess": None}
MACHINES = {
    "full kernel": Machine(*least_squares(), command=("-c", "rbf")),
    "kernel matrix": Machine(
        *least_squares("precomputed"), rows=lambda rows: RBF(0.5)(rows, X), command=None
    ),
    "linear, by features": Machine(*least_squares("linear"), command=("-c", "linear")),
    "landmarks in memory": Machine(
        *least_squares(**LANDMARKS), is_it=on_landmarks, command=ON_LANDMARKS
    ),
    "landmarks, rows in blocks": Machine(
        *least_squares(**LANDMARKS), ArrayBlocks, streamed, (*ON_LANDMARKS, "--memory", "1GB")
    ),
    "landmarks, dask": Machine(*least_squares(**LANDMARKS), dask_blocks, streamed, None),
    "grid": Machine(
        *least_squares(method="grid"), is_it=on_grid, command=("-c", "rbf", "--search", "grid")
    ),
    "stack": Machine(*several(*STACK), is_it=stacked, command=OF_BOTH),
    "stack on landmarks": Machine(
        *several(*STACK, **LANDMARKS),
        is_it=lambda model: stacked(model) and on_landmarks(model),
        command=(*OF_BOTH, "--n-landmarks", "8"),
    ),
    WITH_SKLEARN: Machine(
        *several("rbf", (LogisticRegression(), LinearRegression())),
        is_it=stacked,
        command=None,
    ),
    "support vector machine": Machine(
        least_squares(STACK[1], method="pattern", loss="hinge")[0],
        None,
        command=("--loss", "hinge", "-c", "linear"),
    ),
    "transformed target": Machine(
        None,
        several("linear", kinds=(None, TabularRegressor), given=LOG)[1],
        command=("--task", "regression", "--target-transform", "log"),
    ),
    "data frame of classes": Machine(TABULAR[0], None, frame, stacked, OF_BOTH),
    "data frame of numbers": Machine(None, TABULAR[1], frame, stacked, OF_BOTH),
    ORDERED: Machine(several(*STACK)[0], None, is_it=stacked, command=None, ordered=GRADES),
}


def estimator_of(name: str, kind: str, **options: Any) -> Any:
    machine = MACHINES[name]
    make = machine.classifier if kind == "classes" else machine.regressor
    if make is None:
        raise NotImplementedError(f"not for {kind}")
    return make(**options)


def kind_of(name: str) -> str:
    """What the machine is fitted to where a use is for both."""
    return "numbers" if MACHINES[name].classifier is None else "classes"


def targets_of(name: str, kind: str) -> Any:
    ordered = MACHINES[name].ordered
    if ordered is not None:
        return ordered
    return CLASSES if kind == "classes" else NUMBERS


@cache
def fitted(name: str, kind: str | None = None, groups: bool = False, **options: Any) -> Any:
    """A machine, fitted once for all tests, which only read it."""
    kind = kind or kind_of(name)
    model = estimator_of(name, kind, **options)
    y = targets_of(name, kind)
    more = {"groups": GROUPS} if groups else {}
    model.fit(MACHINES[name].rows(X), y, **more)
    assert MACHINES[name].is_it(model), "another model was fitted"
    return model


# Uses -----------------------------------------------------------------------------


def criterion(name: str) -> None:
    """Of numbers there is one."""
    options = {"criterion": "squared_hinge"} if kind_of(name) == "classes" else {}
    assert np.isfinite(fitted(name, **options).held_out_.outputs).all()


def gradient(name: str) -> None:
    model = fitted(name, method="gradient")
    assert np.isfinite(model.selection_.value)


def grid(name: str) -> None:
    fitted(name, method="grid")


def units_differ(name: str, **options: Any) -> None:
    """Rows are held out as asked: the outputs are others than row by row."""
    kind = "classes" if MACHINES[name].regressor is None else "numbers"
    outputs, alone = (fitted(name, kind, **o).held_out_.outputs for o in (options, {}))
    assert np.isfinite(outputs).all()
    assert not np.allclose(outputs, alone)


def groups(name: str) -> None:
    units_differ(name, groups=True)


def folds(name: str) -> None:
    units_differ(name, cv=5)


def repeated_folds(name: str) -> None:
    units_differ(name, cv="2x3")


def gaps(name: str) -> None:
    units_differ(name, cv=GAPS)


def forward(name: str) -> None:
    units_differ(name, cv=FORWARD)


def nested(name: str) -> None:
    scores = fitted(name).evaluate()
    assert scores.kind.startswith("nested")
    assert all(np.isfinite(value) for value in scores.values())


def threshold(name: str) -> None:
    assert fitted(name, "classes", threshold="f1").threshold_ != fitted(name).threshold_


def probabilities(name: str) -> None:
    p = fitted(name, "classes").predict_proba(MACHINES[name].rows(NEW))
    np.testing.assert_allclose(np.asarray(p).sum(axis=1), 1)


def area(name: str) -> None:
    assert 0.5 < fitted(name, "classes").evaluate(nested=False)["roc_auc"] <= 1


def intervals(name: str, **options: Any) -> None:
    ends = evaluated(fitted(name, "numbers")).predict_interval(new_rows(name), 0.8, **options)
    assert (ends[:, 0] < ends[:, 1]).all()


def scaled(name: str) -> None:
    intervals(name, method="scaled")


def of_other_rows(name: str) -> None:
    intervals(name, density_ratio=(np.linspace(0.5, 2, N), np.ones(4)))


def deviations(name: str) -> None:
    mean, std = fitted(name, "numbers").predict(new_rows(name), return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def standard_error(name: str) -> None:
    errors = fitted(name).predict_standard_error(MACHINES[name].rows(NEW))
    assert (errors >= 0).all()
    assert errors.any()


def sets(name: str) -> None:
    model = evaluated(fitted(name, "classes"))
    assert model.predict_set(new_rows(name), 0.8).shape == (4, len(model.classes_))


def deletion(name: str) -> None:
    assert np.isfinite(case_deletion(fitted(name)).rms_change).all()


def permutation(name: str) -> None:
    assert permutation_test(fitted(name), 19).p_value < 0.2


def importance(name: str) -> None:
    """Of both columns the signal is made of; of a data frame, whole columns."""
    found = feature_importance(fitted(name))
    assert np.isfinite(found.value).all()
    assert found.value.max() > 0


def effect(name: str) -> None:
    """Of the column that the target depends on; of a data frame, also of text."""
    model = fitted(name)
    of = model.classes_[0] if len(getattr(model, "classes_", ())) > 2 else None
    for column in ("b", "color") if name in FRAMES else ("feature 2",):
        found = EffectDisplay.compute(model, column, target=of)
        assert np.isfinite(found.mean).all()
        assert (found.standard_error > 0).all()


def removal(name: str) -> None:
    assert fitted(name).without([0, 7]).loo_.n_samples == N - 2


def addition(name: str) -> None:
    y = targets_of(name, kind_of(name))
    if name == "kernel matrix":
        rows = RBF(0.5)(NEW, np.vstack([X, NEW]))
    else:
        rows = MACHINES[name].rows(NEW)
    assert fitted(name).with_rows(rows, y[:4]).loo_.n_samples == N + 4


def certificate(name: str) -> None:
    streams = fitted(name).X_fit_ is None
    assert fitted(name).certify(**({"X": MACHINES[name].rows(X)} if streams else {})).holds


def doubts(name: str) -> None:
    assert all(caution["text"] for caution in cautions(fitted(name)))


def report(name: str) -> None:
    """The page shows this, as `tests/report/test_html.py` has it."""
    assert summary(fitted(name))["loo"]["scores"]


def model_file(name: str) -> None:
    model = fitted(name)
    trusted = [LogisticRegression] if "scikit-learn" in name else []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        save_model("m.skops", model, trusted=trusted)
        again = load_model("m.skops", trusted=trusted).model
    np.testing.assert_array_equal(again.predict(new_rows(name)), model.predict(new_rows(name)))


def onnx(name: str) -> None:
    from onnxruntime import InferenceSession
    from skl2onnx import to_onnx

    from looms.onnx import register_converters

    register_converters()
    classes = MACHINES[name].regressor is None
    model = fitted(name, "classes" if classes else "numbers")
    graph = to_onnx(model, NEW[:1], options={"zipmap": False} if classes else None)
    outputs = InferenceSession(graph.SerializeToString()).run(None, {"X": NEW})[0]
    expected = model.predict(NEW)
    assert (outputs.ravel() == expected).all() or np.allclose(outputs.ravel(), expected)


def blocks(name: str) -> None:
    model = fitted(name)
    expected = model.predict(MACHINES[name].rows(NEW))
    np.testing.assert_array_equal(model.predict(ArrayBlocks(new_rows(name), size=3)), expected)


def command_line(name: str) -> None:
    options = MACHINES[name].command
    if options is None:
        raise NotImplementedError("no option")
    few = partial(_request.first_pass, n_sample=20)  # of larger tables rows are read in blocks
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        mock.patch.object(_request, "first_pass", few if "blocks" in name else _request.first_pass),
    ):
        y = CLASSES if kind_of(name) == "classes" else NUMBERS
        table = MACHINES[name].rows(X) if "frame" in name else pd.DataFrame(X, columns=["a", "b"])
        table.assign(y=y).to_csv("t.csv", index=False)
        for arguments in (
            ("fit", "t.csv", "-t", "y", *options, "--no-evaluate", "-o", "m.skops"),
            ("predict", "m.skops", "t.csv"),
        ):
            result = CliRunner().invoke(app, arguments)
            if result.exit_code:
                raise RuntimeError(result.stderr.strip().splitlines()[-1])
        assert MACHINES[name].is_it(load_model("m.skops").model), "another model was fitted"


def new_rows(name: str) -> Any:
    """Rows in memory."""
    return MACHINES[name].rows(NEW) if name in ("kernel matrix", *FRAMES) else NEW


SVM, FRAMES = "support vector machine", ("data frame of classes", "data frame of numbers")
FOR_NUMBERS = [name for name, machine in MACHINES.items() if machine.classifier is None]
FOR_CLASSES = [name for name, machine in MACHINES.items() if machine.regressor is None]
GAPS = GapKFold(4, gap=2)
FORWARD = ForwardSplit(3, time=np.random.default_rng(1).permutation(N))
USES = {
    "criterion": criterion,
    "gradient": gradient,
    "grid": grid,
    "groups": groups,
    "folds": folds,
    "repeated folds": repeated_folds,
    "gaps": gaps,
    "forward in time": forward,
    "nested": nested,
    "threshold": threshold,
    "probabilities": probabilities,
    "AUC": area,
    "intervals": intervals,
    "scaled intervals": scaled,
    "weighted intervals": of_other_rows,
    "standard deviations": deviations,
    "standard errors of predictions": standard_error,
    "sets": sets,
    "case deletion": deletion,
    "permutation test": permutation,
    "importance": importance,
    "effect of a column": effect,
    "removal": removal,
    "addition": addition,
    "certificate": certificate,
    "cautions": doubts,
    "report": report,
    "model file": model_file,
    "ONNX": onnx,
    "prediction in blocks": blocks,
    "command line": command_line,
}

#: Tests that compare each use with refits, or with what the machine gives otherwise.
SHOWN = {
    "criterion": "selection/test_objective.py",
    "gradient": "selection/test_objective.py",
    "grid": "selection/test_grid.py",
    "groups": "lssvm/test_left_out.py",
    "folds": "lssvm/test_left_out.py",
    "repeated folds": "lssvm/test_left_out.py",
    "gaps": "lssvm/test_left_out.py",
    "forward in time": "estimators/test_forward.py",
    "nested": "estimators/test_refits.py",
    "threshold": "estimators/test_nested_choice.py",
    "probabilities": "estimators/test_refits.py",
    "AUC": "test_scores.py",
    "intervals": "estimators/test_intervals.py",
    "scaled intervals": "estimators/test_intervals.py",
    "weighted intervals": "estimators/test_density_ratio.py",
    "standard deviations": "estimators/test_standard_deviations.py",
    "standard errors of predictions": "estimators/test_standard_errors.py",
    "sets": "estimators/test_nested_choice.py",
    "case deletion": "diagnostics/test_case_deletion.py",
    "permutation test": "diagnostics/test_permutation.py",
    "importance": "report/test_importance.py",
    "effect of a column": "report/test_effects.py",
    "removal": "estimators/test_updates.py",
    "addition": "estimators/test_updates.py",
    "certificate": "estimators/test_certificate.py",
    "cautions": "report/test_cautions.py",
    "report": "report/test_summary.py",
    "model file": "test_model_files.py",
    "ONNX": "test_onnx.py",
    "prediction in blocks": "test_dask_blocks.py",
    "command line": "cli/test_fit.py",
}

# What has no meaning ---------------------------------------------------------------

OF_CLASSES = dict.fromkeys(["threshold", "probabilities", "AUC", "sets"], "it is for classes")
OF_NUMBERS = dict.fromkeys(
    ["intervals", "scaled intervals", "weighted intervals", "standard deviations"],
    "it is for numbers",
)
NO_MEANING = {
    **{
        (name, use): f"{why}, and the target is a number"
        for name in FOR_NUMBERS
        for use, why in OF_CLASSES.items()
    },
    **{
        (name, use): f"{why}, and the model is of classes"
        for name in FOR_CLASSES
        for use, why in OF_NUMBERS.items()
    },
    (ORDERED, "criterion"): "the others are for labels ±1, and ranks are numbers",
    (ORDERED, "threshold"): "there is one between any two ranks",
    (ORDERED, "AUC"): "errors are distances of ranks",
    (ORDERED, "command line"): "labels in a file have no order",
    (SVM, "gradient"): "its outputs are not smooth in C and the kernel",
    ("grid", "gradient"): "it is the other search",
    **dict.fromkeys(
        [("kernel matrix", use) for use in ("importance", "effect of a column")],
        "its columns are rows, not features",
    ),
    ("kernel matrix", "addition"): "a new row has a kernel value with every row: fit them all",
    ("kernel matrix", "ONNX"): "a graph takes features, not kernel values",
    ("kernel matrix", "command line"): "a table has features, not kernel values",
    ("landmarks, dask", "command line"): "it reads files in blocks by itself",
    **dict.fromkeys(
        [(name, "prediction in blocks") for name in FRAMES], "blocks hold numbers, and no text"
    ),
    (WITH_SKLEARN, "command line"): "an option names kernels, not objects of Python",
}
NEEDS = {"landmarks, dask": "dask", "ONNX": "onnxruntime"}


def outcome(name: str, use: str) -> str:
    """What a cell says; it runs in any case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            USES[use](name)
        found = "works"
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        found = f"refused: {text.partition('. ')[0][:150]}"
    if (name, use) in NO_MEANING:
        assert found != "works", f"{use} of {name} works: it has a meaning"
        return f"no meaning: {NO_MEANING[name, use]}"
    return found


def table() -> Iterator[list[str]]:
    yield ["model", *USES]
    for name in MACHINES:
        yield [name, *(outcome(name, use) for use in USES)]


def committed() -> dict[tuple[str, str], str]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        next(file)  # the command
        return {(row["model"], use): row[use] for row in csv.DictReader(file) for use in USES}


def page() -> str:
    """The page of the documentation, from the committed table."""
    said, uses_of = committed(), {}
    for use in USES:
        reasons: dict[str, list[str]] = {}
        for name in MACHINES:
            if said[name, use] != "works":
                reasons.setdefault(said[name, use].partition(": ")[2], []).append(name)
        for why, names in reasons.items():
            uses_of.setdefault(("; ".join(names), why), []).append(use)
    lines = [HEAD, "| model | cannot be used for | because |", "|---|---|---|"]
    lines += [f"| {names} | {', '.join(uses)} | {why} |" for (names, why), uses in uses_of.items()]
    lines += ["", TESTS, "| use | tests |", "|---|---|"]
    for test in dict.fromkeys(SHOWN.values()):
        uses = ", ".join(use for use in SHOWN if SHOWN[use] == test)
        lines.append(f"| {uses} | `tests/{test}` |")
    return "\n".join([*lines, ""])


HEAD = f"""# Models and uses

Each of these models works with every use below, with few exceptions. `tests/test_every_use.py`
tries every pair, and makes this page and
{{download}}`its table <../../benchmarks/results/models_and_uses.csv>`.

Models: {"; ".join(MACHINES)}.

## Exceptions
"""
TESTS = """## Uses

These tests compare a use with refits, or with what the model gives otherwise.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_every_use_is_as_the_table_says(name: str) -> None:
    """The words of a refusal may change, and are those of the table when it was written."""
    said, found = committed(), {}
    for use in USES:
        needed = NEEDS.get(name) or NEEDS.get(use)
        if needed is None or find_spec(needed):
            found[use] = outcome(name, use)
    kind = {use: text.partition(":")[0] for use, text in found.items()}
    assert kind == {use: said[name, use].partition(":")[0] for use in found}, found


def test_the_page_is_made_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    sys.path.insert(0, str(TABLE.parents[2]))
    from benchmarks._report import header_line

    rows = [*table()]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(header_line("python tests/test_every_use.py") + "\n")
        csv.writer(file, lineterminator="\n").writerows(rows)
    PAGE.write_text(page(), encoding="utf-8")
