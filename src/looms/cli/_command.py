"""How the help of a command is laid out."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand


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
