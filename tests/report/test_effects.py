"""Effects of columns against refits without each unit, and predictions of changed tables."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeRegressor
from stacks import stacked_regressor

from looms import KernelClassifier, KernelRegressor, TabularClassifier, TabularRegressor
from looms.blocks import ArrayBlocks
from looms.kernels import RBF
from looms.report import EffectDisplay
from looms.tables import TablePreprocessor

N = 36
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
NUMBERS = 3.0 + X[:, 0] + np.sin(3 * X[:, 1]) + 0.2 * RNG.normal(size=N)
CLASSES = np.where(NUMBERS > 3.0, "yes", "no")
KERNEL, MU = RBF(0.5), 0.02
VALUES = [-1.0, 0.0, 0.7]
TREE = DecisionTreeRegressor(max_depth=3, random_state=0)
TABLE = pd.DataFrame(
    {
        "size": np.round(np.exp(X[:, 0]), 3),
        "ward": RNG.choice(["01", "NA ward", "A3"], N),
        "admitted": pd.Timestamp("2024-02-25") + pd.to_timedelta(RNG.integers(0, 9, N), unit="D"),
    }
)
TABLE.loc[:3, "size"] = None
TABLE.loc[5:8, "ward"] = None


def kernel_without(rest, y):
    """Kernel model of some rows with the ridge of all, by its system of equations."""
    C = np.pad(KERNEL(X[rest], X[rest]) + N * MU * np.eye(len(rest)), (0, 1), constant_values=1.0)
    C[-1, -1] = 0.0
    solved = np.linalg.solve(C, np.append(y[rest], 0.0))
    return lambda new: KERNEL(new, X[rest]) @ solved[:-1] + solved[-1]


def check(found, refit, units, on_scale=lambda f: f, weight=None):
    """Means and errors of column 2 at `VALUES`, by refits without each unit."""
    every = np.arange(N)

    def means(outputs):
        tables = [np.column_stack([X[:, 0], np.full(N, value)]) for value in VALUES]
        return [np.average(on_scale(outputs(table)), weights=weight) for table in tables]

    without = np.array([means(refit(np.delete(every, G))) for G in units])
    np.testing.assert_allclose(found.mean, means(refit(every)), rtol=1e-8)
    errors = np.sqrt((len(units) - 1) * without.var(axis=0))
    np.testing.assert_allclose(found.standard_error, errors, rtol=1e-7)
    assert (found.n_units, found.n_samples) == (len(units), N)


@pytest.mark.parametrize("held_out", ["rows", "groups", "folds"])
def test_against_refits_without_each_unit(held_out):
    number = np.arange(N) // 3 if held_out == "groups" else np.arange(N)
    model = KernelRegressor(KERNEL, mu=MU, cv="2x3" if held_out == "folds" else None)
    model.fit(X, NUMBERS, groups=number if held_out == "groups" else None)
    found = EffectDisplay.compute(model, "feature 2", values=VALUES)
    units = [np.flatnonzero(number == k) for k in np.unique(number)]
    check(found, lambda rest: kernel_without(rest, NUMBERS), units)


def test_of_a_stack_with_trees_by_the_folds_of_these():
    y = np.where(X[:, 0] > 0, 9.0, NUMBERS)
    model = stacked_regressor([KernelRegressor(KERNEL, mu=MU), TREE]).fit(X, y)
    one, other = model.members_
    assert min(one.weight, other.weight) > 0.1

    def refit(rest):
        f, tree = kernel_without(rest, y), clone(TREE).fit(X[rest], y[rest])
        return lambda new: one.weight * f(new) + other.weight * tree.predict(new)

    check(EffectDisplay.compute(model, "feature 2", values=VALUES), refit, list(other.units))


def test_of_a_transformed_target_in_its_units():
    model = TabularRegressor([KernelRegressor(KERNEL, mu=MU)], target="log", preprocess=None)
    y = np.log(NUMBERS)
    residuals = model.fit(X, NUMBERS).fitted_.on_scale.loo.residuals
    found = EffectDisplay.compute(model, "feature 2", values=VALUES)
    units = np.arange(N)[:, None]
    smeared = np.exp(residuals).mean()
    check(found, lambda rest: kernel_without(rest, y), units, lambda f: np.exp(f) * smeared)


def test_of_two_columns_against_refits_without_each_row():
    """Beyond the sum of single effects: the target has a product."""
    y = NUMBERS + X[:, 0] * X[:, 1]
    model = KernelRegressor(KERNEL, mu=MU).fit(X, y)
    firsts, every = [0.5, -0.2, -1.0, 1.4], np.arange(N)
    found = EffectDisplay.compute(model, ("feature 2", 0), values=(firsts, VALUES))
    assert (found.column, found.mean.shape) == (("feature 2", "feature 1"), (4, 3))
    tables = [[np.tile([second, first], (N, 1)) for second in VALUES] for first in firsts]

    def means(rest):
        return np.array([[kernel_without(rest, y)(one).mean() for one in row] for row in tables])

    without = np.array([means(np.delete(every, k)) for k in every])
    np.testing.assert_allclose(found.mean, means(every), rtol=1e-8)
    np.testing.assert_allclose(
        found.standard_error, np.sqrt((N - 1) * without.var(axis=0)), rtol=1e-7
    )


def test_of_a_number_and_text_as_the_table_has_them():
    model = TabularClassifier([KernelClassifier(KERNEL, mu=MU)]).fit(TABLE, CLASSES)
    found = EffectDisplay.compute(model, ("size", "ward"), n_values=5)
    sizes, wards = found.values
    assert (len(sizes), wards.tolist()) == (5, ["01", "A3", "NA ward"])
    one = TABLE.assign(size=sizes[1], ward=wards[2])
    assert found.mean[1, 2] == pytest.approx(model.predict_proba(one)[:, 1].mean())


def local_effects(f, ends, weight):
    """Accumulated effects of column 2 by their definition, row by row, centered."""
    sums, shares = np.zeros(len(ends) - 1), np.zeros(len(ends) - 1)
    for row, w in zip(X, weight, strict=True):
        for k, (low, high) in enumerate(pairwise(ends)):
            if low < row[1] <= high or (k == 0 and row[1] == low):
                sums[k] += w * np.subtract(*f(np.array([[row[0], high], [row[0], low]])))
                shares[k] += w
    curve = np.append(0.0, np.cumsum(sums / shares))
    return curve - shares @ (curve[1:] + curve[:-1]) / 2 / shares.sum()


@pytest.mark.parametrize("ends", [None, [-0.5, 0.9, 0.1]], ids=["usual", "given"])
def test_accumulated_effects_against_refits_without_each_row(ends):
    """Rows beyond the ends do not count."""
    model, every = KernelRegressor(KERNEL, mu=MU).fit(X, NUMBERS), np.arange(N)
    found = EffectDisplay.compute(model, "feature 2", kind="accumulated", values=ends, n_values=6)
    if ends is None:
        assert {X[:, 1].min(), X[:, 1].max()} < set(found.values) < set(X[:, 1])
    else:
        assert found.values.tolist() == sorted(ends)
    without = np.array(
        [
            local_effects(kernel_without(np.delete(every, k), NUMBERS), found.values, np.ones(N))
            for k in every
        ]
    )
    expected = local_effects(kernel_without(every, NUMBERS), found.values, np.ones(N))
    np.testing.assert_allclose(found.mean, expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(
        found.standard_error, np.sqrt((N - 1) * without.var(axis=0)), rtol=1e-7
    )


@pytest.mark.parametrize("column", ["size", "admitted"])
def test_both_kinds_are_one_line_of_a_linear_model(column):
    """Of a table, also with gaps and dates; ends are cells of it."""
    model = TabularRegressor([KernelRegressor("linear", mu=MU)]).fit(TABLE, NUMBERS)
    found = EffectDisplay.compute(model, column, kind="accumulated", n_values=7)
    average = EffectDisplay.compute(model, column, values=found.values)
    assert set(found.values) <= set(TABLE[column].dropna().to_numpy().astype(found.values.dtype))
    away = average.mean - found.mean
    np.testing.assert_allclose(away, away[0], rtol=1e-10)
    assert np.ptp(found.mean) > 0.1 * (column == "size")
    slope = found.standard_error / np.abs(found.mean)  # the band is that of a slope
    np.testing.assert_allclose(slope, slope[0], rtol=1e-7)


def test_rows_with_a_gap_are_not_in_accumulated_effects():
    model = TabularRegressor([KernelRegressor(KERNEL, mu=MU)]).fit(TABLE, NUMBERS)
    found = EffectDisplay.compute(model, "size", kind="accumulated", n_values=4)
    bins = pd.cut(TABLE["size"], found.values, include_lowest=True, labels=False)
    for k, (low, high) in enumerate(pairwise(found.values)):
        own = TABLE[bins == k]
        step = model.predict(own.assign(size=high)) - model.predict(own.assign(size=low))
        assert found.mean[k + 1] - found.mean[k] == pytest.approx(step.mean())


def test_accumulated_effects_do_not_extrapolate():
    """Of two columns alike the average goes where no rows are."""
    rng = np.random.default_rng(1)
    first = np.linspace(-2.0, 2.0, 60)
    alike = np.column_stack([first, first + 0.02 * rng.normal(size=60)])
    model = KernelRegressor(RBF(0.3), mu=1e-3).fit(alike, first)
    average, accumulated = (
        EffectDisplay.compute(model, "feature 1", kind=kind, values=[-2.0, 0.0, 1.9])
        for kind in ("average", "accumulated")
    )
    truth = np.array([-2.0, 0.0, 1.9]) / 2  # half of the sum that both give
    wrong, right = (np.abs(np.diff(one.mean) - np.diff(truth)) for one in (average, accumulated))
    assert right.max() < wrong.max() / 3


@pytest.mark.parametrize("calibration", ["sigmoid", None])
def test_of_classes_the_probability_or_the_decision_value(calibration):
    model = KernelClassifier(KERNEL, mu=MU, calibration=calibration).fit(X, CLASSES)
    y, units = np.where(CLASSES == "yes", 1.0, -1.0), np.arange(N)[:, None]
    on_scale = model.calibrator_.probability if calibration else lambda f: f
    found = EffectDisplay.compute(model, "feature 2", values=VALUES)
    check(found, lambda rest: kernel_without(rest, y), units, on_scale)
    assert found.mean_of == f"{'probability of' if calibration else 'decision value for'} yes"
    other = EffectDisplay.compute(model, "feature 2", values=VALUES, target="no")
    np.testing.assert_allclose(other.mean, (1.0 if calibration else 0.0) - found.mean)
    np.testing.assert_allclose(other.standard_error, found.standard_error)


def test_weights_are_those_of_the_mean():
    weight = np.append(np.linspace(1, 2, N - 1), 0.0)
    model = KernelRegressor(KERNEL, mu=MU).fit(X, NUMBERS, weight)
    changed = np.column_stack([X[:, 0], np.zeros(N)])
    found = EffectDisplay.compute(model, "feature 2", values=[0.0])
    assert found.mean[0] == pytest.approx(np.average(model.predict(changed), weights=weight))
    assert found.n_samples == N - 1
    found = EffectDisplay.compute(model, "feature 2", kind="accumulated", n_values=5)
    expected = local_effects(model.predict, found.values, weight)
    np.testing.assert_allclose(found.mean, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("size", [0.5, 2, None]),
        ("ward", ["A3", None]),
        ("admitted", [pd.Timestamp("2024-02-27 12:00"), pd.Timestamp("2024-03-01")]),
    ],
)
def test_of_a_column_as_the_table_has_it(column, values):
    """Also of a model that no longer has its table, and of a pipeline."""
    model = TabularClassifier([KernelClassifier(KERNEL, mu=MU)]).fit(TABLE, CLASSES)
    machine = KernelClassifier(KERNEL, mu=MU)
    pipeline = make_pipeline(TablePreprocessor(), machine).fit(TABLE, CLASSES)
    expected = [model.predict_proba(TABLE.assign(**{column: one}))[:, 1].mean() for one in values]
    for one in (model, pickle.loads(pickle.dumps(model)), pipeline):
        found = EffectDisplay.compute(one, column, values=values)
        np.testing.assert_allclose(found.mean, expected, rtol=1e-9)
        assert found.column == column


def test_usual_values_are_those_of_the_table():
    model = TabularRegressor([KernelRegressor(KERNEL, mu=MU)]).fit(TABLE, NUMBERS)

    def usual(column, n):
        return EffectDisplay.compute(model, column, n_values=n).values

    sizes = TABLE["size"].dropna()
    np.testing.assert_array_equal(usual("size", 99), np.unique(sizes))
    quantiles = np.quantile(sizes, [1 / 6, 1 / 2, 5 / 6], method="inverted_cdf")
    np.testing.assert_array_equal(usual("size", 3), quantiles)
    days = TABLE["admitted"].drop_duplicates().sort_values()
    np.testing.assert_array_equal(usual("admitted", 20), days.to_numpy())
    counts = TABLE["ward"].value_counts()
    assert usual("ward", 20).tolist() == sorted(counts.index)
    assert usual("ward", 1).tolist() == [counts.index[0]]


def test_sparse_samples():
    rows = np.maximum(X, 0.0)
    found, dense = (
        EffectDisplay.compute(KernelRegressor(KERNEL, mu=MU).fit(one, NUMBERS), "feature 1")
        for one in (sparse.csr_array(rows), rows)
    )
    np.testing.assert_array_equal(found.values, dense.values)
    np.testing.assert_allclose(found.mean, dense.mean)
    np.testing.assert_allclose(found.standard_error, dense.standard_error)


def test_few_rows_of_many():
    model = KernelRegressor(KERNEL, mu=MU).fit(X, NUMBERS)
    few, others = (
        EffectDisplay.compute(model, "feature 1", n_samples=9, random_state=k) for k in range(2)
    )
    assert few.n_samples == 9
    assert not np.allclose(few.mean, others.mean)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": "word"}, "'word' .*'ward'"),
        ({"column": "ward", "values": ["A4"]}, "'A4' .*'ward'"),
        ({"column": "size", "values": ["big"]}, "'size' is a column of numbers"),
        ({"column": "size", "target": "maybe"}, "target=, one of no, yes"),
        ({"column": "size", "n_values": 0}, "n_values"),
        ({"column": "size", "values": []}, "Values are a list"),
        ({"column": ["size", "ward"]}, r"\['size', 'ward'\]"),
        ({"column": ("size", "size")}, "Two columns are different"),
        ({"column": ("size", "ward"), "values": ([1.0],)}, "values of each"),
        ({"column": ("size", "ward"), "values": ([], None)}, "Values are a list"),
        ({"column": ("size", "ward"), "kind": "accumulated"}, "are of one column"),
        ({"column": "ward", "kind": "accumulated"}, "'ward', have no order .*'average'"),
        ({"column": "size", "kind": "accumulated", "values": [1.0]}, "two values of 'size'"),
        ({"column": "size", "kind": "accumulated", "values": [None, 1, 2]}, "no gaps"),
        ({"column": "size", "kind": "accumulated", "values": [50, 60]}, "between 50 and 60"),
        ({"column": "size", "kind": "accumulate"}, "did you mean 'accumulated'"),
        ({"column": 4}, "column must be 0 to 3, got 4"),
        ({"column": 3}, "'same'"),
    ],
)
def test_what_there_is_not(options, message):
    model = TabularClassifier([KernelClassifier(KERNEL, mu=MU)])
    model.fit(TABLE.assign(same=1.0), CLASSES)
    with pytest.raises(ValueError, match=message):
        EffectDisplay.compute(model, **options)


def test_a_column_by_its_place_in_the_table():
    """Not among the features, of which numbers come first."""
    model = TabularRegressor([KernelRegressor(KERNEL, mu=MU)]).fit(TABLE, NUMBERS)
    shown = [EffectDisplay.compute(model, k, n_values=2).column for k in np.arange(3)]
    assert shown == list(TABLE)
    model = KernelRegressor(KERNEL, mu=MU).fit(X, NUMBERS)
    assert EffectDisplay.compute(model, 0, n_values=2).column == "feature 1"


def test_features_that_a_transformer_made_can_be_named_and_columns_cannot():
    few = FunctionTransformer(lambda table: table[["size", "width"]])
    table = pd.DataFrame({"id": np.arange(N), "size": X[:, 0], "width": X[:, 1]})
    model = TabularRegressor([KernelRegressor(KERNEL, mu=MU)], preprocess=few).fit(table, NUMBERS)
    with pytest.raises(ValueError, match="feature 1, feature 2"):
        EffectDisplay.compute(model, "size")
    assert EffectDisplay.compute(model, 1, n_values=2).column == "feature 2, as prepared"


@pytest.mark.slow
def test_of_several_one_has_to_be_named():
    kinds = np.array(["a", "b", "c"])[np.arange(N) % 3]
    model = KernelClassifier(KERNEL, mu=MU).fit(X, kinds)
    with pytest.raises(ValueError, match="target=, one of a, b, c"):
        EffectDisplay.compute(model, "feature 1")
    each = [EffectDisplay.compute(model, "feature 1", target=one).mean for one in "abc"]
    np.testing.assert_allclose(np.sum(each, axis=0), 1.0)
    model = KernelRegressor(KERNEL, mu=MU).fit(X, np.column_stack([NUMBERS, -NUMBERS]))
    each = [EffectDisplay.compute(model, "feature 1", target=one) for one in range(2)]
    np.testing.assert_allclose(each[0].mean, -each[1].mean)
    assert each[1].mean_of == "prediction of target 1"


def test_kernel_matrices_and_rows_in_blocks():
    model = KernelRegressor("precomputed", mu=MU).fit(KERNEL(X, X), NUMBERS)
    with pytest.raises(ValueError, match="columns"):
        EffectDisplay.compute(model, "feature 1")
    model = KernelRegressor(KERNEL, mu=MU, n_landmarks=5).fit(ArrayBlocks(X), NUMBERS)
    with pytest.raises(ValueError, match="rows in blocks"):
        EffectDisplay.compute(model, "feature 1")


@pytest.mark.parametrize(
    ("column", "n_lines", "labels"),
    [
        (("size", "ward"), 3, ["01", "A3", "NA ward"]),
        (("ward", "admitted"), 4, ["2024-02-26", "2024-02-29", "2024-03-01", "2024-03-03"]),
        ("size", 1, []),
    ],
    ids=str,
)
def test_each_value_of_the_second_column_is_drawn(column, n_lines, labels):
    model = TabularRegressor([KernelRegressor(KERNEL, mu=MU)]).fit(TABLE, NUMBERS)
    ax = EffectDisplay.from_estimator(model, column, n_values=6).ax_
    assert len(ax.lines) == n_lines
    legend = ax.get_legend()
    if not labels:
        assert legend is None
        return
    assert [text.get_text() for text in legend.get_texts()] == labels
    assert legend.get_title().get_text() == column[1]
