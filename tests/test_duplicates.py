"""Copies of rows: which rows are equal, where that is no accident, what holds them out together."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from pairwise import in_turn

from looms import (
    DuplicatesWarning,
    KernelClassifier,
    KernelRegressor,
    TabularRegressor,
)
from looms.duplicates import duplicate_groups, n_unexpected_duplicates
from looms.lssvm.refit import refit_loo

RNG = np.random.default_rng(0)
N = 90
X = RNG.standard_normal((N, 4))
Y = np.where(X[:, 0] + X[:, 1] + RNG.standard_normal(N) > 0, 1.0, -1.0)
pytestmark = pytest.mark.filterwarnings("ignore::looms.BoundWarning")  # what copies lead to
AGAIN = np.append(np.arange(N), np.arange(30))  # a third of the rows twice


def partition(labels):
    return {frozenset(np.flatnonzero(labels == label)) for label in np.unique(labels)}


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_rows_are_in_one_group_if_they_are_equal(kind):
    rows = RNG.integers(0, 3, (200, 4)).astype(float) * np.array([1.0, 0.5, -1.0, 1e-300])
    rows[rows == 0] *= RNG.choice([-1.0, 1.0], (rows == 0).sum())  # −0.0 is 0.0
    expected = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    assert partition(duplicate_groups(kind(rows))) == partition(expected)


ROWS = [[2, "x", 0.5], [1, "y", None], [2, "x", 0.5], [1, "y", None], [1, "x", None], [2, "x", 0.5]]
TABLE = pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(
    when=pd.to_datetime(["2020-01-01", None, "2020-01-01", None, "2021-01-01", "2020-01-01"]),
    yes=[True, False, True, False, False, True],
)
NUMBERS = np.array(
    [[2, 0, 0.5], [1, 7, np.nan], [2, 0, 0.5], [1, 7, -np.nan], [1, 0, 0], [2, 0, 0.5]]
)
SPARSE = sp.csr_matrix(np.nan_to_num(NUMBERS))
TABLES = {
    "array": NUMBERS,
    "whole numbers": np.nan_to_num(NUMBERS * 2).astype(np.int8),
    "objects": NUMBERS.astype(object),
    "lists": [[None if cell != cell else cell for cell in row] for row in NUMBERS.tolist()],
    "nullable numbers": pd.DataFrame(NUMBERS).convert_dtypes(),
    "names twice": pd.DataFrame(NUMBERS, columns=["a", "a", "b"]),
    "mixed lists": ROWS,
    "mixed objects": np.array(ROWS, dtype=object),
    "mixed frame": TABLE,
    "categories": TABLE.astype({"b": "category"}),
    "frame of pyarrow": TABLE.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas(TABLE),
    "polars categories": pl.from_pandas(TABLE.astype({"b": "category"})),
    "dates": TABLE[["when"]].assign(b=TABLE["when"].dt.tz_localize("Asia/Tokyo")),
    "documents": ["x", "y", "x", "y", "z", "x"],
    "csr": SPARSE,
    "csr with a zero": sp.csr_matrix(
        (
            np.append(SPARSE.data, 0.0),
            np.append(SPARSE.indices, 1),
            np.append(SPARSE.indptr[:-1], SPARSE.nnz + 1),
        ),
        shape=SPARSE.shape,
    ),
    "csc": SPARSE.tocsc(),
    "coo in parts": sp.coo_array(
        (np.array([1.0, 1, 2, 0.5, 0.5]), ([0, 0, 2, 0, 2], [0, 0, 0, 2, 2])), shape=(3, 3)
    ),
    "csr in parts": sp.csr_matrix(
        (np.array([1.0, 1, 2, 3]), np.array([0, 0, 0, 1]), np.array([0, 2, 3, 4])), shape=(3, 2)
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_equal_rows_of_any_table_are_one_group(name):
    table = TABLES[name]
    expected = {"coo in parts": [0, 1, 0], "csr in parts": [0, 0, 1]}
    groups = duplicate_groups(table)
    assert groups.tolist() == expected.get(name, [0, 1, 0, 1, 2, 0])
    if name == "csr in parts":
        assert table.data.tolist() == [1, 1, 2, 3]  # the matrix of the caller is as it was


LARGE = [2**60, 2**60 + 1, 2**60 + 1, 2**60 + 2]
GAP = [2**60, 2**60 + 1, 2**60 + 1, None]
LETTER = ["x"] * 4


@pytest.mark.parametrize(
    "table",
    [
        *(np.array(LARGE), np.array([LARGE], dtype=np.uint64).T, LARGE),
        *([[one, 0.5] for one in LARGE], [[one, "x"] for one in GAP], sp.csr_array([LARGE]).T),
        *(pd.DataFrame({"a": LARGE, "b": other}) for other in (LETTER, [0.5] * 4)),
        *(pd.DataFrame({"a": pd.array(of, dtype="Int64"), "b": 0.5}) for of in (LARGE, GAP)),
        *(pl.DataFrame({"a": of, "b": LETTER}) for of in (LARGE, GAP)),
    ],
)
def test_whole_numbers_that_floats_round_are_told_apart(table):
    assert duplicate_groups(table).tolist() == [0, 1, 1, 2]


ODD = [5, "table", None, {"a": [1]}, [[1, 2], [3]], [[[1], {}], [[2], {}]], sp.coo_array([1, 2])]


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_table_is_refused(odd):
    with pytest.raises(TypeError, match="X must be a table"):
        duplicate_groups(odd)


def sold_twice():
    """A table with every row twice, and targets."""
    rng = np.random.default_rng(1)
    once = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    once["city"], once["when"] = rng.choice(list("xyz"), 50), pd.date_range("2020", periods=50)
    once["gaps"] = once["b"].where(once["b"] < 1)
    table = pd.concat([once, once], ignore_index=True)
    return table, table["a"] + np.tile(rng.normal(size=50), 2)


@pytest.mark.parametrize(
    "form", [pd.DataFrame, pl.from_pandas, lambda table: table[["a", "b"]].to_numpy()]
)
def test_the_advice_of_the_warning_ends_it(form):
    table, y = sold_twice()
    table = form(table)
    with pytest.warns(DuplicatesWarning, match=r"groups=looms.duplicates.duplicate_groups\(X\)\."):
        TabularRegressor(["linear"]).fit(table, y)
    with warnings.catch_warnings(action="error", category=DuplicatesWarning):
        TabularRegressor(["linear"]).fit(table, y, groups=duplicate_groups(table))


@pytest.mark.filterwarnings("ignore::looms.ColumnsWarning")
def test_the_advice_of_the_warning_is_right_for_a_table_with_an_identifier():
    table, y = sold_twice()
    table["name"] = [f"P{k:03}" for k in range(100)]
    advice = r"model.preprocessor_.transform"
    with pytest.warns(DuplicatesWarning, match=advice):
        model = TabularRegressor(["linear"]).fit(table, y)
    groups = duplicate_groups(model.preprocessor_.transform(table))
    with warnings.catch_warnings(action="error", category=DuplicatesWarning):
        TabularRegressor(["linear"]).fit(table, y, groups=groups)


def n_noticed(rows):
    return n_unexpected_duplicates(rows, duplicate_groups(rows))


def again(rows, share=0.5):
    """The rows, and some of them once more."""
    n = rows.shape[0]
    return rows[np.append(np.arange(n), RNG.integers(0, n, int(share * n)))]


def one_hot(codes):
    return np.hstack([np.eye(column.max() + 1)[column] for column in codes.T])


def answers(n, n_questions, ends, loading):
    """Ordinal answers that one trait decides, and chance by the rest of the loading."""
    noise = np.sqrt(1 - loading**2) * RNG.standard_normal((n, n_questions))
    return np.digitize(loading * RNG.standard_normal((n, 1)) + noise, ends).astype(float)


def documents(n, length, n_words=1000):
    """Counts of words by Zipf's law in documents of about so many."""
    words = [np.minimum(RNG.zipf(1.4, 1 + RNG.poisson(length)), n_words) - 1 for _ in range(n)]
    return np.array([np.bincount(each, minlength=n_words) for each in words], dtype=float)


def survey(n):
    """A table like that of a census: most values are those of most people."""
    ages = np.clip(RNG.gamma(8, 5, n), 17, 90).round()
    hours = np.where(RNG.random(n) < 0.5, 40, RNG.choice([20, 30, 45, 50], n))
    gain = np.where(RNG.random(n) < 0.08, RNG.integers(0, 99999, n), 0)
    codes = [RNG.choice(k, n, p=np.r_[0.7, np.full(k - 1, 0.3 / (k - 1))]) for k in (8, 7, 5, 2)]
    return np.column_stack([ages, hours, gain, one_hot(np.column_stack(codes))])


FLOATS = RNG.standard_normal((N, 5))
COARSE = {
    "one category": one_hot(RNG.integers(0, 12, (N, 1))),
    "categories": one_hot(RNG.integers(0, 3, (200, 4))),
    "yes or no, in two columns each": one_hot(RNG.integers(0, 2, (200, 6))),
    "ages and sex": np.column_stack([RNG.integers(20, 80, 300), RNG.integers(0, 2, 300)]),
    "counts": RNG.poisson(0.7, (500, 6)),
    "rare flags": RNG.random((1000, 30)) < 0.01,
    "answers that agree": answers(1000, 20, [-0.5, 0.5], 0.98),
    "grades of one scale": RNG.standard_normal((200, 1)) > np.linspace(-2, 2, 10),
    "documents": documents(2000, 3),
    "census": survey(20_000),
    "replicated design": np.tile(one_hot(np.indices((3, 3, 3)).reshape(3, -1).T), (3, 1)),
    "the same in months": np.repeat([[1.0, 12.0]], N, axis=0) * RNG.integers(20, 80, (N, 1)),
}
FINE = {
    "answers of chance": RNG.integers(0, 5, (150, 20)),
    "numbers": FLOATS,
    "two numbers and flags": np.hstack([FLOATS[:, :2], RNG.integers(0, 2, (N, 4))]),
    "a number and many flags": np.hstack([FLOATS[:, :1], RNG.integers(0, 2, (N, 20))]),
    "long documents": documents(300, 100),
}


@pytest.mark.parametrize(("name", "kind"), in_turn(COARSE, [np.asarray, sp.csr_matrix]))
def test_twins_among_rows_nearly_equal_are_ordinary(name, kind):
    rows = COARSE[name].astype(float)
    assert len(np.unique(rows, axis=0)) < 0.95 * len(rows)
    assert n_noticed(kind(rows)) == 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", FINE)
def test_twins_without_rows_nearly_equal_are_copies(name, kind):
    rows = FINE[name].astype(float)
    twice = again(rows)
    assert n_noticed(kind(rows)) == 0
    assert n_noticed(kind(twice)) > 0.9 * (len(twice) - len(rows))
    assert n_noticed(kind(again(rows, 0.04))) == 0  # too few to matter


@pytest.mark.parametrize(
    "estimator", [KernelClassifier(), KernelRegressor(), KernelClassifier(loss="hinge")]
)
def test_fit_warns_of_copies(estimator):
    with pytest.warns(DuplicatesWarning, match="30 of 120 rows are duplicates"):
        estimator.fit(X[AGAIN], Y[AGAIN])


@pytest.mark.parametrize("Estimator", [KernelClassifier, KernelRegressor])
def test_copies_held_out_together_are_not_seen_by_the_machine_that_predicts_them(Estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicatesWarning)
        apart = Estimator().fit(X[AGAIN], Y[AGAIN])
    together = Estimator().fit(X[AGAIN], Y[AGAIN], groups=duplicate_groups(X[AGAIN]))
    assert not apart.units_.grouped
    assert partition(together.units_.clusters) == partition(AGAIN)
    ours = together.held_out_
    theirs = refit_loo(together.kernel_(X[AGAIN]), ours.y, together.mu_, folds=AGAIN)
    assert_allclose(ours.outputs, theirs.outputs, rtol=1e-7, atol=1e-9)
    assert_allclose(ours.outputs[N:], ours.outputs[:30], atol=1e-12)
    # The criterion chose by them, so the copies did not pull it to a nearest neighbor.
    assert together.selection_.value == pytest.approx(np.mean(ours.residuals**2))
    assert together.kernel_.gamma < 0.01 < 1.0 < apart.kernel_.gamma


@pytest.mark.parametrize("Estimator", [KernelClassifier, KernelRegressor])
def test_copies_that_are_held_out_together_or_of_no_consequence_bring_no_warning(Estimator):
    together = Estimator(mu=0.1).fit(X[AGAIN], Y[AGAIN], groups=duplicate_groups(X[AGAIN]))
    assert not np.allclose(together.held_out_.outputs, together.loo_.outputs, rtol=1e-3)
    assert not Estimator(mu=0.1).fit(X[AGAIN], Y[AGAIN]).units_.grouped  # nothing is chosen by them
