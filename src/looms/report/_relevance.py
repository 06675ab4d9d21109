"""Relevances of the features of an ARD kernel."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np
from scipy import sparse

from looms._typing import Array
from looms.report._axes import axes_for, bars
from looms.report._model import Model, model_of

_SCALE = re.compile(r"(?:.*__)?etas\[(\d+)\]")


class RelevanceDisplay:
    """Relevances of the features of an ARD kernel, the largest on top.

    Parameters
    ----------
    names : sequence of str
        Of all features.
    relevance : ndarray of shape (n_features,)
        Share of each in the mean squared distance of the kernel.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.
    """

    ax_: Any
    figure_: Any

    def __init__(self, *, names: list[str], relevance: Array) -> None:
        self.names = names
        self.relevance = relevance

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        r"""The relevances in a fitted machine with an ARD kernel.

        .. math:: \mathrm{relevance}_k = \frac{\eta_k \mathrm{var}_k}{\sum_l \eta_l \mathrm{var}_l}

        The mean over pairs of samples of η_k (x_k − x'_k)², which the exponent of the
        kernel sums, is 2 η_k var_k; so relevances do not depend on units.

        Parameters
        ----------
        estimator : machine of looms, or pipeline that ends in one
            Fitted; its kernel is an ARD kernel or has one among its parts.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : RelevanceDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.
        """
        return cls.compute(estimator).plot(ax, **kwargs)

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """What `from_estimator` draws, not drawn."""
        model = model_of(estimator)
        relevance = relevances(model)
        if relevance is None:
            raise ValueError(
                f"{model.machine.kernel_!r} has no scale for each feature; fit with kernel='ard', "
                "or see feature_importance, which is for all kernels of features."
            )
        return cls(names=model.features, relevance=relevance)

    def plot(self, ax: Any = None, *, max_features: int = 20) -> Self:
        """Draw a bar a feature.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.
        max_features : int, default=20
            So many are drawn, the largest.

        Returns
        -------
        self : RelevanceDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        order = np.argsort(-self.relevance, kind="stable")[:max_features]
        bars(ax, self.relevance[order], [self.names[k] for k in order])
        ax.set_xlabel("share of the mean squared distance")
        return self


def feature_of(name: str) -> int | None:
    """Number of the feature whose scale a hyper-parameter is; None for others."""
    match = _SCALE.fullmatch(name)
    return int(match[1]) if match else None


def parameter_name(model: Model, name: str) -> str:
    """A hyper-parameter's name, in which a scale is that of a named feature."""
    feature = feature_of(name)
    return name if feature is None else f"eta of {model.features[feature]}"


def relevances(model: Model) -> Array | None:
    """Share of each feature in the mean squared distance of the kernel; None without ARD."""
    etas = np.zeros(model.machine.n_features_in_)
    found = False
    for h in model.machine.kernel_.hyperparameters:
        feature = feature_of(h.name)
        if feature is not None and h.value is not None:
            etas[feature] += h.value
            found = True
    if not found:
        return None
    part = etas * variances(model.machine.X_fit_)
    return np.asarray(part / part.sum()) if part.sum() > 0 else part


def variances(X: Any) -> Array:
    """Variance of every column, dense or sparse."""
    if not sparse.issparse(X):
        return np.asarray(np.var(X, axis=0))
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    return np.asarray(np.maximum(square - mean**2, 0.0))
