"""The HeldOut value: shapes, immutability, persistence, representation."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from looms.held_out import HeldOut

Y = np.array([1.0, 2.0, 6.0])
OUTPUTS = np.array([4.0, 3.5, 1.5])
FIELDS = ["y", "outputs", "sample_weight"]


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 2)])
def test_residuals_and_default_weights(shape):
    y, outputs = np.ones(shape), np.full(shape, 0.25)
    loo = HeldOut(y, outputs)
    assert loo.n_samples == 3
    assert_array_equal(loo.residuals, np.full(shape, 0.75))
    assert_array_equal(loo.sample_weight, np.ones(3))


def unpickled(loo):
    return pickle.loads(pickle.dumps(loo))


@pytest.mark.parametrize("same", [lambda loo: loo, unpickled, copy.copy, copy.deepcopy])
def test_is_immutable_and_survives_copying(same):
    arrays = [Y.copy(), OUTPUTS.copy(), np.array([1.0, 2.0, 3.0])]
    loo = same(HeldOut(*arrays))
    for name, argument in zip(FIELDS, arrays, strict=True):
        expected = argument.copy()
        argument[0] = 99.0  # the caller's array stays the caller's
        assert_array_equal(getattr(loo, name), expected)
        with pytest.raises(ValueError, match="read-only"):
            getattr(loo, name)[0] = 0.0
        with pytest.raises(FrozenInstanceError):
            setattr(loo, name, expected)


@pytest.mark.parametrize(
    ("y", "outputs", "sample_weight", "message"),
    [
        (Y, OUTPUTS[:2], None, r"y has shape \(3,\) and outputs has shape \(2,\)"),
        (Y, OUTPUTS, np.ones(2), r"sample_weight has shape \(2,\) and y has shape \(3,\)"),
        (np.ones((3, 1, 1)), np.ones((3, 1, 1)), None, r"but has shape \(3, 1, 1\)"),
        ([], [], None, r"but has shape \(0,\)"),
    ],
)
def test_shapes_must_agree(y, outputs, sample_weight, message):
    with pytest.raises(ValueError, match=message):
        HeldOut(y, outputs, sample_weight)


def test_holds_what_is_not_finite():
    loo = HeldOut(np.full(2, np.inf), [np.inf, np.nan], [np.inf, np.inf])
    assert repr(loo) == "HeldOut(n_samples=2)"


@pytest.mark.parametrize(
    ("columns", "sample_weight", "expected"),
    [
        (None, [2, 2, 2], "n_samples=3: rmse=2 ± 0, mae=2 ± 0, r2=–"),
        (None, [1, 1, 2], "n_samples=3, weighted=True: rmse=2 ± 0, mae=2 ± 0, r2=–"),
        (2, None, "n_samples=3, n_targets=2: rmse=2 ± 0, mae=2 ± 0, r2=–"),
    ],
)
def test_repr(columns, sample_weight, expected):
    y = np.zeros(3 if columns is None else (3, columns))
    assert repr(HeldOut(y, y + 2, sample_weight)) == f"HeldOut({expected})"


@pytest.mark.parametrize("y", [[1, -1, 1, 1], [[1, -1], [-1, 1], [1, -1], [1, -1]]])
def test_targets_of_plus_and_minus_one_may_be_numbers_or_classes(y):
    """A value cannot tell them apart; error rates of classes are the machine's."""
    y = np.array(y)
    text = repr(HeldOut(y, 0.5 * y))
    assert ": rmse=0.5 ± 0, mae=0.5 ± 0, r2=" in text
    assert "; if ±1 are classes, accuracies and AUC are in evaluate() of the model)" in text
    assert "evaluate" not in repr(HeldOut(2 * y, y))


def test_a_sample_of_weight_zero_is_in_no_figure():
    y, outputs = np.array([1.0, -1.0, 1.0, 1.0]), np.array([0.5, -0.5, 0.2, -9.0])
    assert "rmse=0.6164 ±" in repr(HeldOut(y, outputs, [1, 1, 1, 0]))
    assert "rmse=5.028 ±" in repr(HeldOut(y, outputs))
