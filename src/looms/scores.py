"""Scores of held-out predictions, with standard errors.

Held-out outputs are biased away from the class of their own row, and more so the larger the ridge.
So on pure noise their accuracy and the area under their ROC curve differ from chance. These
scores compare pairs of rows of different classes, each pair under a model trained on neither
row [docs/references.md, Pairs].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from looms import _html
from looms._checks import check_share
from looms._optional import require
from looms._scores import ValuesAndErrors, intervals_of, over_training_draws, scale_of
from looms._typing import AnyArray, Array
from looms._words import aligned, count, interval_text, score_text
from looms.calibration._recalibration import recalibration
from looms.held_out import HeldOut
from looms.lssvm._system import targets_as_columns
from looms.lssvm.left_out import LeftOut
from looms.selection._decisions import Decisions, Rule
from looms.selection._nested import Nested
from looms.units import Units, of_one_size

__all__ = ["Scores"]

_PAIRS = 1024  # that are held out at once
_OF_CALIBRATION = ("intercept", "intercept_error", "slope", "slope_error")


@dataclass(frozen=True, eq=False, repr=False)
class WithoutUnits:
    """Models without each unit, and what they leave of the rows that they are without.

    Attributes
    ----------
    left_out : the models, a `LeftOut` for new rows.
    units : rows that they are without.
    residuals : (n,) or (n, t) target of each row less its output by the model without its unit, on
        the scale of that model.
    tie : difference up to which outputs are equal up to rounding, relative to the largest target.
    features : rows of the fit whose kernel values samples have; None if they have features.
    tables : fitted values of models whose columns were prepared anew, so that they take tables.
    """

    left_out: Any
    units: Units
    residuals: Array
    tie: float
    features: AnyArray | None = None
    tables: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class ScoresOf:
    """What scores of rows are made of, beside their predictions and decisions.

    Attributes
    ----------
    outcome : of the targets, as of `looms.fitted`.
    outputs : (n_repetitions, m) or (n_repetitions, m, t), as of its ``scores``.
    together : (m,) integers, equal for rows that count as one draw.
    compared : (m, t) values by which rows of the same ``fold``, (m,), are compared for areas.
    draws : ratio and variance of `looms._scores.over_training_draws`.
    """

    outcome: Any
    outputs: Array
    together: AnyArray
    compared: Array
    fold: AnyArray
    draws: tuple[float, float]


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Mapping[str, float]):
    """Scores of held-out predictions: a mapping from their names to their values.

    A model's ``evaluate`` returns them. As in scikit-learn, scores are better when greater, losses
    and errors when smaller. They hold the models without each unit, for intervals and sets, which
    in closed form are n² numbers; pickles and files do not.

    Attributes
    ----------
    with_errors : value and standard error by name.
    kind : how the predictions were held out, in words.
    optimistic : True if the model was tuned on the rows that are scored.
    predictions : held-out predictions of all rows, before the threshold, with weights in scores.
        A row of weight zero as given, which the model was not trained on, has its ordinary output.
    rows : (m,) the rows that are scored: those of positive weight, but for rows before the first
        of windows that earlier rows test.
    n_passes : number of times that each row was held out; scores are means over the passes.
    decisions : ``decisions.probabilities``, (m, n_classes), and ``decisions.predicted``, (m,) the
        index of the class, of these rows, from models trained without each; None for regression.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from looms import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> scores = KernelRegressor("linear", mu=0.1).fit(X, y).evaluate()
    >>> scores.kind, scores.optimistic
    ('leave-one-out', False)
    >>> scores
    442 rows, leave-one-out
            value     s.e.      95 % interval   baseline
    rmse    74.92     1.89     71.21 to 78.62      77.01
    mae     64.06     1.85     60.43 to 67.68      65.04
    r2     0.0535   0.0030   0.0476 to 0.0595     0.0000
    """

    with_errors: ValuesAndErrors
    kind: str
    optimistic: bool
    predictions: HeldOut
    rows: AnyArray
    decisions: Decisions | None
    _baselines: dict[str, float]
    #: Choices without each unit, where the models are not those of the closed forms.
    _nested: Nested | None
    n_passes: int = 1
    #: Models without each unit, for intervals and sets; neither pickled nor saved.
    _without: WithoutUnits | None = None
    #: Of what the scores of some of the rows are made again.
    _made_of: ScoresOf | None = None

    def __getstate__(self) -> dict[str, Any]:
        """State without the models, of n² numbers in closed form."""
        return vars(self) | {"_without": None}

    def __getitem__(self, name: str) -> float:
        return self.with_errors[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.with_errors)

    def __len__(self) -> int:
        return len(self.with_errors)

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard errors over draws of the rows, or groups: of those that are scored, and of those
        that the models were trained on; NaN for none.

        The second are those of the model, or of its kernels, at the values that were selected: a
        jackknife of the leave-one-out error [docs/references.md, Standard errors]. Of windows of
        time, more than 5000 rows and models without a kernel they are not counted. Of hinge losses,
        whose outputs change much with a row, they are up to twice too large.
        """
        return {name: error for name, (_, error) in self.with_errors.items()}

    def intervals(self, confidence_level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Confidence intervals: value ± z s.e. with a quantile z of the normal distribution.

        Those of shares and areas end at 0 and 1, those of losses and errors at 0.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Share of tables, with other rows to train on and to score, in which the score of new
            rows is inside: above 0 and below 1. `standard_errors` says what they count.

        Returns
        -------
        intervals : dict of str to (low, high)

        Raises
        ------
        ValueError
            If the confidence level is out of range.
        """
        check_share(confidence_level, "confidence_level")
        return intervals_of(self.with_errors, confidence_level)

    @property
    def baselines(self) -> dict[str, float]:
        """The same scores without any columns, by the classes or numbers of these rows alone.

        In windows that earlier rows test they are those of the rows before each window. They are
        those of the largest class for all rows, of the same output for all, and of the
        shares of the classes as probabilities; of the mean and, for "mae", of the median. Other
        scores than those of `evaluate` have none.
        """
        return {name: self._baselines[name] for name in self if name in self._baselines}

    def by(self, labels: Any) -> Any:
        """The scores of `evaluate` in each subgroup of the rows.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Subgroup of each row of the fit, such as a column of its table; missing is one, too.

        Returns
        -------
        scores : pandas.DataFrame
            A row for each subgroup by its label, those of categories in their order. ``n_rows`` are
            of positive weight; of two classes ``n_events`` are of the positive one. Each score has
            a column, and another, such as ``log_loss_error``, with its standard error. Of two
            classes with probabilities, ``calibration_intercept`` and ``calibration_slope`` are of
            `looms.calibration.recalibration`, for the positive class.

            ROC areas compare only rows of the subgroup. Of models tuned in folds these are also of
            one fold; other rows are compared by their probabilities, pooled over the models without
            them, by outputs where there are none. On pure noise such an area is 0.46 to 0.53,
            and that of all rows, by pairs, 0.50. Areas and balanced accuracies are NaN for rows of
            one class, and areas where no rows of different classes meet; errors are NaN for rows of
            one group, or window of time.

        Raises
        ------
        ValueError
            If there is not one label for each row of the fit, such as for the name of a column.
        TypeError
            For the scores of a `looms.NonconformityClassifier`.
        ImportError
            If pandas is not installed.

        Notes
        -----
        Of many small subgroups some differ by chance: compare differences with their standard
        errors.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from looms import KernelClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = KernelClassifier("normalized_linear", mu=1e-3).fit(X, y)
        >>> scores = model.evaluate().by(np.where(X[:, 0] < 14, "small", "large"))
        >>> scores[["n_rows", "n_events", "log_loss", "log_loss_error"]].round(3)
               n_rows  n_events  log_loss  log_loss_error
        large     232        52     0.332           0.046
        small     337       305     0.148           0.020
        """
        pandas: Any = require("pandas", "Scores by subgroup")
        if self._made_of is None:
            raise TypeError("Scores of this model cannot be made again for some of the rows.")
        if isinstance(labels, str):
            raise ValueError(
                f"by takes labels of the rows, no name of a column: table[{labels!r}]."
            )
        n, is_list = len(self.predictions.y), isinstance(labels, list | tuple)
        shape = (len(labels),) if is_list else np.shape(labels)
        if shape != (n,):
            raise ValueError(
                f"labels must be one column, with a label for each of {n} rows of the fit, but "
                f"have shape {shape}."
            )
        own = pandas.Series(labels).reset_index(drop=True).iloc[self.rows].reset_index(drop=True)
        places = pandas.Series(np.arange(len(own)))
        groups = places.groupby(own, observed=True, dropna=False)
        rows = {label: self._among(inside.to_numpy()) for label, inside in groups}
        index = pandas.Index(rows, name=own.name, tupleize_cols=False)
        return pandas.DataFrame(list(rows.values()), index)

    def _among(self, inside: AnyArray) -> dict[str, float]:
        """Number of rows and events, and scores with their errors, of some of the scored rows."""
        assert self._made_of is not None
        outcome, fold = self._made_of.outcome, self._made_of.fold[inside]
        y, _, weight = (each[self.rows[inside]] for each in self.predictions)
        together = np.unique(self._made_of.together[inside], return_inverse=True)[1]
        counts, made, one_class = {"n_rows": len(inside)}, None, False
        calibration: dict[str, float] = {}
        if self.decisions is not None:
            decisions = self.decisions.among(inside)
            codes, Y = outcome.codes(y), targets_as_columns(y)
            one_class = len(np.unique(codes)) == 1
            if len(outcome.classes) == 2:
                events = codes != outcome.positive_first
                counts["n_events"] = int(events.sum())
                if decisions.probabilities is not None:
                    p = decisions.probabilities[:, 1 - outcome.positive_first]
                    fitted = vars(recalibration(2 * events - 1, p, weight, together))
                    calibration = {f"calibration_{name}": fitted[name] for name in _OF_CALIBRATION}
            folds = [np.flatnonzero(fold == k) for k in np.unique(fold)]
            tie = None if self._nested is None else self._nested.tie
            values = self._made_of.compared[inside]
            made = decisions, outcome.area(Y, values, folds, [], [], weight, tie, together)
        scores = outcome.scores(y, self._made_of.outputs[:, inside], weight, together, made)
        scores = over_training_draws(scores, *self._made_of.draws)
        columns: dict[str, float] = {}
        for name, pair in scores.items():
            none = one_class and name in ("balanced_accuracy", "roc_auc")
            columns[name], columns[f"{name}_error"] = (np.nan, np.nan) if none else pair
        row = counts | columns | calibration
        if not together.any():  # one draw does not tell how far others are
            row |= dict.fromkeys((name for name in row if name.endswith("_error")), np.nan)
        return row

    def _table(self) -> tuple[str, list[list[str]]]:
        """Caption, and rows of cells, the headings first."""
        rows, baselines = [["", "value", "s.e.", "95 % interval", "baseline"]], self.baselines
        for name, ends in self.intervals().items():
            pair = self.with_errors[name]
            scale = scale_of(name, pair[0])
            cells = [score_text(each, scale) for each in (*pair, baselines.get(name, np.nan))]
            rows.append([name, *cells[:2], interval_text(*ends, scale), cells[2]])
        return f"{count(len(self.rows), 'row')}, {self.kind}", rows

    def __repr__(self) -> str:
        caption, rows = self._table()
        return "\n".join([caption, *aligned(rows)])

    def _repr_html_(self) -> str:
        caption, (head, *rows) = self._table()
        return _html.table(head, rows, caption)


def kind_of_units(units: Units, *, nested: bool = False, optimistic: bool = False) -> str:
    """How rows were held out, in words."""
    text = {"sample": "leave-one-out", "group": "leave-one-group-out"}.get(units.unit)
    if text is None:
        passes = len(units.passes)
        text = f"{f'{passes} × ' * (passes > 1)}{units.n_units // passes}-fold"
        text += " by windows of time" * units.windows
        if units.forward:
            text = f"{units.n_counted} windows of time, each by the rows before it"
        text += ", groups kept together" * (units.together == "groups")
    return f"{'nested ' * nested}{text}{', of the rows it was tuned on: optimistic' * optimistic}"


def kind_of_nested(nested: Nested, stacked: bool) -> str:
    """How model selection was repeated without the rows that are scored, in words."""
    if nested.whole:
        return kind_of_units(nested.units, nested=True)
    verb = "weighted" if stacked else "compared"
    return f"{kind_of_units(nested.units)}, candidates {verb} on the other folds"


def held_out_decisions(
    left_out: LeftOut,
    units: Units,
    weight: Array,
    rule: Rule,
    shape: tuple[int, ...],
    outcome: Any,
) -> tuple[Decisions, tuple[float, Array] | None]:
    """Decisions of a model on rows that it was not trained on, and the area under its ROC curve.

    Parameters
    ----------
    left_out : models without any units.
    units : rows that are held out. With one repetition, pairs of units with different classes are
        held out for the area, unless units are so large that as many pairs of rows meet within.
    weight : (n,) weights for the area.
    rule : of the model.
    shape : (n,) or (n, t), of the targets as the threshold takes them.
    outcome : of the targets, as of `looms.fitted`.

    Returns
    -------
    decisions, auc : as for `class_scores`; the area is a mean over passes over the rows, and None
        if the outcome has none.
    """
    Y, outputs, sets = left_out.y, left_out.outputs(units), list(units)
    pairs = outcome.pairs(Y, units.number[0]) if units.shape[0] == 1 else []
    rows_of_pairs = [np.concatenate([sets[g], sets[h]]) for g, h in pairs]
    pair_outputs: list[Array] = [np.empty(0)] * len(pairs)
    for some, rows in of_one_size(rows_of_pairs, _PAIRS):
        for k, f in zip(some.tolist(), left_out.of_own(rows), strict=True):
            pair_outputs[k] = f
    in_pairs = np.zeros(len(Y), dtype=bool)
    for S in rows_of_pairs:
        in_pairs[S] = True
    held_out = list(zip(rows_of_pairs, pair_outputs, strict=True))
    for f in outputs:
        alone = np.flatnonzero(np.isfinite(f[:, 0]) & ~in_pairs)
        held_out.append((alone, f[alone]))
    rows = np.concatenate([S for S, _ in held_out])
    f = np.concatenate([values for _, values in held_out]).reshape(len(rows), *shape[1:])
    decisions = outcome.decisions([outcome.decided(rows, f, rule)], Y.reshape(shape))
    areas = []
    for r, tested in units.passes:
        values = np.full(Y.shape, np.nan)
        values[tested] = outputs[r, tested]
        members = zip(sets, units.repetition, np.isin(units.repetition, r), strict=True)
        own = [G[units.tested[k, G]] for G, k, member in members if member]
        of_pass = Y, values, own, pairs, pair_outputs, weight, rule.tie
        area_of_pass = outcome.area(*of_pass, units.scored_together)
        if area_of_pass is None:
            return decisions, None
        areas.append(area_of_pass)
    known = [each for each in areas if np.isfinite(each[0])]
    if not known:
        return decisions, areas[0]
    area = float(np.mean([value for value, _ in known]))
    return decisions, (area, np.mean([deviations for _, deviations in known], axis=0))


def decisions_within(
    outcome: Any, held_out: HeldOut, units: Units, rule: Rule
) -> tuple[Decisions, tuple[float, Array] | None]:
    """Decisions on held-out outputs, and the area under the ROC curve that compares rows of one
    fold; NaN if no classes meet in a fold.

    The units test each row once; single rows and groups are no folds.
    """
    decided = outcome.decided(np.arange(len(held_out.y)), held_out.outputs, rule)
    y, f, weight = (targets_as_columns(each) for each in held_out)
    sets = units.tested_by if units.in_folds else []
    area = outcome.area(y, f, sets, [], [], weight[:, 0], rule.tie, units.scored_together)
    return outcome.decisions([decided], held_out.y), area
