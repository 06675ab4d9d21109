"""The model of a pool that decides on each sample, chosen by nonconformity."""

from looms.nonconformity._classifier import NonconformityClassifier

__all__ = ["NonconformityClassifier"]
