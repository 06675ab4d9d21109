"""Errors of an assessment that carry its result so far."""

from __future__ import annotations

from looms.assessment._result import Assessment


class AllSplitsRaisedError(ValueError):
    """Error of an assessment in which all splits raised.

    Attributes
    ----------
    result : Assessment
        Has the reason for every split in ``failures``, and no scores.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier, assess
    >>> from looms.assessment import AllSplitsRaisedError
    >>> try:
    ...     assess(KernelClassifier(mu=-1.0), *load_iris(return_X_y=True), 2, random_state=0)
    ... except AllSplitsRaisedError as error:
    ...     print(len(error.result.failures))
    2
    """

    def __init__(self, result: Assessment) -> None:
        super().__init__(result)
        self.result = result

    def __str__(self) -> str:
        first = next(iter(self.result.failures.values()))
        return f"All {len(self.result.splits)} splits raised; the first: {first}"


class AssessmentInterrupted(KeyboardInterrupt):
    """Interrupt (Ctrl-C) of an assessment, with the finished splits.

    Attributes
    ----------
    result : Assessment or None
        Result of the finished splits; None if they give no scores.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier, assess
    >>> from looms.assessment import AssessmentInterrupted
    >>> def stop(done, total, result):
    ...     if done == 1:
    ...         raise KeyboardInterrupt
    >>> X, y = load_iris(return_X_y=True)
    >>> try:
    ...     assess(KernelClassifier(mu=1e-3), X, y, 3, random_state=0, progress=stop)
    ... except AssessmentInterrupted as interrupted:
    ...     print(len(interrupted.result.splits))
    1
    """

    def __init__(self, message: str, result: Assessment | None) -> None:
        super().__init__(message)
        self.result = result
