"""Studies: plans in, results out: what the commands, the cockpit and Python share."""
