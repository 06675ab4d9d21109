"""Kernels: values, contraction with their derivatives, and hyper-parameters."""

from looms.kernels._base import Constant, Kernel, Product, ScalarKernel, Sum
from looms.kernels._dot_product import Boolean, Linear, Polynomial
from looms.kernels._given import Function, Precomputed
from looms.kernels._gram import GramBlocks, contract_lower, expansion, gram_into, is_finite_lower
from looms.kernels._hyperparameters import Hyperparameter
from looms.kernels._names import KERNEL_NAMES, as_kernel
from looms.kernels._normalized import Normalized
from looms.kernels._samples import (
    Pairs,
    Samples,
    as_matrix,
    centre_of,
    check_scale,
    training_rows,
)
from looms.kernels._stationary import ARD, RBF

__all__ = [
    "ARD",
    "KERNEL_NAMES",
    "RBF",
    "Boolean",
    "Constant",
    "Function",
    "GramBlocks",
    "Hyperparameter",
    "Kernel",
    "Linear",
    "Normalized",
    "Pairs",
    "Polynomial",
    "Precomputed",
    "Product",
    "Samples",
    "ScalarKernel",
    "Sum",
    "as_kernel",
    "as_matrix",
    "centre_of",
    "check_scale",
    "contract_lower",
    "expansion",
    "gram_into",
    "is_finite_lower",
    "training_rows",
]
