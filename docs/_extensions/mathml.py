"""Formulas as MathML, which browsers draw themselves: no script, no font, no address to fetch."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line of text."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own, scrolled sideways where it is wider than the page."""
    formula = tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="math notranslate nohighlight">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
