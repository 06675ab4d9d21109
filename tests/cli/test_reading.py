"""Files as people have them, through every command that reads a table."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def euro(tmp_path):
    """A semicolon file with decimal commas, and the same rows in other forms."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"Größe": rng.normal(1.7, 0.1, 30).round(2), "Ort": ["Köln", "Ulm"] * 15})
    frame["Blutdruck"] = (100 + 20 * frame["Größe"] + rng.normal(size=30)).round(2)
    for name, options in {
        "plain.csv": {},
        "euro.csv": {"sep": ";", "decimal": ",", "encoding": "cp1252"},
        "tilde.csv": {"sep": "~", "decimal": ",", "encoding": "cp1252"},
    }.items():
        frame.to_csv(tmp_path / name, index=False, **options)
    frame.map(lambda cell: str(cell).replace(".", ",")).to_csv(tmp_path / "commas.csv", index=False)
    return frame


@pytest.mark.slow
def test_other_writings_give_the_same_predictions(looms, fit, euro):
    result = fit("euro.csv", "-t", "Blutdruck", "-c", "linear", "-o", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert 'Note: euro.csv: read with separator ";", encoding cp1252\n' in result.stderr
    assert "Note: numbers are read with a decimal comma" in result.stderr
    assert "Note: regression: " in result.stderr
    plain = looms("predict", "m.skops", "plain.csv")
    assert "read with separator" not in plain.stderr
    for name in ("euro.csv", "commas.csv"):
        assert looms("predict", "m.skops", name).stdout == plain.stdout
    assert "is read with another decimal mark than in the fit" in plain.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("fit", "tilde.csv", "-t", "Ort", "-c", "linear", "-o", "n.skops"),
        ("assess", "tilde.csv", "-t", "Ort", "-c", "linear", "-n", 2),
        ("diagnose", "m.skops", "--data", "tilde.csv", "-b", 0),
        ("predict", "m.skops", "tilde.csv"),
        ("score", "m.skops", "tilde.csv"),
    ],
)
def test_every_command_takes_the_options(looms, fit, euro, command):
    fit("plain.csv", "-t", "Ort", "-c", "linear", "-o", "m.skops")
    options = ("--sep", "~", "--decimal", ",", "--encoding", "cp1252")
    assert looms(*command).exit_code == 2
    result = looms(*command, *options)
    assert result.exit_code == 0, result.stderr
    assert "read with separator '~', encoding cp1252" in result.stderr


@pytest.mark.parametrize("other", ["Blutdruck", "Nummer"])
def test_the_word_among_numbers_with_commas_is_named(looms, fit, euro, one_line, other):
    euro["Nummer"] = range(30)
    euro.to_csv("plain.csv", index=False)
    fit("plain.csv", "-t", "Ort", "--drop", "Blutdruck", "-c", "linear", "-o", "m.skops")
    euro["Größe"] = euro["Größe"].map("{:.2f}".format).str.replace(".", ",")
    euro.loc[28, "Größe"] = "n.i.O."
    kept = euro[["Größe", "Ort", "Nummer", other]].loc[:, lambda table: ~table.columns.duplicated()]
    kept.to_csv("commas.csv", sep=";", decimal=",", index=False)
    text = "'Größe' is a column of numbers, and data row 29 holds 'n.i.O.': correct"
    for command in ("predict", "score"):
        one_line(looms(command, "m.skops", "commas.csv"), 2, text)


@pytest.mark.slow
def test_a_sheet_by_name_and_by_number(looms, euro):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter("book.xlsx") as book:
        euro.to_excel(book, sheet_name="patients", index=False)
        pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="legend", index=False)
    arguments = ("fit", "book.xlsx", "-t", "Blutdruck", "-c", "linear", "-f")
    result = looms(*arguments)
    assert result.exit_code == 2
    assert "2 sheets have data: 'patients', 'legend'. Choose one by --sheet" in result.stderr
    for sheet in ("patients", "1"):
        assert looms(*arguments, "--sheet", sheet).exit_code == 0


@pytest.mark.slow
def test_a_separator_is_one_character(looms, euro, one_line):
    euro.to_csv("tabs.txt", sep="\t", index=False)
    arguments = ("fit", "tabs.txt", "--format", "csv", "-t", "Blutdruck", "-c", "linear")
    one_line(looms(*arguments, "--sep", "::"), 2, "--sep :: is not one character")
    assert looms(*arguments, "--sep", "tab").exit_code == 0


@pytest.mark.slow
def test_numbers_that_stay_text_are_no_classes(looms, euro, one_line):
    thousands = (euro["Blutdruck"] * 1000).map("{:,.0f}".format)
    euro.assign(Blutdruck=thousands).to_csv("thousands.csv", index=False)
    arguments = ("fit", "thousands.csv", "-t", "Blutdruck", "-c", "linear")
    result = looms(*arguments)
    one_line(result, 2, f"not clear: {thousands[0]!r} in data row 1; choose the mark by --decimal")
    assert "Note: regression" in looms(*arguments, "--decimal", ".").stderr


def test_names_are_no_classes(fit, euro, one_line):
    euro.assign(name=[f"N{row}" for row in range(30)]).to_csv("names.csv", index=False)
    one_line(fit("names.csv", "-t", "name"), 2, "30 different labels in 30 rows, 30 of")


def test_a_name_that_no_file_can_have(fit, pets, one_line):
    name = "a" * 300 + ".csv"
    one_line(fit(name, "-t", "y", "-o", "m.skops"), 2, "it cannot be read (File name too long)")
    almost = "a" * 250 + ".csv"  # and ".looms.skops" is longer
    pets.rename(almost)
    one_line(fit(almost, "-t", "kind"), 2, "no file can be called so")
