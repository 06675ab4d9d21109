"""Kernels by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from looms._checks import check_known
from looms.kernels._base import Kernel
from looms.kernels._dot_product import Boolean, Linear, Polynomial
from looms.kernels._given import Function, Precomputed
from looms.kernels._normalized import Normalized
from looms.kernels._stationary import ARD, RBF

_NAMED: dict[str, Callable[[], Kernel]] = {
    "linear": Linear,
    "quadratic": lambda: Polynomial(degree=2),
    "cubic": lambda: Polynomial(degree=3),
    "boolean": Boolean,
    "rbf": RBF,
    "ard": ARD,
}
_NORMALIZED = "normalized_"

#: Every name that `as_kernel` understands.
KERNEL_NAMES = (*_NAMED, *(_NORMALIZED + name for name in _NAMED), "precomputed")


def as_kernel(kernel: Any) -> Kernel:
    """Kernel from a name, a kernel object or a plain function.

    Parameters
    ----------
    kernel : a `Kernel`; one of `KERNEL_NAMES`; or a function of two matrices of
        samples that returns their kernel matrix.

    Raises
    ------
    ValueError
        For an unknown name, with the known ones.
    TypeError
        For anything else.

    Examples
    --------
    >>> from looms.kernels._names import as_kernel
    >>> as_kernel("normalized_cubic")
    Normalized(kernel=Polynomial(degree=3))
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel == "precomputed":
            return Precomputed()
        name = kernel.removeprefix(_NORMALIZED)
        check_known(kernel, "kernel", KERNEL_NAMES)
        named = _NAMED[name]()
        return named if name == kernel else Normalized(named)
    if callable(kernel) and not isinstance(kernel, type):
        return Function(kernel)
    raise TypeError(
        f"A kernel is a name, a looms.kernels object or a function of two matrices, got {kernel!r}."
    )


def kernel_name(kernel: Any) -> str:
    """Name of a kernel as it was passed: the string, the name of a function, else the repr."""
    return kernel if isinstance(kernel, str) else getattr(kernel, "__name__", None) or repr(kernel)
