"""The search by the CV score of T11, whose machines, sigmoids and couplings are those of refits."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from looms.calibration._coupling import couple
from looms.calibration._sigmoid import fit_sigmoid
from looms.kernels import RBF
from looms.svm.dual import solve
from papers.coupling import couple_by_divergence, held_out_probabilities
from papers.svm_search import least_cv_score

N, C, GAMMA = 36, 3.0, 0.4
rng = np.random.default_rng(23)
X = rng.normal(size=(N, 2))
LATENT = X[:, 0] - X[:, 1] ** 2 + 0.7 * rng.normal(size=N)
TWO, THREE = (LATENT > -0.6) * 1, np.digitize(LATENT, np.quantile(LATENT, [0.3, 0.7]))
POINT = {"C": [C], "gamma": [GAMMA]}


def pairwise_of_refit(y, i):
    """Pairwise probabilities of row i, by machines and sigmoids of all others."""
    K, k = RBF(GAMMA)(X), y.max() + 1
    pairwise = np.full((k, k), 0.5)
    for a, b in combinations(range(k), 2):
        part = np.flatnonzero(np.isin(y, (a, b)) & (np.arange(N) != i))
        t = np.where(y[part] == b, 1.0, -1.0)
        machine = solve(K[np.ix_(part, part)], t, np.full(len(part), C))
        sigmoid = fit_sigmoid(machine.outputs, t)
        output = K[i, part] @ (machine.alpha * t) + machine.intercept
        p = 1 / (1 + np.exp(sigmoid.slope * output + sigmoid.intercept))
        pairwise[b, a], pairwise[a, b] = p, 1 - p
    return pairwise


def log_p_of_refit(y, i):
    """log p of the class of row i, by machines and sigmoids of all others."""
    return np.log(couple(pairwise_of_refit(y, i)[None])[0, y[i]])


@pytest.mark.slow
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_the_cv_score_is_that_of_refits(y):
    found = least_cv_score(X, y, POINT)
    expected = -2 * sum(log_p_of_refit(y, i) for i in range(N))
    assert found.cv_score == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_either_coupling_is_that_of_refits():
    found = held_out_probabilities(X, THREE, C, GAMMA)
    pairwise = np.stack([pairwise_of_refit(THREE, i) for i in range(N)])
    counts = np.stack([np.bincount(np.delete(THREE, i)) for i in range(N)])
    np.testing.assert_allclose(found["least squares"], couple(pairwise), atol=1e-7)
    expected = couple_by_divergence(pairwise, counts)
    np.testing.assert_allclose(found["Kullback-Leibler"], expected, atol=1e-7)
    assert np.abs(expected - couple(pairwise)).max() > 1e-3


@pytest.mark.slow
def test_the_cv_score_of_scikit_learn():
    score, t = 0.0, np.where(TWO, 1, -1)
    for i, rest in enumerate(~np.eye(N, dtype=bool)):
        svc = SVC(C=C, gamma=GAMMA, tol=1e-10).fit(X[rest], t[rest])
        sigmoid = fit_sigmoid(svc.decision_function(X[rest]), t[rest])
        log_odds = sigmoid.slope * svc.decision_function(X[[i]])[0] + sigmoid.intercept
        score += 2 * np.logaddexp(0, t[i] * log_odds)
    assert least_cv_score(X, TWO, POINT).cv_score == pytest.approx(score, rel=1e-3)


@pytest.mark.slow
def test_mackerel(data_folder):
    """The search of the paper, 477.04 there."""
    table = pd.read_csv(data_folder / "mackerel.csv")
    rows = scale(table[["lon", "lat", "b.depth", "c.dist", "temp.20m"]])
    grid = {"C": 2.0 ** np.array([3.5, 5.5, 7.5]), "gamma": np.array([0.125, 0.25, 0.5])}
    found = least_cv_score(rows, table.target.to_numpy(), grid, method="grid")
    assert (np.log2(found.C), np.log2(found.gamma)) == (5.5, -2.0)
    assert found.cv_score == pytest.approx(471.732, abs=1e-3)
