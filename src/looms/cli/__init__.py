"""The command line: fit, predict, score, assess and show models of tables."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the entry point of the script ``looms``."""
    try:
        from looms.cli._app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("looms"):
            raise
        message = f"the command line needs {error.name}, which is not installed"
        print(f'Error: {message}: pip install "looms[cli]"', file=sys.stderr)  # noqa: T201
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="looms")


__all__ = ["main"]
