"""Mixed columns with gaps to a matrix: what each kind of column becomes, then and at prediction."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from looms.datasets import read_table
from looms.tables import table_preprocessor
from looms.tables._kinds import as_text
from looms.tables._transformers import MAX_CATEGORIES, TableColumns

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


def scaled(values, share_of_pairs_that_differ=1.0):
    values = np.asarray(values, dtype=float)
    return (values - values.mean()) / values.std() * share_of_pairs_that_differ**0.5


def test_every_kind_of_column_by_hand():
    transformer = table_preprocessor(FRAME)
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
    assert transformer[-1].get_feature_names_out()[[0, 5]].tolist() == [
        "numbers__age",
        "categories__town_Bath",
    ]
    assert transformer[0].get_feature_names_out().tolist() == list(FRAME)[:5]


def test_real_table_is_finite(data_folder):
    X = read_table(data_folder / "credit.csv", "target").X
    matrix = clone(table_preprocessor(X)).fit_transform(X)
    assert np.isfinite(matrix).all()
    assert matrix.shape[1] > X.shape[1]


def test_columns_by_name_in_any_order_with_others_beside():
    transformer = table_preprocessor(FRAME).fit(FRAME)
    shuffled = FRAME[["town", "seen", "income", "owner", "age"]].assign(other="x")
    np.testing.assert_array_equal(transformer.transform(shuffled), transformer.transform(FRAME))


def test_missing_columns_are_named():
    transformer = table_preprocessor(FRAME).fit(FRAME)
    less = FRAME.rename(columns={"town": "Town"}).drop(columns="age")
    with pytest.raises(ValueError, match=r"2 of the model's 5 columns are missing: 'age', 'town'"):
        transformer.transform(less)
    with pytest.raises(ValueError, match=r"missing: 'town' \('Town' is there\)"):
        transformer.transform(FRAME.rename(columns={"town": "Town"}))


def test_unseen_category_gets_zeros():
    transformer = table_preprocessor(FRAME).fit(FRAME)
    names = transformer[-1].get_feature_names_out().tolist()
    towns = [j for j, name in enumerate(names) if name.startswith("categories__town")]
    new = transformer.transform(FRAME.assign(town="Leeds"))
    assert not new[:, towns].any()
    assert np.isfinite(new).all()


def test_beyond_the_limit_rare_and_unseen_categories_share_a_column():
    often = [f"often{j}" for j in range(MAX_CATEGORIES - 1)] * 2
    frame = pd.DataFrame({"town": [*often, *(f"rare{j}" for j in range(50))]})
    transformer = table_preprocessor(frame)
    matrix = transformer.fit_transform(frame)
    assert matrix.shape[1] == MAX_CATEGORIES
    unseen = transformer.transform(pd.DataFrame({"town": ["unseen"]}))
    np.testing.assert_array_equal(unseen, matrix[-1:])


def test_all_missing_at_prediction_is_the_median_and_no_category():
    transformer = table_preprocessor(FRAME).fit(FRAME)
    one = pd.DataFrame({name: [None] for name in FRAME})
    row = transformer.transform(one)[0]
    at_median = transformer.transform(FRAME.assign(age=45))[0, 0]
    assert row[0] == pytest.approx(at_median)
    assert np.isfinite(row).all()


def test_column_that_is_empty_in_the_rows_of_a_fold():
    """As in cross-validation: the column varies in the table, not in the rows at hand."""
    transformer = table_preprocessor(FRAME)
    matrix = transformer.fit_transform(FRAME.assign(income=np.nan, town=None))
    assert np.isfinite(matrix).all()


def test_few_whole_numbers_stay_numbers():
    assert table_preprocessor(FRAME)[0].kinds["age"] == "number"
    zero_one = pd.DataFrame({"flag": [0, 1, 1]})
    assert table_preprocessor(zero_one).fit_transform(zero_one).shape == (3, 1)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.array([1, None, 3], dtype="Int64"), "number"),
        ([Decimal("1.5"), Decimal("2"), None], "number"),
        (np.array([1, 2.5, None], dtype=object), "number"),
        (pd.array([True, None, False], dtype="boolean"), "category"),
        (pd.Categorical([1, 2, 2]), "category"),
        (["a", 1, None], "category"),
        ([datetime.date(2006, 7, 16), datetime.date(2007, 8, 12), None], "date"),
        (pd.to_datetime(["2006-07-16", "2007-08-12", None]).tz_localize("UTC"), "date"),
    ],
)
def test_kinds_of_columns(values, kind):
    frame = pd.DataFrame({"column": values})
    transformer = table_preprocessor(frame)
    assert transformer[0].kinds == {"column": kind}
    assert np.isfinite(transformer.fit_transform(frame)).all()


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([[1], [2]], "column 'bad' holds mixed values"),
        ([b"a", b"b"], "column 'bad' holds bytes values"),
        ([1j, 2.0], "column 'bad' holds complex values"),
        ([datetime.time(1), datetime.time(2)], "column 'bad' holds time values"),
        ([1.0, np.inf], "'bad' is a column of numbers, and data row 2 holds .*inf"),
    ],
)
def test_columns_that_are_refused_by_name(values, problem):
    with pytest.raises(ValueError, match=problem):
        table_preprocessor(pd.DataFrame({"good": [1, 2], "bad": values}))


def test_gaps_alone_make_a_column_worth_keeping():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "x"], "c": [None, np.nan, pd.NaT]})
    transformer = table_preprocessor(frame)
    assert list(transformer[0].kinds) == ["a", "b"]
    np.testing.assert_array_equal(transformer.fit_transform(frame)[:, 1], [1, 0, 1])


def test_no_column_that_varies():
    with pytest.raises(ValueError, match="no column of the table has two different values"):
        table_preprocessor(FRAME[["constant", "empty"]])


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("age", ["30", "x", "50", "60"], "'age' is a column of numbers, and data row 2 holds 'x'"),
        (
            *("age", [1, 2, 3, np.inf]),
            "'age' is a column of numbers, and data row 4 holds inf: "
            "correct the cell or leave it empty",
        ),
        ("seen", ["never", None, None, None], "'seen' is a column of dates, and data row 1 holds"),
    ],
)
def test_another_kind_of_column_at_prediction(name, values, problem):
    transformer = table_preprocessor(FRAME).fit(FRAME)
    with pytest.raises(ValueError, match=problem):
        transformer.transform(FRAME.assign(**{name: values}))


def test_numbers_as_text_at_prediction():
    transformer = table_preprocessor(FRAME).fit(FRAME)
    as_strings = FRAME.assign(age=["30", "40", "50", "60"])
    np.testing.assert_array_equal(transformer.transform(as_strings), transformer.transform(FRAME))


def test_categories_are_the_same_however_they_were_read():
    """A file of which the codes are all digits, or digits with gaps, is read as numbers."""
    text = pd.Series(["1", " 2", None, "A"])
    assert as_text(text)[[0, 1, 3]].tolist() == ["1", "2", "A"]
    assert as_text(pd.Series([1, 2]))[:2].tolist() == ["1", "2"]
    assert as_text(pd.Series([1.0, 2.0, np.nan]))[:2].tolist() == ["1", "2"]
    assert as_text(pd.Series([1.5, np.inf])).tolist() == ["1.5", "inf"]
    assert as_text(pd.Series([True, None], dtype=object))[0] == "True"
    assert np.isnan(as_text(text)[2])


def test_not_a_data_frame():
    with pytest.raises(TypeError, match="X must be a pandas data frame, not ndarray"):
        TableColumns({"a": "number"}).fit(np.ones((3, 1)))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_input_stays_sparse(kind):
    X = kind(np.array([[0, 2.0], [4, 0], [0, 1]]))
    transformer = table_preprocessor(X)
    scaled = transformer.fit_transform(X)
    assert sparse.issparse(scaled)
    np.testing.assert_array_equal(scaled.toarray(), [[0, 1], [1, 0], [0, 0.5]])


def test_columns_that_are_zero_in_training_do_not_exist():
    X = sparse.csr_array(([3.0, 0.0, 4.0], ([0, 0, 1], [2, 5, 10**9])), shape=(2, 10**9 + 1))
    transformer = table_preprocessor(X).fit(X)
    np.testing.assert_array_equal(transformer.transform(X).toarray(), [[1, 0], [0, 1]])
    new = sparse.csr_array(
        ([7.0, 6.0, 1.0, 9.0], ([0, 0, 1, 1], [0, 2, 5, 10**9])), shape=(2, 10**9 + 1)
    )
    np.testing.assert_array_equal(transformer.transform(new).toarray(), [[2, 0], [0, 2.25]])
    assert transformer.get_feature_names_out().tolist() == ["x2", "x1000000000"]


def test_sparse_rows_of_another_width_are_refused():
    transformer = table_preprocessor(sparse.csr_array([[1.0, 2]])).fit(sparse.csr_array([[1.0, 2]]))
    with pytest.raises(ValueError, match="has 3 features"):
        transformer.transform(sparse.csr_array([[1.0, 2, 3]]))


def test_a_sparse_table_of_zeros_is_refused():
    X = sparse.csr_array((3, 4))
    with pytest.raises(ValueError, match="every value of the table is zero"):
        table_preprocessor(X).fit(X)


ISO = ["2021-01-31", "2021-02-05", None, "2021-12-01"]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (ISO, "date"),
        (["31.01.2021", "5.2.2021", None, "01.12.2021"], "day-first date"),
        (["31/01/2021", "05/02/2021", None, "1/12/2021"], "day-first date"),
        (["01/31/2021", "2/5/2021", None, "12-01-2021 0:00"], "month-first date"),
        (["2021/01/31", "2021/2/5", None, "2021/12/01"], "date"),
        (["2021-1-31", "2021-2-5", None, "2021-12-1"], "date"),
        (["31-Jan-2021", "05-Feb-2021", None, "1-Dec-2021"], "date"),
        (["31 january 2021", "5 February 2021", None, "01 December 2021 "], "date"),
        (["January 31, 2021", "February 05, 2021", None, "December 1, 2021"], "date"),
        (["Jan 31 2021 00:00", "Feb 5 2021 00:00", None, "Dec 1 2021 00:00"], "date"),
    ],
)
def test_dates_however_written_are_the_same_days(cells, kind):
    written, typed = pd.DataFrame({"day": cells}), pd.DataFrame({"day": pd.to_datetime(ISO)})
    transformer = table_preprocessor(written).fit(written)
    assert transformer["columns"].kinds == {"day": kind}
    expected = table_preprocessor(typed).fit_transform(typed)
    np.testing.assert_array_equal(transformer.transform(written), expected)
    np.testing.assert_array_equal(transformer.transform(typed), expected)


def test_the_order_of_day_and_month_is_that_of_the_training_rows():
    transformer = table_preprocessor(frame := pd.DataFrame({"day": ["01/31/2021", "02/05/2021"]}))
    days = transformer.fit(frame)["columns"].transform(pd.DataFrame({"day": ["03/04/2021"]}))
    assert days["day"][0] == (datetime.date(2021, 3, 4) - datetime.date(1970, 1, 1)).days
    with pytest.raises(ValueError, match="column of month-first dates, and data row 1 holds '31/"):
        transformer.transform(pd.DataFrame({"day": ["31/01/2021"]}))


@pytest.mark.slow
def test_months_begin_on_their_first_day():
    frame = pd.DataFrame({"month": ["May 2021", "June 2021", None]})
    days = table_preprocessor(frame).fit(frame)["columns"].transform(frame)["month"]
    first = (datetime.date(2021, 5, 1) - datetime.date(1970, 1, 1)).days
    np.testing.assert_array_equal(days, [first, first + 31, np.nan])
    short = pd.DataFrame({"month": ["Jan-2020", "Feb-2020"]})
    assert table_preprocessor(short)[0].kinds == {"month": "date"}


@pytest.mark.slow
def test_dates_are_read_by_one_rule_at_prediction():
    frame = pd.DataFrame({"day": ["31-Jan-2021", "05-Feb-2021"]})
    columns = table_preprocessor(frame).fit(frame)["columns"]
    iso = columns.transform(pd.DataFrame({"day": ["2021-02-05", None]}))
    np.testing.assert_array_equal(iso["day"], [*columns.transform(frame)["day"][1:], np.nan])
    with pytest.raises(ValueError, match="is a column of dates, and data row 3 holds 'soon'"):
        columns.transform(pd.DataFrame({"day": ["31-Jan-2021", None, "soon"]}))


@pytest.mark.parametrize(
    "cells",
    [
        ["03/04/2021", "05/06/2021"],  # which number is the day?
        ["31/01/2021", "01/31/2021"],
        ["31.02.2021", "01.02.2021"],
        ["2021-01-31", "soon"],
        ["2021", "2022"],
        ["1.2.3", "1.2.4"],
        ["20210131", "20210205"],
        ["2021/01/31", "2021/02/30"],
        ["2021/01/31", "31-Jan-2021"],  # two formats
        ["31-Jan-2021", "2021-01-31"],
        ["January 31, 2021", "May 2021"],
        ["March", "Marching band of 1999"],
    ],
)
def test_what_is_not_surely_a_date_stays_text(cells):
    frame = pd.DataFrame({"day": cells})
    assert table_preprocessor(frame)[0].kinds == {"day": "category"}
