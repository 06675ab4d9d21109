"""Fitted machines to report on."""

import warnings

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search, assess
from looms.estimators import BoundWarning
from looms.tables import TablePreprocessor

matplotlib.use("agg")

#: What a column, a label or a sample may be called by somebody who means no harm, or some.
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></script><b>",
    "a & b && $x_1$ $",
    "line\nbreak\r\n\ttab\x00\x07",
    "{{ 7 * 7 }} {% raw %}",
    "\u202eright to left\u202c עברית العربية",
    "--> <!-- ]]> url(#a) #010203",
    "' onmouseover='alert(1)",
    "名前 🐈 " + "x" * 500,
    "",
]


@pytest.fixture(scope="session")
def binary():
    """Pipeline fitted to two classes with named columns, its data, an assessment."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[::6, :6], y.iloc[::6].map({0: "malignant", 1: "benign"}).astype(object)
    X.index = [f"patient {k}" for k in range(len(X))]
    model = make_pipeline(
        StandardScaler(),
        stacked_classifier(
            [
                KernelClassifier(k, search=Search(c))
                for k in ["rbf", "linear"]
                for c in ["press", "hinge"]
            ],
            combine="best",
            threshold="balanced",
        ),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        return model.fit(X, y), X, y, assess(model, X, y, n_splits=4, random_state=0)


@pytest.fixture(scope="session")
def by_loo(binary):
    """Pipeline with one candidate, chosen by the leave-one-out outputs that it is judged by."""
    _, X, y, _ = binary
    machine = KernelClassifier("rbf", threshold="balanced")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        return make_pipeline(StandardScaler(), machine).fit(X, y)


@pytest.fixture(scope="session")
def several():
    """Machine fitted to three classes, and its data."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    return KernelClassifier().fit(X, y), X, y


@pytest.fixture(scope="session")
def regression():
    """ARD machine fitted to numbers, and its data."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y = X.iloc[::3, :5], y.iloc[::3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        return KernelRegressor("ard", search=Search(max_iter=30)).fit(X, y), X, y


@pytest.fixture(scope="session")
def hostile():
    """Pipeline fitted to a table whose names are markup, and the table."""
    rng = np.random.default_rng(0)
    n, names = 66, HOSTILE[:-1]
    X = pd.DataFrame(rng.normal(size=(n, len(names))), columns=names)
    X[HOSTILE[0]] = [HOSTILE[k % 3 + 3] for k in range(n)]  # a column of text
    X.index = [f"{HOSTILE[k % len(HOSTILE)]} {k}" for k in range(n)]
    labels = np.array([HOSTILE[k] for k in (0, 1, 6)], dtype=object)
    y = pd.Series(labels[np.arange(n) % 3], name=HOSTILE[1])
    model = make_pipeline(TablePreprocessor(), KernelClassifier("ard", search=Search(max_iter=4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y.to_numpy()), X, y


@pytest.fixture(autouse=True)
def _few(few_partitions, few_pictures):
    """In every test of this room."""
