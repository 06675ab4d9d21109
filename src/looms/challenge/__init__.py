"""The papers' experiments, run on your machine and set beside what they print.

Data of the WCCI-2006 challenge, the preprocessing of each set, plans of experiments, and
tables of results beside those of [C06] and [G06].
"""

from looms.challenge._choices import (
    STRATEGIES,
    Entry,
    game_entries,
    loo_choices,
    loo_entries,
    nested_entries,
)
from looms.challenge._data import ChallengeData, fetch, load_file
from looms.challenge._factors import FACTORS, factor_weights
from looms.challenge._fetch import DATASETS, ChallengeDataError
from looms.challenge._papers import paper_table
from looms.challenge._plans import PLANS, Experiment, experiments_of, only
from looms.challenge._plot import plot_table
from looms.challenge._preparation import PREPARATIONS, ADAColumns, ContinuousScaler, preparation
from looms.challenge._reduced import ReducedClassifier
from looms.challenge._run import (
    Nested,
    Runs,
    estimator_of,
    run_nested,
    run_plan,
    stored_nested,
    stored_plan,
)
from looms.challenge._scores import SCORING, ber_standard_error, challenge_score
from looms.challenge._tables import entries_table, experiments_table, factors_table, markdown

__all__ = [
    "DATASETS",
    "FACTORS",
    "PLANS",
    "PREPARATIONS",
    "SCORING",
    "STRATEGIES",
    "ADAColumns",
    "ChallengeData",
    "ChallengeDataError",
    "ContinuousScaler",
    "Entry",
    "Experiment",
    "Nested",
    "ReducedClassifier",
    "Runs",
    "ber_standard_error",
    "challenge_score",
    "entries_table",
    "estimator_of",
    "experiments_of",
    "experiments_table",
    "factor_weights",
    "factors_table",
    "fetch",
    "game_entries",
    "load_file",
    "loo_choices",
    "loo_entries",
    "markdown",
    "nested_entries",
    "only",
    "paper_table",
    "plot_table",
    "preparation",
    "run_nested",
    "run_plan",
    "stored_nested",
    "stored_plan",
]
