"""Kernels by name."""

import pytest
from sklearn.metrics.pairwise import rbf_kernel

from looms.kernels import RBF, Function, Normalized, Precomputed
from looms.kernels._names import KERNEL_NAMES, LEARNED_NAMES, as_kernel

EXPECTED = {
    "linear": "Linear()",
    "quadratic": "Polynomial()",
    "cubic": "Polynomial(degree=3)",
    "boolean": "Boolean()",
    "tanimoto": "Tanimoto()",
    "rbf": "RBF()",
    "laplacian": "Laplacian()",
    "ard": "ARD()",
    "matern12": "Matern(nu=0.5)",
    "matern32": "Matern()",
    "matern52": "Matern(nu=2.5)",
    "powexp": "PowerExponential()",
    "powexp_ard": "PowerExponentialARD()",
}


def test_names():
    normalized = {f"normalized_{name}": f"Normalized(kernel={k})" for name, k in EXPECTED.items()}
    ranked = {f"ranked_{name}": f"Ranked(kernel={k})" for name, k in EXPECTED.items()}
    all_names = {**EXPECTED, **normalized, **ranked, "precomputed": "Precomputed()"}
    assert {name: repr(as_kernel(name)) for name in KERNEL_NAMES} == all_names
    weighted = {f"weighted_{n}": k for n, k in EXPECTED.items() if n[:3] in ("rbf", "mat", "pow")}
    weighted = {n: f"Weighted(kernel={k})" for n, k in weighted.items() if not n.endswith("ard")}
    assert {name: repr(as_kernel(name)) for name in LEARNED_NAMES} == weighted


def test_objects_stay():
    kernel = Normalized(RBF(2.0))
    assert as_kernel(kernel) is kernel
    assert isinstance(as_kernel("precomputed"), Precomputed)


def test_functions():
    kernel = as_kernel(rbf_kernel)
    assert isinstance(kernel, Function)
    assert kernel.function is rbf_kernel


@pytest.mark.parametrize(
    "name",
    [
        "poly",
        "polynomial",
        "polynomial0",
        "polynomial2.5",
        "RBF",
        "",
        "normalized_",
        "normalized_precomputed",
        "normalized_normalized_rbf",
    ],
)
def test_unknown_names_list_the_known(name):
    with pytest.raises(ValueError, match=r"known are linear, quadratic, cubic, .*precomputed"):
        as_kernel(name)


@pytest.mark.parametrize("kernel", [RBF, None, 3.0, ["rbf"]])
def test_anything_else_is_refused(kernel):
    with pytest.raises(TypeError, match="A kernel must be a name"):
        as_kernel(kernel)


def test_a_polynomial_of_any_degree_has_a_name():
    assert repr(as_kernel("polynomial4")) == "Polynomial(degree=4)"
    assert repr(as_kernel("normalized_polynomial12")) == "Normalized(kernel=Polynomial(degree=12))"
    assert as_kernel("polynomial3").degree == as_kernel("cubic").degree
