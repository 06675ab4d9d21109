"""Copies of rows: which rows are equal, where that is no accident, what holds them out together."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from looms import SVCCV, CopiesWarning, LSSVMClassifierCV, LSSVMRegressorCV
from looms.conformal import jackknife_plus
from looms.copies import copy_groups, n_unexpected_copies
from looms.lssvm import refit_loo, solve

RNG = np.random.default_rng(0)
N = 90
X = RNG.standard_normal((N, 4))
Y = np.where(X[:, 0] + X[:, 1] + RNG.standard_normal(N) > 0, 1.0, -1.0)
pytestmark = pytest.mark.filterwarnings("ignore::looms.BoundWarning")  # what copies lead to
AGAIN = np.append(np.arange(N), np.arange(30))  # a third of the rows twice


def partition(labels):
    return {frozenset(np.flatnonzero(labels == label)) for label in np.unique(labels)}


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_rows_are_in_one_group_if_they_are_equal(kind):
    rows = RNG.integers(0, 3, (200, 4)).astype(float) * np.array([1.0, 0.5, -1.0, 1e-300])
    rows[rows == 0] *= RNG.choice([-1.0, 1.0], (rows == 0).sum())  # −0.0 is 0.0
    expected = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    assert partition(copy_groups(kind(rows))) == partition(expected)


def test_a_stored_zero_is_a_zero():
    stored = sp.csr_matrix(np.array([[1.0, 2.0], [1.0, 0.0], [1.0, 5.0]]))
    stored.data[stored.data == 5.0] = 0.0
    groups = copy_groups(stored)
    assert groups[1] == groups[2] != groups[0]


def n_noticed(rows):
    return n_unexpected_copies(rows, copy_groups(rows))


def test_copies_are_noticed_only_where_they_are_no_accident():
    assert n_noticed(X[AGAIN]) == n_noticed(sp.csr_matrix(X[AGAIN])) == 30
    assert n_noticed(X) == 0
    assert n_noticed(X[AGAIN[: N + 3]]) == 0  # too few to matter
    three_binary = RNG.integers(0, 2, (N, 3)).astype(float)
    assert n_noticed(three_binary) == 0
    one_hot = np.eye(12)[RNG.integers(0, 12, N)]
    assert n_noticed(one_hot) == 0
    ages = np.column_stack([RNG.integers(20, 80, N), RNG.integers(0, 2, N)]).astype(float)
    assert n_noticed(ages[:, [0]]) == n_noticed(ages) == 0
    assert n_noticed(np.column_stack([ages, 12.0 * ages[:, 0]])) == 0  # the same in months
    assert n_noticed(np.column_stack([ages, X])[AGAIN]) == 30


@pytest.mark.parametrize(
    "estimator", [LSSVMClassifierCV(), LSSVMRegressorCV(), SVCCV(param_grid={"C": [1.0]})]
)
def test_fit_warns_of_copies(estimator):
    with pytest.warns(CopiesWarning, match="30 of 120 rows are copies"):
        estimator.fit(X[AGAIN], Y[AGAIN])


@pytest.mark.parametrize("Estimator", [LSSVMClassifierCV, LSSVMRegressorCV])
def test_copies_held_out_together_are_not_seen_by_the_machine_that_predicts_them(Estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CopiesWarning)
        apart = Estimator().fit(X[AGAIN], Y[AGAIN])
    together = Estimator(copies="together").fit(X[AGAIN], Y[AGAIN])
    assert apart.groups_ is None
    assert partition(together.groups_) == partition(AGAIN)
    ours = together.loo_
    theirs = refit_loo(together.kernel_(X[AGAIN]), ours.y, together.mu_, groups=AGAIN)
    assert_allclose(ours.outputs, theirs.outputs, rtol=1e-7, atol=1e-9)
    assert_allclose(ours.outputs[N:], ours.outputs[:30], atol=1e-12)
    # The criterion chose by them, so the copies did not pull it to a nearest neighbor.
    assert together.selection_.value == pytest.approx(np.mean(ours.residuals**2))
    assert together.kernel_.eta < 0.01 < 1.0 < apart.kernel_.eta


def test_intervals_come_from_machines_that_saw_no_copy():
    machine = LSSVMRegressorCV(copies="together").fit(X[AGAIN], Y[AGAIN])
    K, new = machine.kernel_(X[AGAIN]), X[:5] + 0.1
    together, apart = (
        solve(K, Y[AGAIN], machine.mu_, groups=groups).models() for groups in (AGAIN, None)
    )
    ours = machine.predict_interval(new, coverage=0.8)
    outputs = together.outputs(machine.kernel_(new, X[AGAIN]))
    assert_allclose(ours, jackknife_plus(together.residuals, outputs, 0.8), rtol=1e-8)
    outputs = apart.outputs(machine.kernel_(new, X[AGAIN]))
    assert not np.allclose(ours, jackknife_plus(apart.residuals, outputs, 0.8), rtol=1e-3)
    with pytest.raises(ValueError, match="copies='apart'"):
        machine.predict_interval(new, method="scaled")


def test_an_unknown_word_is_refused():
    with pytest.raises(ValueError, match="copies must be one of apart, together, got 'merge'"):
        LSSVMClassifierCV(copies="merge").fit(X, Y)
