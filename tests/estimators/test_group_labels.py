"""Labels of groups: the same labels give the same model, whatever holds them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge

from looms import (
    Intervals,
    KernelClassifier,
    KernelRegressor,
    TabularRegressor,
    assess,
)
from looms.diagnostics import case_deletion, left_out_fits

RNG = np.random.default_rng(0)
SITE = np.arange(48) // 4
X = RNG.normal(size=(48, 3))
Y = X[:, 0] + RNG.normal(size=48) + 0.3 * SITE
LABELS = np.median(Y) < Y
KINDS = {
    "text": np.array(list("cadbfehgjilk"))[SITE].tolist(),
    "mixed": [[3, "b", "1", 1, 0.5, "a", -1, "3", 2, "x", 7, "7"][k] for k in SITE],
}
FORMS = {
    "array of objects": lambda labels: np.array(labels, dtype=object),
    "Series": lambda labels: pd.Series(labels, index=range(48, 0, -1)),
    "categories": lambda labels: pd.Series(pd.Categorical(labels, list(dict.fromkeys(labels)))),
    "array": np.array,
    "pyarrow": pa.array,
    "polars": pl.Series,
    "tuple": tuple,
}
OF_ONE_TYPE = {"array", "pyarrow", "polars"}
MODELS = {
    "numbers of a table": (TabularRegressor(["linear"], cv=5), Y),
    "folds of classes": (KernelClassifier("linear", cv=5), LABELS),
    "refits in folds": (Intervals(Ridge(), cv=5), Y),
}


def results(name, groups):
    """Predictions of a model, or its intervals, and its scores."""
    model, y = MODELS[name]
    model = model.fit(X, y, groups=groups)
    if isinstance(model, Intervals):
        return model.predict_interval(X[:5], 0.8).ravel().tolist()
    predicted = model.decision_function(X[:5]) if y is LABELS else model.predict(X[:5])
    return [*predicted.tolist(), *dict(model.evaluate(nested=False)).values()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::looms.BoundWarning", "ignore::looms.OneClassWarning")
def test_the_same_labels_give_the_same_model(name, kind):
    labels = KINDS[kind]
    expected = results(name, labels)
    for form, held in FORMS.items():
        if kind != "mixed" or form not in OF_ONE_TYPE:
            assert results(name, held(labels)) == expected, form


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_labels_give_the_same_splits(kind, tmp_path):
    model, options = KernelRegressor("linear", cv=3), {"n_splits": 2, "test_size": 0.2}
    expected = assess(model, X, Y, groups=KINDS[kind], random_state=0, **options)
    for form, held in FORMS.items():
        if kind != "mixed" or form not in OF_ONE_TYPE:
            given = {"random_state": 0, "groups": held(KINDS[kind]), "store": tmp_path}
            assert dict(assess(model, X, Y, **given, **options).mean) == dict(expected.mean)
    assert sum(path.is_dir() for path in tmp_path.iterdir()) == 1  # all are one assessment


@pytest.mark.parametrize("form", FORMS)
def test_what_is_told_of_groups_has_their_labels(form):
    labels = KINDS["text"]
    model = KernelRegressor("linear").fit(X, Y)
    told = case_deletion(model, groups=FORMS[form](labels))
    assert told.labels.tolist() == sorted(set(labels))
    fits = left_out_fits(KernelClassifier("linear"), X, LABELS, groups=FORMS[form](labels))
    assert fits.labels.tolist() == sorted(set(labels))
