"""Error rates of new samples, against leave-one-out error rates and against bounds."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from looms._typing import Array
from looms.assessment._result import Assessment
from looms.conformal._bounds import error_against_bound
from looms.report.displays.base import Display, diagonal, label_axes
from looms.report.text import short


@dataclass(eq=False, repr=False, kw_only=True)
class OptimismDisplay(Display):
    """Leave-one-out score and test score of every outer split.

    Each dot is a split, and the cross is at the means; on the line both scores are equal.

    Parameters
    ----------
    loo, outer : ndarray of shape (n_splits,)
        Leave-one-out score and test score of each split.
    score : str
        Name of the score.
    smaller_is_better : bool or None
        Direction of the score; None if it is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier, assess
    >>> from looms.report import OptimismDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = OptimismDisplay.from_assessment(assess(KernelClassifier(), X, y, n_splits=5))
    >>> display.score, len(display.loo), abs(display.optimism) < 0.05
    ('balanced_accuracy', 5, True)
    """

    loo: Array
    outer: Array
    score: str
    smaller_is_better: bool | None

    @classmethod
    def from_assessment(
        cls, assessment: Assessment, *, score: str | None = None, ax: Any = None
    ) -> Self:
        """Compute the display of an assessment, and draw it on ``ax``, or a new figure."""
        return cls.compute(assessment, score=score).plot(ax)

    @classmethod
    def compute(cls, assessment: Assessment, *, score: str | None = None) -> Self:
        """Splits of an assessment, not drawn.

        Parameters
        ----------
        assessment : Assessment
            Result of `looms.assess` for a looms model.
        score : str, default=None
            One of its scores; by default the first.
        """
        name = assessment.scores[0] if score is None else score
        if name not in assessment.scores:
            raise ValueError(f"score must be one of {', '.join(assessment.scores)}; got {score!r}.")
        pairs = [
            (split.loo_scores[name], split.scores[name])
            for split in assessment.splits
            if split.error is None and name in split.loo_scores
        ]
        if not pairs:
            raise ValueError(
                "The assessment has no leave-one-out scores; only looms models have them."
            )
        loo, outer = np.array(pairs).T
        direction = assessment.estimate(name).smaller_is_better
        return cls(loo=loo, outer=outer, score=name, smaller_is_better=direction)

    @property
    def optimism(self) -> float | None:
        """Mean of leave-one-out score less test score, signed so that positive is optimistic.

        None if the direction of the score is unknown.
        """
        if self.smaller_is_better is None:
            return None
        difference = float(np.mean(self.loo - self.outer))
        return -difference if self.smaller_is_better else difference

    def _draw(self, ax: Any) -> None:
        both = np.append(self.loo, self.outer)
        diagonal(ax, both.min(), both.max())
        ax.plot(self.loo, self.outer, "o", color="C0", markersize=3.5, alpha=0.6, label="a split")
        means = self.loo.mean(), self.outer.mean()
        ax.plot(*means, "+", color="C1", markersize=12, mew=2, label="mean")
        label_axes(ax, f"{short(self.score)}, held out", f"{short(self.score)}, test part")


@dataclass(eq=False, repr=False)
class ErrorAgainstBoundDisplay(Display):
    """Error rate of the samples up to each value of their bound [H10 Figure 2].

    The curve ends at the error rate of all samples; where it is lower before, samples with
    smaller bounds are predicted better. ``plot(name=..., color=...)`` sets another name in the
    legend, and passes options to matplotlib's ``plot``.

    Parameters
    ----------
    bounds : ndarray of shape (n_values,)
        The distinct bounds, ascending.
    errors : ndarray of shape (n_values,)
        Error rate of the samples whose bound does not exceed each of them.
    name : str, default=None
        Name of the curve in a legend.
    bound_name : str, default="Bound"
        Name of the bound on its axis.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve, once plotted.

    Examples
    --------
    >>> display = ErrorAgainstBoundDisplay.from_predictions(
    ...     ["a", "b", "a"], ["a", "a", "a"], bound=[0.3, 0.5, 0.4]
    ... )                                                            # doctest: +SKIP
    """

    bounds: Array
    errors: Array
    _: KW_ONLY
    name: str | None = None
    bound_name: str = "Bound"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        delta: float = 0.05,
        method: str = "dkw",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Predict new samples, and draw their errors against their bounds.

        Parameters
        ----------
        estimator : NonconformityClassifier
            A fitted classifier with `error_bound`.
        X : array-like of shape (n_samples, n_features)
            New samples.
        y : array-like of shape (n_samples,)
            Their classes.
        delta, method : see `NonconformityClassifier.error_bound`
            Parameters of the bound.
        name : str, default=None
            Name in the legend; by default that of the estimator's class.
        ax, **kwargs : for `plot`
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "error_bound"):
            raise TypeError(
                f"{type(estimator).__name__} has no error_bound; use a NonconformityClassifier, "
                "or from_predictions with bounds of your own."
            )
        return cls.from_predictions(
            y,
            estimator.predict(X),
            bound=estimator.error_bound(X, delta=delta, method=method),
            name=type(estimator).__name__ if name is None else name,
            bound_name=f"Bound ({method}, delta = {delta:g})",
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        bound: Any,
        name: str | None = None,
        bound_name: str = "Bound",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the errors of predictions against bounds, or critical epsilons.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            True and predicted classes.
        bound : array-like of shape (n_samples,)
            Bound of each prediction.
        name, bound_name : str
            Names in the legend and on the axis.
        ax, **kwargs : for `plot`
        """
        y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
        if y_true.shape != y_pred.shape:
            raise ValueError(
                "y_true and y_pred must have one entry per sample, but have shapes "
                f"{y_true.shape} and {y_pred.shape}."
            )
        bounds, errors = error_against_bound(bound, y_true != y_pred)
        return cls(bounds, errors, name=name, bound_name=bound_name).plot(ax, **kwargs)

    def _draw(self, ax: Any, *, name: str | None = None, **kwargs: Any) -> None:
        options = {"drawstyle": "steps-post", "marker": "o", "markersize": 3.0}
        label = self.name if name is None else name
        (self.line_,) = ax.plot(self.bounds, self.errors, **{**options, "label": label, **kwargs})
        label_axes(ax, self.bound_name, "Error rate up to this bound")
