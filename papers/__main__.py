"""``python -m papers``: runs the experiments of [C06] and [G06], beside the printed results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer
from benchmarks._report import command_line, header_line

from looms._optional import require
from looms.cli._app import Command
from looms.cli._errors import InputError
from looms.cli._options import command
from looms.cli._output import (
    check_can_write,
    csv_text,
    note,
    refused,
    write_or_print,
    write_output,
    write_stdout,
)
from looms.cli._progress import Meter
from papers.challenge import Runs, experiments_of, experiments_table, fetch, load_file, run_plan
from papers.challenge._choices import (
    game_entries,
    loo_entries,
    nested_entries,
    run_validation,
    stored_validation,
)
from papers.challenge._data import ChallengeData
from papers.challenge._over_sets import dimensions_table, overall_table
from papers.challenge._plans import PaperExperiment, only
from papers.challenge._run import Nested, Results, run_nested, stored_nested, stored_plan
from papers.challenge._shown import markdown, plot_table
from papers.challenge._tables import entries_table, factors_table

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    name="papers",
    help="Run the papers' experiments, and compare the results with the papers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


Preparation: TypeAlias = Literal["ada", "gina", "hiva", "nova", "sylva", "standardize", "table"]
DataOption = Annotated[
    str,
    typer.Option(
        "--data",
        "-d",
        help="ada, gina, hiva, nova or sylva, from --folder or else OpenML; or a file.",
    ),
]


FormOption = Annotated[Literal["markdown", "csv"], typer.Option(help="Form of the table.")]
TableOption = Annotated[Path | None, typer.Option("--output", "-o", help="File for the table.")]


@dataclass(frozen=True)
class PlanOptions:
    """Experiments to run or look up, and their splits."""

    plan: Annotated[
        Literal["table3", "table4", "table5", "table6", "game"],
        typer.Option(
            "--plan",
            "-p",
            help=(
                "table3: every experiment; table4: their factors; table5: choice and guess by "
                "leave-one-out; table6: guess also by splits; game: three ways to choose."
            ),
        ),
    ] = "table3"
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Part of the plan: criterion=press,wmw or weighting=none,training,both or "
                "kernel=linear,rbf or names or numbers; if repeated, all must hold."
            )
        ),
    ] = None
    splits: Annotated[
        int,
        typer.Option("--splits", "-n", min=2, help="Random 90/10 splits; inner for table6, game."),
    ] = 100
    held_out: Annotated[
        int, typer.Option(min=2, help="For table6 and game: number of tenths to test guesses on.")
    ] = 10
    optimizer: Annotated[
        Literal["lbfgs", "scg", "nelder-mead"],
        typer.Option(help="Optimizer of the hyper-parameters; the papers use the last two."),
    ] = "lbfgs"

    @property
    def nested(self) -> bool:
        """True if guesses are tested on held-out rows."""
        return self.plan in ("table6", "game")

    def experiments(self) -> list[PaperExperiment]:
        """The experiments of the plan."""
        return only(experiments_of(self.plan), self.only or [])


@dataclass(frozen=True)
class DataOptions:
    """Where the data are, and how they are prepared."""

    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of the sets; by default LOOMS_DATA, if set."),
    ] = None
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="For a file: the column to predict.")
    ] = None
    positive: Annotated[
        str | None, typer.Option(help="For a file: the positive classes, separated by commas.")
    ] = None
    preparation: Annotated[
        Preparation | None,
        typer.Option(help="Preprocessing; by default that of the set, or table for a file."),
    ] = None
    rows: Annotated[
        int | None, typer.Option(min=20, help="Number of random rows to use, instead of all.")
    ] = None
    random_state: Annotated[int, typer.Option(min=0, help="Seed of the splits, and of --rows.")] = 0

    def load(self, data: str) -> ChallengeData:
        """Data set by name or from a file, or some of its rows."""
        whole = self._whole(data)
        if self.rows is None:
            return whole
        if self.rows >= len(whole.y):
            raise InputError(f"--rows {self.rows} is not fewer than the {len(whole.y)} of {data}")
        return whole.subsample(self.rows, self.random_state)

    def _whole(self, data: str) -> ChallengeData:
        if Path(data).suffix == "":
            for name, value in (("--target", self.target), ("--positive", self.positive)):
                if value is not None:
                    raise InputError(f"{name} is for a file, but --data {data} is a set by name")
            return fetch(data, self.folder, preparation=self.preparation)
        if self.folder is not None:
            raise InputError(f"--folder is for a set by name, but --data {data} is a file")
        words = self.positive.split(",") if self.positive else []
        positive = tuple(word.strip() for word in words)
        return load_file(
            data, self.target, positive=positive, preparation=self.preparation or "table"
        )


@app.command("run", cls=Command)
@command
def run(
    data: DataOption,
    *,
    plan: PlanOptions,
    store: Path | None = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Splits to run in parallel; -1 for one per core.")
    ] = 1,
    source: DataOptions,
) -> None:
    """Run a plan or a part of it; with a store, in parts, and again for the rest."""
    with refused():
        experiments, loaded = plan.experiments(), source.load(data)
        runs = Runs(loaded, store, jobs, source.random_state, plan.optimizer)
        n_positive = int((loaded.y > 0).sum())
        names = f" ({', '.join(loaded.positive)})" if loaded.positive else ""
        note(
            f"{loaded.name}: {loaded.X.shape[0]} rows, {n_positive} of them positive{names}, "
            f"{loaded.X.shape[1]} columns, prepared as {loaded.preparation}; "
            f"{len(experiments)} experiments"
        )
        with _progress() as callbacks:
            results: Nested | Results
            if plan.nested:
                results = run_nested(runs, experiments, plan.splits, plan.held_out, **callbacks)
            else:
                results = run_plan(runs, experiments, plan.splits, **callbacks)
                if plan.plan == "table5":
                    results = run_validation(runs, results, plan.splits, **callbacks)
        write_stdout(markdown(_table(plan, experiments, runs, results)))


@app.command("table", cls=Command)
@command
def table(
    data: DataOption,
    *,
    store: Annotated[Path, typer.Option(help="Folder of finished splits.")],
    plan: PlanOptions,
    form: FormOption = "markdown",
    output: TableOption = None,
    plot: Annotated[Path | None, typer.Option(help="File for a plot: .png, .svg or .pdf.")] = None,
    source: DataOptions,
    force: bool = False,
) -> None:
    """Compare what a store has with the papers' results; nothing is run."""
    for path in (output, plot):
        check_can_write(path, force)
    if not store.is_dir():
        raise InputError(f"there is no store {store}; python -m papers run makes one")
    with refused():
        experiments, loaded = plan.experiments(), source.load(data)
        runs = Runs(loaded, store, random_state=source.random_state, optimizer=plan.optimizer)
        results: Nested | Results
        if plan.nested:
            results = stored_nested(runs, experiments, plan.splits, plan.held_out)
        else:
            results = stored_plan(runs, experiments, plan.splits)
            if plan.plan == "table5":
                results = stored_validation(runs, results, plan.splits)
        made = _table(plan, experiments, runs, results)
        if plot is not None:
            kind = plot.suffix.lower().removeprefix(".")
            if kind not in ("png", "svg", "pdf"):
                raise InputError(f"--plot {plot}: the plot can be .png, .svg or .pdf")
            content = BytesIO()
            title = f"{loaded.name}, {plan.plan}"
            plot_table(made, title).savefig(content, format=kind, dpi=150)
            write_output(plot, content.getvalue())
            note(f"the plot is {plot}")
    _write(made, form, output)


@app.command("data", cls=Command)
@command
def dimensions(data: DataOption, *, source: DataOptions) -> None:
    """Dimensions and composition of a data set, next to the paper's."""
    with refused():
        write_stdout(markdown(dimensions_table(source.load(data))))


@app.command("overall", cls=Command)
@command
def overall(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...",
            help="Written by python -m papers table --form csv, for one plan on several sets.",
        ),
    ],
    *,
    form: FormOption = "markdown",
    output: TableOption = None,
    force: bool = False,
) -> None:
    """Means and ranks over several data sets, named by their files."""
    check_can_write(output, force)
    names = [path.stem for path in tables]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two tables have the name {name}, but it must name the set")
    pandas = require("pandas", "A table over several sets")
    with refused(faults=(ValueError, OSError)):
        made = {path.stem: pandas.read_csv(path, comment="#") for path in tables}
        for name, each in made.items():
            if "ber" in each:
                made[name] = each.set_index("experiment")
        _write(overall_table(made), form, output)


@app.command(
    "nonconformity",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def nonconformity(context: typer.Context) -> None:
    """Selection by nonconformity beside cross-validation [H10]; --help lists its options."""
    from papers.nonconformity import main

    main(context.args)


def _write(table: pd.DataFrame, form: str, output: Path | None) -> None:
    if form == "csv":
        text = csv_text(table, index=table.index.name is not None, float_format="%.6g")
        if output is not None:
            text = f"{header_line(command_line())}\n{text}"
    else:
        text = markdown(table)
    write_or_print(output, text, "the table is")


def _table(
    plan: PlanOptions,
    experiments: list[PaperExperiment],
    runs: Runs,
    results: Nested | Results,
) -> pd.DataFrame:
    """The table of a plan; notes what is missing, and splits that raised."""
    assessments = results.outer if isinstance(results, Nested) else results
    if not assessments:
        raise InputError("the store has none of these experiments with these data and this seed")
    if len(assessments) < len(experiments):
        note(f"the store has {len(assessments)} of the {len(experiments)} experiments")
    planned = plan.held_out if plan.nested else plan.splits
    short = [len(r.splits) for r in assessments.values() if len(r.splits) < planned]
    if short:
        note(
            f"{len(short)} of {len(assessments)} experiments have fewer than {planned} splits in "
            f"the store, at least {min(short)}; python -m papers run with the same store runs the "
            "rest"
        )
    for experiment, result in assessments.items():
        if result.failures:
            index, reason = next(iter(result.failures.items()))
            note(
                f"{experiment.name}: {len(result.failures)} of {len(result.splits)} splits raised; "
                f"split {index}: {reason}"
            )
    paper_name = runs.data.paper_name
    if plan.plan == "table4":
        return factors_table(assessments, paper_name)
    if not isinstance(results, Nested):
        return experiments_table(results, paper_name)
    entries_of = {"table5": loo_entries, "table6": nested_entries, "game": game_entries}
    entries = entries_of[plan.plan](results)
    if not entries:
        raise InputError(
            "no split has results of all these experiments; run the rest, or choose by --only"
        )
    if any(isnan(entry.ber_valid) for entry in entries):
        note(
            "the store lacks the validation part of some choices; python -m papers run with the "
            "same plan and store runs it"
        )
    return entries_table(entries, paper_name)


@contextmanager
def _progress() -> Iterator[dict[str, Any]]:
    """Callbacks of a plan: a line per experiment, and splits as in `looms assess`."""
    with Meter("Splits") as meter:

        def announce(name: str, number: int, total: int) -> None:
            typer.echo(f"Experiment {number} of {total}: {name}", err=True)

        def progress(done: int, total: int, result: Any) -> None:
            if result is not None:
                few = {name: s for name, s in result.scores.items() if name in ("ber", "auc")}
                result = replace(result, scores=few)
            meter.split(done, total, result)

        yield {"announce": announce, "progress": progress}


if __name__ == "__main__":
    app(prog_name="python -m papers")
