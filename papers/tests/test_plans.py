"""Plans: the paper's experiments in the paper's order, and parts of them."""

import pytest

from looms.criteria import as_criterion
from looms.kernels._names import as_kernel
from papers import challenge
from papers.challenge._papers import paper_table
from papers.challenge._plans import PLANS, PaperExperiment, only


def test_table3_is_the_papers():
    paper = paper_table("c06_table3")
    plan = challenge.experiments_of("table3")
    ours = [(e.criterion, e.weighting, e.kernel) for e in plan]
    columns = ("criterion", "weighting", "kernel")
    assert ours == list(zip(*(paper[c] for c in columns), strict=True))
    assert paper["experiment"].tolist() == list(range(1, 71))
    assert challenge.experiments_of("table4") == plan


@pytest.mark.parametrize("plan", PLANS)
def test_every_experiment_can_be_made(plan):
    experiments = challenge.experiments_of(plan)
    assert len({e.name for e in experiments}) == len(experiments)
    for experiment in experiments:
        as_kernel(experiment.kernel)
        as_criterion(experiment.criterion)
        assert PaperExperiment.named(experiment.name) == experiment


#: Of the submission that won, on ADA, GINA, HIVA, NOVA and SYLVA.
WINNING = [
    "press-boolean",
    "press-normalized_cubic-training",
    "press-rbf",
    "wmw-normalized_quadratic",
    "wmw-normalized_quadratic-training",
]


@pytest.mark.parametrize(("plan", "size"), [("table5", 112), ("table6", 112), ("game", 153)])
def test_plans_of_choices_have_the_winning_entries(plan, size):
    experiments = challenge.experiments_of(plan)
    assert len(experiments) == size
    assert {e.name for e in only(experiments, [",".join(WINNING)])} == set(WINNING)
    assert set(challenge.experiments_of("table3")) < set(experiments)


def test_the_game_has_what_its_slides_name():
    plan = challenge.experiments_of("game")
    paper = paper_table("g06_game")
    chosen = set(zip(paper["criterion"], paper["kernel"], strict=True))
    assert chosen <= {(e.criterion, e.kernel) for e in plan}


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        (["press-cubic, 70"], ["press-cubic", "smoothed_error-rbf-both"]),
        (["weighting=both", "kernel=linear", "criterion=press,wmw"], ["press-linear-both"]),
        (["1,2,3", "kernel=cubic"], ["press-cubic"]),
        (["press-polynomial4", "criterion=press,wmw"], ["press-polynomial4"]),
    ],
)
def test_parts(conditions, names):
    plan = challenge.experiments_of("table3")
    assert [e.name for e in only(plan, conditions)] == names
