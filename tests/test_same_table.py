"""A table has one fit and one set of predictions: in every format, row by row and all together.

One table is written in every format, cells of mean texts are drawn, and files as people have them
go through the command line, by the letters of the faults that they once met.
"""

import itertools
import json
from datetime import date, datetime, timedelta
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
from looms.datasets import TableError, read_table
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


def as_text(cell, mark=".", truth=str):
    if isinstance(cell, float):
        return str(cell).replace(".", mark)
    return truth(cell) if isinstance(cell, bool) else str(cell)


def write_text(path, sep, mark, gaps, truth, around):
    gap, lines = itertools.cycle(gaps), [sep.join(CELLS)]
    for row in zip(*CELLS.values(), strict=True):
        texts = [next(gap) if c is None else as_text(c, mark, truth) for c in row]
        lines.append(sep.join([around + text + around for text in texts[:-2]] + texts[-2:]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_arff(path):
    types = {"ill": "{True,False}", "ward": "{01,02,A3}", "label": "{'01','02','10'}"}
    types |= {"color": "string", "code": "string", "day": 'date "yyyy-MM-dd"', "seen": "date"}
    lines = ["@relation t", *(f"@attribute {n} {types.get(n, 'numeric')}" for n in CELLS), "@data"]
    for row in zip(*CELLS.values(), strict=True):
        texts = [c.isoformat() if isinstance(c, date) else as_text(c) for c in row]
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
def test_columns_are_the_same_in_every_format(tables, name):
    found, first = Columns.of(tables[name]), Columns.of(tables["points.csv"])
    assert dict(found) == KINDS
    assert found.decimal == ("," if name == "commas.csv" else ".")
    assert found == first or name == "commas.csv"
    values, those = found.read(tables[name]), first.read(tables["points.csv"])
    for column in FEATURES:
        pd.testing.assert_series_equal(pd.Series(values[column]), pd.Series(those[column]))
    typed = found.typed(tables[name])
    pd.testing.assert_frame_equal(typed, first.typed(tables["points.csv"]))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_fits_are_the_same_and_each_takes_the_rows_of_each(tables, name):
    prepare, first = TablePreprocessor(), TablePreprocessor()
    matrix = first.fit_transform(tables["pandas"])
    np.testing.assert_array_equal(prepare.fit_transform(tables[name]), matrix)
    assert prepare.get_feature_names_out().tolist() == first.get_feature_names_out().tolist()
    order = np.random.default_rng(0).permutation(len(ROWS))
    for new in tables.values():
        np.testing.assert_array_equal(prepare.transform(new), matrix)
        np.testing.assert_array_equal(prepare.transform(take(new, order)), matrix[order])
        for k in ROWS[NAMES.index(name) :: len(NAMES)]:  # all, over the fits
            np.testing.assert_array_equal(prepare.transform(take(new, [k])), matrix[[k]])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commas.csv", "t.xlsx", "t.arff", "polars", "pyarrow"])
def test_models_predict_the_same(tables, name):
    model = TabularClassifier([KernelClassifier("rbf")]).fit(tables[name], CELLS["label"])
    p = model.predict_proba(tables["pandas"])
    for new in tables.values():
        np.testing.assert_array_equal(model.predict_proba(new), p)
        np.testing.assert_allclose(model.predict_proba(take(new, [7])), p[[7]], atol=1e-10)


def test_typed_cells_are_those_of_text(folder):
    text = "code,day,ill\n1,2020-01-31,true\n2,2020-02-01,FALSE\nx,never,True\n1,never,false\n"
    (folder / "words.csv").write_text(text)
    prepare = TablePreprocessor().fit(read_table(folder / "words.csv").X)
    expected = prepare.transform(read_table(folder / "words.csv").X)
    days = date(2020, 1, 31), date(2020, 2, 1)
    for code, day, ill in (
        ([1, 2], days, [True, False]),
        ([1.0, 2.0], pd.to_datetime(days), [1, 0]),
        ([1, " 2"], [pd.Timestamp(days[0]), "2020-02-01"], ["1", "0"]),
        (["1", 2.0], [datetime(2020, 1, 31), days[1]], ["TRUE", False]),
    ):
        new = pd.DataFrame({"code": code, "day": day, "ill": ill})
        np.testing.assert_array_equal(prepare.transform(new), expected[:2])


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


def write(path, frame):
    """Write a frame in the format of the path's suffix, text as text."""
    if path.suffix in (".xlsx", ".ods"):
        frame.to_excel(str(path), index=False)  # of a Path it takes any for .xlsx
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        feather.write_feather(pa.Table.from_pandas(frame), str(path))
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.fixture(scope="module")
def of_x(tmp_path_factory):
    """Model of one column x of numbers with gaps."""
    x = np.linspace(-2, 2, 25).round(3)
    frame = pd.DataFrame({"x": [None, *x], "y": ["no", *np.where(x > 0, "yes", "no")]})
    return fitted(write(tmp_path_factory.mktemp("of_x") / "t.csv", frame))[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target", "other"),
    [
        *(("points.csv", "label", "amount"), ("commas.csv", "amount", "label")),
        *(("t.xlsx", "label", "amount"), ("t.parquet", "amount", "label")),
    ],
)
def test_files_predict_each_other(folder, tmp_path, name, target, other):
    model, notes = fitted(folder / name, "--drop", other, target=target)
    assert "'code'" in notes or name == "t.parquet"  # whole numbers that begin with 0
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


GAPS = kinds(
    "?|NA|N/A|n/a|#N/A|NaN|nan|NULL|null|None|<NA>|#DIV/0!|#VALUE!|#REF!|#NAME?|#NUM!|#NULL!"
    "|| |\u00a0| NA "
)[0]
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
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
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
    "01|02|A3  1.50|2.00|x  1.0|2.0|x  +1|+2|x  1e3|2e3|x  1|2|x  true|false|unknown  T|F|U  "
    "TRUE|FALSE|unknown  2020-01-31|2020-02-01|never  31.01.2020|01.02.2020|never  1-2|3-4|5+  "
    "2020-01-31 08:30:00|2020-01-31 09:30:00|never  08:00|20:00|never  1,000|2,000|x  10 %|20 %|x"
)
LABELS = kinds(
    "01|1|010  TRUE|FALSE  True|False  2020-01-01|2020-02-01  08:00|20:00  1e1|2e1|10  1.10|1.1  "
    "1E05|5E10  1|2"
)


@pytest.mark.slow
@pytest.mark.parametrize("texts", TEXTS, ids="|".join)
def test_a_text_stays_text_without_its_neighbors(tmp_path, texts):
    """A: a feature, and a label."""
    frame = pd.DataFrame({"x": np.arange(24) % 5, "code": np.resize(texts, 24)})
    frame["y"] = frame["code"]
    model, _ = fitted(write(tmp_path / "t.csv", frame), "--task", "classification")
    whole = predicted(model, tmp_path / "t.csv")
    assert whole["prediction"].tolist() == frame["y"].tolist()
    for few, suffix in ((texts[:2], "tsv"), (texts[:1], "xlsx")):
        some = frame["y"].isin(few)
        path = write(tmp_path / f"some.{suffix}", frame[some])
        assert same(predicted(model, path), whole[some])
        scores = json.loads(run("score", model, path, "--json").stdout)["scores"]
        assert scores["accuracy"]["value"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("labels", LABELS, ids="|".join)
def test_labels_are_as_written(tmp_path, labels):
    """B: in files of text and in text cells of sheets."""
    y = np.resize(labels, 24)
    frame = pd.DataFrame({"x": np.arange(24) % len(labels) + 0.5, "y": y})
    for suffix in ("csv", "xlsx", "tsv", "ods"):
        path = write(tmp_path / f"t.{suffix}", frame)
        assert [str(label) for label in read_table(path, "y").y] == y.tolist()
        if suffix in ("csv", "xlsx"):
            rows = predicted(fitted(path, "--task", "classification")[0], path)
            assert {*rows["prediction"]} <= {*labels}
            assert {f"probability_{label}" for label in labels} <= {*rows}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "options", "meant"),
    [
        ("0,{};7.{}00", (), "7.500=7500 7.50=7,5 0.5=0,5 7,5=7,5 7,500=7,5"),
        ("0,{};7{}00", (), "7.500= 7.50=7,5 0.500=0,5 -7.500="),
        ("0.{};7{}00", (), "7,500= 7.500=7.5 7,5=7.5 0,500=0.5"),
        ("{};7.{}00", ("--decimal", ","), "7.500=7500 7,5=7,5"),
        ("0.{};7,{}00", ("--decimal", "."), "7,500=7500 7.500=7.5"),
    ],
)
def test_the_marks_of_the_fit_hold(tmp_path, row, options, meant):
    """C: cells that mean different numbers by the two marks are refused."""
    lines = [f"{row.format(k % 9 + 1, k % 7 + 1)};{k % 7 // 4}" for k in range(24)]
    (tmp_path / "t.csv").write_text("\n".join(["length;weight;y", *lines]) + "\n")
    model, _ = fitted(tmp_path / "t.csv", *options)
    paths = [tmp_path / name for name in ("plain.csv", "cell.csv", "cell.xlsx")]
    for cell, plain in (each.split("=") for each in meant.split()):
        paths[0].write_text(f"length;weight\n1;{plain}\n2;1\n")
        paths[1].write_text(f"length;weight\n1;{cell}\n2;1\n")
        write(paths[2], pd.DataFrame({"length": ["1", "2"], "weight": [cell, "1"]}))
        for path in paths[1:]:
            if plain:
                assert same(predicted(model, path), predicted(model, paths[0]))
            else:
                result = run("predict", model, path)
                assert result.exit_code == 2
                assert "'weight'" in result.stderr
                assert cell in result.stderr


@pytest.mark.slow
def test_gaps_are_the_same_in_every_format(tmp_path):
    """D: however they are written."""
    x = [*map(str, range(3 * len(GAPS))), *GAPS]
    frame = pd.DataFrame({"x": x, "color": np.resize(["red", "blue", "NA"], len(x))})
    frame["y"] = np.where((frame["color"] == "red") ^ frame["x"].isin(GAPS), "yes", "no")
    model, _ = fitted(write(tmp_path / "t.csv", frame))
    gaps = pd.DataFrame({"id": range(len(GAPS)), "x": GAPS, "color": GAPS})
    none = pd.DataFrame({"x": [None, 1.0], "color": [None, "red"]})[:1]
    one = predicted(model, write(tmp_path / "none.parquet", none)).iloc[0, 1:].tolist()
    for suffix in ("csv", "tsv", "xlsx", "ods", "parquet", "feather"):
        rows = predicted(model, write(tmp_path / f"gaps.{suffix}", gaps))
        assert rows.iloc[:, 1:].to_numpy().tolist() == [one] * len(GAPS)


@pytest.mark.slow
@pytest.mark.parametrize("blank", [" ", "   ", "\t", "\u00a0"])
def test_a_blank_cell_is_a_gap(tmp_path, of_x, blank):
    """E: among numbers, in new rows and in the target."""
    frame = pd.DataFrame({"x": [blank, *map(str, range(23))], "y": ["yes", "no", "no"] * 8})
    empty = predicted(of_x, write(tmp_path / "empty.csv", frame.replace(blank, "")))
    for suffix in ("csv", "tsv", "xlsx") if blank != "\t" else ("csv",):
        path = write(tmp_path / f"t.{suffix}", frame)
        assert Columns.of(read_table(path, "y").X)["x"] == "number"
        assert same(predicted(of_x, path), empty)
        path = write(tmp_path / f"y.{suffix}", frame.replace("yes", blank))
        result = run("fit", path, "-t", "y", "-o", tmp_path / "y.skops")
        assert result.exit_code == 2
        assert "missing" in result.stderr


INDEXES = {
    "text": pd.Index([f"P{k:03}" for k in range(24)], name="patient"),
    "times": pd.date_range("2020-01-31", periods=24, name="visit"),
    "two levels": pd.MultiIndex.from_product([list("abcd"), range(6)], names=["ward", "bed"]),
    "floats": pd.Index(np.arange(24) + 0.5, name="dose"),
    "without a name": pd.Index([f"P{k:03}" for k in range(24)]),
    "shuffled": pd.Index(np.random.default_rng(3).permutation(24)),
    "range": pd.RangeIndex(100, 124),
}


@pytest.mark.slow
@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_rows_of_parquet_are_counted_by_place(tmp_path, index):
    """F: and a named index is a column."""
    x, numbers = np.sin(np.arange(24.0)), [str(k + 1) for k in range(24)]
    frame = pd.DataFrame({"x": x, "y": np.where(x > 0.1, "yes", "no")}, index=index)
    model, _ = fitted(write(tmp_path / "t.parquet", frame))
    for path in (tmp_path / "t.parquet", write(tmp_path / "t.feather", frame)):
        assert read_table(path).X.index.tolist() == list(range(24))
        assert predicted(model, path)["row"].tolist() == numbers
        if name := index.names[0]:
            given = predicted(model, path, "--id", name)[name]
            assert given.nunique() == index.get_level_values(name).nunique()
    assert run("diagnose", model, "-b", 0, "-o", tmp_path / "rows.csv").exit_code == 0
    rows = pd.read_csv(tmp_path / "rows.csv").set_index("row")["class"].sort_index()
    assert rows.to_dict() == dict(enumerate(frame["y"], 1))


FAR = ["0001-01-01", "1600-02-29", "1677-09-21", "1899-12-31", "1969-12-31"]
FAR += ["2020-02-29", "2262-04-12", "2999-12-31", "9999-12-31"]


@pytest.mark.slow
def test_far_dates_are_dates(tmp_path):
    """G: in every format; a spreadsheet program keeps dates before 1900 as text."""
    dates = [date.fromisoformat(cell) for cell in FAR]
    known = [(each - date(1970, 1, 1)).days for each in dates]
    german = [f"{each.day:02}.{each.month:02}.{each.year:04}" for each in dates]
    sheet, y = [*FAR[:4], *dates[4:]], ["yes", "no", "no"] * 10
    paths = [
        tmp_path / f"t.{suffix}" for suffix in ("csv", "tsv", "parquet", "feather", "xlsx", "ods")
    ]
    for path, cells in zip(paths, (FAR, german, dates, dates, sheet, sheet), strict=True):
        ends = pd.Series([*cells, None] * 3, dtype=object)
        write(path, pd.DataFrame({"ends": ends, "y": y}))
    read = [read_table(path, "y").X for path in paths]
    memory = {"ends": [*dates, None] * 3}
    for X in (*read, pd.DataFrame(memory), pl.DataFrame(memory)):
        found = Columns.of(X)
        assert found["ends"] == ("day-first date" if X is read[1] else "date")
        np.testing.assert_array_equal(found.read(X)["ends"], [*known, np.nan] * 3)
    models = [fitted(path)[0] for path in paths]
    whole = predicted(models[0], paths[0])
    for model, path in zip(models, paths[1:] + paths[:1], strict=True):
        assert same(predicted(model, path), whole)


FORMS = kinds(
    "yyyy-MM-dd|yyyy-MM-dd'T'HH:mm:ss|yyyy-MM-dd HH:mm:ss|yyyy-MM-dd HH:mm|yyyyMMdd|yyyy-dd-MM|"
    "yyyyddMM|yyyy/dd/MM|yyyy-dd-MM HH:mm|yyyy-dd-MM'T'HH:mm:ss|dd.MM.yyyy|MM/dd/yyyy|ddMMyyyy|"
    "yyyy|HHmm|HH|HH:mm|ssSSS"
)[0]
SIGNS = {"SSS": "%f", "ss": "%S", "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M"}


@pytest.mark.parametrize("form", FORMS)
def test_arff_dates_are_read_by_their_format_or_refused(tmp_path, form):
    """H: never otherwise; a comment with braces ends a declaration."""
    sign = form.replace("'", "")
    for java, python in SIGNS.items():
        sign = sign.replace(java, python)
    cell = datetime(1112, 12, 5, 10, 30, 15, 250_000).strftime(sign).replace("250000", "250")
    head = f'@attribute b {{-1,1}} %{{poor, rich}}\n@attribute d date "{form}" % {{seen}}\n@data\n'
    (tmp_path / "t.arff").write_text(f"{head}-1,'{cell}'\n1,?\n")
    try:
        X = read_table(tmp_path / "t.arff").X
    except TableError:
        assert not form.startswith("yyyy-MM-dd")
        return
    meant = datetime.strptime(cell, sign)
    meant = meant if "yyyy" in form else meant.replace(year=1970)
    days = (meant - datetime(1970, 1, 1)) / timedelta(days=1)
    np.testing.assert_array_equal(Columns.of(X).read(X)["d"], [days, np.nan])
    assert X["b"].tolist() == ["-1", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "tsv", "xlsx", "ods", "parquet", "feather"])
def test_names_of_rows_are_as_written(tmp_path, of_x, suffix):
    """L: also if they end in .0."""
    names = ["v1", "v1.0", "B.0", "007", "1.50", "2020-01-31 00:00:00"]
    frame = pd.DataFrame({"x": np.arange(6) / 4, "name": names, "again": names})
    path = write(tmp_path / f"t.{suffix}", frame)
    rows = predicted(of_x, path, "--id", "name", "--keep", "again")
    assert rows["name"].tolist() == rows["again"].tolist() == names


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "xlsx", "ods", "parquet"])
def test_a_row_of_gaps_is_a_row(tmp_path, of_x, suffix):
    """P: trailing ones are none, nor are blank lines of files of more columns."""
    x, path = [0.5, None, -0.5, None, None, 1.5], tmp_path / f"t.{suffix}"
    expected = predicted(of_x, write(tmp_path / "t.feather", pd.DataFrame({"x": x})))
    assert expected["row"].tolist() == list("123456")
    ends, wide = [] if suffix == "parquet" else [None, None], [0, 1, 2]
    if suffix == "csv":
        path.write_text("x\n0.5\n\n-0.5\n\n\n1.5\n\n\n")
    else:
        write(path, pd.DataFrame({"x": x + ends}))
    pd.testing.assert_frame_equal(predicted(of_x, path), expected)
    if suffix == "csv":
        path.write_text("x,z\n0.5,a\n\n-0.5,b\n\n")
        wide = [0, 2]
    else:
        write(path, pd.DataFrame({"x": x[:3] + ends, "z": ["a", None, "b", *ends]}))
    rows = predicted(of_x, path)
    assert rows["row"].tolist() == [str(k + 1) for k in range(len(wide))]
    assert same(rows, expected.iloc[wide])
