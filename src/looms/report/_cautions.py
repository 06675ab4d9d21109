"""Cautions about a fitted model and its report, with the numbers they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from looms._advice import setting
from looms._scores import SCORES
from looms._words import count
from looms.assessment._result import Assessment
from looms.diagnostics import row_order
from looms.diagnostics._problem import by_kernels
from looms.diagnostics._row_order import MOST as MOST_IN_ORDER
from looms.estimators._warnings import (
    another_kernel,
    remark_on_duplicates,
    remark_on_scales,
    remedies_for_rare_classes,
    settings_for_rare_classes,
)
from looms.fitted._certificate import Certificate
from looms.fitted._fitted import Fitted
from looms.fitted._scores import held_out_scores
from looms.report._choice import (
    close_candidates,
    optimism,
    other_estimator,
    search_cautions,
)
from looms.report._near_rows import MOST as MOST_NEAR
from looms.report._near_rows import scores_without_near
from looms.report.model import Reported, model_of
from looms.report.scores import (
    gain_over_mean,
    gain_over_shares,
    headline_key,
    is_good,
    judged_by_risk,
    quotes_splits,
    recall_by_class,
    seldom_predicted,
)
from looms.report.text import (
    Caution,
    isolated,
    note,
    plus_minus,
    score,
    sentence,
    serious,
)
from looms.scores import Scores
from looms.tables._leakage import LeakingColumn, leakage_remarks, leaking_columns
from looms.tables._preprocessor import remarks_in
from looms.tables._remarks import GRAVE
from looms.tables._remarks import sentence as with_advice

if TYPE_CHECKING:
    from looms.report.facts import Facts

#: Difference from refits, in standard deviations of the targets, that changes no digit shown.
_HARMLESS = 1e-9
_MILDER = "Use a larger mu, or scale the features."
#: Below these numbers a caution says that the scores are uncertain.
_FEW_SAMPLES, _FEW_IN_CLASS, _FEW_GROUPS = 100, 20, 6
#: The smallest class is called rare below this fraction of an even share.
_RARE = 0.4
#: Largest p-value at which rows are said to be in an order: of 100 tables without one, one is.
_IN_ORDER = 0.01
_NO_BETTER = "May be no better than the baseline"


def cautions(estimator: Any) -> list[Caution]:
    """Cautions about a fitted model, the serious ones first.

    They warn of a model that is no better than the baseline, predicts one class for every sample,
    or seldom predicts a rare class; probabilities that are worse than the shares of the classes; a
    feature that alone predicts the target, or nearly; a search that ended at a bound or early;
    columns whose scales differ a hundredfold; duplicates, or samples that look like repeats of
    others; rows in an order (`looms.diagnostics.row_order`); few samples, or few in a class; and,
    after ``certify``, outputs that differ from refits or are too ill-conditioned to tell. They do
    not say that the scores of a model without nested scores are optimistic, since leave-one-out
    chose it.

    Parameters
    ----------
    estimator : estimator
        A fitted looms model with leave-one-out outputs, a pipeline that ends in one, or a
        search with such a ``best_estimator_``.

    Returns
    -------
    cautions : list of dict
        ``level`` ("serious" or "note"), ``title`` and ``text``.

    Raises
    ------
    TypeError
        If the estimator contains no looms model.

    Notes
    -----
    If the scores of n samples are not known yet, they cost n³ flops and an n×n array; row order
    and repeats cost as much again, and nothing is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelClassifier
    >>> from looms.report import cautions
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), rng.random(200) < 0.1
    >>> [caution["title"] for caution in cautions(KernelClassifier(mu=1e-3).fit(X, y))]
    ['May be no better than the baseline', 'A small class', 'Unequal classes']
    """
    model = model_of(estimator)
    return cautions_of_fit(model, remarks_on_fit(model))


def cautions_of_fit(model: Reported, remarks: Iterable[Caution]) -> list[Caution]:
    """`cautions` about a model with these `remarks_on_fit`."""
    certificate = getattr(model.whole, "certificate_", None)
    return _ordered([*remarks, *_rounding(certificate)])


def cautions_of_report(facts: Facts) -> list[Caution]:
    """Cautions about the fit, choice and assessment of a model, the serious ones first."""
    model, assessment, remarks = facts.model, facts.assessment, facts.remarks
    if assessment is not None and quotes_splits(model, assessment):
        remarks = _judged_by_splits(model, assessment, remarks)
    return _ordered(
        [
            *remarks,
            *_rounding(facts.certified),
            *optimism(model, assessment),
            *([] if assessment is None else other_estimator(facts.estimator, model, assessment)),
            *close_candidates(model),
            *_data(model, facts.held_steps, facts.on_columns),
        ]
    )


def _ordered(cautions: Iterable[Caution]) -> list[Caution]:
    return sorted(cautions, key=lambda caution: caution["level"] != "serious")


def remarks_on_fit(model: Reported) -> Iterator[Caution]:
    """Cautions of `cautions`, without that of a certificate."""
    yield from _guessing(model)
    if not judged_by_risk(model):  # which says the same
        yield from _probabilities(model)
    X = model.table
    leaking = _leaking_columns(model)
    yield from leak_cautions(leaking, "feature", isolated)
    yield from search_cautions(model)
    duplicates = None if X is None or model.fitted.units.grouped else remark_on_duplicates(X)
    if duplicates is not None:
        yield serious("Duplicates", duplicates)
    if model.fitted.candidates and X is not None:
        names = [isolated(name) for name in model.features.names]
        remark = remark_on_scales(X, [one.kernel for one in model.fitted.kernel_members], names)
        if remark is not None:
            yield serious("Columns of other scales", remark)
    if model.n <= max(MOST_NEAR, MOST_IN_ORDER) and model.fitted.closed is not None:
        context = "to report" if model.scale is None else f"on the scale of the {model.scale}"
        if model.fitted.candidates and not model.fitted.units.grouped and duplicates is None:
            yield from near_rows(model.fitted, lambda: model.scores_on_scale, context)
        yield from order_of_rows(model.fitted, lambda: model.scores_on_scale, context)
    yield from _sizes(model)
    if model.fitted.units.forward:
        n, n_scored = model.n, len(model.scores.rows)
        yield note(
            "Rows before the first window",
            f"Scores are of {n_scored} of {n} rows. The first {n - n_scored} have too few rows "
            "before them: the model learns from them, but is not tested on them.",
        )
    elif model.fitted.units.windows:
        forward = setting("assess forward", text="looms.assess(..., method='forward')")
        yield note(
            "Windows of time",
            "Each window was predicted by models of the rows before and after it. Of rows that are "
            f"later than all of these, {forward} tells the score, which is often worse.",
        )
    scores = model.scores.with_errors
    perfect = scores["accuracy"][0] == 1 if model.outcome.decides else scores["r2"][0] > 0.9999
    if perfect and not any(column.gives for column in leaking):
        yield note(
            "Too good",
            f"{'No row is' if model.outcome.decides else 'Next to nothing is'} wrong in "
            f"{model.method}. Look for a feature that contains the answer, and for duplicates of "
            "rows.",
        )


def _leaking_columns(model: Reported) -> list[LeakingColumn]:
    """Columns that alone predict the target, or nearly; none of rows that are not kept."""
    if model.table is None:
        return []
    own, X = model.fitted.rows.own, model.table
    codes = own(model.codes if model.outcome.decides else model.held_out.y)
    X = X if model.n == X.shape[0] else own(X)
    return leaking_columns(
        model.features.sources, model.features.gaps, X, codes, model.outcome.decides
    )


def leak_cautions(
    columns: Sequence[LeakingColumn], what: str, quoted: Callable[[str], str] = repr
) -> Iterator[Caution]:
    """Cautions about columns, called ``what``, that alone predict the target, or nearly."""
    for gives, text in leakage_remarks(columns, quoted):
        title = f"A {what} {'gives' if gives else 'nearly gives'} the target"
        yield (serious if gives else note)(title, text)


def near_rows(fitted: Fitted, scores: Callable[[], Scores], context: str) -> Iterator[Caution]:
    """Caution about samples that look like repeats; ``context`` says more of the ``scores``."""
    without_near = scores_without_near(fitted)
    if without_near is None:
        return
    key, (what, *values) = _key(fitted), without_near
    alone, together = (score(value, key, 3) for value in values)
    changes = "falls" if fitted.outcome.decides else "rises"
    yield note(
        "Rows like repeats of others",
        f"{_quoted(key, scores(), context)}. When a row is left out together with {what}, the "
        f"{SCORES[key].name} {changes} from {alone} to {together}{by_kernels(fitted)}. If rows "
        "belong together, such as repeats or rows of one patient, hold them out together, by "
        f"{setting('groups', ...)}: the model is then tuned for new groups, and may do better "
        "than this.",
    )


def order_of_rows(fitted: Fitted, scores: Callable[[], Scores], context: str) -> Iterator[Caution]:
    """Caution about rows in an order; ``context`` says more of the ``scores``."""
    order, closed, key = row_order(fitted), fitted.closed, _key(fitted)
    if order is None or closed is None or order.p_value > _IN_ORDER:
        return
    judged = scores() if closed is fitted else held_out_scores(closed.on_scale)  # like with like
    value, error = judged.with_errors[key]
    by_blocks = order.scores[key]
    compared = f"by blocks of consecutive rows it is {score(by_blocks, key, 3)}"
    if order.by_kernels:
        rows, blocks = (score(loss, key, 3) for loss in (value, by_blocks))
        kernels = order.by_kernels.removeprefix(", ")
        compared = f"{kernels} it is {rows}, and by blocks of consecutive rows {blocks}"
    worse = value - by_blocks if fitted.outcome.decides else by_blocks - value
    if worse <= 0:  # as for rows that were sorted by a feature
        return
    yield (serious if worse > error else note)(
        "Rows in an order",
        f"{_quoted(key, scores(), context)}; {compared} (p = {order.p_value:.3g}): rows near one "
        "another in the table resemble one another. If they follow one another in time or along a "
        f"track, or come in batches, hold them out together: {setting('groups', ...)} or "
        f"{setting('time', text='cv=GapKFold()')}. If the "
        "table was only sorted by a feature, this is harmless.",
    )


def _key(fitted: Fitted) -> str:
    """The score by which cautions compare."""
    return "accuracy" if fitted.outcome.decides else "rmse"


def _quoted(key: str, scores: Scores, context: str) -> str:
    """A score as the beginning of a sentence."""
    value, error = scores.with_errors[key]
    return f"The {SCORES[key].name} {context} is {score(value, key, 3)} {plus_minus(error, key)}"


def _few_groups(model: Reported) -> str:
    """A sentence on standard errors from few groups; empty if there are more, or none."""
    n = len(np.unique(model.scored(model.fitted.units.scored_together)))
    if n >= min(_FEW_GROUPS, model.n):
        return ""
    what = "windows of time" if model.fitted.units.windows else model.fitted.units.together
    return f"There are only {n} {what}: a standard error from so few is not to be trusted."


def _guessing(model: Reported) -> Iterator[Caution]:
    scores, title = model.scores.with_errors, _NO_BETTER
    few = _few_groups(model)
    if not model.outcome.decides:
        value = scores["r2"][0]
        gain, error = gain_over_mean(model)
        if not (value > 0 and gain > 2 * error):
            yield serious(
                title,
                f"{sentence(model.method)} R² is {score(value, 'r2')}: within noise, the mean of "
                f"the targets predicts as well. {few or _others()}",
            )
        return
    if not model.outcome.labeled:
        yield from _guessing_ranks(model)
        return
    if judged_by_risk(model):
        yield from _guessing_risks(model)
        return
    (accuracy, error), (area, area_error) = scores["balanced_accuracy"], scores["roc_auc"]
    baseline = model.scores.baselines["balanced_accuracy"]
    seldom = _rarest_in_predictions(model)
    ordered = not area - 2 * area_error <= 0.5
    area_text = f", ROC AUC {score(area, 'roc_auc')}" if np.isfinite(area) else ""
    accuracy_text = score(accuracy, "balanced_accuracy")
    remedy = _remedy(model) if ordered else _others()
    predicted = np.unique(model.decisions.predicted)
    if len(predicted) == 1:
        title = "One class for all"
        text = (
            f"The model predicts {isolated(model.classes[predicted[0]])} for every row: "
            f"balanced accuracy {accuracy_text}{area_text}. {remedy}"
        )
    elif accuracy - 2 * error <= baseline:
        is_worse = _is_worse(accuracy, baseline)
        if ordered:
            title = "Decisions may be no better than the baseline"
        if ordered and area_text:
            area_text = (
                f", though the outputs rank the classes: ROC AUC {score(area, 'roc_auc')} "
                f"{plus_minus(area_error, 'roc_auc')}"
            )
        text = (
            f"The {model.method} balanced accuracy {accuracy_text} "
            f"{plus_minus(error, 'balanced_accuracy')} {is_worse} the baseline "
            f"({score(baseline, 'balanced_accuracy')}){area_text}. {seldom}{few or remedy}"
        )
    elif not ordered:
        text = (
            f"The {model.method} outputs do not rank the classes: ROC AUC {score(area, 'roc_auc')} "
            f"{plus_minus(area_error, 'roc_auc')}, where the baseline has 0.5. {few or _others()}"
        )
    elif seldom:
        title, text = "A class is seldom predicted", f"{seldom}{remedy}"
    else:
        return
    yield serious(title, text)


def _guessing_risks(model: Reported) -> Iterator[Caution]:
    """Caution if the log loss is not smaller than that of the shares of the classes."""
    gain, error = gain_over_shares(model)
    if gain > 2 * error:
        return
    loss, area = (score(model.scores[key], key) for key in ("log_loss", "roc_auc"))
    baseline = score(model.scores.baselines["log_loss"], "log_loss")
    yield serious(
        _NO_BETTER,
        f"The {model.method} log loss {loss} {_is_worse(gain, 0.0)} that of the shares of the "
        f"classes ({baseline}; difference {score(gain, 'log_loss', 2)} "
        f"{plus_minus(error, 'log_loss')}), ROC AUC {area}. {_few_groups(model) or _others()}",
    )


def _guessing_ranks(model: Reported) -> Iterator[Caution]:
    """Caution if ordered classes are predicted no better than by the median class."""
    key = headline_key(model)
    (value, error), baseline = model.scores.with_errors[key], model.scores.baselines[key]
    if value + 2 * error >= baseline:
        yield serious(
            _NO_BETTER,
            f"The {model.method} {SCORES[key].name} {score(value, key)} {plus_minus(error, key)} "
            f"{_is_worse(-value, -baseline)} the baseline ({score(baseline, key)}). "
            f"{_few_groups(model) or _remedy(model)}",
        )


def _judged_by_splits(
    model: Reported, assessment: Assessment, remarks: list[Caution]
) -> list[Caution]:
    """The remarks, but on guessing by the first score of outer splits whose interval does not
    exclude its baseline; as they are if none has an interval."""
    n_classes = len(model.classes)
    baselines = {"balanced_accuracy": 1 / n_classes, "roc_auc": 0.5} if n_classes else {"r2": 0.0}
    if judged_by_risk(model):  # splits have no interval of the gain in log loss
        del baselines["balanced_accuracy"]
    estimates = {key: assessment.estimate(key) for key in baselines if key in assessment.scores}
    estimates = {key: one for key, one in estimates.items() if np.isfinite(one.low)}
    if not estimates:
        return remarks
    rest = [remark for remark in remarks if remark["title"] != _NO_BETTER]
    advice = _few_groups(model) or (_remedy(model) if model.outcome.decides else _others())
    for key, one in estimates.items():
        value, low, high = (score(each, key) for each in (one.value, one.low, one.high))
        if one.low <= baselines[key]:
            text = (
                f"The {SCORES[key].name} of outer splits {value} (interval {low} to {high}) "
                f"{_is_worse(one.value, baselines[key])} the baseline "
                f"({score(baselines[key], key)}). {advice}"
            )
            return [serious(_NO_BETTER, text), *rest]
    return rest


def _others() -> str:
    return f"Consider {another_kernel()} or other features."


def _is_worse(value: float, baseline: float) -> str:
    return "is no better than" if value <= baseline else "cannot be told from"


def _probabilities(model: Reported) -> Iterator[Caution]:
    """Caution if probabilities are worse than the shares of the classes, beyond noise."""
    if "log_loss" not in model.scores or not model.outcome.labeled:
        return
    loss, error = model.scores.with_errors["log_loss"]
    baseline, (gain, of_gain) = model.scores.baselines["log_loss"], gain_over_shares(model)
    if gain + 2 * of_gain < 0:  # of this model, whichever rows it was trained on
        yield serious(
            "Probabilities worse than the baseline",
            f"The {model.method} log loss {score(loss, 'log_loss')} "
            f"{plus_minus(error, 'log_loss')} is larger than that of the shares of the classes, "
            f"{score(baseline, 'log_loss')}: do not use the probabilities. Consider "
            f"{setting('calibration', 'sigmoid')}, which bends least, or {another_kernel()}.",
        )


def _remedy(model: Reported) -> str:
    settings = remedies_for_rare_classes(model.outcome, len(model.classes))
    return f"Consider {', '.join(settings)} or {another_kernel()}." if settings else _others()


def _rarest_in_predictions(model: Reported) -> str:
    """A sentence on `seldom_predicted`; empty if none is, or if a threshold or weights are set."""
    adjusted = not settings_for_rare_classes(model.outcome, len(model.classes))
    seldom = None if adjusted else seldom_predicted(model)
    if seldom is None:
        return ""
    rare, n_predicted, n = seldom
    return (
        f"Of {len(model.scores.rows)} rows, {n_predicted} are predicted to be "
        f"{isolated(model.classes[rare])}, but {n} are. "
    )


def _sizes(model: Reported) -> Iterator[Caution]:
    n, scores = model.n, model.scores.with_errors
    if n < _FEW_SAMPLES:
        key = headline_key(model)
        value, error = scores[key]
        yield note(
            "Few rows",
            f"With {n} rows, the {model.method} {SCORES[key].name} is {score(value, key)} "
            f"{plus_minus(error, key)} (standard error)"
            f"{', apart from any optimism' * (not model.nested)}.",
        )
    few = _few_groups(model)
    if few:
        yield note("Few windows" if model.fitted.units.windows else "Few groups", few)
    if not model.outcome.decides:
        return
    counts = recall_by_class(model)[0]
    rare = int(counts.argmin())
    least = int(counts[rare])
    if least < _FEW_IN_CLASS:
        yield (serious if least < 5 else note)(
            "A small class",
            f"Class {isolated(model.classes[rare])} has {count(least, 'row')}: one more error "
            f"there changes its recall by {100 / max(least, 1):.0f} %.",
        )
    risk, seldom = judged_by_risk(model), _rarest_in_predictions(model)
    if least < _RARE * n / len(counts) and (risk or not seldom):
        accuracy, baseline = model.scores["accuracy"], model.scores.baselines["accuracy"]
        settings = settings_for_rare_classes(model.outcome, len(counts))
        if risk:
            advice = f" {seldom}For decisions, consider {' or '.join(settings)}."
        elif settings:
            advice = "" if is_good(model) else f" {_remedy(model)}"
        else:
            weighted = model.outcome.weighted
            advice = " The classes were weighted." if weighted else " The threshold was set for it."
        judge = "log loss and ROC AUC" if risk else f"the {SCORES[headline_key(model)].name}"
        yield note(
            "Unequal classes",
            f"Always predicting the largest class has accuracy {score(baseline, 'accuracy')}, "
            f"this model {score(accuracy, 'accuracy')}; judge it by {judge}.{advice}",
        )


def _rounding(certificate: Certificate | None) -> Iterator[Caution]:
    if certificate is None:
        return
    titles = {
        "differs": "Outputs differ from refits",
        "cannot tell": "Outputs without certain digits",
    }
    harmless = certificate.verdict == "differs" and certificate.relative <= _HARMLESS
    if certificate.verdict in titles:
        level, then = (note, "No digit that is shown changes.") if harmless else (serious, _MILDER)
        yield level(titles[certificate.verdict], f"{sentence(str(certificate))}. {then}")


def _data(model: Reported, steps: list[str], notes: Sequence[str]) -> Iterator[Caution]:
    if steps:
        yield note(
            "Preprocessing saw all rows",
            f"The {'step' if len(steps) == 1 else 'steps'} before the model "
            f"({', '.join(steps)}) also learned from the row that is left out. For scaling and "
            "filling gaps this is harmless; for steps that look at the target it is not.",
        )
    n = model.n_samples
    if model.n < n:
        yield note(
            "Rows of weight zero",
            f"{n - model.n} of {n} rows take no part in the fit or in the scores here.",
        )
    table = model.features.preprocessor
    topics = {with_advice(each): each.topic for each in (remarks_in(table) if table else ())}
    for remark in notes:
        topic = topics.get(remark, "")
        if topic != "repeated" or not model.fitted.units.grouped:
            level = serious if topic in GRAVE else note
            yield level("Columns", f"{sentence(remark.rstrip('.'))}.")
