"""Plans as arrays, as dimensionless programs, and whether they have an optimum."""
