"""Rows in tensors: fitted where they live, predictions beside them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looms import LSSVMClassifierCV, LSSVMRegressorCV
from looms.blocks import ArrayBlocks
from looms.model_files import load_model, save_model

torch = pytest.importorskip("torch")
tensors = pytest.importorskip("looms.tensors")

RNG = np.random.default_rng(0)
N = 900
X = RNG.normal(size=(N + 100, 4))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=len(X))
CODES = 3 + (NUMBERS > 0) + (NUMBERS > 1)
ROWS = torch.tensor(X)


def regressor(**options):
    return LSSVMRegressorCV(**{"rank": 60, "nested": None, **options})


def classifier(**options):
    return LSSVMClassifierCV(**{"rank": 60, "nested": None, **options})


@pytest.mark.parametrize(
    "options", [{"kernel": "ard"}, {"kernel": ["linear", "matern32"]}, {"cv": 5}]
)
def test_numbers_are_those_of_arrays_in_a_tensor(options):
    ours = regressor(**options).fit(X[:N], NUMBERS[:N])
    theirs = regressor(**options).fit(ROWS[:N], torch.tensor(NUMBERS[:N]))
    predictions = theirs.predict(ROWS[N:])
    assert isinstance(predictions, torch.Tensor)
    assert predictions.dtype == torch.float64
    assert_allclose(predictions.numpy(), ours.predict(X[N:]), rtol=1e-5, atol=1e-6)
    assert_allclose(theirs.held_out_.outputs, ours.held_out_.outputs, rtol=1e-5, atol=1e-6)


def test_classes_weights_and_groups():
    groups = np.arange(N) // 3
    weight = RNG.uniform(0.5, 2.0, N)
    data = CODES[:N], weight, groups
    ours = classifier().fit(X[:N], *data)
    theirs = classifier().fit(ROWS[:N], *map(torch.tensor, data))
    classes = theirs.predict(ROWS[N:])
    assert classes.dtype == torch.int64
    assert_array_equal(classes.numpy(), ours.predict(X[N:]))
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        numbers = getattr(theirs, method)(ROWS[N:])
        assert_allclose(numbers.numpy(), getattr(ours, method)(X[N:]), rtol=1e-4, atol=1e-5)
        assert_allclose(numbers.numpy(), getattr(theirs, method)(X[N:]), rtol=1e-10, atol=1e-12)
    named = classifier().fit(ROWS[:N], np.array(["low", "middle", "high"])[CODES[:N] - 3])
    assert_array_equal(np.unique(named.predict(ROWS[N:])), ["high", "low", "middle"])


def test_blocks_of_float32_predict_in_float32():
    model = regressor().fit(ROWS[:N].float(), NUMBERS[:N])
    predictions = model.predict(ROWS[N:].float())
    assert predictions.dtype == torch.float32
    ours = regressor().fit(X[:N], NUMBERS[:N])
    assert_allclose(predictions.numpy(), ours.predict(X[N:]), atol=2e-3)


def test_a_tensor_of_few_rows_takes_the_kernel_matrix_on_the_host():
    for rank in (None, "auto"):
        model = regressor(rank=rank).fit(ROWS[:200], NUMBERS[:200])
        assert model.landmarks_ is None
        assert isinstance(model.predict(ROWS[N:]), torch.Tensor)
    assert (
        regressor(rank="auto", kernel="laplacian").fit(ROWS[:200], NUMBERS[:200]).dual_coef_.any()
    )


def test_model_files_of_machines_fitted_to_tensors(tmp_path):
    model = regressor().fit(ROWS[:N], NUMBERS[:N])
    save_model(tmp_path / "m.skops", model, {})
    again = load_model(tmp_path / "m.skops").model
    assert torch.equal(again.predict(ROWS[N:]), model.predict(ROWS[N:]))
    blocks = ArrayBlocks(X[N:])
    assert_allclose(again.predict(blocks), again.predict(X[N:]), rtol=1e-12)


def test_what_cannot_be_taken():
    for kernel, name in (("ranked_rbf", "Ranked"), (["rbf", "laplacian"], "Laplacian")):
        with pytest.raises(
            ValueError, match=f"{name} takes NumPy arrays only; tensors work with ARD"
        ):
            regressor(kernel=kernel).fit(ROWS[:N], NUMBERS[:N])
    hollow = ROWS[:N].clone()
    hollow[3, 1] = float("nan")
    with pytest.raises(ValueError, match="X contains NaN or infinity"):
        regressor().fit(hollow, NUMBERS[:N])
    with pytest.raises(ValueError, match="a tensor of 1 dimensions"):
        tensors.TensorBlocks(ROWS[0])
    with pytest.raises(ValueError, match="Unknown dtype 'float16'"):
        tensors.TensorBlocks(ROWS, dtype="float16")
    with pytest.raises(ValueError, match="X has 3 features, but LSSVMRegressorCV is expecting 4"):
        regressor().fit(ROWS[:N], NUMBERS[:N]).predict(ROWS[:, :3])
