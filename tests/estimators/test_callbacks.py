"""Progress by scikit-learn's callback protocol (1.9)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search
from looms.optimize._search import StopReason

callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")

rng = np.random.default_rng(9)
X = rng.normal(size=(60, 4))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=60)
CANDIDATES = ["linear", "ard", "rbf"]

ROOT, CANDIDATE, ITERATION = range(3)


def depth(context):
    return 0 if context.parent is None else 1 + depth(context.parent)


class Recorder:
    """Notes what it hears; asks to stop where ``stop(context)`` says so."""

    def __init__(self, stop=lambda context: False):
        self.stop = stop
        self.calls = []
        self.open = []
        self.data = []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.open.append(context)
        self.data.append((X, y))

    def on_fit_task_end(self, estimator, context):
        assert self.open.pop() is context
        self.calls.append((depth(context), context.task_id, context.task_name))
        return self.stop(context)

    def ended(self, level):
        return [call for call in self.calls if call[0] == level]


def fitted(recorder, estimator=None):
    if estimator is None:
        estimator = stacked_regressor(CANDIDATES, combine="best")
    return estimator.set_callbacks(recorder).fit(X, Y if "Reg" in repr(estimator) else Y > 0)


@pytest.mark.slow
def test_tasks_begin_and_end_in_pairs():
    recorder = Recorder()
    model = fitted(recorder)
    assert (recorder.calls[0], recorder.calls[-1]) == ("setup", "teardown")
    assert recorder.open == []
    assert len(recorder.ended(ROOT)) == 1
    assert [task_id for _, task_id, _ in recorder.ended(CANDIDATE)] == [0, 1, 2]
    names = [name for _, _, name in recorder.ended(CANDIDATE)]
    assert names == [candidate.name for candidate in model.candidates_]
    assert len(recorder.ended(ITERATION)) >= model.n_iter_
    assert all("n=60" in name for _, _, name in recorder.ended(ITERATION))
    assert all(np.shares_memory(X_seen, X) for X_seen, _ in recorder.data)


@pytest.mark.slow
def test_stopping_an_iteration_ends_the_search_of_its_candidate():
    recorder = Recorder(stop=lambda context: depth(context) == ITERATION)
    model = fitted(recorder, stacked_regressor(["ard", "rbf"], combine="best"))
    assert len(recorder.ended(ITERATION)) == 2
    assert [c.stop_reason for c in model.candidates_] == [StopReason.CALLBACK] * 2
    assert model.n_iter_ == 1
    free = stacked_regressor(["ard", "rbf"], combine="best").fit(X, Y)
    assert model.selection_.value > free.selection_.value
    given = KernelRegressor(model.kernel_, mu=model.mu_).fit(X, Y)
    assert_allclose(model.predict(X), given.predict(X), rtol=1e-7)
    assert model.selection_.value == pytest.approx(np.mean(model.loo_.residuals**2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
def test_a_support_vector_machine_tells_of_each_point():
    class Listener(Recorder):
        def on_evaluation(self, estimator, n_samples, value):
            self.values.append(value)
            assert n_samples == 60

    recorder = Listener(stop=lambda context: depth(context) == CANDIDATE)
    recorder.values = []
    svm = [
        KernelClassifier(kernel, loss="hinge", search=Search(resolution=4.0))
        for kernel in ("linear", "rbf")
    ]
    model = fitted(recorder, stacked_classifier(svm, combine="best"))
    assert [name for _, _, name in recorder.ended(CANDIDATE)] == ["linear, deviance"]
    assert model.cv_results_["kernel"] == ["linear"]
    assert recorder.values == [point.value for point in model.selection_.history]


def test_given_values_are_one_task_without_iterations():
    recorder = Recorder()
    model = fitted(recorder, KernelRegressor("rbf", mu=0.1))
    assert [name for _, _, name in recorder.ended(CANDIDATE)] == ["rbf, press"]
    assert recorder.ended(ITERATION) == []
    assert recorder.open == []
    assert_allclose(model.predict(X), KernelRegressor("rbf", mu=0.1).fit(X, Y).predict(X))


class Detailed:
    """Notes labels, metadata and predictions that it is given."""

    def __init__(self):
        self.begun, self.ended = [], []

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context, *, y=None, metadata=None):
        self.begun.append((y, metadata))

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        predicted = None if fitted_estimator is None else fitted_estimator.predict(X)
        self.ended.append((depth(context), y, metadata, predicted))


@pytest.mark.parametrize("weight", [None, np.arange(60) % 3 + 1.0])
def test_callbacks_get_labels_weights_and_the_machine(weight):
    labels = np.where(Y > 0.2, "yes", "no")
    detailed = Detailed()
    model = KernelClassifier(threshold="balanced").set_callbacks(detailed)
    model.fit(X, labels, sample_weight=weight)
    calls = [*detailed.begun, *((y, metadata) for _, y, metadata, _ in detailed.ended)]
    for y, metadata in calls:
        assert list(y) == list(labels)
        if weight is None:
            assert metadata is None
        else:
            assert_allclose(metadata["sample_weight"], weight)
    *parts, (level, _, _, predicted) = detailed.ended
    assert level == ROOT
    assert list(predicted) == list(model.predict(X))
    assert all(predicted is None for *_, predicted in parts)


def test_scoring_monitor():
    labels = np.where(Y > 0.2, "yes", "no")
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = KernelClassifier().set_callbacks(monitor).fit(X, labels)
    (record,) = monitor.get_logs().data
    assert record["accuracy"] == pytest.approx(model.score(X, labels))


def test_evaluations_are_heard_of_by_who_wants_them(monkeypatch):
    monkeypatch.setattr("looms.selection._subsamples._SCAN_SAMPLES", 5)

    class Counter(Recorder):
        evaluations = ()

        def on_evaluation(self, estimator, n_samples, value):
            self.evaluations += ((n_samples, value),)

    counter = Counter()
    model = fitted(counter, KernelRegressor("rbf"))
    tuning = model.selection_
    assert len(counter.evaluations) == tuning.n_evaluations + tuning.n_measured
    assert [n for n, _ in counter.evaluations] == sorted(n for n, _ in counter.evaluations)
    assert {n for n, _ in counter.evaluations} == {15, 60}
    last = [value for n, value in counter.evaluations if n == 60]
    assert min(last) == pytest.approx(model.selection_.value)


@pytest.mark.slow
def test_machines_tuned_in_folds_are_counted():
    class Listener(Recorder):
        def on_outer_fold(self, estimator, done, total):
            self.calls.append((estimator, done, total))

    recorder = Listener()
    machine = fitted(recorder, stacked_regressor(["linear", "normalized_linear"]))
    machine.evaluate()
    heard = [call for call in recorder.calls if call[0] is machine]
    assert heard == [(machine, k + 1, 5) for k in range(5)]


def test_a_fit_that_fails_ends_too():
    recorder = Recorder()
    with pytest.raises(ValueError, match="positive semi-definite"):
        fitted(recorder, KernelRegressor(lambda A, B: -(A @ B.T)))
    assert recorder.calls[-1] == "teardown"
