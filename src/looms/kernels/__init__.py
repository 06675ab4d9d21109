"""Kernels: their values, contracted derivatives and hyper-parameters."""

from looms.kernels._base import Constant, Kernel, ParametricKernel
from looms.kernels._categories import Hamming, HammingARD
from looms.kernels._dot_product import Boolean, Linear, Polynomial, Tanimoto
from looms.kernels._hyperparameters import Parameter
from looms.kernels._laplacian import Laplacian
from looms.kernels._mapped import Columns, Normalized, Ranked, Weighted
from looms.kernels._names import Function, Precomputed
from looms.kernels._samples import Pairs, Samples
from looms.kernels._stationary import (
    ARD,
    RBF,
    Matern,
    MaternARD,
    PowerExponential,
    PowerExponentialARD,
)

__all__ = [
    "ARD",
    "RBF",
    "Boolean",
    "Columns",
    "Constant",
    "Function",
    "Hamming",
    "HammingARD",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "MaternARD",
    "Normalized",
    "Pairs",
    "Parameter",
    "ParametricKernel",
    "Polynomial",
    "PowerExponential",
    "PowerExponentialARD",
    "Precomputed",
    "Ranked",
    "Samples",
    "Tanimoto",
    "Weighted",
]
