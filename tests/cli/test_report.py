"""`looms fit --report`."""

import sys

import pytest

from looms.model_files import load_model


def test_report_beside_the_model(looms, pets):
    result = looms("fit", pets, "-t", "kind", "-o", "m.skops", "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    assert "the report is in r.html" in result.stderr
    page = (pets.parent / "r.html").read_text(encoding="utf-8")
    assert "<title>kind, pets.csv</title>" in page
    assert "weight" in page
    load_model("m.skops")


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
        ("m.skops", "is to hold the model; name another --report"),
        ("absent/r.html", "there is no folder absent"),
        (".", "is a folder"),
        ("pets.csv", "is an input and would be lost; name another --report"),
    ],
)
def test_places_that_cannot_be(looms, pets, one_line, report, text):
    before = pets.read_bytes()
    result = looms("fit", pets, "-t", "kind", "-o", "m.skops", "--report", report, "--force")
    one_line(result, 2, text)
    assert pets.read_bytes() == before
    assert not pets.with_name("m.skops").exists()


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_what_is_not_installed_is_said_before_the_fit(looms, pets, one_line, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    result = looms("fit", pets, "-t", "kind", "-o", "m.skops", "--report", "r.html")
    one_line(result, 1, f'{package}, which is not installed: pip install "looms[report]"')
    assert not pets.with_name("m.skops").exists()


@pytest.mark.slow
def test_sparse_rows_without_names(looms, tmp_path):
    rows = [f"{1 if k % 3 else -1} 1:{k % 5} 3:{(k * k) % 7}" for k in range(30)]
    (tmp_path / "rows.svm").write_text("\n".join(rows) + "\n")
    result = looms("fit", "rows.svm", "--format", "svmlight", "-o", "m.skops", "--report", "r.html")
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>rows.svm</title>" in page
    assert "column 3" in page
