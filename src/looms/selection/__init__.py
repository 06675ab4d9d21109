"""Selection of hyper-parameters, kernels and criteria by exact leave-one-out.

``_objective.Objective`` has a criterion and its gradient; ``_tune.tune`` minimizes it for one
kernel. A candidate with its rows is a ``_problem.Problem``, and ``_candidates.choose`` takes the
best of several.
"""

__all__ = []
