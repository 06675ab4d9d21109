"""The directive ``commands``: every command of ``looms`` with its arguments and options."""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from looms.cli._app import app as looms_app


class Commands(SphinxDirective):
    """A section for each command, as its help has it."""

    def run(self) -> list[nodes.Node]:
        group = get_command(looms_app)
        text = "\n".join(sections(group, group.context_class(group, info_name="looms")))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def sections(group: Any, context: Any) -> Iterator[str]:
    """Markdown of the commands of a group."""
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        inner = type(context)(command, info_name=name, parent=context)
        yield f"## {inner.command_path}\n"
        yield f"```text\n{' '.join(command.get_usage(inner).split())}\n```\n"
        yield f"{escaped(command.help)}\n"
        for parameter in command.get_params(inner):
            names, text = parameter.get_help_record(inner)
            yield f"`{names}`\n: {escaped(text)}\n"


def escaped(text: str) -> str:
    """Text of a help as Markdown."""
    text = re.sub(r"([\\`*_\[\]<>|$])", r"\\\1", text)
    return re.sub(r"(?<![\w-])--?[a-z][a-z-]*", r"`\g<0>`", text)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
