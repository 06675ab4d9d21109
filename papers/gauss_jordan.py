"""What caching the partial states of an elimination saves in leave-one-out.

Reproduces Figure 1 of Saadi, Cawley & Talbot: operations of plain and cached
leave-one-out for 20 to 400 samples, where the paper reports 2.28 to 5.83 times fewer, and the
time of both beside the closed form, which needs no elimination per sample. Seconds are on one
thread, the best of three runs, for up to 200 samples.

The paper does not say what it counts. Its 5.83 at 400 samples is, to within the choice of details,
what plain elimination above and below each pivot takes over cached elimination below: 5.82 as
counted here, 5.83 with the pivot row scaled first and no border. (Plain elimination below that
sweeps whole rows, zeros included, gives 5.83 too.) Plain elimination below that skips the zeros, as
the cached one does, would give 3.90. None explains 2.28 at 20 samples: 3.68 here, 3.60 to 3.84 in
the variants. Some 50 000 further operations, the same in both methods, would; at 400 samples they
would not show, unless they grew with the samples: 5.80 if as their square.

    python -m papers.gauss_jordan [--no-clock]

The table is written to ``benchmarks/results/gauss_jordan.csv``, the plot beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks._report import RESULTS, seconds, write_table
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from looms._typing import Array
from papers.elimination import gauss_jordan_loo, triangular_form
from papers.flops import cached_flops, plain_flops

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = (20, 40, 60, 100, 200, 300, 400)
LARGEST_CLOCKED = 200
PAPER_RATIO = {20: 2.28, 400: 5.83}
MU = 1e-3
N_INPUTS = 10
Row = dict[str, Any]


def linear_problem(n: int) -> tuple[Array, Array]:
    """A linear kernel on random inputs, as in the paper, which does not regularize at all."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, N_INPUTS))
    return X @ X.T, X[:, 0] + 0.5 * rng.standard_normal(n)


def bordered(K: Array, y: Array, mu: float) -> Array:
    """The system [[K + n mu I, 1], [1', 0]] beside [y; 0]."""
    n = len(y)
    A = np.ones((n + 1, n + 2))
    A[:n, :n] = K + n * mu * np.eye(n)
    A[:n, -1] = y
    A[-1, n:] = 0
    return A


def solve_above_and_below(A: Array) -> Array:
    """Plain Gauss–Jordan elimination: each pivot clears its whole column."""
    A = A.copy()
    for k in range(len(A)):
        factors = A[:, k] / A[k, k]
        factors[k] = 0
        A[:, k + 1 :] -= np.outer(factors, A[k, k + 1 :])
    return A[:, -1] / np.diag(A)


def solve_below(A: Array) -> Array:
    """The elimination of the cached method, started from A^0."""
    U = triangular_form(A)
    return np.asarray(solve_triangular(U[:, :-1], U[:, -1]))


def plain_loo(K: Array, y: Array, mu: float, solve: Callable[[Array], Array]) -> Array:
    """Leave-one-out outputs by one complete solution per sample."""
    A, K1 = bordered(K, y, mu), np.hstack([K, np.ones((len(K), 1))])
    outputs = np.empty(len(y))
    for i in range(len(y)):
        beta = solve(np.delete(np.delete(A, i, axis=0), i, axis=1))
        outputs[i] = np.delete(K1[i], i) @ beta
    return outputs


def closed_form_loo(K: Array, y: Array, mu: float) -> Array:
    """Outputs y_i - alpha_i / [C^-1]_ii of the bordered matrix C."""
    A, n = bordered(K, y, mu), len(y)
    C_inverse = np.linalg.inv(A[:, :-1])
    return y - (C_inverse @ A[:, -1])[:n] / np.diag(C_inverse)[:n]


METHODS: dict[str, Callable[[Array, Array], Array]] = {
    "plain": lambda K, y: plain_loo(K, y, MU, solve_above_and_below),
    "plain_below": lambda K, y: plain_loo(K, y, MU, solve_below),
    "cached": lambda K, y: gauss_jordan_loo(K, y, MU).outputs,
    "closed_form": lambda K, y: closed_form_loo(K, y, MU),
}


def count_operations(n: int) -> Row:
    """Operations and their ratios: plain above and below, plain below, cached."""
    plain, below, cached = plain_flops(n), plain_flops(n, eliminate_above=False), cached_flops(n)
    return {
        "n": n,
        "flops_plain": plain,
        "flops_plain_below": below,
        "flops_cached": cached,
        "ratio": round(plain / cached, 3),
        "ratio_below": round(below / cached, 3),
        "ratio_paper": PAPER_RATIO.get(n, ""),
    }


def clock(n: int) -> Row:
    """Seconds of every method, the best of three, after checking that all agree."""
    K, y = linear_problem(n)
    expected = METHODS["plain"](K, y)
    times = {}
    for name, method in METHODS.items():
        np.testing.assert_allclose(method(K, y), expected, rtol=1e-6, atol=1e-9)
        times[f"seconds_{name}"] = float(f"{seconds(partial(method, K, y)):.3g}")
    ratio = times["seconds_plain"] / times["seconds_cached"]
    return times | {"seconds_ratio": round(ratio, 2)}


def measure(with_clock: bool) -> list[Row]:
    """One row per number of samples."""
    rows = []
    for n in SIZES:
        row = count_operations(n)
        if with_clock and n <= LARGEST_CLOCKED:
            with threadpool_limits(1):
                row |= clock(n)
        rows.append(row)
    return rows


LABELS = {
    "plain": ("plain, above and below", "C0"),
    "plain_below": ("plain, below", "C1"),
    "cached": ("cached", "C2"),
    "closed_form": ("closed form", "C3"),
}


def draw_lines(
    axis: Axes, n: Sequence[int], values: Mapping[str, list[Any]], ticks: Sequence[int], title: str
) -> None:
    """One logarithmic line per method."""
    for name, series in values.items():
        label, color = LABELS[name]
        axis.loglog(n, series, "o-", markersize=4, color=color, label=label)
    axis.set(xlabel="samples", title=title)
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.legend(frameon=False)


def draw_saving(axis: Axes) -> None:
    """Ratios of the counts beside those of the paper."""
    n = range(SIZES[0], SIZES[-1] + 1)
    counts = [count_operations(m) for m in n]
    for name, method in (("ratio", "plain"), ("ratio_below", "plain_below")):
        label, color = LABELS[method]
        axis.plot(n, [count[name] for count in counts], color=color, label=label)
    axis.axhline(6, color="0.7", linewidth=0.8, linestyle=":")
    axis.plot(*zip(*PAPER_RATIO.items(), strict=True), "k*", markersize=9, label="paper")
    axis.set(xlabel="samples", ylabel="plain / cached", title="Saving", ylim=(0, 6.5))
    axis.legend(frameon=False, loc="lower right")


def plot(rows: list[Row]) -> None:
    import matplotlib.pyplot as plt

    clocked = [row for row in rows if "seconds_ratio" in row]
    n_axes = 3 if clocked else 2
    figure, axes = plt.subplots(1, n_axes, figsize=(4.2 * n_axes, 3.8), layout="constrained")
    counts = {name: [row[f"flops_{name}"] for row in rows] for name in list(METHODS)[:3]}
    draw_lines(axes[0], SIZES, counts, (20, 40, 100, 200, 400), title="Operations")
    draw_saving(axes[1])
    if clocked:
        n = [row["n"] for row in clocked]
        times = {name: [row[f"seconds_{name}"] for row in clocked] for name in METHODS}
        draw_lines(axes[2], n, times, n, title="Seconds, one thread")
    figure.savefig(RESULTS / "gauss_jordan.png", dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-clock", action="store_true", help="count operations only")
    arguments = parser.parse_args()
    rows = measure(with_clock=not arguments.no_clock)
    names = list(rows[0])
    write_table("gauss_jordan", names, [[row.get(name, "") for name in names] for row in rows])
    plot(rows)


if __name__ == "__main__":
    main()
