"""Texts that look like numbers: Python's patterns against those of RE2, which readers use."""

import random

import pyarrow as pa
import pyarrow.compute as pc

from looms._number_text import like_a_number, number_like


def test_texts_by_hand():
    yes = ["12", " -1.5e3", "1,5", "1 000", "1\u202f000,5", "$ 12", "5 %", "0x1F", "inf", "\u0663"]
    no = ["", "-", "twelve", "12 kg", "1.2.3.4", "Jan-2020", "1,00,0"]
    assert number_like(yes).all()
    assert not number_like(no).any()
    assert number_like([None, float("nan"), 3, "3"]).tolist() == [False, False, False, True]


def test_python_and_re2_agree():
    rng = random.Random(0)
    signs = "0123456789\u06635,.'\u2019 _-+\u2212$\u20ac%eExXnaifINF\u00a0\u202f\t\n"
    cells = ["".join(rng.choices(signs, k=rng.randrange(8))) for _ in range(20_000)]
    expected = pc.match_substring_regex(pa.array(cells), like_a_number(r"\p{Nd}"))
    assert 500 < expected.true_count < 10_000
    assert number_like(cells).tolist() == expected.to_pylist()
