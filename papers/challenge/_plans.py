"""Experiments and plans of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, Self, cast, get_args

from looms._checks import check_known
from looms.criteria import DIFFERENTIABLE
from looms.kernels._names import is_kernel_name

Weighting = Literal["none", "training", "both"]
PlanName = Literal["table3", "table4", "table5", "table6", "game"]

CRITERIA = ("press", "hinge", "squared_hinge", "wmw", "smoothed_error")
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
KERNELS = ("linear", "quadratic", "cubic", "boolean", "rbf")
PLANS: tuple[PlanName, ...] = get_args(PlanName)
FIELDS = ("criterion", "weighting", "kernel")

#: The normalized Boolean kernel is an RBF kernel on binary features, so it is left out.
NORMALIZED = ("normalized_linear", "normalized_quadratic", "normalized_cubic")

#: Criteria and kernels of each plan. The candidates of the submissions of Tables V and VI are not
#: printed, but some have normalized kernels [G06]. Those of the Model Selection Game are not
#: printed either; here they are what its slides name.
_FACTORS: dict[PlanName, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "table3": (CRITERIA, KERNELS),
    "table4": (CRITERIA, KERNELS),
    "table5": (CRITERIA, (*KERNELS, *NORMALIZED)),
    "table6": (CRITERIA, (*KERNELS, *NORMALIZED)),
    "game": ((*CRITERIA, "cross_entropy"), (*KERNELS, "ard", *NORMALIZED)),
}


@dataclass(frozen=True)
class PaperExperiment:
    """Way to select a machine: a criterion, a weighting and a kernel.

    Attributes
    ----------
    criterion : criterion of the leave-one-out outputs that tunes the hyper-parameters.
    weighting : where the classes have equal weight: "none"; "training", in the fit; "both", in
        the fit and in the criterion.
    kernel : name of the kernel.
    """

    criterion: str
    weighting: Weighting
    kernel: str

    @property
    def name(self) -> str:
        """Stable name, such as ``press-rbf`` or ``wmw-linear-training``."""
        weighted = "" if self.weighting == "none" else f"-{self.weighting}"
        return f"{self.criterion}-{self.kernel}{weighted}"

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Experiment by name, in a plan or not; None if there is no such criterion or kernel."""
        parts = re.fullmatch(r"(\w+)-(\w+)(?:-(training|both))?", name)
        if parts is None or parts[1] not in DIFFERENTIABLE or not is_kernel_name(parts[2]):
            return None
        return cls(parts[1], cast(Weighting, parts[3] or "none"), parts[2])


def experiments_of(plan: PlanName) -> list[PaperExperiment]:
    """Experiments of a plan, in the order of the paper.

    Parameters
    ----------
    plan : {"table3", "table4", "table5", "table6", "game"}
        Every criterion, weighting and kernel, except the weighted Wilcoxon-Mann-Whitney criterion:
        the 70 of Tables III and IV of [C06]; with normalized kernels, the 112 candidates of
        Tables V and VI; and with cross-entropy and ARD, the 153 of the Model Selection Game [G06].

    Raises
    ------
    ValueError
        For an unknown name, with the known ones.

    Examples
    --------
    >>> plan = experiments_of("table3")
    >>> len(plan), plan[0].name
    (70, 'press-linear')
    """
    check_known(plan, "plan", PLANS)
    criteria, kernels = _FACTORS[plan]
    return [
        PaperExperiment(criterion, weighting, kernel)
        for criterion, weighting, kernel in product(criteria, WEIGHTINGS, kernels)
        if (criterion, weighting) != ("wmw", "both")
    ]


def only(
    experiments: Sequence[PaperExperiment], conditions: Sequence[str]
) -> list[PaperExperiment]:
    """Experiments that meet every condition.

    Parameters
    ----------
    experiments : sequence of PaperExperiment
        The plan.
    conditions : sequence of str
        ``criterion=press,wmw``, ``weighting=none``, ``kernel=linear,rbf``, or names and numbers
        (places in the plan, from 1) separated by commas. A name may also be that of an experiment
        outside the plan, with any kernel and criterion of looms.

    Raises
    ------
    ValueError
        For a word that matches no experiment of the plan, or if no experiment is left.

    Examples
    --------
    >>> plan = experiments_of("table3")
    >>> [e.name for e in only(plan, ["criterion=press", "kernel=linear,rbf", "weighting=none"])]
    ['press-linear', 'press-rbf']
    >>> [e.name for e in only(plan, ["1,press-polynomial4-training"])]
    ['press-linear', 'press-polynomial4-training']
    """
    words_of_names = ",".join(c for c in conditions if "=" not in c).split(",")
    named = map(PaperExperiment.named, map(str.strip, words_of_names))
    experiments = list(dict.fromkeys([*experiments, *filter(None, named)]))
    kept = experiments
    for condition in conditions:
        field, equals, words = map(str.strip, condition.partition("="))
        if not equals:
            words = field
            answers = {e: {e.name, str(number)} for number, e in enumerate(experiments, start=1)}
        elif field in FIELDS:
            answers = {e: {getattr(e, field)} for e in experiments}
        else:
            raise ValueError(
                f"Experiments have no {field!r}; choose by criterion=, weighting=, kernel=, or "
                "give their names or numbers."
            )
        wanted = {word.strip() for word in words.split(",")}
        known = {answer for each in answers.values() for answer in each}
        if wanted - known:
            raise ValueError(_unknown(min(wanted - known), known, experiments))
        kept = [e for e in kept if answers[e] & wanted]
    if not kept:
        raise ValueError(f"No experiment of the plan meets {' and '.join(conditions)}.")
    return kept


def _unknown(word: str, known: set[str], experiments: Sequence[PaperExperiment]) -> str:
    message = f"No experiment of the plan is {word!r}; there are"
    if len(known) <= 12:
        return f"{message} {', '.join(sorted(known))}."
    names = [e.name for e in experiments]
    close = difflib.get_close_matches(word, names, 3, 0.4) or names[:3]
    parts = [
        f"{field}={','.join(dict.fromkeys(getattr(e, field) for e in experiments))}"
        for field in FIELDS
    ]
    return (
        f"{message} {', '.join(close)} and others, by number 1 to {len(experiments)}; or choose by "
        f"{', '.join(parts)}."
    )
