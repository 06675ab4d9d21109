"""Texts that look like numbers: Python's patterns against those of RE2, which readers use."""

import random
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from looms._number_text import NUMBER, number_like


def test_texts_by_hand():
    yes = ["12", " -1.5e3", "1,5", "1 000", "1\u202f000,5", "$ 12", "5 %", "0x1F", "inf", "\u0663"]
    no = ["", "-", "twelve", "12 kg", "1.2.3.4", "Jan-2020", "1,00,0"]
    assert number_like(yes).all()
    assert not number_like(no).any()
    assert number_like([None, float("nan"), 3, "3"]).tolist() == [False, False, False, True]


@pytest.mark.parametrize("mark", NUMBER)
def test_python_and_re2_agree(mark):
    rng = random.Random(0)
    cells = ["".join(rng.choices("01234.,+-eE \t", k=rng.randrange(8))) for _ in range(20_000)]
    expected = pc.match_substring_regex(pa.array(cells), NUMBER[mark])
    assert 500 < expected.true_count < 10_000
    assert [re.search(NUMBER[mark], cell) is not None for cell in cells] == expected.to_pylist()
