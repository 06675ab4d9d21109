"""The command line: fit, predict, score, assess and show models of tables."""

from __future__ import annotations

import os
import sys

from looms._optional import command_for


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
        from looms.cli._app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("looms"):
            raise
        message = f"the command line needs {error.name}, which is not installed"
        print(f"Error: {message}: {command_for('cli')}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="looms")


__all__ = []
