"""What is said of the package in several files agrees."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    (cited,) = re.findall(r"^version: (.+)$", text("CITATION.cff"), re.MULTILINE)
    (recipe,) = re.findall(r'^  version: "(.+)"$', text("recipe/recipe.yaml"), re.MULTILINE)
    assert cited == recipe == PROJECT["version"]
    assert f"## {PROJECT['version']}" in text("CHANGELOG.md")


def test_the_recipe_needs_what_the_package_needs():
    (run,) = re.findall(r"  run:\n((?:    - .+\n)+)", text("recipe/recipe.yaml"))
    needed = {line.removeprefix("    - ").replace(" ", "") for line in run.splitlines()}
    assert needed - {"python>=${{python_min}}"} == set(PROJECT["dependencies"])
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in text(
        "recipe/recipe.yaml"
    )


def test_actions_are_named_by_their_commits():
    workflows = list((ROOT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    for workflow in workflows:
        used = re.findall(r"uses: (.+)", workflow.read_text(encoding="utf-8"))
        assert used
        for action in used:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
