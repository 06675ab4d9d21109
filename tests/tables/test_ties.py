"""Whole numbers whose rows are alike like those of groups, and those whose order explains that."""

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from looms.tables._ties import may_name_groups, tied


def found(values, *features):
    assert may_name_groups(values)
    return tied(values, rankdata(np.column_stack(features), axis=0)).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_features_of_persons_are_tied_and_others_are_not(seed):
    rng = np.random.default_rng(seed)
    person = rng.permutation(np.concatenate([np.arange(60), rng.integers(0, 60, 240)]))
    constant, sex = rng.normal(size=60)[person], rng.integers(0, 2, 60)[person]
    alike = rng.normal(size=60)[person] + 0.5 * rng.normal(size=300)
    noise, drift = rng.normal(size=300), person + rng.normal(size=300)
    numbers = person.astype(float)
    assert found(numbers, constant, sex, alike, noise, drift) == [True, True, True, False, False]
    numbers[:20] = np.nan
    assert found(numbers, constant, noise) == [True, False]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_smooth_in_a_measurement_or_steps_with_it_is_not_tied(seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, 600)
    step, steps, curve = age > 50, np.digitize(age, [30, 45, 65]), (age - 50.0) ** 2
    noisy, copy = curve + rng.normal(size=600), np.log(age)
    latent = age + rng.uniform(-0.5, 0.5, 600)
    assert not any(found(age, step, steps, curve, noisy, copy, latent))


def test_other_columns_name_no_groups():
    rng = np.random.default_rng(0)
    assert not may_name_groups(rng.normal(size=100))
    assert not may_name_groups(np.arange(100.0))
    assert not may_name_groups(np.arange(100.0) % 10)
    assert not may_name_groups(np.full(100, np.nan))
    assert not may_name_groups(np.where(rng.random(200) < 0.5, 0, rng.integers(0, 30, 200)))


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_digits])
def test_measurements_are_not_tied(load):
    X, y = load(return_X_y=True)
    ranks = rankdata(np.column_stack([X, y]), axis=0)
    for k, values in enumerate(X.T):
        if may_name_groups(values):
            assert not np.delete(tied(values, ranks), k).any()
