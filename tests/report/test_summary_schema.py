"""Summaries of all kinds of machines are as their JSON schema says."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search
from looms.blocks import ArrayBlocks
from looms.report import summary, summary_schema
from looms.report.facts import SCHEMA

jsonschema = pytest.importorskip("jsonschema")

X, LABELS = load_iris(return_X_y=True)
X, LABELS = X[::2], LABELS[::2]
TWO = LABELS > 0
Z, NUMBERS = (values[:70] for values in load_diabetes(return_X_y=True))
GROUPS = np.arange(70) // 7
SCALED = make_pipeline(StandardScaler(), KernelRegressor(mu=0.1))

#: Machine, samples, targets, and what else the fit takes.
FITS = {
    "given, two classes": (KernelClassifier(mu=1e-3), X, TWO, {}),
    "given, three classes without probabilities": (
        KernelClassifier(mu=1e-3, calibration=None),
        X,
        LABELS,
        {},
    ),
    "weights of zero": (KernelClassifier(mu=1e-3), X, TWO, {"sample_weight": np.arange(75) % 3}),
    "stack": (stacked_classifier(["linear", "rbf"]), X, TWO, {}),
    "a scale for each feature": (KernelRegressor("ard", search=Search(max_iter=2)), Z, NUMBERS, {}),
    "groups": (KernelRegressor("linear"), Z, NUMBERS, {"groups": GROUPS}),
    "several targets": (KernelRegressor(mu=1e-3), Z, np.stack([NUMBERS, Z[:, 0]], 1), {}),
    "kernel matrix": (KernelRegressor("precomputed", mu=1e-3), Z @ Z.T, NUMBERS, {}),
    "rows in blocks": (KernelRegressor("rbf", n_landmarks=20), ArrayBlocks(Z), NUMBERS, {}),
    "pipeline": (SCALED, Z, NUMBERS, {}),
}


def faults(values):
    validator = jsonschema.Draft202012Validator(summary_schema())
    return [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(values)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", FITS)
def test_a_summary_is_as_the_schema_says(kind):
    machine, X, y, options = FITS[kind]
    values = summary(machine.fit(X, y, **options))
    assert faults(json.loads(json.dumps(values, allow_nan=False))) == []


@pytest.mark.slow
def test_the_schema_admits_no_other_keys_and_types():
    jsonschema.Draft202012Validator.check_schema(summary_schema())
    assert summary_schema()["properties"]["schema"] == {
        "const": SCHEMA,
        "description": "Version of this list of keys.",
    }
    values = summary(KernelClassifier(mu=1e-3).fit(X, TWO))
    assert faults(values) == []
    for wrong in ({"more": 1}, {"task": "ranking"}, {"n_candidates": None}):
        assert len(faults(values | wrong)) == 1
    values["loo"]["scores"][0]["value"] = "0.1"
    assert len(faults(values)) == 1
