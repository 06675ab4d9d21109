"""The experiments of [C06] and [G06], compared with the printed results.

This package has the data of the WCCI-2006 challenge, the preprocessing of each set, plans of
experiments, and tables that compare results with those of [C06] and [G06].
"""

from papers.challenge._data import fetch, load_file
from papers.challenge._plans import experiments_of
from papers.challenge._run import Runs, run_plan
from papers.challenge._tables import experiments_table

__all__ = [
    "Runs",
    "experiments_of",
    "experiments_table",
    "fetch",
    "load_file",
    "run_plan",
]
