"""All commands in one program; the module of a command is imported when the command runs."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from looms import __version__
from looms.cli._errors import reported, writable

#: Commands, and the first line of each one's help.
COMMANDS = {
    "fit": "Fit a model to a table, tuned by exact held-out predictions, and save it.",
    "predict": "Predict rows: write a CSV with predictions, decision values and probabilities.",
    "score": "Score the model on rows whose target is known.",
    "assess": "Assess the whole selection on outer splits, whose test rows it never sees.",
    "compare": "Compare candidates on the same outer splits, with their differences.",
    "check": "Check a table: duplicates, columns that give the target, rows in an order.",
    "diagnose": "Diagnose a classifier: overfitting, goodness of fit, influential rows.",
    "show": "Show the options, the candidates, what was selected, and the held-out scores.",
    "export": "Write a model as an ONNX graph, which takes prepared columns.",
    "demo": "Fit half of a real data set, and compare held-out scores with the other half.",
}
#: Modules of commands, if their names differ from the command.
_MODULES = {
    **{"compare": "assess", "demo": "fit"},
    **dict.fromkeys(("export", "score", "show"), "predict"),
}

#: Distributions that looms needs, then those of its extras.
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"),
    *("typer", "rich", "pandas", "pyarrow", "python-calamine", "skops", "matplotlib", "jinja2"),
    *("distributed", "onnx", "skl2onnx"),
)


class PlainFlags:
    """Commands whose flags are shown without a type, because they take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(PlainFlags, TyperCommand):
    """Command whose flags and files have no brackets."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Pieces of the usage line, with required arguments by name."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class LazyGroup(PlainFlags, TyperGroup):
    """Commands by name and first line of help, each imported when it runs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, summary in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Name, command and arguments; this imports the command."""
        name, _, rest = super().resolve_command(ctx, args)
        assert name is not None  # else there was a usage error
        with reported():
            function = getattr(import_module(f"looms.cli.{_MODULES.get(name, name)}"), name)
        app = typer.Typer(add_completion=False)
        app.command(name, cls=Command, epilog=function.epilog)(function)
        return name, typer.main.get_command(app), rest


app = typer.Typer(
    name="looms",
    cls=LazyGroup,
    help="Kernel models for tables, tuned by their exact leave-one-out predictions.",
    epilog="Start with: looms demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def looms(
    ctx: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit; see --verbose.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="With --version: also Python, packages and BLAS, for bug reports."
        ),
    ] = False,
) -> None:
    """Kernel models for tables, tuned by their exact leave-one-out predictions."""
    if verbose and not show_version:
        raise typer.BadParameter("it goes with --version", param_hint="--verbose")
    if show_version:
        with reported():
            text = versions() if verbose else f"looms {__version__}"
            typer.echo(writable(text, sys.stdout))
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        ctx.fail("Missing command.")


def versions() -> str:
    """Versions of looms, Python, the packages that it can use, and BLAS, one per line."""
    import scipy.linalg  # noqa: F401 (its BLAS, beside that of NumPy)
    import threadpoolctl

    from looms._words import count

    rows = [
        ("looms", __version__),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("platform", f"{platform.platform()}, {count(os.cpu_count() or 1, 'core')}"),
    ]
    for name in PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            rows.append((name, "–"))
    for pool in threadpoolctl.threadpool_info():
        place = Path(pool["filepath"])
        release = f" {pool['version']}" if pool["version"] else ""
        threads = count(pool["num_threads"], "thread")
        rows.append((pool["user_api"], f"{pool['internal_api']}{release}, {threads}"))
        rows.append(("", f"{place.parent.name}/{place.name}"))
    return "\n".join(f"{name:<16}{value}".rstrip() for name, value in rows)
