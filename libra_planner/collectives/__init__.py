"""Collectives: bytes per dimension, algorithms, pipelining by chunks, orders of dimensions."""

from libra_planner.collectives.traffic import real_link_slowdown, traffic_bytes

__all__ = ["real_link_slowdown", "traffic_bytes"]
