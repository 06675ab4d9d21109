"""Where nothing can be learned, scores to report say so; `benchmarks/noise.py` has all of them."""

import numpy as np
import pytest
from _report import draws_of, quietly
from noise import of_draw, subjects, table_rows

SUBJECTS = {subject.name: subject for subject in subjects()}


def readings(name: str, n_draws: int) -> dict[str, str]:
    """Side of chance on which the mean of each figure is: "chance", "worse" or "flatters"."""
    subject = SUBJECTS[name]
    draws = draws_of(of_draw, subject, n_draws=n_draws)
    return {row[1]: row[-2] for row in table_rows(subject, draws)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "KernelClassifier(search=Search(method='grid'))",
        "KernelRegressor(search=Search(method='grid'))",
        "... search=Search(method='grid'), groups=",
        "case_deletion",
    ],
)
def test_no_figure_to_quote_is_better_than_chance(name):
    assert "flatters" not in readings(name, 12).values()


@pytest.mark.slow
def test_areas_on_landmarks_do_not_lean():
    found = readings("KernelClassifier(n_landmarks=30), 240 rows; nested=True", 6)
    assert found["auc"] == "chance"
    assert "flatters" not in found.values()


@pytest.mark.slow
def test_the_leave_one_out_column_of_assess_does_not_lean():
    assert readings("assess", 12)["auc: leave-one-out column"] != "worse"


@pytest.mark.slow
def test_probabilities_of_each_fold_of_a_stack_are_of_its_own_machine():
    """Outputs of the machines of other folds are up to a hundred times as large here."""
    subject = SUBJECTS["TabularClassifier(['linear', 'rbf'], combine='stack'), 240 rows"]
    name = b"stacked_classifier(['linear', 'rbf'], combine='stack'), 240 rows"  # of these draws
    found = quietly(subject.figures, np.random.default_rng([15, *name]))
    assert found["log_loss"][0] < 0.75


@pytest.mark.slow
def test_leave_one_out_of_a_tuned_machine_is_better_than_chance():
    assert readings("KernelClassifier(); nested=False", 40)["error"] == "flatters"
