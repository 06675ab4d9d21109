"""HTML tables of numbers for notebooks, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from looms._words import clean

#: Lines in a fainter color of the text, so the same for light and dark.
_LINE = "1px solid color-mix(in srgb, currentColor 35%, transparent)"
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4em 0"
_CELL = "padding:.2em .7em;border:0;white-space:nowrap;background:none;color:inherit"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    notes: Sequence[str] = (),
) -> str:
    """Table whose first column names the rows, with a caption above and notes below.

    All arguments are plain text and are escaped.

    Parameters
    ----------
    head : names of the columns.
    rows : cells of each row.
    caption : title of the table.
    notes : paragraphs.
    """

    def row(texts: Sequence[str], style: str, scope: str) -> str:
        named = [scope == "col" or not k for k in range(len(texts))]
        tags = [f'th scope="{scope}"' if names else "td" for names in named]
        sides = ["right" if k else "left" for k in range(len(texts))]
        return "".join(
            f'<{tag} style="text-align:{side};{_CELL}{style}">{_text(text)}</{tag[:2]}>'
            for text, tag, side in zip(texts, tags, sides, strict=True)
        )

    above = f"<div>{_text(caption)}</div>" if caption else ""
    below = "".join(f'<p style="margin:.2em 0">{_text(note)}</p>' for note in notes)
    top = f"<tr>{row(head, f';border-bottom:{_LINE}', 'col')}</tr>"
    body = "".join(f"<tr>{row(cells, ';font-weight:normal', 'row')}</tr>" for cells in rows)
    return (
        f'<div style="overflow-x:auto">{above}<table style="{_TABLE}">'
        f"<thead>{top}</thead><tbody>{body}</tbody></table>{below}</div>"
    )


def _text(text: str) -> str:
    return escape(clean(text)) if text else ""
