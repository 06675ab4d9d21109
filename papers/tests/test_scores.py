"""The challenge's score against the papers' tables, the scorers by counting."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import looms
from looms.assessment._scoring import kind_of
from papers.challenge._choices import ber_standard_error, challenge_score
from papers.challenge._papers import paper_table
from papers.challenge._run import SCORING

#: Test rows of the challenge, ten times its training rows; positive and negative.
TEST_ROWS = {
    "ada": (10290, 31180),
    "gina": (15500, 16030),
    "hiva": (1350, 37100),
    "nova": (4990, 12550),
    "sylva": (8050, 122810),
}


@pytest.mark.parametrize("guess_by", ["loo", "validation100"])
@pytest.mark.parametrize("name", TEST_ROWS)
def test_scores_of_the_papers_entries(name, guess_by):
    """The error rates of each class are not printed: taken for equal."""
    table = paper_table("c06_tables5_6").set_index(["guess_by", "dataset"])
    row = table.loc[(guess_by, name)]
    sigma = ber_standard_error(row["ber_test"], row["ber_test"], *TEST_ROWS[name])
    score = challenge_score(row["ber_test"], row["guess"], sigma)
    assert score == pytest.approx(row["test_score"], abs=3e-4)


def test_smaller_is_better_of_the_papers_rates():
    own = {name: kind_of(scorer) for name, scorer in SCORING.items() if name != "auc"}
    assert {name for name, kind in own.items() if kind.smaller_is_better} == set(own)


def test_a_right_guess_costs_nothing():
    assert challenge_score(0.2, 0.2, 0.01) == 0.2
    assert challenge_score(0.2, 0.21, 0.01) == pytest.approx(0.2 + 0.01 * (1 - np.exp(-1)))
    assert challenge_score(0.2, 0.19, 0.01) == pytest.approx(challenge_score(0.2, 0.21, 0.01))


def test_standard_error_is_that_of_drawn_rates():
    rng = np.random.default_rng(0)
    rates = (rng.binomial(40, 0.3, 20000) / 40 + rng.binomial(90, 0.1, 20000) / 90) / 2
    assert ber_standard_error(0.3, 0.1, 40, 90) == pytest.approx(rates.std(), rel=0.02)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(200) < 0.25, 1, -1)
    X = rng.normal(size=(200, 3)) + 0.8 * y[:, None]
    machine = looms.KernelClassifier("linear", threshold="balanced")
    model = make_pipeline(StandardScaler(), machine).fit(X[:120], y[:120])
    assert abs(model[-1].threshold_) > 0.05
    return model, X[120:], y[120:]


def ber(y, positive):
    return 0.5 * (np.mean(~positive[y > 0]) + np.mean(positive[y < 0]))


def test_scorers(fitted):
    model, X, y = fitted
    predicted = model.predict(X)
    assert SCORING["miss"](model, X, y) == np.mean(predicted[y > 0] == -1)
    assert SCORING["false_alarm"](model, X, y) == np.mean(predicted[y < 0] == 1)
    f = model.decision_function(X) + model[-1].threshold_
    assert SCORING["ber_at_zero"](model, X, y) == pytest.approx(ber(y, f > 0))
    best = min(ber(y, f > cut) for cut in [f.min() - 1, *f])
    assert SCORING["ber_best_on_test"](model, X, y) == pytest.approx(best)
    assert best < ber(y, predicted > 0) < ber(y, f > 0)


def test_the_same_of_leave_one_out_outputs(fitted):
    model, X, y = fitted
    result = looms.assess(model, X, y, 3, scoring=SCORING, random_state=0)
    for split in result.splits:
        loo = split.loo_scores
        assert loo["ber"] == pytest.approx((loo["miss"] + loo["false_alarm"]) / 2)
        assert loo["ber_best_on_test"] == pytest.approx(loo["ber"])
        assert loo["ber_at_zero"] > loo["ber"]
