"""The way of a search over the surface of its criterion."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from looms._typing import Array
from looms.report._axes import axes_for, ink, label_axes, plain_frame, short
from looms.report._model import Model, check_selected, model_of
from looms.report._relevance import feature_of, parameter_name, relevances
from looms.report._training import sampled_rows, training_objective
from looms.selection import Objective
from looms.selection._tune import log2_mu_shift

_MARGIN = 2.0  # log₂ units shown beyond the path
_LEAST_WIDTH = 8.0


class SearchPathDisplay:
    """Points of a search over the surface of the leave-one-out criterion.

    Of two hyper-parameters the whole surface; of more, the slice through the optimum along
    two of them, on which the points of the path are projected; of one, a curve.

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
        log₂ of those chosen.
    n_surface : int
        Samples that the surface was computed on.
    criterion : str
        Name of the criterion.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifierCV
    >>> from looms.report import SearchPathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = SearchPathDisplay.from_estimator(LSSVMClassifierCV().fit(X, y), resolution=9)
    >>> display.names, display.surface.shape
    (['eta', 'mu'], (9, 9))
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        *,
        names: list[str],
        axes: list[Array],
        surface: Array,
        path: Array,
        best: Array,
        n_surface: int,
        criterion: str,
    ) -> None:
        self.names = names
        self.axes = axes
        self.surface = surface
        self.path = path
        self.best = best
        self.n_surface = n_surface
        self.criterion = criterion

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        along: tuple[str, str] | None = None,
        resolution: int = 17,
        n_samples: int = 500,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Evaluate the criterion around the search of a fitted machine.

        Parameters
        ----------
        estimator : self-tuned machine of looms, or pipeline that ends in one
            Fitted.
        along : two names of hyper-parameters, default=None
            Those of the slice. Unless given mu and the first of the kernel; for an ARD
            kernel all scales of the features that were made of the most relevant column,
            which change together.
        resolution : int, default=17
            Grid points along each.
        n_samples : int, default=500
            Samples drawn for the surface, m. Where there are more, n, it is that of the
            criterion on m of them, at the ridges that the search expects to be equivalent,
            μ (n / m)^½; its optimum may lie elsewhere than that on all samples.
        random_state : int, default=0
            Draws them.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : SearchPathDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.

        Notes
        -----
        One eigendecomposition of an m×m matrix for every value of a kernel's parameter, all μ
        of it at O(m²) each; resolution² factorisations for two parameters of the kernel. The
        surface is that of the criterion, without the prior where the search had one.
        """
        return cls.compute(
            estimator,
            along=along,
            resolution=resolution,
            n_samples=n_samples,
            random_state=random_state,
        ).plot(ax, **kwargs)

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
        """What `from_estimator` draws, not drawn."""
        model = model_of(estimator)
        check_selected(model.machine, cls.__name__)
        rows = sampled_rows(model, n_samples, random_state)
        objective = training_objective(model, rows)
        shown = _shown(model, objective.names, along)
        first = [k for k, *_ in shown]
        path = _path(model)
        machine: Any = model.machine
        best = machine.selection_.theta
        axes = [_axis(path[:, k], best[k], resolution) for k in first]
        shift = log2_mu_shift(int((model.loo.sample_weight > 0).sum()), len(rows))
        return cls(
            names=[_shown_name(model, [objective.names[k] for k in group]) for group in shown],
            axes=axes,
            surface=_surface(objective, best, shown, axes, shift),
            path=path[:, first],
            best=best[first],
            n_surface=len(rows),
            criterion=type(objective.criterion).__name__,
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw the surface and the path.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.

        Returns
        -------
        self : SearchPathDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        if len(self.names) == 1:
            self._curve(ax)
        else:
            self._contours(ax)
        return self

    def _curve(self, ax: Any) -> None:
        finite = np.isfinite(self.surface)
        axis, surface = self.axes[0][finite], self.surface[finite]
        ax.plot(axis, surface, color="C0")
        path = self.path[:, 0]
        ax.plot(path, np.interp(path, axis, surface), "o", color=ink(), markersize=3)
        ax.axvline(float(self.best[0]), color="C1", linewidth=1)
        label_axes(ax, self._label(0), f"{self.criterion}, leave-one-out")
        plain_frame(ax)

    def _contours(self, ax: Any) -> None:
        values = np.where(np.isfinite(self.surface), self.surface, np.nan)
        levels = np.unique(np.nanquantile(values, np.linspace(0, 1, 13)))
        if len(levels) > 1:
            ax.contourf(*self.axes, values.T, levels, colors=_depths(len(levels) - 1))
        ax.plot(*self.path.T, "-o", color=ink(), linewidth=0.9, markersize=2.5)
        ax.plot(*self.best, "o", color="C1", markersize=7)
        label_axes(ax, self._label(0), self._label(1))
        ax.set(xlim=self.axes[0][[0, -1]], ylim=self.axes[1][[0, -1]])

    def _label(self, k: int) -> str:
        return f"log₂ {short(self.names[k])}"


def _depths(n: int) -> list[Any]:
    """One colour, the deeper the worse: legible on light and on dark ground."""
    from matplotlib.colors import to_rgba

    red, green, blue, _ = to_rgba("C0")
    return [(red, green, blue, alpha) for alpha in np.linspace(0.03, 0.6, n)]


def _shown(model: Model, names: list[str], along: tuple[str, str] | None) -> list[list[int]]:
    """Places of the hyper-parameters to show, grouped by those that change together."""
    if along is None:
        kernel = _foremost(model, names)
        return [kernel, [len(names) - 1]] if kernel else [[len(names) - 1]]
    unknown = [name for name in along if name not in names]
    if unknown or len(along) != 2 or along[0] == along[1]:
        raise ValueError(
            f"along must name two different hyper-parameters of {', '.join(names)}; got {along!r}."
        )
    return [[names.index(name)] for name in sorted(along, key=names.index)]


def _foremost(model: Model, names: list[str]) -> list[int]:
    """The kernel's first hyper-parameter, or the scales of the most relevant column."""
    relevance = relevances(model)
    if relevance is None:
        return [0] if len(names) > 1 else []
    total: dict[str, float] = {}
    for source, share in zip(model.sources, relevance, strict=True):
        total[source] = total.get(source, 0.0) + float(share)
    column = max(total, key=total.__getitem__)
    features = [k for k, source in enumerate(model.sources) if source == column]
    features.sort(key=lambda k: -relevance[k])
    place = {feature_of(name): k for k, name in enumerate(names)}
    return [place[k] for k in features if k in place]


def _shown_name(model: Model, names: list[str]) -> str:
    feature = feature_of(names[0])
    if len(names) > 1 and feature is not None:
        return f"eta of {model.sources[feature]}"
    return parameter_name(model, names[0])


def _path(model: Model) -> Array:
    """log₂ hyper-parameters of every evaluation, μ as for all samples."""
    machine: Any = model.machine
    stages = machine.selection_.stages
    n = stages[-1][0]
    points = []
    for size, search in stages:
        for point in search.history:
            theta = point.theta.copy()
            theta[-1] -= log2_mu_shift(n, size)
            points.append(theta)
    return np.array(points)


def _axis(values: Array, best: float, resolution: int) -> Array:
    low, high = min(values.min(), best) - _MARGIN, max(values.max(), best) + _MARGIN
    missing = max(0.0, _LEAST_WIDTH - (high - low)) / 2
    return np.linspace(low - missing, high + missing, resolution)


def _surface(
    objective: Objective, best: Array, shown: list[list[int]], axes: list[Array], shift: float
) -> Array:
    """The criterion on the grid; one eigendecomposition for all μ of a kernel."""

    def moved(group: list[int], value: Any) -> Array:
        theta = best.copy()
        theta[group] += value - best[group[0]]
        return theta

    if shown[-1] != [len(best) - 1]:
        surface = np.empty((len(axes[0]), len(axes[1])))
        for i, j in np.ndindex(*surface.shape):
            theta = moved(shown[0], axes[0][i])
            theta[shown[1]] = axes[1][j]
            theta[-1] += shift
            surface[i, j] = objective.evaluate(theta, gradient=False).value
        return surface
    if len(shown) == 1:
        kernels, log2_mu = [best[:-1]], axes[0] + shift
    else:
        kernels, log2_mu = [moved(shown[0], value)[:-1] for value in axes[0]], axes[1] + shift
    points = [objective.along_mu(theta, log2_mu) for theta in kernels]
    return np.squeeze(np.array([[point.value for point in row] for row in points]))
