"""Words that pages, docstrings and messages do not use, with others in their place."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = (
    "*.md",
    "docs/**/*.md",
    "papers/*.md",
    "examples/**/*",
    "src/looms/**/*.html",
    "src/looms/**/*.json",
    "src/looms/**/*.py",
)

#: What looms once said, and what it says, as scikit-learn does.
PLAIN = {
    r"machines?": "model, estimator; computer",
    r"flatter(?:s|ed|ing)?": "is optimistic",
    r"honest(?:ly|y)?": "unbiased, nested",
    r"leave-one-out lies": "misleads",
    r"(?:a|the|no|own) guess|guessed (?:error|rate)": "baseline; estimate",
    r"the choice": "the selection, tuning",
    r"figures? (?:to quote|that)|quote (?:the|its|this) figures?": "score",
    r"put aside|driv(?:e|es|en|ing) out|drove out": "hold out",
    r"copies (?:apart|together)": "duplicates",
    r"riddles?": "question",
}
#: Where these words are what everybody says.
ADMITTED = (
    r"(?:support(?: |-)vector|kernel|feature|virtual|boosting) machines?",
    r"machine(?: |-)(?:learning|precision)",
    r"machines : ",  # a name in the code
    r"The choice is not settled",  # a caution, by its title
)
STEMS = (
    "author categor central character custom discret emphas equal factor final formal general "
    "ideal initial linear local maxim memor minim modern neutral normal optim organ orthogonal "
    "parametr penal prior random real recogn regular serial special stabil standard summar "
    "symmetr synchron token util vector visual"
)
BRITISH = (
    rf"\w*(?:{'|'.join(STEMS.split())})is(?:e|es|ed|er|ers|ing|ation|ations)",
    r"(?:behavi|col|fav|flav|hon|lab|neighb|rum)our\w*",
    r"(?:cent|fib|lit|met)re[sd]?",
    r"\w*(?:cancell|labell|levell|modell|signall|totall|travell)(?:ed|ing|er|ers)",
    r"analys(?:e|ed|es|ing)|artefacts?|catalogues?|fulfil|grey|judgements?|learnt|licences?",
    r"(?:de|of)fences?|programmes?|whilst|amongst|sceptic\w*",
)
CODE = re.compile(r"^( *)(```+)(.*?)\n(.*?)^\1\2 *$", re.DOTALL | re.MULTILINE)
PROSE = ("{figure}", "{warning}", "{tip}", "{note}", "{glossary}")
NAMES = re.compile(r"(`+)[^`]+\1|\]\([^)]*\)|<[^<>]*>|\{[%{].*?[%}]\}")


def prose(text: str) -> str:
    """A text without code, names, addresses and tags; its lines stay."""
    text = CODE.sub(lambda m: m[4] if m[3].startswith(PROSE) else "\n" * m[4].count("\n"), text)
    return NAMES.sub(lambda m: "\n" * m[0].count("\n") or "_", text)


def said() -> Iterator[tuple[str, int, str]]:
    """Files, and what is said in them from a line on: of the package, strings with spaces."""
    for path in (path for pattern in FILES for path in sorted(ROOT.glob(pattern))):
        name = path.relative_to(ROOT).as_posix()
        if not path.is_file() or name.startswith(("docs/gallery/", "docs/reference/api/looms.")):
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".py" or name.startswith("examples/"):
            yield name, 1, prose(text)
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield name, node.lineno, prose(node.value)


@cache
def texts() -> list[tuple[str, int, str]]:
    return list(said())


def found(words: tuple[str, ...]) -> list[str]:
    """Places with one of the words."""
    admitted, wanted = ("|".join(each).replace(" ", r"\s+") for each in (ADMITTED, words))
    pattern = re.compile(rf"\b(?:(?P<admitted>{admitted})|(?:{wanted})\b)", re.IGNORECASE)
    return [
        f"{name}:{line + text.count(chr(10), 0, match.start())}: {' '.join(match[0].split())}"
        for name, line, text in texts()
        for match in pattern.finditer(text)
        if not match["admitted"]
    ]


def test_words_are_plain():
    assert found(tuple(PLAIN)) == [], PLAIN


def test_spelling_is_american():
    assert found(BRITISH) == []
