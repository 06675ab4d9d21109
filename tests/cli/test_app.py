"""Versions and completion of shells; JSON is in test_sixty_commands.py."""

import re
import tomllib
from pathlib import Path

import pytest

from looms.cli._app import PACKAGES

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_versions_for_bug_reports(looms):
    for arguments in (("--version", "--verbose"), ("--verbose", "--version")):
        lines = looms(*arguments).stdout.splitlines()
        assert lines[0].split()[0] == "looms"
        assert [line.split()[0] for line in lines[3 : 3 + len(PACKAGES)]] == list(PACKAGES)
        assert any(line.startswith("blas") and "thread" in line for line in lines)
    assert looms("--version").stdout.count("\n") == 1
    alone = looms("--verbose")
    assert alone.exit_code == 2
    assert "it goes with --version" in alone.stderr


def test_versions_are_of_all_that_looms_can_use():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + [
        name
        for extra, names in extras.items()
        if extra not in ("test", "dev", "docs")
        for name in names
    ]
    names = {re.split(r"[^\w.-]", text)[0] for text in needed} - {"looms"}
    assert names == set(PACKAGES)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("looms sco", ["score"]),
        ("looms --vers", ["--version"]),
        ("looms fit --memo", ["--memory"]),
    ],
)
def test_a_shell_completes(looms, monkeypatch, line, expected):
    monkeypatch.setenv("_LOOMS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    assert looms().stdout.split() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown_and_installed(looms, monkeypatch, tmp_path, shell):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    script = looms("--show-completion", shell).stdout.strip()
    assert "_LOOMS_COMPLETE" in script
    assert looms("--install-completion", shell).exit_code == 0
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(script in text for text in written)
