"""Local minimization of a function of the hyper-parameters in a box.

``_minimize.minimize`` runs one of three optimizers, scaled conjugate gradients (our own), L-BFGS-B
or Nelder-Mead (SciPy's), and returns the same kind of record for each.
"""

__all__ = []
