"""Training runs: from rows and flags to models, strategies and fabrics, and what they take."""
