"""The commands put together. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from looms import __version__
from looms.cli._assess import assess
from looms.cli._challenge import challenge
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


class Command(TyperCommand):
    """A command whose help is in paragraphs, and whose flags and files have no brackets."""

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:
        paragraphs = cleandoc(help or "").split("\n\n")
        super().__init__(
            *args, help="\n\n".join(" ".join(p.split()) for p in paragraphs), **options
        )

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, the flags without a type, for they take no value."""
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Pieces of the usage line, required arguments by their names."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


for command in (fit, predict, score, assess, diagnose, show, demo):
    app.command(cls=Command)(command)
app.add_typer(challenge)
