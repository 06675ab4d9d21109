"""Certificates: held-out outputs of some rows, compared with refits without these rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from looms import _html
from looms._checks import check_count
from looms._typing import AnyArray, Array
from looms._words import count
from looms.folds import left_out_with
from looms.held_out import HeldOut
from looms.lssvm._system import targets_as_columns
from looms.lssvm.conditioning import spread_of
from looms.svm import NotConvergedError
from looms.units import Units

#: Largest bound, in standard deviations of the targets, of outputs that have digits left.
LARGEST_BOUND = 1e-3

Verdict = Literal["agrees", "cannot tell", "differs"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Comparison of a fitted model's outputs, held-out and ordinary, with refits.

    Attributes
    ----------
    rows : ndarray of shape (n_refitted,)
        Rows that were held out in refits.
    difference : float
        Largest absolute difference from the refits, in units of the outputs: between held-out
        outputs and refits without the rows, and between the model's ordinary outputs and a refit
        to all rows.
    relative : float
        The same in standard deviations of the targets.
    condition : float or None
        Condition number of the system that is solved, the largest if there are several: the norm
        ‖M‖₁ of the kernel matrix plus ridge, or of the normal equations on landmarks and of those
        without the rows, over its smallest eigenvalue. None for a support vector machine, which is
        not a linear system.
    bound : float
        Largest relative difference that rounding explains: ε (n + ``condition``), with ε the
        spacing of floating-point numbers at one, times the largest target or output in standard
        deviations; and what rounding of kernel values explains. On m landmarks of coefficients c
        that is m ε (1 + Σ_l |w_l|) Σ_j |k(x, z_j)| |c_j|, where w are the weights of the targets
        in the output, and 4 ε ``condition`` once more. On all rows, if the values that fit and
        refits compute differ by up to δ √(M_jj M_kk), M the kernel matrix plus ridge, it is
        δ (√M_ii + Σ_j |w_j| √M_jj) Σ_k √M_kk |α_k|, where α are the coefficients of its model.
        For a support vector machine, what the tolerance of its KKT conditions allows.
    solver : str
        Solver of the refits.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelRegressor
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> certificate = KernelRegressor(mu=1e-6).fit(X, np.sin(6 * X[:, 0])).certify()
    >>> certificate.holds, certificate.relative < 1e-9, len(certificate.rows)
    (True, True, 3)
    """

    rows: AnyArray
    difference: float
    relative: float
    condition: float | None
    bound: float
    solver: str

    @classmethod
    def of(
        cls,
        rows: AnyArray,
        differences: Array,
        y: Array,
        *,
        condition: float | None,
        bound: float,
        solver: str,
    ) -> Self:
        """Certificate of differences, (k,), or (k, n_targets) for several targets."""
        relative = targets_as_columns(differences) / spread_of(y)
        return cls(rows, float(differences.max()), float(relative.max()), condition, bound, solver)

    @property
    def verdict(self) -> Verdict:
        """Whether the outputs agree with the refits, differ, or are too ill-conditioned to tell.

        "differs" if the difference exceeds the bound; "cannot tell" if the bound is above 0.001
        standard deviations of the targets, so that no digits are certain; otherwise "agrees".
        """
        if not self.relative <= self.bound:
            return "differs"
        return "agrees" if self.bound <= LARGEST_BOUND else "cannot tell"

    @property
    def holds(self) -> bool:
        """True if the verdict is "agrees"."""
        return self.verdict == "agrees"

    def __str__(self) -> str:
        words = {
            "agrees": "agree with refits",
            "cannot tell": "are too ill-conditioned to tell from refits",
            "differs": "differ from refits",
        }
        at = "" if self.condition is None else f" at condition number {self.condition:.1e}"
        return (
            f"outputs of {count(len(self.rows), 'row')} {words[self.verdict]} by "
            f"{self.solver}: difference {self.relative:.1e} standard deviations, "
            f"bound {self.bound:.1e}{at}"
        )

    def _repr_html_(self) -> str:
        values = {
            "rows refitted": ", ".join(map(str, self.rows.tolist())),
            "solver of the refits": self.solver,
            "largest difference": f"{self.difference:.2g}",
            "in standard deviations": f"{self.relative:.2g}",
            "bound": f"{self.bound:.2g}",
            "condition number": "–" if self.condition is None else f"{self.condition:.2g}",
        }
        return _html.table(["certificate", self.verdict], list(values.items()))


class CertifiedModel(BaseEstimator):  # type: ignore[misc]
    """Base class of the models that compare their held-out outputs with refits."""

    fit_weight_: Array
    loo_: HeldOut
    held_out_: HeldOut
    certificate_: Certificate

    def certify(self, n_rows: int = 3, X: Any = None) -> Certificate:
        """Largest difference between some outputs, held-out and ordinary, and refits.

        Held-out outputs are compared with models refitted without the row, or its group or
        fold. The model's ordinary outputs, as ``predict`` computes them and by the dual
        coefficients, are compared with a model refitted to all rows. The hyper-parameters stay
        the same. The refits share only the kernel with the fit: a least-squares model is solved
        anew by LU with partial pivoting, a support vector machine by scikit-learn's ``SVC``.

        Parameters
        ----------
        n_rows : int, default=3
            Number of rows to hold out, at most all: the one with the largest residual, and others
            drawn at random, the same at every call.
        X : array-like, sparse matrix, dask collection or RowBlocks, default=None
            The training samples, needed only for a saved model that was fitted to rows in
            blocks, which are not saved with it.

        Returns
        -------
        certificate : Certificate
            Also stored as ``certificate_``. It covers ``loo_``, and ``held_out_`` if rows are held
            out in groups or folds, but not outputs of models that were tuned anew, as by
            `evaluate`. If a model without the rows cannot be fitted, the difference is infinite.

        Raises
        ------
        ValueError
            If ``n_rows`` is not a positive integer, or the samples are neither kept nor given.
        MemoryError
            If the refits would take more memory than is free.
        sklearn.exceptions.NotFittedError
            If the model is not fitted.

        Notes
        -----
        Each row, or fold, and the model of all rows cost 2n³/3 flops, and the condition number
        n³/3; on landmarks each costs a sweep over the rows. At n = 1000, three rows cost a quarter
        of the fit of a model that tunes its hyper-parameters, and five times the fit with given
        ones; at n = 2000, 0.8 s, as much as the fit. Memory: six n×n arrays.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from looms import KernelClassifier
        >>> certificate = KernelClassifier(mu=1e-3).fit(*load_iris(return_X_y=True)).certify()
        >>> certificate.verdict, len(certificate.rows), certificate.relative < certificate.bound
        ('agrees', 3, True)
        """
        check_is_fitted(self)
        train = np.flatnonzero(self.fit_weight_)
        check_count(n_rows, "n_rows")
        places = self._places_to_refit(min(int(n_rows), len(train)), train)
        try:
            certificate = self._compared(places, train, X)
        except (np.linalg.LinAlgError, NotConvergedError) as error:
            solver = f"a model that could not be fitted ({type(error).__name__})"
            certificate = Certificate(train[places], np.inf, np.inf, None, np.inf, solver)
        self.certificate_ = certificate
        return certificate

    def _places_to_refit(self, n_rows: int, train: AnyArray) -> AnyArray:
        """Places among the rows ``train``, in order."""
        residuals = np.abs(targets_as_columns(self.loo_.residuals)[train]).max(axis=1)
        first = int(np.argmax(residuals))
        others = np.delete(np.arange(len(train)), first)
        drawn = np.random.default_rng(0).choice(others, n_rows - 1, replace=False)
        return np.sort(np.append(drawn, first))

    def _passes(self, places: AnyArray, train: AnyArray) -> list[tuple[HeldOut, AnyArray, Units]]:
        """Outputs to compare, and numbers, (n_repetitions, n_train), of what to leave out for them.

        -1 for rows that stay; -2 - k for those of a gap. Then all units.
        """
        alone = np.full(len(train), -1)
        alone[places] = np.arange(len(places))
        passes = [(self.loo_, alone[None], Units.rows(len(train)))]
        if self._units.alone or getattr(self, "choice_units_", None) is not None:
            return passes
        kept = [
            np.where(np.isin(left_out_with(each), each[places][each[places] >= 0]), each, -1)
            for each in self._units.codes
        ]
        return [*passes, (self.held_out_, np.array(kept), self._units)]

    @abstractmethod
    def _compared(self, places: AnyArray, train: AnyArray, X: Any) -> Certificate:
        """Certificate of the rows at ``places`` among the rows ``train`` of the fit."""
