"""Weights and groups reach machines inside other estimators, where they change the answer."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier, Search

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(24), 4)
X = RNG.normal(size=(24, 4))[GROUPS] + 0.1 * RNG.normal(size=(96, 4))
Y = np.arange(24)[GROUPS] % 2  # nothing to learn, but for who it is
WEIGHT = RNG.uniform(0.1, 1, 96)
FOLDS = GroupKFold(4)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def accuracy():
    return get_scorer("accuracy").set_score_request(sample_weight=False)


@pytest.fixture(autouse=True)
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def pipeline(**asked):
    """Pipeline whose machine asks for these in its fit."""
    machine = KernelClassifier(search=Search(method="grid"))
    return make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False), machine.set_fit_request(**asked)
    )


def machine_fitted(rows=slice(None), **passed):
    """The machine of the pipeline, fitted by hand."""
    scaled = StandardScaler().fit_transform(X[rows])
    machine = KernelClassifier(search=Search(method="grid"))
    return machine.fit(scaled, Y[rows], **{name: v[rows] for name, v in passed.items()})


@pytest.mark.slow
def test_a_pipeline_passes_groups_and_weights():
    model = pipeline(groups=True, sample_weight=True)
    outputs = model.fit(X, Y, groups=GROUPS, sample_weight=WEIGHT)[-1].loo_.outputs
    assert_array_equal(outputs, machine_fitted(groups=GROUPS, sample_weight=WEIGHT).loo_.outputs)
    apart = pipeline(groups=False, sample_weight=False).fit(X, Y)[-1]
    together = pipeline(groups=True, sample_weight=False).fit(X, Y, groups=GROUPS)[-1]
    assert apart.evaluate()["accuracy"] > 0.9
    assert together.evaluate()["accuracy"] < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["groups", "sample_weight"])
def test_cross_validation_passes_the_part_of_each_fold(asked):
    passed = {"groups": GROUPS, "sample_weight": WEIGHT}
    requests = {name: name == asked for name in passed}
    params = {name: passed[name] for name in {"groups", asked}}
    result = cross_validate(
        pipeline(**requests),
        X,
        Y,
        cv=FOLDS,
        params=params,
        scoring=accuracy(),
        return_estimator=True,
    )
    for (train, _), model in zip(FOLDS.split(X, Y, GROUPS), result["estimator"], strict=True):
        by_hand = machine_fitted(train, **{asked: passed[asked]})
        assert_array_equal(model[-1].loo_.outputs, by_hand.loo_.outputs)
        assert not np.allclose(model[-1].held_out_.outputs, machine_fitted(train).held_out_.outputs)


def test_what_nobody_asked_for_is_an_error():
    with pytest.raises(ValueError, match="groups"):
        clone(pipeline(sample_weight=True)).fit(X, Y, groups=GROUPS)
