"""The blocks of the documentation's pages run, and give the output that stands there."""

import doctest
import importlib
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import looms
from looms import TabularClassifier, TabularRegressor
from looms.cli._app import app as looms_app
from papers.__main__ import app as papers_app

DOCS = Path(__file__).parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TERMINAL = {"COLUMNS": "80", "NO_COLOR": "1"}
REDIRECTED = [["1", ">"], ["2", ">"], ["2", ">&"]]
BLOCK = re.compile(r"^( *)```(pycon|console)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def pages() -> list[str]:
    """Pages with blocks that run."""
    return sorted(
        page.relative_to(DOCS).as_posix()
        for page in DOCS.rglob("*.md")
        if BLOCK.search(page.read_text(encoding="utf-8"))
    )


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block, each with the output that follows it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        length = next(i for i, line in enumerate(lines, 1) if not line.endswith("\\\n"))
        yield "".join(lines[:length]), "".join(lines[length:])


def words_of(command: str) -> list[str]:
    """The program and its arguments, up to a pipe, a redirection or another command."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((i for i, word in enumerate(words) if set(word) <= set("|&;<>")), len(words))
    return words[: end - (end < len(words) and words[end - 1 : end + 1] in REDIRECTED)]


def run(command: str, folder: Path) -> str:
    """Output of a command in the folder; looms, papers and Python run in this process.

    A pipe, a redirection or another command behind it is the shell's, which finds what was said.
    """
    command = command.replace("\\\n", "")
    words = words_of(command)
    if words[0] == "looms":
        done = CliRunner().invoke(looms_app, words[1:], env=TERMINAL, prog_name="looms")
    elif words[:3] == ["python", "-m", "papers"]:
        done = CliRunner().invoke(papers_app, words[3:], env=TERMINAL, prog_name="papers")
    elif words[:2] == ["python", "-c"]:
        with redirect_stdout(StringIO()) as said, warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # of one line that ends
            exec(words[2], {"__name__": "__main__"})
        return said.getvalue()
    else:
        return shell(command, folder)
    if words == shlex.split(command):
        return done.output
    for name, said in (("out", done.stdout), ("err", done.stderr)):
        (folder / f".{name}").write_text(said, encoding="utf-8")
    return shell(
        f"{words[0]}() {{ cat .err >&2; cat .out; return {done.exit_code}; }}; {command}", folder
    )


def shell(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", pages())
def test_blocks_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    checker, parser = doctest.OutputChecker(), doctest.DocTestParser()
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        block = re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
        if match[2] == "pycon":
            example = parser.get_doctest(block, namespace, page, page, line)
            runner = doctest.DocTestRunner(checker, verbose=False, optionflags=OPTIONS)
            runner.run(example, clear_globs=False)
            namespace = example.globs
            assert not runner.failures, capsys.readouterr().out
        else:
            for command, expected in commands(block):
                output = run(command, tmp_path)
                assert checker.check_output(expected, output, OPTIONS), (
                    f"{page}:{line}\n$ {command}expected:\n{expected}\ngot:\n{output}"
                )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_page_on_one_fit_names_what_runs() -> None:
    """Functions are entered for the first time in the order of the page."""
    text = (DOCS / "explanation" / "one_fit.md").read_text(encoding="utf-8")
    walks = re.search(r"```text\n(.*?)```", text, re.DOTALL)[1].split("\n\n")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=60), "color": rng.choice(["red", "blue"], 60)})
    y = table["size"] + (table["color"] == "red") + 0.5 * rng.normal(size=60)
    model, regressor = TabularClassifier(["rbf"]), TabularRegressor(["rbf"])
    regressor.fit(table, y).evaluate()
    calls = [
        lambda: model.fit(table, y > 0),
        lambda: model.evaluate(),
        lambda: regressor.predict_interval(table),
        lambda: model.without([0, 7]),
    ]
    for walk, call in zip(walks, calls, strict=True):
        entered = functions_entered(call)
        named = [f"{file} {name}" for file, name in re.findall(r"^ +(\S+\.py) +(\S+)", walk, re.M)]
        assert [function for function in entered if function in named] == named


def functions_entered(call: Callable[[], object]) -> list[str]:
    """Functions of looms, with their files, in the order in which they are entered first."""
    root, entered = f"{Path(looms.__file__).parent}/", dict[str, None]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            entered.setdefault(f"{code.co_filename.removeprefix(root)} {code.co_qualname}")

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(entered)


def test_numbers_of_pages_are_those_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python benchmarks/pages.py` writes them."""
    monkeypatch.syspath_prepend(DOCS.parent / "benchmarks")
    for path, text in importlib.import_module("pages").pages().items():
        assert path.read_text(encoding="utf-8") == text, path.name


def test_addresses_are_well_formed() -> None:
    """Of other sites; whether these answer, `sphinx -b linkcheck` tells."""
    texts = {page: page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")}
    addresses = {
        f"{page.relative_to(DOCS)}: {address}"
        for page, text in texts.items()
        for address in re.findall(r"\w+://[^\s)>`'\"\]]+", text)
        if not address.startswith("file://")
    }
    form = re.compile(r"https://([\w-]+\.)+[a-z]{2,}(/[\w.~%+#=?&,@:/-]*[\w/])?")
    assert [each for each in addresses if not form.fullmatch(each.partition(": ")[2])] == []
