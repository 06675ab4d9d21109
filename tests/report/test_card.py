"""The model card has the scores of the machine, in Markdown that no name breaks."""

import pandas as pd
import pytest
from sklearn.datasets import load_iris

import looms
from looms import KernelClassifier
from looms.report import card

pytestmark = pytest.mark.slow

X, Y = load_iris(return_X_y=True)
HARMFUL = "a|b <script>x</script> [c](javascript:1)\n\n# d\r\n| e"


def test_scores_with_errors_and_what_is_left_to_be_written():
    machine = KernelClassifier(mu=1e-3).fit(X, Y)
    text = card(machine).render()
    value, spread = machine.evaluate().with_errors["accuracy"]
    assert f"| Accuracy | {100 * value:.1f} % | ± {100 * spread:.1f} % |" in text
    assert "## Intended uses & limitations\n\n[More Information Needed]" in text
    assert "Model Plot" not in text


def test_outer_splits_come_first():
    machine = KernelClassifier(mu=1e-3).fit(X, Y)
    assessment = looms.assess(machine, X, Y, n_splits=3, random_state=0)
    results = card(machine, assessment=assessment)
    text = results.select("Model description/Evaluation Results").content
    assert text.startswith("By 3 outer splits (shuffle)")
    assert text.index("outer splits") < text.index("By leave-one-out")


def test_names_are_no_markup():
    y = pd.Series(Y, name=HARMFUL).map({0: HARMFUL, 1: "b", 2: "c"})
    description = card(KernelClassifier(mu=1e-3).fit(X, y), y=y).select("Model description").content
    escaped = r"a\|b \<script\>x\</script\> \[c\](javascript:1) \# d \| e"
    assert description.startswith(f"Classification of {escaped}, by")
    assert f"\n| {escaped} | 50 |" in description
    assert "<script" not in description.replace(r"\<script", "")
