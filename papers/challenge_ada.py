"""The 70 experiments of Cawley (2006) on ADA: Tables III to VI from a store of their splits.

The splits of Table III are run by

    python -m papers run --data ada --folder FOLDER --plan table3 --splits 20 --store STORE

which takes more than an hour. Here the choice of each split is run on two splits of its training
rows, for the validation rates of Table V, two candidates in ten held-out tenths, for Table VI, and
the four tables are made. Table V has the 70 experiments as candidates, without the normalized
kernels of the plan `table5`.

    python -m papers.challenge_ada STORE [--splits 20] [--plans table6] [--commit 28df026]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks._report import DATA, RESULTS, header_line

from papers.challenge import experiments_of

TABLE3 = ",".join(experiment.name for experiment in experiments_of("table3"))
TABLE6 = "press-linear,press-rbf"
#: Options of each plan, and how they are shown.
PLANS = {
    "table3": ([], ""),
    "table4": ([], ""),
    "table5": (["--only", TABLE3], " --only (names of the 70 experiments of table3)"),
    "table6": (["--only", TABLE6, "--held-out", "10"], f" --only {TABLE6} --held-out 10"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("--splits", type=int, default=20, help="of Tables III to V")
    parser.add_argument("--plans", nargs="+", choices=list(PLANS), default=list(PLANS))
    parser.add_argument("--folder", default=str(DATA), help="folder of ada.csv")
    parser.add_argument("--commit", help="of the code that filled the store, if not this one")
    options = parser.parse_args()
    papers = [sys.executable, "-m", "papers"]
    for plan in options.plans:
        only, shown = PLANS[plan]
        splits = str(10 if plan == "table6" else options.splits)
        arguments = ["--data", "ada", "--plan", plan, *only, "--splits", splits]
        arguments += ["--folder", options.folder, "--store", options.store]
        if plan in ("table5", "table6"):
            subprocess.run([*papers, "run", *arguments], check=True, stdout=subprocess.DEVNULL)
        plot = ["--plot", str(RESULTS / f"challenge_ada_{plan}.png"), "--force"]
        table = [*papers, "table", *arguments, "--form", "csv", *(plot if plan == "table3" else [])]
        text = subprocess.run(table, check=True, stdout=subprocess.PIPE, text=True).stdout
        what = f"--data ada --plan {plan} --splits {splits} --folder ... --store kept{shown}"
        command = f"python -m papers run (then table --form csv) {what}"
        note = "machine busy otherwise, so its seconds say little"
        header = header_line(command, note, commit=options.commit)
        (RESULTS / f"challenge_ada_{plan}.csv").write_text(f"{header}\n{text}")


if __name__ == "__main__":
    main()
