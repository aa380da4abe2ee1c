"""Compiled loops that arrays cannot express."""
