"""The examples of the README run as they are written."""

import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from looms.cli._app import app

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


class Nearly(doctest.OutputChecker):
    """The same text, with decimals that may differ in the last digits between platforms."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        (words, numbers), (own_words, own_numbers) = (split(text) for text in (want, got))
        return words == own_words and np.allclose(numbers, own_numbers, rtol=0, atol=0.02)


def split(text: str) -> tuple[list[str], list[float]]:
    """Words of a text, and its decimals."""
    decimal = r"\d+\.\d+"
    numbers = [float(number) for number in re.findall(decimal, text)]
    return re.sub(decimal, " # ", text).split(), numbers


@pytest.mark.slow
@pytest.mark.usefixtures("few_partitions", "few_pictures")
def test_python_examples_print_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    parser = doctest.DocTestParser()
    example = parser.get_doctest("\n".join(blocks("pycon")), {}, "README", "README.md", 0)
    assert any("evaluate()" in one.source and "rmse" in one.want for one in example.examples)
    doctest.DocTestRunner(Nearly(), verbose=False).run(example)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.usefixtures("few_partitions", "few_pictures", "three_folds")
def test_command_line_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command as it is written, on every third row of the table that the first one makes."""
    (example,) = (block for block in blocks("console") if block.startswith("python -c"))
    monkeypatch.chdir(tmp_path)
    for line in example.strip().splitlines():
        program, *arguments = shlex.split(line)
        if program == "looms":
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.stderr
        else:
            exec(arguments[1], {})
            head, *rows = (tmp_path / "wine.csv").read_text().splitlines(keepends=True)
            (tmp_path / "wine.csv").write_text(head + "".join(rows[::3]))
    assert (tmp_path / "predictions.csv").read_text().count("\n") == 31
    assert (tmp_path / "splits.csv").read_text().count("\n") == 21
    assert (tmp_path / "wine.html").stat().st_size > 20_000


def test_two_commands_set_everything_up() -> None:
    commands = [block for block in blocks("console") if block.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert all(len(command.strip().splitlines()) == 1 for command in commands)


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith("http")]
    missing = [link for link in local if not (README.parent / link).exists()]
    assert not missing
