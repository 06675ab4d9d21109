"""The blocks of the documentation's pages run, and give the output that stands there."""

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
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


def run(command: str, folder: Path) -> str:
    """Output of a command in the folder, with the programs of this environment first.

    As in the root of a clone, ``python -m papers`` is found.
    """
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(DOCS.parent), os.environ.get("PYTHONPATH")])
        ),
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
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


def test_the_page_of_benchmarks_is_made_of_the_tables() -> None:
    """But for the dates, which are those of commits: `python benchmarks/pages.py` writes it."""
    script = DOCS.parent / "benchmarks" / "pages.py"
    spec = importlib.util.spec_from_file_location("pages", script)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["pages"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.PAGE.read_text(encoding="utf-8")
    assert module.page(lambda path: "") == re.sub(r"(?<![\w/])\d{4}-\d\d-\d\d", "", page)


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
