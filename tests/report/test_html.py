"""The page: whole, alone, and unimpressed by what columns are called."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from importlib.resources import files
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from looms import KernelClassifier, KernelRegressor, Search, report
from looms.folds import GapKFold
from looms.report.facts import Facts
from looms.report.page import _text, render
from looms.report.text import count, number, plus_minus, score, thousands

VOID = {"meta", "br", "hr", "img", "input", "link", "source"}


class Page(HTMLParser):
    """Tags and text of a page; fails where tags do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.text.append(data)

    def attributes(self, name):
        return [a[name] for _, a in self.tags if name in a]


class Pages(dict):
    """Pages of machines, each made when it is first asked for."""

    def __missing__(self, which):
        model, X, y, *assessment = self.fixture("several" if which == "given" else which)
        facts = {
            "binary": lambda: Facts(model, X=X, y=y, assessment=assessment[0]),
            "several": lambda: Facts(model, y=y, title="Irises"),
            "given": lambda: Facts(KernelClassifier(mu=1e-3).fit(X, y)),
        }.get(which, lambda: Facts(model, X=X, y=y))
        self[which] = render(facts())
        return self[which]


@pytest.fixture(scope="module")
def made():
    return Pages()


@pytest.fixture
def pages(request, made, all_pictures):
    made.fixture = request.getfixturevalue
    return made


EACH = pytest.mark.parametrize("which", ["binary", "regression", "hostile", "given"])


@pytest.mark.slow
@EACH
def test_page_is_whole_and_alone(pages, which):
    page = Page(pages[which])
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == tags.count("style") == tags.count("h1") == 1
    assert not {"link", "iframe", "object", "form", "base"} & set(tags)
    links = page.attributes("href")
    assert all(link.startswith("#") for link in links)
    assert tags.count("svg") == tags.count("figure")
    assert not page.attributes("src")
    inside = {*page.attributes("xlink:href"), *re.findall(r"url\(([^)]*)\)", pages[which])}
    ids = page.attributes("id")
    assert inside - {"#a"} <= {f"#{name}" for name in ids}  # a name of a column has url(#a)
    assert not any(name.startswith("on") for _, a in page.tags for name in a)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)
    assert "± ±" not in pages[which]
    assert ("Candidates" in pages[which]) == (which == "binary")
    (policy,) = [
        a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"
    ]
    script = re.search(r"<script>(.*?)</script>", pages[which], flags=re.DOTALL)[1]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src ")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


@pytest.mark.slow
@EACH
def test_pictures_have_words_and_the_colors_of_the_page(pages, which):
    page = Page(pages[which])
    words = [a["aria-label"] for _, a in page.tags if a.get("role") == "img"]
    assert len(words) >= 3
    assert all(len(alt) > 30 for alt in words)
    defined = set(re.findall(r"--(\w+): #", _text("report.css")))
    for svg in re.findall("<svg.*?</svg>", pages[which], flags=re.DOTALL):
        drawing = ElementTree.fromstring(svg)
        assert "".join(drawing.itertext()).strip()
        styles = " ".join(each.get("style", "") for each in drawing.iter()).replace("#ffffff", "")
        assert "#" not in styles.replace("url(#", "")
        assert "ink" in set(re.findall(r"var\(--(\w+)\)", styles)) <= defined


@pytest.mark.slow
def test_markup_in_names_is_text(pages):
    text = " ".join(Page(pages["hostile"]).text)
    for name in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}"):
        assert name in text
    assert "--> <!-- ]]> url(#a) #010203" in text
    assert "\u202e" not in pages["hostile"]
    assert "\x00" not in pages["hostile"]
    assert "line break tab" in text
    assert "<bdi>right to left עברית" in pages["hostile"]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["binary", "several", "regression"])
def test_the_number_of_cautions_is_of_those_listed(pages, which):
    listed = pages[which].partition('id="cautions"')[2].partition("</section>")[0]
    n, n_serious = listed.count("<dt>"), listed.count('class="serious"')
    found = r"There (?:is|are) (\d+) cautions? below(, (\d+) of them serious)?"
    said = re.search(found, pages[which])
    assert int(said[1]) == n
    assert (said[3] or "none") == (str(n_serious) if 0 < n_serious < n else "none")


@pytest.mark.slow
def test_file_is_written_whole(several, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(ValueError, match="3 rows"):
        report.write_html(several[0], path, X=np.zeros((3, 4)))
    assert path.read_text() == "before"
    report.write_html(several[0], path, title="A “title” \ud800 & more")
    text = path.read_text(encoding="utf-8")
    assert "<title>A “title” &amp; more</title>" in text
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="absent"):
        report.write_html(several[0], tmp_path / "absent" / "page.html")
    with pytest.raises(IsADirectoryError):
        report.write_html(several[0], tmp_path)


def test_templates_are_in_the_package():
    folder = files("looms.report").joinpath("templates")
    templates = {
        "card.md",
        "check.html",
        "parts.html",
        "report.html",
        "report.css",
        "report.js",
        "validation.html",
    }
    assert {f.name for f in folder.iterdir()} == templates
    assert "innerHTML" not in _text("report.js")
    assert "http" not in _text("report.css") + _text("report.js")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (-2.0, "−2"),
        (0.123456, "0.1235"),
        (1234.56, "1235"),
        (4.188e-6, "4.188 · 10⁻⁶"),
        (-2.5e9, "−2.5 · 10⁹"),
        (0.0, "0"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_scores():
    assert score(0.1234, "balanced_accuracy") == "12.3 %"
    assert score(-0.0001, "balanced_accuracy") == "0.0 %"
    assert score(0.9876, "roc_auc") == "0.988"
    assert score(4.7211, "rmse", 3) == "4.72"
    assert plus_minus(0.0123, "balanced_accuracy") == "± 1.2"
    assert plus_minus(None, "balanced_accuracy") == ""
    assert plus_minus(1.9e-17, "r2") == "± 0.000"
    assert (count(1, "row"), count(12_345, "row")) == ("1 row", "12\u202f345 rows")
    assert thousands(9999) == "9999"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("nested", "numbers", "options", "method", "unit"),
    [
        (False, False, {}, "leave-one-out", "row"),
        (True, True, {"groups": np.arange(60) // 3}, "leave-one-group-out", "group"),
        (True, False, {"cv": 5}, "cross-validation", "fold"),
        (False, True, {"cv": GapKFold(5)}, "cross-validation", "window of time"),
    ],
)
@pytest.mark.slow
def test_a_page_names_how_rows_were_held_out(nested, numbers, options, method, unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    Estimator = KernelRegressor if numbers else KernelClassifier
    estimator = Estimator(cv=options.get("cv"), search=Search(method="grid"))
    model = estimator.fit(X, y if numbers else y > 0, groups=options.get("groups"))
    model.evaluate(nested=nested)
    page = render(Facts(model))
    assert f"{method.capitalize()} scores" in page
    assert ("an optimistic score" in page) == (not nested)
    assert (f"model selection was repeated without each {unit}" in page) == nested


def test_a_model_writes_its_own_page(binary, tmp_path, monkeypatch):
    model, X, y, assessment = binary
    given = {"X": X, "y": y, "groups": None, "assessment": assessment, "title": "T", "notes": []}
    told = []
    monkeypatch.setattr(report, "write_html", lambda *of, **facts: told.append((of, facts)))
    model[-1].report(tmp_path / "page.html", X, y, assessment=assessment, title="T", notes=[])
    assert told == [((model[-1], tmp_path / "page.html"), given)]
    with pytest.raises(NotFittedError):
        KernelClassifier().report(tmp_path / "page.html")
