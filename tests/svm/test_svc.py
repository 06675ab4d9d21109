"""Leave-one-out of scikit-learn's SVC, whatever its options."""

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from pairwise import in_turn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

from looms import kernels
from looms.svm import IndefiniteKernelError, RoundingWarning, _svc, leave_one_out
from looms.svm._svc import dual_problem
from looms.svm.dual import solve

rng = np.random.default_rng(2)
X = rng.standard_normal((50, 4))
Y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(50) > 0, "yes", "no")
W = rng.uniform(0.2, 3.0, 50)

SVCS = {
    "linear": SVC(kernel="linear", C=3.0),
    "poly": SVC(kernel="poly", gamma=0.3, coef0=1.0, degree=2),
    "rbf": SVC(gamma=0.2, C=5.0),
    "sigmoid": SVC(kernel="sigmoid", gamma=1e-5, coef0=0.0, C=1e4),  # nearly linear
    "callable": SVC(kernel=lambda A, B: (1 + A @ B.T) ** 2, C=0.1),
    "looms": SVC(kernel=kernels.RBF(0.2), C=5.0),
    "looms sum": SVC(kernel=0.5 * kernels.RBF(0.2) + kernels.Linear()),
    "class weights": SVC(gamma=0.2, class_weight={"yes": 3.0, "no": 0.5}),
}


def refitted(svc, X, y, weight):
    """Decision values by LIBSVM, with what it takes from the data kept."""
    rows = np.arange(len(y))
    values = []
    for i in rows:
        rest = rows != i
        machine = clone(svc).fit(X[rest], y[rest], sample_weight=weight[rest])
        values.append(machine.decision_function(X[i : i + 1])[0])
    return np.array(values)


@pytest.mark.parametrize(("name", "weight"), in_turn(SVCS, [np.ones(50), W]))
def test_against_refitting(name, weight):
    svc = clone(SVCS[name]).set_params(tol=1e-9)
    loo = leave_one_out(svc, X, Y, weight)
    np.testing.assert_allclose(loo.outputs, refitted(svc, X, Y, weight), atol=1e-4)
    np.testing.assert_array_equal(loo.y, np.where(Y == "yes", 1, -1))
    np.testing.assert_array_equal(loo.sample_weight, weight)


def test_fitted_and_unfitted_agree_and_stay_as_they_are():
    svc = SVC(C=5.0)
    expected = leave_one_out(svc, X, Y)
    assert not hasattr(svc, "dual_coef_")
    svc.fit(X, Y)
    np.testing.assert_allclose(leave_one_out(svc, X, Y).outputs, expected.outputs, atol=1e-9)


def test_precomputed_and_sparse_agree_with_features():
    expected = leave_one_out(SVC(gamma=0.2), X, Y).outputs
    K = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    loo = leave_one_out(SVC(kernel="precomputed"), K, Y)
    np.testing.assert_allclose(loo.outputs, expected, atol=1e-9)
    for form in (sp.csr_matrix, sp.csr_array, sp.csc_array):
        for svc in (SVC(gamma=0.2), SVC(gamma=0.2).fit(form(X), Y)):
            np.testing.assert_allclose(leave_one_out(svc, form(X), Y).outputs, expected, atol=1e-9)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_of_the_data(gamma, form):
    svc = SVC(gamma=gamma).fit(form(X), Y)
    expected = leave_one_out(SVC(gamma=svc._gamma), X, Y).outputs
    np.testing.assert_allclose(leave_one_out(svc, form(X), Y).outputs, expected, atol=1e-9)
    assert np.abs(leave_one_out(SVC(gamma=1.0), X, Y).outputs - expected).max() > 1e-2


def test_balanced_classes_change_the_answer():
    y = np.where(X[:, 0] > 0.8, "yes", "no")
    counts = {label: (y == label).sum() for label in ("yes", "no")}
    weights = {label: 50 / (2 * count) for label, count in counts.items()}
    balanced = leave_one_out(SVC(class_weight="balanced"), X, y).outputs
    given = leave_one_out(SVC(class_weight=weights), X, y).outputs
    np.testing.assert_allclose(balanced, given, atol=1e-9)
    assert np.abs(balanced - leave_one_out(SVC(), X, y).outputs).max() > 1e-2


def test_weight_zero_is_absence():
    weight = (np.arange(50) % 5 > 0).astype(float)
    part = weight > 0
    loo = leave_one_out(SVC(gamma=0.2), X, Y, weight)
    expected = leave_one_out(SVC(gamma=0.2), X[part], Y[part])
    np.testing.assert_allclose(loo.outputs[part], expected.outputs, atol=1e-8)
    machine = SVC(gamma=0.2, tol=1e-9).fit(X[part], Y[part])
    np.testing.assert_allclose(loo.outputs[~part], machine.decision_function(X[~part]), atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_fitted_svc_has_weights_of_zero_too(form):
    weight = (np.arange(50) % 5 > 0) * W
    svc = SVC(gamma=0.2)
    expected = leave_one_out(svc, X, Y, weight).outputs
    fitted = clone(svc).set_params(tol=1e-9).fit(form(X), Y, sample_weight=weight)
    found = leave_one_out(fitted, form(X), Y, weight).outputs
    np.testing.assert_allclose(found, expected, atol=1e-9)
    absent = weight == 0
    np.testing.assert_allclose(found[absent], fitted.decision_function(form(X))[absent], atol=1e-5)
    with pytest.raises(ValueError, match="fitted to other samples"):
        leave_one_out(fitted, form(X), Y, W)


def exact_output(K, y, C, i):
    """Output of the machine without sample i in rational numbers, from the set of its margin."""
    rest = np.delete(np.arange(len(y)), i)
    machine = solve(K[np.ix_(rest, rest)], y[rest], C[rest])
    S, alpha = rest[machine.margin], dict(zip(rest, machine.alpha, strict=True))
    beta = {j: Fraction(y[j]) * Fraction(alpha[j]) for j in rest if j not in S}
    K = [[Fraction(value) for value in row] for row in K]
    rows = [
        [
            *(K[a][b] for b in S),
            Fraction(1),
            Fraction(y[a]) - sum(K[a][j] * v for j, v in beta.items()),
        ]
        for a in S
    ]
    rows.append([*(Fraction(1) for _ in S), Fraction(0), -sum(beta.values())])
    for k in range(len(rows)):  # Gauss-Jordan
        pivot = next(r for r in range(k, len(rows)) if rows[r][k] != 0)
        rows[k], rows[pivot] = rows[pivot], [value / rows[pivot][k] for value in rows[pivot]]
        for r in range(len(rows)):
            if r != k:
                rows[r] = [a - rows[r][k] * b for a, b in zip(rows[r], rows[k], strict=True)]
    beta |= {a: row[-1] for a, row in zip(S, rows, strict=False)}
    b = rows[-1][-1]
    F = [sum(K[a][j] * v for j, v in beta.items()) + b for a in range(len(y))]
    for j in rest:  # it is the solution
        assert 0 <= y[j] * beta[j] <= C[j]
        margin = Fraction(y[j]) * F[j] - 1
        assert beta[j] != 0 or margin >= 0
        assert y[j] * beta[j] != C[j] or margin <= 0
    return float(F[i])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("svc", "offset", "warned"),
    [
        (SVC(kernel="linear", C=10.0), 0.0, False),
        (SVC(kernel="poly", degree=2, gamma=0.3, coef0=1.0, C=3.0), 0.0, False),
        (SVC(C=1e3, gamma=0.1), 300.0, False),
        (SVC(kernel="linear", C=1e6), 0.0, True),
        (SVC(kernel="poly", degree=2, gamma=3.0, coef0=1.0, C=100.0), 30.0, True),
    ],
    ids=str,
)
def test_outputs_are_as_exact_as_is_claimed(svc, offset, warned):
    random = np.random.default_rng(0)
    samples = random.normal(size=(14, 2)) + offset
    labels = samples[:, 0] + random.normal(size=14) > offset
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outputs = leave_one_out(svc, samples, labels).outputs
    problem = dual_problem(svc, samples, labels)
    exact = np.array([exact_output(problem.K, problem.y, problem.C, i) for i in range(14)])
    error = float((np.abs(outputs - exact) / (1 + np.abs(exact))).max())
    assert [warning.category for warning in caught] == [RoundingWarning] * warned
    if warned:
        claim = caught[0].message
        assert error <= claim.exactness
        assert f"for {claim.n_samples} of 14 only to {claim.exactness:.2g}" in str(claim)
    else:
        assert error <= 1e-9


def test_libsvm_is_left_before_it_takes_minutes(monkeypatch):
    random = np.random.default_rng(0)
    samples = random.normal(size=(200, 2))
    labels = samples[:, 0] + random.normal(size=200) > 0
    svc = SVC(kernel="linear", C=1e3, tol=1e-10)
    iterations = []
    fit = SVC.fit

    def counted(self, *arguments, **options):
        fitted = fit(self, *arguments, **options)
        iterations.append(int(fitted.n_iter_[0]))
        return fitted

    monkeypatch.setattr(SVC, "fit", counted)
    assert np.isfinite(leave_one_out(svc, samples, labels).outputs).all()
    assert iterations == [1, 100 * 200]


@pytest.mark.parametrize("kernel", [kernels.RBF(0.2), lambda A, B: (1 + A @ B.T) ** 2])
@pytest.mark.parametrize("form", [pd.DataFrame, np.ndarray.tolist], ids=["frame", "list"])
def test_callable_kernels_are_given_arrays(kernel, form):
    expected = leave_one_out(SVC(kernel=kernel), X, Y).outputs
    for svc in (SVC(kernel=kernel), SVC(kernel=kernel).fit(X, Y)):
        np.testing.assert_allclose(leave_one_out(svc, form(X), Y).outputs, expected, atol=1e-9)


def test_callable_kernels_of_anything_else_are_given_it():
    texts = ["".join(rng.choice(list("ab"), 12)) for _ in range(30)]
    labels = [text.count("a") > 6 for text in texts]

    def counts(A, B):
        return np.array([[a.count("a") * b.count("a") for b in B] for a in A], dtype=float)

    loo = leave_one_out(SVC(kernel=counts), texts, labels)
    numbers = np.array([[text.count("a")] for text in texts], dtype=float)
    expected = leave_one_out(SVC(kernel="linear"), numbers, labels)
    np.testing.assert_allclose(loo.outputs, expected.outputs, atol=1e-7)


NO_SVC = [NuSVC(), LinearSVC(), SVR(), make_pipeline(SVC()), SVC]


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("machine", NO_SVC, ids=str)
def test_anything_but_an_svc_is_refused(machine, fitted):
    if fitted and machine is not SVC:
        machine = clone(machine).fit(X, Y == "yes")
    with pytest.raises(TypeError, match="SVC, fitted or not, but got"):
        leave_one_out(machine, X, Y == "yes")


def test_more_classes_are_refused():
    with pytest.raises(ValueError, match=r"has 3: .*one against one"):
        leave_one_out(SVC(), X, np.arange(50) % 3)


def test_an_svc_of_other_data_is_refused():
    svc = SVC(gamma=0.2).fit(X, Y)
    swapped = np.where(Y == "yes", "no", "yes")
    for other, labels in ((X[:40], Y[:40]), (X + 0.1, Y), (X, swapped), (X, Y == "yes")):
        with pytest.raises(ValueError, match="fitted to other"):
            leave_one_out(svc, other, labels)
    with pytest.raises(ValueError, match="fitted to other samples, labels or weights"):
        leave_one_out(svc, X, Y, np.full(50, 0.01))
    with pytest.raises(ValueError, match="sample_weight"):
        leave_one_out(svc, X, Y, np.ones(3))


def test_bad_values_are_refused():
    holed = X.copy()
    holed[3, 1] = np.nan
    for svc in (SVC(), SVC().fit(X, Y)):
        with pytest.raises(ValueError, match=r"NaN|other samples"):
            leave_one_out(svc, holed, Y)
    with pytest.raises(ValueError, match="class"):
        leave_one_out(SVC(), X, np.full(50, "yes"))


@pytest.mark.parametrize("fitted", [False, True])
def test_kernels_that_are_not_semidefinite_are_refused(fitted):
    svc = SVC(kernel="sigmoid", gamma=0.01, coef0=0.0, C=10.0)
    smallest = np.linalg.eigvalsh(_centered(np.tanh(0.01 * X @ X.T)))[0]
    with pytest.raises(IndefiniteKernelError, match="Clip or flip") as caught:
        leave_one_out(svc.fit(X, Y) if fitted else svc, X, Y)
    assert caught.value.smallest == pytest.approx(smallest)


def _centered(K):
    center = np.eye(len(K)) - 1 / len(K)
    return center @ K @ center


@pytest.mark.parametrize(("coef0", "degree"), [(-1.0, 3), (0.0, 2.5)])
def test_polynomials_that_need_the_check(coef0, degree):
    svc = SVC(kernel="poly", gamma=1.0, coef0=coef0, degree=int(degree)).fit(X, Y)
    svc.degree = degree
    assert not _svc._always_semidefinite(svc)
