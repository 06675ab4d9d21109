"""Docstrings as they are written: formulas in plain text, and members of looms only."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

#: Text between backquotes, or a mark that reStructuredText takes for a reference.
MARK = re.compile(r"`[^`]+`|(?<!\\)\||(?<=\w)_(?!\w)")


def keep_formulas(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Bars, and underscores at the end of a name, are parts of formulas and no references.

    The file of the sources is its page.
    """
    level = -1  # of a formula in TeX, of which the lines are further in
    example = False
    for place, line in enumerate(lines):
        text = line.lstrip()
        indent = len(line) - len(text)
        if text.startswith(".. math::"):
            level = indent
        elif text and indent <= level:
            level = -1
        example = bool(text) and (example or text.startswith(">>>"))
        if level < 0 and not example:
            line = MARK.sub(lambda m: m[0] if m[0][0] == "`" else f"\\{m[0]}", line)
            lines[place] = line.replace("docs/references.md", ":doc:`/references`")


def skip_of_others(
    app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Members that other packages define, such as scikit-learn's, are left to their documents."""
    module = getattr(getattr(member, "fget", member), "__module__", None) or "looms"
    return None if module.split(".")[0] == "looms" else True


def of_package(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, text: nodes.TextElement
) -> nodes.Element | None:
    """The page of a name that `looms` or a room has, for a docstring in one of its modules."""
    if node.get("refdomain") != "py":
        return None
    room = ".".join((node.get("py:module") or "looms").split(".")[:2])
    domain = env.domains.python_domain
    for name in (f"looms.{node['reftarget']}", f"{room}.{node['reftarget']}"):
        found = domain.resolve_any_xref(env, node["refdoc"], app.builder, name, node, text)
        if found:
            return found[0][1]
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", keep_formulas, priority=900)
    app.connect("autodoc-skip-member", skip_of_others)
    app.connect("missing-reference", of_package)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
