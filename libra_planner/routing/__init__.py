"""Routing: which links every flow takes, under each policy."""
