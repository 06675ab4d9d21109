"""The Model Selection Game of [G06] on 500 rows of four data sets, among the five models that won.

ADA is the set of the paper; odd against even digits are like GINA, words like NOVA and the
validation part of SYLVA like SYLVA. Each of ten random tenths is held out in turn. Among models
trained on the other nine, one is chosen by the mean rate over 25 validation splits, by the rate on
one validation set (the first of them), and by leave-one-out, and tested on the tenth.

`challenge_game` has for each set and rule the mean test balanced error rate and that of the choice
by leave-one-out less it, with standard errors over the tenths, which share rows: they are rather
too small. The rows "mean" are over the four sets, taken as given. `challenge_winners` has the rates
of each model in the same tenths, with the thresholds of `papers.challenge.experiments_table`.

    python -m papers.challenge_game STORE [--folder FOLDER] [--commit 28df026]

What is in the store is not run again; the rest takes about half an hour.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks._report import DATA, write_table

from papers.challenge import Runs, experiments_table, fetch, load_file
from papers.challenge._choices import game_entries
from papers.challenge._data import ChallengeData
from papers.challenge._plans import PaperExperiment
from papers.challenge._run import run_nested

ROWS, TENTHS, SPLITS = 500, 10, 25
#: Entries of [G06] that won on ADA, GINA, HIVA, NOVA and SYLVA.
WINNERS = (
    "press-boolean",
    "press-normalized_cubic-training",
    "press-rbf",
    "wmw-normalized_quadratic",
    "wmw-normalized_quadratic-training",
)
LOO = "loo_ber"
RATES = (
    *("ber", "standard_error", "loo_ber", "ber_train"),
    *("ber_train_threshold", "ber_at_zero", "ber_best_on_test"),
)


def sets_of(folder: Path) -> dict[str, ChallengeData]:
    """Random rows of the four data sets."""
    odd = tuple("13579")
    whole = {
        "ada": fetch("ada", folder),
        "usps": load_file(folder / "usps_test.csv.gz", "target", positive=odd, preparation="nova"),
        "oh0": load_file(folder / "oh0_X.npz", positive=("England",)),
        "sylva_valid": fetch("sylva_valid", folder, preparation="standardize"),
    }
    return {name: data.subsample(ROWS, 0) for name, data in whole.items()}


def figures(tests: pd.DataFrame, guesses: pd.DataFrame) -> pd.DataFrame:
    """Mean guess and test rate of each rule, and leave-one-out less it, with standard errors.

    Parameters
    ----------
    tests, guesses : (n_tenths, n_rules) test rates of the choices, and the figures that chose them.
    """
    less = tests.rsub(tests[LOO], axis=0)
    return pd.DataFrame(
        {
            "guess": guesses.mean(),
            "ber_test": tests.mean(),
            "ber_test_se": tests.sem(),
            "loo_less": less.mean(),
            "loo_less_se": less.sem(),
        }
    )


def mean_over(sets: list[pd.DataFrame]) -> pd.DataFrame:
    """Means over the sets; their standard errors are of independent figures."""
    mean = sum(sets) / len(sets)
    for name in ("ber_test_se", "loo_less_se"):
        mean[name] = np.sqrt(sum(each[name] ** 2 for each in sets)) / len(sets)
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("--folder", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--commit", help="of the code that filled the store, if not this one")
    options = parser.parse_args()
    experiments = list(filter(None, map(PaperExperiment.named, WINNERS)))
    games, winners = {}, []
    for name, data in sets_of(options.folder).items():
        nested = run_nested(Runs(data, options.store), experiments, SPLITS, TENTHS)
        entries = pd.DataFrame(map(vars, game_entries(nested)))
        tests, guesses = (
            entries.pivot(index="held_out", columns="choice_by", values=value)
            for value in ("ber_test", "guess")
        )
        games[name] = figures(tests, guesses)
        rates = experiments_table(nested.outer)
        winners += [(name, *row) for row in rates[["splits", *RATES]].itertuples()]
    games["mean"] = mean_over(list(games.values()))
    table = [(name, *row) for name, game in games.items() for row in game.itertuples()]
    header = ("dataset", "choice_by", *games["mean"])
    write_table("challenge_game", header, table, commit=options.commit)
    header = ("dataset", "experiment", "splits", *RATES)
    write_table("challenge_winners", header, winners, commit=options.commit)


if __name__ == "__main__":
    main()
