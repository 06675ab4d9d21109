"""A table has one fit and one set of predictions: in every format, row by row and all together.

One table is written in every format, cells of mean texts are drawn, and files as people have them
go through the command line, by the letters of the faults that they once met.
"""

import itertools
import json
from datetime import UTC, date, datetime, timedelta
from io import StringIO

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("openpyxl")
pytest.importorskip("odf")

import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather
from pyarrow import parquet as pq
from typer.testing import CliRunner

from looms import KernelClassifier, TabularClassifier
from looms.cli._app import app
from looms.datasets import read_table
from looms.tables import Columns, TablePreprocessor

# One table in every format ----------------------------------------------------------

ROWS = range(48)
#: Cells by column. No number is another one by the other decimal mark, as 1.125 and 1,125 are.
CELLS = {
    "Größe": [(None, k + 0.5, 0.125, -k - 0.25, 1000.125 + k)[k * 5 % 7 % 5] for k in ROWS],
    "share": [(0.125, 0.375, 0.75, -0.5)[k % 4] for k in ROWS],
    "n": [None if k % 11 == 3 else 37 * k % 100 for k in ROWS],
    "ill": [(True, False, None, True, False)[k % 5] for k in ROWS],
    "color": [("red", "dark blue", "grün", None)[k % 4] for k in ROWS],
    "ward": [("01", "02", "A3")[k // 2 % 3] for k in ROWS],
    "code": [("001", "010", "1", "10")[k // 3 % 4] for k in ROWS],
    "day": [None if k % 13 == 5 else date(2020, 1, 1) + timedelta(17 * k) for k in ROWS],
    "seen": [datetime(2021, 3, 28) + timedelta(k / 4) for k in ROWS],
    "label": [("01", "02", "10")[k % 3] for k in ROWS],
    "amount": [0.125 * (k % 5) + 2 * k + 0.5 for k in ROWS],
}
KINDS = {
    **dict.fromkeys(("Größe", "share", "n"), "number"),
    **{"ill": "truth", "color": "category", "ward": "category", "code": "category"},
    **{"day": "date", "seen": "date"},
}
FEATURES = list(KINDS)
#: How files of text differ: separator, decimal mark, gaps, truth, blanks around features.
WRITTEN = {
    "points.csv": (",", ".", ("", "NA", "#N/A"), str, ""),
    "semicolons.csv": (";", ".", ("?", " ", "null", "#DIV/0!"), lambda cell: str(cell).upper(), ""),
    "commas.csv": (";", ",", ("", "n/a", "\u00a0"), lambda cell: str(cell).lower(), " "),
    "tabs.tsv": ("\t", ".", ("NULL", "N/A", "NaN"), str, " "),
}
FILES = [*WRITTEN, "t.xlsx", "t.ods", "t.parquet", "t.feather", "t.arff"]
NAMES = [*FILES, "pandas", "polars", "pyarrow"]
SUFFIXES = ["csv", "tsv", "xlsx", "ods", "parquet", "feather"]


def texts_of(cell, mark=".", truth=str):
    if isinstance(cell, float):
        return str(cell).replace(".", mark)
    return truth(cell) if isinstance(cell, bool) else str(cell)


def write_text(path, sep, mark, gaps, truth, around):
    gap, lines = itertools.cycle(gaps), [sep.join(CELLS)]
    for row in zip(*CELLS.values(), strict=True):
        texts = [next(gap) if c is None else texts_of(c, mark, truth) for c in row]
        lines.append(sep.join([around + text + around for text in texts[:-2]] + texts[-2:]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_arff(path):
    types = {"ill": "{True,False}", "ward": "{01,02,A3}", "label": "{'01','02','10'}"}
    types |= {"color": "string", "code": "string", "day": 'date "yyyy-MM-dd"', "seen": "date"}
    lines = ["@relation t", *(f"@attribute {n} {types.get(n, 'numeric')}" for n in CELLS), "@data"]
    for row in zip(*CELLS.values(), strict=True):
        texts = [c.isoformat() if isinstance(c, date) else texts_of(c) for c in row]
        lines.append(",".join("?" if t == "None" else repr(t) if " " in t else t for t in texts))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The table in a file of every format."""
    folder = tmp_path_factory.mktemp("same")
    for name, dialect in WRITTEN.items():
        write_text(folder / name, *dialect)
    write_arff(folder / "t.arff")
    sheet = pd.DataFrame(CELLS, dtype=object)
    sheet.to_excel(str(folder / "t.ods"), index=False)
    gaps = sheet.isna() & (np.arange(len(ROWS)) < 20)[:, None]
    sheet.mask(gaps, "NA").to_excel(str(folder / "t.xlsx"), index=False)  # among typed cells
    table = pa.table(CELLS)
    pq.write_table(table, folder / "t.parquet")
    colors = table["color"].dictionary_encode()
    feather.write_feather(table.set_column(4, "color", colors), str(folder / "t.feather"))
    return folder


@pytest.fixture(scope="module")
def tables(folder):
    """Features of the table as every source gives them."""
    features = pa.table(CELLS).select(FEATURES)
    memory = {"pandas": features.to_pandas(), "polars": pl.from_arrow(features)}
    files = {name: read_table(folder / name).X[FEATURES] for name in FILES}
    return {**files, **memory, "pyarrow": features}


def take(X, rows):
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    return X.take(rows) if isinstance(X, pa.Table) else X[list(rows)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_fits_are_the_same_and_each_takes_the_rows_of_each(tables, name):
    prepare, first = TablePreprocessor().fit(tables[name]), TablePreprocessor()
    matrix = first.fit_transform(tables["pandas"])
    assert dict(prepare.kinds_) == KINDS
    assert prepare.kinds_.decimal == ("," if name == "commas.csv" else ".")
    assert prepare.get_feature_names_out().tolist() == first.get_feature_names_out().tolist()
    typed = prepare.kinds_.typed(tables[name])
    pd.testing.assert_frame_equal(typed, first.kinds_.typed(tables["points.csv"]))
    model = TabularClassifier([KernelClassifier("rbf")]).fit(tables[name], CELLS["label"])
    p, order = model.predict_proba(tables["pandas"]), np.random.default_rng(0).permutation(48)
    for new in tables.values():
        np.testing.assert_array_equal(prepare.transform(take(new, order)), matrix[order])
        for k in ROWS[NAMES.index(name) :: 2 * len(NAMES)]:  # half of all, over the fits
            np.testing.assert_array_equal(prepare.transform(take(new, [k])), matrix[[k]])
        np.testing.assert_allclose(model.predict_proba(take(new, [7])), p[[7]], atol=1e-10)


# The command line -------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fitted(path, *options, target="y"):
    """Path of a model of a file, and what the fit noted."""
    model = path.with_name(f"{path.name}.skops")
    options = ("-t", target, *options, "-c", "linear", "--no-evaluate", "-f", "-o", model)
    result = run("fit", path, *options)
    assert result.exit_code == 0, result.stderr
    return model, " ".join(result.stderr.split())


def predicted(model, path, *options):
    """Predictions as text."""
    result = run("predict", model, path, *options)
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(StringIO(result.stdout), dtype=str, keep_default_na=False)


def same(one, other):
    """True if both are the same predictions, whatever the numbers of their rows."""
    return one.iloc[:, 1:].to_numpy().tolist() == other.iloc[:, 1:].to_numpy().tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target", "other"),
    [("commas.csv", "amount", "label"), ("t.xlsx", "label", "amount")],
)
def test_files_predict_each_other(folder, tmp_path, name, target, other):
    model, notes = fitted(folder / name, "--drop", other, target=target)
    assert "'code'" in notes  # whole numbers that begin with 0
    whole = predicted(model, folder / "t.feather")
    if target == "label":
        assert {f"probability_{label}" for label in CELLS["label"]} < {*whole}
        assert {*whole["prediction"]} <= {*CELLS["label"]}
    for each in FILES:
        pd.testing.assert_frame_equal(predicted(model, folder / each), whole)
    for k, each in (0, "points.csv"), (3, "commas.csv"), (4, "tabs.tsv"), (31, "semicolons.csv"):
        lines = (folder / each).read_text(encoding="utf-8").split("\n")
        (tmp_path / each).write_text(f"{lines[0]}\n{lines[k + 1]}\n", encoding="utf-8")
        assert same(predicted(model, tmp_path / each), whole[k : k + 1])


# A row has no neighbors -------------------------------------------------------------


def kinds(text):
    """Lists of cells: blanks, two at a time, between the lists, and bars between the cells."""
    return [each.split("|") for each in text.split("  ")]


GAPS = ["?", "NA", "NaN", "null", "#N/A", "", " ", "\u00a0", " NA "]
ALIKE = kinds(
    "1|1.0|1.50|+1|1e3|0|-2.25|7.500|1234.125|.5  0,5|7.500|1,25|1234|1,250|1.250,5|-3  0|1  "
    "1,250|7,500.5|2|0.5  7.500|1.250|2  true|TRUE|False|false  01|1|10|010|A3  08:00|20:00|8:00  "
    "2020-01-31|2020-02-01|9999-12-31|0001-01-01|2020-01-31 12:30:00  31-Jan-2020|Feb 1, 2020  "
    "31.01.2020|1.2.2020|05.06.2020|31.12.9999  01/31/2020|02/03/2020  05/06/2020|07/08/2020  "
    "unknown|yes|1-2|10 %|0x10|1_000|Yes  9007199254740992|9007199254740993|5"
)
CELL = st.sampled_from(sorted({*itertools.chain(*ALIKE)})) | st.sampled_from(GAPS)


@st.composite
def columns(draw):
    """Eight cells of a column of the fit, mostly of one kind, and four of new rows."""
    own = st.sampled_from(draw(st.sampled_from(ALIKE)))
    of_fit = own | own | (st.sampled_from(GAPS) if draw(st.integers(0, 5)) else CELL)
    return draw(st.tuples(*[of_fit] * 8)), draw(st.tuples(*[own | CELL] * 4))


def outcome(prepare, X):
    """Matrix of some rows; None if they are refused."""
    try:
        return prepare.transform(X)
    except ValueError:
        return None


@pytest.mark.slow
@given(columns(), columns())
@settings(max_examples=30, deadline=None, database=None, derandomize=True)
def test_the_prediction_of_a_row_does_not_depend_on_its_neighbors(folder, a, b):
    def read(k, rows):
        lines = ["key\ta\tb", *(f"{row}\t{a[k][row]}\t{b[k][row]}" for row in rows)]
        (folder / "drawn.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_table(folder / "drawn.tsv", sep="\t").X

    known = read(0, range(8))
    assert Columns.of(known) == Columns.of(read(0, range(7, -1, -1)))
    prepare = TablePreprocessor().fit(known)
    alone = [outcome(prepare, read(1, [row])) for row in range(4)]
    taken = [row for row in range(4) if alone[row] is not None]
    frame = pd.DataFrame({"key": np.arange(4), "a": a[1], "b": b[1]})  # typed text
    if len(taken) < 4:
        assert outcome(prepare, read(1, range(4))) is None
        assert outcome(prepare, frame) is None
    for rows in (taken, taken[::-1]) if taken else ():
        matrix = np.vstack([alone[row] for row in rows])
        np.testing.assert_array_equal(prepare.transform(read(1, rows)), matrix)
        np.testing.assert_array_equal(prepare.transform(frame.iloc[rows]), matrix)


# Files as people have them ----------------------------------------------------------

TEXTS = kinds(
    "01|02|A3  1e3|2e3|x  TRUE|FALSE|unknown  1,000|2,000|x  31.01.2020|01.02.2020|never  "
    "2020-01-31 08:30:00|2020-01-31 09:30:00|never"
)
LABELS = kinds("01|1|010  2020-01-01|2020-02-01  08:00|20:00  1.10|1.1  1E05|5E10")


@pytest.mark.slow
@pytest.mark.parametrize("texts", [*TEXTS, *LABELS], ids="|".join)
def test_a_text_stays_text_without_its_neighbors(tmp_path, write_frame, few_partitions, texts):
    """A and B: a feature, and a label."""
    code = np.resize(texts, 24)
    frame = pd.DataFrame({"x": np.resize([*"abc"][: len(texts)], 24), "code": code, "y": code})
    for suffix in ("xlsx", "tsv", "ods", "csv"):
        path = write_frame(frame, tmp_path / f"t.{suffix}")
        assert [str(label) for label in read_table(path, "y").y] == code.tolist()
    model, _ = fitted(path, "--task", "classification")
    whole = predicted(model, path)
    assert whole["prediction"].tolist() == code.tolist()
    assert {f"probability_{text}" for text in texts} <= {*whole}
    for few, suffix in ((texts[:2], "tsv"), (texts[:1], "xlsx")):
        some = frame["y"].isin(few)
        path = write_frame(frame[some], tmp_path / f"some.{suffix}")
        assert same(predicted(model, path), whole[some])
        scores = json.loads(run("score", model, path, "--json").stdout)["scores"]
        assert scores["accuracy"]["value"] == 1


FAR = "0001-01-01 1600-02-29 1677-09-21 1899-12-31 1969-12-31 2020-02-29 2262-04-12 9999-12-31"


def test_far_dates_are_dates_in_every_format(tmp_path, write_frame):
    """G: a spreadsheet program keeps dates before 1900 as text."""
    dates = [date.fromisoformat(cell) for cell in FAR.split()]
    known = [(each - date(1970, 1, 1)).days for each in dates]
    german = [f"{each.day:02}.{each.month:02}.{each.year:04}" for each in dates]
    sheet, tables = [*FAR.split()[:4], *dates[4:]], []
    for suffix, cells in zip(
        SUFFIXES, (FAR.split(), german, sheet, sheet, dates, dates), strict=True
    ):
        frame = pd.DataFrame({"ends": pd.Series([*cells, None], dtype=object)})
        tables.append(read_table(write_frame(frame.assign(z=1), tmp_path / f"t.{suffix}")).X)
    moments = [datetime(each.year, each.month, each.day) for each in dates]
    stored, late = pd.Series(np.array(dates, "M8[us]")), dates[1:]
    memory = [
        *(dates, moments, [each.replace(tzinfo=UTC) for each in moments], stored),
        *(np.array(dates, f"M8[{unit}]") for unit in ("s", "ms")),
        *([*stored.to_numpy()], stored.dt.tz_localize("UTC")),
        *(stored.astype(pd.ArrowDtype(of)) for of in (pa.timestamp("us", "UTC"), pa.date32())),
        pd.PeriodIndex(FAR.split(), freq="D"),
        *([each.strftime(form) for each in late] for form in ("%d-%b-%Y", "%Y/%m/%d", "%B %d, %Y")),
        [each.strftime("%Y-%m-%dT%H:%M:%SZ") for each in late],
    ]
    tables += [
        pd.DataFrame({"ends": pd.Series([*cells, None], dtype=getattr(cells, "dtype", None))})
        for cells in memory
    ]
    for X in (*tables, pl.DataFrame({"ends": dates}), pl.DataFrame({"ends": moments})):
        found, n_gaps = Columns.of(X), int(isinstance(X, pd.DataFrame))
        assert found["ends"] == ("day-first date" if X is tables[1] else "date")
        expected = [*known, *[np.nan] * n_gaps]
        np.testing.assert_array_equal(found.read(X)["ends"], expected[len(expected) - len(X) :])
