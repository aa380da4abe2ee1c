"""First steps with a plan."""
