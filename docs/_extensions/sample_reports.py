"""Reports of a real model, beside the pages that show them.

They are made by the command line when pages have been written:

- ``start/sample_report.html``: `looms fit ... --report`;
- ``start/sample_assessment.html``: `looms assess ... --report`.

A page in ``start/`` shows one by

    <iframe class="report" src="sample_report.html" title="A report"></iframe>

and links to it by ``<a href="sample_report.html">``. Delete them from the built site to have them
made anew.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DATA = (
    "from sklearn.datasets import load_breast_cancer as load\n"
    "frame = load(as_frame=True).frame\n"
    "frame['target'] = frame['target'].map({0: 'malignant', 1: 'benign'})\n"
    "frame.columns = [name.replace(' ', '_') for name in frame.columns]\n"
    "frame.to_csv('tumors.csv', index=False)\n"
)
COMMANDS = {
    "sample_report.html": "fit tumors.csv --target target --candidates linear,rbf",
    "sample_assessment.html": "assess tumors.csv --target target --candidates rbf --splits 10",
}


def make_reports(app: Sphinx, exception: Exception | None) -> None:
    """Make the reports that the built site lacks."""
    folder = Path(app.outdir) / "start"
    missing = [name for name in COMMANDS if not (folder / name).exists()]
    if exception or app.builder.format != "html" or not missing:
        return
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        run = {"cwd": work, "check": True, "stdout": subprocess.DEVNULL}
        subprocess.run([sys.executable, "-c", DATA], **run)
        for name in missing:
            options = [*COMMANDS[name].split(), "--report", str(folder / name)]
            subprocess.run([sys.executable, "-m", "looms", *options], **run)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", make_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
