"""How clearly the machine without each sample takes it for each class."""

from __future__ import annotations

from typing import Any

from looms._typing import Array
from looms.conformal import class_margins


def loo_margins(machine: Any) -> Array:
    """Margin of every class by the leave-one-out outputs, (n_samples, n_classes).

    Of two classes ∓(f − threshold), of more each output less the largest of the others: the class
    of the largest margin, on equal terms the first, is the one that the machine without the
    sample predicts.

    Parameters
    ----------
    machine : classifier of looms, fitted.
    """
    outputs = machine.loo_.outputs
    outputs = outputs[:, None] - machine.threshold_ if outputs.ndim == 1 else outputs
    return class_margins(outputs)
