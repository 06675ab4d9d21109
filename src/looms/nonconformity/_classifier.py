"""The classifier that chooses model and label of each sample by the smallest nonconformity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from looms._checks import check_count, check_flag, check_known, check_share
from looms._classes import class_targets
from looms._scores import class_baselines, class_scores
from looms._typing import AnyArray, Array
from looms.estimators._metrics import judged, scorers_of
from looms.fitted._outcome import Classes
from looms.folds import NUMBER_OF_FOLDS
from looms.held_out import HeldOut
from looms.nonconformity._bounds import dkw_bound, vc_bound
from looms.nonconformity._choice import (
    Neighbors,
    NonconformityChoice,
    choose,
    conformity_counts,
    joint_p_values,
    labels_by_others,
    p_values,
    within_standard_errors,
)
from looms.nonconformity._pool import PooledClassifier, pool_plan
from looms.nonconformity._validation import (
    check_classes_have_two,
    held_out_outputs,
    split_rows,
)
from looms.scores import Scores
from looms.selection._decisions import Decisions
from looms.units import Units


class NonconformityClassifier(PooledClassifier):
    r"""Classifier that predicts each sample with the most confident model of a pool.

    All models of the pool are trained once, and held-out samples show how usual a margin is.
    For a new sample x, model k and label y

    .. math:: \epsilon_{k,y} = \#\{j : A_k(x_j, y_j) \le A_k(x, y)\} / m

    over the m validation samples, with the conformity A = y f(x), or for more than two classes
    f_y(x) less the largest f_{y'}(x). For each sample, the model that rejects all labels but one
    at the smallest epsilon is selected, and predicts that label. Only models with nearly the
    smallest validation error take part, and equally confident models vote. This is more accurate
    than the rule of the paper, ``within_se=None, ties="random"``.

    Parameters
    ----------
    pool : dict, list of classifiers or None, default=None
        A dict with values of "C" and "gamma" makes RBF support vector machines on that grid; None
        takes the grid of the paper, gamma = 2^-15, 2^-13 .. 2^3 and C = 2^-5, 2^-3 .. 2^15.
        Classifiers need a decision function and are cloned; they may be of any kind and scale,
        since each is compared only with itself. They get X as it is given, also as a data frame or
        a sparse matrix if they accept it, and are trained without weights.
    validation : {"split", "loo"}, int or str, default="split"
        Source of the margins of samples that the models did not see: a validation split; a
        number of folds, or "5x2" for five repetitions of two, whose margins are averaged; or the
        leave-one-out outputs. With folds and leave-one-out all samples validate, and the models
        are trained on all of them.
    validation_size : int, float or None, default=None
        Number of validation samples, or their share. None takes a fifth, at most 50; there is
        at least one for each class if stratified.
    stratify : bool, default=True
        Whether the training and validation parts have the classes in the same proportions.
    measure : {"margin", "neighbors"}, default="margin"
        The conformity A. "neighbors" compares, in the space of a model's outputs, the mean
        distances to the nearest samples of the label and of any other.
    n_neighbors : int, default=1
        Number of neighbors for ``measure="neighbors"``.
    within_se : float or None, default=1.0
        Only models whose validation error is within this many standard errors of the smallest
        take part in predictions; None, as in the paper, for all models.
    ties : {"vote", "random"}, default="vote"
        Whether equally confident models vote on the label, or one of them is drawn at random.
    tol : float, default=1e-2
        Tolerance of the solver for a grid, `sklearn.svm.SVC`'s ``tol``. It is ten times the
        default of ``SVC``, since margins are only compared: the hardest models of a grid take
        half the time. With "loo" models are solved to machine precision.
    n_jobs : int, default=None
        Number of members trained at a time, as joblib understands it.
    random_state : int, RandomState instance or None, default=None
        Draws the split or the repeated folds, and breaks ties between models and labels.

    Attributes
    ----------
    validation_ : ndarray of shape (n_validation,)
        Indices of the samples whose margins the others are compared with; all of them for
        folds and leave-one-out.
    validation_scores_ : ndarray of shape (n_models, n_validation)
        Conformity of each of these samples, with its own label, to every model.
    validation_errors_ : ndarray of shape (n_models,)
        Share of these samples that conform better to another label.
    deciding_ : ndarray of int
        Indices of the models that take part in predictions.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    pool_ : list
        "C" and "gamma" of each member, or the fitted classifiers.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names.

    Notes
    -----
    **What is guaranteed.** Let new samples be exchangeable with the validation samples
    (``validation="split"``, ``stratify=False``; stratifying moves it by the rounding of the
    class counts, at most about n_classes / (2 n_validation)). Over the draw of both:

    - ``predict_set(X, confidence_level)`` contains the true label with a probability of at least
      ``confidence_level``, and at most 1 / (n_validation + 1) more than that up to ties, whatever
      the number of models: the strangest model is selected for the validation samples too, as
      part of the comparison.
    - The labels with ``model_p_values(X, k) > 1 − confidence_level`` do so for one model k named in
      advance. For the model selected at each sample it does not: there only
      1 − n_models (1 − confidence_level) is certain, which for 110 models is nothing.
    - The label of `predict` has no coverage of its own; `error_bound` holds for the event it
      describes, with the models paid for by ln(n_models).

    All of this concerns all models, whatever `within_se`. With folds and ``validation="loo"`` none
    of it is certain: held-out margins come from models of fewer samples than those that predict.
    Coverage is close to nominal if that hardly changes a model, and there is no `error_bound`.

    P-values count the sample itself, (m ε_{k,y} + 1) / (m + 1). The paper uses ε_{k,y}, so its
    coverage is up to 1 / (m + 1) too small; the selected model and label are the same.

    There are no decision values or probabilities: each sample may have another model, so samples
    have no common order. Scorers that rank, such as "roc_auc", do not apply;
    ``p_values(X)[:, 1] - p_values(X)[:, 0]`` orders samples of two classes.

    Cost: each member is trained once. In a grid, no model with a larger C is trained once no
    coefficient is at its bound.

    References
    ----------
    Hardoon, Hussain & Shawe-Taylor, A nonconformity approach to model selection for SVMs [H10].

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from looms import NonconformityClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = NonconformityClassifier(random_state=0).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.96
    >>> sets = model.predict_set(X[1::2], confidence_level=0.9)
    >>> round(float(sets[range(len(sets)), y[1::2]].mean()), 2)
    0.89
    """

    validation_: AnyArray
    validation_scores_: Array
    _validation_labels: AnyArray
    _labels_by_others: AnyArray
    deciding_: AnyArray
    _neighbors: Neighbors | None
    _seed: int
    _held_out: bool

    def __init__(
        self,
        pool: Any = None,
        *,
        validation: int | str = "split",
        validation_size: Any = None,
        stratify: bool = True,
        measure: str = "margin",
        n_neighbors: int = 1,
        within_se: float | None = 1.0,
        ties: str = "vote",
        tol: float = 1e-2,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.pool = pool
        self.validation = validation
        self.validation_size = validation_size
        self.stratify = stratify
        self.measure = measure
        self.n_neighbors = n_neighbors
        self.within_se = within_se
        self.ties = ties
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train all members and score the validation samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Class of each sample.

        Returns
        -------
        self : NonconformityClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If a class is too small to be held out, or a member has no decision function.
        """
        self._check_parameters()
        X, classes, labels = self._checked_training_data(X, y)
        check_classes_have_two(classes, labels)
        plan = pool_plan(self.pool, classes, self.tol)
        split_seed, tie_seed = check_random_state(self.random_state).randint(2**31 - 1, size=2)
        held_out, seed = self.validation == "split", int(split_seed)
        train = rows = np.arange(len(labels))
        if held_out:
            size, stratify = self.validation_size, self.stratify
            train, rows = split_rows(classes, labels, size, stratify, seed)
            pool = plan.fit(X, labels, train, self.n_jobs)
            outputs = pool.outputs(_safe_indexing(X, rows))
        elif self.validation == "loo":
            pool, outputs = plan.fit_loo(X, labels, self.n_jobs)
        else:
            units = Units.of(self.validation, labels, classes=True, random_state=seed)
            outputs = held_out_outputs(plan, X, labels, units, self.n_jobs)
            pool = plan.fit(X, labels, rows, self.n_jobs)
        neighbors = None
        if self.measure == "neighbors":
            reference = pool.outputs(_safe_indexing(X, train)) if held_out else outputs
            neighbors = Neighbors(tuple(reference), labels[train], int(self.n_neighbors))
            scores = neighbors.scores(outputs, None if held_out else rows)
        else:
            scores = pool.margins(outputs)
        self.classes_, self.pool_, self._seed = classes, pool.members, int(tie_seed)
        self._pool, self._neighbors, self._held_out = pool, neighbors, held_out
        self.validation_, self._validation_labels = rows, labels[rows]
        self.validation_scores_ = scores[:, np.arange(len(rows)), labels[rows]]
        self.deciding_ = within_standard_errors(self.validation_errors_, len(rows), self.within_se)
        self._labels_by_others = labels_by_others(
            scores, labels[rows], self.within_se, self._seed, vote=self.ties == "vote"
        )
        return self

    @property
    def validation_errors_(self) -> Array:
        """Share of the validation samples that each model gets wrong, (n_models,)."""
        check_is_fitted(self, "pool_")
        return np.asarray((self.validation_scores_ <= 0).mean(axis=1))

    def evaluate(self, *, scoring: Any = None) -> Scores:
        """Scores of the predictions: "accuracy", and "balanced_accuracy", the mean recall.

        As in scikit-learn, scores are better when greater.

        Each validation sample is predicted with models trained without it, selected on the other
        validation samples. The smallest of ``validation_errors_`` would be optimistic.

        Parameters
        ----------
        scoring : str, callable, list of these or dict, default=None
            As for `KernelClassifier.evaluate`, of predicted classes.

        Returns
        -------
        scores : looms.scores.Scores
            Standard errors are over draws of the validation samples. Predictions are ±1.
        """
        check_is_fitted(self, "pool_")
        labels, predicted = self._validation_labels, self._labels_by_others
        scorers = scorers_of(scoring, self, self.classes_[labels])
        n_classes, weight = len(self.classes_), np.ones(len(labels))
        wrong = 1.0 * (predicted != labels)
        pairs = class_scores(labels, wrong, (np.nan, np.nan * weight), weight)
        held_out = HeldOut(class_targets(labels, n_classes), class_targets(predicted, n_classes))
        scores = Scores(
            {name: pairs[name] for name in ("accuracy", "balanced_accuracy")},
            "validation samples, each by models selected on the others",
            False,
            held_out,
            np.arange(len(labels)),
            Decisions(held_out.outputs, predicted, wrong, None, None),
            class_baselines(labels, weight),
            None,
        )
        return judged(scores, scorers, Classes(self.classes_))

    def _check_parameters(self) -> None:
        check_known(self.measure, "measure", ("margin", "neighbors"))
        check_known(self.ties, "ties", ("vote", "random"))
        kind = str(self.validation)
        if kind not in ("split", "loo") and NUMBER_OF_FOLDS.fullmatch(kind) is None:
            raise ValueError(
                f"Unknown validation {self.validation!r}; known are split, loo, a number of folds, "
                "or repetitions and folds such as '5x2'."
            )
        check_flag("stratify", self.stratify)
        check_count(self.n_neighbors, "n_neighbors")
        width = self.within_se
        if width is not None and not (isinstance(width, Real) and 0 <= float(width) < np.inf):
            raise ValueError(f"within_se must be None or a nonnegative number, got {width!r}.")

    def epsilon_crit(self, X: Any) -> Array:
        """Smallest epsilon at which a model in ``deciding_`` has one label left [H10 eq. 4].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        epsilon : ndarray of shape (n_samples,)
            Multiples of 1 / n_validation; small where the rejected label would be strange.
        """
        return np.asarray(self._choice(X).count / len(self.validation_))

    def error_bound(self, X: Any, *, delta: float = 0.05, method: str = "dkw") -> Array:
        """Upper bound for each prediction: `epsilon_crit` plus a term for chance.

        With probability 1 − delta over the draw of the validation samples, for all samples
        and models at once, it bounds the probability that the true label of a new sample
        conforms to the selected model no better than the rejected label does here. This is an
        average over all samples, not a probability given this sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        delta : float, default=0.05
            Probability with which the bounds may fail.
        method : {"dkw", "vc"}, default="dkw"
            The inequality of Dvoretzky, Kiefer and Wolfowitz, or that of the paper, which is
            above 1 for fewer than some 500 validation samples.

        Returns
        -------
        bound : ndarray of shape (n_samples,)
            It may exceed 1.

        Raises
        ------
        ValueError
            For folds or ``validation="loo"``, whose margins are not independent.
        """
        check_is_fitted(self, "pool_")
        check_share(delta, "delta")
        if not self._held_out:
            raise ValueError('Bounds need samples no model has seen: fit with validation="split".')
        bounds = {"dkw": dkw_bound, "vc": vc_bound}
        check_known(method, "bound", bounds)
        return bounds[method](self.epsilon_crit(X), len(self.validation_), len(self.pool_), delta)

    def p_values(self, X: Any) -> Array:
        """P-values of the labels, valid although the model is selected for every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            For the true label, the probability of a value of at most ε is at most ε (see Notes).
        """
        return self._p_values(X, None)

    def model_p_values(self, X: Any, model: int | None = None) -> Array:
        """P-values of the labels under each model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        model : int, default=None
            Index into ``pool_`` of a single member; the cost is that of this member.

        Returns
        -------
        p : ndarray of shape (n_models, n_samples, n_classes), or (n_samples, n_classes)
            Valid for a model named in advance, not for one selected by these p-values.
        """
        check_is_fitted(self, "pool_")
        validation = self.validation_scores_
        if model is not None:
            last = len(self.pool_) - 1
            if not (isinstance(model, Integral) and 0 <= int(model) <= last):
                raise ValueError(f"model must be an index into pool_, 0 to {last}, got {model!r}.")
            model, validation = int(model), validation[[int(model)]]
        counts = [conformity_counts(validation, scores) for scores in self._scores(X, model)]
        p = p_values(np.concatenate(counts, axis=1), len(self.validation_))
        return p if model is None else np.asarray(p[0])

    def predict_set(
        self, X: Any, confidence_level: float = 0.9, class_conditional: bool = False
    ) -> AnyArray:
        """Prediction set for each sample: the labels whose p-value is above 1 − confidence_level.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        confidence_level : float, default=0.9
            Wanted probability that the true label is in the set, between 0 and 1.
        class_conditional : bool, default=False
            Whether a label is compared only with the validation samples of its own class, so that
            each class, even a rare one, has that coverage.

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            Columns as in ``classes_``. A set may be empty.
        """
        check_share(confidence_level, "confidence_level")
        check_flag("class_conditional", class_conditional)
        check_is_fitted(self, "pool_")
        p = self._p_values(X, self._validation_labels if class_conditional else None)
        # Plus a little, since 1 - 0.9 is a little under 0.1.
        return np.asarray(p > 1.0 - float(confidence_level) + 1e-12)

    def _scores(self, X: Any, model: int | None = None) -> Iterator[Array]:
        """Conformity (n_models, n_rows, n_classes) of every label, block by block of rows."""
        check_is_fitted(self, "pool_")
        pool, neighbors = self._pool, self._neighbors
        if model is not None:
            pool, neighbors = pool.only(model), neighbors and neighbors.only(model)
        for outputs in self._blocks(X, pool):
            yield pool.margins(outputs) if neighbors is None else neighbors.scores(outputs)

    def _p_values(self, X: Any, labels: AnyArray | None) -> Array:
        return np.concatenate(
            [joint_p_values(self.validation_scores_, each, labels) for each in self._scores(X)]
        )

    def _choice(self, X: Any) -> NonconformityChoice:
        check_is_fitted(self, "pool_")
        deciding, vote = self.deciding_, self.ties == "vote"
        validation = self.validation_scores_[deciding]
        counts = [conformity_counts(validation, each[deciding]) for each in self._scores(X)]
        choice = choose(np.concatenate(counts, axis=1), self._seed, vote=vote)
        return replace(choice, model=deciding[choice.model])

    def _chosen(self, X: Any) -> tuple[AnyArray, AnyArray]:
        choice = self._choice(X)
        return choice.model, choice.label
