"""Cautions of a fitted machine, for the report and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from looms._classes import class_indices
from looms._words import count
from looms.copies import copy_groups, n_unexpected_copies
from looms.criteria import standard_error
from looms.estimators import machine_of
from looms.estimators._warnings import settings_for_rare_classes
from looms.optimize import Outcome
from looms.report._scores import error_by_class, gain_over_mean, guess_error, loo_scores
from looms.report._telltales import telltales
from looms.report.model import Model, candidate_names, named, parameter_name, predicted_labels
from looms.report.text import isolated, sentence

#: Below these the figures are said to be uncertain.
_FEW_SAMPLES, _FEW_IN_CLASS = 100, 20
#: Share of the even share that the smallest class has at least without being called rare.
_RARE = 0.4
#: A class predicted less often than this share of its samples is pointed out, if it has so many.
_SELDOM, _FEWEST_OF_SELDOM = 0.6, 5
#: A machine with less than this share of the errors of a guess needs no remedy.
_GOOD = 0.5
#: Columns named in a caution.
_MOST_NAMES = 3

_STOPPED_EARLY = {Outcome.MAX_ITER, Outcome.NO_PROGRESS, Outcome.CALLBACK}

Caution = dict[str, str]


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
    return ordered(fit_cautions(named(estimator, machine), getattr(machine, "X_fit_", X)))


def fit_cautions(model: Model, X: Any) -> list[Caution]:
    """The same of a machine with names; ``X`` is what it was fitted to, None if not known."""
    pairwise = X is None or model.pairwise
    telling = [] if pairwise else list(_telling(model, X))
    return [
        *_guessing(model),
        *telling,
        *_search(model),
        *([] if pairwise else _replicates(model, X)),
        *_sizes(model),
        *([] if telling else _perfection(model)),
    ]


def ordered(found: list[Caution]) -> list[Caution]:
    """The serious ones first."""
    return sorted(found, key=lambda each: each["level"] != "serious")


def caution(level: str, title: str, text: str) -> Caution:
    """A caution of a level, "serious" or "note"."""
    return {"level": level, "title": title, "text": text}


def _guessing(model: Model) -> Iterator[Caution]:
    scores = loo_scores(model)
    if not model.classification:
        value = scores["r2"][0]
        gain, error = gain_over_mean(model)
        if not (value > 0 and gain > 2 * error):
            yield caution(
                "serious",
                "No better than a guess",
                f"Leave-one-out R² is {value:.3g}: within noise the mean of the targets predicts "
                f"as well. {_OTHERS}",
            )
        return
    (ber, error), (area, area_error) = scores["ber"], scores["auc"]
    guess = 1 - 1 / len(model.classes)
    ranks = model.loo.y.ndim == 1 and area - 2 * area_error > 0.5
    predicted = np.unique(predicted_labels(model)[model.seen])
    seldom = _rarest_in_predictions(model)
    remedy = _remedy(model) if ranks or model.loo.y.ndim > 1 else _OTHERS
    if len(predicted) == 1:
        label = isolated(model.classes[predicted[0]])
        yield caution(
            "serious",
            "One class for all",
            f"The machine takes every sample for {label}: balanced error rate {ber:.3g}, AUC "
            f"{area:.3g}. {remedy}",
        )
    elif ber + 2 * error >= guess:
        yield caution(
            "serious",
            "No better than a guess",
            f"The leave-one-out balanced error rate {ber:.3g} ± {error:.2g} is no better than "
            f"guessing ({guess:.3g}), AUC {area:.3g}. {seldom}{remedy}",
        )
    elif model.loo.y.ndim == 1 and not ranks:
        yield caution(
            "serious",
            "No better than a guess",
            f"The leave-one-out outputs do not rank the classes: AUC {area:.3g} ± "
            f"{area_error:.2g}, where guessing has 0.5. {_OTHERS}",
        )
    elif seldom:
        yield caution("serious", "A class is seldom predicted", f"{seldom}{remedy}")


_OPTIONS = {
    "threshold='ber'": "--threshold ber",
    "class_weight='balanced'": "--weight balanced",
}
_OTHERS = "Consider another kernel (--kernel) or other features."


def _allowance(model: Model) -> str:
    """Measures that were taken for classes of unequal size."""
    weighted = getattr(model.machine, "class_weight", None) is not None
    return "The classes were weighted." if weighted else "The threshold was set for it."


def _remedy(model: Model) -> str:
    settings = settings_for_rare_classes(model.machine, len(model.classes))
    if not settings:
        return _OTHERS
    return f"Consider {', '.join(f'{s} ({_OPTIONS[s]})' for s in settings)} or another kernel."


def _rarest_in_predictions(model: Model) -> str:
    """A sentence on the class predicted much less often than it is there; empty if none is.

    The difference must be beyond twice its standard error if errors fell on either side alike:
    √(missed + false), of samples held out together by their sum. Nothing is said where a threshold
    or weights were wanted.
    """
    if not settings_for_rare_classes(model.machine, len(model.classes)):
        return ""
    k = len(model.classes)
    seen, groups = model.seen, model.groups
    labels, predicted = class_indices(model.loo.y)[seen], predicted_labels(model)[seen]
    n, n_predicted = (np.bincount(codes, minlength=k) for codes in (labels, predicted))
    together = None if groups is None else groups[seen]
    missing = (labels == np.arange(k)[:, None]) - 1.0 * (predicted == np.arange(k)[:, None])
    error = np.array([standard_error(each, together) for each in missing])
    seldom = (n_predicted < _SELDOM * n) & (n - n_predicted > 2 * error)
    seldom &= n >= _FEWEST_OF_SELDOM
    if not seldom.any():
        return ""
    worst = np.where(seldom, n_predicted / np.maximum(n, 1), np.inf).argmin()
    return (
        f"Of {model.seen.sum()} samples {n_predicted[worst]} are predicted to be "
        f"{isolated(model.classes[worst])}, where {n[worst]} are. "
    )


def _telling(model: Model, X: Any) -> Iterator[Caution]:
    found = telltales(model, X)
    if not found:
        return
    listed = ", ".join(f"{isolated(name)} ({how})" for name, how in found[:_MOST_NAMES])
    if len(found) > _MOST_NAMES:
        listed += f" and {len(found) - _MOST_NAMES} more"
    yield caution(
        "serious",
        "A feature gives the target",
        f"{listed} alone {'predicts' if len(found) == 1 else 'predict'} the target. Is it known "
        "before the target is? If not, leave it out (--drop).",
    )


def _search(model: Model) -> Iterator[Caution]:
    machine: Any = model.machine
    if not hasattr(machine, "selection_"):
        return
    tuning = machine.selection_
    for met in tuning.at_bounds:
        text = f"{isolated(parameter_name(model, met.name))} {met.remark}."
        yield caution("serious", "Hyper-parameter at a bound", text)
    if tuning.outcome in _STOPPED_EARLY:
        yield caution("serious", "Search stopped early", f"{sentence(tuning.outcome.value)}.")
    if tuning.n_failures:
        points = count(tuning.n_failures, "point")
        yield caution(
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
        yield caution("serious", "Candidates that could not be evaluated", text)


def _replicates(model: Model, X: Any) -> Iterator[Caution]:
    n = n_unexpected_copies(X, copy_groups(X))
    if n and model.groups is None:
        together = " Drop them, or hold them out together (--copies together)."
        remedy = together if hasattr(model.machine, "copies") else " Drop them."
        yield caution(
            "serious",
            "Copies of samples",
            f"{n} of {model.loo.n_samples} samples are copies of others, equal in every feature. "
            "Leaving one out leaves its copies in, so leave-one-out flatters and drifts to a "
            f"nearest neighbor.{remedy}",
        )


def _sizes(model: Model) -> Iterator[Caution]:
    n = int(model.seen.sum())
    scores = loo_scores(model)
    name = "ber" if model.classification else "rmse"
    value, error = scores[name]
    if n < _FEW_SAMPLES:
        yield caution(
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
        yield caution(
            "serious" if least < 5 else "note",
            "A small class",
            f"Class {isolated(label)} has {count(least, 'sample')}: one more error there changes "
            f"its error rate by {100 / max(least, 1):.0f} %.",
        )
    if least < _RARE * n / len(counts) and not _rarest_in_predictions(model):
        settings = settings_for_rare_classes(model.machine, len(counts))
        guess, rate = guess_error(model), scores["error"][0]
        advice = _remedy(model) if settings else _allowance(model)
        yield caution(
            "note",
            "Unequal classes",
            f"Always saying the largest class is wrong for {100 * guess:.1f} %, this machine for "
            f"{100 * rate:.1f} %; judge it by the balanced error rate."
            + f" {advice}"
            * (not settings or rate > _GOOD * guess),
        )


def _perfection(model: Model) -> Iterator[Caution]:
    scores = loo_scores(model)
    perfect = scores["error"][0] == 0 if model.classification else scores["r2"][0] > 0.9999
    if perfect:
        yield caution(
            "note",
            "Too good",
            f"{'No sample is' if model.classification else 'Next to nothing is'} wrong in "
            "leave-one-out. Look for a feature that holds the answer, and for copies of samples.",
        )


def n_replicates(model: Model, X: Any) -> int:
    """Number of training samples that have the features of another one; 0 for a kernel matrix."""
    if model.pairwise:
        return 0
    counts = np.bincount(copy_groups(X))
    return int(counts[counts > 1].sum())
