"""Cautions of a fitted machine and of its report, with the numbers they rest on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import Any, TypedDict

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from looms._typing import Matrix
from looms._words import count
from looms.assessment._experiment import estimator_text
from looms.assessment._result import Assessment
from looms.copies import copy_groups, n_unexpected_copies
from looms.estimators import machine_of
from looms.estimators._search import SelectingMachine
from looms.estimators._warnings import settings_for_rare_classes
from looms.optimize import Outcome
from looms.report._telltales import telltales
from looms.report.figures import (
    error_by_class,
    gain_over_mean,
    guess_error,
    loo_scores,
    seldom_predicted,
)
from looms.report.model import (
    Model,
    candidate_scores,
    named,
    parameter_name,
    predicted_labels,
    score_name,
)
from looms.report.text import isolated, sentence

#: Below these the figures are said to be uncertain.
_FEW_SAMPLES, _FEW_IN_CLASS = 100, 20
#: Samples for each hyper-parameter below which their number is pointed out.
_SAMPLES_PER_PARAMETER = 20
#: Share of the even share that the smallest class has at least without being called rare.
_RARE = 0.4
#: A machine with less than this share of the errors of a guess needs no remedy.
_GOOD = 0.5
#: Columns, and candidates, named in a caution.
_MOST_NAMES, _MOST_CANDIDATES = 3, 5

_STOPPED_EARLY = {Outcome.MAX_ITER, Outcome.NO_PROGRESS, Outcome.CALLBACK}
_OTHERS = "Consider another kernel or other features."


class Caution(TypedDict):
    """A caution; its level is "serious" or "note"."""

    level: str
    title: str
    text: str


def cautions(estimator: Any, X: Any = None) -> list[Caution]:
    """Cautions of a fitted machine, the serious first.

    These are a machine that is no better than a guess, takes every sample for one class or
    seldom predicts a rare one; a feature that alone gives the target; a search that ended at a
    bound or early; samples that stand twice; few samples, or few of a class. That the figures
    flatter, since leave-one-out chose the machine, is not among them: see `looms.assess`.

    Parameters
    ----------
    estimator : estimator
        A fitted machine of looms with leave-one-out outputs, a pipeline that ends in one, or a
        search with such a ``best_estimator_``.
    X : array-like or DataFrame of shape (n_samples, n_features), optional
        What ``estimator`` was fitted to, for `looms.SVCCV`, which does not keep it; else, of it,
        nothing is said of features and replicates.

    Returns
    -------
    cautions : list of dict
        ``level`` ("serious" or "note"), ``title`` and ``text``.

    Raises
    ------
    TypeError
        If there is no machine of looms in the estimator.

    Notes
    -----
    O(n d log n) for n samples of d features.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import LSSVMClassifier
    >>> from looms.report import cautions
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), rng.random(200) < 0.1
    >>> [caution["title"] for caution in cautions(LSSVMClassifier().fit(X, y))]
    ['One class for all', 'A small class']
    """
    machine: Any = machine_of(estimator)
    if machine is None:
        raise TypeError(f"{type(estimator).__name__} is no machine of looms, nor ends in one.")
    if X is not None and not hasattr(machine, "X_fit_"):
        whole = getattr(estimator, "best_estimator_", estimator)
        X = whole[:-1].transform(X) if isinstance(whole, Pipeline) else X
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
    return _ordered(_of_fit(named(estimator, machine), getattr(machine, "X_fit_", X)))


def cautions_of_report(
    whole: Any, model: Model, assessment: Assessment | None, steps: list[str], notes: Sequence[str]
) -> list[Caution]:
    """Those of the fit, and of how the machine was chosen and assessed, the serious first.

    ``steps`` of the ``whole`` are before the machine; ``notes`` are the caller's, on the data.
    """
    return _ordered(
        [
            *_of_fit(model, model.machine.X_fit_),
            *_optimism(model, assessment),
            *([] if assessment is None else _foreign(whole, model, assessment)),
            *_close_candidates(model),
            *_data(model, steps, notes),
        ]
    )


def _serious(title: str, text: str) -> Caution:
    return Caution(level="serious", title=title, text=text)


def _note(title: str, text: str) -> Caution:
    return Caution(level="note", title=title, text=text)


def _ordered(both: Iterable[Caution]) -> list[Caution]:
    return sorted(both, key=lambda each: each["level"] != "serious")


def _of_fit(model: Model, X: Matrix | None) -> Iterator[Caution]:
    """Cautions of `cautions`; ``X`` is what the machine was fitted to, None if not known."""
    yield from _guessing(model)
    telling = [] if X is None or model.pairwise else telltales(model, X)
    if telling:
        named_ones = [f"{isolated(name)} ({sign})" for name, sign in telling[:_MOST_NAMES]]
        more = f" and {len(telling) - _MOST_NAMES} more" if len(telling) > _MOST_NAMES else ""
        yield _serious(
            "A feature gives the target",
            f"{', '.join(named_ones)}{more} alone {'predicts' if len(telling) == 1 else 'predict'} "
            "the target. Is it known before the target is? If not, leave it out.",
        )
    if model.selecting is not None:
        yield from _search(model, model.selecting)
    if X is not None and not model.pairwise and model.groups is None:
        n = n_unexpected_copies(X, copy_groups(X))
        together = ", or hold them out together (copies='together')"
        if n:
            yield _serious(
                "Copies of samples",
                f"{n} of {model.loo.n_samples} samples are copies of others, equal in every "
                "feature. Leaving one out leaves its copies in, so leave-one-out flatters and "
                "drifts to a nearest neighbor. Drop them"
                f"{together if hasattr(model.machine, 'copies') else ''}.",
            )
    yield from _sizes(model)
    scores = loo_scores(model)
    perfect = scores["error"][0] == 0 if model.classification else scores["r2"][0] > 0.9999
    if perfect and not telling:
        yield _note(
            "Too good",
            f"{'No sample is' if model.classification else 'Next to nothing is'} wrong in "
            "leave-one-out. Look for a feature that holds the answer, and for copies of samples.",
        )


def _guessing(model: Model) -> Iterator[Caution]:
    scores, title = loo_scores(model), "No better than a guess"
    if not model.classification:
        value = scores["r2"][0]
        gain, error = gain_over_mean(model)
        if not (value > 0 and gain > 2 * error):
            yield _serious(
                title,
                f"Leave-one-out R² is {value:.3g}: within noise the mean of the targets predicts "
                f"as well. {_OTHERS}",
            )
        return
    (ber, error), (area, area_error) = scores["ber"], scores["auc"]
    guess, seldom = 1 - 1 / len(model.classes), _rarest_in_predictions(model)
    ranks = model.loo.y.ndim > 1 or area - 2 * area_error > 0.5
    remedy = _remedy(model) if ranks else _OTHERS
    predicted = np.unique(predicted_labels(model)[model.has_weight])
    if len(predicted) == 1:
        title = "One class for all"
        text = (
            f"The machine takes every sample for {isolated(model.classes[predicted[0]])}: balanced "
            f"error rate {ber:.3g}, AUC {area:.3g}. {remedy}"
        )
    elif ber + 2 * error >= guess:
        text = (
            f"The leave-one-out balanced error rate {ber:.3g} ± {error:.2g} is no better than "
            f"guessing ({guess:.3g}), AUC {area:.3g}. {seldom}{remedy}"
        )
    elif not ranks:
        text = (
            f"The leave-one-out outputs do not rank the classes: AUC {area:.3g} ± "
            f"{area_error:.2g}, where guessing has 0.5. {_OTHERS}"
        )
    elif seldom:
        title, text = "A class is seldom predicted", f"{seldom}{remedy}"
    else:
        return
    yield _serious(title, text)


def _remedy(model: Model) -> str:
    settings = settings_for_rare_classes(model.machine, len(model.classes))
    return f"Consider {', '.join(settings)} or another kernel." if settings else _OTHERS


def _rarest_in_predictions(model: Model) -> str:
    """A sentence on `seldom_predicted`; empty if none is, or a threshold or weights were wanted."""
    adjusted = not settings_for_rare_classes(model.machine, len(model.classes))
    seldom = None if adjusted else seldom_predicted(model)
    if seldom is None:
        return ""
    rare, n_predicted, n = seldom
    return (
        f"Of {model.n_with_weight} samples {n_predicted} are predicted to be "
        f"{isolated(model.classes[rare])}, where {n} are. "
    )


def _search(model: Model, machine: SelectingMachine) -> Iterator[Caution]:
    tuning = machine.selection_
    for met in tuning.at_bounds:
        text = f"{isolated(parameter_name(model, met.name))} {met.remark}."
        yield _serious("Hyper-parameter at a bound", text)
    if tuning.outcome in _STOPPED_EARLY:
        yield _serious("Search stopped early", f"{sentence(tuning.outcome.value)}.")
    if tuning.n_failures:
        yield _note(
            "Points that could not be evaluated",
            f"At {count(tuning.n_failures, 'point')} of {tuning.n_evaluations} the kernel matrix "
            "plus ridge was not positive definite in rounding; the search stepped over them.",
        )
    never = [
        f"{candidate.kernel_name}, {candidate.criterion}"
        for candidate in machine.candidates_
        if candidate.outcome is Outcome.NEVER_EVALUATED
    ]
    if never:
        text = f"{'; '.join(never[:_MOST_CANDIDATES])}: {Outcome.NEVER_EVALUATED.value}."
        yield _serious("Candidates that could not be evaluated", text)


def _sizes(model: Model) -> Iterator[Caution]:
    n, scores = model.n_with_weight, loo_scores(model)
    if n < _FEW_SAMPLES:
        value, error = scores["ber" if model.classification else "rmse"]
        yield _note(
            "Few samples",
            f"With {n} samples the leave-one-out figure {value:.3g} has a standard error of "
            f"{error:.2g}, before any optimism.",
        )
    if not model.classification:
        return
    counts = error_by_class(model)[0]
    rare = int(counts.argmin())
    least = int(counts[rare])
    if least < _FEW_IN_CLASS:
        yield (_serious if least < 5 else _note)(
            "A small class",
            f"Class {isolated(model.classes[rare])} has {count(least, 'sample')}: one more error "
            f"there changes its error rate by {100 / max(least, 1):.0f} %.",
        )
    if least < _RARE * n / len(counts) and not _rarest_in_predictions(model):
        guess, rate, machine = guess_error(model), scores["error"][0], model.machine
        if settings_for_rare_classes(machine, len(counts)):
            advice = f" {_remedy(model)}" if rate > _GOOD * guess else ""
        else:
            weighted = getattr(machine, "class_weight", None) is not None
            advice = " The classes were weighted." if weighted else " The threshold was set for it."
        yield _note(
            "Unequal classes",
            f"Always saying the largest class is wrong for {100 * guess:.1f} %, this machine for "
            f"{100 * rate:.1f} %; judge it by the balanced error rate.{advice}",
        )


def _optimism(model: Model, assessment: Assessment | None) -> Iterator[Caution]:
    machine = model.selecting
    if machine is None:
        return
    n_candidates, n_parameters = len(machine.candidates_), len(machine.kernel_.theta) + 1
    tuned = count(n_parameters, "hyper-parameter")
    tuned = f"among {n_candidates} candidates and {tuned}" if n_candidates > 1 else tuned
    if not isinstance(getattr(machine, "threshold", None), Real | None):
        tuned += " and a threshold"
    if assessment is None:
        yield _serious(
            "No outer estimate",
            f"Leave-one-out chose {tuned}, so its figures flatter the machine. Only outer "
            "splits that repeat the whole selection give an honest figure: see looms.assess.",
        )
    else:
        name = assessment.scores[0]
        figures = assessment.figures(name)
        if np.isfinite(figures.optimism) and figures.flattered_by is not None:
            yield _note(
                "Optimism of leave-one-out",
                f"Leave-one-out chose {tuned}. {assessment.optimism_text(name)} Quote the outer "
                "estimate.",
            )
        if assessment.failures:
            first = next(iter(assessment.failures.values()))
            yield _serious(
                "Failed splits",
                f"{len(assessment.failures)} of {len(assessment.splits)} outer splits raised; the "
                f"first: {first.rstrip('.')}.",
            )
    n = model.n_with_weight
    if n_parameters > 2 and n < _SAMPLES_PER_PARAMETER * n_parameters:
        yield (_note if machine.prior else _serious)(
            "Many hyper-parameters",
            f"{n_parameters} hyper-parameters were tuned on {n} samples, {n / n_parameters:.0f} "
            "for each: the criterion itself can be over-fitted. "
            f"{'A prior held them.' if machine.prior else 'Consider prior=True.'}",
        )
    if not model.classification:
        yield _note(
            "Intervals",
            "Prediction intervals use the leave-one-out residuals that the hyper-parameters made "
            "small; their coverage is guaranteed only for hyper-parameters that were fixed "
            "beforehand, and falls short the more was tuned.",
        )


def _foreign(estimator: Any, model: Model, assessment: Assessment) -> Iterator[Caution]:
    """That the outer estimate is of something else than the machine shown."""
    shown, assessed = estimator_text(estimator), assessment.estimator
    if _essence(shown) != _essence(assessed):
        yield _serious(
            "Another estimator was assessed",
            f"The outer estimate is of {assessed}, and this is {shown}: it says little about it.",
        )
    n = assessment.n_samples
    if n not in (None, model.loo.n_samples):
        yield _serious(
            "Other samples were assessed",
            f"The outer estimate is of {n} samples, and the machine of {model.loo.n_samples}.",
        )


def _essence(text: str) -> str:
    """The text of an estimator without parameters that change nothing of the result."""
    return re.sub(r"\b(callback|n_jobs|verbose)=(<.*?>|[\w.-]+)(, )?", "", text).replace(", )", ")")


def _close_candidates(model: Model) -> Iterator[Caution]:
    machine, key = model.selecting, score_name(model.machine)[1]
    if machine is None or not key:  # a loss of no known error
        return
    scores = candidate_scores(machine)
    error = loo_scores(model)[key][1]
    close = int(((scores - scores[machine.best_index_]) < error).sum()) - 1
    if close > 0:
        yield _note(
            "The choice is not settled",
            f"{count(close, 'other candidate')} of {len(scores)} came within one standard error "
            f"({error:.2g}) of the one taken: another sample might have chosen otherwise.",
        )


def _data(model: Model, steps: list[str], notes: Sequence[str]) -> Iterator[Caution]:
    if steps:
        yield _note(
            "Preprocessing saw all samples",
            f"The {'step' if len(steps) == 1 else 'steps'} before the machine "
            f"({', '.join(steps)}) learnt from the sample that is left out too. For scaling and "
            "filling gaps that is harmless; for steps that look at the target it is not.",
        )
    if model.n_with_weight < model.loo.n_samples:
        yield _note(
            "Samples of weight zero",
            f"{model.loo.n_samples - model.n_with_weight} of {model.loo.n_samples} took no part in "
            "the fit, and take none in the figures here.",
        )
    for note in notes:
        yield _note("Columns", f"{sentence(note.rstrip('.'))}.")
