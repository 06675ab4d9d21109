"""Certificates: refits that know nothing of the formula under test, and what they say of it."""

import copy
import gc
import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from pairwise import in_turn
from sklearn.tree import DecisionTreeRegressor
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search
from looms.blocks import ArrayBlocks
from looms.fitted._certificate import Certificate
from looms.fitted._fitted import Fitted
from looms.folds import ForwardSplit, GapKFold
from looms.kernels import RBF
from looms.lssvm.refit import WholeSystem
from looms.model_files import load_model, save_model

N = 60
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * RNG.normal(size=N)
LABELS = np.where(Y > 1, "b", "a")
THREE = np.digitize(Y, [0.4, 1.4])
WEIGHT = RNG.uniform(0.3, 3.0, N)
WEIGHT[[4, 20, 48]] = 0.0
GROUPS = np.arange(N) // 3
POINT = {"kernel": RBF(0.5), "mu": 2e-3}

#: Machine, targets, and arguments of its fit.
CASES = {
    "rows": (KernelClassifier(mu=1e-2), LABELS, {"sample_weight": WEIGHT}),
    "no intercept": (KernelRegressor(mu=1e-2, fit_intercept=False), Y, {}),
    "targets": (KernelRegressor(), np.c_[Y, X[:, 1]], {}),
    "groups": (KernelClassifier(), LABELS, {"groups": GROUPS}),
    "folds": (KernelClassifier(cv="2x3"), THREE, {"sample_weight": WEIGHT}),
    "gaps": (KernelRegressor(cv=GapKFold(4, gap=2)), Y, {}),
    "forward": (KernelRegressor(cv=ForwardSplit(3, gap=2)), Y, {}),
    "grid": (KernelRegressor(search=Search(method="grid")), Y, {}),
    "stack": (
        stacked_classifier(["linear", "rbf"]),
        LABELS,
        {"groups": GROUPS},
    ),
    "landmarks": (KernelRegressor(n_landmarks=12), Y, {"sample_weight": WEIGHT}),
    "landmarks, groups": (KernelClassifier(n_landmarks=12), THREE, {"groups": GROUPS}),
    "landmarks, folds": (KernelRegressor(n_landmarks=12, cv=3), Y, {}),
    "svm": (
        KernelClassifier(loss="hinge", **POINT),
        LABELS,
        {"sample_weight": WEIGHT, "groups": GROUPS},
    ),
    "squared hinge": (KernelClassifier(loss="squared_hinge", cv=4, **POINT), LABELS, {}),
    "svm of three": (KernelClassifier(loss="hinge", **POINT), THREE, {"groups": GROUPS}),
}


@pytest.fixture(scope="module")
def fitted():
    known = {}

    def of(name):
        if name not in known:
            machine, y, options = CASES[name]
            known[name] = copy.deepcopy(machine).fit(X, y, **options)
        return copy.copy(known[name])

    return of


@pytest.mark.parametrize("name", CASES)
def test_held_out_outputs_are_those_of_refits(name, fitted):
    machine = fitted(name)
    certificate = machine.certify()
    assert certificate is machine.certificate_
    assert certificate.holds
    assert certificate.relative < 1e-9
    assert len(certificate.rows) == 3
    assert (machine.fit_weight_[certificate.rows] > 0).all()


@pytest.mark.parametrize("attribute", ["loo_outputs", "held_out_outputs"])
@pytest.mark.parametrize("name", ["groups", "landmarks, folds", "svm", "stack"])
def test_wrong_outputs_of_the_rows_are_seen(name, attribute, fitted):
    machine = fitted(name)
    right = getattr(machine.fitted_, attribute)
    machine.fitted_ = replace(machine.fitted_, **{attribute: right * (1 + 1e-6)})
    certificate = machine.certify()
    # What a stack holds out in folds is of machines that were tuned anew.
    assert certificate.holds is (name == "stack" and attribute == "held_out_outputs")


@pytest.mark.parametrize(("name", "field"), in_turn(CASES, ["dual_coef", "intercept"]))
def test_wrong_coefficients_of_the_machine_are_seen(name, field, fitted):
    machine = fitted(name)
    members = machine.members_
    wrong = [replace(one, **{field: getattr(one, field) * (1 + 1e-5)}) for one in members]
    machine.fitted_ = replace(machine.fitted_, members=tuple(wrong))
    right = name == "no intercept" and field == "intercept"
    assert machine.certify().verdict == ("agrees" if right else "differs")


@pytest.mark.parametrize("name", ["rows", "landmarks", "stack"])
def test_what_predict_computes_is_compared(name, fitted, monkeypatch):
    machine = fitted(name)
    right = Fitted.outputs

    def wrong(model, rows):
        return right(model, rows) * (1 + 1e-5)

    monkeypatch.setattr(Fitted, "outputs", wrong)
    assert machine.certify().verdict == "differs"


LINE = np.linspace(0, 1, 200)[:, None]


@pytest.mark.parametrize(
    ("kernel", "points", "mu"),
    [
        ("rbf", LINE, 1e-14),
        ("linear", np.hstack([LINE, LINE + 1e-12 * LINE**2]), 1e-16),
    ],
)
def test_nothing_is_certified_of_a_machine_without_digits(kernel, points, mu):
    certificate = KernelRegressor(kernel, mu=mu).fit(points, np.sin(6 * points[:, 0])).certify()
    assert certificate.bound > 1e-3
    assert certificate.verdict == "cannot tell"
    assert not certificate.holds


@pytest.mark.parametrize(
    ("relative", "bound", "verdict"),
    [
        (1e-12, 1e-3, "agrees"),
        (1e-12, 1.1e-3, "cannot tell"),
        (20.0, np.inf, "cannot tell"),
        (2e-9, 1e-9, "differs"),
        (2.0, 1.0, "differs"),
        (np.inf, np.inf, "cannot tell"),
        (np.nan, np.inf, "differs"),
        (np.inf, 0.0, "differs"),
    ],
)
def test_only_a_small_bound_that_is_kept_certifies(relative, bound, verdict):
    certificate = Certificate(np.arange(3), relative, relative, 1.0, bound, "LU")
    assert certificate.verdict == verdict
    assert certificate.holds is (verdict == "agrees")


def test_rows_in_blocks_are_given_again():
    machine = KernelRegressor(n_landmarks=10).fit(ArrayBlocks(X, size=16), Y)
    assert machine.certify().holds
    machine = pickle.loads(pickle.dumps(machine))
    with pytest.raises(ValueError, match="pass them as X"):
        machine.certify()
    assert machine.certify(X=ArrayBlocks(X, size=16)).holds
    assert machine.certify(X=X).relative < 1e-9


def test_precomputed_and_few_rows():
    machine = KernelRegressor("precomputed", mu=1e-3).fit(RBF(0.5)(X), Y, WEIGHT)
    assert machine.certify(n_rows=N).holds
    assert len(machine.certificate_.rows) == N - 3
    largest = np.abs(machine.loo_.residuals * (WEIGHT > 0)).argmax()
    assert machine.certify(n_rows=1).rows.tolist() == [largest]
    assert len(KernelRegressor("linear", mu=1e-3).fit(X[:2], Y[:2]).certify().rows) == 2
    for n_rows in (0, 1.5, True, "all"):
        with pytest.raises(ValueError, match="n_rows"):
            machine.certify(n_rows)


def test_a_machine_that_cannot_be_refitted_does_not_hold(fitted, monkeypatch):
    def singular(*arguments, **options):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(WholeSystem, "refitted", singular)
    certificate = fitted("rows").certify()
    assert not certificate.holds
    assert "LinAlgError" in str(certificate)


def test_another_fit_has_no_certificate_but_copies_and_files_have_it(fitted, tmp_path):
    machine = fitted("svm")
    certificate = machine.certify()
    save_model(tmp_path / "model.skops", machine, {})
    for copied in (pickle.loads(pickle.dumps(machine)), load_model(tmp_path / "model.skops").model):
        assert str(copied.certificate_) == str(certificate)
        assert certificate.verdict in copied.certificate_._repr_html_()
    assert not hasattr(machine.fit(X, LABELS), "certificate_")


@pytest.mark.parametrize("seed", [0, 45, 123, 392])
def test_rounding_of_kernel_values_is_in_the_bound(seed):
    """Weights over six decades, and distances of rows far from the mean, which lose digits."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(50, 1))
    rows[:25] += 50
    rows[-1] = rows[0] * (1 + 1e-12)
    labels, weight = rng.integers(0, 2 if seed % 2 else 8, 50), 10.0 ** rng.uniform(-3, 3, 50)
    machine = KernelClassifier("matern12", mu=10.0 ** rng.uniform(-9, 0), calibration=None)
    certificate = machine.fit(rows, labels, sample_weight=weight).certify(n_rows=50)
    assert certificate.holds, certificate


def largest_array(call):
    """Peak of the memory that a call takes, in bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_no_member_of_few_features_or_landmarks_takes_a_matrix_of_all_rows():
    """Features, landmarks, and trees, which have no closed form."""
    n = 3000
    rows = RNG.normal(size=(n, 4))
    y = rows[:, 0] + np.sin(3 * rows[:, 1]) + (rows[:, 2] > 0) + 0.3 * RNG.normal(size=n)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    given = KernelRegressor("linear", mu=1e-3), KernelRegressor(RBF(0.3), mu=1e-3, n_landmarks=20)
    stack = stacked_regressor([*given, tree], combine="stack").fit(rows, y)
    assert (stack.candidate_weights_ > 0).all()
    assert stack.certify().holds  # which imports what it needs, too
    assert largest_array(stack.certify) < 8 * n * n / 20
