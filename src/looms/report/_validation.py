"""Validation of a fitted model on rows from elsewhere: scores, calibration, decisions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from looms._advice import setting
from looms._checks import readable_table, take_rows
from looms._scores import SCORES, intervals_of
from looms._version import __version__
from looms._words import count
from looms.blocks import blocks_of, joined_rows
from looms.duplicates import duplicate_groups
from looms.estimators._in_pipelines import last_model
from looms.estimators._warnings import warn_of_order
from looms.fitted._scores import NewScores
from looms.report.displays.base import Display
from looms.report.displays.classes import DecisionCurveDisplay, ReliabilityDisplay
from looms.report.model import Reported, model_of
from looms.report.overview import TextTable, table_of_scores, text_of
from looms.report.page import write_validation
from looms.report.text import PlainValues, calibration_text, clean, percent, plain
from looms.tables import TablePreprocessor
from looms.tables._unseen import Note, UnseenValues

#: Remarks on what rows lack; the blank is for the name of the column.
NO_WEIGHTS = "no {}weights as in the fit, so all rows count the same"
NO_GROUPS = (
    "no {}groups as in the fit, so each row counts as one draw: standard errors are too small if "
    "some belong together"
)


def events_text(n: int, n_events: int | None, event: str | None) -> str:
    """Number of rows, and of two classes that of events with their share."""
    share = "" if n_events is None else f", {n_events} of {event} ({percent(n_events / n, 0)})"
    return count(n, "row") + share


class Validation(PlainValues):
    """Result of `validation`: a mapping, whose dict JSON can hold; printing shows it.

    Parameters
    ----------
    model : looms.report.model.Reported
    made : looms.fitted._scores.NewScores
        Scores of the rows, and what they are of.
    remarks : sequence of str
        On the rows, such as values that no row of the fit has.
    title : str or None

    Attributes
    ----------
    displays : dict of str to Display
        ``reliability`` and ``decisions`` of two classes with probabilities, both of which occur.
    calibration : list of str
        A line on the calibration of the same, with slope and intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelRegressor
    >>> from looms.report import validation
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> found = validation(KernelRegressor(mu=1e-6).fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> found["n_rows"], [row["key"] for row in found["scores"]]
    (30, ['rmse', 'mae', 'r2'])
    """

    def __init__(
        self, model: Reported, made: NewScores, remarks: Sequence[str], title: str | None
    ) -> None:
        self.displays: dict[str, Display] = {}
        weighted = made.weight > 0
        values, outputs, weight = (each[weighted] for each in made[:3])
        groups = take_rows(made.groups, weighted)
        n_events = n_fit_events = recalibration = None
        if len(model.classes) == 2:
            k = 0 if model.outcome.positive_first else 1
            event, known = (np.isin(values, model.outcome.classes[of]) for of in ([k], [0, 1]))
            n_events = int(event.sum())
            n_fit_events = int((model.fitted.rows.own(model.codes) == k).sum())
            if "log_loss" in made.scores and known.all() and 0 < n_events < len(event):
                outputs = model.fitted.predicted(outputs)
                p = model.outcome.probabilities(outputs, model.fitted.rule)[:, k]
                of_rows = {model.classes[k]: (event, p)}, weight, groups
                reliability = ReliabilityDisplay.of_columns(*of_rows)
                decisions = DecisionCurveDisplay.of_columns(*of_rows)
                self.displays = {"reliability": reliability, "decisions": decisions}
                recalibration = asdict(reliability.recalibrations[model.classes[k]])
        held_out, none = model.scores.with_errors, (np.nan, np.nan)
        ends, baselines = intervals_of(made.scores), made.baselines
        of_fit = model.scores.baselines
        rows = [
            {"key": key, "name": SCORES[key].name, "value": value, "standard_error": error}
            | dict(zip(("low", "high"), ends[key], strict=True))
            | dict(zip(("held_out", "held_out_error"), held_out.get(key, none), strict=True))
            | {"baseline": baselines.get(key), "held_out_baseline": of_fit.get(key)}
            for key, (value, error) in made.scores.items()
        ]
        facts = {
            "title": clean(title or f"Validation of {model.target or 'a model'}"),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "looms_version": __version__,
            "n_rows": int(weighted.sum()),
            "n_events": n_events,
            "event": None if n_events is None else model.classes[k],
            "n_fit": model.n,
            "n_fit_events": n_fit_events,
            "held_out": model.scores.kind,
            "scores": rows,
            "recalibration": recalibration,
            "remarks": list(remarks),
        }
        super().__init__(plain(facts))
        estimates = self["recalibration"]  # None for what is not finite
        self.calibration = [calibration_text(estimates)] if estimates else []
        sets = {"these rows": made.scores, "held out in the fit": held_out}
        more = {"baseline of the fit": of_fit}
        self._table = table_of_scores(sets, baselines, len(model.classes), **more)

    def __repr__(self) -> str:
        lines: list[str | TextTable] = [
            f"{self['title']}: {events_text(self['n_rows'], self['n_events'], self['event'])}",
            self._table,
            f"Held out in the fit: {self['held_out']} of "
            f"{events_text(self['n_fit'], self['n_fit_events'], self['event'])}",
        ]
        return text_of([*lines, *self.calibration, *self["remarks"]])

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the validation as one HTML page that loads nothing else.

        Parameters
        ----------
        path : path
            The file to write; an existing one is replaced.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed.
        """
        write_validation(self, self.displays, path)


def validation(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    title: str | None = None,
) -> Validation:
    """How well a fitted model predicts other rows, such as those of another hospital.

    Beside the scores are those of the held-out predictions of the fit; nested, if `evaluate` was
    called. For two classes with probabilities there are also the intercept and slope of their
    calibration, a reliability curve and a decision curve.

    Parameters
    ----------
    estimator : estimator
        A fitted looms model, or a pipeline that ends in one.
    X, y, sample_weight, groups : as for `looms.TabularClassifier.scores`
        Rows that the model was neither fitted to nor chosen by, and their targets.
    title : str, default=None
        Title of the page.

    Returns
    -------
    validation : Validation
        A mapping: ``n_rows``, and of two classes ``n_events``, of positive weight, beside ``n_fit``
        and ``n_fit_events``; ``scores`` with ``standard_error``, the 95 % interval from ``low`` to
        ``high``, and the ``baseline`` of these rows, and ``held_out`` and ``held_out_baseline`` of
        the fit, of the kind that the mapping has under this name; ``recalibration`` with ``slope``,
        ``intercept`` and ``constant``, as of `looms.calibration.recalibration`; ``remarks`` on
        rows that equal some of the fit, on weights or groups that only the fit had and, for models
        that prepare a table, on values that no row of the fit has. ``report(path)`` writes a page.

    Raises
    ------
    ValueError
        As for `looms.TabularClassifier.scores`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import KernelClassifier
    >>> from looms.report import validation
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier("normalized_linear", mu=1e-3).fit(X[::2], y[::2])
    >>> validation(model, X[1::2], y[1::2], title="Another hospital")
    Another hospital: 284 rows, 174 of 1 (61 %)
    <BLANKLINE>
                          accuracy   balanced accuracy   ROC AUC   log loss
    these rows              0.9014              0.8844    0.9633     0.2331
    ± s.e.                  0.0179              0.0205    0.0096     0.0280
    held out in the fit     0.9228              0.9095    0.9661     0.2070
    ± s.e.                  0.0161              0.0191    0.0157     0.0315
    baseline                0.6127              0.5000    0.5000     0.6675
    baseline of the fit     0.6421              0.5000    0.5000     0.6522
    <BLANKLINE>
    Held out in the fit: leave-one-out of 285 rows, 183 of 1 (64 %)
    Calibration slope 1.18 ± 0.13, intercept -0.25 ± 0.20
    """
    warn_of_order(X=X, y=y, sample_weight=sample_weight, groups=groups)
    model, last, remarks = model_of(estimator), last_model(estimator), list[str]()
    for _, step in model.steps:
        if isinstance(step, TablePreprocessor):
            unseen = UnseenValues(step)
            X = unseen.add(readable_table(X))
            remarks += [note.text for note in unseen.notes()]
        else:
            X = step.transform(X)
    matrix = last._prepared_model()._matrix(X)
    made, rows = last._scores_of_new(matrix, y, sample_weight, groups), model.fitted.rows
    if sample_weight is None and np.ptp(rows.own(rows.weight)):
        remarks.append(NO_WEIGHTS.format(""))
    if groups is None and rows.grouped:
        remarks.append(NO_GROUPS.format(""))
    remarks += [note.text for note in known_rows(last, matrix)]
    return Validation(model, made, remarks, title)


def known_rows(model: Any, matrix: Any) -> list[Note]:
    """Note on rows that equal some of the fit; none if these were in blocks."""
    if model.X_fit_ is None:
        return []
    known = model.fitted_.rows.own(model.X_fit_)

    def equal(rows: Any) -> Any:
        groups, n = duplicate_groups(joined_rows([known, rows])), known.shape[0]
        return np.isin(groups[n:], groups[:n])

    _, (found,) = blocks_of(matrix).sweep(lambda rows: ((), (equal(rows),)))
    text = (
        f"in {count(int(found.sum()), 'row')} of {len(found)} all features equal those of a "
        "training row: if they are the same rows, scores are optimistic; see "
        f"{setting('assess', text='looms.assess')}"
    )
    return [Note(text)] if found.any() else []
