"""Fitted models as values: rows, members, held-out outputs and rules, and what follows."""

__all__: list[str] = []
