"""The built site is whole: links lead somewhere, and no page fetches from another address."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

#: Attributes by which a page fetches something, by tag.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Page(HTMLParser):
    """Names of places in a page, addresses it links to, and those it fetches."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if values.get("rel") == "canonical":
            return  # the address of the page itself
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif FETCHED.get(tag) in values:
            self.fetched.append(values[FETCHED[tag]])


def check(app: Sphinx, exception: Exception | None) -> None:
    """SphinxError with all links that lead nowhere, and all that is fetched from elsewhere."""
    if exception or app.builder.format != "html":
        return
    root = Path(app.outdir).resolve()
    names = (app.builder.get_target_uri(name) for name in app.env.found_docs)
    pages = {path: Page(path) for path in map(root.joinpath, names)}
    faults = []
    for path, page in pages.items():
        name = path.relative_to(root)
        faults += [f"{name} fetches {url}" for url in page.fetched if urlsplit(url).netloc]
        for url in (*page.links, *page.fetched):
            if urlsplit(url).scheme or urlsplit(url).netloc:
                continue
            address, place = urldefrag(url)
            target = (path.parent / unquote(address.partition("?")[0])).resolve()
            target = path if not address else target
            if not target.is_file():
                faults.append(f"{name} links to {url}, and there is no such file")
            elif place and target in pages and unquote(place) not in pages[target].places:
                faults.append(f"{name} links to {url}, and there is no such place")
    if faults:
        raise SphinxError("\n".join(sorted(set(faults))))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
