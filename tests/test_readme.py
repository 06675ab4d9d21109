"""The examples of the README run as they are written."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from looms.cli._app import app

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_python_example(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("python")
    exec(example, {})
    printed = capsys.readouterr().out
    assert "RBF" in printed
    assert "auc" in printed


@pytest.mark.slow
def test_command_line_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = (block for block in blocks("console") if block.startswith("python -c"))
    monkeypatch.chdir(tmp_path)
    for line in example.strip().splitlines():
        program, *arguments = shlex.split(line)
        if program == "looms":
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.stderr
        else:
            exec(arguments[1], {})
    assert (tmp_path / "predictions.csv").read_text().count("\n") == 179
    assert (tmp_path / "splits.csv").read_text().count("\n") == 21
    assert (tmp_path / "wine.html").stat().st_size > 100_000


def test_two_commands_set_everything_up() -> None:
    commands = [block for block in blocks("console") if block.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert all(len(command.strip().splitlines()) == 1 for command in commands)


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith("http")]
    missing = [link for link in local if not (README.parent / link).exists()]
    assert not missing
