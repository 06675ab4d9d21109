"""What a fitted machine rests on, and how far to trust it."""

from looms.diagnostics._case_deletion import CaseDeletion, case_deletion

__all__ = ["CaseDeletion", "case_deletion"]
