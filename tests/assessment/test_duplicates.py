"""Rows that are equal: on both sides of splits with a warning, or on one side."""

import warnings

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from looms import DuplicatesWarning, KernelClassifier
from looms.assessment import assess, compare

NEAREST = KNeighborsClassifier(1)


@pytest.fixture(scope="module")
def thrice():
    """Pure noise, each row three times."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
    return np.tile(X, (3, 1)), np.tile(y, 3)


@pytest.mark.parametrize("method", ["shuffle", "kfold", "bootstrap"])
@pytest.mark.filterwarnings("ignore:KNeighborsClassifier cannot be given sample_weight")
@pytest.mark.slow
def test_what_remembers_the_rows_is_no_better_than_a_guess(thrice, method):
    options = {"n_splits": 20, "random_state": 0, "scoring": "accuracy", "method": method}
    with pytest.warns(DuplicatesWarning, match="200 of 300 rows .* duplicates='group'"):
        apart = assess(NEAREST, *thrice, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicatesWarning)
        together = assess(NEAREST, *thrice, duplicates="group", **options)
    assert apart.mean["accuracy"] > 0.95
    assert together.mean["accuracy"] == pytest.approx(0.5, abs=0.08)


def test_a_comparison_warns_once(thrice):
    models = {"one": NEAREST, "three": KNeighborsClassifier(3)}
    with pytest.warns(DuplicatesWarning) as caught:
        compare(models, *thrice, n_splits=2, random_state=0)
    assert len(caught) == 1
    both = compare(models, *thrice, n_splits=2, random_state=0, duplicates="group")
    assert both.table["balanced_accuracy"].max() < 0.7


@pytest.mark.slow
def test_rows_without_weight_are_no_copies(thrice):
    X, y = thrice

    def warned(n_counted):
        weight = (np.arange(300) < n_counted).astype(float)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = KernelClassifier("linear")
            assess(model, X, y, 2, 0.5, sample_weight=weight, random_state=0)
        return any(issubclass(each.category, DuplicatesWarning) for each in caught)

    assert [warned(n_counted) for n_counted in (100, 200)] == [False, True]


@pytest.mark.slow
def test_warnings_of_splits_that_differ_in_numbers_are_one(thrice):
    X, y = thrice
    model = KernelClassifier("linear")
    with pytest.warns(DuplicatesWarning, match="200 of 300"):
        result = assess(model, X, y, 4, 0.2, random_state=0)
    assert "DuplicatesWarning" not in str(result)  # which would say the same of each split
    result = assess(model, X, y, 4, 0.2, random_state=0, duplicates="group")
    remarks = [line for line in str(result).splitlines() if "splits warned" in line]
    assert len([line for line in remarks if "DuplicatesWarning" in line]) == 1
    assert any(line.startswith("4 of 4 splits warned; split 0: DuplicatesW") for line in remarks)


def test_other_words_are_refused(thrice):
    with pytest.raises(ValueError, match="'dropped'"):
        assess(NEAREST, *thrice, duplicates="dropped")
