"""Mixed columns with gaps to a matrix: what each kind of column becomes, then and at prediction."""

import builtins
import datetime
import sys
import tracemalloc
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from looms import _optional
from looms.tables import TablePreprocessor, _preprocessor
from looms.tables._preprocessor import serious_remarks
from looms.tables._unseen import UnseenValues

FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50, 60],
        "income": [1.0, np.nan, 2.0, 6.0],
        "town": ["Bath", None, "York", "Bath"],
        "owner": [True, False, True, True],
        "seen": pd.to_datetime(["1970-01-02", "1970-01-03", None, "1970-01-04"]),
        "constant": [7, 7, 7, 7],
        "empty": [None, None, None, None],
    }
)


def prepared(X):
    return TablePreprocessor().fit_transform(X)


def scaled(values, share_of_pairs_that_differ=1.0):
    values = np.asarray(values, dtype=float)
    return (values - values.mean()) / values.std() * share_of_pairs_that_differ**0.5


def test_every_kind_of_column_by_hand():
    transformer = TablePreprocessor()
    matrix = transformer.fit_transform(FRAME)
    expected = np.column_stack(
        [
            scaled([30, 40, 50, 60]),
            scaled([1, 2, 2, 6], 5 / 6),  # the median of 1, 2 and 6 for the gap
            scaled([1, 2, 2, 3], 5 / 6),  # days, the median for the gap
            [0, 1, 0, 0],  # income is missing
            [0, 0, 1, 0],  # seen is missing
            [1, 0, 0, 1],  # Bath
            [0, 0, 1, 0],  # York
            [0, 1, 0, 0],  # no town
            [0, 1, 0, 0],  # False
            [1, 0, 1, 1],  # True
        ]
    )
    np.testing.assert_allclose(matrix, expected, atol=1e-15)
    assert matrix.dtype == np.float64
    assert transformer.get_feature_names_out().tolist() == [
        *("age", "income", "seen", "income is missing", "seen is missing"),
        *("town = Bath", "town = York", "town is missing", "owner = False", "owner = True"),
    ]
    sources = "age income seen income seen town town town owner owner"
    assert transformer.columns_.tolist() == sources.split()
    assert list(transformer.kinds_) == list(FRAME)[:5]


def test_new_rows_are_read_by_the_columns_of_the_fit():
    transformer = TablePreprocessor().fit(FRAME)
    shuffled = FRAME[["town", "seen", "income", "owner", "age"]].assign(other="x")
    np.testing.assert_array_equal(transformer.transform(shuffled), prepared(FRAME))
    new = transformer.transform(FRAME.assign(town="Leeds"))
    assert not new[:, transformer.columns_ == "town"].any()
    row = transformer.transform(pd.DataFrame({name: [None] for name in FRAME}))[0]
    assert row[0] == pytest.approx(transformer.transform(FRAME.assign(age=45))[0, 0])
    assert np.isfinite(row).all()
    less = FRAME.rename(columns={"town": "Town"})
    with pytest.raises(ValueError, match=r"2 .*'age', 'town'"):
        transformer.transform(less.drop(columns="age"))
    with pytest.raises(ValueError, match=r"'town' \('Town'"):
        transformer.transform(less)


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("age", ["30", "x", "50", "60"], "numbers, and row 1 holds 'x'"),
        ("age", [1, 2, 3, np.inf], "numbers, and row 3 holds inf"),
        ("age", [datetime.date(2021, 1, 1)] * 4, "numbers, and row 0"),
        ("seen", ["never", None, None, None], "dates, and row 0"),
        ("seen", np.array([20210101, None, 1], object), "dates, and row 0 holds 20210101"),
        ("seen", ["03/04/2021"], "'03/04/2021'"),
    ],
)
def test_another_kind_of_column_at_prediction(name, values, problem):
    transformer, new = TablePreprocessor().fit(FRAME), FRAME[: len(values)]
    with pytest.raises(ValueError, match=f"'{name}' is a column of .*{problem}"):
        transformer.transform(new.assign(**{name: values}))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([b"a", b"b"], "bytes"),
        ([1j, 2.0], "complex"),
        (pd.to_timedelta([1, 2], "D"), "durations"),
        ([1.0, np.inf], "row 1 .*inf"),
    ],
)
def test_columns_that_are_refused_by_name(values, problem):
    with pytest.raises(ValueError, match=f"'bad' .*{problem}"):
        TablePreprocessor().fit(pd.DataFrame({"good": [1, 2], "bad": values}))


def test_beyond_the_limit_rare_and_unseen_categories_share_a_column():
    often = [f"often{j}" for j in range(39)] * 2
    frame = pd.DataFrame({"town": [*often, *(f"rare{j}" for j in range(50))]})
    transformer = TablePreprocessor()
    matrix = transformer.fit_transform(frame)
    assert matrix.shape[1] == 40
    assert transformer.get_feature_names_out()[-1] == "town is rare"
    assert TablePreprocessor(max_categories=7).fit_transform(frame).shape[1] == 7
    unseen = transformer.transform(pd.DataFrame({"town": ["unseen"]}))
    np.testing.assert_array_equal(unseen, matrix[-1:])


def test_what_each_column_is_is_found_in_the_rows_of_a_fold():
    """As in cross-validation: columns vary in the table, not in the rows at hand."""
    transformer = TablePreprocessor().fit(FRAME)
    rest = FRAME.assign(income=np.nan, town=None)
    assert list(transformer.fit(rest).kinds_) == ["age", "owner", "seen"]
    np.testing.assert_array_equal(transformer.transform(FRAME), transformer.transform(rest))
    np.testing.assert_array_equal(clone(transformer).fit(FRAME).transform(FRAME), prepared(FRAME))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.array([1, None, 3], dtype="Int64"), "number"),
        (np.array([1, 2.5, None], dtype=object), "number"),
        (pd.array([True, None, False], dtype="boolean"), "truth"),
        (["TRUE", "false", "0", None], "truth"),
        ([datetime.time(1), datetime.time(2)], "category"),
        (np.array([1.5, "x"], dtype=object), "category"),
        ([9007199254740993, 1], "category"),
        (pd.Categorical([1, 2, 2]), "category"),
        (["a", 1, None], "category"),
        ([datetime.date(2006, 7, 16), datetime.date(2007, 8, 12), None], "date"),
        (pd.to_datetime(["2006-07-16", "2007-08-12", None]).tz_localize("UTC"), "date"),
        (["03/04/2021", "05/06/2021"], "category"),  # which number is the day?
        (["31.02.2021", "01.02.2021"], "category"),
        (["2021-01-31", "soon"], "category"),
        *((cells, "category") for cells in (["2021", "2022"], ["1.2.3", "1.2.4"])),
        (["20210131", "20210205"], "category"),
        (["March", "Marching band of 1999"], "category"),
    ],
)
def test_kinds_of_columns(values, kind):
    frame = pd.DataFrame({"column": values})
    transformer = TablePreprocessor()
    assert np.isfinite(transformer.fit_transform(frame)).all()
    assert transformer.kinds_ == {"column": kind}


def test_only_columns_that_vary_are_kept():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "x"], "c": [None, np.nan, pd.NaT]})
    transformer = TablePreprocessor()
    np.testing.assert_array_equal(transformer.fit_transform(frame)[:, 1], [1, 0, 1])
    assert list(transformer.kinds_) == ["a", "b"]
    with pytest.raises(ValueError, match="no column"):
        (transformer := TablePreprocessor()).fit(FRAME[["constant", "empty"]])
    with pytest.raises(NotFittedError):
        transformer.transform(FRAME)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_input_stays_sparse(kind):
    X = np.array([[0, 2.0], [4, 0], [0, 1]])
    transformer = TablePreprocessor()
    scaled = transformer.fit_transform(kind(X))
    assert sparse.issparse(scaled)
    np.testing.assert_array_equal(scaled.toarray(), [[0, 1], [1, 0], [0, 0.5]])
    np.testing.assert_array_equal(transformer.transform(X).toarray(), scaled.toarray())
    assert (transformer.kinds_, transformer.ranges_, transformer.remarks_) == ({}, {}, ())
    with pytest.raises(ValueError, match="3 features"):
        transformer.transform(kind((1, 3)))
    with pytest.raises(ValueError, match="zero"):
        TablePreprocessor().fit(kind((3, 4)))
    with pytest.raises(TypeError, match="sparse"):
        TablePreprocessor().fit(X).transform(kind(X))


def test_columns_that_are_zero_in_training_do_not_exist():
    X = sparse.csr_array(([3.0, 0.0, 4.0], ([0, 0, 1], [2, 5, 10**9])), shape=(2, 10**9 + 1))
    transformer = TablePreprocessor().fit(X)
    np.testing.assert_array_equal(transformer.transform(X).toarray(), [[1, 0], [0, 1]])
    new = sparse.csr_array(
        ([7.0, 6.0, 1.0, 9.0], ([0, 0, 1, 1], [0, 2, 5, 10**9])), shape=(2, 10**9 + 1)
    )
    np.testing.assert_array_equal(transformer.transform(new).toarray(), [[2, 0], [0, 2.25]])
    assert transformer.get_feature_names_out().tolist() == ["x2", "x1000000000"]


ISO = ["2021-01-31", "2021-02-05", None, "2021-12-01"]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (ISO, "date"),
        (["31.01.2021", "5.2.2021", None, "01.12.2021"], "day-first date"),
        (["31/01/2021", "05/02/2021", None, "1/12/2021"], "day-first date"),
        (["01/31/2021", "2/5/2021", None, "12-01-2021 0:00"], "month-first date"),
        (["2021/01/31", "2021/2/5", None, "2021/12/01"], "date"),
        (["31-Jan-2021", "05-Feb-2021", None, "1-Dec-2021"], "date"),
        (["31 january 2021", "5 February 2021", None, "01 December 2021 "], "date"),
        (["Jan 31 2021 00:00", "Feb 5 2021 00:00", None, "Dec 1 2021 00:00"], "date"),
    ],
)
def test_dates_however_written_are_the_same_days(cells, kind):
    written, typed = pd.DataFrame({"day": cells}), pd.DataFrame({"day": pd.to_datetime(ISO)})
    transformer = TablePreprocessor().fit(written)
    assert transformer.kinds_ == {"day": kind}
    of_typed = TablePreprocessor()
    expected = of_typed.fit_transform(typed)
    np.testing.assert_array_equal(transformer.transform(written), expected)
    np.testing.assert_array_equal(transformer.transform(typed), expected)
    if kind == "date":
        np.testing.assert_array_equal(of_typed.transform(written), expected)


def days_of(transformer, name, cells):
    """Days since 1970 of dates, from their scaled values."""
    floats = transformer.transform(pd.DataFrame({name: cells}))[:, 0]
    return floats * transformer.scales_ + transformer.means_


@pytest.mark.parametrize(
    ("kind", "cells", "new", "day"),
    [
        ("date", ISO, "31.01.2021", 18658),
        ("date", ISO, "01/31/2021", 18658),
        ("date", ISO, "January 31, 2021", 18658),
        ("date", ISO, "05/02/2021", None),  # which number is the day?
        ("date", ["31-Jan-2021", "05-Feb-2021"], "2021-02-05", 18663),
        ("date", ["31-Jan-2021", "05-Feb-2021"], "soon", None),
        ("date", ["May 2021", "June 2021", None], "May 2021", 18748),
        ("month-first date", ["01/31/2021", "02/05/2021"], "03/04/2021", 18690),
        ("month-first date", ["01/31/2021", "02/05/2021"], "31/01/2021", None),
    ],
)
def test_dates_of_new_rows_are_read_by_the_order_of_the_fit_or_if_they_are_clear(
    kind, cells, new, day
):
    transformer = TablePreprocessor().fit(pd.DataFrame({"day": cells}))
    assert transformer.kinds_ == {"day": kind}
    if day is not None:
        np.testing.assert_allclose(days_of(transformer, "day", [new, None])[:1], [day])
        return
    with pytest.raises(ValueError, match=f"column of {kind}s, and row 1 holds '{new}'"):
        transformer.transform(pd.DataFrame({"day": [None, new]}))


# Against steps of pandas and scikit-learn ----------------------------------------


def mixed(n, seed=0):
    """Numbers with ties and gaps, texts of few and of many values, booleans, dates."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 999, n), unit="D")
    frame = pd.DataFrame(
        {
            "color": rng.choice(["red", "blue", "green"], n).astype(object),
            "size": rng.normal(size=n) * 1e3,
            "visits": rng.integers(0, 4, n).astype(float),
            "town": rng.choice([f"town {j}" for j in range(70)], n),
            "owner": rng.random(n) < 0.3,
            "born": days,
        }
    )
    for name in ("color", "visits", "born"):
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame


def by_hand(frame, new):
    """The matrix of new rows, by a ColumnTransformer of columns that pandas converted."""

    def columns(of):
        owner, born = of["owner"].map({True: "True", False: "False"}), of["born"]
        born = (born - pd.Timestamp(0)) / pd.Timedelta(days=1)
        return of.assign(owner=owner, born=born).replace({None: np.nan})

    numbers, categories = ["size", "visits", "born"], ["color", "town", "owner"]
    filled = SimpleImputer(strategy="median").fit_transform(columns(frame)[numbers])
    counts = [pd.Series(of).value_counts().to_numpy() for of in filled.T]
    differ = [1 - each @ (each - 1) / (len(frame) * (len(frame) - 1)) for each in counts]
    standard = StandardScaler().fit(filled)
    means, scales = standard.mean_, standard.scale_ / np.sqrt(differ)
    scale = FunctionTransformer(lambda Z: (Z - means) / scales)
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=40, sparse_output=False
    )
    steps = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), scale), numbers),
            ("gaps", MissingIndicator(error_on_new=False), numbers),
            ("categories", encode, categories),
        ]
    )
    return steps.fit(columns(frame)).transform(columns(new))


@pytest.mark.parametrize("n", [30, 700])
def test_the_matrix_is_that_of_steps_of_scikit_learn_to_the_last_bit(n):
    frame, new = mixed(n), mixed(50, seed=1)
    transformer = TablePreprocessor()
    np.testing.assert_array_equal(transformer.fit_transform(frame), by_hand(frame, frame))
    np.testing.assert_array_equal(transformer.transform(new), by_hand(frame, new))
    np.testing.assert_array_equal(clone(transformer).fit(frame).transform(new), by_hand(frame, new))


@parametrize_with_checks([TablePreprocessor()])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


# Attributes ----------------------------------------------------------------------


def test_attributes_are_of_all_columns_or_of_those_that_are_kept():
    transformer = TablePreprocessor().fit(FRAME)
    assert transformer.n_features_in_ == 7
    assert transformer.feature_names_in_.tolist() == list(FRAME)
    assert transformer.ranges_ == {"age": [30, 60], "income": [1, 6], "seen": [1, 3]}
    dropped, of_dates = transformer.remarks_
    assert "'constant'" in dropped
    assert of_dates.startswith("'seen'")
    more = TablePreprocessor().fit(FRAME, ranges={"age": [1.0, 99.0], "other": [0.0, 1.0]})
    assert more.ranges_ == {"age": [1, 99], "income": [1, 6], "seen": [1, 3]}
    shown = transformer.set_output(transform="pandas").transform(FRAME[2:])
    assert list(shown) == transformer.get_feature_names_out().tolist()
    assert shown.index.tolist() == [2, 3]


def test_remarks_name_the_columns_and_cells():
    rows = np.arange(90)
    cells = [str(k / 2) for k in rows]
    cells[6] = "twelve"
    columns = {"size": cells, "number": rows, "patient": rows // 3, "b": rows % 5}
    frame = pd.DataFrame(columns, index=[f"P{k}" for k in rows])
    words, identifier, repeated = TablePreprocessor().fit(frame).remarks_
    assert "'twelve' in row P6" in words
    assert "'number'" in identifier
    assert "'patient'" in repeated


@pytest.mark.parametrize(
    ("form", "n", "told"),
    [
        *(("{:.1f} %", 15, True), ("{:.1f}", 15, True)),
        *(("{:.1f}", 5, False), ("{:02d}", 15, False)),  # few, or such codes, are usual
        *(("{:d}", 30, True), ("1{:04d}", 30, False), ("{:d}", 15, False)),
    ],
)
def test_numbers_in_text_are_remarked_on(form, n, told):
    for mark in ".," if n > 5 else ".":
        cells = [form.format(k).replace(".", mark) for k in range(n)] * 2
        remarks = TablePreprocessor().fit(pd.DataFrame({"size": cells})).remarks_
        assert any("convert them to numbers" in each for each in remarks) == told


@pytest.mark.parametrize(
    ("stand_in", "n", "told"),
    [(999, 5, True), (-999.0, 5, True), (0, 5, False), (999, 2, False), (6, 5, False)],
)
def test_numbers_that_may_stand_for_gaps_are_remarked_on(stand_in, n, told):
    values = np.where(np.arange(60) < n, stand_in, np.linspace(1, 4, 60))
    remarks = TablePreprocessor().fit(pd.DataFrame({"size": values, "b": values[::-1]})).remarks_
    found = [each for each in remarks if "stands for a gap" in each]
    assert len(found) == told
    assert not told or ("'size' is" in found[0] and "so it is in 'b'" in found[0])


def test_columns_and_their_kinds_may_be_given():
    frame = pd.DataFrame({"day": ["2021-01-31", "2021-02-05", "soon"], "code": [1, 2, 1]})
    whole = TablePreprocessor().fit(frame)
    with pytest.raises(ValueError, match="dates, and row 2 holds 'soon'"):
        TablePreprocessor().fit(frame[:2]).transform(frame)
    again = TablePreprocessor(kinds=whole.kinds_).fit(frame[:2].assign(other=[1, 2]))
    assert again.kinds_ == whole.kinds_ == {"day": "category", "code": "number"}
    assert again.n_features_in_ == 3
    assert again.transform(frame).shape == (3, 3)
    codes = TablePreprocessor(kinds={"code": "category"})
    np.testing.assert_array_equal(codes.fit_transform(frame), [[1, 0], [0, 1], [1, 0]])
    array = TablePreprocessor(kinds={"x1": "category"}).fit_transform([[0, 7], [1, 8], [3, 7]])
    np.testing.assert_array_equal(array, [[1, 0], [0, 1], [1, 0]])
    mixed = pd.DataFrame({"n": ["1,5", 2.0, "2,25"], "code": ["1", "2", "1"]})
    comma = TablePreprocessor(kinds={"n": "number", "code": "number"}).fit(mixed)
    assert comma.kinds_.decimal == ","
    with pytest.raises(ValueError, match=r"'1\.250'"):
        comma.transform(pd.DataFrame({"n": ["1.250"], "code": ["1"]}))
    for kinds, named in (({"cod": "number"}, r"'cod' \('code'"), ({"code": "text"}, "'code'")):
        with pytest.raises(ValueError, match=named):
            TablePreprocessor(kinds=kinds).fit(frame)


# Other tables than data frames of pandas -----------------------------------------


@pytest.mark.parametrize("how", ["floats", "objects", "lists"])
def test_arrays_are_as_data_frames_without_names(how):
    frame = mixed(80)[["size", "visits"] if how == "floats" else ["size", "visits", "color"]]
    X = frame.to_numpy() if how == "floats" else frame.to_numpy(dtype=object)
    X = X.tolist() if how == "lists" else X
    transformer = TablePreprocessor()
    np.testing.assert_array_equal(transformer.fit_transform(X), prepared(frame))
    assert list(transformer.kinds_) == ["x0", "x1", "x2"][: frame.shape[1]]
    assert not hasattr(transformer, "feature_names_in_")
    np.testing.assert_array_equal(transformer.transform(X[40:]), prepared(frame)[40:])
    with pytest.raises(ValueError, match="has 1 features, but TablePreprocessor is expecting"):
        transformer.transform([row[:1] for row in X])


def test_columns_of_an_array_are_found_by_their_place():
    """The first is constant, and left out."""
    X = np.column_stack([np.ones(4), [1.0, 2, 5, 9], [np.nan, 1, 1, 2]])
    transformer = TablePreprocessor().fit(X)
    assert list(transformer.kinds_) == ["x1", "x2"]
    np.testing.assert_array_equal(
        transformer.transform(X + np.array([7, 0, 0])), prepared(X[:, 1:])
    )
    frame = pd.DataFrame(X)  # names that are numbers are places
    np.testing.assert_array_equal(transformer.transform(frame), prepared(X[:, 1:]))
    unnamed = TablePreprocessor().fit(frame)
    np.testing.assert_array_equal(unnamed.transform(X), prepared(X[:, 1:]))  # and silently
    named = TablePreprocessor().fit(frame.set_axis(["a", "b", "c"], axis=1))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(named.transform(X), prepared(X[:, 1:]))


def without(monkeypatch, package):
    """Make the import of a package fail."""

    def imported(name, *rest, ordinary=builtins.__import__, **options):
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(name, name=package)
        return ordinary(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", imported)
    monkeypatch.setattr(_optional, "import_module", imported)
    monkeypatch.delitem(sys.modules, package)


def test_numbers_in_an_array_do_not_need_pandas(monkeypatch):
    X = np.array([[1.0, np.nan], [2.0, 3.0], [5.0, 4.0]])
    expected = prepared(pd.DataFrame(X, columns=["a", "b"]))
    without(monkeypatch, "pandas")
    np.testing.assert_array_equal(prepared(X), expected)
    np.testing.assert_array_equal(prepared(pl.DataFrame(X, schema=["a", "b"])), expected)


def test_polars_does_not_need_pyarrow(monkeypatch):
    frame = pd.DataFrame(
        {
            "day": pd.date_range("2020-01-01", periods=90).date,
            "price": [Decimal(f"{k / 8:.3f}") for k in range(90)],
            "code": [None if k % 7 == 0 else k % 5 for k in range(90)],
            "grade": [f"2020-01-0{k % 3 + 1}" for k in range(90)],
        },
        dtype=object,
    ).astype({"grade": "category"})  # which are no dates
    polar = pl.DataFrame(frame.to_dict("list")).with_columns(pl.col("grade").cast(pl.Categorical))
    expected, kinds = prepared(frame), TablePreprocessor().fit(frame).kinds_
    assert [*kinds.values()] == ["date", "number", "number", "category"]
    without(monkeypatch, "pyarrow")
    transformer = TablePreprocessor()
    np.testing.assert_array_equal(transformer.fit_transform(polar), expected)
    assert transformer.kinds_ == kinds
    shuffled = polar.select(reversed(polar.columns))
    np.testing.assert_array_equal(transformer.transform(shuffled), expected)


DAYS = pd.date_range("2024-01-01", periods=3)
NAMES = [[2019, 2020, 2021], [True, False, "a"], ["a", 1, None], DAYS, range(3)]
NAMES += [pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])]


@pytest.mark.parametrize("names", NAMES, ids=str)
def test_columns_are_found_by_names_of_any_type(names):
    values = np.array([[1.0, 5, 2], [2, 0, 9], [4, 7, np.nan]])
    frame = pd.DataFrame(values).set_axis(names, axis=1)
    transformer, expected = TablePreprocessor(), prepared(values)
    np.testing.assert_array_equal(transformer.fit_transform(frame), expected)
    assert len(transformer.kinds_) == len({*transformer.feature_names_in_}) == 3
    others = pd.Index([*frame.iloc[:, [2, 0, 1]].columns, "another"], tupleize_cols=False)
    more = frame.iloc[:, [2, 0, 1, 1]].set_axis(others, axis=1)
    np.testing.assert_array_equal(transformer.transform(more), expected)
    given = TablePreprocessor(kinds={frame.columns[2]: "category"}).fit(frame)
    assert [*given.kinds_.values()] == ["category"]
    for twice in (["1", "1", "2"], [1, "1", "2"]):
        with pytest.raises(ValueError, match="'1'"):
            TablePreprocessor().fit(frame.set_axis(twice, axis=1))


# Rows unlike those of the fit ----------------------------------------------------


def test_rows_unlike_those_of_the_fit_are_counted_in_blocks():
    frame = pd.DataFrame({"a": [0.0, 4], "b": [0.0, 4], "town": ["x", "y"], "c": [1, 2]})
    new = pd.DataFrame(
        {
            "a": [5.0, 5.1, -7, None],  # at most a quarter of the range beyond it is not far
            "b": [1.0, 9, 8, 1],
            "town": ["x", "z", None, "w"],
            "c": [None, None, None, None],
        }
    )
    transformer = TablePreprocessor().fit(frame)
    unseen = UnseenValues(transformer)
    parts = [unseen.add(new[:3]), unseen.add(new[3:])]
    np.testing.assert_array_equal(np.vstack(parts), transformer.transform(new))
    assert unseen.n_rows == 4
    gap, far, category = (note.text for note in unseen.notes())
    assert "'c'" in gap
    for part in ("in 2 of 4 rows", "'a'", "0 to 4, furthest -7", "'b'", "furthest 9"):
        assert part in far
    assert category.startswith("in 2 of 4 rows 'town'")
    assert "'z'" in category
    like = UnseenValues(transformer)
    like.add(frame)
    assert like.notes() == ()


@pytest.mark.parametrize("n_more", [5, 6])
def test_only_the_notes_on_most_rows_are_shown(n_more):
    frame = pd.DataFrame({f"c{k}": np.linspace(0, 1, 9) for k in range(n_more)})
    new = frame.copy()
    for k in range(n_more):
        new.loc[:k, f"c{k}"] = 50
    unseen = UnseenValues(TablePreprocessor().fit(frame))
    unseen.add(new)
    first, *_, last = (note.text for note in unseen.notes())
    assert first.startswith(f"in {n_more} of 9 rows 'c{n_more - 1}'")
    assert last.startswith("1 more") == (n_more == 6)
    assert len(unseen.notes()) == 5 + (n_more == 6)


def test_names_of_rows_are_no_features_unless_kinds_say_so():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"B{k:03}" for k in range(60)], "x": rng.normal(size=60)})
    for _ in range(2):
        found = TablePreprocessor().fit(frame)
        assert found.kinds_ == {"x": "number"}
        assert any("dropped" in remark for remark in found.remarks_)
        frame.loc[[7, 8], "id"] = "B001"  # a few rows may share theirs
    asked = TablePreprocessor(kinds={"id": "category", "x": "number"}).fit(frame)
    assert asked.kinds_ == asked.kinds
    assert not any("dropped" in remark for remark in asked.remarks_)
    with pytest.raises(ValueError, match=r"two different values that several rows share"):
        TablePreprocessor().fit(frame[["id"]])


ORDINARY = [datetime.datetime(2020, 1, 1 + k) for k in range(21)]


@pytest.mark.parametrize(
    ("form", "odd", "place"),
    [("%Y-%m-%d", "2020-13-01", 0), ("%d.%m.%Y", "30.02.2020", 5), ("%d-%b-%Y", "31-Jun-2020", 5)],
)
def test_an_impossible_date_among_dates_is_told(form, odd, place):
    cells = [cell.strftime(form) for cell in ORDINARY]
    cells[place] = odd
    transformer = TablePreprocessor().fit(pd.DataFrame({"a": range(21), "when": cells}))
    (told,) = (text for text in serious_remarks(transformer, 21) if "when" in text)
    assert f"{odd!r} in row {place}" in told


@pytest.mark.parametrize("huge", [1e154, -1e300, -(10**400)], ids=range(3))
def test_a_huge_cell_is_called_so(huge):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}, dtype=object)
    array, known = frame.to_numpy().copy(), TablePreprocessor(kinds={"a": "number"})
    of_frame, of_array = TablePreprocessor().fit(frame), TablePreprocessor().fit(array)
    frame.loc[1, "b"] = array[1, 1] = huge
    floats = array if isinstance(huge, int) else array.astype(float)
    for read, X, name in (
        *((TablePreprocessor().fit, frame, "b"), (of_frame.transform, frame, "b")),
        *((TablePreprocessor().fit, floats, "x1"), (of_array.transform, array.tolist(), "x1")),
        (known.fit, pd.DataFrame({"a": ["1", str(huge) if abs(huge) < 1e300 else "1e200"]}), "a"),
    ):
        with pytest.raises(
            ValueError, match=rf"'{name}' goes up to .*e\+.* in row 1, beyond 1e\+150"
        ):
            read(X)
    with pytest.raises(ValueError, match="is a column of numbers, and row 1 holds 'inf'"):
        known.fit(pd.DataFrame({"a": ["1", "inf", "2"]}))


@pytest.mark.slow
def test_memory_of_many_rows_is_that_of_two_matrices(monkeypatch):
    X = np.random.default_rng(0).normal(size=(3000, 400))
    X[::7, 3] = np.nan
    model = TablePreprocessor().fit(X[:100])
    monkeypatch.setattr(_preprocessor, "_NUMBERS", X.size // 30)
    tracemalloc.start()
    try:
        matrix = model.transform(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.7 * X.nbytes
    monkeypatch.setattr(_preprocessor, "_NUMBERS", X.size)
    assert_array_equal(model.transform(X), matrix)


def test_features_tell_the_cells_they_were_made_of():
    table = pd.DataFrame(
        {
            "size": [0.1, None, 12345.678, 3.0],
            "day": pd.to_datetime(["2024-02-25", "2024-02-26", None, "1969-12-31"]),
            "color": ["rare", None, "b", "rare"],
            "ok": [True, False, True, True],
            "many": ["x", "y", "z", "x"],
        }
    )
    prepare = TablePreprocessor(max_categories=2)
    cells = prepare.inverse_transform(prepare.fit_transform(table))
    assert cells.columns.to_list() == [*table]
    assert_array_equal(cells["size"], table["size"])
    assert_array_equal(cells["day"], [19778, 19779, np.nan, -1])
    found = {name: [None if c != c else c for c in cells[name]] for name in ("color", "ok", "many")}
    assert found["color"] == ["rare", "rare values", "rare values", "rare"]
    assert found["ok"] == ["True", "False", "True", "True"]
    assert found["many"] == ["x", "rare", "rare", "x"]
    new = prepare.inverse_transform(prepare.transform(table.assign(ok="False", size=-1.25)))
    assert (new["size"] == -1.25).all()
    assert (new["ok"] == "False").all()
    few = TablePreprocessor().fit(table)
    unseen = few.inverse_transform(few.transform(table.assign(color=[None, "new", "b", "rare"])))
    assert [None if c != c else c for c in unseen["color"]] == [None, None, "b", "rare"]
    with pytest.raises(ValueError, match="9 features"):
        few.inverse_transform(np.zeros((2, 9)))
    matrix = sparse.csr_array(np.array([[0.0, 2.0, 0.0, -4.0], [0.0, 0.0, 0.0, 1.0]]))
    back = TablePreprocessor().fit(matrix)
    assert_allclose(back.inverse_transform(back.transform(matrix)).toarray(), matrix.toarray())
