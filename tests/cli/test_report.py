"""`looms fit --report`."""

import html
import sys

import numpy as np
import pandas as pd
import pytest

from looms.diagnostics import row_order
from looms.model_files import load_model


@pytest.mark.slow
def test_report_beside_the_model(fit, pets, monkeypatch):
    asked = []

    def counted(machine):
        asked.append(machine)
        return row_order(machine)

    monkeypatch.setattr("looms.report._cautions.row_order", counted)
    result = fit(pets, "-t", "kind", "-o", "m.skops", "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    assert len(asked) == 1  # for the page and the terminal
    assert "the report is in r.html" in result.stderr
    page = (pets.parent / "r.html").read_text(encoding="utf-8")
    assert "<title>kind, pets.csv</title>" in page
    assert "weight" in page
    load_model("m.skops")


@pytest.mark.slow
def test_nothing_is_overwritten_without_force(looms, pets, one_line):
    mine = "<!DOCTYPE html>mine"
    pets.with_name("r.html").write_text(mine)
    arguments = ("fit", pets, "-t", "kind", "-o", "m.skops", "--report", "r.html")
    one_line(looms(*arguments), 2, "or --report for another")
    assert pets.with_name("r.html").read_text() == mine
    assert not pets.with_name("m.skops").exists()
    one_line(looms(*arguments, "--force"), 2, "is not a file that this command writes")
    assert pets.with_name("r.html").read_text() == mine
    pets.with_name("r.html").unlink()
    for _ in range(2):
        assert looms(*arguments, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ("m.skops", "--output and --report are both m.skops; give"),
        ("absent/r.html", "there is no folder absent"),
        (".", "is a folder"),
        ("pets.csv", "is an input and would be lost; name another --report"),
    ],
)
def test_places_that_cannot_be(fit, pets, one_line, report, text):
    before = pets.read_bytes()
    result = fit(pets, "-t", "kind", "-o", "m.skops", "--report", report, "--force")
    one_line(result, 2, text)
    assert pets.read_bytes() == before
    assert not pets.with_name("m.skops").exists()


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_what_is_not_installed_is_said_before_the_fit(
    looms, fit, pets, one_line, monkeypatch, package
):
    monkeypatch.setitem(sys.modules, package, None)
    result = fit(pets, "-t", "kind", "-o", "m.skops", "--report", "r.html")
    one_line(result, 1, f'{package}, which is not installed: pip install ".[report]"')
    assert not pets.with_name("m.skops").exists()


@pytest.mark.slow
def test_the_page_has_the_notes_on_columns_that_the_fit_prints(fit, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=40).round(1), "name": [f"row {k}" for k in range(40)]}
    )
    frame["when"] = pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d")
    frame["kind"] = np.where(frame.a + rng.normal(size=40) > 0, "x", "y")
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = fit("t.csv", "-t", "kind", "-c", "linear", "-o", "m.skops", "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    page = html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    notes = [line.partition(": ")[2] for line in result.stderr.splitlines()]
    columns = [line for line in notes if "'when'" in line or "'name'" in line]
    assert len(columns) == 2
    for line in columns:
        assert f"<dt>Columns</dt><dd>{line[0].upper()}{line[1:]}.</dd>" in page
