"""The chart of docs/start/choosing.md, from a table to a call.

    python docs/_figures/choosing.py

The page holds the SVG itself, so that its text can be selected and its colors are those of the
page, light or dark. It is 360 wide, as a phone is.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path

API = "../reference/api/looms."
WIDTH, BOX, NARROW, LINE, CORNER = 360, 170, 154, 17, 6
STEM, LEAP = 12, 16  # of the lines above and below the boxes
MIDDLE = WIDTH / 2
ALT = (
    "From a table to a call: check the table; hold out patients or windows of time together; "
    "TabularClassifier or TabularRegressor for text and gaps, KernelClassifier or KernelRegressor "
    "for numbers of one scale; evaluate or assess; then probabilities, sets or intervals."
)
#: Questions; and for each of the boxes below it when it is taken, its calls, and their page. A
#: question may be passed by between the boxes, if the answer is no.
STEPS = (
    (
        "Are there faults in the table?",
        (("any table", ('looms.check(table, "target")',), f"{API}check.html"),),
    ),
    (
        "Do rows belong together?",
        (
            ("patients, plates, sites", ("groups=patient",), "../guide/groups_and_time.html"),
            ("no", (), ""),
            ("an order in time", ("cv=ForwardSplit(5)",), f"{API}folds.ForwardSplit.html"),
        ),
    ),
    (
        "What is in the columns?",
        (
            ("text, dates, gaps", ("Tabular…",), f"{API}TabularClassifier.html"),
            ("numbers of one scale", ("Kernel…",), f"{API}KernelClassifier.html"),
        ),
    ),
    (
        "What is the target?",
        (
            ("classes", ("…Classifier",), f"{API}TabularClassifier.html"),
            ("numbers", ("…Regressor",), f"{API}TabularRegressor.html"),
        ),
    ),
    (
        "How good is the model?",
        (
            ("the model itself", ("evaluate()",), "which_score.html"),
            ("with steps of yours", ("looms.assess(…)",), f"{API}assess.html"),
        ),
    ),
    (
        "And a new row?",
        (
            ("classes", ("predict_proba", "predict_set"), "../guide/intervals.html"),
            ("numbers", ("predict", "predict_interval"), "../guide/intervals.html"),
        ),
    ),
)
STYLE = """
.chart { display: block; width: 100%; max-width: 430px; margin: 0 auto 1.5rem; }
.chart text { font: 13.5px sans-serif; text-anchor: middle; fill: #222832; }
.chart text { fill: var(--pst-color-text-base, #222832); }
.chart .question { font-weight: 600; }
.chart a text { font-family: monospace; fill: var(--pst-color-link, #0a7d91); }
.chart .if { fill: var(--pst-color-text-muted, #48566b); }
.chart rect { fill: var(--pst-color-surface, #f3f4f5); stroke: var(--pst-color-border, #d1d5da); }
.chart .asked { fill: none; stroke: #0e8a94; stroke-width: 1.5; }
.chart path { fill: none; stroke: var(--pst-color-text-muted, #48566b); }
"""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{kind and f" class={kind!r}"}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str = "") -> str:
    size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{CORNER}"'
    return f"<rect {size}{kind and f' class={kind!r}'}/>"


def arrow(x: float, y: float) -> str:
    """The head of an arrow that ends at a place from above."""
    return f'<path d="M{x - 4:g} {y - 6:g} L{x:g} {y:g} L{x + 4:g} {y - 6:g}"/>'


def chart() -> Iterator[str]:
    """Parts of the drawing, from top to bottom; the last says how high it is."""
    y = 1.0
    for number, (question, ways) in enumerate(STEPS):
        if number:
            yield arrow(MIDDLE, y)
        yield box(40, y, WIDTH - 80, 28, "asked")
        yield text(MIDDLE, y + 19, question, "question")
        y += 28
        width = {1: WIDTH - 80, 2: BOX, 3: NARROW}[len(ways)]
        places = [MIDDLE, width / 2 + 1, WIDTH - width / 2 - 1]
        places = {1: places[:1], 2: places[1:], 3: [places[1], MIDDLE, places[2]]}[len(ways)]
        split, top = y + STEM * (len(ways) > 1), y + STEM + 34
        height = 13 + LINE * max(len(calls) for _, calls, _ in ways)
        yield f'<path d="M{MIDDLE:g} {y:g} V{split:g} M{places[0]:g} {split:g} H{places[-1]:g}"/>'
        y = top + height
        for x, (case, calls, page) in zip(places, ways, strict=True):
            end = top if calls else y + STEM
            yield f'<path d="M{x:g} {split:g} V{top - 26:g} M{x:g} {top - 8:g} V{end:g}"/>'
            yield text(x, top - 12, case, "if")
            if calls:
                yield arrow(x, top)
                yield box(x - width / 2, top, width, height)
            for k, call in enumerate(calls):
                line = text(x, top + 19 + LINE * k, call)
                yield f'<a href="{page}">{line}</a>'
        if number < len(STEPS) - 1:
            ends, join = f"M{places[0]:g} {y:g} v{STEM} H{places[-1]:g} v{-STEM}", y + STEM
            y = join + LEAP
            yield f'<path d="{ends} M{MIDDLE:g} {join:g} V{y:g}"/>'
    yield f"{y + 1:g}"


def main() -> None:
    *parts, height = chart()
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="group" aria-label="{ALT}"'
    lines = [f'{head} xmlns="http://www.w3.org/2000/svg">', f"<style>{STYLE}</style>", *parts]
    Path(__file__).with_suffix(".svg").write_text("\n".join([*lines, "</svg>", ""]))


if __name__ == "__main__":
    main()
