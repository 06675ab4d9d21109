"""The page in a browser: no word on the console, tables that sort."""

import re
import shutil
import subprocess

import pytest

from looms import report

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here"),
]


def browse(path, profile, *options):
    """What the browser says of a file and, by default, the page as it ended up."""
    return subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            f"--user-data-dir={profile}",
            *(options or ["--dump-dom"]),
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )


def on_console(done):
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def hostile_page(hostile, tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "hostile.html"
    report.write_html(hostile[0], path, X=hostile[1], y=hostile[2])
    return path


def test_nothing_is_wrong_and_nothing_runs(hostile_page, tmp_path):
    done = browse(hostile_page, tmp_path)
    assert on_console(done) == []
    assert len(re.findall(r"<script", done.stdout)) == 1
    assert done.stdout.count("<svg") == done.stdout.count("<figure>") > 3
    assert "onerror=" not in re.sub(r'"[^"]*"|>[^<]*<', "", done.stdout)
    assert done.stdout.count('<button type="button">') > 10  # the page's own script ran


def test_tables_sort(hostile_page, tmp_path):
    page = hostile_page.read_text(encoding="utf-8")
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    steps = """<script>
      const table = document.querySelector("#samples table");
      const column = 5;
      const value = (row) => Number(row.cells[column].dataset.v);
      const read = () => Array.from(table.tBodies[0].rows, value);
      const button = table.tHead.rows[0].cells[column].querySelector("button");
      button.click();
      const up = read(), first = table.tHead.rows[0].cells[column].getAttribute("aria-sort");
      button.click();
      const down = read(), second = table.tHead.rows[0].cells[column].getAttribute("aria-sort");
      const rising = (v) => v.every((x, k) => k === 0 || v[k - 1] <= x);
      document.title = [first, rising(up), second, rising(down.reverse()), up.length > 5].join();
    </script></body>"""
    path = tmp_path / "sort.html"
    path.write_text(page.replace("</body>", steps))
    done = browse(path, tmp_path / "profile")
    assert on_console(done) == []
    assert "<title>ascending,true,descending,true,true</title>" in done.stdout


def test_page_fits_its_width(hostile_page, tmp_path):
    page = hostile_page.read_text(encoding="utf-8")
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    told = "parent.postMessage(document.documentElement.scrollWidth, '*')"
    (tmp_path / "page.html").write_text(page.replace("</body>", f"<script>{told}</script></body>"))
    frame = tmp_path / "frame.html"
    frame.write_text(
        '<iframe src="page.html" style="border:0;width:390px;height:900px"></iframe>'
        "<script>onmessage = (e) => { document.title = 'width ' + e.data; }</script>"
    )
    done = browse(frame, tmp_path / "profile", "--dump-dom", "--virtual-time-budget=3000")
    (found,) = re.findall(r"<title>width (\d+)</title>", done.stdout)
    assert int(found) <= 390
