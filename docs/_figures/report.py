"""Parts of the report and the check of the clinic table, as pictures for docs/start.

    python docs/_figures/report.py

The table is made by the first block of docs/start/tutorial_command_line.md, and fitted as there,
with and without groups. Chromium draws the page with all but one part hidden.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

HERE = Path(__file__).parent
BLOCKS = HERE.parent / "start" / "tutorial_command_line.md"
WIDTH, HEIGHT, COLORS, MARGIN = 800, 2000, 48, 16
PIECES = "header, main > *, footer, #samples .scroll"
#: Picture, page that it is of, and what is shown of it.
PARTS = (
    ("report_head", "clinic", "header, .headline, .short"),
    ("report_cautions", "rows", "#cautions"),
    ("report_scores", "clinic", "#scores"),
    ("report_selection", "clinic", "#selection"),
    ("report_features", "clinic", "#features"),
    ("report_effects", "clinic", "#effects"),
    ("report_samples", "clinic", "#samples"),
    ("check", "check", "header, #findings, #columns"),
)


def pages(folder: Path) -> None:
    """The reports of the clinic table, rows apart and patients together."""
    first = re.search(r"```pycon\n(.*?)```", BLOCKS.read_text(), re.DOTALL)
    lines = [line[4:] for line in first[1].splitlines() if line.startswith((">>>", "..."))]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=folder, check=True)
    looms, table = [sys.executable, "-m", "looms"], ["clinic.csv", "--target", "relapse"]
    table += ["--drop", "weeks", "--force"]
    for page, options in (("rows", ()), ("clinic", ("--groups", "patient"))):
        report = [*looms, "fit", *table, *options, "--report", f"{page}.html"]
        subprocess.run(report, cwd=folder, check=True, capture_output=True)
    check = [*looms, "check", *table, "--report", "check.html"]
    subprocess.run(check, cwd=folder, check=True, capture_output=True)


def picture(folder: Path, name: str, page: str, shown: str) -> None:
    text = (folder / f"{page}.html").read_text()
    style = f"<style>:is({PIECES}):not({shown}) {{ display: none !important }}</style></head>"
    (folder / "part.html").write_text(text.replace("</head>", style))
    browser = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars"]
    size = f"--window-size={WIDTH},{HEIGHT}"
    shot = folder / "part.png"
    address = (folder / "part.html").as_uri()
    subprocess.run(
        [*browser, size, f"--screenshot={shot}", address], check=True, capture_output=True
    )
    image = Image.open(shot).convert("RGB")
    paper = Image.new("RGB", image.size, image.getpixel((1, HEIGHT - 2)))
    left, top, right, bottom = ImageChops.difference(image, paper).getbbox()
    box = max(0, left - MARGIN), max(0, top - MARGIN), right + MARGIN, bottom + MARGIN
    image.crop(box).quantize(COLORS).save(HERE / f"{name}.png", optimize=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages(folder)
        for part in PARTS:
            picture(folder, *part)


if __name__ == "__main__":
    main()
