"""Choosing among kernels and criteria."""

import gc
import re
import weakref
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from looms import KernelRegressor
from looms.criteria import PRESS
from looms.criteria._error_rates import balanced_error_rate
from looms.kernels import RBF, Kernel, Linear
from looms.kernels._gram import GramBlocks
from looms.kernels._names import as_kernel
from looms.selection._candidates import HeldOutLoss, choose
from looms.selection._objective import Objective
from looms.selection._problem import Problem, Tuned
from looms.selection._tune import tune
from looms.units import Units

rng = np.random.default_rng(4)
X = rng.normal(size=(50, 3))
LABELS = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=50) > 0, 1.0, -1.0)


class Watcher:
    def __init__(self, last=None):
        self.heard = []
        self.last = last

    def stage_begins(self, objective):
        pass

    def candidate_begins(self, name):
        self.heard.append(("begins", name))

    def evaluation_done(self, objective, point):
        pass

    def iteration_done(self, objective, iteration, point):
        return False

    def candidate_ends(self, candidate):
        self.heard.append(("ends", candidate))
        return sum(event[0] == "ends" for event in self.heard) == self.last


def ber(outputs):
    return HeldOutLoss(balanced_error_rate(LABELS, outputs))


@dataclass(frozen=True)
class Searched:
    kernel: Kernel
    criterion: object = "press"

    def tuned(self, problem, **callbacks):
        objective = Objective(problem.X, problem.y, kernel=self.kernel, criterion=self.criterion)
        tuning, fit = tune(objective, max_iter=20, **callbacks)
        return Tuned.of(objective, tuning, fit, "" if fit else objective.failure_at(tuning.theta))


def chosen(kernels, criteria=("press",), *, loss_of=ber, watcher=None, X=X):
    rows = X, LABELS, np.ones(50), np.ones(50), True, Units.rows(50)
    problems = [
        Problem(Searched(as_kernel(kernel), criterion), *rows)
        for kernel, criterion in product(kernels, criteria)
    ]
    return choose(problems, loss_of=loss_of, watcher=watcher or Watcher())


def impossible(A, B):
    return -1e9 * (A @ B.T)


@pytest.mark.slow
def test_every_kernel_under_every_criterion_in_order():
    watcher = Watcher()
    choice = chosen(["linear", "rbf"], ["press", "wmw", PRESS()], watcher=watcher)
    pairs = [(type(c.kernel), c.criterion) for c in choice.candidates]
    criteria = ["press", "wmw", PRESS()]
    assert pairs == [(kernel, c) for kernel in (Linear, RBF) for c in criteria]
    assert [event[0] for event in watcher.heard] == ["begins", "ends"] * 6
    assert [event[1] for event in watcher.heard[1::2]] == choice.candidates
    assert [event[1] for event in watcher.heard[::2]] == [c.name for c in choice.candidates]


def test_the_best_is_taken_with_its_machine():
    choice = chosen(["linear", "rbf"])
    assert choice.candidates[choice.index] is min(choice.candidates, key=lambda c: c.loss)
    assert type(choice.candidates[choice.index].kernel) is RBF
    assert (
        balanced_error_rate(*choice.fits[choice.index].loo) == choice.candidates[choice.index].loss
    )
    assert choice.tunings[choice.index].value == choice.candidates[choice.index].value
    assert np.exp2(choice.tunings[choice.index].theta[-1]) == choice.candidates[choice.index].mu


def test_of_equals_the_first_is_taken():
    choice = chosen(["linear", "rbf", "cubic"], loss_of=lambda loo: HeldOutLoss(0.25))
    assert choice.candidates[choice.index] is choice.candidates[0]


def test_the_loss_comes_with_its_threshold():
    choice = chosen(["linear", "rbf"], loss_of=lambda loo: HeldOutLoss(*loo[:2]))
    for candidate in choice.candidates:
        assert candidate.threshold != 0
    assert (
        choice.candidates[choice.index].loss,
        choice.candidates[choice.index].threshold,
    ) == tuple(choice.fits[choice.index].loo.outputs[:2])


def test_a_failing_candidate_is_reported_and_not_taken():
    for kernels in (["linear", impossible], [impossible, "linear"]):
        choice = chosen(kernels)
        failed = choice.candidates[kernels.index(impossible)]
        assert failed.loss == np.inf
        assert failed.value == np.inf
        assert failed.n_failures == failed.n_evaluations > 0
        assert type(choice.candidates[choice.index].kernel) is Linear


def test_only_failing_candidates_are_an_error():
    with pytest.raises(
        ValueError, match=r"No candidate .*impossible.* not positive definite at mu"
    ):
        chosen([impossible, impossible])


@pytest.mark.slow
def test_a_watcher_can_end_it():
    choice = chosen(["linear", "rbf", "cubic"], ["press", "wmw"], watcher=Watcher(last=3))
    assert len(choice.candidates) == 3
    with_failure = chosen([impossible, "linear", "rbf"], watcher=Watcher(last=1))
    assert len(with_failure.candidates) == 3


@pytest.mark.slow
def test_matrices_of_candidates_do_not_pile_up(monkeypatch):
    made = []

    class Noted(GramBlocks):
        def __init__(self, *args):
            gc.collect()
            assert all(ref() is None for ref in made)
            made.append(weakref.ref(self))
            super().__init__(*args)

    monkeypatch.setattr("looms.selection._objective.GramBlocks", Noted)
    chosen(["linear", "rbf"], ["press", "wmw"])
    assert len(made) == 4


def test_the_reason_why_nothing_could_be_evaluated_is_that_of_the_first_candidate():
    with pytest.raises(ValueError, match=r"Polynomial\(.* on its diagonal .*Scale the features"):
        chosen(["quadratic"], X=3e76 * X)
    far = 1e100 * X
    for kernels, reason in (
        (["linear", "cubic"], r"No candidate .*Linear\(\).* on its diagonal .*Scale the features"),
        (
            ["cubic", "linear"],
            r"No candidate .*Polynomial\(.* inf on its diagonal .*Scale the features",
        ),
    ):
        with pytest.raises(ValueError, match=reason):
            chosen(kernels, X=far)


def test_a_choice_is_shown_in_a_line():
    X = np.random.default_rng(0).normal(size=(40, 2))
    machine = KernelRegressor("ard").fit(X, X[:, 0])
    assert re.fullmatch(r"Candidate\(ard, press, loss=[\d.e-]+\)", repr(machine.candidates_[0]))
    assert re.fullmatch(
        r"Tuning\(value=[\d.e-]+, stop_reason=[A-Z_]+, n_evaluations=\d+\)",
        repr(machine.selection_),
    )
