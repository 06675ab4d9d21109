"""What to distrust in a fit: cautions with the numbers they rest on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from looms.assessment import Assessment, estimator_text
from looms.copies import copy_groups
from looms.optimise import Outcome
from looms.report._axes import isolated
from looms.report._format import sentence
from looms.report._model import Model, candidate_names, score_name
from looms.report._relevance import parameter_name
from looms.report._scores import error_by_class, guess_error, loo_scores

#: Below these the figures are said to be uncertain.
_FEW_SAMPLES, _FEW_IN_CLASS = 100, 20
#: Samples for each hyper-parameter below which their number is pointed out.
_SAMPLES_PER_PARAMETER = 20
#: Share of the even share that the smallest class has at least without being called rare.
_RARE = 0.4

_STOPPED_EARLY = {Outcome.MAX_ITER, Outcome.NO_PROGRESS, Outcome.CALLBACK}

Caution = dict[str, str]


def cautions(
    estimator: Any, model: Model, assessment: Assessment | None, *, steps: list[str]
) -> list[Caution]:
    """Concrete cautions, the serious ones first.

    Parameters
    ----------
    estimator : the whole.
    model : the fitted machine in it.
    assessment : of outer splits, if there is one.
    steps : names of the steps before the machine.
    """
    found = [
        *_uselessness(model),
        *_optimism(model, assessment),
        *_foreign(estimator, model, assessment),
        *_search(model),
        *_close_candidates(model),
        *_replicates(model),
        *_sizes(model),
        *_perfection(model),
        *_preprocessing(steps),
        *_weights(model),
    ]
    return sorted(found, key=lambda caution: caution["level"] != "serious")


def n_replicates(model: Model) -> int:
    """Number of training samples that have the features of another one; 0 for a kernel matrix."""
    if model.pairwise:
        return 0
    counts = np.bincount(copy_groups(model.machine.X_fit_))
    return int(counts[counts > 1].sum())


def _caution(level: str, title: str, text: str) -> Caution:
    return {"level": level, "title": title, "text": text}


def _optimism(model: Model, assessment: Assessment | None) -> Iterator[Caution]:
    machine: Any = model.machine
    if not hasattr(machine, "candidates_"):
        return
    n_candidates, n_parameters = len(machine.candidates_), len(machine.kernel_.theta) + 1
    tuned = _count(n_parameters, "hyper-parameter")
    tuned = f"among {n_candidates} candidates and {tuned}" if n_candidates > 1 else tuned
    if not isinstance(getattr(machine, "threshold", None), Real | None):
        tuned += " and a threshold"
    if assessment is None:
        yield _caution(
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
        yield _caution(
            "note" if machine.prior else "serious",
            "Many hyper-parameters",
            f"{n_parameters} hyper-parameters were tuned on {n} samples, {n / n_parameters:.0f} "
            f"for each: the criterion itself can be over-fitted.{held}",
        )
    if not model.classification:
        yield _caution(
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
        yield _caution(
            "note",
            "Optimism of leave-one-out",
            f"Leave-one-out chose {tuned}. {assessment.optimism_text(name)} Quote the outer "
            "estimate.",
        )
    if assessment.failures:
        n, of = len(assessment.failures), len(assessment.splits)
        first = next(iter(assessment.failures.values()))
        yield _caution(
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
        yield _caution(
            "serious",
            "Another estimator was assessed",
            f"The outer estimate is of {assessed}, and this is {shown}: it says little about it.",
        )
    part = assessment.whole or assessment.splits[0]
    n = part.n_train + (0 if assessment.whole else part.n_test)
    if n != model.loo.n_samples:
        yield _caution(
            "serious",
            "Other samples were assessed",
            f"The outer estimate is of {n} samples, and the machine of {model.loo.n_samples}.",
        )


def _essence(text: str) -> str:
    """The text of an estimator without parameters that change nothing of the result."""
    return re.sub(r"\b(callback|n_jobs|verbose)=(<.*?>|[\w.-]+)(, )?", "", text).replace(", )", ")")


def _search(model: Model) -> Iterator[Caution]:
    machine: Any = model.machine
    if not hasattr(machine, "selection_"):
        return
    tuning = machine.selection_
    for met in tuning.at_bounds:
        text = f"{isolated(parameter_name(model, met.name))} {met.remark}."
        yield _caution("serious", "Hyper-parameter at a bound", text)
    if tuning.outcome in _STOPPED_EARLY:
        yield _caution("serious", "Search stopped early", f"{sentence(tuning.outcome.value)}.")
    if tuning.n_failures:
        points = _count(tuning.n_failures, "point")
        yield _caution(
            "note",
            "Points that could not be evaluated",
            f"At {points} of {tuning.n_evaluations} the kernel matrix plus ridge was not positive "
            "definite in rounding; the search stepped over them.",
        )
    never = [
        ", ".join(names)
        for names, candidate in zip(candidate_names(machine), machine.candidates_, strict=False)
        if candidate.outcome is Outcome.NEVER_EVALUATED
    ]
    if never:
        text = f"{'; '.join(never[:5])}: {Outcome.NEVER_EVALUATED.value}."
        yield _caution("serious", "Candidates that could not be evaluated", text)


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
        yield _caution(
            "note",
            "The choice is not settled",
            f"{_count(close, 'other candidate')} of {len(scores)} came within one standard error "
            f"({error:.2g}) of the one taken: another sample might have chosen otherwise.",
        )


def _replicates(model: Model) -> Iterator[Caution]:
    n = n_replicates(model)
    if n:
        yield _caution(
            "serious" if n > 0.05 * model.loo.n_samples else "note",
            "Replicates",
            f"{n} of {model.loo.n_samples} samples have the same features as another one. Leaving "
            "one out leaves its twin in, so leave-one-out looks better than new samples will be.",
        )


def _sizes(model: Model) -> Iterator[Caution]:
    n = int(model.seen.sum())
    scores = loo_scores(model)
    name = "ber" if model.classification else "rmse"
    value, error = scores[name]
    if n < _FEW_SAMPLES:
        yield _caution(
            "note",
            "Few samples",
            f"With {n} samples the leave-one-out figure {value:.3g} has a standard error of "
            f"{error:.2g}, before any optimism.",
        )
    if not model.classification:
        return
    counts = error_by_class(model)[0]
    rare = int(counts.argmin())
    label, least = model.classes[rare], int(counts[rare])
    if least < _FEW_IN_CLASS:
        yield _caution(
            "serious" if least < 5 else "note",
            "A small class",
            f"Class {isolated(label)} has {_count(least, 'sample')}: one more error there changes "
            f"its error rate by {100 / max(least, 1):.0f} %.",
        )
    if least < _RARE * n / len(counts):
        weighted = getattr(model.machine, "class_weight", None) is not None
        advice = (
            "The classes were weighted."
            if weighted or model.machine.threshold not in (None, 0)
            else "Consider threshold='ber' or class_weight='balanced'."
        )
        yield _caution(
            "note",
            "Unequal classes",
            f"Always saying the largest class is wrong for {100 * guess_error(model):.1f} % only, "
            f"this machine for {100 * scores['error'][0]:.1f} %; judge it by the balanced error "
            f"rate. {advice}",
        )


def _uselessness(model: Model) -> Iterator[Caution]:
    scores = loo_scores(model)
    if model.classification:
        value, error = scores["ber"]
        guess = 1 - 1 / len(model.classes)
        useless = value + 2 * error >= guess
        text = f"The balanced error rate {value:.3g} ± {error:.2g} is no better than guessing"
        text += f" ({guess:.3g}): these features say little about the classes."
    else:
        value = scores["r2"][0]
        useless = not value > 0
        text = f"R² is {value:.3g}: the mean of the targets predicts as well."
    if useless:
        yield _caution("serious", "No better than a guess", text)


def _perfection(model: Model) -> Iterator[Caution]:
    scores = loo_scores(model)
    perfect = scores["error"][0] == 0 if model.classification else scores["r2"][0] > 0.9999
    if perfect:
        yield _caution(
            "note",
            "Too good",
            "Leave-one-out makes no error worth the name. Look for a feature that holds the "
            "answer, and for copies of samples.",
        )


def _preprocessing(steps: list[str]) -> Iterator[Caution]:
    if steps:
        yield _caution(
            "note",
            "Preprocessing saw all samples",
            f"The {'step' if len(steps) == 1 else 'steps'} before the machine "
            f"({', '.join(steps)}) learnt from the sample that is left out too. For scaling and "
            "filling gaps that is harmless; for steps that look at the target it is not.",
        )


def _weights(model: Model) -> Iterator[Caution]:
    n_zero = int((model.loo.sample_weight == 0).sum())
    if n_zero:
        yield _caution(
            "note",
            "Samples of weight zero",
            f"{n_zero} of {model.loo.n_samples} took no part in the fit, and take none in "
            "the figures here.",
        )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
