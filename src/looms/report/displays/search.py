"""Searches for hyper-parameters: the path, the history of the criterion, the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from looms._optional import require
from looms._typing import AnyArray, Array
from looms.kernels._samples import training_rows
from looms.report.displays.base import ModelDisplay, ink, label_axes, label_ticks
from looms.report.model import (
    Reported,
    parameter_name,
    relevances,
    sampled_rows,
    searched_model,
)
from looms.report.text import criterion_name, short
from looms.selection._objective import Objective
from looms.selection._subsamples import log2_mu_shift

_MARGIN = 2.0  # log₂ units shown beyond the path
_LEAST_WIDTH = 8.0
_LONGEST = 36  # characters of the name of a candidate


@dataclass(eq=False, repr=False, kw_only=True)
class SearchPathDisplay(ModelDisplay):
    """Points of a search over the surface of the leave-one-out criterion.

    For two hyper-parameters it shows the whole surface; for more, the slice through the optimum
    along two of them, onto which the points of the path are projected; for one, a curve. For a
    stack, it shows the search of its largest model.

    Parameters
    ----------
    names : sequence of str
        The one or two hyper-parameters shown.
    axes : sequence of ndarray
        For each, the log₂ values of the grid.
    surface : ndarray, one axis for each of ``axes``
        The criterion on the grid; infinite where it cannot be evaluated.
    path : ndarray of shape (n_points, len(names))
        log₂ of the hyper-parameters at every evaluation, in order.
    best : ndarray of shape (len(names),)
        log₂ of the chosen hyper-parameters.
    n_surface : int
        Number of samples that the surface was computed on.
    criterion : str
        Name of the criterion.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> from looms.report import SearchPathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = SearchPathDisplay.from_estimator(KernelClassifier().fit(X, y), resolution=9)
    >>> display.names, display.surface.shape
    (['gamma', 'mu'], (9, 9))
    """

    names: list[str]
    axes: list[Array]
    surface: Array
    path: Array
    best: Array
    n_surface: int
    criterion: str

    @classmethod
    def compute(
        cls,
        estimator: Any,
        *,
        along: tuple[str, str] | None = None,
        resolution: int = 17,
        n_samples: int = 500,
        random_state: int = 0,
    ) -> Self:
        """Criterion around the search of a fitted model.

        Parameters
        ----------
        along : two names of hyper-parameters, default=None
            Hyper-parameters of the slice. By default mu and the first of the kernel; for an ARD
            kernel, all scales of the features that were made from the most relevant column,
            which change together.
        resolution : int, default=17
            Number of grid points along each.
        n_samples : int, default=500
            Number of samples drawn for the surface, m. If there are more, n, the surface is the
            criterion on m of them, at the ridges that the search expects to be equivalent,
            μ (n / m)^½; its optimum may differ from that on all samples.
        random_state : int, default=0
            Draws the samples.

        Notes
        -----
        Every value of a kernel's parameter takes one eigendecomposition of an m×m matrix, and then
        each μ O(m²); two parameters of the kernel take resolution² factorizations. The surface is
        that of the criterion, without the prior if the search had one, and for a model on
        landmarks that of the whole kernel.
        """
        model, tuning = searched_model(estimator, cls.__name__)
        if model.follows_paths:
            raise TypeError(f"{cls.__name__} draws the surface of least-squares models alone.")
        rows, of_fit = sampled_rows(model, n_samples, random_state), model.fitted.rows
        objective = Objective(
            training_rows(of_fit.X, rows, model.fitted.pairwise),
            of_fit.targets[rows],
            kernel=model.kernel,
            criterion=model.fitted.criterion,
            sample_weight=of_fit.fit_weight[rows],
            selection_weight=of_fit.selection_weight[rows],
            units=model.fitted.units.among(rows),
            fit_intercept=model.fitted.fit_intercept,
        )
        shown = _shown(model, objective, along)
        first = [k for k, *_ in shown]
        # Ridges of earlier stages, as they would be for all samples.
        best, stages = tuning.theta, tuning.stages
        points = [(point.theta, size) for size, search in stages for point in search.history]
        path = np.array([theta for theta, _ in points])
        path[:, -1] -= [log2_mu_shift(stages[-1][0], size) for _, size in points]
        path = path[:, first]
        visited = np.vstack([path, best[first]])
        middle = (visited.min(axis=0) + visited.max(axis=0)) / 2
        half = np.maximum(np.ptp(visited, axis=0) / 2 + _MARGIN, _LEAST_WIDTH / 2)
        axes = list(np.linspace(middle - half, middle + half, resolution, axis=1))
        tuned = [objective.hyperparameters[k] for k in first]
        names, scale = [parameter_name(model, h) for h in tuned], tuned[0].feature
        if len(shown[0]) > 1 and scale is not None:
            names[0] = f"{tuned[0].word} of {model.features.sources[scale]}"
        shift = log2_mu_shift(model.n, len(rows))
        return cls(
            names=names,
            axes=axes,
            surface=_surface(objective, best, shown, axes, shift),
            path=path,
            best=best[first],
            n_surface=len(rows),
            criterion=type(objective.criterion).__name__,
        )

    def _draw(self, ax: Any) -> None:
        names = [f"log₂ {short(name)}" for name in self.names]
        if len(names) == 1:
            finite = np.isfinite(self.surface)
            axis, surface = self.axes[0][finite], self.surface[finite]
            ax.plot(axis, surface, color="C0")
            path = self.path[:, 0]
            ax.plot(path, np.interp(path, axis, surface), "o", color=ink(), markersize=3)
            ax.axvline(float(self.best[0]), color="C1", linewidth=1)
            label_axes(ax, names[0], f"{self.criterion}, leave-one-out")
            return
        values = np.where(np.isfinite(self.surface), self.surface, np.nan)
        levels = np.unique(np.nanquantile(values, np.linspace(0, 1, 13)))
        if len(levels) > 1:
            # One color, the deeper the worse: legible on light and on dark ground.
            to_rgba = require("matplotlib.colors", "A display", "plot").to_rgba
            colors = [to_rgba("C0", alpha) for alpha in np.linspace(0.03, 0.6, len(levels) - 1)]
            ax.contourf(*self.axes, values.T, levels, colors=colors)
        ax.plot(*self.path.T, "-o", color=ink(), linewidth=0.9, markersize=2.5)
        ax.plot(*self.best, "o", color="C1", markersize=7)
        label_axes(ax, *names)
        ax.set(xlim=self.axes[0][[0, -1]], ylim=self.axes[1][[0, -1]])


@dataclass(eq=False, repr=False, kw_only=True)
class CriterionHistoryDisplay(ModelDisplay):
    """Leave-one-out criterion at every evaluation of a search, and the best so far.

    For a stack, it shows the search of its largest model.

    Parameters
    ----------
    value : ndarray of shape (n_evaluations,)
        Criterion at every evaluation, in order; infinite where it could not be evaluated.
    n_samples : ndarray of shape (n_evaluations,)
        Number of samples it was evaluated on: searches begin on some of the samples.
    criterion : str
        Name of the criterion.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> from looms.report import CriterionHistoryDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = CriterionHistoryDisplay.from_estimator(KernelClassifier().fit(X, y))
    >>> int(display.n_samples[-1]), display.criterion, bool(display.value[-1] < display.value[0])
    (150, 'squared error', True)
    """

    value: Array
    n_samples: AnyArray
    criterion: str

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """History of the search of a model that chose its hyper-parameters."""
        model, tuning = searched_model(estimator, cls.__name__)
        points = [(p.value, size) for size, search in tuning.stages for p in search.history]
        name = criterion_name(str(model.fitted.criterion))
        return cls(
            value=np.array([value for value, _ in points]),
            n_samples=np.array([size for _, size in points]),
            criterion=f"log {name}, with prior" if model.prior else name,
        )

    def _draw(self, ax: Any) -> None:
        place = 1 + np.arange(len(self.value))
        finite = np.where(np.isfinite(self.value), self.value, np.nan)
        starts = [0, *(1 + np.flatnonzero(np.diff(self.n_samples))), len(place)]
        for k, (begin, end) in enumerate(pairwise(starts)):
            stage = slice(begin, end)
            best = np.fmin.accumulate(finite[stage])
            ax.step(place[stage], best, where="post", color="C0", linewidth=1.5)
            ax.plot(place[stage], finite[stage], "o", color=ink(), markersize=3)
            if k:
                ax.axvline(place[begin] - 0.5, color=ink(), linewidth=0.5, linestyle=":")
            ax.annotate(
                f"n = {self.n_samples[begin]}",
                (place[begin], 1.0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                xytext=(2, 3),
                fontsize="small",
            )
        if np.isfinite(finite).any() and 0 < 20 * np.nanmin(finite) < np.nanmax(finite):
            ax.set_yscale("log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        label_axes(ax, "evaluation", f"{self.criterion}, leave-one-out")


@dataclass(eq=False, repr=False, kw_only=True)
class CandidatesDisplay(ModelDisplay):
    """Held-out losses of the candidates, the best on top, with the chosen one marked.

    ``plot(max_candidates=20)`` draws at most so many, the best, by kernel, and by criterion if they
    have several.

    Parameters
    ----------
    names : sequence of str
        Kernel and criterion of every candidate.
    loss : ndarray of shape (n_candidates,)
        Loss of every candidate, smaller is better; infinite if it could not be evaluated.
    loss_name : str
        Name of the loss.
    chosen : int
        Index of the chosen candidate; for a stack, of the largest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import TabularClassifier
    >>> from looms.report import CandidatesDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TabularClassifier(["linear", "rbf"], combine="best").fit(X, y)
    >>> display = CandidatesDisplay.from_estimator(model)
    >>> display.names, display.names[display.chosen]
    (['linear, squared error', 'rbf, squared error'], 'rbf, squared error')
    """

    names: list[str]
    loss: Array
    loss_name: str
    chosen: int

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """Candidates of a fitted model by their ``loss``, or √PRESS."""
        model, _ = searched_model(estimator, cls.__name__)
        return cls(
            names=[
                f"{candidate.kernel_name}, {criterion_name(str(candidate.criterion))}"
                for candidate in model.fitted.candidates
            ],
            loss=model.candidate_losses,
            loss_name=f"{model.candidates_by} {model.loss.name}",
            chosen=model.best,
        )

    def _draw(self, ax: Any, *, max_candidates: int = 20) -> None:
        order = np.argsort(self.loss, kind="stable")[:max_candidates]
        loss = np.where(np.isfinite(self.loss), self.loss, np.nan)
        for place, k in enumerate(order):
            ax.axhline(place, color=ink(), linewidth=0.4, linestyle=":", zorder=0)
            ax.plot(loss[k], place, "o", color="C1" if k == self.chosen else "C0", markersize=7)
        names = [self.names[k] for k in order]
        kernels, criteria = zip(*(name.rpartition(", ")[::2] for name in names), strict=True)
        label_ticks(ax, names if len(set(criteria)) > 1 else kernels, longest=_LONGEST)
        label_axes(ax, self.loss_name)


def _shown(model: Reported, objective: Objective, along: tuple[str, str] | None) -> list[list[int]]:
    """Indices of the hyper-parameters to show, in groups that change together."""
    names = objective.names
    if along is not None:
        if set(along) - set(names) or len(along) != 2 or along[0] == along[1]:
            raise ValueError(
                f"along must name two different hyper-parameters of {', '.join(names)}; "
                f"got {along!r}."
            )
        return [[names.index(name)] for name in sorted(along, key=names.index)]
    relevance, mu = relevances(model), [len(names) - 1]
    place = {h.feature: k for k, h in enumerate(objective.hyperparameters)}
    if relevance is None or set(place) == {None}:
        return [[0], mu] if len(names) > 1 else [mu]
    # The scales of the most relevant column, the largest first.
    features = max(model.features.columns.values(), key=lambda members: sum(relevance[members]))
    scales = [place[k] for k in sorted(features, key=lambda k: -relevance[k]) if k in place]
    return [scales, mu] if scales else [mu]


def _surface(
    objective: Objective, best: Array, shown: list[list[int]], axes: list[Array], shift: float
) -> Array:
    """The criterion on the grid; one eigendecomposition for all μ of a kernel."""

    def theta_at(*values: float) -> Array:
        theta = best.copy()
        for group, value in zip(shown, values, strict=False):
            theta[group] += value - best[group[0]]
        theta[-1] += shift
        return theta

    if shown[-1] != [len(best) - 1]:
        surface = [
            [objective.evaluate(theta_at(x, y), gradient=False).value for y in axes[1]]
            for x in axes[0]
        ]
    else:
        kernels = [theta_at()] if len(shown) == 1 else [theta_at(x) for x in axes[0]]
        rows = [objective.along_mu(theta[:-1], axes[-1] + shift) for theta in kernels]
        surface = [[point.value for point in row] for row in rows]
    return np.squeeze(np.array(surface))
