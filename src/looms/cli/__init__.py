"""The command line: fit, predict, score, assess and show models of tables."""

from __future__ import annotations

import os
import sys

# Nothing slow is imported before `main` can tell of an interruption.


def main() -> None:
    """Run the command line; the entry point of the script ``looms``.

    It always ends with `SystemExit`, as a program does.

    Examples
    --------
    >>> import sys
    >>> from unittest.mock import patch
    >>> from looms.cli import main
    >>> with patch.object(sys, "argv", ["looms", "--version"]):
    ...     main()
    Traceback (most recent call last):
    SystemExit: 0
    """
    if sys.stderr is None:  # closed by whoever started us
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        message = "standard output is closed; send it to a file or to /dev/null"
        print(f"Error: {message}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    try:
        _run()
    except KeyboardInterrupt:  # in an import; commands report theirs
        print("Interrupted.", file=sys.stderr)  # noqa: T201
        sys.exit(130)


def _run() -> None:
    try:
        from looms.cli._app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("looms"):
            raise
        from looms._optional import command_for

        message = f"the command line needs {error.name}, which is not installed"
        print(f"Error: {message}: {command_for('cli')}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    app(prog_name="looms")


__all__ = []
