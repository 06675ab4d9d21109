"""Models that are scored by held-out predictions: `evaluate`, and what it keeps."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from looms._checks import check_flag
from looms._classes import class_indices
from looms._scores import ValuesAndErrors, number_scores
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.estimators._known_targets import KnownTargets
from looms.estimators._metrics import judged, scorers_of
from looms.held_out import HeldOut
from looms.kernels._samples import as_matrix
from looms.scores import Scores, kind_of_nested, kind_of_units
from looms.selection._decisions import Decisions
from looms.selection._nested import Nested
from looms.units import Units


class ScoredModel(BaseEstimator):  # type: ignore[misc]
    """Base class of the models with scores from held-out predictions."""

    held_out_: HeldOut
    #: Attributes that are made from others when they are needed; neither pickled nor saved.
    _made_again: ClassVar[tuple[str, ...]] = ()
    #: Predictions of candidates that the fit tuned without each fold, to compare them.
    _in_folds: Nested | None = None
    #: Unfitted model that repeats the choice of the fit without a fold.
    _unfitted: Any = None
    #: True if hyper-parameters were chosen for other rows, so that the choice cannot be repeated.
    _tuned_before: bool = False
    #: Wall time of the fit, in seconds.
    _fit_seconds: float = 0.0
    #: What `evaluate` returned, nested and not, until the next fit.
    _nested_scores: Scores | None = None
    _own_scores: Scores | None = None
    #: Name of the target of the fit, if it had one.
    _target: str | None = None

    def evaluate(self, *, nested: bool = True, scoring: Any = None) -> Scores:
        """Scores of held-out predictions, with standard errors.

        For classes "accuracy", "balanced_accuracy" (the mean over classes of the recall), "roc_auc"
        and, with probabilities, "log_loss"; for numbers "rmse", "mae" and "r2". As in scikit-learn,
        scores are better when greater, losses and errors when smaller.

        Parameters
        ----------
        nested : bool, default=True
            Whether model selection, in models of tables with the preparation of the columns, is
            repeated without the rows that are scored. It is repeated without each of ten folds
            (five for several candidates; fewer if the rarest class has fewer samples
            or groups), or without each of the three to ten folds of a splitter `cv`. That takes as
            many fits, which `n_jobs` or `joblib.parallel_config` runs in parallel. Of several
            candidates these are quicker than that to all rows: searches along gradients end on a
            quarter of the rows, and up to 2000 rows three folds compare the candidates, not five,
            unless `cv` has folds. Numbers of up to 2000 rows that the fit predicts with a held-out
            R² above 0.95 have ten folds, and searches on all rows: with hardly any noise, errors
            are of the rows and searches that a fold lacks. For a grid on
            all samples, each of them in one of three folds or more, it is repeated in closed form
            without every sample, group or fold; that takes four times the time of the grid, and 3
            n² numbers in memory for each class of several. With given hyper-parameters nothing was
            selected, and leave-one-out scores are unbiased. False scores the held-out predictions
            of the fit. If the model was tuned on them, these scores are optimistic, and
            ``optimistic`` is True.
        scoring : str, callable, list of these or dict, default=None
            Other scores than these, as in scikit-learn: names of scorers, callables ``(estimator,
            X, y)``, or a dict of these by name. They are computed once on all held-out predictions,
            and have no standard errors. For scikit-learn's scorers, greater is better. Callables
            get an estimator with the held-out predictions, for which ``X`` is a column of row
            numbers.

        Returns
        -------
        scores : looms.scores.Scores
            A mapping from names to values. The model keeps it until the next fit, also in its
            files. It also keeps the models of nested scores, for intervals and sets.

        Raises
        ------
        ValueError
            If there are too few rows or groups for outer folds, or model selection cannot be
            repeated, as after `without`, or by a model of a table that was copied or saved.

        Warns
        -----
        UserWarning
            If the fits will take more than a minute.

        Notes
        -----
        "roc_auc" compares two rows under one model that was trained on neither: leave-pair-out.
        Models tuned in folds, and models fitted to rows in blocks, compare rows within the
        folds. Without folds of their own, the last use ten folds for this, and for
        their other scores. "roc_auc" is then NaN if some class has fewer than three rows or groups.
        Without refits, a least-squares model takes n³ flops. It keeps the n² numbers that intervals
        need, but not in copies and files; a grid keeps as many for each of its points that was
        selected without some unit.
        """
        check_is_fitted(self)
        check_flag("nested", nested)
        scorers = scorers_of(scoring, self, self._y_of_fit, self.held_out_.sample_weight)
        with blas_threads(len(self.held_out_.y)):
            scores = self._nested_anew() if nested and self._was_tuned else self._scores_of_fit()
            self._keep_models(scores)
        return judged(scores, scorers, getattr(self, "classes_", None))

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        groups: Any = None,
        assessment: Any = None,
        title: str | None = None,
        notes: Sequence[str] | None = None,
    ) -> None:
        """Write a report on the fitted model: one HTML page that loads nothing else.

        Parameters
        ----------
        path : path
            The file to write; an existing one is replaced.
        X, y, groups, assessment, title, notes : see `looms.report.summary`
            The rows, targets and groups of the fit name the rows, the target and the groups.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed.

        See Also
        --------
        looms.report.write_html : The same for pipelines too.
        """
        from looms.report import write_html

        check_is_fitted(self)
        more = {"groups": groups, "assessment": assessment, "title": title, "notes": notes}
        write_html(self, path, X=X, y=y, **more)

    def save(self, path: str | os.PathLike[str], *, trusted: Collection[type | str] = ()) -> None:
        """Write the fitted model to a file, which `looms.load` and the command line read.

        Parameters
        ----------
        path : path
            The file to write; an existing one is replaced.
        trusted : collection of types or of their names, default=()
            As for `looms.model_files.save_model`.

        Raises
        ------
        looms.model_files.ModelFileError
            If the model holds something that a model file may not hold, such as a function, or the
            file cannot be written.
        ImportError
            If skops is not installed.

        Notes
        -----
        ``looms score`` finds the target by its name, which the model has of a pandas Series.
        """
        from looms.model_files import save_model

        check_is_fitted(self)
        metadata = {} if self._target is None else {"target": self._target}
        save_model(path, self, metadata, trusted=trusted)

    def _nested_anew(self) -> Scores:
        """Scores of choices that are repeated without each fold; those of before, if any."""
        if self._nested_scores is None:
            if self._tuned_before:
                raise ValueError(
                    "The hyper-parameters were tuned before rows were removed or added, and that "
                    "tuning cannot be repeated: fit the self-tuning model anew to these rows, or "
                    "use evaluate(nested=False), whose scores are optimistic."
                )
            if self._unfitted is None:
                raise ValueError(
                    "cv was an iterator of folds, and the fit has used it up: give a list, or use "
                    "evaluate(nested=False)."
                )
            self._nested_scores = self._scored(self._chosen_anew())
        return self._nested_scores

    def _scores_of_fit(self) -> Scores:
        """Scores of the held-out predictions of the fit; those of before, if any."""
        if self._own_scores is None:
            self._own_scores = self._scored(self._in_folds)
        return self._own_scores

    def _evaluation(self, method: str) -> Scores:
        """What `evaluate` returned, nested if it was; NotFittedError before that."""
        scores = self._nested_scores or self._own_scores
        if scores is None:
            raise NotFittedError(
                f"{method} uses the models of evaluate(): call that first, or "
                "evaluate(nested=False)."
            )
        return scores

    def _as_scores(
        self, pairs: ValuesAndErrors, decisions: Decisions | None, nested: Nested | None
    ) -> Scores:
        """Scores by name, with what they are of."""
        model, (y, outputs, weight) = self._kernel_model(), self.held_out_
        rows, outputs = np.flatnonzero(model.fit_weight_), outputs.copy()
        scored = nested.held_out if nested and not decisions else decisions
        if scored is not None:
            outputs[rows] = scored.outputs
        optimistic = nested is None and bool(self._was_tuned)
        if nested is None:
            units = model._units if model._scored_in is None else model._scored_in[0]
            kind = kind_of_units(units, optimistic=optimistic)
        else:
            stacked = getattr(model, "candidate_weights_", None) is not None
            units, kind = nested.units, kind_of_nested(nested, stacked)
        held_out, passes = HeldOut(y, outputs, weight), len(units.passes)
        return Scores(pairs, kind, optimistic, held_out, rows, decisions, nested, passes)

    def _checked_new_data(self, X: Any) -> Matrix:
        check_is_fitted(self)
        if isinstance(X, RowBlocks):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            return X
        X = validate_data(
            self, X, accept_sparse="csr", accept_large_sparse=False, dtype=np.float64, reset=False
        )
        return as_matrix(X)

    def _set_fitted(self, **attributes: Any) -> None:
        """Set fitted attributes, all at once: a fit that failed before changed none of them."""
        for name in (*self._made_again, "_nested_scores", "_own_scores"):
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._made_again}

    @abstractmethod
    def _scored(self, nested: Nested | None) -> Scores:
        """Scores of choices made without each row, or of the held-out predictions of the fit."""

    @property
    @abstractmethod
    def _was_tuned(self) -> bool:
        """True if hyper-parameters were chosen by the held-out predictions of the fit."""

    @property
    def _columns_anew(self) -> bool:
        """True if the columns were prepared anew without the rows that `evaluate` scored."""
        return False

    @property
    def _y_of_fit(self) -> AnyArray:
        """Targets of the fit as they were passed."""
        y, labels = self.held_out_.y, getattr(self, "classes_", None)
        return y if labels is None else np.asarray(labels[class_indices(y)])

    @abstractmethod
    def _keep_models(self, scores: Scores) -> None:
        """Keep in memory the models of some scores that neither pickles nor files hold."""

    @abstractmethod
    def _kernel_model(self) -> Any:
        """The kernel model that it is, or that it holds; NotFittedError if that is not made."""

    def _check_parameters(self) -> None:
        """ValueError or TypeError for parameters that no rows could mend."""

    @abstractmethod
    def _chosen_anew(self) -> Nested:
        """Predictions by models that were chosen without the rows; ValueError if too few."""

    def _holding_out(self, units: Units) -> Self:
        """An unfitted model with the same parameters, which is tuned by other units."""
        model: Self = clone(self).set_params(cv=units.codes)
        return model


class ScoredRegressor(KnownTargets, RegressorMixin, ScoredModel):  # type: ignore[misc]
    """Base class of the regressors with scores from held-out predictions."""

    def _scored(self, nested: Nested | None) -> Scores:
        model = self._kernel_model()
        train = np.flatnonzero(model.fit_weight_)
        y, _, weight = (each[train] for each in self.held_out_)
        outputs = nested.held_out.outputs[None] if nested else self._by_repetition()
        pairs = number_scores(y, outputs, weight, model._units.scored_together)
        return self._as_scores(pairs, None, nested)

    @abstractmethod
    def _by_repetition(self) -> Array:
        """Held-out predictions of the rows fitted, (n_repetitions, n) or (n_repetitions, n, t).

        NaN where a row is not tested.
        """


def name_of(y: Any) -> str | None:
    """Name of targets that are a series with one, or the one column of a frame."""
    columns = list(getattr(y, "columns", ()))
    name = getattr(y, "name", None) if getattr(y, "ndim", 1) == 1 else None
    name = columns[0] if len(columns) == 1 else name
    return None if name in (None, "") else str(name)


def check_parameters(model: ScoredModel) -> None:
    """ValueError or TypeError, as `fit` raises it, for parameters that no rows could mend."""
    model._check_parameters()


def scores_of(model: ScoredModel) -> Scores:
    """What `evaluate` returned, nested if it was; otherwise the scores that take no refits.

    Models for intervals are not made.
    """
    return model._nested_scores or model._scores_of_fit()
