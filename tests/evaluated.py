"""Machines that are evaluated, as intervals and sets need them."""


def evaluated(model, *, nested=False):
    """The fitted model, after ``evaluate``; of a pipeline its last step."""
    (model[-1] if hasattr(model, "steps") else model).evaluate(nested=nested)
    return model
