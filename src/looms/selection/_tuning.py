"""Record of a tuning: the hyper-parameters, the searches, and bounds that were met."""

from __future__ import annotations

from dataclasses import dataclass

from looms._typing import Array
from looms.optimize._search import Point, Search, StopReason


@dataclass(frozen=True)
class BoundMet:
    """A hyper-parameter that ended at a bound; as text it gives advice.

    Attributes
    ----------
    name : name of the hyper-parameter.
    side : "lower" or "upper".
    bound : value of the bound.
    advice : what the bound means, and what to do.
    feature, word : as for a `Hyperparameter` of a kernel.
    """

    name: str
    side: str
    bound: float
    advice: str
    feature: int | None = None
    word: str = ""

    @property
    def remark(self) -> str:
        """Advice without the name of the hyper-parameter."""
        return f"ended at its {self.side} bound {self.bound:.3g}: {self.advice}"

    def __str__(self) -> str:
        return f"{self.name} {self.remark}"


@dataclass(frozen=True, eq=False)
class Tuning:
    """Tuned hyper-parameters of one kernel under one criterion.

    Attributes
    ----------
    theta : (p + 1,) log₂ of the hyper-parameters, the kernel's and μ.
    value, standard_error : criterion there, on all samples without the prior, and its standard
        error.
    stop_reason : reason why the search stopped; the value of the enum is the advice.
    stages : number of samples and record of every search; the last searches are on all samples.
    n_measured : number of evaluations between the stages, to find the curvature and whether
        landmarks suffice.
    at_bounds : hyper-parameters that ended at a bound that matters.
    n_landmarks : number of landmarks of the last search, which is then followed by a single
        evaluation by the whole kernel matrix; None if the last search is by the kernel matrix.
    gain_of_landmarks : with ``rank="auto"``, share of the criterion that the landmarks added last
        have gained, if their number ended at its limit; 0 if more would not gain.
    """

    theta: Array
    value: float
    standard_error: float
    stop_reason: StopReason
    stages: tuple[tuple[int, Search], ...]
    n_measured: int
    at_bounds: tuple[BoundMet, ...]
    n_landmarks: int | None = None
    gain_of_landmarks: float = 0.0

    def __repr__(self) -> str:
        return (
            f"Tuning(value={self.value:.4g}, stop_reason={self.stop_reason.name}, "
            f"n_evaluations={self.n_evaluations})"
        )

    @property
    def history(self) -> tuple[Point, ...]:
        """Points evaluated on all samples, in the order of evaluation."""
        n = self.stages[-1][0]
        return tuple(p for size, search in self.stages if size == n for p in search.history)

    @property
    def n_iterations(self) -> int:
        """Number of iterations of the last search that made some."""
        made = (search.n_iterations for _, search in reversed(self.stages) if search.n_iterations)
        return next(made, 0)

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations in the searches of all stages."""
        return sum(search.n_evaluations for _, search in self.stages)

    @property
    def n_failures(self) -> int:
        """Number of points that could not be evaluated and were stepped over, in all stages."""
        return sum(search.n_failures for _, search in self.stages)
