"""Figures of fitted machines, in scikit-learn's way: computed, stored, drawn by `plot`."""
