"""Output in another encoding than UTF-8, as on Windows or with PYTHONIOENCODING.

That all signs of all commands can be written is in test_sixty_commands.py.
"""

import csv
import io
from pathlib import Path

import pandas as pd
import pytest

from looms import TabularClassifier
from looms.cli._app import COMMANDS

ENCODINGS = ["ascii", "cp1252", "cp437"]


@pytest.fixture(scope="module")
def cyrillic(pets_fitted, tmp_path_factory):
    """Table and model with names in Cyrillic, made once, and only read."""
    folder, names = tmp_path_factory.mktemp("cyrillic"), {"cat": "кот", "dog": "пёс"}
    table = pd.read_csv(pets_fitted / "pets.csv").replace({"kind": names})
    table = table.rename(columns={"weight": "вес"})
    table.to_csv(folder / "pets.csv", index=False)
    X, y = table[["color", "indoors", "вес"]], table["kind"]
    model = TabularClassifier(["linear"])
    with pytest.warns(UserWarning, match="alone predicts"):
        model.fit(X, y)
    model.save(folder / "m.skops")
    return folder / "m.skops", folder / "pets.csv"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_more_than_ascii(looms, command):
    assert looms(command, "--help", encoding="ascii").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_names_are_escaped_for_people_and_never_for_programs(looms, cyrillic, one_line, encoding):
    model, pets = cyrillic
    for arguments in (("show", model), ("score", model, pets), ("check", pets, "-t", "kind")):
        result = looms(*arguments, encoding=encoding)
        assert result.exit_code == 0, result.stderr
        if arguments[0] != "check":
            assert r"\u043a\u043e\u0442" in result.stdout
            assert ("± s.e." if encoding != "ascii" else "+- s.e.") in result.stdout
    refused = looms("predict", model, pets, encoding=encoding)
    one_line(refused, 1, "give --output")
    assert encoding in refused.stderr
    assert looms("predict", model, pets, "-o", "p.csv", encoding=encoding).exit_code == 0
    written = looms("predict", model, pets).stdout
    assert Path("p.csv").read_text(encoding="utf-8") == written
    assert "кот" in {row[1] for row in csv.reader(io.StringIO(written))}
