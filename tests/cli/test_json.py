"""JSON on standard output, and nothing else there; versions and completion of shells."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from looms.cli._versions import PACKAGES

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def summaries(fit, looms, pets):
    """What fit and show print of one machine."""
    fitted = fit(pets, "-t", "kind", "-c", "linear", "-o", "pets.skops", "--json")
    assert fitted.exit_code == 0, fitted.stderr
    return json.loads(fitted.stdout), json.loads(looms("show", "pets.skops", "--json").stdout)


@pytest.mark.slow
def test_fit_and_show_print_the_summary(summaries):
    fitted, shown = summaries
    assert fitted["title"] == shown["title"] == "kind, pets.csv"
    assert fitted["data"] == shown["data"]
    assert fitted["data"]["target"] == "kind"
    assert fitted["loo"] == shown["loo"]
    assert fitted["samples"] == shown["samples"]
    assert "counted from 1" in fitted["samples"]["named_by"]


@pytest.mark.slow
def test_score_prints_scores_by_key(summaries, looms, pets):
    result = looms("score", "pets.skops", pets, "--json")
    values = json.loads(result.stdout)
    assert values["n_rows"] == 40
    assert list(values["scores"]) == ["accuracy", "balanced_accuracy", "roc_auc", "log_loss"]
    assert all(
        list(each) == ["value", "standard_error", "baseline"] for each in values["scores"].values()
    )


@pytest.mark.slow
def test_assess_prints_outer_scores(looms, pets):
    result = looms("assess", pets, "-t", "kind", "-c", "linear", "--splits", 3, "--json")
    values = json.loads(result.stdout)
    assert values["n_splits"] == 3
    keys = ["balanced_accuracy", "roc_auc", "log_loss"]
    assert [score["key"] for score in values["scores"]] == keys


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
