"""looms challenge: the papers' experiments, run here, beside what the papers print."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from looms.cli._command import Command
from looms.cli._errors import InputError, reported
from looms.cli._options import ForceOption

if TYPE_CHECKING:
    import pandas as pd

    from looms.assessment._result import Assessment
    from looms.challenge import Runs
    from looms.challenge._data import ChallengeData
    from looms.challenge._plans import Experiment

challenge = typer.Typer(
    name="challenge",
    help="The papers' experiments, run here, beside what the papers print.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


class Plan(StrEnum):
    """Plans of experiments."""

    TABLE3 = "table3"
    TABLE4 = "table4"
    TABLE5 = "table5"
    TABLE6 = "table6"
    GAME = "game"


class Preparation(StrEnum):
    """Preprocessing of columns."""

    ADA = "ada"
    GINA = "gina"
    HIVA = "hiva"
    NOVA = "nova"
    SYLVA = "sylva"
    STANDARDISE = "standardise"
    TABLE = "table"


class Form(StrEnum):
    """Forms of a table as text."""

    MARKDOWN = "markdown"
    CSV = "csv"


DataOption = Annotated[
    str,
    typer.Option(
        "--data",
        "-d",
        help="ada, gina, hiva, nova or sylva, from --folder or else OpenML; or a file.",
    ),
]
PlanOption = Annotated[
    Plan,
    typer.Option(
        "--plan",
        "-p",
        help=(
            "table3: every experiment; table4: their factors; table5: choice and guess by "
            "leave-one-out; table6: guess by splits too; game: three ways to choose."
        ),
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help=(
            "A part of the plan: criterion=press,wmw or weighting=none,training,both or "
            "kernel=linear,rbf or names or numbers; given again, all must hold."
        ),
    ),
]
SplitsOption = Annotated[
    int, typer.Option("--splits", "-n", min=2, help="Random 90/10 splits; table6, game: inner.")
]
HeldOutOption = Annotated[
    int, typer.Option("--held-out", min=2, help="For table6 and game: tenths to test guesses on.")
]
FolderOption = Annotated[
    Path | None,
    typer.Option("--folder", help="Folder of the sets; by default LOOMS_DATA, where it is set."),
]
TargetOption = Annotated[
    str | None, typer.Option("--target", "-t", help="Of a file: the column to predict.")
]
PositiveOption = Annotated[
    str | None,
    typer.Option("--positive", help="Of a file: the classes that are positive, between commas."),
]
PreparationOption = Annotated[
    Preparation | None,
    typer.Option("--preparation", help="Preprocessing; by default the set's, of files table."),
]
SeedOption = Annotated[int, typer.Option("--random-state", min=0, help="Seed of the splits.")]


@challenge.command("run", cls=Command)
def run(
    data: DataOption,
    plan: PlanOption = Plan.TABLE3,
    only: OnlyOption = None,
    splits: SplitsOption = 100,
    held_out: HeldOutOption = 10,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", help="Folder that keeps finished splits; the same again runs the rest."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Splits at once; -1 for one a core.")
    ] = 1,
    folder: FolderOption = None,
    target: TargetOption = None,
    positive: PositiveOption = None,
    preparation: PreparationOption = None,
    random_state: SeedOption = 0,
) -> None:
    """Run a plan or a part of it; with a store any part alone, and again for the rest."""
    with _refused():
        if jobs == 0:
            raise InputError("--jobs 0 would run nothing; use 1, or -1 for one a core")
        from looms.challenge import Runs
        from looms.challenge._tables import markdown
        from looms.cli._say import to_stdout

        asked = _Asked(plan, _experiments(plan, only), splits, held_out)
        loaded = _loaded(data, folder, target, positive, preparation)
        runs = Runs(loaded, store, jobs, random_state)
        _describe(loaded, asked)
        to_stdout(markdown(_table(asked, runs, run=True)))


@challenge.command("table", cls=Command)
def table(
    data: DataOption,
    store: Annotated[Path, typer.Option("--store", help="Folder of finished splits.")],
    plan: PlanOption = Plan.TABLE3,
    only: OnlyOption = None,
    splits: SplitsOption = 100,
    held_out: HeldOutOption = 10,
    form: Annotated[Form, typer.Option("--form", help="Form of the table.")] = Form.MARKDOWN,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the table.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="File for a plot: .png, .svg or .pdf.")
    ] = None,
    folder: FolderOption = None,
    target: TargetOption = None,
    positive: PositiveOption = None,
    preparation: PreparationOption = None,
    random_state: SeedOption = 0,
    force: ForceOption = False,
) -> None:
    """Set what a store has beside the papers' results; nothing is run."""
    with _refused():
        from looms.challenge import Runs
        from looms.challenge._tables import markdown
        from looms.cli._apply import check_can_write
        from looms.cli._say import csv_text, note, to_stdout, write_output

        for path in (output, plot):
            if path is not None:
                check_can_write(path, force)
        if not store.is_dir():
            raise InputError(f"there is no store {store}; looms challenge run makes one")
        asked = _Asked(plan, _experiments(plan, only), splits, held_out)
        loaded = _loaded(data, folder, target, positive, preparation)
        made = _table(asked, Runs(loaded, store, random_state=random_state), run=False)
        named = made.index.name is not None
        as_csv = form is Form.CSV
        text = csv_text(made, index=named, float_format="%.6g") if as_csv else markdown(made)
        if plot is not None:
            write_output(plot, _drawn(made, f"{loaded.name}, {plan}", plot))
            note(f"the plot is {plot}")
        if output is None:
            to_stdout(text)
        else:
            write_output(output, text.encode())
            note(f"the table is {output}")


@dataclass(frozen=True)
class _Asked:
    """What the user asked for."""

    plan: Plan
    experiments: list[Experiment]
    splits: int
    held_out: int

    @property
    def nested(self) -> bool:
        return self.plan in (Plan.TABLE6, Plan.GAME)


def _experiments(plan: Plan, conditions: list[str] | None) -> list[Experiment]:
    from looms.challenge import experiments_of
    from looms.challenge._plans import only

    return only(experiments_of(plan.value), conditions or [])


def _loaded(
    data: str,
    folder: Path | None,
    target: str | None,
    positive: str | None,
    preparation: Preparation | None,
) -> ChallengeData:
    from looms.challenge import fetch, load_file

    if Path(data).suffix == "":
        for name, value in (("--target", target), ("--positive", positive)):
            if value is not None:
                raise InputError(f"{name} is for a file, and --data {data} is a set by name")
        return fetch(data, folder, preparation=None if preparation is None else preparation.value)
    if folder is not None:
        raise InputError(f"--folder is for a set by name, and --data {data} is a file")
    words = tuple(word.strip() for word in positive.split(",")) if positive else ()
    kind = Preparation.TABLE if preparation is None else preparation
    return load_file(data, target, positive=words, preparation=kind.value)


def _describe(data: ChallengeData, asked: _Asked) -> None:
    from looms.cli._say import note

    n_positive = int((data.y > 0).sum())
    which = f" ({', '.join(data.positive)})" if data.positive else ""
    note(
        f"{data.name}: {data.X.shape[0]} rows, {n_positive} of them positive{which}, "
        f"{data.X.shape[1]} columns, prepared as {data.preparation}; "
        f"{len(asked.experiments)} experiments"
    )


def _table(asked: _Asked, runs: Runs, *, run: bool) -> pd.DataFrame:
    if asked.nested:
        return _nested_table(asked, runs, run=run)
    from looms.challenge._choices import loo_entries
    from looms.challenge._run import run_plan, stored_plan
    from looms.challenge._tables import experiments_table, factors_table

    if run:
        with _progress() as (announce, progress):
            results = run_plan(
                runs, asked.experiments, asked.splits, announce=announce, progress=progress
            )
    else:
        results = stored_plan(runs, asked.experiments, asked.splits)
    _remark(asked, results)
    paper_name = runs.data.paper_name
    if asked.plan is Plan.TABLE3:
        return experiments_table(results, paper_name)
    if asked.plan is Plan.TABLE4:
        return factors_table(results, paper_name)
    entries = loo_entries(results, runs.data.y, runs.parts(asked.splits))
    return _entries_table(entries, paper_name)


def _nested_table(asked: _Asked, runs: Runs, *, run: bool) -> pd.DataFrame:
    from looms.challenge._choices import game_entries, nested_entries
    from looms.challenge._run import run_nested, stored_nested

    if run:
        with _progress() as (announce, progress):
            nested = run_nested(
                runs,
                asked.experiments,
                asked.splits,
                asked.held_out,
                announce=announce,
                progress=progress,
            )
    else:
        nested = stored_nested(runs, asked.experiments, asked.splits, asked.held_out)
    _remark(asked, nested.outer)
    entries_of = game_entries if asked.plan is Plan.GAME else nested_entries
    return _entries_table(entries_of(nested), runs.data.paper_name)


def _remark(asked: _Asked, results: dict[Experiment, Assessment]) -> None:
    """Say what is missing: experiments that and splits that are not there, splits that raised."""
    from looms.cli._say import note

    if not results:
        raise InputError("the store has none of these experiments on these data and this seed")
    if len(results) < len(asked.experiments):
        note(f"the store has {len(results)} of the {len(asked.experiments)} experiments")
    planned = asked.held_out if asked.nested else asked.splits
    short = [len(r.splits) for r in results.values() if len(r.splits) < planned]
    if short:
        note(
            f"{len(short)} of {len(results)} experiments have fewer than {planned} splits in the "
            f"store, {min(short)} at least; looms challenge run with the same store runs the rest"
        )
    for experiment, result in results.items():
        if result.failures:
            index, reason = next(iter(result.failures.items()))
            note(
                f"{experiment.name}: {len(result.failures)} of {len(result.splits)} splits raised; "
                f"split {index}: {reason}"
            )


def _entries_table(entries: Any, paper_name: str | None) -> pd.DataFrame:
    from looms.challenge._tables import entries_table

    if not entries:
        raise InputError(
            "no split has results of all these experiments; run the rest, or choose by --only"
        )
    return entries_table(entries, paper_name)


def _drawn(made: pd.DataFrame, title: str, path: Path) -> bytes:
    from io import BytesIO

    from looms.challenge._plot import plot_table

    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"--plot {path}: the plot can be .png, .svg or .pdf")
    buffer = BytesIO()
    plot_table(made, title).savefig(buffer, format=kind, dpi=150)
    return buffer.getvalue()


@contextmanager
def _progress() -> Iterator[Any]:
    """What to tell of experiments and of splits; a line an experiment, and as `looms assess`."""
    from looms.cli._progress import split_progress

    with split_progress() as shown:

        def announce(name: str, number: int, total: int) -> None:
            typer.echo(f"Experiment {number} of {total}: {name}", err=True)

        def progress(done: int, total: int, result: Any) -> None:
            if result is not None:
                few = {name: s for name, s in result.scores.items() if name in ("ber", "auc")}
                result = replace(result, scores=few)
            shown(done, total, result)

        yield announce, progress


@contextmanager
def _refused() -> Iterator[None]:
    """Errors of the data and of the plan are errors of input."""
    from looms.assessment import StoreError
    from looms.datasets import TableError

    with reported():
        try:
            yield
        except (InputError, StoreError, TableError):
            raise
        except ValueError as error:
            raise InputError(str(error)) from error
