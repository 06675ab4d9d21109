"""Margins of held-out outputs."""

from __future__ import annotations

from typing import Any

from looms._typing import Array
from looms.conformal._sets import class_margins
from looms.held_out import HeldOut


def loo_margins(machine: Any) -> Array:
    """Leave-one-out margin of every class, (n_samples, n_classes), from ``held_out_``.

    For two classes the margins are ∓(f − threshold). For more classes a margin is the output minus
    its threshold, minus the largest such difference of the other classes. The machine without the
    sample predicts the class with the largest margin, the first one if several are equal.

    Parameters
    ----------
    machine : fitted classifier of looms

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifier
    >>> from looms.diagnostics import loo_margins
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = LSSVMClassifier(mu=1e-3).fit(X, y)
    >>> int((loo_margins(machine).argmax(axis=1) != y).sum())  # the classes are 0, 1, 2
    5
    """
    return margins_of(machine.held_out_, machine.threshold_)


def margins_of(held_out: HeldOut, threshold: float | Array) -> Array:
    """Margin of every class, (n_samples, n_classes), from any outputs."""
    outputs = held_out.outputs
    return class_margins((outputs - threshold).reshape(len(outputs), -1))
