"""Scores as they are printed."""

import numpy as np
import pytest
from sklearn.metrics import fbeta_score

from looms import KernelClassifier
from looms._scores import score_with_error
from looms._words import estimate_text, score_text
from looms.threshold import AtLeast, Cost, FBeta


@pytest.mark.parametrize(
    "rule", [Cost(1.0, 5.0, -2.0, 0.5), FBeta(2.0), AtLeast("recall", 0.9), 0.3], ids=str
)
def test_scores_of_a_rule_from_python(looms, rule):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3 > 0
    X = rng.normal(size=(40, 2)) + y[:, None]
    fitted = KernelClassifier("linear", mu=1e-3, threshold=rule).fit(X, y)
    fitted.save("m.skops")
    found = looms("show", "m.skops")
    assert found.exit_code == 0, found.stderr
    taken = fitted.evaluate(nested=False).decisions.predicted == 1
    cost = np.mean(np.where(y, np.where(taken, -2.0, 5.0), np.where(taken, 1.0, 0.5)))
    beta = 2.0 if isinstance(rule, FBeta) else 1.0
    score = f"F{beta:g} {fbeta_score(y, taken, beta=beta):.4f}, "
    of_one = np.where(y, -2.0, 1.0).mean(), np.where(y, 5.0, 0.5).mean()
    costs = f"cost per row {cost:.4f}, always positive {{:.4f}}, always negative {{:.4f}}, "
    costs = costs.format(*of_one)
    scores = {Cost: costs, FBeta: score}
    rates = f"recall {taken[y].mean():.4f}, precision {y[taken].mean():.4f}"
    told = f"(positive: True): {scores.get(type(rule), '')}{rates}"
    assert told in " ".join(found.stdout.split())


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (0.0376, None, "0.0376"),
        (0.0, None, "0.0000"),
        (4.7e-8, None, "4.7e-08"),
        (391.9773, None, "392.0"),
        (-12180.7, None, "-12181"),
        (11031258.48, None, "1.103e+07"),
        (440.53, 4740.2, "441"),  # with the decimals of the score that it belongs to
        (1.9e-17, 0.25, "0.0000"),
        (-3e-9, 0.25, "0.0000"),
        (-6.78, 4011.0, "-7"),
        (3.21, 52.0, "3.21"),
    ],
)
def test_scores_have_digits_in_any_units(value, of, text):
    assert score_text(value, *[] if of is None else [of]) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (4740.2, 440.5, "4740 ± 440"),
        (10161.3, 868.0, "10161 ± 870"),
        (0.5479, 0.0769, "0.5479 ± 0.077"),
        (3e-12, 2e-13, "3e-12 ± 2e-13"),
        (0.5, float("nan"), "0.5"),
        (float("nan"), 1.0, "–"),
    ],
)
def test_standard_errors_have_two_digits_and_no_exponents(value, error, text):
    assert estimate_text(value, error) == text


def test_shares_and_r2_have_at_most_four_decimals():
    assert score_with_error("r2", -0.034196, 1.9e-17) == "-0.0342 ± 0"
    assert score_with_error("rmse", 0.034196, 1.9e-17) == "0.0342 ± 1.9e-17"
