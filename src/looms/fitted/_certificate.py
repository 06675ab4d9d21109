"""Certificates: held-out outputs of some rows, compared with refits without these rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from looms import _html
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms._words import count
from looms.blocks import blocks_of
from looms.fitted._fitted import Fitted
from looms.folds import left_out_with
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.lssvm._system import targets_as_columns
from looms.lssvm.conditioning import rounding_bound, spread_of
from looms.svm import NotConvergedError
from looms.units import Units

#: Largest bound, in standard deviations of the targets, of outputs that have digits left.
LARGEST_BOUND = 1e-3

_REFITTED = 3  # rows of a change
#: Difference from a refit, in standard deviations of the targets, that rounding cannot explain.
_WRONG = 1e-6

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
        ‖M‖₁ of the kernel matrix plus ridge, or of the normal equations of landmarks or of few
        features and of those without the rows, over its smallest eigenvalue. None for a support
        vector machine, which is not a linear system.
    bound : float
        Largest relative difference that rounding explains: ε (n + ``condition``), with ε the
        spacing of floating-point numbers at one, times the largest target or output in standard
        deviations; and what rounding of kernel values explains. On m landmarks of coefficients c
        that is m ε (1 + Σ_l |w_l|) Σ_j |k(x, z_j)| |c_j|, where w are the weights of the targets
        in the output, and 4 ε ``condition`` once more; on m features likewise. On all rows, if the
        values that fit and refits compute differ by up to δ √(M_jj M_kk), M the kernel matrix plus
        ridge, it is δ (√M_ii + Σ_j |w_j| √M_jj) Σ_k √M_kk |α_k|, where α are the coefficients of
        its model.
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


def certified(model: Fitted, n_rows: int = 3) -> Certificate:
    """Certificate of rows of a model, each left out by itself, or with its group or fold."""
    train = model.rows.train
    residuals = np.abs(targets_as_columns(model.loo.residuals)[train]).max(axis=1)
    first = int(np.argmax(residuals))
    others = np.delete(np.arange(len(train)), first)
    drawn = np.random.default_rng(0).choice(others, min(n_rows, len(train)) - 1, replace=False)
    places = np.sort(np.append(drawn, first))
    try:
        return _row_certificate(model, places)
    except (np.linalg.LinAlgError, NotConvergedError) as error:
        solver = f"a model that could not be fitted ({type(error).__name__})"
        return Certificate(train[places], np.inf, np.inf, None, np.inf, solver)


def certified_change(model: Fitted) -> Certificate:
    """Certificate of a model whose rows changed: of some rows, all of which one refit leaves out.

    RuntimeError if rounding cannot explain it.
    """
    train = model.rows.train
    n = len(train)
    G = np.random.default_rng(0).choice(n, min(_REFITTED, n - 1), replace=False)
    labels = np.full((1, n), -1)
    labels[0, G] = 0
    left_out = zip(model.members, model.left_out.members, strict=True)
    shape = model.loo.y[train[G]].shape
    with blas_threads(n):
        outputs = [
            member.weight * system.of_own(G[None])[0].reshape(shape)
            for member, system in left_out
            if member.closed
        ]
    passes = [(np.sum(outputs, axis=0), labels, Units.rows(n))]
    certificate, leading = _certificate(model, G, passes), model.leading
    if not certificate.relative <= _WRONG:
        assert leading is not None
        raise RuntimeError(
            "Held-out outputs differ from those of a refit by "
            f"{certificate.relative:.2g} standard "
            f"deviations of the targets, above the limit of {_WRONG:g}: at mu = {leading.mu:.3g} "
            "the inverse has lost too many digits. Fit the model anew to these rows, or use a "
            "larger mu."
        )
    return certificate


def _row_certificate(model: Fitted, places: AnyArray) -> Certificate:
    """Of the members in closed form: outputs of the others are refits, and not always the same."""
    train = model.rows.train
    others: list[Any] = [member for member in model.members if not member.closed]
    if len(others) == len(model.members):
        raise ValueError("certify compares closed forms with refits, but this model has none.")
    kept = sum(member.weight * member.held_out[places] for member in others)
    alone = np.full((1, len(train)), -1)
    alone[0, places] = np.arange(len(places))
    passes = [(model.loo.outputs[train[places]] - kept, alone, Units.rows(len(train)))]
    units = model.units_of_fit
    if not units.alone and model.in_folds is None:
        tested = [
            np.where(np.isin(left_out_with(each), each[places][each[places] >= 0]), each, -1)
            for each in units.codes
        ]
        passes.append((model.held_out.outputs[train[places]] - kept, np.array(tested), units))
    some = blocks_of(model.X).rows(train[places])
    own = model.outputs(some) - sum(member.outputs(some, None) for member in others)
    certificate = _certificate(model, places, passes, own)
    if others:
        solver = f"{certificate.solver} (of its kernel models; others are refitted anyway)"
        certificate = replace(certificate, solver=solver)
    return certificate


def _certificate(
    model: Fitted,
    places: AnyArray,
    passes: Sequence[tuple[Array, AnyArray, Units]],
    own: Array | None = None,
) -> Certificate:
    """Comparison of the members in closed form with their refits.

    Parameters
    ----------
    model : fitted.
    places : (k,) of the rows that are compared, among those that take part.
    passes : outputs of these rows; (n_repetitions, n) numbers of what to leave out for them, -1 for
        rows that stay, -2 - k for those of a gap; and all units.
    own : outputs of the model of all rows, to be compared too.
    """
    train = model.rows.train
    y, X = model.loo.y[train], training_rows(model.X, train, model.pairwise)
    # Outputs, and the differences from them that errors of kernel values explain.
    refitted = [np.zeros((2, len(labels), *y.shape)) for _, labels, _ in passes]
    whole, expanded = np.zeros((2, len(places), *y.shape[1:])), np.zeros(())
    solvers, condition = dict[str, None](), 0.0
    with blas_threads(len(train)):
        for member in (member for member in model.members if member.closed):
            zeta = model.rows.own(model.rows.fit_weight)
            system = member.refits(X, y, zeta, model.fit_intercept)
            for sums, (_, labels, units) in zip(refitted, passes, strict=True):
                each = [system.refitted(out, units, r) for r, out in enumerate(labels)]
                sums += member.weight * np.array(each).swapaxes(0, 1)
            if own is not None:
                whole += member.weight * np.array(system.outputs(places))
                expanded = expanded + member.weight * member.expanded(system, train, places)
            condition = max(condition, system.condition)
            solvers[system.solver] = None
    compared = [
        (ours, *np.nanmean(sums[:, :, places], axis=1))
        for sums, (ours, *_) in zip(refitted, passes, strict=True)
    ]
    if own is not None:
        compared += [(own, *whole), (expanded, *whole)]
    differences = np.concatenate([np.abs(ours - others) for ours, others, _ in compared])
    moved = np.concatenate([moved for *_, moved in compared])
    relative, explained = (
        float((targets_as_columns(each) / spread_of(y)).max()) for each in (differences, moved)
    )
    bound = rounding_bound(condition, HeldOut(y, model.loo.outputs[train])) + explained
    return Certificate(
        *(train[places], float(differences.max()), relative),
        condition=condition or None,
        bound=bound,
        solver=" and ".join(solvers),
    )
