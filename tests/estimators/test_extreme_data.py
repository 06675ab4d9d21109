"""Data at the edge of what can be learnt from: tiny, constant, repeated, badly scaled.

Warnings are errors here as everywhere, but for those about bounds, copies and machines of one
class, which such data provoke.
"""

from itertools import product

import numpy as np
import pytest
from pairwise import in_turn

from looms import KernelClassifier, KernelRegressor, Search
from looms.criteria import DIFFERENTIABLE
from looms.kernels import Boolean
from looms.kernels._names import KERNEL_NAMES

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::looms.{name}")
    for name in ("BoundWarning", "DuplicatesWarning", "OneClassWarning")
]

# Kernels alone meet all data of this kind in tests/kernels: here some of them take turns.
NAMES = KERNEL_NAMES[:-1]
SOME = [name for name in NAMES if not name.startswith(("ranked", "weighted", "matern3", "matern5"))]

N = 40
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
Y = X[:, 0] + 0.1 * rng.normal(size=N)
LABELS = X[:, 0] > 0


def check(model, X):
    assert np.isfinite(model.dual_coef_).all()
    assert np.isfinite(model.loo_.outputs).all()
    face = model.decision_function if hasattr(model, "classes_") else model.predict
    assert np.isfinite(face(X)).all()


DEGENERATE = {
    "a constant feature": np.column_stack([X, np.full(N, 3.0)]),
    "zeros": np.zeros((N, 3)),
    "one sample of zeros": np.vstack([X[:-1], np.zeros(3)]),
    "repeated rows": np.repeat(X[: N // 2], 2, axis=0),
    "repeated columns": np.hstack([X, X]),
    "more features than samples": rng.normal(size=(N, 100)),
    "binary features": (X > 0).astype(float),
    "one feature": X[:, :1],
    "heavy tails": rng.standard_cauchy(size=(N, 3)) * 3,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "data"),
    [
        *product(["ard"], DEGENERATE),
        *in_turn(SOME, DEGENERATE),
    ],
)
def test_degenerate_features(kernel, data):
    X = np.abs(DEGENERATE[data]) if "tanimoto" in kernel else DEGENERATE[data]
    mu = max(1e-3, 1e-3 * float(np.square(X).sum(axis=1).max()) ** 3)
    if kernel != "boolean":  # which a sample far out may take beyond all numbers
        check(KernelClassifier(kernel, mu=mu).fit(X, LABELS), X)
    check(KernelClassifier(kernel).fit(X, LABELS), X)
    check(KernelRegressor(kernel).fit(X, Y), X)


@pytest.mark.parametrize("scale", [1e71, 1e-170])
def test_targets_whose_squares_leave_the_range_of_numbers_are_refused(scale):
    with pytest.raises(ValueError, match="scale the targets"):
        KernelRegressor().fit(X, scale * np.clip(Y, -1, 1))
    check(KernelRegressor(mu=1e-3).fit(X, scale * Y), X)


@pytest.mark.parametrize(
    ("kernel", "size_and_criterion"),
    in_turn(SOME, list(product([3, 4, 10], DIFFERENTIABLE))),
)
def test_tiny_data(kernel, size_and_criterion):
    n, criterion = size_and_criterion
    rng = np.random.default_rng(n)
    X, y, labels = rng.normal(size=(n, 2)), rng.normal(size=n), np.arange(n) % 2
    X = np.abs(X) if "tanimoto" in kernel else X
    check(KernelRegressor(kernel, mu=1e-3).fit(X, y), X)
    check(KernelRegressor(kernel).fit(X, y), X)
    check(
        KernelClassifier(kernel, threshold="balanced", search=Search(criterion)).fit(X, labels), X
    )


def test_an_overflowing_part_of_the_search_is_stepped_over():
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy(size=(60, 5))
    labels = X[:, 0] > 0
    for kernel in ("boolean", "normalized_boolean", Boolean(gamma_bounds=(1e-6, 1e3))):
        check(KernelClassifier(kernel).fit(X, labels), X)


@pytest.mark.parametrize("kernel", ["boolean", "normalized_boolean", "polynomial4"])
def test_values_that_overflow_at_rows_outside_of_the_fit_are_an_error(kernel):
    far = X.copy()
    far[3] = 1e120
    message = "scale the features"
    with pytest.raises(ValueError, match=message):
        KernelClassifier(kernel, mu=1e-3).fit(far, LABELS, sample_weight=np.arange(N) != 3)
    machine = KernelRegressor(kernel, mu=1e-3).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        machine.predict(1e150 * X)
