"""Local minimization of a function of the hyper-parameters in a box.

``_minimize.minimize`` runs L-BFGS-B, and keeps a record.
"""

__all__ = []
