"""Figures of designs: what columns are computed from, which designs pass filters, and frontiers."""
