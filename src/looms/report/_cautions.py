"""Cautions of a report, with the numbers they rest on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from looms._words import count
from looms.assessment._experiment import estimator_text
from looms.assessment._result import Assessment
from looms.report._fit_cautions import Caution, caution, fit_cautions, ordered
from looms.report._scores import loo_scores
from looms.report.model import Model, score_name

#: Samples for each hyper-parameter below which their number is pointed out.
_SAMPLES_PER_PARAMETER = 20


def all_cautions(
    estimator: Any, model: Model, assessment: Assessment | None, *, steps: list[str]
) -> list[Caution]:
    """Those of the fit, and of how the machine was chosen and assessed, the serious first.

    Parameters
    ----------
    estimator : the whole.
    model : the fitted machine in it.
    assessment : of outer splits, if there is one.
    steps : names of the steps before the machine.
    """
    return ordered(
        [
            *fit_cautions(model, model.machine.X_fit_),
            *_optimism(model, assessment),
            *_foreign(estimator, model, assessment),
            *_close_candidates(model),
            *_preprocessing(steps),
            *_weights(model),
        ]
    )


def _optimism(model: Model, assessment: Assessment | None) -> Iterator[Caution]:
    machine: Any = model.machine
    if not hasattr(machine, "candidates_"):
        return
    n_candidates, n_parameters = len(machine.candidates_), len(machine.kernel_.theta) + 1
    tuned = count(n_parameters, "hyper-parameter")
    tuned = f"among {n_candidates} candidates and {tuned}" if n_candidates > 1 else tuned
    if not isinstance(getattr(machine, "threshold", None), Real | None):
        tuned += " and a threshold"
    if assessment is None:
        yield caution(
            "serious",
            "No outer estimate",
            f"Leave-one-out chose {tuned}, so its figures flatter the machine. Only outer "
            "splits that repeat the whole selection give an honest figure: looms assess, or "
            "looms.assess in Python.",
        )
    else:
        yield from _measured_optimism(assessment, tuned)
    n = int((model.loo.sample_weight > 0).sum())
    if n_parameters > 2 and n < _SAMPLES_PER_PARAMETER * n_parameters:
        held = " A prior held them." if machine.prior else " Consider prior=True (--prior)."
        yield caution(
            "note" if machine.prior else "serious",
            "Many hyper-parameters",
            f"{n_parameters} hyper-parameters were tuned on {n} samples, {n / n_parameters:.0f} "
            f"for each: the criterion itself can be over-fitted.{held}",
        )
    if not model.classification:
        yield caution(
            "note",
            "Intervals",
            "Prediction intervals use the leave-one-out residuals that the hyper-parameters made "
            "small; their coverage is guaranteed only for hyper-parameters that were fixed "
            "beforehand, and falls short the more was tuned.",
        )


def _measured_optimism(assessment: Assessment, tuned: str) -> Iterator[Caution]:
    name = assessment.scores[0]
    found = assessment.figures(name)
    if np.isfinite(found.optimism) and found.flattered_by is not None:
        yield caution(
            "note",
            "Optimism of leave-one-out",
            f"Leave-one-out chose {tuned}. {assessment.optimism_text(name)} Quote the outer "
            "estimate.",
        )
    if assessment.failures:
        n, of = len(assessment.failures), len(assessment.splits)
        first = next(iter(assessment.failures.values()))
        yield caution(
            "serious",
            "Failed splits",
            f"{n} of {of} outer splits raised; the first: {first.rstrip('.')}.",
        )


def _foreign(estimator: Any, model: Model, assessment: Assessment | None) -> Iterator[Caution]:
    """That the outer estimate is of something else than the machine shown."""
    if assessment is None:
        return
    shown, assessed = estimator_text(estimator), assessment.estimator
    if _essence(shown) != _essence(assessed):
        yield caution(
            "serious",
            "Another estimator was assessed",
            f"The outer estimate is of {assessed}, and this is {shown}: it says little about it.",
        )
    part = assessment.whole or assessment.splits[0]
    n = part.n_train + (0 if assessment.whole else part.n_test)
    if n != model.loo.n_samples:
        yield caution(
            "serious",
            "Other samples were assessed",
            f"The outer estimate is of {n} samples, and the machine of {model.loo.n_samples}.",
        )


def _essence(text: str) -> str:
    """The text of an estimator without parameters that change nothing of the result."""
    return re.sub(r"\b(callback|n_jobs|verbose)=(<.*?>|[\w.-]+)(, )?", "", text).replace(", )", ")")


def _close_candidates(model: Model) -> Iterator[Caution]:
    machine: Any = model.machine
    if len(getattr(machine, "candidates_", [])) < 2:
        return
    scores = np.array([candidate.score for candidate in machine.candidates_])
    scores = scores if model.classification else np.sqrt(scores)
    best = scores[machine.best_index_]
    key = score_name(machine)[1]
    if not key:  # a loss whose standard error nobody knows
        return
    error = loo_scores(model)[key][1]
    close = int(((scores - best) < error).sum()) - 1
    if close > 0:
        yield caution(
            "note",
            "The choice is not settled",
            f"{count(close, 'other candidate')} of {len(scores)} came within one standard error "
            f"({error:.2g}) of the one taken: another sample might have chosen otherwise.",
        )


def _preprocessing(steps: list[str]) -> Iterator[Caution]:
    if steps:
        yield caution(
            "note",
            "Preprocessing saw all samples",
            f"The {'step' if len(steps) == 1 else 'steps'} before the machine "
            f"({', '.join(steps)}) learnt from the sample that is left out too. For scaling and "
            "filling gaps that is harmless; for steps that look at the target it is not.",
        )


def _weights(model: Model) -> Iterator[Caution]:
    n_zero = int((model.loo.sample_weight == 0).sum())
    if n_zero:
        yield caution(
            "note",
            "Samples of weight zero",
            f"{n_zero} of {model.loo.n_samples} took no part in the fit, and take none in "
            "the figures here.",
        )
