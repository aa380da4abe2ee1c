"""Collectives: bytes per dimension, algorithms, models, orders of dimensions."""
