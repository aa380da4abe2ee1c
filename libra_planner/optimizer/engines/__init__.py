"""Solvers of dimensionless programs: a convex modelling language, and thousands at once."""
