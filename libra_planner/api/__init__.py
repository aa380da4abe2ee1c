"""Python and notebooks: plans with methods, and results that show themselves."""
