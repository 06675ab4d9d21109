"""Base class of the kernel classifiers: fit, thresholds and probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from looms._advice import setting
from looms._checks import check_flag
from looms._typing import AnyArray, Array
from looms.calibration._calibrators import Calibrator, calibration_function
from looms.conformal._jackknife import required_rank
from looms.dask._predict import lazy_for_dask
from looms.estimators._encoding import check_threshold, class_weights, encoded, is_positive_first
from looms.estimators._known_targets import KnownTargets
from looms.estimators._model import Model, fitted_part
from looms.estimators._prevalence import PrevalenceClassifier, at_prevalence
from looms.estimators._warnings import warn_of_missed_precision, warn_of_one_class
from looms.fitted._fitted import Fitted
from looms.fitted._ordered import OrderedClasses
from looms.fitted._outcome import Classes, column_of_sets
from looms.fitted._rows import Rows
from looms.fitted._without_units import sets
from looms.scores import WithoutUnits


def _has_probabilities(classifier: Classifier) -> bool:
    # What is asked for may have changed since the fit.
    fitted: Fitted | None = vars(classifier).get("fitted_")
    kind = classifier.calibration if fitted is None else fitted.rule.calibrator
    if kind is None:
        raise AttributeError(
            f"There are no probabilities with {setting('calibration', None)}; fit with "
            f"{setting('calibration', 'sigmoid')}."
        )
    return True


class Classifier(KnownTargets, ClassifierMixin, Model):  # type: ignore[misc]
    """Base class of the classifiers."""

    threshold: Any
    calibration: str | None
    class_weight: Any
    pos_label: Any
    classes_: AnyArray = fitted_part("outcome.classes", "The classes, sorted.")
    threshold_: float | Array = fitted_part("rule.threshold", "Threshold of the outputs.")
    calibrator_: Calibrator | None = fitted_part(
        "rule.calibrator", "Map from outputs to probabilities."
    )

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
            Class of each sample. Three classes or more of an ordered type of pandas,
            ``CategoricalDtype(ordered=True)``, are fitted by their ranks; ``y.astype(str)`` has no
            order.
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
        self._fit(X, y, sample_weight, groups)
        return self

    def _rows(
        self, X: Any, y: AnyArray, weight: Array, groups: Any, order: AnyArray | None = None
    ) -> Rows:
        """Rows of a fit, with their classes; ValueError for unsuitable ones."""
        classes, labels = encoded(y, weight)
        if len(classes) > 2 and self.threshold != 0.5:
            decide = "the largest output decides" if order is None else "cuts of the output decide"
            raise ValueError(
                f"{setting('threshold', self.threshold)} needs two classes, but y has "
                f"{len(classes)}: with more, {decide}. Use {setting('threshold', 0.5)}, and "
                f"{setting('class_weight', 'balanced')} if classes are unequal."
            )
        factors = class_weights(self.class_weight, labels, classes, weight)
        first, weighted = is_positive_first(self.pos_label, classes), self.class_weight is not None
        outcome: Classes | OrderedClasses
        if order is None or len(classes) == 2:
            outcome = Classes(classes, self.threshold, self.calibration, weighted, first)
        else:
            outcome = OrderedClasses.of(classes, order, self.calibration, weighted)
        return Rows.of(X, outcome.coded(labels), weight, groups, outcome, factors)

    def _warn_of_fit(self) -> None:
        super()._warn_of_fit()
        fitted = self.fitted_
        outcome: Any = fitted.outcome
        warn_of_missed_precision(self.threshold, fitted.loss)
        if self._tunes:
            warn_of_one_class(outcome, fitted.held_out, fitted.rule)

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
            threshold: the largest wins. Of ordered classes it is how far the output is inside of
            the two cuts about the class. With a hinge loss those of several classes are logarithms
            of the coupled probabilities of the pairs. If no output has the probability of the
            threshold, this is 2¹⁰ times the largest held-out output, out of reach.
        """
        outputs = self._outputs(X)
        return self.fitted_.outcome.decision(outputs, self.fitted_.rule)

    @lazy_for_dask
    def predict(self, X: Any) -> AnyArray:
        """Class of each sample, by the decision values.

        With ``threshold=0.5`` it is the class of the largest `predict_proba`. Only another
        threshold or ``class_weight`` makes them differ. Of ordered classes it is by cuts of the
        output, those with the smallest held-out distance of ranks, whatever the probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples. For a dask collection the classes are a dask array.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        outputs = self._outputs(X)
        return np.asarray(self.classes_[self.fitted_.outcome.indices(outputs, self.fitted_.rule)])

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
        class is its output less the largest of the others, whatever the threshold; of ordered
        classes minus the distance of the output from its rank. If training and
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
        models = self._models_of_sets(confidence_level, class_conditional)
        X = self._matrix(X, prepare=not models.tables)
        return sets(models, X, confidence_level, class_conditional, self.fitted_.outcome)

    def predictions(
        self, X: Any, confidence_level: float | None = None, class_conditional: bool = False
    ) -> Any:
        """Predictions for new rows as a data frame, with the columns of ``looms predict``.

        Parameters
        ----------
        X : as for `predict`
            New rows.
        confidence_level : float, default=None
            Nominal share of new rows whose class is in their set, between 0 and 1; None for no
            sets.
        class_conditional : bool, default=False
            As for `predict_set`.

        Returns
        -------
        predictions : pandas.DataFrame
            With the index of ``X``: ``prediction``; ``decision_CLASS`` for each class, of two for
            the positive one; ``probability_CLASS``, if there are probabilities; and, with a
            confidence level, ``set``: labels with | between them.

        Raises
        ------
        ValueError, sklearn.exceptions.NotFittedError
            As `predict_set`.
        ImportError
            If pandas is not installed.

        Warns
        -----
        UserWarning
            If a label in sets holds |.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from looms import KernelClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = KernelClassifier(mu=1e-3).fit(X, y)
        >>> scores = model.evaluate()
        >>> model.predictions(X[98:101], confidence_level=0.99)[["prediction", "set"]]
             prediction set
        98            1   1
        99            1   1
        100           2   2
        """
        check_flag("class_conditional", class_conditional)
        return self._frame(X, confidence_level, class_conditional=class_conditional)

    def _models_of_sets(self, confidence_level: float, class_conditional: bool) -> WithoutUnits:
        """Models without each unit; errors for sets that cannot be."""
        check_is_fitted(self)
        self._check_coverage(confidence_level, class_conditional)
        return self._models_without()

    def _covered(
        self, matrix: Any, table: Any, confidence_level: float, **coverage: Any
    ) -> dict[str, AnyArray]:
        how, outcome = (confidence_level, coverage["class_conditional"]), self.fitted_.outcome
        models = self._models_of_sets(*how)
        members = sets(models, table if models.tables else matrix, *how, outcome)
        return column_of_sets(self.classes_[outcome.in_order], members[:, outcome.in_order])

    def _check_coverage(self, confidence_level: float, class_conditional: bool) -> None:
        """ValueError for a coverage that the rows of the fit cannot give."""
        check_flag("class_conditional", class_conditional)
        rows = self.fitted_.rows
        labels = rows.outcome.codes(rows.own(rows.targets))
        if not class_conditional:
            required_rank(confidence_level, len(labels))
            return
        for name, number in zip(self.classes_.tolist(), np.bincount(labels), strict=True):
            try:
                required_rank(confidence_level, int(number))
            except ValueError as error:
                raise ValueError(f"Class {name!r}: {error}") from None

    def at_prevalence(self, prevalence: Any) -> PrevalenceClassifier:
        """The model for a population in which classes have other shares.

        Parameters
        ----------
        prevalence : dict
            Share of each class, or of some: the others have the rest, in their training
            proportions.

        Returns
        -------
        model : PrevalenceClassifier
            Fitted, with probabilities and decisions at these shares.
        """
        check_is_fitted(self)
        return at_prevalence(self, prevalence)

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
            divided by their sum. Of ordered classes, proportional odds: a sigmoid of the output
            for each cut, all with one slope.

        Notes
        -----
        With ``threshold=0.5``, `predict` returns the most probable class: for two classes
        `decision_function` is positive exactly where the probability of the second is above ½.
        With more than two classes `decision_function` is largest for the most probable one.
        Another threshold makes them differ, and so does ``class_weight``: it weights the fit and
        the decisions, which are those for a population with such classes, but probabilities are
        those of the classes as they are in the samples.
        """
        outputs = self._outputs(X)
        return self.fitted_.outcome.probabilities(outputs, self.fitted_.rule)

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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.calibration is not None:
            calibration_function(self.calibration)
        check_threshold(self.threshold, self.calibration is not None)

    def _coded_targets(self, y: AnyArray) -> Array:
        number = {label: k for k, label in enumerate(self.classes_.tolist())}
        unknown = sorted({label for label in y.tolist() if label not in number}, key=str)
        if unknown:
            raise ValueError(
                f"y has {unknown}, which are not classes of this model: {list(number)}. Fit a "
                "model to all rows."
            )
        return self.fitted_.outcome.coded(np.array([number[label] for label in y.tolist()]))
