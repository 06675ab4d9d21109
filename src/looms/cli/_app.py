"""The commands put together. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from looms import __version__
from looms.cli._assess import assess
from looms.cli._challenge import challenge
from looms.cli._command import Command
from looms.cli._demo import demo
from looms.cli._diagnose import diagnose
from looms.cli._errors import reported
from looms.cli._fit import fit
from looms.cli._predict import predict
from looms.cli._score import score
from looms.cli._show import show

app = typer.Typer(
    name="looms",
    help="Kernel machines for tables, tuned by their exact leave-one-out predictions.",
    epilog="Start with: looms demo",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        with reported():
            typer.echo(f"looms {__version__}")
        raise typer.Exit


@app.callback()
def looms(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Kernel machines for tables, tuned by their exact leave-one-out predictions."""


for command in (fit, predict, score, assess, diagnose, show, demo):
    app.command(cls=Command)(command)
app.add_typer(challenge)
