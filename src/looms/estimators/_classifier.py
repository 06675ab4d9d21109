"""Base class of the kernel classifiers: fit, thresholds and probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from looms._checks import check_flag
from looms._classes import class_indices, class_targets, merge_ties, tie_width
from looms._scores import class_scores
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.calibration import fit_calibrator
from looms.calibration._calibrators import calibration_function, class_probabilities
from looms.conformal import prediction_sets
from looms.conformal._jackknife import required_rank
from looms.conformal._sets import class_margins
from looms.dask._predict import lazy_for_dask
from looms.estimators._callbacks import CallbackWatcher, with_callbacks
from looms.estimators._encoding import (
    check_threshold,
    class_weights,
    encoded,
    is_positive_first,
    threshold_and_loss,
)
from looms.estimators._folds import RowsOfFit
from looms.estimators._prevalence import ScoredClassifier
from looms.estimators._selecting import SelectingModel
from looms.estimators._warnings import (
    warn_of_missed_precision,
    warn_of_one_class,
    warn_of_order,
    warn_of_search,
)
from looms.held_out import HeldOut
from looms.scores import Scores, area_within, held_out_decisions
from looms.selection._candidates import HeldOutLoss
from looms.selection._decisions import Decided, Decisions, Rule
from looms.selection._nested import Nested


def _has_probabilities(classifier: Classifier) -> bool:
    # What is asked for may have changed since the fit.
    if vars(classifier).get("calibrator_", classifier.calibration) is None:
        raise AttributeError(
            "There are no probabilities with calibration=None; fit with calibration='sigmoid'."
        )
    return True


class Classifier(ScoredClassifier, SelectingModel):
    """Base class of the kernel classifiers."""

    classes_: AnyArray
    threshold_: float | Array
    threshold: Any
    calibration: str | None
    class_weight: Any
    pos_label: Any
    calibrator_: Any

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Tune the hyper-parameters that are not given, and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix. On
            landmarks it may also be a dask array or dataframe (then y, weights and groups may be
            dask collections too), a memory map or `looms.blocks.RowBlocks`: only the landmarks are
            kept.
        y : array-like of shape (n_samples,)
            Class of each sample.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights, in the fit and in the criterion; only their ratios count.
            A sample of weight zero takes no part in either but still gets an output in
            ``loo_``.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample, such as the patient that was measured; samples of a
            group are held out together.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.
        """
        self._check_parameters()
        warn_of_order(self.cv, X=X, y=y, sample_weight=sample_weight, groups=groups)
        X, y, weight = self._validated(X, y, sample_weight)
        classes, labels, targets = self._encoded(y, weight)
        fit_weight = weight * class_weights(self.class_weight, labels, classes, weight)
        watcher = CallbackWatcher(self, X, y, None if sample_weight is None else weight)
        weights = weight, fit_weight, fit_weight
        rows = RowsOfFit(X, y, targets, *weights, groups, True, self._loss_of(classes))
        with blas_threads(len(rows.train)):
            selection = self._selection_on(rows, watcher)
        loss, threshold, calibrator = selection.choice.loss
        rule = {"threshold_": threshold, "calibrator_": calibrator}
        fitted = {"classes_": classes, **rule, **selection.attributes()}
        self._set_fitted(_unfitted=self._for_evaluation(selection), **fitted)
        watcher.ends()
        warn_of_search(selection.choice, targets)
        warn_of_missed_precision(self.threshold, loss)
        if self._tunes:
            warn_of_one_class(self, classes, self.held_out_, self.threshold_)
        return self

    @lazy_for_dask
    def decision_function(self, X: Any) -> Array:
        """Outputs of the model less the threshold, so that 0 is the boundary.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values. For a dask collection the values are a dask array.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive for ``classes_[1]``; for more, one column per class, less its
            threshold: the largest wins. With a hinge loss those of several classes are logarithms
            of the coupled probabilities of the pairs. If no output has the probability of the
            threshold, this is 2¹⁰ times the largest held-out output, out of reach.
        """
        return self._outputs(self._checked_new_data(X)) - self.threshold_

    @lazy_for_dask
    def predict(self, X: Any) -> AnyArray:
        """Class of each sample, by the decision values.

        With ``threshold=0.5`` it is the class of the largest `predict_proba`. Only another
        threshold or ``class_weight`` makes them differ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples. For a dask collection the classes are a dask array.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        decision = self.decision_function(X)
        return np.asarray(self.classes_[class_indices(decision)])

    def predict_set(
        self, X: Any, confidence_level: float = 0.9, class_conditional: bool = False
    ) -> AnyArray:
        """Conformal prediction set for each sample: the classes that it may belong to.

        A class is in the set unless the margin of the sample, if it belonged to that class, is
        below the leave-one-out margins of almost all training samples, each compared under the
        model trained without that sample. No other samples are needed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values.
        confidence_level : float, default=0.9
            Nominal share of new samples whose class is in their set, between 0 and 1.
        class_conditional : bool, default=False
            Whether margins are compared within each class, so that each class, even a rare one,
            has that share. The sets get larger.

        Returns
        -------
        sets : ndarray of bool, of shape (n_samples, n_classes)
            Columns as in ``classes_``. A set of several classes means that the sample may belong
            to any of them; an empty one, that it is typical of none.

        Raises
        ------
        ValueError
            If the coverage is not between 0 and 1, or needs more samples of non-zero weight
            than there are, 1 / (1 − confidence_level) − 1 (in some class, if `class_conditional`).
        sklearn.exceptions.NotFittedError
            Before `evaluate`, or if its models in closed form were lost, as in a file.

        Notes
        -----
        The models are those of `evaluate`; call it first. Each was trained without a sample, its
        group, or, if scores are nested, the fold that it was selected without. The margin of a
        class is its output less the largest of the others, whatever the threshold. If training and
        new samples are exchangeable, and everything but the coefficients (kernel and its values,
        regularization, weights) was fixed beforehand, the class of a new sample is in its set with
        a probability of at least 2 c − 1 for a confidence level of c, mostly about c; with
        `class_conditional`, within each class [B21, RSC20]. The same holds for the models of nested
        scores, each of which was selected without the sample, group or fold that it holds out.
        After any other search, or if a kernel took its width from the samples, nothing is
        guaranteed.

        Margins that differ by rounding alone are equal, and count for the class. Samples of weight
        zero take no part. The cost is that of
        `KernelRegressor.predict_interval`.

        References
        ----------
        Romano, Sesia & Candès (2020), Classification with valid and adaptive coverage,
        NeurIPS.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from looms import KernelClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = KernelClassifier(mu=1e-3).fit(X[::2], y[::2])
        >>> model.evaluate().kind
        'leave-one-out'
        >>> sets = model.predict_set(X[1::2], confidence_level=0.95)
        >>> float(sets[range(75), y[1::2]].mean().round(2))
        0.97
        """
        X = self._checked_new_data(X)
        self._check_coverage(confidence_level, class_conditional)
        models = self._models_without_rows(X, "predict_set")
        return self._sets(X.shape[0], *models, confidence_level, class_conditional)

    def _check_coverage(self, confidence_level: float, class_conditional: bool) -> None:
        """ValueError for a coverage that the rows of the fit cannot give."""
        check_flag("class_conditional", class_conditional)
        labels = class_indices(self.loo_.y[self.fit_weight_ > 0])
        if class_conditional:
            for name, count in zip(self.classes_.tolist(), np.bincount(labels), strict=True):
                try:
                    required_rank(confidence_level, int(count))
                except ValueError as error:
                    raise ValueError(f"Class {name!r}: {error}") from None
        else:
            required_rank(confidence_level, len(labels))

    def _sets(
        self,
        n_rows: int,
        r: Array,
        tie: float,
        blocks: Iterable[tuple[slice, Array]],
        confidence_level: float,
        class_conditional: bool,
    ) -> AnyArray:
        """Sets of new rows, from held-out residuals and the outputs of the models without rows."""
        targets = self.loo_.y[self.fit_weight_ > 0]
        labels, loo = class_indices(targets), targets - r
        loo_scores = class_margins(loo.reshape(len(loo), -1))[np.arange(len(labels)), labels]
        sets = np.empty((n_rows, len(self.classes_)), dtype=bool)
        for rows, F in blocks:
            scores = class_margins(F.reshape(*F.shape[:2], -1))
            sets[rows] = prediction_sets(
                *(loo_scores, scores, confidence_level),
                labels if class_conditional else None,
                rounding_error=tie_width(loo_scores, 2.0 * tie),  # of differences
            )
        return sets

    def _area(self, weight: Array) -> tuple[float, Array]:
        """Area under the ROC curve at the chosen values, and what each row adds to its deviation.

        It compares held-out rows under one model that has seen neither; ``weight``, (m,), has
        the weights of the rows of the fit.
        """
        return self._decided(weight)[1]

    def _scored(self, nested: Nested | None) -> Scores:
        train, known = np.flatnonzero(self.fit_weight_), nested and nested.of_classes
        weight, labels = self.loo_.sample_weight[train], class_indices(self.loo_.y[train])
        decisions, auc = known or self._decided(weight)
        groups = self._units.scored_together
        pairs = class_scores(labels, decisions.wrong, auc, weight, groups, decisions.losses)
        return self._as_scores(pairs, decisions, nested)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @lazy_for_dask
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class.

        The calibrator that turns outputs into probabilities was fitted to the leave-one-out
        outputs, which resemble the outputs for new samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples. For the training samples, whose outputs are nearer to their labels,
            use `looms.calibration.loo_probabilities` of ``loo_``.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; rows sum to one. With more than two classes, the softmax
            of the outputs if ``calibration="sigmoid"``, otherwise one-against-rest probabilities
            divided by their sum.

        Notes
        -----
        With ``threshold=0.5``, `predict` returns the most probable class: for two classes
        `decision_function` is positive exactly where the probability of the second is above ½.
        With more than two classes `decision_function` is largest for the most probable one.
        Another threshold makes them differ, and so does ``class_weight``: it weights the fit and
        the decisions, which are those for a population with such classes, but probabilities are
        those of the classes as they are in the samples.
        """
        outputs = self._outputs(self._checked_new_data(X))
        return class_probabilities(self.calibrator_, outputs)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @lazy_for_dask
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            The logarithm of `predict_proba`; finite, since probabilities of zero count as 2.2e-308.
        """
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny)))

    @property
    def _rule(self) -> Rule:
        """Rule of the decisions."""
        return Rule(self.threshold_, self.calibrator_, self._tie)

    def _decided(self, weight: Array) -> tuple[Decisions, tuple[float, Array]]:
        """Decisions on held-out outputs at the values chosen, and the area of `_area`."""
        train, rule = np.flatnonzero(self.fit_weight_), self._rule
        y = self.loo_.y[train]
        if self._scored_in is None:
            with blas_threads(len(train)):
                left_out = self.left_out()
                return held_out_decisions(left_out, self._units, weight, rule, y.shape)
        units, outputs = self._scored_in
        decided = Decided.of(np.arange(len(y)), outputs, rule)
        area = area_within(HeldOut(y, outputs, weight), units, self._tie)
        return Decisions.of([decided], class_indices(y)), area

    def _encoded(self, y: AnyArray, weight: Array) -> tuple[AnyArray, AnyArray, Array]:
        """Classes, index of each label, targets ±1; ValueError if unsuitable."""
        classes, labels, targets = encoded(y, weight)
        if targets.ndim == 2 and self.threshold != 0.5:
            raise ValueError(
                f"threshold={self.threshold!r} needs two classes, but y has {len(classes)}: with "
                "more, the largest output decides. Use threshold=0.5, and class_weight='balanced' "
                "if classes are unequal."
            )
        return classes, labels, targets

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.calibration is not None:
            calibration_function(self.calibration)
        check_threshold(self.threshold, self.calibration is not None)

    def _loss_of(self, classes: AnyArray) -> Callable[[HeldOut, Array], HeldOutLoss]:
        """`_loss`, for these classes."""
        return partial(self._loss, positive_first=is_positive_first(self.pos_label, classes))

    def _loss(self, loo: HeldOut, fit_weight: Array, positive_first: bool = False) -> HeldOutLoss:
        """Loss of the threshold rule on held-out outputs, the threshold and the calibrator.

        Probabilities are those of the classes as they are, whatever their weights. The threshold
        of a probability is that of a calibrator with the weights of the fit: otherwise it would
        undo them.
        """
        calibrator = weighted = None
        if self.calibration is not None:
            calibrator = weighted = fit_calibrator(loo, self.calibration)
            if isinstance(self.threshold, Real) and self.class_weight is not None:
                weighted = fit_calibrator(HeldOut(loo.y, loo.outputs, fit_weight), self.calibration)
        cut, loss = threshold_and_loss(self.threshold, weighted, loo, positive_first)
        return HeldOutLoss(loss, cut, calibrator)

    def _as_targets(self, y: AnyArray) -> Array:
        number = {label: k for k, label in enumerate(self.classes_.tolist())}
        unknown = sorted({label for label in y.tolist() if label not in number}, key=str)
        if unknown:
            raise ValueError(
                f"y has {unknown}, which are not classes of this model: {list(number)}. Fit a "
                "model to all rows."
            )
        return class_targets(np.array([number[label] for label in y.tolist()]), len(number))

    def _class_weight_of(self, factors: Array) -> dict[Any, float] | None:
        """``class_weight`` that gives the classes these factors."""
        if np.allclose(factors, factors[0], rtol=1e-12, atol=0):
            return None
        return dict(zip(self.classes_.tolist(), factors.tolist(), strict=True))

    def _set_given(self, fitted: dict[str, Any], rule_of: Any) -> None:
        if rule_of is not None:
            rule = {"threshold_": rule_of.threshold_, "calibrator_": rule_of.calibrator_}
            self._set_fitted(**rule, **fitted)
            return
        y, outputs, weight = fitted["held_out_"]
        held_out = HeldOut(y, merge_ties(outputs, fitted["_tie"]), weight)
        first = is_positive_first(self.pos_label, fitted["classes_"])
        loss, threshold, calibrator = self._loss(held_out, fitted["fit_weight_"], first)
        self._set_fitted(threshold_=threshold, calibrator_=calibrator, **fitted)
        warn_of_missed_precision(self.threshold, loss)
