"""Conformity scores, p-values and the choice among models, against their definitions."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.svm import SVC

from looms.nonconformity._bounds import dkw_bound, vc_bound
from looms.nonconformity._choice import (
    choose,
    conformity_counts,
    joint_p_values,
    labels_by_others,
    neighbor_scores,
    p_values,
    pairwise_margins,
    within_standard_errors,
)

SHAPES = [(1, 1, 1, 2), (3, 7, 5, 2), (4, 11, 6, 3), (2, 5, 9, 5)]
each_shape = pytest.mark.parametrize(("n_models", "m", "n", "n_classes"), SHAPES)


def made(n_models, m, n, n_classes, ties=False, seed=0):
    rng = np.random.default_rng(seed)
    calibration, scores = rng.normal(size=(n_models, m)), rng.normal(size=(n_models, n, n_classes))
    if ties:
        calibration, scores = np.round(2 * calibration), np.round(2 * scores)
    calibration.flags.writeable = scores.flags.writeable = False
    return calibration, scores


@pytest.mark.parametrize("n_classes", [2, 4])
def test_pairwise_margins_are_those_of_an_svc(n_classes):
    """One column a pair, positive for the first: the order that scikit-learn documents."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.integers(n_classes, size=80)
    X[:, 0] += 2 * y
    svc = SVC(decision_function_shape="ovo").fit(X, y)
    outputs = svc.decision_function(X)
    outputs = -outputs[:, None] if n_classes == 2 else outputs
    scores = pairwise_margins(outputs[None], n_classes)[0]
    for i, row in enumerate(outputs):
        duel = np.full((n_classes, n_classes), np.inf)
        for pair, (a, b) in enumerate(combinations(range(n_classes), 2)):
            duel[a, b], duel[b, a] = row[pair], -row[pair]
        np.testing.assert_array_equal(scores[i], duel.min(axis=1))
    winners = scores.max(axis=1) > 0
    assert winners.any()
    np.testing.assert_array_equal(scores.argmax(axis=1)[winners], svc.predict(X)[winners])


@pytest.mark.parametrize("n_neighbors", [1, 3, 50])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_neighbors(n_neighbors, n_outputs):
    rng = np.random.default_rng(1)
    reference, labels = rng.normal(size=(30, n_outputs)), rng.integers(3, size=30)
    outputs = rng.normal(size=(8, n_outputs))
    scores = neighbor_scores(outputs, reference, labels, n_neighbors)
    for x, score in zip(outputs, scores, strict=True):
        near = [
            np.sort(np.linalg.norm(reference[labels == c] - x, axis=1))[:n_neighbors].mean()
            for c in range(3)
        ]
        for label in range(3):
            ratios = [(near[c] - near[label]) / (near[c] + near[label]) for c in range(3)]
            expected = min(ratio for c, ratio in enumerate(ratios) if c != label)
            assert score[label] == pytest.approx(expected, rel=1e-12)


def test_no_sample_is_its_own_neighbor():
    rng = np.random.default_rng(2)
    outputs, labels = rng.normal(size=20), np.arange(20) % 2
    together = neighbor_scores(outputs, outputs, labels, 2, np.arange(20))
    for i in range(20):
        others = np.delete(np.arange(20), i)
        alone = neighbor_scores(outputs[[i]], outputs[others], labels[others], 2)
        np.testing.assert_allclose(together[i], alone[0], rtol=1e-12)


@each_shape
@pytest.mark.parametrize("ties", [False, True])
def test_counts_are_those_of_the_definition(n_models, m, n, n_classes, ties):
    calibration, scores = made(n_models, m, n, n_classes, ties)
    expected = (calibration[:, None, None] <= scores[..., None]).sum(axis=-1)
    np.testing.assert_array_equal(conformity_counts(calibration, scores), expected)


def test_equal_up_to_rounding_is_equal():
    calibration = np.array([[0.1 + 0.2]])
    assert conformity_counts(calibration, np.array([[[0.3]]])) == 1
    assert conformity_counts(calibration, np.array([[[0.3 - 1e-6]]])) == 0


@each_shape
def test_the_choice_is_a_minimum_over_models_and_labels(n_models, m, n, n_classes):
    counts = conformity_counts(*made(n_models, m, n, n_classes, ties=True))
    choice = choose(counts, seed=3)
    for i in range(n):
        rejected = np.array(
            [[np.delete(counts[k, i], y).max() for y in range(n_classes)] for k in range(n_models)]
        )
        assert choice.count[i] == rejected.min()
        assert rejected[choice.model[i], choice.label[i]] == rejected.min()


def test_a_vote_of_the_tied_models_decides():
    """Three of four tied models have label 1; the fifth is less sure of label 2 than they are."""
    counts = np.full((5, 40, 3), 9, dtype=np.int64)
    for model, (label, count) in enumerate([(0, 2), (1, 2), (1, 2), (1, 2), (2, 3)]):
        counts[model] = count
        counts[model, :, label] = 9
    counts[..., 0] += np.arange(40) * 10  # rows are decided alike only if they are equal
    counts[1:, :, 0] -= np.arange(40) * 10
    choice = choose(counts, seed=0, vote=True)
    np.testing.assert_array_equal(choice.label, 1)
    assert set(choice.model) == {1, 2, 3}
    assert set(choose(counts, seed=0).label) == {0, 1}
    even = choose(counts[:2], seed=0, vote=True)
    assert set(even.label) == {0, 1}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("width", "vote"), [(0.0, True), (1.0, True), (None, False)])
def test_labels_by_others_are_of_a_choice_without_the_sample(width, vote, ties):
    scores = made(5, 1, 13, 3, ties)[1]
    labels = np.random.default_rng(1).integers(3, size=13)
    said = labels_by_others(scores, labels, width, seed=7, vote=vote)
    for j in range(13):
        others = np.delete(np.arange(13), j)
        own = scores[:, others, labels[others]]
        models = within_standard_errors((own <= 0).mean(axis=1), 12, width)
        counts = conformity_counts(own[models], scores[models][:, [j]])
        assert said[[j]] == choose(counts, seed=7, vote=vote).label


def test_models_within_standard_errors_of_the_best():
    errors = np.array([0.3, 0.2, 0.2 + 0.04, 0.25, 0.24 + 1e-6])
    within = [within_standard_errors(errors, 100, width).tolist() for width in (0, 1, 1.25, None)]
    assert within == [[1], [1, 2], [1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert within_standard_errors(np.array([0.0, 0.02]), 50, 1.0).tolist() == [0]


def test_ties_are_random_over_seeds_and_the_same_in_any_order():
    counts = np.zeros((4, 300, 2), dtype=np.int64)
    counts[0, :, 1] = np.arange(300)  # otherwise all rows would be decided alike
    choice = choose(counts, seed=0)
    order = np.random.default_rng(0).permutation(300)
    shuffled = choose(counts[:, order], seed=0)
    np.testing.assert_array_equal(shuffled.model, choice.model[order])
    np.testing.assert_array_equal(shuffled.label, choice.label[order])
    share = np.bincount(choice.model * 2 + choice.label, minlength=8)[2:] / 300
    assert share.min() > 0.08
    assert share.max() < 0.2
    first = [int(choose(counts[:, :1], seed).label[0]) for seed in range(200)]
    assert 0.35 < np.mean(first) < 0.65


@each_shape
@pytest.mark.parametrize("ties", [False, True])
def test_joint_p_values_are_those_of_the_definition(n_models, m, n, n_classes, ties):
    calibration, scores = made(n_models, m, n, n_classes, ties)
    p = joint_p_values(calibration, scores)
    for i in range(n):
        for label in range(n_classes):
            bag = np.column_stack([calibration, scores[:, i, label]])
            rank = (bag[:, None] <= bag[:, :, None]).sum(axis=-1)
            strangeness = list(zip(rank.min(axis=0), rank.sum(axis=0), strict=True))
            expected = np.mean([one <= strangeness[-1] for one in strangeness])
            assert p[i, label] == pytest.approx(expected, rel=1e-12)


def test_blocks_do_not_change_joint_p_values(monkeypatch):
    calibration, scores = made(4, 11, 6, 3)
    whole = joint_p_values(calibration, scores)
    monkeypatch.setattr("looms.nonconformity._choice._BLOCK", 100)
    np.testing.assert_array_equal(joint_p_values(calibration, scores), whole)


@pytest.mark.parametrize(("epsilon", "m"), [(0.05, 50), (0.3, 20)])
def test_coverage_over_200_draws(epsilon, m):
    """The joint p-values keep their promise; the smallest of the models' own breaks it."""
    rng = np.random.default_rng(0)
    n, n_models, draws = 100, 15, 200
    joint, smallest, one = np.empty((3, draws))
    for draw in range(draws):
        # Models see the same sample, so their scores go together.
        bag = rng.normal(size=m + n) + 0.7 * rng.normal(size=(n_models, m + n))
        calibration, scores = bag[:, :m], bag[:, m:, None]
        own = p_values(conformity_counts(calibration, scores), m)[..., 0]
        joint[draw] = np.mean(joint_p_values(calibration, scores) > epsilon)
        smallest[draw] = np.mean(own.min(axis=0) > epsilon)
        one[draw] = np.mean(own[0] > epsilon)
    exact = 1 - np.floor(epsilon * (m + 1) + 1e-9) / (m + 1)
    assert 1 - epsilon <= exact <= 1 - epsilon + 1 / (m + 1)
    for coverage in (joint, one):
        error = coverage.std(ddof=1) / np.sqrt(draws)
        assert abs(coverage.mean() - exact) < 3 * error
    assert smallest.mean() < exact - 0.03


def test_bounds_are_those_of_the_sources():
    epsilon = np.array([0.0, 0.2])
    vc = epsilon + 5.66 * np.sqrt((np.log(np.e * 50) + np.log(8 * 110 / 0.05)) / 50)
    np.testing.assert_allclose(vc_bound(epsilon, 50, 110), vc, rtol=1e-12)
    dkw = epsilon + np.sqrt(np.log(110 / 0.05) / 100)
    np.testing.assert_allclose(dkw_bound(epsilon, 50, 110), dkw, rtol=1e-12)
    assert dkw_bound(0.0, 50, 110, delta=0.5) < dkw_bound(0.0, 50, 110)
    assert vc_bound(0.0, 50, 110, delta=0.5) < vc_bound(0.0, 50, 110)
    assert dkw_bound(0.0, 50, 1, delta=0.9) == np.sqrt(np.log(2) / 100)
    assert vc_bound(0.0, 547, 110) > 1 > vc_bound(0.0, 548, 110)


def test_the_dkw_bound_holds_for_all_models_at_once():
    """Uniform scores: the share below t is t, so the worst excess over models and t shows."""
    rng = np.random.default_rng(0)
    n, n_models, delta, failed = 50, 20, 0.2, 0
    for _ in range(400):
        scores = np.sort(rng.uniform(size=(n_models, n)), axis=1)
        below = np.arange(n) / n
        failed += bool((scores - dkw_bound(below, n, n_models, delta) > 0).any())
    assert 0 < failed / 400 < delta
