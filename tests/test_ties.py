"""Ties of held-out outputs against refits in exact arithmetic: rounding does not decide them."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from looms import KernelClassifier
from looms._scores import class_scores
from looms.calibration._isotonic import fit_isotonic
from looms.fitted._outcome import Classes
from looms.kernels import Linear
from looms.lssvm import solve
from looms.lssvm.fit import Fit
from looms.scores import held_out_decisions
from looms.selection._decisions import Rule
from looms.selection._fold_pairs import fold_pairs
from looms.units import Units

pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
    pytest.mark.filterwarnings("ignore::looms.DuplicatesWarning"),
]


def table(seed, n=12):
    """Rows of three boolean columns, labels and groups: many outputs are equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, 3)).astype(float)
    y = rng.permutation(np.arange(n) % 2)
    return X, y, np.arange(n) // 2 if seed % 2 else None


def folds_of(groups, n):
    """Rows of each fold: single rows, or groups of two."""
    return [[i] for i in range(n)] if groups is None else [[i, i + 1] for i in range(0, n, 2)]


def solved(rows, right):
    """Solution of a linear system of fractions by elimination."""
    A = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for j in range(len(A)):
        pivot = next(i for i in range(j, len(A)) if A[i][j] != 0)
        A[j], A[pivot] = A[pivot], A[j]
        A[j] = [value / A[j][j] for value in A[j]]
        for i in range(len(A)):
            if i != j and A[i][j] != 0:
                A[i] = [a - A[i][j] * b for a, b in zip(A[i], A[j], strict=True)]
    return [row[-1] for row in A]


def exact_outputs(X, targets, mu, out):
    """Outputs of the rows ``out`` by the linear machine without them."""
    rest = [i for i in range(len(X)) if i not in out]
    Z = [[Fraction(value) for value in row] for row in X.tolist()]
    K = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in Z] for u in Z]
    ridge = len(X) * Fraction(mu)
    rows = [[K[i][j] + (ridge if i == j else 0) for j in rest] + [Fraction(1)] for i in rest]
    rows.append([Fraction(1)] * len(rest) + [Fraction(0)])
    *alpha, b = solved(rows, [Fraction(int(targets[i])) for i in rest] + [Fraction(0)])
    return {i: b + sum(K[i][j] * a for j, a in zip(rest, alpha, strict=True)) for i in out}


def win(upper, lower):
    return Fraction((upper > lower) + (upper >= lower), 2)


def exact_scores(X, y, mu, folds):
    """Accuracies and AUC at threshold 0, of pairs of folds that are left out together."""
    targets, n = 2 * y - 1, len(y)
    number = np.empty(n, dtype=int)
    for k, rows in enumerate(folds):
        number[rows] = k
    right, mass = {"within": 0, "between": 0}, {"within": 0, "between": 0}
    votes = [[] for _ in range(n)]

    def compare(kind, f, pairs):
        for i, j in pairs:
            if y[i] > y[j]:
                right[kind] += win(f[i], f[j])
                mass[kind] += 1

    alone = [exact_outputs(X, targets, mu, rows) for rows in folds]
    for rows, f in zip(folds, alone, strict=True):
        compare("within", f, [(i, j) for i in rows for j in rows])
    for g, h in fold_pairs(targets[:, None].astype(float), number):
        out = [*folds[g], *folds[h]]
        f = exact_outputs(X, targets, mu, out)
        compare("between", f, [(i, j) for i in out for j in out if number[i] != number[j]])
        for i in out:
            votes[i].append(win(f[i], 0))
    for rows, f in zip(folds, alone, strict=True):
        for i in rows:
            votes[i] = votes[i] or [win(f[i], 0)]
    wrong = [abs(label - sum(each) / len(each)) for label, each in zip(y, votes, strict=True)]
    rates = [
        np.mean([float(w) for w, label in zip(wrong, y, strict=True) if label == c]) for c in (0, 1)
    ]
    total = int(y.sum() * (1 - y).sum())
    of_pairs = {"within": mass["within"], "between": total - mass["within"]}
    kinds = [kind for kind in right if mass[kind]]
    weight = sum(of_pairs[kind] for kind in kinds)
    area = sum(Fraction(of_pairs[kind], weight) * right[kind] / mass[kind] for kind in kinds)
    return {
        "accuracy": 1 - float(sum(wrong) / n),
        "balanced_accuracy": 1 - float(np.mean(rates)),
        "roc_auc": float(area),
    }


def machine(X, y, groups, **options):
    options = {"calibration": None, **options}
    return KernelClassifier("linear", **options).fit(X, y, groups=groups)


@pytest.mark.parametrize("seed", [0, 1, 2, 7])
@pytest.mark.slow
def test_scores_are_those_of_exact_arithmetic(seed):
    X, y, groups = table(seed)
    model = machine(X, y, groups)
    exact = exact_scores(X, y, model.mu_, folds_of(groups, 12))
    assert model.evaluate(nested=False) == pytest.approx(exact, abs=1e-12)


def scores_in_order(X, y, folds, mu, order):
    """Scores of the rows in another order; outputs and probabilities in the order of the rows."""
    X, y, folds = X[order], y[order], folds[order]
    K, t = np.exp(X @ X.T), 2.0 * y - 1
    machine, units = solve(K, t, mu), Units.of_numbers(folds)
    fit = Fit.of(machine, units, t, Linear())
    options = np.ones(len(y)), Rule(0.0, None, fit.tie), t.shape, Classes(np.arange(2))
    decisions, auc = held_out_decisions(machine, units, *options)
    held_out, back = fit.decided, np.argsort(order)
    p = fit_isotonic(held_out.outputs, t).probability(held_out.outputs)
    scores = class_scores(y, decisions.wrong, auc, np.ones(len(y)))
    return scores, held_out.outputs[back], p[back]


@pytest.mark.slow
@pytest.mark.parametrize("log2_mu", [-24, -12, -4, 4])
def test_order_of_rows_and_threads_of_blas_change_no_tie(log2_mu):
    """Three folds, of which no pairs are drawn, of rows with many copies."""
    rng = np.random.default_rng(log2_mu + 99)
    X = rng.integers(0, 2, size=(90, 3)).astype(float)
    y, folds = (rng.random(90) < 0.3 + 0.4 * X[:, 0]).astype(int), np.arange(90) % 3
    same = (X, y, folds, 2.0**log2_mu)
    scores, outputs, p = scores_in_order(*same, np.arange(90))
    for k in range(4):
        with threadpool_limits(limits=1 + k % 2):
            others, outputs_now, p_now = scores_in_order(*same, rng.permutation(90))
        assert others == {name: pytest.approx(pair, abs=1e-9) for name, pair in scores.items()}
        assert_array_equal(*(np.unique(f, return_inverse=True)[1] for f in (outputs, outputs_now)))
        assert_allclose(p_now, p, rtol=1e-9)


@pytest.mark.slow
def test_outputs_that_differ_are_no_ties():
    """The largest ridge of a search, where outputs differ by 1e-10 and rounding is 1e-16."""
    X, y, _ = table(2)
    model = machine(X, y, None)
    assert model.mu_ > 1000
    assert len(np.unique(model.loo_.outputs)) == len(
        {f for i in range(12) for f in exact_outputs(X, 2 * y - 1, model.mu_, [i]).values()}
    )
