"""Collectives: bytes per dimension, algorithms, pipelining by chunks, orders of dimensions."""
