"""What sixty commands print, in two states of looms beside each other.

Commands run in this process, in an empty folder with tables of classes, numbers and ordered
grades; models are fitted before they are used. Kept are the exit status, both streams, and the
names of the files that a command made; seconds and dates are taken out.

    PYTHONPATH=before/src python benchmarks/command_outputs.py --write before.json
    PYTHONPATH=after/src python benchmarks/command_outputs.py --write after.json
    python benchmarks/command_outputs.py --compare before.json after.json

The comparison prints the lines that differ, and how many commands are the same.
`tests/cli/test_sixty_commands.py` runs the same commands, and compares what does not depend on
wording or numbers.
"""

import argparse
import json
import os
import re
from contextlib import chdir
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from looms.cli._app import app

COMMANDS = """
fit clinic.csv -t ill -o c.skops
fit clinic.csv -t ill -c linear,rbf --combine best --no-evaluate -o b.skops --json
fit clinic.csv -t ill -c linear --threshold recall=0.9 --positive yes -o t.skops --report t.html
fit clinic.csv -t ill -c linear --threshold balanced --class-weight balanced -o w.skops
fit clinic.csv -t ill -c linear --calibration none -o n.skops
fit clinic.csv -t ill -c linear --groups patient -o g.skops --test new.csv
fit clinic.csv -t ill -c linear --time visit --gap 2 --cv 5 -o v.skops
fit clinic.csv -t ill -c linear --cv 5x2 --metric f1 --metric roc_auc -o f.skops
fit clinic.csv -t ill -c linear --sample-weight weight --duplicates group -o d.skops
fit clinic.csv -t ill -c linear --loss hinge -o h.skops --no-evaluate
fit clinic.csv -t ill -c linear --drop note --drop visit --n-landmarks 20 -o l.skops
fit prices.csv -t price -c linear,rbf -o p.skops
fit prices.csv -t price -c rbf --target-transform log,sqrt -o q.skops --json
fit prices.csv -t rooms --task regression -c linear --search grid -o r.skops
fit grades.csv -t grade --order low,middle,high -c linear,rbf -o o.skops --report o.html
fit clinic.csv -t ill -c linear -o c.skops
fit clinic.csv -t ill -c linear -o clinic.csv --force
fit clinic.csv -t il -o x.skops
fit clinic.csv -o x.skops
fit nothing.csv -t ill -o x.skops
fit clinic.csv -t note -o x.skops
fit clinic.csv -t ill -c rfb -o x.skops
fit clinic.csv -t ill -c rbf --threshold 1.5 -o x.skops
fit clinic.csv -t ill -c rbf --target-transform log -o x.skops
fit prices.csv -t price -c rbf --threshold 0.3 -o x.skops
fit clinic.csv -t ill -c rbf --groups patients -o x.skops
fit clinic.csv -t ill -c rbf --cv 500 -o x.skops
fit gaps.csv -t ill -c rbf -o x.skops
fit gaps.csv -t ill -c linear --drop-missing-targets -o x.skops --no-evaluate
fit two.csv -t ill -c rbf -o x.skops
fit grades.csv -t grade --order low,middle -c linear -o x.skops
predict c.skops new.csv
predict c.skops new.csv --digits 3 --id patient --keep age -o predicted.csv
predict c.skops new.csv --confidence-level 0.8
predict g.skops new.csv --confidence-level 0.8 --class-conditional
predict c.skops new.csv --prevalence yes=0.1
predict p.skops houses.csv --confidence-level 0.9 --method minmax
predict p.skops houses.csv --prevalence yes=0.1
predict o.skops grades.csv -o graded.csv --force
predict c.skops odd.csv
predict c.skops prices.csv
predict new.csv c.skops
score c.skops new.csv
score g.skops new.csv --json
score p.skops houses.csv
score o.skops grades.csv
score c.skops odd.csv
score c.skops houses.csv
show c.skops
show p.skops --json
show o.skops
diagnose n.skops --bootstrap 19
diagnose p.skops
assess clinic.csv -t ill -c linear -n 4 -o splits.csv --report splits.html
assess prices.csv -t price -c linear --method kfold --test-size 0.2 -n 5 --metric rmse --json
assess grades.csv -t grade --order low,middle,high -c linear -n 4
compare clinic.csv -t ill -c linear,rbf -n 4
check clinic.csv -t ill
check prices.csv -t price --groups rooms --json
export n.skops -o n.onnx
"""


def make_tables() -> None:
    """Tables of the commands, in this folder."""
    rng = np.random.default_rng(0)

    def clinic(n: int) -> pd.DataFrame:
        table = pd.DataFrame({"patient": rng.integers(0, n // 3, n)})
        table["age"] = rng.integers(20, 80, n)
        table["crp"] = np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(1, 1, n).round(1))
        table["smoker"] = rng.choice(["never", "former", "current"], n)
        table["visit"] = pd.date_range("2024-01-01", periods=n).astype(str)
        table["weight"] = rng.uniform(1, 2, n).round(2)
        table["note"] = [f"note {k}" for k in range(n)]
        risk = 0.05 * (table["age"] - 50) + 1.5 * (table["smoker"] == "current")
        table["ill"] = np.where(risk + rng.logistic(0, 0.7, n) > 0.7, "yes", "no")
        return table

    def prices(n: int) -> pd.DataFrame:
        table = pd.DataFrame(
            {"area": rng.uniform(30, 200, n).round(), "rooms": rng.integers(1, 7, n)}
        )
        table["town"] = rng.choice(["Aalen", "Bern", "Cork"], n)
        noise = 0.2 * rng.normal(size=n) + 0.3 * (table["town"] == "Bern")
        table["price"] = (1000 * table["area"] ** 0.8 * np.exp(noise)).round()
        return table

    train, new, houses = clinic(90), clinic(20), prices(80)
    train.to_csv("clinic.csv", index=False)
    new.to_csv("new.csv", index=False)
    train.assign(ill=train["ill"].where(train["age"] > 25)).to_csv("gaps.csv", index=False)
    train[:2].to_csv("two.csv", index=False)
    new.assign(age="old", smoker="pipe", ill="perhaps").to_csv("odd.csv", index=False)
    houses.to_csv("prices.csv", index=False)
    prices(15).to_csv("houses.csv", index=False)
    x = rng.normal(size=(80, 2)).round(3)
    grade = np.digitize(x[:, 0] + 0.5 * rng.normal(size=80), [-0.5, 0.6])
    grades = pd.DataFrame(x, columns=["a", "b"])
    grades.assign(grade=np.array(["low", "middle", "high"])[grade]).to_csv(
        "grades.csv", index=False
    )


def without_times(text: str) -> str:
    """Text whose seconds, dates, versions and digits that rounding moves are taken out."""
    text = re.sub(r"\d+(\.\d+)? s\b|\b\d+\.\d\d\b(?= +(converged|within|at the))", "# s", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+Z]+|\d{4}-\d\d-\d\d \d\d:\d\d", "#date", text)
    text = re.sub(r'("(seconds|date|looms_version)"): [^,}\n]+', r"\1: #", text)
    return re.sub(r"\d(\.\d)?e-\d\d", "#", text)


def outcomes(folder: Path) -> dict[str, dict[str, Any]]:
    """Status, streams and new files of every command, which run one after the other in a folder."""
    found: dict[str, dict[str, Any]] = {}
    with chdir(folder):
        make_tables()
        for command in COMMANDS.strip().splitlines():
            known = {*os.listdir(".")}
            result = CliRunner().invoke(app, command.split())
            made = sorted({*os.listdir(".")} - known)
            found[command] = {"status": result.exit_code, "files": made}
            found[command] |= {"out": result.stdout, "err": result.stderr}
    return found


def compare(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> None:
    """Print what differs."""
    same = 0
    for command in before | after:
        was, now = (each.get(command, {}) for each in (before, after))
        same += was == now
        if was != now:
            print(f"looms {command}")
        for key in was | now if was != now else ():
            texts = [str(each.get(key, "")).splitlines() for each in (was, now)]
            lines = list(unified_diff(*texts, lineterm="", n=0))[2:]
            print(*(f"  {key} {line}" for line in lines if not line.startswith("@@")), sep="\n")
    print(f"{same} of {len(before | after)} commands are the same")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FILE")
    options = parser.parse_args()
    if options.write:
        with TemporaryDirectory() as folder:
            found = outcomes(Path(folder))
        for each in found.values():
            each |= {name: without_times(each[name]) for name in ("out", "err")}
        options.write.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if options.compare:
        compare(*(json.loads(path.read_text(encoding="utf-8")) for path in options.compare))


if __name__ == "__main__":
    main()
