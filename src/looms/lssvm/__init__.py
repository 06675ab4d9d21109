"""Least-squares support vector machines and their exact leave-one-out outputs."""
