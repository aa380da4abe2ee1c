"""Fabrics: topologies, the links and switches that realise them, and what of them can fail."""
