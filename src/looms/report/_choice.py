"""Cautions about the selection of a model and about its assessment."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from looms._advice import setting
from looms._words import count, digits
from looms.assessment._experiment import estimator_key, estimator_text
from looms.assessment._result import Assessment
from looms.optimize._search import StopReason
from looms.report.model import Reported, parameter_name
from looms.report.scores import is_good, quotes_splits
from looms.report.text import Caution, isolated, note, sentence, serious
from looms.selection._candidates import bounds_to_tell

#: Samples for each hyper-parameter below which their number is pointed out.
_SAMPLES_PER_PARAMETER = 20
#: Candidates named in a caution.
_MOST_CANDIDATES = 5

_STOPPED_EARLY = {StopReason.MAX_ITER, StopReason.NO_PROGRESS, StopReason.CALLBACK}


def search_cautions(model: Reported) -> Iterator[Caution]:
    """Cautions about a search that ended at a bound or early, or could not evaluate some points."""
    candidates, tuning, shares = model.fitted.candidates, model.tuning, model.shares
    if tuning is None:
        return
    taken = [model.best] if shares is None else np.flatnonzero(shares)
    harmless = model.nested is not None and is_good(model)
    level, then = (
        (note, f"; the {model.method} scores are good all the same") if harmless else (serious, "")
    )
    for k in taken:
        candidate = candidates[k]
        owner = "" if not model.stacked else f"{isolated(candidate.name)}: "
        for met in bounds_to_tell(candidate, candidates):
            text = f"{owner}{isolated(parameter_name(model, met))} {met.remark}{then}."
            yield level("Hyper-parameter at a bound", text)
        if candidate.stop_reason in _STOPPED_EARLY:
            yield serious("Search stopped early", sentence(f"{owner}{candidate.stop_reason}."))
        if candidate.n_failures:
            yield note(
                "Points that could not be evaluated",
                f"{owner}At {count(candidate.n_failures, 'point')} of {candidate.n_evaluations} "
                "the kernel matrix plus ridge was not positive definite, by rounding; the search "
                "stepped over them.",
            )
    m = model.n_landmarks
    if m is not None and tuning.gain_of_landmarks > 0:
        yield note(
            "More landmarks would help",
            f"Those that {setting('n_landmarks', 'auto')} added last, up to {m}, lowered the "
            f"criterion by {tuning.gain_of_landmarks:.1%}, and it adds no more: "
            f"{setting('n_landmarks', 2 * m)} would probably lower it again, at four times the "
            "cost.",
        )
    never = [
        candidate.name
        for candidate in candidates
        if candidate.stop_reason is StopReason.NEVER_EVALUATED
    ]
    if never:
        text = f"{'; '.join(never[:_MOST_CANDIDATES])}: {StopReason.NEVER_EVALUATED.value}."
        yield serious("Candidates that could not be evaluated", text)


def optimism(model: Reported, assessment: Assessment | None) -> Iterator[Caution]:
    """Caution that the scored samples also chose the model, or the optimism found."""
    n_candidates, transforms = len(model.fitted.candidates), len(model.fitted.transforms)
    if not n_candidates and transforms < 2:
        return
    members = model.fitted.kernel_members
    n_parameters = sum(len(one.kernel.theta) + 1 for one in members) if n_candidates else 0
    folds = model.n_choice_folds > 0
    named = [count(n_parameters, "hyper-parameter")] * bool(n_candidates)
    if n_candidates > 1 and not folds:
        named = [f"among {n_candidates} candidates", *named]
    if model.outcome.decides and not isinstance(model.outcome.threshold, Real):
        named.append("a threshold")
    if transforms > 1:
        named.append("a transform of the target")
    tuned = " and ".join(named)
    if assessment is None and model.scores.optimistic:
        how = f": {model.unbiased_by} them" if model.unbiased_by else ", of which there are too few"
        yield serious(
            "No outer estimate",
            f"{sentence(model.method)} chose {tuned}, so its scores are optimistic. For unbiased "
            f"scores the selection must be repeated without the rows that it is scored on{how}.",
        )
    elif assessment is not None:
        of_candidates = ""
        if folds:
            verb = "chose among" if model.shares is None else "weighted"
            of_candidates = f", and {model.candidates_by} {verb} {n_candidates} candidates"
        for name in assessment.scores:
            estimate = assessment.estimate(name)
            if np.isnan(estimate.optimism) or estimate.signed_optimism is None:
                continue
            yield note(
                f"Optimism of {model.candidates_by}",
                f"{sentence(model.chosen_by)} chose {tuned}{of_candidates}. "
                f"{assessment.optimism_text(name, model.candidates_by)}"
                f"{' Quote the outer estimate.' * quotes_splits(model, assessment)}",
            )
            break  # one score tells it
        if assessment.failures:
            first = next(iter(assessment.failures.values()))
            yield serious(
                "Failed splits",
                f"{len(assessment.failures)} of {len(assessment.splits)} outer splits raised an "
                f"error; the first: {first.rstrip('.')}.",
            )
    n = model.n
    if n_parameters > 2 and n < _SAMPLES_PER_PARAMETER * n_parameters:
        remedy = {
            True: " A prior restrained them.",
            False: f" Consider {setting('prior', True)}.",
            None: "",
        }
        counted = f" The {model.method} scores, which repeat the tuning, allow for that."
        yield (note if model.prior or model.nested else serious)(
            "Many hyper-parameters",
            f"{n_parameters} hyper-parameters were tuned on {n} rows, {n / n_parameters:.0f} "
            "for each: the criterion itself can be over-fitted."
            f"{counted if model.nested else ''}{remedy[model.prior]}",
        )
    if not (model.outcome.decides or model.nested) and model.rows is not None:
        yield note(
            "Intervals",
            "Prediction intervals use leave-one-out residuals that tuning made too small. Their "
            "coverage is guaranteed only for hyper-parameters that were fixed beforehand, and "
            "falls further short the more was tuned.",
        )


def other_estimator(estimator: Any, model: Reported, assessment: Assessment) -> Iterator[Caution]:
    """Caution if the outer estimate is not of the model shown."""
    if assessment.estimator_key not in (None, estimator_key(estimator)):
        yield serious(
            "Another estimator was assessed",
            f"The outer estimate is of {assessment.estimator}, but this is "
            f"{estimator_text(estimator)}, about which it says little.",
        )
    n = assessment.n_samples
    if n not in (None, model.n_samples):
        yield serious(
            "Other rows were assessed",
            f"The outer estimate is of {n} rows, but the model was fitted to {model.n_samples}.",
        )


def close_candidates(model: Reported) -> Iterator[Caution]:
    """Caution if the losses of other candidates are within chance of the best."""
    key = model.loss.key
    if not model.fitted.candidates or model.stacked or not key:  # a loss without a standard error
        return
    losses = model.candidate_losses
    error = model.scores_on_scale.with_errors[key][1]
    close = int(((losses - losses[model.best]) < error).sum()) - 1
    if close > 0:
        yield note(
            "The choice is not settled",
            f"{count(close, 'other candidate')} of {len(losses)} came within one standard error "
            f"({digits(error, 2)}) of the one taken: other data might have chosen another.",
        )
