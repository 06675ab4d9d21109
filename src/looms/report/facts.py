"""Facts of a fitted model, each gathered once: what page, card, JSON and terminal print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from looms._checks import label_array, value_numbers
from looms._typing import AnyArray, Array, Matrix
from looms._version import __version__
from looms._words import count, row_name
from looms.assessment._result import Assessment
from looms.blocks import rows_in_memory
from looms.criteria import WMW, as_criterion
from looms.diagnostics import case_deletion, permutation_test
from looms.diagnostics._case_deletion import CaseDeletion
from looms.diagnostics._permutation import PermutationTest
from looms.duplicates import duplicate_groups
from looms.estimators._base import name_of
from looms.estimators._warnings import warn_of_order
from looms.fitted._certificate import Certificate, certified
from looms.fitted._fitted import Fitted
from looms.report._cautions import cautions_of_report, remarks_on_fit
from looms.report._chosen import candidates, chosen
from looms.report._samples import groups_left_out, samples
from looms.report.displays.classes import ReliabilityDisplay, probabilities_of
from looms.report.displays.effects import EffectDisplay, value_text
from looms.report.displays.features import ImportanceDisplay
from looms.report.model import Reported, model_of, relevances
from looms.report.overview import overview, text_of
from looms.report.scores import brier, headline, held_out, outer, recall_by_class
from looms.report.text import Caution, clean, marked_title, plain
from looms.tables import TablePreprocessor
from looms.tables._preprocessor import matrix_of

#: Version of summary.schema.json; it increases if a key changes its meaning or is removed.
SCHEMA = 5
#: Most samples for which the effect of each is computed: n³ flops and some n×n arrays. On m
#: landmarks n m² counts. So it does for refits of a certificate.
MOST_DELETIONS = 1500
#: Most samples for which the targets are permuted, and how often: a third of a second.
MOST_PERMUTED, _PERMUTATIONS = 200, 199
#: Columns whose effects are drawn, the leading ones, and numbers of values and samples of each.
_MOST_EFFECTS, _VALUES, _SAMPLES = 4, 10, 100
#: Flops of a pair of samples, at least.
_LEAST_ORDER = 8
#: Difference of rows from those of the fit, by the largest number, that is rounding.
_ROUNDING = 1e-9
#: Largest numbers of rows in the tables.
MOST_CLASSES, MOST_CANDIDATES, MOST_FEATURES = 30, 50, 60


def summary(
    estimator: Any,
    *,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    assessment: Assessment | None = None,
    title: str | None = None,
    notes: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Everything a report says about a fitted model, as a dict that JSON can hold.

    Printing it shows the candidates, the one that was chosen, the scores and the leading columns.

    Parameters
    ----------
    estimator : fitted looms model, or pipeline that ends in one
    X : the training samples, default=None
        The index of a data frame names the samples; otherwise they are numbered from 0.
    y : the training targets, default=None
        The name of a series is the name of the target; None for that of the fit.
    groups : the labels of the groups that the model was fitted with, default=None
        They name the groups; otherwise each is named after its first sample.
    assessment : Assessment, default=None
        Result of `looms.assess`: the outer estimate, which is not optimistic.
    title : str, default=None
    notes : sequence of str, default=None
        Remarks on the data to add to the cautions; None for those of a
        `looms.tables.TablePreprocessor` on its columns.

    Returns
    -------
    summary : dict
        Numbers that are not finite are None, and so is what the model does not have. Its keys,
        which `looms.report.summary_schema` describes, are ``schema``, ``title``, ``date``,
        ``looms_version``, ``task``; the ``data``; what was ``asked``; what was ``chosen`` from the
        ``candidates``, ``n_candidates`` in all, by which ``loss``; ``loo``, scores of held-out
        predictions; the ``assessment`` by outer splits; the ``headline``; the ``permutation`` test
        of few rows; the ``features`` that matter, and ``effects`` of the leading ones; the
        ``samples`` and ``groups`` that matter; the ``certificate`` of held-out outputs;
        ``cautions``.

    Raises
    ------
    TypeError
        If the estimator contains no looms model, or the assessment is of another kind of task.
    ValueError
        If ``X``, ``y`` or ``groups`` are not those of the fit, or in another order.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> from looms.report import summary
    >>> data = load_iris(as_frame=True)
    >>> fit = summary(KernelClassifier().fit(data.data, data.target), y=data.target)
    >>> fit["task"], fit["data"]["n_samples"], fit["data"]["target"]
    ('classification', 150, 'target')
    """
    return Facts(estimator, X, y, groups, assessment, title, notes).summary


class Summary(dict[str, Any]):
    """Everything a report says about a fitted model; printing it shows the most important.

    Parameters
    ----------
    values : dict
        As of `summary`.
    overview : str
        Candidates, the one that was chosen, scores and leading columns, as ``looms fit`` prints
        them.
    """

    def __init__(self, values: dict[str, Any], overview: str) -> None:
        super().__init__(values)
        self._overview = overview

    def __str__(self) -> str:
        return self._overview


def summary_schema() -> dict[str, Any]:
    """JSON schema of `looms.report.summary`, draft 2020-12.

    Returns
    -------
    schema : dict
        A description of every key. To validate, use a package such as jsonschema.

    Examples
    --------
    >>> from looms.report import summary_schema
    >>> summary_schema()["properties"]["task"]
    {'enum': ['classification', 'regression']}
    """
    text = files("looms.report").joinpath("summary.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@dataclass(frozen=True, eq=False)
class Facts:
    """A fitted model and all that is told about it, for the arguments of `summary`.

    Each fact is computed when it is first asked for, and kept. ``command`` is
    that of a shell which fitted the model.
    """

    estimator: Any
    X: Any = None
    y: Any = None
    groups: Any = None
    assessment: Assessment | None = None
    title: str | None = None
    notes: Sequence[str] | None = None
    command: str | None = None

    def __post_init__(self) -> None:
        """Refuse data, or an assessment, that cannot be those of the model."""
        n, classification = self.model.n_samples, self.model.outcome.decides
        for name in ("X", "y", "groups"):
            values = getattr(self, name)
            if values is None:
                continue
            n_rows = values.shape[0] if hasattr(values, "shape") else len(values)
            if n_rows != n:
                raise ValueError(
                    f"{name} has {n_rows} rows, but the model was fitted to {n}: give the "
                    f"{name} that it was fitted to."
                )
        self._check_rows()
        warn_of_order(X=self.X, y=self.y, groups=self.groups)
        given = self.assessment
        if not isinstance(given, Assessment | None):
            raise TypeError(
                f"assessment must be a result of looms.assess, got {type(given).__name__}."
            )
        if given is not None and given.classification not in (None, classification):
            kinds = {True: "a classifier", False: "a regressor"}
            raise TypeError(
                f"The assessment is of {kinds[not classification]}, but the model is "
                f"{kinds[classification]}: give the assessment of the same estimator."
            )

    def _check_rows(self) -> None:
        """Refuse rows, targets or groups other than those of the fit, or in another order."""
        firsts = {}
        X = self.X
        fitted = self.model.rows
        if self.y is not None:
            firsts["y"] = _first_difference(np.asarray(self.y), self.model.fitted.rows.y)
        clusters = self.model.fitted.units.clusters
        if self.groups is not None and self.model.fitted.units.grouped:
            own = value_numbers(label_array(self.groups))
            firsts["groups"] = _first_difference(_first_rows(own), _first_rows(clusters))
        before = [step for _, step in self.model.steps]
        # Of others fit_transform may differ from transform.
        prepares = all(isinstance(step, TablePreprocessor) for step in before)
        if X is not None and fitted is not None and prepares and getattr(X, "ndim", 2) == 2:
            for step in before:
                X = matrix_of(step, X)
            firsts["X"] = _first_difference(rows_in_memory(X), fitted)
        for name, row in firsts.items():
            if row is not None:
                where = row_name(getattr(self, name), row)
                raise ValueError(
                    f"{name} is not that of the fit, first in {where}: give the {name} that the "
                    "model was fitted to, in the same order."
                )

    @cached_property
    def model(self) -> Reported:
        """The model in the estimator."""
        model = model_of(self.estimator)
        if self.y is not None:
            name = name_of(self.y)
            model.target = None if name is None else clean(name)
        return model

    @cached_property
    def names(self) -> list[str]:
        """Names of the samples, from the index of a data frame if any."""
        if self._index is None:
            return list(map(str, range(self.model.n_samples)))
        return [clean(name) for name in self._index.tolist()]

    @property
    def named_by(self) -> str:
        """Where the names of the samples come from, as a sentence."""
        if self._index is None:
            return "Rows are numbered from 0, in the order of training."
        name = self._index.name
        how = "as in the index" if name is None else f"by their {clean(name)}"
        return f"Rows are called {how}."

    @property
    def _index(self) -> Any:
        """Index of a data frame; None for other samples (a list has a method of that name)."""
        index = getattr(self.X, "index", None)
        return index if hasattr(index, "tolist") else None

    @property
    def on_columns(self) -> Sequence[str]:
        """Remarks on the data."""
        if self.notes is not None:
            return self.notes
        made = (getattr(step, "remarks_", ()) for _, step in self.model.steps)
        return [remark for remarks in made for remark in remarks]

    @property
    def held_steps(self) -> list[str]:
        """Names of the steps before the model whose fit included the rows that are scored."""
        models = () if self.model.nested is None else self.model.nested.models
        anew = any(isinstance(model, Fitted) for model in models)
        fitted_anew = self.model.whole.preprocessor_ if anew else None
        return [clean(name) for name, step in self.model.steps if step is not fitted_anew]

    @cached_property
    def importance(self) -> ImportanceDisplay | None:
        """Importance of the columns; None for a kernel matrix, or if rows are not kept."""
        return None if self.model.table is None else ImportanceDisplay.compute(self.estimator)

    @cached_property
    def effects(self) -> list[EffectDisplay] | None:
        """Effects of the columns that lead by more than two standard errors; none if none does.

        None without importance, for spectra, and for several targets or classes, each of which has
        effects of its own.
        """
        found, one = self.importance, self.model.fitted.rows.targets[0].size == 1
        if found is None or found.along_numbers or not one or len(self.model.classes) > 2:
            return None
        leading = zip(found.names, found.value, found.standard_error, strict=True)
        names = [name for name, rise, error in leading if rise > 2 * error][:_MOST_EFFECTS]
        effect = partial(EffectDisplay.compute, n_values=_VALUES, n_samples=_SAMPLES)
        return [effect(self.estimator, name) for name in names]

    @cached_property
    def permuted(self) -> PermutationTest | None:
        """Test by permuted targets; None for many samples, or where it has no meaning."""
        with suppress(ValueError):
            if self.model.n <= MOST_PERMUTED:
                return permutation_test(self.model.whole, _PERMUTATIONS)
        return None

    @cached_property
    def deletion(self) -> CaseDeletion | None:
        """Effect of leaving out each sample, or group; None for many, or fewer than three.

        Of a stack with other members than kernels it is the effect on its kernels.
        """
        model, groups = self.model, self.groups
        flops = max(model.fitted.cost_of_refit, model.n**2 * _LEAST_ORDER)
        if model.rows is None or flops > MOST_DELETIONS**3 or model.fitted.closed is None:
            return None
        labels = model.fitted.units.clusters if groups is None else label_array(groups)
        if len(set(model.fitted.rows.own(labels).tolist())) < 3:
            return None
        criterion = model.fitted.closed.criterion_of_outputs
        if isinstance(as_criterion(criterion), WMW):
            criterion = "press"  # a criterion of pairs costs n² for each of the n samples
        deletion = case_deletion(model.fitted, groups=groups, criterion=criterion)
        if groups is not None:
            return deletion
        firsts = np.unique(deletion.group, return_index=True)[1]
        return replace(deletion, labels=np.array([self.names[k] for k in firsts]))

    @cached_property
    def probabilities(self) -> Array | None:
        """(n_samples, n_classes) of held-out outputs; None without a calibration."""
        return probabilities_of(self.model)

    @cached_property
    def reliability(self) -> ReliabilityDisplay | None:
        """Reliability of these probabilities, with intercept and slope of their calibration."""
        p = self.probabilities
        return None if p is None else ReliabilityDisplay.compute(self.estimator, probabilities=p)

    @cached_property
    def certified(self) -> Certificate | None:
        """Comparison with refits; None without kernels, or for many samples unless made before."""
        model = self.model
        made: Certificate | None = getattr(model.whole, "certificate_", None)
        if made or model.rows is None or not model.fitted.kernel_members:
            return made
        cheap = model.fitted.cost_of_refit <= MOST_DELETIONS**3
        return certified(model.fitted) if cheap else None

    @cached_property
    def remarks(self) -> list[Caution]:
        """Cautions about the fit alone, which cost as much as a fit."""
        return list(remarks_on_fit(self.model))

    @cached_property
    def loo(self) -> dict[str, Any]:
        """Scores of held-out predictions, and how these were made."""
        return held_out(self.model)

    @cached_property
    def summary(self) -> Summary:
        """The dict of `looms.report.summary`."""
        model, assessment = self.model, self.assessment
        task = "classification" if model.outcome.decides else "regression"
        title = self.title
        if title is None:
            title = task.capitalize() + (f" of {model.target}" if model.target is not None else "")
        parameters = model.whole.get_params(deep=False)
        if model.fitted.units.grouped:
            n_groups = int(model.fitted.units.clusters.max()) + 1
            parameters[model.fitted.units.together] = (
                f"{n_groups} of {count(model.n_samples, 'row')}"
            )
        command = {} if self.command is None else {"Command": self.command}
        tried = candidates(model)
        loo = self.loo | {"calibration": self._calibration}
        if self.probabilities is not None and model.outcome.labeled:
            loo = loo | {"scores": [*loo["scores"], brier(model, self.probabilities)]}
        report: dict[str, Any] = plain(
            {
                "schema": SCHEMA,
                "title": clean(title),
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "looms_version": __version__,
                "task": task,
                "data": self._data,
                "asked": [
                    {"name": name, "value": _text(v)} for name, v in (command | parameters).items()
                ],
                "chosen": chosen(model),
                "candidates": sorted(tried, key=lambda one: one["loss"])[:MOST_CANDIDATES],
                "n_candidates": len(tried),
                "loss": {
                    "name": model.loss.name,
                    "key": model.loss.key,
                    "method": model.candidates_by,
                },
                "loo": loo,
                "assessment": None if assessment is None else outer(assessment),
                "headline": headline(model, assessment),
                "permutation": self._permutation,
                "features": self._features,
                "effects": self._effects,
                "samples": samples(model, self.deletion, self.names, self.named_by),
                "groups": groups_left_out(self.deletion),
                "certificate": self._certificate,
                "cautions": list(cautions_of_report(self)),
            }
        )
        data, parts = report["data"], (model, self.loo["confusion"], self.importance)
        size = f"{count(data['n_samples'], 'row')}, {count(data['n_columns'], 'column')}"
        titles = map(marked_title, report["cautions"])
        lines = [f"{report['title']}: {size}", *overview(*parts), *titles]
        return Summary(report, text_of(lines))

    @property
    def _calibration(self) -> dict[str, float] | None:
        """Intercept and slope of the probability of the positive one of two classes."""
        if self.reliability is None or len(self.model.classes) != 2:
            return None
        (found,) = self.reliability.recalibrations.values()
        return asdict(found)

    @property
    def _data(self) -> dict[str, Any]:
        model = self.model
        y = model.held_out.y
        n_replicates = None if model.rows is None else 0
        classes = []
        if model.table is not None:
            counts = np.bincount(duplicate_groups(model.table))
            n_replicates = counts[counts > 1].sum()
        if model.outcome.decides:
            n, recall = recall_by_class(model)
            largest = np.argsort(-n, kind="stable")[:MOST_CLASSES]
            classes = [{"label": model.classes[k], "n": n[k], "recall": recall[k]} for k in largest]
        return {
            "n_samples": model.n_samples,
            "n_landmarks": model.n_landmarks,
            "n_features": model.fitted.n_features,
            "n_columns": len(model.features.columns),
            "named": model.features.named,
            "n_replicates": n_replicates,
            "n_weight_zero": model.n_samples - model.n,
            "steps": [clean(name) for name, _ in model.steps],
            "target": model.target,
            "n_targets": 1 if y.ndim == 1 or model.outcome.decides else y.shape[1],
            "classes": classes,
            "n_classes": len(model.classes),
        }

    @property
    def _features(self) -> dict[str, Any] | None:
        importance, relevance = self.importance, relevances(self.model)
        columns = self.model.features.columns
        shares = dict.fromkeys(columns, np.nan)
        if relevance is not None:
            shares = {name: relevance[features].sum() for name, features in columns.items()}
        if importance is not None:
            press = importance.press if importance.press > 0 else np.nan
            names, values = importance.names, [importance.value, importance.standard_error]
            values += [values[0] / press, values[1] / press]
        elif relevance is not None:
            names = sorted(columns, key=lambda name: -shares[name])
            values = [np.full(len(names), np.nan)] * 4
        else:
            return None
        keys = "name", "importance", "standard_error", "relative", "relative_error", "relevance"
        cells = zip(names, *values, (shares[name] for name in names), strict=True)
        return {
            "rows": [dict(zip(keys, row, strict=True)) for row in cells][:MOST_FEATURES],
            "n_features": len(columns),
            "n_samples": importance.n_samples if importance else self.model.n_landmarks or 0,
            "n_repeats": importance.n_repeats if importance else 0,
        }

    @property
    def _effects(self) -> list[dict[str, Any]] | None:
        if self.effects is None:
            return None
        names = "column", "mean_of", "n_samples", "values", "mean", "standard_error"
        effects = [{name: getattr(effect, name) for name in names} for effect in self.effects]
        for one in effects:
            if one["values"].dtype.kind == "M":
                one["values"] = [*map(value_text, one["values"])]
        return effects

    @property
    def _permutation(self) -> dict[str, Any] | None:
        test = self.permuted
        if test is None:
            return None
        values = {"p_value": test.p_value, "n_permutations": len(test.random)}
        return values | {"permuted": test.permuted}

    @property
    def _certificate(self) -> dict[str, Any] | None:
        if self.certified is None:
            return None
        names = ("difference", "relative", "bound", "verdict", "holds", "condition", "solver")
        values = {name: getattr(self.certified, name) for name in names}
        return {"n_rows": len(self.certified.rows), **values}


def _first_rows(numbers: AnyArray) -> AnyArray:
    """(n,) first row with the number of each row."""
    _, first, number = np.unique(numbers, return_index=True, return_inverse=True)
    return np.asarray(first[number])


def _first_difference(given: Any, fitted: AnyArray | Matrix) -> int | None:
    """The first row that differs from that of the fit by more than rounding; None for none."""
    if fitted.ndim == 1 and given.shape == (len(fitted), 1):
        given = np.ravel(given)
    if given.shape != fitted.shape:
        return 0
    if fitted.dtype.kind != "f":  # labels
        differs = np.asarray(given, dtype=object) != fitted.astype(object)
        rows = np.flatnonzero(differs)
    elif issparse(fitted):
        away = abs(csr_array(given) - fitted)
        largest = abs(fitted).max(axis=0).toarray().ravel()
        places = away.tocoo()
        rows = np.unique(places.row[places.data > _ROUNDING * largest[places.col]])
    else:
        away = np.abs(np.asarray(given, dtype=float) - fitted)
        differs = away > _ROUNDING * np.abs(fitted).max(axis=0)
        rows = np.flatnonzero(differs.reshape(len(differs), -1).any(axis=1))
    return int(rows[0]) if len(rows) else None


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return clean(value if isinstance(value, str) else repr(value))
