"""Tuning one machine in stages."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification

from looms.kernels import RBF
from looms.optimize._search import Point, StopReason
from looms.selection._low_rank import LowRankObjective
from looms.selection._objective import Objective
from looms.selection._scan import starting_points
from looms.selection._subsamples import nested_subsets, stage_sizes
from looms.selection._tune import _search_from, tune
from looms.units import Units

rng = np.random.default_rng(2)
N = 240
X = rng.normal(size=(N, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N)
LABELS = np.where(Y > 0.8, 1.0, -1.0)
WEIGHT = rng.uniform(0.2, 3.0, size=N)


@pytest.fixture
def small_stages(monkeypatch):
    monkeypatch.setattr("looms.selection._subsamples._SCAN_SAMPLES", 15)


class TestStages:
    @pytest.mark.parametrize(
        ("n_samples", "sizes"),
        [
            (3, []),
            (200, []),
            (201, [200]),
            (799, [200]),
            (800, [200]),
            (1600, [400]),
            (1604, [200, 401]),
            (3200, [200, 800]),
            (20000, [312, 1250, 5000]),
        ],
    )
    def test_sizes(self, n_samples, sizes):
        assert stage_sizes(n_samples) == sizes

    def test_they_grow_and_are_worth_it(self):
        for n in range(1, 5000, 7):
            sizes = [*stage_sizes(n), n]
            assert sizes == sorted(set(sizes))
            assert sizes[0] <= max(400, 200)

    def test_subsets_are_nested_and_keep_the_classes(self, small_stages):
        objective = Objective(X, LABELS)
        subsets = nested_subsets(objective, np.random.RandomState(0))
        assert [len(s) for s in subsets] == [15, 60]
        assert set(subsets[0]) < set(subsets[1])
        share = (LABELS > 0).mean()
        for subset in subsets:
            assert (np.diff(subset) > 0).all()
            assert abs((LABELS[subset] > 0).sum() - share * len(subset)) <= 1

    def test_a_rare_class_is_in_every_subset(self, small_stages):
        rare = np.full((N, 3), -1.0)
        rare[np.arange(N), np.where(np.arange(N) == 100, 2, np.arange(N) % 2)] = 1
        for subset in nested_subsets(Objective(X, rare), np.random.RandomState(1)):
            assert 100 in subset

    def test_every_stage_begins_where_the_last_one_leads(self, small_stages):
        objective = Objective(X, Y, sample_weight=WEIGHT)
        part = objective.subset(np.arange(0, N, 4))
        np.testing.assert_allclose(part.bounds[-1] + np.log2(60), objective.bounds[-1] + np.log2(N))
        np.testing.assert_allclose(part.bounds[:-1], objective.bounds[:-1])
        tuning, _ = tune(objective)
        (n_small, small), (n_all, search) = tuning.stages
        assert (n_small, n_all) == (60, N)
        begins = search.history[0].theta
        np.testing.assert_allclose(begins[:-1], small.best.theta[:-1])
        # Between the same ridge n μ and the same μ: μ goes as 1 / √n.
        assert begins[-1] == pytest.approx(small.best.theta[-1] + 0.5 * np.log2(60 / N))

    @pytest.mark.slow
    def test_stages_find_what_all_samples_alone_do(self, small_stages, monkeypatch):
        objective = Objective(X, Y)
        staged, _ = tune(objective)
        assert len(staged.history) < staged.n_evaluations
        monkeypatch.setattr("looms.selection._subsamples._SCAN_SAMPLES", N)
        direct, _ = tune(objective)
        assert [size for size, _ in direct.stages] == [N]
        assert abs(staged.value - direct.value) < 0.1 * direct.standard_error


class TestTuning:
    def test_the_machine_is_the_one_at_theta(self):
        objective = Objective(X, Y, sample_weight=WEIGHT)
        tuning, fit = tune(objective)
        again = objective.fit(tuning.theta)
        np.testing.assert_allclose(fit.member.dual_coef, again.member.dual_coef, rtol=1e-9)
        evaluation = objective.criterion_of(fit.held_out)
        assert tuning.value == pytest.approx(evaluation.value)
        assert tuning.standard_error == pytest.approx(evaluation.standard_error)
        assert tuning.n_failures == 0

    def test_value_is_without_the_prior(self):
        objective = Objective(X[:60], Y[:60], kernel="ard", prior=True)
        tuning, fit = tune(objective)
        assert tuning.value == pytest.approx(np.mean(fit.loo.residuals**2))
        assert tuning.history[-1].value != pytest.approx(tuning.value)

    def test_failing_points_are_stepped_over_and_counted(self):
        """A kernel that is indefinite but for some hyper-parameters and large ridges."""

        class Fragile(RBF):
            def values(self, pairs):
                K = super().values(pairs)
                if self.gamma > 2.6:  # where the search wants to go
                    K -= 2.0
                return K

        objective = Objective(X[:60], np.sin(4 * X[:60, 0]), kernel=Fragile(gamma=1.0))
        tuning, fit = tune(objective)
        assert tuning.n_failures > 0
        assert tuning.n_failures == sum(not np.isfinite(p.value) for p in tuning.history)
        assert fit is not None
        assert np.isfinite(tuning.value)
        assert objective.kernel_at(tuning.theta).gamma <= 2.6

    def test_nothing_can_be_evaluated(self):
        objective = Objective(X[:30], Y[:30], kernel=lambda A, B: -1e9 * (A @ B.T))
        tuning, fit = tune(objective)
        assert fit is None
        assert tuning.stop_reason is StopReason.NEVER_EVALUATED
        assert (tuning.value, tuning.standard_error) == (np.inf, np.inf)
        assert tuning.n_failures == tuning.n_evaluations > 0

    def test_progress_hears_every_iteration_of_every_stage(self, small_stages):
        heard = []
        tuning, _ = tune(
            Objective(X, Y, kernel="ard"),
            progress=lambda objective, iteration, point: heard.append(
                (objective.n_samples, iteration, point.value)
            ),
        )
        for size, search in tuning.stages:
            own = [(i, value) for n, i, value in heard if n == size]
            assert [i for i, _ in own] == list(range(1, search.n_iterations + 1))
            assert all(np.diff([value for _, value in own]) <= 0)

    def test_progress_can_stop_it(self, small_stages):
        tuning, fit = tune(Objective(X, Y, kernel="ard"), progress=lambda *_: True)
        assert tuning.stop_reason is StopReason.CALLBACK
        assert [search.n_iterations for _, search in tuning.stages] == [1, 0]
        assert len(fit.member.dual_coef) == N

    @pytest.mark.slow
    def test_a_failing_restart_does_no_harm(self, small_stages):
        once, thrice = (tune(Objective(X, Y), n_restarts=n)[0] for n in (0, 4))
        assert [size for size, _ in thrice.stages] == [60] * 5 + [N]
        assert thrice.value <= once.value + 0.05 * once.standard_error

    def test_bounds_that_are_met_are_named(self):
        x = np.linspace(0, 1, 60)[:, None]
        wave = np.sin(40 * x[:, 0]) + 0.1 * Y[:60]
        tuning, _ = tune(Objective(x, wave, kernel=RBF(gamma=0.5, gamma_bounds=(0.1, 1.0))))
        met = tuning.at_bounds[0]
        assert (met.name, met.side, met.bound) == ("gamma", "upper", 1.0)
        assert str(met).startswith("gamma ended at its upper bound 1: every sample")
        tuning, _ = tune(Objective(x, np.sin(4 * x[:, 0]), kernel="powexp"))
        assert str(tuning.at_bounds[0]).startswith("power ended at its upper bound 2: the kernel")
        tuning, _ = tune(Objective(x, wave, kernel=RBF(gamma=0.5, gamma_bounds=(0.5, 0.5))))
        assert "gamma" not in {met.name for met in tuning.at_bounds}


class TestSteppingOver:
    """Points that cannot be evaluated, and boxes that leave little room, end no search."""

    @staticmethod
    def indefinite(A, B):
        return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=2)) - 0.02 * A @ B.T

    def test_a_start_that_fails_on_all_samples_is_tried_with_more_ridge(self, small_stages):
        objective = Objective(X, Y, kernel=self.indefinite)
        tuning, fit = tune(objective)
        assert fit is not None
        assert np.isfinite(tuning.value)

    def test_all_attempts_are_in_the_record(self):
        class Walled(Objective):
            def evaluate(self, theta, *, gradient=True):
                if theta[-1] < self.theta0[-1]:
                    return Point(theta, np.inf, np.inf)
                return super().evaluate(theta, gradient=gradient)

        objective = Walled(X, Y)
        low = objective.theta0 - [0.0, 5.0]
        search = _search_from(objective, objective.evaluate, low)
        assert [np.isfinite(point.value) for point in search.history[:4]] == [False] * 3 + [True]
        assert search.n_failures >= 3
        assert search.stop_reason is not StopReason.NEVER_EVALUATED

    def test_kernels_that_are_not_finite_are_left_to_the_others(self):
        def broken(A, B):
            K = A @ B.T
            return np.where(K > 1.0, np.nan, K)

        assert starting_points(Objective(X, Y, kernel=broken), 1)[0].shape == (1,)

    def test_kernel_is_evaluated_in_the_box_only(self, small_stages):
        seen = []

        class Watched(RBF):
            def values(self, pairs):
                seen.append(self.gamma)
                return super().values(pairs)

        tune(Objective(X, Y, kernel=Watched(1.0, (1.0, 1.1))))
        assert min(seen) >= 1.0 - 1e-12
        assert max(seen) <= 1.1 + 1e-12


@pytest.mark.parametrize("given", [60, 0.25])
def test_a_search_on_some_samples_leaves_one_evaluation_on_all(small_stages, given):
    objective = Objective(X, Y, sample_weight=WEIGHT, kernel="laplacian")
    tuning, fit = tune(objective, max_samples=given)
    (n_few, few), (n_all, last) = tuning.stages
    assert (n_few, n_all, last.n_evaluations, tuning.n_measured) == (60, N, 1, 0)
    assert (tuning.stop_reason, tuning.n_iterations) == (few.stop_reason, few.n_iterations)
    assert tuning.theta[:-1] == pytest.approx(few.best.theta[:-1])
    assert tuning.value == pytest.approx(objective.evaluate(tuning.theta).value)
    expected = objective.fit(tuning.theta).member.dual_coef
    np.testing.assert_allclose(fit.member.dual_coef, expected)
    on_all, _ = tune(objective, tolerance=1e-3)
    assert on_all.value < tuning.value < on_all.value + on_all.standard_error
    assert tune(objective, max_samples=N, tolerance=1e-3)[0].value == on_all.value


class TestManySamples:
    """The search on some of many samples, after which a few points are evaluated on all."""

    @pytest.fixture(autouse=True)
    def some(self, small_stages, monkeypatch):
        monkeypatch.setattr("looms.selection._objective.ROWS_OF_SEARCH", N // 2)
        monkeypatch.setattr("looms.selection._objective._ROWS_PER_VALUE", 1)
        monkeypatch.setattr("looms.selection._tune._ROWS_PER_VALUE", 1)

    def ends(self, tuning):
        """Where the searches on the last two numbers of samples ended, for all, and their share."""
        (n_before, before), (n_last, last) = [
            one for one in tuning.stages if one[0] < N and one[1].n_iterations
        ][-2:]
        ends = [
            one.best.theta - [0, np.log2(N / n) / 2]
            for n, one in ((n_before, before), (n_last, last))
        ]
        return *ends, np.log(N / n_last) / np.log(n_last / n_before)

    def test_where_it_ended_and_where_it_was_heading_are_evaluated(self):
        tuning, fit = tune(Objective(X, Y))
        *_, (n_last, _), (n_all, ended), (n_too, heading) = tuning.stages
        assert (n_last, n_all, n_too) == (N // 2, N, N)
        assert ended.n_evaluations == heading.n_evaluations == 1
        before, last, share = self.ends(tuning)
        np.testing.assert_allclose(ended.best.theta, last)
        np.testing.assert_allclose(heading.best.theta, last + min(share, 1) * (last - before))
        assert tuning.value == min(ended.best.value, heading.best.value)
        assert tuning.theta in (pytest.approx(ended.best.theta), pytest.approx(heading.best.theta))
        assert fit is not None

    def test_a_stop_by_a_callback_leaves_one_evaluation(self):
        tuning, _ = tune(Objective(X, Y), progress=lambda *_: True)
        assert tuning.stop_reason is StopReason.CALLBACK
        assert sum(search.n_evaluations for n, search in tuning.stages if n == N) == 1

    def test_a_point_that_hardly_moved_is_not_evaluated(self, monkeypatch):
        monkeypatch.setattr("looms.selection._tune._MOVED", 1e3)
        tuning, _ = tune(Objective(X, Y))
        assert [n for n, _ in tuning.stages][-2:] == [N // 2, N]

    def test_of_very_many_only_where_it_ended(self, monkeypatch):
        monkeypatch.setattr("looms.selection._tune.ROWS_OF_EXTRAPOLATION", N - 1)
        tuning, _ = tune(Objective(X, Y))
        assert [n for n, _ in tuning.stages][-2:] == [N // 2, N]

    @pytest.mark.parametrize(
        ("given", "size"), [(0.5, N // 4), (100, 100), (1.0, N // 2), (10**6, N)]
    )
    def test_the_number_can_be_given(self, given, size):
        tuning, _ = tune(Objective(X, Y), max_samples=given)
        *_, (n_last, _), (n_all, all_of_them) = [(None, None), *tuning.stages]
        assert n_all == N
        assert (n_last if all_of_them.n_evaluations == 1 else n_all) == size

    def test_a_kernel_with_many_values_is_searched_on_more(self, monkeypatch):
        monkeypatch.setattr("looms.selection._objective._ROWS_PER_VALUE", 60)
        assert Objective(X, Y, kernel="ard").rows_of_search() == 180
        assert Objective(X, Y).rows_of_search() == N // 2

    def test_the_box_is_that_of_all_samples_nearly(self, monkeypatch):
        some = Objective(X, Y)
        monkeypatch.setattr("looms.selection._objective.ROWS_OF_SEARCH", N)
        np.testing.assert_allclose(some.bounds, Objective(X, Y).bounds, atol=0.2)


class TestStarts:
    """Tunings on parts of the samples, at whose mean a search begins."""

    @pytest.fixture(autouse=True)
    def many(self, small_stages, monkeypatch):
        monkeypatch.setattr("looms.selection._tune.ROWS_OF_STARTS", N)

    def parts(self, objective):
        return [tune(objective.subset(np.arange(k, N, 3)))[0] for k in range(2)]

    @pytest.mark.parametrize("kernel", ["rbf", "ard"])
    def test_the_search_begins_at_their_mean_without_a_scan(self, kernel):
        objective = Objective(X, LABELS, sample_weight=WEIGHT, kernel=kernel)
        parts, seen = self.parts(objective), []
        evaluated = lambda stage, point: seen.append((stage.n_samples, point))  # noqa: E731
        tuning, fit = tune(objective, starts=parts, evaluated=evaluated)
        mean = np.mean([part.theta for part in parts], axis=0)
        mean[-1] += 0.5 * np.log2((N // 3) / N)
        assert {n for n, _ in seen} == {60, N}
        first = next(point for n, point in seen if n == N)
        assert first.theta == pytest.approx(mean)
        assert len(seen) == tuning.n_evaluations + tuning.n_measured
        assert tuning.n_measured == len(mean) + 1
        assert [n for n, _ in tuning.stages] == [N]
        exact, _ = tune(objective, tolerance=0.0)
        assert tuning.value < exact.value + 0.2 * exact.standard_error
        expected = objective.fit(tuning.theta).member.dual_coef
        np.testing.assert_allclose(fit.member.dual_coef, expected)

    def test_it_is_over_there_if_it_ends_on_some_samples(self):
        objective = Objective(X, LABELS)
        parts = self.parts(objective)
        tuning, fit = tune(objective, starts=parts, max_samples=0.25)
        assert (tuning.n_evaluations, tuning.n_measured) == (1, 0)
        assert tuning.stop_reason is parts[0].stop_reason
        assert fit is not None

    def test_few_samples_are_searched_from_a_scan(self, monkeypatch):
        objective = Objective(X, LABELS)
        parts = self.parts(objective)
        monkeypatch.setattr("looms.selection._tune.ROWS_OF_STARTS", N + 1)
        ours, theirs = tune(objective, starts=parts)[0], tune(objective)[0]
        assert ours.theta == pytest.approx(theirs.theta)


def test_subsamples_are_of_whole_groups():
    rng = np.random.default_rng(0)
    n = 800
    groups = rng.permutation(np.repeat(np.arange(n // 4), 4))
    X, y = rng.normal(size=(n, 2)), np.where(rng.random(n // 4)[groups] < 0.3, 1.0, -1.0)
    objective = Objective(X, y, kernel=RBF(0.5), units=Units.of(None, y, groups))
    subsets = nested_subsets(objective, np.random.RandomState(0))
    assert [len(rows) for rows in subsets] == stage_sizes(n)
    for rows in subsets:
        members = np.bincount(groups[rows], minlength=n // 4)
        assert np.count_nonzero((members > 0) & (members < 4)) <= 1  # the last one, cut
        part = objective.subset(rows)
        clusters = part.units.clusters
        same = groups[rows][:, None] == groups[rows]
        assert (same == (clusters[:, None] == clusters)).all()
        sizes = [len(G) for G in part.units]
        assert sorted(sizes) == sorted(members[members > 0])
        assert abs((y[rows] > 0).mean() - (y > 0).mean()) < 0.03


class TestLandmarks:
    """The last search, on landmarks where these suffice, by the kernel matrix where not."""

    @pytest.fixture(autouse=True)
    def few(self, small_stages, monkeypatch):
        monkeypatch.setattr("looms.selection._tune._FEWEST_LANDMARKS", N // 8)

    @pytest.mark.slow
    def test_one_evaluation_by_the_kernel_matrix_is_left(self):
        smooth = X[:, 0] - 0.3 * X[:, 1] ** 2 + 0.3 * np.random.default_rng(1).normal(size=N)
        objective, evaluated = Objective(X, smooth, sample_weight=WEIGHT, kernel="ard"), []
        tuning, fit = tune(objective, evaluated=lambda stage, point: evaluated.append(stage))
        assert 2 < tuning.n_landmarks <= N // 8
        _, (n_landmarks, on_landmarks), (n_all, last) = tuning.stages
        assert (n_landmarks, n_all, last.n_evaluations) == (N, N, 1)
        assert last.history[0].theta == pytest.approx(on_landmarks.best.theta)
        assert last.best.gradient is None
        assert len(evaluated) == tuning.n_evaluations + tuning.n_measured
        assert tuning.stop_reason is on_landmarks.stop_reason is StopReason.WITHIN_NOISE
        assert tuning.n_iterations == on_landmarks.n_iterations > 0
        assert tuning.value == pytest.approx(objective.evaluate(tuning.theta).value)
        np.testing.assert_allclose(
            fit.member.dual_coef, objective.fit(tuning.theta).member.dual_coef
        )
        exact, _ = tune(objective, tolerance=0.0)
        assert exact.n_landmarks is None
        assert tuning.value < exact.value + 0.1 * exact.standard_error

    @pytest.mark.parametrize("given", ["targets", "groups", "cv", "matrix", "max_iter"])
    def test_otherwise_the_search_is_by_the_kernel_matrix(self, given, monkeypatch):
        options = {"kernel": "precomputed"} if given == "matrix" else {}
        if given in ("groups", "cv"):
            groups = np.repeat(np.arange(N // 2), 2) if given == "groups" else None
            options = {"units": Units.of(None if given == "groups" else 5, Y, groups)}
        x = X @ X.T if given == "matrix" else X
        rough = np.sin(40 * X[:, 0]) if given == "targets" else Y
        search = {"max_iter": 0} if given == "max_iter" else {}
        tuning, _ = tune(Objective(x, rough, **options), **search)
        monkeypatch.setattr("looms.selection._tune._FEWEST_LANDMARKS", N)
        expected, _ = tune(Objective(x, rough, **options), **search)
        assert tuning.n_landmarks is None
        assert tuning.n_measured - expected.n_measured == 2 * (given == "targets")
        np.testing.assert_array_equal(tuning.theta, expected.theta)

    @pytest.mark.slow
    def test_it_goes_on_where_the_kernel_matrix_disagrees_in_the_end(self, monkeypatch):
        objective = Objective(X, Y)
        monkeypatch.setattr(LowRankObjective, "penalized", lambda _, p: replace(p, value=9.0))
        tuning, _ = tune(objective)
        assert tuning.n_landmarks is None
        *_, (_, check), (_, search) = tuning.stages
        assert (check.n_evaluations, check.n_iterations) == (1, 0)
        assert tuning.n_iterations == search.n_iterations > 0
        assert tuning.stop_reason is search.stop_reason is StopReason.WITHIN_NOISE


@pytest.mark.slow
def test_memory_is_that_of_one_kernel_matrix():
    n = 1600
    X = np.random.default_rng(0).normal(size=(n, 3))
    tracemalloc.start()
    tuning, _ = tune(Objective(X[:, :2], X[:, 0] + X[:, 2]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tuning.n_landmarks is not None
    assert peak < 1.3 * 8 * n**2


@pytest.mark.slow
def test_a_search_goes_on_while_gains_are_sure():
    """20 features of which 8 tell, a twentieth of the labels drawn anew: many small sure gains.

    If judged by the standard error of the criterion alone, the search ends at 1.6 standard errors
    above what the tolerance of 0.01 finds.
    """
    options = {"n_informative": 8, "n_redundant": 0, "n_clusters_per_class": 3, "class_sep": 0.6}
    samples, labels = make_classification(400, 20, flip_y=0.05, random_state=2, **options)
    objective = Objective(samples, 2.0 * labels - 1, kernel="ard")
    found, best = tune(objective)[0], tune(objective, tolerance=0.01)[0]
    assert best.value <= found.value < best.value + 0.25 * best.standard_error
    assert found.n_evaluations < best.n_evaluations


@pytest.mark.parametrize("folds", [None, "groups", "2x3"])
@pytest.mark.parametrize("criterion", ["press", "wmw", "cross_entropy"])
@pytest.mark.parametrize("prior", [False, True])
def test_deviations_have_the_standard_error(folds, criterion, prior):
    groups = np.arange(N) // 4 if folds == "groups" else None
    units = Units.of(folds if groups is None else None, LABELS, groups)
    options = {"selection_weight": WEIGHT, "units": units, "prior": prior}
    objective = Objective(X, LABELS, criterion=criterion, **options)
    point = objective.evaluate(objective.theta0)
    ratio = np.linalg.norm(point.deviations) / point.standard_error
    if folds == "2x3":  # repetitions differ a little, but their standard errors are averaged
        assert 0.9 < ratio <= 1.0
    else:
        assert ratio == pytest.approx(1.0, rel=1e-12)
