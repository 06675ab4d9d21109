"""``cv_results_``: a row for each candidate."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from looms._typing import AnyArray, Array
from looms.selection._candidates import Candidate


def candidates_table(candidates: list[Candidate]) -> dict[str, Any]:
    """``cv_results_`` of tuned candidates."""
    scores = np.array([candidate.score for candidate in candidates])
    return results_table(
        [candidate.params for candidate in candidates],
        scores,
        rankdata(scores, method="min").astype(int),
        kernel=[candidate.kernel_name for candidate in candidates],
        criterion=[str(candidate.criterion) for candidate in candidates],
    ) | {"seconds": np.array([candidate.seconds for candidate in candidates])}


def results_table(
    params: list[dict[str, Any]], scores: Array, ranks: AnyArray, **columns: list[str]
) -> dict[str, Any]:
    """``cv_results_``: a row for each point, a column for each hyper-parameter that is a number."""
    names = dict.fromkeys(name for row in params for name in row if "[" not in name)
    values = {f"param_{k}": np.array([row.get(k, np.nan) for row in params]) for k in names}
    scored = {"params": params, "loo_score": scores, "rank_loo_score": ranks}
    return columns | values | scored
