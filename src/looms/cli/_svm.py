"""A support vector machine as it is asked for on the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from looms.cli._errors import InputError

if TYPE_CHECKING:
    from looms._typing import AnyArray


class SVMKernel(StrEnum):
    """Kernels of a support vector machine."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"
    CUBIC = "cubic"
    RBF = "rbf"


_DEGREES = {SVMKernel.QUADRATIC: 2, SVMKernel.CUBIC: 3}
#: Steps of log2 at which the search stops: statistics of a machine need it no finer.
_RESOLUTION = 1.0


@dataclass(frozen=True)
class SVMRequest:
    """What was asked for; None leaves a choice to the leave-one-out error.

    The polynomial kernels are (gamma x·x' + 1)^degree.
    """

    kernel: SVMKernel | None
    C: float | None
    gamma: float | None

    def check(self) -> None:
        """Refuse values that no machine takes, before any work."""
        for name, value in (("--C", self.C), ("--gamma", self.gamma)):
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} must be a positive number, not {value:g}")
        if self.kernel is SVMKernel.LINEAR and self.gamma is not None:
            raise InputError("--gamma is for other kernels than linear; leave it out")
        if self.kernel in _DEGREES and self.C is not None and self.gamma is None:
            raise InputError(
                f"--C of the {self.kernel} kernel goes with --gamma, which scales it; give both, "
                "or leave both to the search"
            )

    def given(self) -> list[str]:
        """The options that were given."""
        values = {"--kernel": self.kernel, "--C": self.C, "--gamma": self.gamma}
        return [name for name, value in values.items() if value is not None]

    def open(self) -> list[str]:
        """The hyper-parameters that were not given."""
        values = {"C": self.C, "gamma": self.gamma}
        if self.kernel is SVMKernel.LINEAR:
            del values["gamma"]
        return [name for name, value in values.items() if value is None]

    def tuned(self, X: Any, y: AnyArray, n_jobs: int) -> SVMRequest:
        """The request with the open hyper-parameters chosen by `SVCCV`, the others held."""
        from looms import SVCCV

        kernel = self.kernel or SVMKernel.RBF
        degree = _DEGREES.get(kernel)
        held = {} if self.C is None else {"C": self.C}
        if self.gamma is not None:
            held |= {"gamma": self.gamma} if degree is None else {"c": 1.0 / self.gamma}
        machine = SVCCV(
            str(kernel), param_grid=held, resolution=_RESOLUTION, probability=None, n_jobs=n_jobs
        ).fit(X, y)
        if kernel is SVMKernel.LINEAR:
            return replace(self, C=machine.C_)
        if degree is None:
            return replace(self, C=machine.C_, gamma=machine.kernel_.eta)
        # The kernel of SVCCV is (x·x' + c)^degree, c^degree times that of gamma = 1/c.
        c = machine.kernel_.c
        return replace(self, C=machine.C_ * c**degree, gamma=1.0 / c)

    def machine(self) -> Any:
        """The estimator, not fitted yet; nothing may be open."""
        from sklearn.svm import SVC

        kernel = self.kernel or SVMKernel.RBF
        options: dict[str, Any] = {"kernel": str(kernel)}
        if kernel in _DEGREES:
            options = {"kernel": "poly", "degree": _DEGREES[kernel], "coef0": 1.0}
        if self.gamma is not None:
            options["gamma"] = self.gamma
        return SVC(C=self.C, **options)

    def description(self) -> str:
        """The machine in words."""
        values = {"C": self.C, "gamma": self.gamma}
        said = [f"{name} = {value:.6g}" for name, value in values.items() if value is not None]
        return f"Support vector machine, {self.kernel or SVMKernel.RBF} kernel, {', '.join(said)}"
