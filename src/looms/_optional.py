"""Imports of optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def command_for(extra: str) -> str:
    """Command that installs an extra; the only place to change with the first release."""
    return f'pip install ".[{extra}]" in a clone of looms'


def require(module: str, purpose: str, extra: str = "cli") -> Any:
    """Import an optional package; ImportError names the extra that installs it.

    Parameters
    ----------
    module : str
        Name of the module to import.
    purpose : str
        Start of the message: the feature that needs the package.
    extra : str, default="cli"
        The extra of looms that installs the package.

    Returns
    -------
    module : module
        The imported module.

    Raises
    ------
    ImportError
        If the package is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise
        raise ImportError(
            f"{purpose} needs {package}, which is not installed: {command_for(extra)}",
            name=package,
        ) from None
