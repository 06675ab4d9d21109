"""Files as people have them, through every command that reads a table."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from looms.cli._app import app


def _euro():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"Größe": rng.normal(1.7, 0.1, 30).round(2), "Ort": ["Köln", "Ulm"] * 15})
    frame["Nummer"] = np.arange(30) % 9
    frame["Blutdruck"] = (100 + 20 * frame["Größe"] + rng.normal(size=30)).round(2)
    return frame


@pytest.fixture
def euro(tmp_path):
    """A semicolon file with decimal commas, and the same rows in other forms."""
    frame = _euro()
    for name, options in {
        "plain.csv": {},
        "euro.csv": {"sep": ";", "decimal": ",", "encoding": "cp1252"},
        "tilde.csv": {"sep": "~", "decimal": ",", "encoding": "cp1252"},
    }.items():
        frame.to_csv(tmp_path / name, index=False, **options)
    frame.map(lambda cell: str(cell).replace(".", ",")).to_csv(tmp_path / "commas.csv", index=False)
    return frame


@pytest.fixture(scope="module")
def of_places(tmp_path_factory):
    """A model of the places of that table, fitted once, and only read."""
    folder = tmp_path_factory.mktemp("euro")
    _euro().to_csv(folder / "plain.csv", index=False)
    file, model = (str(folder / name) for name in ("plain.csv", "m.skops"))
    options = ["-t", "Ort", "-c", "linear", "--no-evaluate", "-o", model]
    assert CliRunner().invoke(app, ["fit", file, *options]).exit_code == 0
    return model


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
@pytest.mark.parametrize("command", ["fit", "assess", "check", "diagnose", "predict", "score"])
def test_every_command_takes_the_options(looms, of_places, euro, command):
    given = {
        "fit": ("tilde.csv", "-t", "Ort", "-c", "linear", "--no-evaluate"),
        "assess": ("tilde.csv", "-t", "Ort", "-c", "linear", "-n", 2),
        "check": ("tilde.csv", "-t", "Ort"),
        "diagnose": (of_places, "--data", "tilde.csv", "-b", 0),
    }.get(command, (of_places, "tilde.csv"))
    assert looms(command, *given).exit_code == 2
    result = looms(command, *given, "--sep", "~", "--decimal", ",", "--encoding", "cp1252")
    assert result.exit_code == 0, result.stderr
    assert "read with separator '~', encoding cp1252" in result.stderr


@pytest.mark.parametrize("alone", [False, True])
def test_the_word_among_numbers_with_commas_is_named(looms, of_places, euro, one_line, alone):
    if alone:  # no other column shows the decimal mark
        euro["Blutdruck"] = euro["Blutdruck"].round().astype(int)
    euro["Größe"] = euro["Größe"].map("{:.2f}".format).str.replace(".", ",")
    euro.loc[28, "Größe"] = "n.i.O."
    euro.to_csv("commas.csv", sep=";", decimal=",", index=False)
    text = "'Größe' is a column of numbers, and data row 29 holds 'n.i.O.': correct"
    for command in ("predict", "score"):
        one_line(looms(command, of_places, "commas.csv"), 2, text)


@pytest.mark.slow
def test_a_sheet_by_name_and_by_number(looms, euro, one_line):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter("book.xlsx") as book:
        euro.to_excel(book, sheet_name="patients", index=False)
        pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="legend", index=False)
    given = ("check", "book.xlsx", "-t", "Blutdruck")
    one_line(looms(*given), 2, "2 sheets have data: 'patients', 'legend'. Choose one by --sheet")
    for sheet in ("patients", "1"):
        assert looms(*given, "--sheet", sheet).exit_code == 0


def test_a_separator_is_one_character(looms, euro, one_line):
    euro.to_csv("tabs.txt", sep="\t", index=False)
    given = ("check", "tabs.txt", "--format", "csv", "-t", "Blutdruck")
    one_line(looms(*given, "--sep", "::"), 2, "--sep :: is not one character")
    assert looms(*given, "--sep", "tab").exit_code == 0


def test_numbers_that_stay_text_are_no_classes(looms, euro, one_line):
    thousands = (euro["Blutdruck"] * 1000).map("{:,.0f}".format)
    euro.assign(Blutdruck=thousands).to_csv("thousands.csv", index=False)
    given = ("check", "thousands.csv", "-t", "Blutdruck")
    one_line(looms(*given), 2, f"not clear: {thousands[0]!r} in data row 1; choose the mark by --d")
    assert looms(*given, "--decimal", ".").stdout.startswith("Regression")
    euro.assign(name=[f"N{row}" for row in range(30)]).to_csv("names.csv", index=False)
    one_line(looms("fit", "names.csv", "-t", "name"), 2, "30 different labels in 30 rows")


def test_a_name_that_no_model_file_can_have(fit, pets, one_line):
    almost = "a" * 250 + ".csv"  # and ".looms.skops" is longer
    pets.rename(almost)
    one_line(fit(almost, "-t", "kind"), 2, "no file can be called so")
