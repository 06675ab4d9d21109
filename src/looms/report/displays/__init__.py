"""Displays of fitted models, in scikit-learn's way: computed, stored, drawn by `plot`."""
