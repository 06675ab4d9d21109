"""The default model tells the same at every number of rows, with boosted trees in it or without.

What changes nevertheless is a page of the documentation, made from the constants of the code:

    python tests/test_default_model.py
"""

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from looms import TabularClassifier, TabularRegressor
from looms.diagnostics import case_deletion, left_out_fits, row_order
from looms.diagnostics._case_deletion import MOST_PAIRED
from looms.diagnostics._row_order import MOST as MOST_IN_ORDER
from looms.estimators._choice_folds import LEAST_SHARED
from looms.estimators._one_kernel import FULL_ROWS
from looms.estimators._selection import MOST_IN_FOLDS
from looms.estimators._tabular import MANY_ROWS, ROWS_OF_TREES, ROWS_WITHOUT_RBF
from looms.estimators._tabular_regressor import ROWS_OF_TRANSFORMS
from looms.report import cautions, feature_importance, summary
from looms.report._near_rows import FEWEST
from looms.report._near_rows import MOST as MOST_NEAR
from looms.report.facts import MOST_DELETIONS, MOST_PERMUTED
from looms.selection._objective import ROWS_OF_SEARCH
from looms.selection._tune import ROWS_OF_EXTRAPOLATION, ROWS_OF_STARTS

SIZES = 300, 330, 375
EACH = 3  # rows of a unit, such as a patient, one after another


def table(n, numbers):
    """Rows of units that differ by little; the target is the unit's, with a step that trees see."""
    rng = np.random.default_rng(n)
    unit = np.arange(n) // EACH
    Z = rng.normal(size=(-(-n // EACH), 4))
    signal = Z[:, 0] + 2.0 * (Z[:, 1] > 0) + 1.5 * rng.normal(size=len(Z))
    X = pd.DataFrame(Z[unit] + 0.05 * rng.normal(size=(n, 4)), columns=["a", "b", "c", "d"])
    X["noise"] = rng.choice(["east", "west"], n)
    y = signal[unit] + 0.3 * rng.normal(size=n)
    return X, y if numbers else np.where(y > np.median(y), "yes", "no")


def quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a bound, or of one class
        return model.fit(X, y)


@pytest.fixture(autouse=True, scope="module")
def earlier():
    """What changes from 400 and 1000 rows on changes from 330 and 375 on here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("looms.estimators._tabular.ROWS_OF_TREES", SIZES[1])
        patch.setattr("looms.estimators._tabular.ROWS_WITHOUT_RBF", SIZES[2])
        yield


@cache
def fitted(n, numbers):
    X, y = table(n, numbers)
    model = quietly(TabularRegressor(target="none") if numbers else TabularClassifier(), X, y)
    assert (n >= SIZES[1]) == any(one.units is not None for one in model.members_)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])
@pytest.mark.parametrize("n", SIZES)
def test_sections_and_cautions(n, numbers):
    model = fitted(n, numbers)
    told = summary(model)
    titles = {one["title"] for one in told["cautions"]}
    assert titles >= {"Rows in an order", "Rows like repeats of others"}
    assert {one["title"] for one in cautions(model)} <= titles
    by_kernels = [one["title"] for one in told["cautions"] if "kernels of the stack" in one["text"]]
    assert len(by_kernels) == (2 if n >= SIZES[1] else 0)
    features = {row["name"]: row["importance"] for row in told["features"]["rows"]}
    assert min(features["a"], features["b"]) > features["noise"]
    for row in told["samples"]["rows"]:
        assert row["surprise"] > 0
        assert row["rms_change"] > 0
        assert row["leverage"] > 0
    assert told["certificate"]["holds"]


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_nothing_is_fitted_again(n, monkeypatch):
    """Importance takes the models that the fit has kept, everything else the kernels."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model, (X, y) = fitted(n, False), table(n, False)

    def refuse(*arguments, **options):
        raise AssertionError("trees were grown again")

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", refuse)
    importance = feature_importance(model)
    assert importance.value[importance.names.index("noise")] < importance.value.max() / 10
    order, deletion = row_order(model), case_deletion(model)
    assert order.p_value < 0.01
    assert np.isfinite(deletion.surprise).all()
    assert order.by_kernels == deletion.by_kernels
    assert bool(order.by_kernels) == (n >= SIZES[1])
    fits = left_out_fits(model, X, y)
    assert ("kernels" in fits.method) == (n >= SIZES[1])
    model.evaluate(nested=False)
    assert model.predict_set(X[:5]).shape == (5, 2)


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_every_interval_is_there(n):
    model, (X, _) = fitted(n, True), table(n, True)
    model.evaluate(nested=False)
    for method in ("plus", "minmax", "scaled"):
        lower, upper = model.predict_interval(X[:20], method=method).T
        assert (lower < upper).all()


@pytest.mark.slow
def test_faults_of_a_table():
    """A rare class, copies of rows, and a target of noise, with trees beside the kernels."""
    rng, n = np.random.default_rng(0), SIZES[-1]
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X.iloc[: n // 10] = X.iloc[n // 10 : 2 * (n // 10)].to_numpy()
    y = np.where(np.arange(n) % (n // 15) == 0, "ill", "well")
    titles = {one["title"] for one in cautions(quietly(TabularClassifier(), X, y))}
    assert titles >= {"Duplicates", "A small class"}
    assert titles & {"May be no better than the baseline", "One class for all"}


# What changes ---------------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "number_of_rows.md"
HEAD = """# What changes with the number of rows

The default, `TabularClassifier()` and `TabularRegressor()`, does not do the same with every number
of rows. `tests/test_default_model.py` makes this page from the constants of the code, and fits the
default at several sizes: its report has the same sections, and it gives the same cautions.

| Rows | What changes |
|---|---|
"""
TAIL = """
Rows of positive weight are counted. `evaluate()` repeats the fit with the candidates that the fit
of all rows had. [Time and memory](../guide/performance.md) has the seconds.
"""
CHANGES = [
    (f"fewer than {FEWEST}", "Near repeats are not searched"),
    (
        f"more than {MOST_PERMUTED}",
        "Report and summary have no permutation test; `permutation_test` makes it",
    ),
    (
        f"{LEAST_SHARED} or more",
        "Two searches, each on two fifths of the rows, serve the candidates without each of five "
        "folds; with fewer rows or groups, a rare class, or a splitter as `cv`, there is one "
        "without each fold",
    ),
    (
        f"{ROWS_OF_TREES} or more",
        "Boosted trees stand beside four kernels. They have models without each of five folds "
        "only, which the fit keeps: their part of `loo_`, and of intervals after "
        "`evaluate(nested=False)`, is without a fold, and so is the whole stack for the importance "
        "and the effects of columns. Influence, surprise, rows in an order and near repeats are "
        "told of the kernels alone",
    ),
    (f"{ROWS_OF_STARTS} or more", "The search on all rows begins at the mean of these"),
    (f"{ROWS_WITHOUT_RBF} or more", 'The kernel "rbf", which gains nothing there, is left out'),
    (
        f"more than {MOST_DELETIONS:,}",
        "Report and summary have no influence of rows and no certificate, unless `certify()` was "
        "called; `case_deletion` has the first",
    ),
    (
        f"more than {MOST_IN_FOLDS:,}",
        "Candidates are weighted by the held-out outputs of the fit, not tuned anew without each "
        "of five folds",
    ),
    (
        f"more than {ROWS_OF_SEARCH:,}",
        "Hyper-parameters are tuned on so many rows (or 100 for each of them), with an evaluation "
        "on all; features are weighted by a model of so many rows",
    ),
    (f"more than {ROWS_OF_TRANSFORMS:,}", "Transforms of the target are compared on so many rows"),
    (f"more than {MOST_NEAR:,}", "Near repeats are not searched"),
    (
        f"more than {ROWS_OF_EXTRAPOLATION:,}",
        "Hyper-parameters extrapolated from those of fewer rows are not evaluated",
    ),
    (f"more than {MOST_IN_ORDER:,}", "The order of rows is not tested"),
    (
        f"more than {MOST_PAIRED:,}",
        "`case_deletion` has no `largest_change` and no `criterion_change`",
    ),
    (f"more than {FULL_ROWS:,}", "Kernels have landmarks in the place of the whole kernel matrix"),
    (f"more than {MANY_ROWS:,}", "Two kernels stand beside the trees: linear and ranked_laplacian"),
]


def page():
    changes = {}
    for rows, what in CHANGES:
        changes.setdefault(rows, []).append(what)
    lines = (f"| {rows} | {'. '.join(what)} |\n" for rows, what in changes.items())
    return HEAD + "".join(lines) + TAIL


def test_the_page_is_made_of_the_constants():
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("estimator", [TabularClassifier, TabularRegressor])
def test_docstrings_have_the_constants(estimator):
    text = " ".join(estimator.__doc__.split() + TabularClassifier.__doc__.split())
    for number in (ROWS_OF_TREES, ROWS_WITHOUT_RBF, MOST_IN_FOLDS, FULL_ROWS):
        assert f" {number} rows" in text
    assert f" {MANY_ROWS:,} rows" in text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
