"""Selection of hyper-parameters, kernels and criteria by exact leave-one-out.

``_objective.Objective`` has a criterion and its gradient; ``_tune.tune`` minimizes it for one
kernel.
"""

__all__ = []
