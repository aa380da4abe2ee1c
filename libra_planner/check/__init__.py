"""Checks of designs on their links: flows of collectives, rates, imbalance, jobs, failures."""
