"""What a fitted machine rests on, and how far to trust it."""

from looms.diagnostics._influence import Influence, influence

__all__ = ["Influence", "influence"]
