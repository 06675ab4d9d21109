"""Figures of the Model Selection Game, by hand."""

import pandas as pd
import pytest

from papers.challenge_game import figures, mean_over


def test_differences_are_paired_and_sets_are_independent():
    tests = pd.DataFrame({"loo_ber": [0.1, 0.2, 0.3], "validation_set": [0.2, 0.2, 0.5]})
    one = figures(tests, guesses=tests / 2).loc["validation_set"]
    assert one["guess"] == pytest.approx(0.15)
    assert one["loo_less"] == pytest.approx(-0.1)
    assert one["loo_less_se"] == pytest.approx(0.1 / 3**0.5)
    sets = [figures(tests, tests), figures(tests * 0 + 0.4, tests)]
    both = mean_over(sets).loc["validation_set"]
    assert both["ber_test"] == pytest.approx(0.35)
    assert both["loo_less"] == pytest.approx(-0.05)
    assert both["loo_less_se"] == pytest.approx(0.05 / 3**0.5)
