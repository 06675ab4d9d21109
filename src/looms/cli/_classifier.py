"""The classifier to diagnose: a support vector machine by options, or a call of scikit-learn."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from sklearn.base import BaseEstimator
from sklearn.svm import SVC
from sklearn.utils.discovery import all_estimators

from looms import SVCCV
from looms._typing import AnyArray, Matrix
from looms.cli._errors import InputError

SVMKernel: TypeAlias = Literal["linear", "quadratic", "cubic", "rbf"]
_DEGREES: dict[SVMKernel, int] = {"quadratic": 2, "cubic": 3}
#: Step in log2 at which the search stops; the statistics need nothing finer.
_RESOLUTION = 1.0


@dataclass(frozen=True)
class SVMRequest:
    """Support vector machine to diagnose; None means chosen by the leave-one-out error.

    The polynomial kernels are (gamma x·x' + 1)^degree.

    Parameters
    ----------
    kernel
        Kernel of the SVM, default rbf.
    C
        Cost of errors of the SVM; chosen by default.
    gamma
        Inverse squared kernel width; chosen by default.
    """

    kernel: SVMKernel | None = None
    C: float | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        """Refuse values that no machine takes."""
        for name, value in (("--C", self.C), ("--gamma", self.gamma)):
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} must be a positive number, not {value:g}")
        if self.kernel == "linear" and self.gamma is not None:
            raise InputError("--gamma is not for the linear kernel; leave it out")
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
        names = ["C"] if self.kernel == "linear" else ["C", "gamma"]
        return [name for name in names if getattr(self, name) is None]

    def tuned(self, X: Matrix, y: AnyArray, n_jobs: int) -> SVMRequest:
        """The request with open hyper-parameters chosen by `SVCCV`, and the others fixed."""
        kernel = self.kernel or "rbf"
        degree = _DEGREES.get(kernel)
        held = {} if self.C is None else {"C": self.C}
        if self.gamma is not None:
            held |= {"gamma": self.gamma} if degree is None else {"c": 1.0 / self.gamma}
        machine = SVCCV(
            kernel, param_grid=held, resolution=_RESOLUTION, probability=None, n_jobs=n_jobs
        ).fit(X, y)
        if kernel == "linear":
            return replace(self, C=machine.C_)
        if degree is None:
            return replace(self, C=machine.C_, gamma=machine.kernel_.gamma)
        # The kernel of SVCCV is (x·x' + c)^degree, c^degree times that of gamma = 1/c.
        c = machine.kernel_.c
        return replace(self, C=machine.C_ * c**degree, gamma=1.0 / c)

    def machine(self) -> SVC:
        """The unfitted estimator; all hyper-parameters must be given."""
        kernel = self.kernel or "rbf"
        options: dict[str, Any] = {"kernel": kernel}
        if kernel in _DEGREES:
            options = {"kernel": "poly", "degree": _DEGREES[kernel], "coef0": 1.0}
        if self.gamma is not None:
            options["gamma"] = self.gamma
        return SVC(C=self.C, **options)

    def description(self) -> str:
        """The machine in words."""
        values = {"C": self.C, "gamma": self.gamma}
        shown = [f"{name} = {value:.6g}" for name, value in values.items() if value is not None]
        return f"Support vector machine, {self.kernel or 'rbf'} kernel, {', '.join(shown)}"


def classifier_of(call: str) -> BaseEstimator:
    """Unfitted classifier from "LogisticRegression" or "LogisticRegression(C=0.1)".

    Its arguments are literals by name; the text is never run.
    """
    form = "--estimator is a classifier of scikit-learn, such as 'LogisticRegression(C=0.1)'"
    try:
        node = ast.parse(call.strip(), mode="eval").body
        keywords = node.keywords if isinstance(node, ast.Call) and not node.args else []
        name = node.func if isinstance(node, ast.Call) and not node.args else node
        options = {str(one.arg): ast.literal_eval(one.value) for one in keywords}
    except (SyntaxError, ValueError):
        raise InputError(f"{form}, with plain values by name, not {call!r}") from None
    if not isinstance(name, ast.Name):
        raise InputError(f"{form}, with plain values by name, not {call!r}")
    known = dict(all_estimators("classifier"))
    if name.id not in known:
        near = get_close_matches(name.id, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"{form}; {name.id} is not one{hint}")
    try:
        classifier: BaseEstimator = known[name.id](**options)
    except TypeError as error:
        raise InputError(f"--estimator {call}: {error}") from None
    return classifier
