"""Kernels as users give them: a name, a matrix or a plain function."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from looms._advice import setting
from looms._typing import Array, Matrix
from looms._words import one_line
from looms.kernels._base import Kernel
from looms.kernels._dot_product import Boolean, Linear, Polynomial, Tanimoto
from looms.kernels._laplacian import Laplacian
from looms.kernels._mapped import Normalized, Ranked, Weighted
from looms.kernels._samples import Pairs, Samples
from looms.kernels._stationary import ARD, RBF, Matern, PowerExponential, PowerExponentialARD


class Precomputed(Kernel):
    """Precomputed kernel, with the kernel matrix in place of the features.

    For training, ``X`` is the (n, n) kernel matrix; for prediction, the (m, n) matrix of
    kernel values between new samples and training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelRegressor
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    >>> model = KernelRegressor("precomputed", mu=0.1).fit(X @ X.T, y)
    >>> model.predict(np.array([[1.5]]) @ X.T).round(2)
    array([1.43])
    """

    pairwise = True

    def values(self, pairs: Pairs) -> Array:
        block = pairs.rows.X[:, pairs.cols.start : pairs.cols.stop]
        return np.array(block.toarray() if hasattr(block, "toarray") else block, order="F")

    def self_values(self, samples: Samples) -> Array:
        rows = np.arange(samples.n_samples)
        return np.asarray(samples.X[rows, samples.start + rows], dtype=np.float64).ravel()


class Function(Kernel):
    """Kernel from a plain function.

    Parameters
    ----------
    function : called with two matrices of samples as they were given, (n, d) and
        (m, d); returns the (n, m) kernel matrix. Its hyper-parameters cannot be tuned:
        for that, subclass `Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.kernels import Function
    >>> def intersection(A, B):
    ...     return np.minimum(A[:, None], B[None]).sum(axis=-1)
    >>> Function(intersection)(np.array([[1.0, 0.0], [0.5, 0.5]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def __init__(self, function: Callable[[Matrix, Matrix], Array]) -> None:
        self.function = function

    def values(self, pairs: Pairs) -> Array:
        shape = (pairs.rows.n_samples, pairs.cols.n_samples)
        K = np.array(self.function(pairs.rows.X, pairs.cols.X), dtype=np.float64, order="F")
        if K.shape != shape:
            raise ValueError(
                f"The kernel function was called with {shape[0]} and {shape[1]} samples and "
                f"returned shape {K.shape}; it must return shape {shape}."
            )
        return K

    def self_values(self, samples: Samples) -> Array:
        rows = (samples.X[i : i + 1] for i in range(samples.n_samples))
        return np.array([np.asarray(self.function(row, row)).item() for row in rows])


#: Kernel as users give it.
KernelLike: TypeAlias = Kernel | str | Callable[[Matrix, Matrix], Array]

_NAMED: dict[str, Callable[[], Kernel]] = {
    "linear": Linear,
    "quadratic": lambda: Polynomial(degree=2),
    "cubic": lambda: Polynomial(degree=3),
    "boolean": Boolean,
    "tanimoto": Tanimoto,
    "rbf": RBF,
    "laplacian": Laplacian,
    "ard": ARD,
    "matern12": lambda: Matern(nu=0.5),
    "matern32": Matern,
    "matern52": lambda: Matern(nu=2.5),
    "powexp": PowerExponential,
    "powexp_ard": PowerExponentialARD,
}
#: Kernels around the one named after the prefix.
_WRAPPED: dict[str, Callable[[Kernel], Kernel]] = {
    "normalized_": Normalized,
    "ranked_": Ranked,
    "weighted_": Weighted,
}

#: Names of kernels whose feature weights are learned during tuning.
LEARNED_NAMES = tuple(
    f"weighted_{name}" for name in ("rbf", "matern12", "matern32", "matern52", "powexp")
)
#: Every other name that `as_kernel` understands, except for polynomials named by degree.
KERNEL_NAMES = (
    *_NAMED,
    *(prefix + name for prefix in ("normalized_", "ranked_") for name in _NAMED),
    "precomputed",
)
_NAME = re.compile(
    rf"(?P<prefix>{'|'.join(_WRAPPED)})?(?:polynomial(?P<degree>[1-9]\d?)|(?P<name>.+))"
)


#: What other libraries call some of them.
_ALIKE = {
    **dict.fromkeys(("gauss", "gaussian", "squared_exponential"), "rbf"),
    **{"poly": "polynomial3", "polynomial": "polynomial3", "matern": "matern32"},
    "jaccard": "tanimoto",
}


def is_kernel_name(name: str) -> bool:
    """True for the names that `as_kernel` understands."""
    match = _NAME.fullmatch(name)
    of_degree = match is not None and match["degree"] and match["prefix"] != "weighted_"
    return name in KERNEL_NAMES or name in LEARNED_NAMES or bool(of_degree)


def as_kernel(kernel: KernelLike) -> Kernel:
    """Kernel from a name, a kernel object or a plain function.

    Parameters
    ----------
    kernel : a `Kernel`; one of `KERNEL_NAMES` or `LEARNED_NAMES`; ``polynomial4`` and so on, named
        by degree, also after ``normalized_``; or a function of two matrices of samples that
        returns their kernel matrix.

    Raises
    ------
    ValueError
        For an unknown name; the message lists the known ones.
    TypeError
        For anything else.

    Examples
    --------
    >>> from looms.kernels._names import as_kernel
    >>> as_kernel("normalized_cubic")
    Normalized(kernel=Polynomial(degree=3))
    >>> as_kernel("polynomial5")
    Polynomial(degree=5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel == "precomputed":
            return Precomputed()
        if kernel == "auto":
            raise ValueError(
                "'auto' is not a kernel: use TabularClassifier or TabularRegressor with "
                f"{setting('candidates', 'auto')}, not in a list."
            )
        if "," in kernel:
            several = [name.strip() for name in kernel.split(",")]
            raise ValueError(
                f"Unknown {setting('kernel')} {kernel!r}: give several as a list, {several}."
            )
        if not is_kernel_name(kernel):
            near = _ALIKE.get(kernel) or next(iter(get_close_matches(kernel, KERNEL_NAMES, 1)), "")
            raise ValueError(
                f"Unknown {setting('kernel')} {kernel!r}{near and f' (did you mean {near!r}?)'}; "
                f"known are {', '.join(_NAMED)}{setting('precomputed', text=', precomputed')}, one "
                f"of these after normalized_ or ranked_, {', '.join(LEARNED_NAMES)}, and "
                "polynomial4 and so on, named by degree."
            )
        match = _NAME.fullmatch(kernel)
        assert match is not None
        degree, prefix = match["degree"], match["prefix"]
        plain = Polynomial(degree=int(degree)) if degree else _NAMED[match["name"]]()
        return _WRAPPED[prefix](plain) if prefix else plain
    if callable(kernel) and not isinstance(kernel, type):
        return Function(kernel)
    of_class = f": give an object, {kernel.__name__}(...)" if isinstance(kernel, type) else ""
    raise TypeError(
        "A kernel must be a name, a looms.kernels object or a function of two matrices, "
        f"got {one_line(kernel)}{of_class}."
    )


def is_estimator(kernel: Any) -> bool:
    """True for an estimator of scikit-learn in the place of a kernel.

    Before the fit it need not have `predict`, as stacks have not.
    """
    known = hasattr(kernel, "fit") and hasattr(kernel, "get_params")
    return known and not isinstance(kernel, (type, Kernel))


def kernel_name(kernel: KernelLike) -> str:
    """Name of a kernel as it was passed: the string, the name of a function, or else the repr."""
    return kernel if isinstance(kernel, str) else getattr(kernel, "__name__", None) or repr(kernel)
