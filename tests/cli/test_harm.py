"""What names, labels and options of others must not do to a terminal, a spreadsheet, a file."""

import errno
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import looms as looms_package
from looms._files import write_whole
from looms.cli._errors import InputError, visible
from looms.cli._output import check_can_write, csv_text, escape_formula
from looms.model_files import load_model

#: A window title, the clipboard, a cleared screen, colors, C1, the direction of writing, lines.
NAMES = ["\x1b[31mred\x1b]0;TITLE\x07", "\u202eback\u200f", "\x9b2Jone"]
LABELS = ["\x1b]52;c;cHduZWQ=\x07yes", "\x1b[2Jno\nNote: forged"]


@pytest.fixture
def evil(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=NAMES)
    frame["t\x1b[2J"] = np.where(frame.iloc[:, 0] > 0, *LABELS)
    frame.to_csv(tmp_path / "evil.csv", index=False)
    return tmp_path / "evil.csv"


COMMANDS = [
    ("fit", "evil.csv", "-t", "t\x1b[2J", "-c", "linear", "--no-evaluate", "-o", "\x1b[2Jm.skops"),
    ("fit", "evil.csv", "-t", "\x1b]0;TITLE\x07"),
    ("show", "\x1b[2Jm.skops"),
    ("score", "\x1b[2Jm.skops", "evil.csv"),
    ("predict", "\x1b[2Jm.skops", "evil.csv"),
    ("predict", "\x1b[2Jm.skops", "other.csv"),
    ("assess", "evil.csv", "-t", "t\x1b[2J", "-c", "linear", "-n", "2"),
    ("diagnose", "\x1b[2Jm.skops", "--data", "evil.csv", "-b", "0"),
]


def on_a_terminal(commands):
    """What commands, one after the other in one process, write to a terminal of its own."""
    code = (
        "import json, sys\n"
        "from looms.cli._app import app\n"
        "for command in json.loads(sys.argv[1]):\n"
        "    try: app(command)\n"
        "    except SystemExit: print('END OF COMMAND', flush=True)\n"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    environment["PYTHONPATH"] = str(Path(looms_package.__file__).parents[1])
    arguments = [sys.executable, "-c", code, json.dumps(commands)]
    written = b""
    with subprocess.Popen(arguments, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        while True:
            try:
                written += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    return written.replace(b"\r", b"").split(b"END OF COMMAND\n")[:-1]


@pytest.mark.slow
def test_nothing_of_a_file_reaches_a_terminal_as_a_command(evil, monkeypatch):
    monkeypatch.chdir(evil.parent)
    pd.read_csv(evil).drop(columns=NAMES[0]).to_csv("other.csv", index=False)
    written = on_a_terminal(COMMANDS)
    assert len(written) == len(COMMANDS)
    harm = ["\x1b]", "\x1b[2J", "\x1b[31m", "\x07", "\x9b", "\u202e", "\u200f"]
    for command, shown in zip(COMMANDS, written, strict=True):
        assert len(shown) > 40, command
        assert [what for what in harm if what.encode() in shown] == [], (command, shown)
        if command[0] != "predict":  # whose cells may have several lines
            assert b"\nNote: forged" not in shown
    assert rb"\x1b" in written[3]


def test_escapes_say_what_was_there():
    assert visible("a\x1b[2Jb\x9b\u202e\n") == r"a\x1b[2Jb\x9b\u202e\n"
    assert visible("a\nb", keep="\n") == "a\nb"
    assert visible("é 日本 👩\u200d👩 -3.5") == "é 日本 👩\u200d👩 -3.5"


FORMULAS = ['=HYPERLINK("http://evil","x")', "@SUM(1+1)", "+cmd|x", "-2+3", "\t=1", "\r=1", "'=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe_that_can_be_taken_away(text):
    assert escape_formula(text) == f"'{text}"
    assert escape_formula(f"'{text}") == f"''{text}"


WORDS = ["-3.5", "+1e-3", "-inf", "+", "-", "it's", "a=b", "", -3.5, None]


@pytest.mark.parametrize("value", WORDS)
def test_numbers_signs_and_words_stay_as_they_are(value):
    assert escape_formula(value) == value


def test_cells_names_and_rows_of_a_table_are_guarded_and_numbers_are_not(capsys):
    table = pd.DataFrame({"=a": [-1.5, 2.0], "b": ["@x", "-3"]}, index=["+i+1", "j"])
    assert csv_text(table) == ",'=a,b\n'+i+1,-1.5,'@x\nj,2.0,-3\n"
    assert capsys.readouterr().err.startswith("Note: 3 cells or names like formulas (= + - @)")
    assert list(table.columns) == ["=a", "b"]


@pytest.mark.slow
def test_predictions_hold_no_formulas_and_a_note_says_so(looms, fit, pets):
    frame = pd.read_csv(pets)
    frame["kind"] = frame["kind"].map({"cat": '=HYPERLINK("x")', "dog": "@SUM(1)"})
    frame.to_csv("f.csv", index=False)
    fit("f.csv", "-t", "kind", "-o", "m.skops")
    result = looms("predict", "m.skops", "f.csv", "-o", "p.csv")
    assert "get an apostrophe in front" in result.stderr
    found = pd.read_csv("p.csv")
    assert set(found["prediction"]) == {'\'=HYPERLINK("x")', "'@SUM(1)"}
    assert not [name for name in found.columns if name.startswith(("=", "@"))]
    assert looms("predict", "m.skops", "f.csv").stdout == Path("p.csv").read_text()


PAGE = "<!doctype html>\n<title>mine</title>\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wine.csv", "name,prediction,notes\nx,1,precious\n"),
        ("blank.csv", "\nmy data\n"),
        ("wine.skops", "not a model"),
        ("wine.html", PAGE),
        ("p.csv", "row,prediction,decision_dog\n1,dog,1.0\n"),
    ],
)
def test_force_overwrites_only_what_the_command_writes(
    looms, pets, pets_model, one_line, name, text
):
    Path(name).write_text(text)
    commands = [
        ("fit", pets, "-t", "kind", "-o", name),
        ("fit", pets, "-t", "kind", "-o", "new.skops", "--report", name),
        ("assess", pets, "-t", "kind", "-o", name),
        ("export", pets_model, "-o", name),
        ("diagnose", pets_model, "-o", name),
    ]
    if name != "p.csv":  # which this writes
        commands.append(("predict", pets_model, pets, "-o", name))
    for command in commands:
        one_line(looms(*command, "-f"), 2, "is not a file that this command writes")
    assert Path(name).read_text() == text
    assert not Path("new.skops").exists()
    if name == "p.csv":
        assert looms("predict", pets_model, pets, "-f", "-o", name).exit_code == 0
        assert len(pd.read_csv(name)) == 40


@pytest.mark.slow
def test_a_model_and_a_page_of_looms_are_replaced_with_force(fit, pets, pets_model, one_line):
    command = (pets, "-t", "kind", "-c", "linear", "-o", pets_model, "--report", "r.html")
    one_line(fit(*command), 2, "exists; use --force to overwrite it, or --output for another")
    before = Path(pets_model).read_bytes()
    for _ in range(2):
        assert fit(*command, "--force").exit_code == 0
    assert Path(pets_model).read_bytes() != before
    load_model(pets_model)
    one_line(fit(*command[:-3], "new.skops", *command[-2:]), 2, "or --report for another")


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "pets.csv", "-t", "kind", "-o", "pets.csv"),
        ("fit", "pets.csv", "-t", "kind", "--report", "pets.csv"),
        ("predict", "pets.looms.skops", "pets.csv", "-o", "pets.csv"),
        ("predict", "pets.looms.skops", "pets.csv", "-o", "pets.looms.skops"),
        ("assess", "pets.csv", "-t", "kind", "-o", "pets.csv"),
        ("assess", "pets.csv", "-t", "kind", "--report", "pets.csv"),
        ("compare", "pets.csv", "-t", "kind", "-c", "linear,rbf", "-o", "pets.csv"),
        ("diagnose", "pets.looms.skops", "-o", "pets.looms.skops"),
        ("diagnose", "pets.looms.skops", "--data", "pets.csv", "-o", "pets.csv"),
        ("export", "pets.looms.skops", "-o", "pets.looms.skops"),
    ],
)
def test_inputs_are_never_overwritten(looms, pets, pets_model, one_line, command):
    before = {path: Path(path).read_bytes() for path in (pets, pets_model)}
    if command[:2] == ("fit", "pets.csv") and "-o" not in command:
        Path(pets_model).unlink()
        del before[pets_model]
    one_line(looms(*command, "--force"), 2, "is an input and would be lost")
    assert {path: Path(path).read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("-", "--output - is no file"),
        (".", "is a folder"),
        ("absent/r.html", "there is no folder absent"),
        ("a" * 300, "no file can be called so"),
        ("pipe", "is not a regular file"),
    ],
)
def test_places_that_cannot_be(tmp_path, monkeypatch, path, text):
    monkeypatch.chdir(tmp_path)
    if path == "pipe":
        os.mkfifo("pipe")
        with pytest.raises(OSError, match="no regular file"):
            write_whole(Path("pipe"), b"")
    with pytest.raises(InputError, match=re.escape(text)):
        check_can_write(Path(path), True)


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_links_stay(looms, pets, pets_model):
    Path("real.csv").touch()
    Path("link.csv").symlink_to("real.csv")
    assert looms("predict", pets_model, pets, "-f", "-o", "link.csv").exit_code == 0
    assert Path("link.csv").is_symlink()
    assert len(pd.read_csv("real.csv")) == len(pd.read_csv(pets))


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_folder_that_takes_no_file_is_refused_before_any_work(
    fit, pets, monkeypatch, one_line, option
):
    Path("locked").mkdir()
    touch = Path.touch

    def refuse(path, *given, **options):
        if path.parent.name == "locked":
            raise PermissionError(errno.EACCES, "Permission denied")
        touch(path, *given, **options)

    monkeypatch.setattr(Path, "touch", refuse)
    monkeypatch.setattr(looms_package.TabularClassifier, "fit", None)
    name = "locked/m.skops" if option == "--output" else "locked/page.html"
    result = fit(pets, "-t", "kind", option, name)
    one_line(result, 2, f"(Permission denied); name another {option}")


def test_the_limit_of_a_model_s_size_is_an_option(looms, pets, pets_model, one_line):
    one_line(looms("show", pets_model, "--max-bytes", 1000), 2, "allow more by --max-bytes")
