"""Output in another encoding than UTF-8, as on Windows or with PYTHONIOENCODING."""

import csv
import io
from pathlib import Path

import pandas as pd
import pytest

from looms.cli._app import COMMANDS

ENCODINGS = ["ascii", "cp1252", "cp437"]


@pytest.fixture
def pets_in_cyrillic(pets):
    """The table of pets, with names in Cyrillic."""
    names = {"cat": "кот", "dog": "пёс"}
    pd.read_csv(pets).replace({"kind": names}).rename(columns={"weight": "вес"}).to_csv(
        "pets.csv", index=False
    )
    return pets


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_our_own_signs_are_written_in_others(looms, pets, pets_model, encoding):
    pets_model = str(pets_model)
    options = (pets, "-t", "kind")
    few = (*options, "-c", "rbf,linear", "--splits", 2)
    commands = {
        "fit": ("fit", *options, "-c", "rbf,linear", "-o", "new.skops"),
        "show": ("show", pets_model),
        "score": ("score", pets_model, pets),
        "assess": ("assess", *few),
        "compare": ("compare", *few),
        "check": ("check", *options),
        "predict": ("predict", pets_model, pets),
        "diagnose": ("diagnose", pets_model, "--bootstrap", 0),
        "versions": ("--version", "--verbose"),
    }
    for name, arguments in commands.items():
        result = looms(*arguments, encoding=encoding)
        assert result.exit_code == 0, (name, result.stderr)
        for text in (result.stdout, result.stderr):
            assert "\\" not in text.replace("true \\ predicted", ""), (name, text)
            assert "\ufffd" not in text
    in_unicode = looms("show", pets_model).stdout
    plain = looms("show", pets_model, encoding=encoding).stdout
    assert "± s.e." in in_unicode
    assert ("± s.e." if encoding != "ascii" else "+- s.e.") in plain
    assert len(plain.splitlines()) == len(in_unicode.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_more_than_ascii(looms, command):
    assert looms(command, "--help", encoding="ascii").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_names_are_escaped_for_people_and_never_for_programs(
    looms, fit, pets_in_cyrillic, one_line, encoding
):
    pets = pets_in_cyrillic
    fitted = looms("fit", pets, "-t", "kind", "-c", "linear", "-o", "m.skops", encoding=encoding)
    assert fitted.exit_code == 0, fitted.stderr
    for arguments in (("show", "m.skops"), ("score", "m.skops", pets)):
        result = looms(*arguments, encoding=encoding)
        assert result.exit_code == 0, result.stderr
        assert r"\u043a\u043e\u0442" in result.stdout
    refused = looms("predict", "m.skops", pets, encoding=encoding)
    one_line(refused, 1, "give --output")
    assert refused.stdout == ""
    assert encoding in refused.stderr
    assert looms("predict", "m.skops", pets, "-o", "p.csv", encoding=encoding).exit_code == 0
    written = looms("predict", "m.skops", pets).stdout
    assert Path("p.csv").read_text(encoding="utf-8") == written
    assert "кот" in {row[1] for row in csv.reader(io.StringIO(written))}
