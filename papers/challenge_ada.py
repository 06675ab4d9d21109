"""The 70 experiments of Cawley (2006) on ADA: Tables III, IV and V from a store of their splits.

The splits are run by

    python -m papers run --data ada --folder FOLDER --plan table3 --splits 20 --store STORE

which takes some two hours. Here the choice of each split is run on two splits of its training rows,
for the validation rates of Table V, and the three tables are made. Table V has the 70 experiments
as candidates, without the normalized kernels of the plan `table5`.

    python -m papers.challenge_ada STORE [--splits 20] [--folder FOLDER] [--commit 656a10d]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks._report import DATA, RESULTS, header_line

from papers.challenge import experiments_of

TABLE3 = ",".join(experiment.name for experiment in experiments_of("table3"))
PLANS = {"table3": [], "table4": [], "table5": ["--only", TABLE3]}
SHOWN = {"table5": " --only (names of the 70 experiments of table3)"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--folder", default=str(DATA), help="folder of ada.csv")
    parser.add_argument("--commit", help="of the code that filled the store, if not this one")
    options = parser.parse_args()
    places = ["--folder", options.folder, "--store", options.store, "--splits", str(options.splits)]
    papers = [sys.executable, "-m", "papers"]
    for plan, only in PLANS.items():
        arguments = ["--data", "ada", "--plan", plan, *only, *places]
        if plan == "table5":
            subprocess.run([*papers, "run", *arguments], check=True, stdout=subprocess.DEVNULL)
        plot = ["--plot", str(RESULTS / f"challenge_ada_{plan}.png"), "--force"]
        table = [*papers, "table", *arguments, "--form", "csv", *(plot if plan == "table3" else [])]
        text = subprocess.run(table, check=True, stdout=subprocess.PIPE, text=True).stdout
        shown = f"--data ada --plan {plan} --splits {options.splits} --folder ... --store kept"
        command = f"python -m papers run (then table --form csv) {shown}{SHOWN.get(plan, '')}"
        note = "machine busy otherwise, so its seconds say little"
        header = header_line(command, note, commit=options.commit)
        (RESULTS / f"challenge_ada_{plan}.csv").write_text(f"{header}\n{text}")


if __name__ == "__main__":
    main()
