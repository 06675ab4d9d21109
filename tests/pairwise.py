"""Few cases in place of the full product of several lists of values."""

from itertools import combinations, cycle, product


def pairwise(*axes):
    """Cases of one value an axis in which every two values of two axes meet at least once.

    Greedy: of all cases the one that adds most new pairs is taken, until none is missing.

    Examples
    --------
    >>> len(pairwise("abc", "xyz", [0, 1], [0, 1]))
    9
    """
    places = [range(len(axis)) for axis in axes]
    bits: dict[tuple[int, ...], int] = {}  # a set of pairs is a number with a bit for each

    def pairs(case):
        met = ((i, j, case[i], case[j]) for i, j in combinations(range(len(axes)), 2))
        return sum(1 << bits.setdefault(pair, len(bits)) for pair in met)

    candidates = {case: pairs(case) for case in product(*places)}
    missing = (1 << len(bits)) - 1
    cases = []
    while missing:
        best = max(candidates, key=lambda case: (missing & candidates[case]).bit_count())
        missing &= ~candidates[best]
        cases.append(tuple(axis[place] for axis, place in zip(map(list, axes), best, strict=True)))
    return cases


def in_turn(one, other, each=1):
    """Pairs in which every value of one axis meets a few of the other, whose values take turns.

    Where two axes have little to do with each other: each value of either is met.

    Examples
    --------
    >>> in_turn("abc", [1, 2, 3], each=2)
    [('a', 1), ('a', 2), ('b', 3), ('b', 1), ('c', 2), ('c', 3)]
    """
    others = cycle(other)
    return [(value, next(others)) for value in one for _ in range(each)]
