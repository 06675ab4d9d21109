"""Models of several candidates on a matrix of numbers, and on the targets as they are."""

from looms import TabularClassifier, TabularRegressor


def stacked_classifier(candidates="auto", **options):
    """Classifier that stacks or compares candidates, without a preparation of columns."""
    return TabularClassifier(candidates, preprocess=None, **options)


def stacked_regressor(candidates="auto", **options):
    """Regressor that stacks or compares candidates, without preparation or transform."""
    return TabularRegressor(candidates, target="none", preprocess=None, **options)
