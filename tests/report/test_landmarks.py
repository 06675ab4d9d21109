"""What a report says of a machine on landmarks, with its training rows and without them."""

import pickle
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from looms import KernelClassifier, KernelRegressor
from looms.blocks import ArrayBlocks
from looms.diagnostics import case_deletion
from looms.report import (
    CaseDeletionDisplay,
    ImportanceDisplay,
    RelevanceDisplay,
    SearchPathDisplay,
    cautions,
    summary,
    summary_schema,
)
from looms.report.facts import Facts
from looms.report.page import render

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X = RNG.normal(size=(250, 3))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=len(X))
CLASSES = np.where(SIGNAL > 0, "a", "b")


@pytest.fixture(scope="module")
def with_rows():
    model = KernelRegressor(n_landmarks=30).fit(X, SIGNAL)
    return model, summary(model), render(Facts(model))


@pytest.fixture(scope="module")
def without_rows():
    model = KernelClassifier("ard", n_landmarks=30).fit(ArrayBlocks(X), CLASSES)
    model = pickle.loads(pickle.dumps(model))  # without its rows
    return model, summary(model), render(Facts(model))


def test_with_training_rows_each_is_left_out(with_rows):
    model, report, page = with_rows
    assert report["features"]["rows"][0]["importance"] > 0
    assert report["samples"]["criterion"] == "press"
    assert all(row["rms_change"] > 0 for row in report["samples"]["rows"])
    assert "Moves others by" in page
    assert "Change of <bdi>" in page
    assert "by the whole kernel matrix" in page
    found = case_deletion(model)
    for kind in ("criterion_change", "largest_change"):
        display = CaseDeletionDisplay.compute(model, kind=kind)
        np.testing.assert_array_equal(display.value, getattr(found, kind))


def test_without_training_rows_the_page_has_what_held_out_outputs_tell(without_rows):
    model, report, page = without_rows
    pytest.importorskip("jsonschema").validate(report, summary_schema())
    rows = report["features"]["rows"]
    assert [row["importance"] for row in rows] == [None] * 3
    assert sum(row["relevance"] for row in rows) == pytest.approx(1.0)
    assert "Rise when permuted" not in page
    assert all(f"{curve} curves" in page for curve in ("ROC", "Precision–recall", "Reliability"))
    assert "contours" not in page
    assert "Moves others by" not in page
    assert RelevanceDisplay.compute(model).relevance.argmin() == 2
    for display in (ImportanceDisplay, SearchPathDisplay, CaseDeletionDisplay):
        with pytest.raises(ValueError, match="training rows"):
            display.compute(model)


def test_more_landmarks_that_would_help_are_told(with_rows):
    model = copy(with_rows[0])
    assert "More landmarks would help" not in {c["title"] for c in cautions(model)}
    tuning = replace(model.selection_, gain_of_landmarks=0.123)
    selection = replace(model.fitted_.selection, tuning=tuning)
    model.fitted_ = replace(model.fitted_, selection=selection)
    (told,) = (c for c in cautions(model) if c["title"] == "More landmarks would help")
    assert "12.3%" in told["text"]
    assert "n_landmarks=60" in told["text"]
