"""A support vector machine as it is asked for on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from looms.cli._errors import InputError


class SVMKernel(StrEnum):
    """Kernels of a support vector machine."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"
    CUBIC = "cubic"
    RBF = "rbf"


_DEGREES = {SVMKernel.QUADRATIC: 2, SVMKernel.CUBIC: 3}


@dataclass(frozen=True)
class SVMRequest:
    """What was asked for; None leaves a choice to scikit-learn."""

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

    def machine(self) -> Any:
        """The estimator, not fitted yet."""
        from sklearn.svm import SVC

        kernel = self.kernel or SVMKernel.RBF
        options: dict[str, Any] = {"kernel": str(kernel)}
        if kernel in _DEGREES:
            options = {"kernel": "poly", "degree": _DEGREES[kernel], "coef0": 1.0}
        if self.C is not None:
            options["C"] = self.C
        if self.gamma is not None:
            options["gamma"] = self.gamma
        return SVC(**options)

    def description(self) -> str:
        """The machine in words."""
        kernel = self.kernel or SVMKernel.RBF
        values = [f"C = {1.0 if self.C is None else self.C:g}"]
        if kernel is not SVMKernel.LINEAR:
            values.append("gamma = 'scale'" if self.gamma is None else f"gamma = {self.gamma:g}")
        return f"Support vector machine, {kernel} kernel, {', '.join(values)}"
