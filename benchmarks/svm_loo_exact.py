"""Exact leave-one-out of support vector machines against refitting, on random problems.

Every sample of every problem is left out once more the slow way: LIBSVM is fitted to the others
and its solution polished; that machine counts as the truth if the residual of its KKT conditions,
computed here from their definition, is at most 1e-9 (or 1e-15 Σα, what double precision resolves,
where that is more, up to 1e-5).

    python benchmarks/svm_loo_exact.py [--problems 200] [--largest 400]

The table is written to ``benchmarks/results/svm_loo_exact.csv``.
"""

import argparse
import warnings

import numpy as np
from _report import write_table
from _svm_problems import random_problem
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from looms.svm.dual import solve


def kkt_residual(K, y, C, alpha, outputs):
    """Largest violation of a KKT condition, from its definition."""
    negligible = 1e-12 * C.max()
    margin = y * outputs - 1
    short = np.where(alpha < C - negligible, -margin, 0).max()
    beyond = np.where(alpha > negligible, margin, 0).max()
    return max(short, beyond, np.ptp(outputs - K @ (y * alpha)), abs(y @ alpha))


def refitted(K, y, C, i):
    """Output for sample i of a machine without it, and its KKT residual over what is allowed."""
    rest = np.arange(len(y)) != i
    if len(np.unique(y[rest])) == 1:
        return y[rest][0], 0.0
    own = K[np.ix_(rest, rest)]
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-6, max_iter=20_000)
    svc.fit(own, y[rest], sample_weight=C[rest])
    start = np.zeros(rest.sum())
    start[svc.support_] = np.abs(svc.dual_coef_[0])
    solution = solve(own, y[rest], C[rest], start=start)
    residual = kkt_residual(own, y[rest], C[rest], solution.alpha, solution.outputs)
    output = K[i, rest] @ (y[rest] * solution.alpha) + solution.intercept
    return output, residual / np.clip(1e-6 * solution.alpha.sum(), 1.0, 1e4)


def measure(seed, largest):
    """One row of the table."""
    K, y, C, facts = random_problem(seed, largest=largest)
    solution = solve(K, y, C)
    outputs, _ = solution.leave_one_out()
    truth = np.array([refitted(K, y, C, i) for i in range(len(y))])
    return {
        "seed": seed,
        "n": len(y),
        **facts,
        "support_vectors": int((solution.alpha > 0).sum()),
        "free": len(solution.margin),
        "largest_difference": float(np.abs(outputs.diagonal() - truth[:, 0]).max()),
        "kkt_residual_of_refits": float(truth[:, 1].max()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--largest", type=int, default=400, help="samples of a problem")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="Solver terminated early")
    with threadpool_limits(1):
        rows = [measure(seed, arguments.largest) for seed in range(arguments.problems)]
    write_table("svm_loo_exact", list(rows[0]), [list(row.values()) for row in rows])
    worst = max(row["largest_difference"] for row in rows)
    print(
        f"largest difference {worst:.2g} on {len(rows)} problems; "
        f"{sum(row['largest_difference'] > 1e-7 for row in rows)} beyond 1e-7"
    )


if __name__ == "__main__":
    main()
