"""Experiment: estimator, data, scores and splits of an assessment, as one value."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from inspect import signature
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state
from sklearn.utils.metaestimators import _safe_split

from looms._advice import setting
from looms._checks import (
    check_count,
    check_estimator,
    check_known,
    readable_table,
    squeeze_column,
    take_rows,
)
from looms._optional import require
from looms._recording import recorded_warnings
from looms._typing import AnyArray, Array
from looms.assessment._bootstrap632 import KNOWN, check_defined, no_information
from looms.assessment._content_key import content_key, package_versions
from looms.assessment._scoring import default_scoring, score_all
from looms.assessment._split_run import SplitResult, chosen_by, distinct, loo_scores, seeded
from looms.assessment._splits import WHOLE, Rows, Split, plan
from looms.assessment._store import FORMAT, Store, StoreError
from looms.duplicates import duplicate_groups, n_unexpected_duplicates, numbered
from looms.estimators import DuplicatesWarning
from looms.estimators._fit_routing import fit_arguments, fit_takes_weights, route
from looms.estimators._in_pipelines import parts_of
from looms.estimators._metrics import Scorer, scorers_of
from looms.estimators._targets import check_labels, check_numbers, order_of, plain_targets
from looms.estimators._warnings import level_of_user
from looms.folds import group_numbers, joined_groups

#: Treatment of rows that are equal in every feature: on any side of a split, or on the same one.
DUPLICATES = ("ignore", "group")
#: Parameters that do not change predictions.
_NO_MATTER = {"callback", "n_jobs", "verbose"}


@dataclass(frozen=True, eq=False)
class Experiment:
    """Estimator, data, weights, groups, scorers and splits.

    Attributes
    ----------
    estimator : unfitted estimator, never changed.
    X, y : all rows.
    weight : (n_samples,) weights for the fit and the scores, or None.
    scorers : scorers by name.
    splits : tuple of Split, in order.
    duplicates : one of `DUPLICATES`.
    groups : (n_samples,) number of the group that each row belongs to, for the fit, or None.
    units : (n_samples,) number of the unit that each row belongs to. A unit is on one side of
        every split: it joins groups, and duplicates.
    """

    estimator: Any
    X: Any
    y: Any
    weight: Array | None
    scorers: Mapping[str, Scorer]
    splits: tuple[Split, ...]
    duplicates: str
    groups: AnyArray | None
    units: AnyArray

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        n_splits: int | None = None,
        *,
        method: str = "shuffle",
        scoring: Any = None,
        sample_weight: Any = None,
        duplicates: str = "ignore",
        groups: Any = None,
        **design: Any,
    ) -> Self:
        """Experiment from the arguments of `assess`, which are checked."""
        X = readable_table(X)
        if sparse.issparse(X):
            X = X.tocsr()
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        check_estimator(estimator)
        y = plain_targets(y, is_classifier(estimator))
        check_consistent_length(X, y)
        if order_of(y) is not None and not hasattr(y, "iloc"):
            y = require("pandas", "Ordered classes").Series(y)
        if not hasattr(y, "iloc"):  # as scikit-learn selects rows
            y = np.asarray(y)
        if len(y) < 2:
            raise ValueError("An assessment needs two rows or more: one to test on.")
        if is_classifier(estimator):
            check_labels(y)
        elif is_regressor(estimator):
            check_numbers(y, "a classifier")
            y = y.astype(np.float64) if y.dtype == object else y  # decimals
        if np.asarray(y).dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_known(duplicates, "treatment of duplicates", DUPLICATES)
        weight = checked_weights(sample_weight, len(y))
        if scoring is None:
            stratified = groups is None and duplicates != "group" and method != "forward"
            scoring = default_scoring(estimator, y, stratified=stratified)
            scoring = [name for name in scoring if method != "bootstrap" or name in KNOWN]
        scorers = scorers_of(scoring, estimator, y)
        if method == "bootstrap":
            check_defined(scorers, y)
        units = group_numbers(groups, len(y))
        numbers = None if groups is None else units
        fit_arguments(estimator, sample_weight=weight, groups=numbers)  # or an error, before work
        if duplicates == "group":
            units = joined_groups(units, duplicate_groups(X))
        options = {"n_splits": n_splits, "stratified": bool(is_classifier(estimator)), **design}
        splits = plan(y, groups=units, method=method, **options)
        return cls(estimator, X, y, weight, scorers, tuple(splits), duplicates, numbers, units)

    def warn_of_duplicates(self) -> None:
        """Warn if splits may separate rows that are equal other than by chance."""
        if self.duplicates == "group":
            return
        X = numbered(self.X)
        groups = duplicate_groups(X)
        rows = np.arange(len(groups)) if self.weight is None else np.flatnonzero(self.weight > 0)
        # Duplicates of one group are on one side: each counts once.
        pairs = np.column_stack([self.units[rows], groups[rows]])
        rows = rows[np.unique(pairs, axis=0, return_index=True)[1]]
        if n_duplicates := n_unexpected_duplicates(X[rows], groups[rows]):
            warnings.warn(
                f"{n_duplicates} of {len(self.y)} rows are duplicates of other rows, equal in "
                "every feature. A split can put one in the training part and another in the test "
                "part, so the scores are optimistic. Drop them, or keep them on one side: "
                f"{setting('duplicates', 'group')}.",
                DuplicatesWarning,
                stacklevel=level_of_user(),
            )

    @property
    def repeats_rows(self) -> bool:
        """True if resamples of the bootstrap hold duplicates, for an estimator without weights."""
        return self.splits[0].method == "bootstrap" and not fit_takes_weights(self.estimator)

    def rows(self, split: Split) -> tuple[Rows, Rows]:
        """Rows that train and rows that test."""
        return split.rows(self.y, self.units)

    def run(self, split: Split) -> SplitResult:
        """Result of the whole selection on the training part, scored on the test part.

        An exception is recorded by type and message.
        """
        began = time.perf_counter()
        train, test = self.rows(split)
        w_train, w_test = take_rows(self.weight, train), take_rows(self.weight, test)
        if split.resamples and fit_takes_weights(self.estimator):
            # Who leaves a row out then leaves all its duplicates out.
            train, first, times = np.unique(train, return_index=True, return_counts=True)
            w_train = times * (1.0 if w_train is None else w_train[first])
        with recorded_warnings() as recorded:
            try:
                values = self._measured(split, train, w_train, test, w_test)
            except Exception as error:  # of any estimator; the other splits go on
                values = {"error": f"{type(error).__name__}: {error}"}
        if self.duplicates == "ignore":  # those among all rows were counted before
            recorded = [w for w in recorded if type(w) is not DuplicatesWarning]
        texts = distinct(f"{type(w).__name__}: {w}" for w in recorded)
        n_train, n_test, seconds = len(train), len(test), time.perf_counter() - began
        return SplitResult(split.index, n_train, n_test, warnings=texts, seconds=seconds, **values)

    def _measured(
        self, split: Split, train: Rows, w_train: Array | None, test: Rows, w_test: Array | None
    ) -> dict[str, Any]:
        model = seeded(clone(self.estimator), split.seed(1))
        X_train, y_train = _safe_split(model, self.X, self.y, train)
        X_test, y_test = _safe_split(model, self.X, self.y, test, train)
        if w_test is not None and not w_test.any():
            raise ValueError("No row of the test part has a positive weight.")
        groups = take_rows(self.groups, train)
        model.fit(X_train, y_train, **fit_arguments(model, sample_weight=w_train, groups=groups))
        parts = parts_of(model)
        fitted = parts.model
        values = {
            "scores": score_all(self.scorers, model, X_test, y_test, w_test),
            "loo_scores": {} if fitted is None else loo_scores(parts.last, self.scorers, w_train),
            "chosen": chosen_by(model, fitted),
        }
        if split.index == WHOLE:
            predicted = model.predict(X_test)
            values["no_information"] = no_information(self.scorers, y_test, predicted, w_test)
        elif split.resamples:
            values["predictions"] = tuple(np.asarray(model.predict(X_test)).tolist())
        return values

    def store(self, folder: Path, *, make: bool) -> Store | None:
        """Part of a store with these splits; None if it does not exist and is not made."""
        split = asdict(self.splits[0])
        design = {name: split[name] for name in ("method", "test_size", "stratified", "gap")}
        design["duplicates"] = self.duplicates
        try:  # all that results depend on, except the index of a split
            key = content_key(
                estimator=self.estimator,
                X=self.X,
                y=self.y,
                scorers=self.scorers,
                sample_weight=self.weight,
                groups=self.groups,
                route=route(self.estimator),
                design=design,
                format=FORMAT,
            )
        except TypeError as error:
            raise StoreError(folder, str(error).rstrip("."), "Assess without a store.") from error
        if not make and not (folder / key).is_dir():
            return None
        about = {
            "estimator": estimator_text(self.estimator),
            "shape": list(getattr(self.X, "shape", (len(self.y),))),
            "scores": list(self.scorers),
            "weighted": self.weight is not None,
            "grouped": self.groups is not None,
            **design,
        }
        return Store(folder, key, about, package_versions(self.estimator, self.scorers))


def checked_weights(sample_weight: Any, n_samples: int) -> Array | None:
    """Weights (n_samples,), or None.

    Raises
    ------
    ValueError
        If the weights are not one finite nonnegative number per sample, or all are zero.
    """
    if sample_weight is None:
        return None
    weight = squeeze_column(np.array(sample_weight, dtype=np.float64))
    if weight.shape != (n_samples,):
        raise ValueError(
            f"{setting('sample_weight')} must have one weight for each of the {n_samples} samples, "
            f"but has shape {weight.shape}."
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError(
            f"{setting('sample_weight')} must be finite and not negative, and not all zero."
        )
    return weight


def checked_seed(random_state: Any, store: str | os.PathLike[str] | None) -> int:
    """Integer seed; with a store it must be an integer already."""
    if isinstance(random_state, Integral):
        check_count(random_state, "random_state", 0)
        return int(random_state)
    if store is not None:
        raise ValueError(
            "A store needs an integer random_state, to find its splits again; got "
            f"{random_state!r}."
        )
    return int(check_random_state(random_state).randint(2**31 - 1))


def estimator_text(estimator: Any) -> str:
    """Estimator as one line of text; for a pipeline the step names, and the last step in full.

    Parameters that do not change its predictions are ignored.
    """
    if isinstance(estimator, Pipeline):
        *before, (_, last) = estimator.steps
        names = [name if isinstance(step, Pipeline) else _step_text(step) for name, step in before]
        return " → ".join([*names, estimator_text(last)])
    return " ".join(repr(_reset_parameters(estimator, _NO_MATTER)).split())


def estimator_key(estimator: Any) -> str | None:
    """Digest of an estimator by content, equal for those that differ only in what does not change
    predictions, and in seeds; None if some parameter has no content."""
    try:
        return content_key(estimator=_reset_parameters(estimator, {*_NO_MATTER, "random_state"}))
    except TypeError:
        return None


def _reset_parameters(estimator: Any, names: Collection[str]) -> Any:
    """The unfitted estimator with defaults for the parameters of these names."""
    reset = clone(estimator)
    parameters = {"": reset} | reset.get_params()
    for path in parameters:
        owner, _, name = path.rpartition("__")
        if name in names:
            default = signature(type(parameters[owner])).parameters[name].default
            reset.set_params(**{path: default})
    return reset


def _step_text(step: Any) -> str:
    return step if isinstance(step, str) else type(step).__name__
