"""The list of pages for language models: ``llms.txt``, with the first sentence of each page."""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def write_list(app: Sphinx, exception: Exception | None) -> None:
    """Titles, first sentences and sources of all pages in the order of the site."""
    if exception or app.builder.format != "html":
        return
    env = app.env
    lines = [f"# {app.config.project}", "", f"> {first_sentence(env.get_doctree('index'))}", ""]
    for page in in_order(env.toctree_includes, "index"):
        link = app.builder.get_target_uri(page)
        if (env.srcdir / f"{page}.md").exists():
            link = f"_sources/{page}.md.txt"
        doctree = env.get_doctree(page)
        lines.append(f"- [{env.titles[page].astext()}]({link}): {first_sentence(doctree)}")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def in_order(children: dict[str, list[str]], page: str) -> list[str]:
    """Pages below a page, each before its own."""
    return [
        each for child in children.get(page, []) for each in (child, *in_order(children, child))
    ]


def first_sentence(doctree: nodes.document) -> str:
    """First sentence of the first paragraph; none on a page without one."""
    paragraph = next((text.astext() for text in doctree.findall(nodes.paragraph)), "")
    return " ".join(paragraph.split()).partition(". ")[0].rstrip(".:")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
